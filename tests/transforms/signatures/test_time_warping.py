"""Dynamic time warping: costs equal dtw-python and a naive implementation; bands, averages, simulated drift."""

from __future__ import annotations

import dtw as peer
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ints, Ragged, Reals
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.time_warping import average_pairwise, extract_dtw, find_warping_path
from tests.budget import examples
from tests.naive.signatures import time_warping as naive

NAN = float("nan")


def sample_set(*rates: npt.ArrayLike) -> SampleSet:
    """Make runs with steps of 1 s."""
    rows = [np.asarray(rate, dtype=np.float64) for rate in rates]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    duration = np.array([float(len(row)) for row in rows])
    return SampleSet(Ragged(np.concatenate([np.zeros(0), *rows]), offsets), 1.0, np.zeros(len(rows)), duration)


def cost(first: Reals, second: Reals, path: tuple[Ints, Ints]) -> float:
    return float(((first[path[0]] - second[path[1]]) ** 2).sum())


def is_path(path: tuple[Ints, Ints], first: int, second: int) -> bool:
    ends = [(int(left), int(right)) for left, right in zip(*path, strict=True)]
    steps = {(int(left), int(right)) for left, right in np.diff(np.array(ends), axis=0)}
    return ends[0] == (0, 0) and ends[-1] == (first - 1, second - 1) and steps <= {(0, 1), (1, 0), (1, 1)}


# ---- paths


def test_shifted_burst_is_aligned() -> None:
    first, second = np.zeros(30), np.zeros(30)
    first[10:15], second[14:19] = 1.0, 1.0
    left, right = find_warping_path(first, second)
    assert cost(first, second, (left, right)) == 0
    assert set(right[(left >= 10) & (left < 15)].tolist()) == set(range(14, 19))


@pytest.mark.parametrize("seed", range(5))
def test_cost_matches_dtw_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Many zeros, as after noise reduction: many paths have the same cost.
    first, second = (np.maximum(rng.normal(-0.5, 1.0, size), 0.0) for size in (90, 70 + seed))
    expected = peer.dtw(first[:, None], second[:, None], dist_method="sqeuclidean", step_pattern="symmetric1")
    path = find_warping_path(first, second)
    assert is_path(path, len(first), len(second))
    assert cost(first, second, path) == pytest.approx(expected.distance, rel=1e-12)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_path_costs_match_naive_implementation(data: st.DataObject) -> None:
    rates = st.lists(st.one_of(st.just(0.0), st.integers(0, 4).map(float), st.floats(0, 1e9)), min_size=1, max_size=14)
    first, second = np.array(data.draw(rates)), np.array(data.draw(rates))
    path = find_warping_path(first, second)
    assert is_path(path, len(first), len(second))
    assert cost(first, second, path) == pytest.approx(naive.path(first.tolist(), second.tolist())[1], rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_paths_without_ties_match_naive_implementation(seed: int) -> None:
    first, second = np.random.default_rng(seed).random((2, 40))
    result = find_warping_path(first, second)
    expected = naive.path(first.tolist(), second.tolist())[0]
    assert list(zip(*(column.tolist() for column in result), strict=True)) == expected


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=14), st.integers(1, 14))
def test_memory_limit_sets_a_band(pairs: list[tuple[int, int]], band: int) -> None:
    first, second = np.array(pairs, dtype=np.float64).T
    most_bytes = 16 * len(pairs) * (band + 1)
    path = find_warping_path(first, second, most_bytes)
    assert is_path(path, len(pairs), len(pairs))
    width = band if most_bytes < 8 * (len(pairs) + 1) ** 2 else len(pairs)
    assert np.abs(path[0] - path[1]).max() < width
    expected = naive.path(first.tolist(), second.tolist(), width)[1]
    assert cost(first, second, path) == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-300, 1e300, 1.7e308])
def test_path_is_exact_at_extreme_rates(scale: float) -> None:
    first, second = np.array([0, 1, 0, 0.0]) * scale, np.array([0, 0, 1, 0.0]) * scale
    assert is_path(find_warping_path(first, second), 4, 4)
    assert cost(first / (scale or 1.0), second / (scale or 1.0), find_warping_path(first, second)) == 0


# ---- averages


@pytest.mark.parametrize("runs", [1, 2, 3, 4])
def test_average_matches_naive_implementation(runs: int) -> None:
    values = np.random.default_rng(runs).random((runs, 30))
    np.testing.assert_allclose(average_pairwise(values), naive.warped_mean(values.tolist()), rtol=1e-12)


def test_average_of_equal_samples_is_the_sample() -> None:
    sample = np.random.default_rng(1).random(50)
    np.testing.assert_allclose(average_pairwise(np.tile(sample, (4, 1))), sample)


def test_drifting_burst_is_at_the_mean_time_with_its_height() -> None:
    values = np.zeros((2, 60))
    values[0, 20:30], values[1, 26:36] = 4.0, 4.0
    result = average_pairwise(values)
    np.testing.assert_allclose(result[23:33], 4.0)
    assert result.sum() == pytest.approx(40.0)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(*[st.floats(0, 1e9)] * 3), min_size=1, max_size=25))
def test_average_stays_within_the_range(points: list[tuple[float, float, float]]) -> None:
    values = np.array(points).T
    result = average_pairwise(values)
    assert result.shape == (len(points),)
    assert result.min() >= values.min() * (1 - 1e-12)
    assert result.max() <= values.max() * (1 + 1e-12)


# ---- sets


def test_signature_of_drifting_runs_has_all_bursts() -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(0.0, 1e6, (5, 400))
    for row, shift in zip(rows, (0, 3, 6, 9, 12), strict=True):
        for start in (100, 250):
            row[start + shift : start + shift + 20] += 1e9
    result = extract_dtw(sample_set(*rows))
    assert result.outcome == "extracted"
    assert result.duration_s == 400
    assert len(result.bursts) == 2
    assert result.volume_bytes == pytest.approx(40e9, rel=0.15)
    assert result.background_bytes_per_s > 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("rates", "outcome"),
    [
        ([], "too_few_samples"),
        ([[]], "too_few_samples"),
        ([[NAN] * 9] * 3, "too_few_samples"),
        ([[0.0] * 9] * 3, "no_io"),
        ([[0.0, 5.0, 0.0, 0.0]], "extracted"),
        ([[5.0], [7.0]], "extracted"),
        ([[0.0, 5.0, 0.0], [0.0] * 3], "extracted"),
        ([[1e308, 0.0, 1e308]] * 4, "extracted"),
        ([[5e-324, 0.0, 5e-324, 0.0]] * 4, "extracted"),
    ],
)
def test_every_set_has_an_outcome(rates: list[list[float]], outcome: str) -> None:
    result = extract_dtw(sample_set(*rates))
    assert result.outcome == outcome
    assert np.isfinite(result.bytes_per_s).all()


def test_gaps_are_filled_from_other_runs() -> None:
    rows = np.zeros((4, 300))
    rows[:, 100:120] = 1e9
    rows[1, 90:130] = NAN
    result = extract_dtw(sample_set(*rows))
    np.testing.assert_allclose(result.bytes_per_s[100:120], 1e9)
    assert len(result.bursts) == 1
