"""Preprocessing of IOSI, section 5.1: the example of the paper, gaps, intervals, and naive implementations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ragged
from iosig.transforms.signatures import preprocessing
from iosig.transforms.signatures.preprocessing import (
    correct_durations,
    fill_gaps,
    merge_node_counts,
    preprocess,
    reduce_noise,
    refine_granularity,
    truncate_runs,
)
from iosig.transforms.signatures.sample_sets import SampleSet
from tests.budget import examples
from tests.naive.signatures import preprocessing as naive

pytestmark = pytest.mark.filterwarnings("error")

Reals = npt.NDArray[np.float64]
NAN = float("nan")
rates = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
gappy = st.one_of(rates, st.just(NAN))


def of(*values: float) -> Reals:
    return np.array(values, dtype=np.float64)


def ragged(*samples: list[float] | Reals) -> Ragged:
    edges = np.concatenate([[0], np.cumsum([len(one) for one in samples])]).astype(np.int64)
    return Ragged(np.concatenate([np.zeros(0), *(np.array(one, dtype=np.float64) for one in samples)]), edges)


def pieces(samples: Ragged) -> list[list[float]]:
    return (
        [part.tolist() for part in np.split(samples.values, samples.offsets[1:-1])] if len(samples.offsets) > 1 else []
    )


def make_sample_set(
    *samples: list[float] | Reals, interval_s: float = 2.0, duration_s: list[float] | None = None
) -> SampleSet:
    durations = of(*(duration_s or [len(one) * interval_s for one in samples]))
    return SampleSet(ragged(*samples), interval_s, np.zeros(len(samples)), durations)


def points(rates: Reals, interval_s: float) -> Reals:
    """Preprocess one sample."""
    return refine_granularity(ragged(rates), interval_s).values


# ---- granularity refinement


def test_inserted_points_are_the_mean_of_their_neighbors() -> None:
    np.testing.assert_array_equal(points(of(1, 3, 7), 2.0), [1, 2, 3, 5, 7])
    np.testing.assert_array_equal(points(of(4), 2.0), [4])
    assert points(of(), 2.0).shape == (0,)
    np.testing.assert_array_equal(points(of(1.6e308, 1.6e308), 2.0), [1.6e308] * 3)


@pytest.mark.parametrize(
    ("interval_s", "expected"),
    [
        (1.0, [0, 10, 40]),
        (5.0, [0, 2, 4, 6, 8, 10, 16, 22, 28, 34, 40]),
        (2.5, [0, 4, 8, 16, 28, 40]),
        (1.5, [0, 20 / 3, 20, 40]),
        (0.5, [5, 40]),
        (0.75, [0.25 * 10, 0.5 * 10 + 0.5 * 40, 40]),
    ],
)
def test_points_are_one_second_apart_at_any_interval(interval_s: float, expected: list[float]) -> None:
    np.testing.assert_allclose(points(of(0, 10, 40), interval_s), expected, rtol=1e-12)


def test_last_point_is_not_lost_to_rounding() -> None:
    # By rounding, 50 steps of 2.3 s end just before the 115th second.
    assert len(points(np.zeros(51), 2.3)) == 116
    # By rounding, 25 steps of 0.28 s end just after the 7th second.
    assert len(points(np.zeros(25), 0.28)) == 7
    for interval in (1.1, 1.7, 2.1, 3.3, 0.1, 0.3, 0.7):
        count = 1001
        expected = 1000 * interval + 1 if interval >= 1 else 1001 * interval
        result = points(np.arange(count) * 1.0, interval)
        assert len(result) == (round(expected) if interval >= 1 else int(np.ceil(expected - 1e-9)))
        assert np.isfinite(result).all()


def test_steps_do_not_leak_into_the_next_sample() -> None:
    # By rounding, the 30th step of 0.1 s ends just after the third second.
    result = pieces(refine_granularity(ragged(np.full(30, 7.0), np.full(10, NAN)), 0.1))
    np.testing.assert_array_equal(result[1], [NAN])


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(gappy, max_size=40), st.sampled_from([0.1, 0.25, 0.3, 0.7]))
def test_short_steps_are_averaged(steps: list[float], interval_s: float) -> None:
    result = points(of(*steps), interval_s)
    assert len(result) == np.ceil(len(steps) * interval_s - 1e-9)
    if steps and not np.isnan(steps).any():
        last = len(steps) * interval_s - (len(result) - 1)
        total = result[:-1].sum() + result[-1] * last
        assert total == pytest.approx(sum(steps) * interval_s, rel=1e-9)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.lists(gappy, max_size=12), max_size=5))
def test_refinement_matches_naive_implementation(samples: list[list[float]]) -> None:
    result = pieces(refine_granularity(ragged(*samples), 2.0))
    for ours, sample in zip(result, samples, strict=True):
        np.testing.assert_allclose(ours, naive.refined(sample), rtol=1e-12)
    for other in (3.0, 2.5, 0.5):
        together = pieces(refine_granularity(ragged(*samples), other))
        for ours, sample in zip(together, samples, strict=True):
            np.testing.assert_array_equal(ours, points(of(*sample), other))


def test_general_interpolation_matches_the_special_case_of_2_s() -> None:
    steps = np.random.default_rng(2).random(300)
    np.testing.assert_allclose(points(steps, 2.0), points(steps, 2.0 + 1e-13), rtol=1e-9)


def test_points_next_to_gaps_are_missing() -> None:
    np.testing.assert_array_equal(points(of(1, NAN, 3), 2.0), [1, NAN, NAN, NAN, 3])
    np.testing.assert_array_equal(points(of(1, NAN, 3), 3.0), [1, NAN, NAN, NAN, NAN, NAN, 3])
    np.testing.assert_array_equal(points(of(1, NAN, NAN, 3), 0.5), [1, 3])


@pytest.mark.parametrize("interval_s", [0.0, -1.0, NAN, np.inf])
def test_invalid_interval_raises(interval_s: float) -> None:
    with pytest.raises(ValueError, match="interval"):
        points(of(1, 2), interval_s)


# ---- gaps


def test_only_short_gaps_are_filled() -> None:
    samples = ragged([0, NAN, NAN, 3, NAN, NAN, NAN, 7], [NAN, 5, np.inf], [NAN, NAN], [], [-np.inf, NAN, NAN, 1])
    assert str(pieces(fill_gaps(samples, 2.0, 4.0))) == str(
        [[0.0, 1.0, 2.0, 3.0, NAN, NAN, NAN, 7.0], [5.0, 5.0, 5.0], [NAN, NAN], [], [NAN, NAN, NAN, 1.0]]
    )


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(gappy, max_size=15), max_size=5), st.integers(0, 6))
def test_gap_filling_matches_naive_implementation(samples: list[list[float]], most_steps: int) -> None:
    result = pieces(fill_gaps(ragged(*samples), 2.0, 2.0 * most_steps))
    for ours, sample in zip(result, samples, strict=True):
        np.testing.assert_allclose(ours, naive.bridged(sample, most_steps), rtol=1e-9, atol=1e-12)


# ---- duration correction


def test_duration_correction_matches_the_example_of_the_paper() -> None:
    result = correct_durations(ragged(np.arange(1500.0), np.arange(1560.0)))
    assert result.shape == (2, 1500)
    dropped = np.setdiff1d(np.arange(1560), result[1])
    assert (dropped[:4] + 1).tolist() == [1, 26, 51, 76]
    assert len(dropped) == 60
    assert set(np.diff(dropped)) == {25}


def test_excess_above_ten_percent_is_trimmed_evenly() -> None:
    for count, last in ((110, 90), (111, 100)):
        result = correct_durations(ragged(np.arange(100.0), np.arange(float(count))))
        dropped = np.setdiff1d(np.arange(count), result[1])
        assert (dropped[0], dropped[-1]) == (0, last)
    result = correct_durations(ragged(np.arange(100.0), np.arange(150.0)), 1.0)
    assert np.setdiff1d(np.arange(150), result[1]).tolist() == list(range(0, 100, 2)), "the paper's interval"


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1, 200), st.lists(st.integers(0, 500), min_size=1, max_size=4))
def test_points_are_dropped_at_regular_intervals(shortest: int, more: list[int]) -> None:
    counts = [shortest, *(shortest + extra for extra in more)]
    samples = [np.arange(count, dtype=np.float64) for count in counts]
    result = correct_durations(ragged(*samples))
    assert result.shape == (len(counts), shortest)
    for ours, count in zip(result, counts, strict=True):
        excess = count - shortest
        by_paper = excess <= preprocessing.MAX_PUBLISHED_EXCESS_RATIO * shortest
        interval = (shortest if by_paper else count) / excess if excess else 1.0
        assert ours.tolist() == naive.shortened(list(range(count)), shortest, interval)
        gaps = np.diff(np.setdiff1d(np.arange(count), ours))
        assert not len(gaps) or gaps.max() - gaps.min() <= 1


def test_duration_correction_accepts_empty_samples() -> None:
    assert correct_durations(ragged(), 1.0).shape == correct_durations(ragged()).shape == (0, 0)
    assert correct_durations(ragged(of(), of(1, 2))).shape == (2, 0)
    np.testing.assert_array_equal(correct_durations(ragged(of(1, 2, 3))), [[1, 2, 3]])


# ---- noise reduction


def test_mean_of_values_below_the_mean_is_subtracted() -> None:
    values, background = reduce_noise(np.array([[1.0, 3, 20], [2, NAN, 14]]))
    assert background == pytest.approx(2.0)
    np.testing.assert_allclose(values, [[0, 1, 18], [0, NAN, 12]], atol=1e-12)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 4), st.integers(1, 12), st.data())
def test_noise_reduction_matches_naive_implementation(runs: int, points: int, data: st.DataObject) -> None:
    values = np.array(
        data.draw(st.lists(st.lists(gappy, min_size=points, max_size=points), min_size=runs, max_size=runs))
    )
    result, background = reduce_noise(values)
    if np.isnan(values).all() or np.nanmax(values) - np.nanmin(values) < 1e-9 * np.nanmax(values):
        return
    theirs, level = naive.noise_reduced(values.tolist())
    assert background == pytest.approx(level, rel=1e-9)
    np.testing.assert_allclose(result, theirs, rtol=1e-9, atol=1e-9)


def test_constant_samples_have_no_background() -> None:
    for value in (0.0, 0.1, 5e-324, 1.7e308):
        values, background = reduce_noise(np.full((3, 7), value))
        assert background == 0.0
        assert (values == value).all()
    values, background = reduce_noise(np.full((2, 2), NAN))
    assert np.isnan(background)
    assert np.isnan(values).all()
    assert np.isnan(reduce_noise(np.zeros((0, 0)))[1])
    values, background = reduce_noise(np.array([[1.7e308, 1.7e308, 1e307]]))
    assert background == pytest.approx(1e307)
    values, _ = reduce_noise(np.array([[np.inf, 1.0, 5.0]]))
    np.testing.assert_allclose(values, [[NAN, 0, 4]])


# ---- complete preprocessing


def test_preprocessing_combines_all_steps() -> None:
    one = make_sample_set([1, 1, 9, 1], [1, 1, 1, 9, 1, 1], [1, 1, NAN, 1])
    result = preprocess(one)
    assert result.values.shape == (3, 7)
    assert result.run.tolist() == [0, 1, 2]
    points = [naive.refined(sample) for sample in ([1, 1, 9, 1], [1, 1, 1, 9, 1, 1], [1, 1, 1, 1])]
    cut = [naive.shortened(sample, 7, len(sample) / (len(sample) - 7 or 1)) for sample in points]
    values, background = naive.noise_reduced(cut)
    np.testing.assert_allclose(result.values, values)
    assert result.background_bytes_per_s == pytest.approx(background)
    assert result.filled is result.values


def test_long_gaps_are_filled_from_other_runs() -> None:
    long = np.full(60, 1.0)
    long[20:28] = NAN
    burst = np.full(60, 1.0)
    burst[22:25] = 11.0
    result = preprocess(make_sample_set(long, burst, burst * 2 - 1))
    assert np.isnan(result.values[0, 39:56]).all()
    assert np.isfinite(result.values).sum() == result.values.size - 17
    np.testing.assert_array_equal(result.filled[0, 39:56], result.values[1:, 39:56].mean(axis=0))
    np.testing.assert_array_equal(result.filled[1:], result.values[1:])
    alone = preprocess(make_sample_set(long))
    assert not alone.filled[0, 39:56].any()


def test_sample_with_many_gaps_is_dropped() -> None:
    full_of_gaps = np.full(40, 1.0)
    full_of_gaps[5:16] = NAN
    result = preprocess(make_sample_set(np.arange(50.0), full_of_gaps, [], np.full(3, NAN), np.arange(45.0)))
    assert result.run.tolist() == [0, 4]
    assert result.values.shape == (2, 89)
    full_of_gaps[5] = 1.0
    assert preprocess(make_sample_set(np.arange(50.0), full_of_gaps)).run.tolist() == [0, 1]


@pytest.mark.parametrize("samples", [[], [[]], [[NAN] * 9, [NAN] * 7], [[np.inf], []]])
def test_empty_sets_have_no_values(samples: list[list[float]]) -> None:
    result = preprocess(make_sample_set(*samples))
    assert result.values.shape == (0, 0)
    assert result.filled.shape == (0, 0)
    assert np.isnan(result.background_bytes_per_s)
    assert len(result.run) == 0


def test_samples_of_one_step_are_preprocessed() -> None:
    result = preprocess(make_sample_set([3], [5], [4, 4, 4]))
    # Only 3 is below the mean, which is 4.
    np.testing.assert_allclose(result.values, [[0], [2], [1]])
    assert result.background_bytes_per_s == 3.0


# ---- partial samples, several node counts


def test_truncated_runs_keep_their_start() -> None:
    one = SampleSet(ragged(range(10), range(21)), 2.0, of(-1, 0), of(18.0, 41.0))
    first = truncate_runs(one, 9.0)
    assert first.duration_s.tolist() == [9.0, 9.0]
    # Steps from -1 to 9 s, and from 0 to 10 s, around the end of the part.
    assert [sample.tolist() for sample in first.rates] == [list(range(5)), list(range(5))]
    same = truncate_runs(one, 20.0)
    assert same.duration_s.tolist() == [18.0, 20.0]
    assert [len(sample) for sample in same.rates] == [10, 10]
    assert same.start_s.tolist() == [-1, 0]
    np.testing.assert_array_equal(truncate_runs(one, 41.0).samples.values, one.samples.values)


def test_truncation_accepts_empty_runs_and_rejects_zero_duration() -> None:
    one = SampleSet(ragged([], [1, 2, 3]), 2.0, of(0, 0), of(0, NAN))
    assert [len(sample) for sample in truncate_runs(one, 1e-3).rates] == [0, 1]
    assert truncate_runs(one, 4.0).duration_s.tolist() == [0.0, 4.0]
    with pytest.raises(ValueError, match="duration"):
        truncate_runs(one, 0.0)


def simulate_weak_scaling(factor: int, count: int, rng: np.random.Generator) -> SampleSet:
    """Simulate weak scaling: five bursts of the same height, `factor` times as long."""
    samples = []
    for _ in range(count):
        one = np.tile(np.concatenate([np.zeros(45 * factor), np.full(5 * factor, 3e9)]), 5)
        samples.append(np.concatenate([np.zeros(rng.integers(3)), one]) + rng.random(1) * 1e7)
    return make_sample_set(*samples)


def test_merged_node_counts_have_the_shortest_duration() -> None:
    rng = np.random.default_rng(5)
    merged = merge_node_counts(
        [simulate_weak_scaling(2, 4, rng), simulate_weak_scaling(1, 4, rng), simulate_weak_scaling(4, 3, rng)]
    )
    assert merged.run_count == 11
    assert merged.duration_s.max() < 1.02 * merged.duration_s.min()
    volume = np.array([sample.sum() for sample in merged.rates])
    assert volume.max() < 1.1 * volume.min()
    mean = preprocess(merged).values.mean(axis=0)
    bursts = np.flatnonzero(np.diff(mean > 1.5e9, prepend=False, append=False))
    assert len(bursts) == 10
    np.testing.assert_allclose(bursts[::2], 90 + 100 * np.arange(5), atol=5)


def test_merged_node_counts_keep_their_differences() -> None:
    one, twice = make_sample_set([1.0] * 100, [1.0] * 50), make_sample_set([1.0] * 200, [1.0] * 210, [1.0] * 190)
    merged = merge_node_counts([one, twice])
    early = SampleSet(twice.samples, 2.0, of(-1, -1, -1), twice.duration_s)
    assert merge_node_counts([one, early]).start_s.tolist() == [0, 0, -0.375, -0.375, -0.375]
    # Medians of 150 and 400 s.
    assert merged.duration_s.tolist() == [200, 100, 150, 157.5, 142.5]
    assert [len(sample) for sample in merged.rates] == [100, 50, 75, 79, 72]
    np.testing.assert_array_equal(merge_node_counts([one]).samples.values, one.samples.values)


def test_merging_accepts_empty_sets_and_different_intervals() -> None:
    assert merge_node_counts([]).run_count == 0
    assert merge_node_counts([make_sample_set([]), make_sample_set([1, 2], duration_s=[NAN])]).run_count == 0
    merged = merge_node_counts(
        [make_sample_set([1, 3, 5]), make_sample_set([2, 2, 2, 2, 2, 2, 2], interval_s=1.0, duration_s=[7.0])]
    )
    assert merged.interval_s == 1.0
    assert merged.start_s.tolist() == pytest.approx([0.5, 0.0])
    assert pieces(merged.samples) == [[1, 2, 3, 4, 5], [2, 2, 2, 2, 2, 2]]
