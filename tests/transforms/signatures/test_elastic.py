"""Elastic alignment maximizes overlap with the smallest necessary shifts."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import numpy as np
import pytest

from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.elastic import (
    BLOCK_STEPS,
    PARAMS,
    _BlockOverlap,
    _interpolate_rows,
    _read_with_shift,
    _share_inside,
    align_elastically,
    extract_elastic,
    find_best_paths,
    run_in_batches,
)
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import correlation, count_burst_errors
from iosig.transforms.signatures.time_normalized import (
    TimeNormalizedRuns,
    build_signature,
    extract_time_normalized,
    normalize_durations,
)
from tests.naive.signatures import elastic as naive
from tests.transforms.run_sets import make_sample_set, simulate_polls, true_rates

STARTS = np.arange(8) * 440.0 + 200.0
TRUTH = true_rates([(a, a + 12.0, 5e9) for a in STARTS], 3600)


def extract(one: SampleSet) -> Signature:
    return extract_elastic([one])[0]


def simulate_drifting_runs(seed: int, deviation_s: float, runs: int = 10) -> SampleSet:
    """Simulate runs with short bursts and random gaps between them."""
    rng = np.random.default_rng(seed)
    rows, durations = [], []
    for _ in range(runs):
        late = np.cumsum(rng.normal(0, deviation_s, len(STARTS) + 1))
        durations.append(3600.0 + float(late[-1]))
        rows.append(
            simulate_polls(
                [(a + by, a + by + 12.0, 5e9) for a, by in zip(STARTS, late, strict=False)], durations[-1], 2.0
            )
        )
    return make_sample_set(rows, 2.0, [0.0] * runs, durations)


@pytest.mark.parametrize("seed", range(4))
def test_short_drifting_bursts_are_all_found(seed: int) -> None:
    one = simulate_drifting_runs(seed, 5.0)
    result = extract(one)
    assert count_burst_errors(result.bursts, detect_bursts(TRUTH))[1] == 0
    assert len(result.bursts) == 8
    gaps = np.diff(result.bursts.peak_s)
    assert gaps == pytest.approx([440.0] * 7, rel=0.03)
    assert (
        len(extract_time_normalized(one).bursts) != 8 or result.volume_bytes > extract_time_normalized(one).volume_bytes
    )


def simulate_dense_runs(seed: int, runs: int) -> SampleSet:
    """Simulate runs of 60 bursts of about 13 s, 17 s apart; 15 consecutive bursts are slowed by a fifth."""
    rng = np.random.default_rng(seed)
    rows, durations = [], []
    for _ in range(runs):
        slowed = int(rng.integers(0, 45))
        took = 13.0 * np.exp(rng.normal(0, 0.1, 60))
        took[slowed : slowed + 15] *= 1.2
        ends = np.cumsum(17.0 + took)
        durations.append(100.0 + float(ends[-1]))
        bursts = [(end - lasts, end, 9.1e9 / lasts) for end, lasts in zip(ends, took, strict=True)]
        rows.append(simulate_polls(bursts, durations[-1], 2.0))
    return make_sample_set(rows, 2.0, [0.0] * runs, durations)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("runs", [4, 8, 12])
def test_dense_bursts_lose_no_volume_with_more_runs(seed: int, runs: int) -> None:
    """Regression: misaligned bursts of the application counted as interference, and 12 runs lost 40 % of the volume."""
    on_clock = normalize_durations(simulate_dense_runs(seed, runs))
    assert on_clock is not None
    result = build_signature(align_elastically(on_clock))
    assert result.volume_bytes == pytest.approx(60 * 9.1e9, rel=0.08)


def test_slight_misalignment_preserves_volume() -> None:
    result = extract(simulate_drifting_runs(2, 3.0))
    assert result.volume_bytes == pytest.approx(TRUTH.sum(), rel=0.08)
    assert result.bursts.volume_bytes == pytest.approx(np.full(8, 60e9), rel=0.25)


def test_identical_runs_are_not_shifted() -> None:
    one = simulate_drifting_runs(1, 0.0)
    runs = normalize_durations(one)
    assert runs is not None
    assert np.abs(align_elastically(runs).shift).max() < 1.0
    assert correlation(extract(one).bytes_per_s, TRUTH) > 0.99


def test_path_changes_only_if_the_score_outweighs_the_cost() -> None:
    scores = np.zeros((2, 30, 21))
    scores[0, :15, 10] = scores[0, 15:, 16] = 1.0
    scores[1, :, 10] = 1.0
    scores[1, 14:16, 16] = 1.0 + 3 * PARAMS.change_cost
    path = find_best_paths([scores.transpose(1, 2, 0)])[0]
    assert path[0].tolist() == [0.0] * 15 + [6.0] * 15
    assert path[1].tolist() == [0.0] * 30


@pytest.mark.parametrize("seed", range(8))
def test_path_matches_exhaustive_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random((3, 12, 2 * int(rng.integers(1, 5)) + 1)) * rng.choice([0.1, 1.0, 5.0])
    if seed % 2:
        scores = np.round(scores)
    middle = scores.shape[2] // 2
    for own, path in zip(scores.tolist(), find_best_paths([scores.transpose(1, 2, 0)])[0], strict=True):
        worth = naive.score_path(own, (path + middle).astype(int).tolist(), PARAMS.change_cost)
        assert worth == pytest.approx(naive.best_score(own, PARAMS.change_cost))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_paths_do_not_depend_on_the_batch(dtype: type) -> None:
    rng = np.random.default_rng(1)
    shapes = [(7, 5, 3), (12, 9, 1), (1, 3, 4), (12, 5, 2), (3, 17, 2)]
    scores = [rng.random(shape).astype(dtype) for shape in shapes]
    for one, result in zip(scores, find_best_paths(scores), strict=True):
        assert result.shape == (one.shape[2], one.shape[0])
        np.testing.assert_array_equal(result, find_best_paths([one])[0])
    assert find_best_paths([]) == []


def test_results_are_in_the_order_of_sets() -> None:
    few = simulate_drifting_runs(1, 1.0, runs=2)
    sets = [
        simulate_drifting_runs(2, 3.0),
        make_sample_set([np.arange(60.0) % 7] * 5, 2.0, [0.0] * 5, [120.0] * 5),
        few,
        simulate_drifting_runs(3, 4.0),
    ]
    for one, result in zip(sets, extract_elastic(sets), strict=True):
        alone = extract(one)
        assert result.outcome == alone.outcome
        np.testing.assert_array_equal(result.bytes_per_s, alone.bytes_per_s)


@pytest.mark.parametrize(("seed", "count", "reach"), [(1, 90, 4), (2, 95, 12), (3, 5, 7), (4, 81, 1)])
def test_scores_match_naive_implementation(seed: int, count: int, reach: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.random((3, count))
    common = np.maximum(rng.random(count) - 0.6, 0.0) if seed != 3 else np.zeros(count)
    result = _BlockOverlap.from_rates(rates, reach).score(common)
    assert result.shape == (-(-count // BLOCK_STEPS), 2 * reach + 1, 3)
    for block, place, run in np.ndindex(result.shape):
        expected = naive.overlap(
            rates[run].tolist(), common.tolist(), block, BLOCK_STEPS, place - reach, PARAMS.excess_cost
        )
        assert result[block, place, run] == pytest.approx(expected, abs=1e-5)


def test_shifts_are_relative_to_the_median() -> None:
    rates = np.zeros((3, 200))
    for run, late in enumerate((-6, 0, 6)):
        for begin in (30, 90, 150):
            rates[run, begin + late : begin + late + 12] = 1.0
    result = align_elastically(TimeNormalizedRuns(rates, 0, np.full(3, 200.0), 1.0, 0.5, np.zeros((3, 200)))).shift
    assert np.median(result, axis=0) == pytest.approx(np.zeros(200), abs=1.0)
    assert result[2, 95] - result[0, 95] == pytest.approx(12.0, abs=3.0)


def test_runs_without_overlap_have_no_signature() -> None:
    assert extract(make_sample_set([np.full(200, 1e9)] * 5, 2.0, [0.0] * 5, [400.0] * 5)).outcome == "no_common_bursts"
    assert extract(simulate_drifting_runs(1, 1.0, runs=2)).outcome == "too_few_samples"


@pytest.mark.parametrize("seed", range(5))
def test_row_interpolation_matches_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Places may coincide, and queries may lie on or beyond them.
    places = np.maximum.accumulate(np.round(np.arange(40.0) + rng.normal(0.0, 3.0, 40), 1))
    rows, at = rng.random((6, 40)), np.round(np.linspace(-5.0, 45.0, 60), 1)
    np.testing.assert_array_equal(_interpolate_rows(at, places, rows), [np.interp(at, places, row) for row in rows])


def test_share_inside_equals_interpolated_ones() -> None:
    left = np.random.default_rng(1).uniform(-4.0, 34.0, (5, 30))
    left[0] = np.arange(30)
    left[1, :4] = -1.0, 0.0, 29.0, 30.0
    np.testing.assert_array_equal(_share_inside(left), _read_with_shift(np.ones((5, 30)), left))


# ---- batches


def double_each(*numbers: int) -> Generator[int, int, list[int]]:
    """Request each number doubled, one request at a time, and return all responses."""
    result = []
    for number in numbers:
        result.append((yield number))
    return result


def test_requests_are_batched_and_tasks_start_when_others_end() -> None:
    asked: list[int] = []
    begun: list[int] = []

    def respond(numbers: Sequence[int]) -> list[int]:
        asked.append(len(numbers))
        return [2 * number for number in numbers]

    def tasks() -> Iterator[Generator[int, int, list[int]]]:
        for place, numbers in enumerate([(1,), (2, 3, 4), (), (5,)]):
            begun.append(place)
            yield double_each(*numbers)

    assert run_in_batches(tasks(), respond, 2) == [[2], [4, 6, 8], [], [10]]
    assert asked == [2, 1, 1, 1, 0]
    assert begun == [0, 1, 2, 3]
    assert run_in_batches([], respond, 2) == []
