"""Histograms of times: the naive implementation, invariants of merging, and the mean of drawn times."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.traces.time_histograms import (
    EMPTY,
    Bins,
    compute_histograms,
    gaps_and_durations,
    merge_histograms,
)
from iosig.transforms.traces.trace import TimeBin, TimeHistogram
from tests.budget import examples
from tests.naive.traces import time_histograms as naive

times = st.floats(0, 1e4, allow_subnormal=False)
rows_of_times = st.lists(times, min_size=1, max_size=40)


def make_histogram(*values: float) -> TimeHistogram:
    return compute_histograms(np.array(values, float), np.zeros(len(values), int), 1)[0]


def bin_rows(histogram: TimeHistogram) -> list[tuple[int, float, float, float]]:
    return [(part.count, part.minimum_s, part.mean_s, part.maximum_s) for part in histogram.bins]


def assert_valid(histogram: TimeHistogram) -> None:
    """Check the invariants of every histogram."""
    assert sum(part.count for part in histogram.bins) == histogram.count
    assert len(histogram.bins) == min(5, histogram.count)
    assert max(part.count for part in histogram.bins) - min(part.count for part in histogram.bins) <= 1
    assert (histogram.bins[0].minimum_s, histogram.bins[-1].maximum_s) == (histogram.minimum_s, histogram.maximum_s)
    assert all(part.minimum_s <= part.mean_s <= part.maximum_s for part in histogram.bins)
    assert all(before.maximum_s <= after.minimum_s for before, after in pairwise(histogram.bins))
    total = sum(part.count * part.mean_s for part in histogram.bins)
    assert total == pytest.approx(histogram.count * histogram.mean_s, rel=1e-9)
    assert histogram.variance_s2 >= 0


# ---- histograms


def test_five_bins_are_quintiles() -> None:
    histogram = make_histogram(*range(10, 0, -1))
    assert (histogram.count, histogram.minimum_s, histogram.mean_s, histogram.maximum_s) == (10, 1.0, 5.5, 10.0)
    assert histogram.variance_s2 == pytest.approx(8.25)
    assert bin_rows(histogram) == [(2, 2 * k + 1, 2 * k + 1.5, 2 * k + 2) for k in range(5)]


def test_few_times_have_a_bin_each() -> None:
    assert bin_rows(make_histogram(3.0, 1.0)) == [(1, 1.0, 1.0, 1.0), (1, 3.0, 3.0, 3.0)]
    assert [count for count, *_ in bin_rows(make_histogram(*[0.0] * 7))] == [1, 1, 2, 1, 2]


def test_groups_without_times_are_empty() -> None:
    histogram = compute_histograms(np.array([2.0, 1.0]), np.array([2, 2], np.int32), 4)
    assert [part.count for part in histogram] == [0, 0, 2, 0]
    assert histogram[0] == histogram[3] == EMPTY
    assert compute_histograms(np.empty(0), np.empty(0, int), 2) == [EMPTY, EMPTY]


def test_variance_of_large_similar_times_is_exact() -> None:
    assert make_histogram(*(1e9 + step for step in range(5))).variance_s2 == 2.0


@pytest.mark.parametrize(
    ("values", "groups", "count"),
    [([1.0], [0, 1], 2), ([1.0], [2], 2), ([1.0], [-1], 2), ([float("nan")], [0], 1), ([float("inf")], [0], 1)],
)
def test_invalid_arguments_are_rejected(values: list[float], groups: list[int], count: int) -> None:
    with pytest.raises(ValueError, match=r"group|finite"):
        compute_histograms(np.array(values), np.array(groups), count)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(times, st.integers(0, 3)), max_size=60))
def test_histograms_match_naive_implementation(pairs: list[tuple[float, int]]) -> None:
    values = np.array([time for time, _ in pairs], float)
    groups = np.array([group for _, group in pairs], np.int64)
    for group, histogram in enumerate(compute_histograms(values, groups, 4)):
        held = values[groups == group].tolist()
        if not held:
            assert histogram == EMPTY
            continue
        assert_valid(histogram)
        assert histogram.mean_s == pytest.approx(naive.mean(held), rel=1e-12)
        assert histogram.variance_s2 == pytest.approx(naive.variance(held), rel=1e-9, abs=1e-12 * max(held) ** 2)
        for ours, theirs in zip(bin_rows(histogram), naive.bins(held), strict=True):
            assert (ours[0], ours[1], ours[3]) == (theirs[0], theirs[1], theirs[3])
            assert ours[2] == pytest.approx(theirs[2], rel=1e-12)


# ---- merging


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(rows_of_times, min_size=1, max_size=6))
def test_merged_statistics_are_exact(parts: list[list[float]]) -> None:
    histogram = merge_histograms(make_histogram(*part) for part in parts)
    every = [time for part in parts for time in part]
    assert_valid(histogram)
    assert (histogram.count, histogram.minimum_s, histogram.maximum_s) == (len(every), min(every), max(every))
    assert histogram.mean_s == pytest.approx(naive.mean(every), rel=1e-9)
    assert histogram.variance_s2 == pytest.approx(naive.variance(every), rel=1e-6, abs=1e-9 * max(every) ** 2)


def test_bins_of_single_times_merge_exactly() -> None:
    histogram = merge_histograms(
        [make_histogram(1.0, 4.0, 9.0), make_histogram(2.0, 2.0), make_histogram(7.0, 3.0, 8.0, 6.0, 5.0)]
    )
    whole = make_histogram(1.0, 4.0, 9.0, 2.0, 2.0, 7.0, 3.0, 8.0, 6.0, 5.0)
    assert bin_rows(histogram) == [pytest.approx(row) for row in bin_rows(whole)]


def test_merged_bins_approximate_bins_of_all_times() -> None:
    generator = np.random.default_rng(5)
    parts = [generator.lognormal(shift, 1.0, 500) for shift in (0.0, 0.5, 2.0)]
    histogram, whole = merge_histograms(make_histogram(*part) for part in parts), make_histogram(*np.concatenate(parts))
    for ours, theirs in zip(histogram.bins, whole.bins, strict=True):
        assert ours.mean_s == pytest.approx(theirs.mean_s, rel=0.1)


def test_merge_of_none_or_one_histogram_is_identity() -> None:
    assert merge_histograms([]) == merge_histograms([EMPTY, EMPTY]) == EMPTY
    one = make_histogram(1.0, 2.0, 9.0)
    assert merge_histograms([EMPTY, one]) is one


# ---- bins


@settings(max_examples=examples(25), deadline=None)
@given(st.floats(0, 1), st.floats(0.01, 0.99), st.floats(0.1, 10), st.floats(0, 5))
def test_shares_sums_and_quantiles_are_consistent(share: float, middle: float, width: float, minimum: float) -> None:
    bins = Bins.from_bins([TimeBin(7, minimum, minimum + middle * width, minimum + width)])
    time = bins.quantiles(np.array([share]))
    assert bins.quantiles(bins.shares(time)) == pytest.approx(time, abs=1e-6 * width)
    assert bins.sums(np.array([1.0])) == pytest.approx(7 * (minimum + middle * width))
    steps = (np.arange(20_000) + 0.5) / 20_000
    assert bins.sums(np.array([share])) == pytest.approx(7 * share * bins.quantiles(steps * share).mean(), rel=1e-2)


# ---- gaps and durations


def test_gaps_follow_the_previous_end_or_the_enclosing_start() -> None:
    #        open [ stat [ read ] read ]  write [ sync ]  close
    levels = np.array([0, 1, 2, 1, 0, 1, 0])
    began = np.array([1.0, 1.5, 1.75, 3.0, 10.0, 10.5, 13.0])
    ceased = np.array([5.0, 2.5, 2.25, 4.0, 12.0, 11.0, 14.0])
    gaps, durations = gaps_and_durations(levels, began, ceased)
    assert gaps.tolist() == [1.0, 0.5, 0.25, 0.5, 5.0, 0.5, 1.0]
    assert durations.tolist() == [4.0, 1.0, 0.5, 1.0, 2.0, 0.5, 1.0]


def test_negative_gaps_become_zero() -> None:
    gaps, _ = gaps_and_durations(np.array([0, 0]), np.array([0.0, 1.0]), np.array([1.0000001, 2.0]))
    assert gaps.tolist() == [0.0, 0.0]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 9)), max_size=50))
def test_gaps_match_naive_implementation(calls: list[tuple[int, int, int]]) -> None:
    levels = np.array([level for level, _, _ in calls], np.int32)
    began = np.cumsum([step for _, step, _ in calls], dtype=float)
    ceased = began + np.array([length for _, _, length in calls], float)
    gaps, durations = gaps_and_durations(levels, began, ceased)
    wanted = naive.gaps_and_durations(levels.tolist(), began.tolist(), ceased.tolist())
    assert (gaps.tolist(), durations.tolist()) == wanted


# ---- real times


def test_duration_of_a_real_run_is_the_sum_of_gaps_and_durations(shared_data: Path) -> None:
    from iosig.warehouse.sources.recorder.signatures import open_signed_run, select_outer_calls

    with open_signed_run(shared_data / "recorder" / "ios_mpiio_n1_romio" / "8" / "raw.tar.zst") as run:
        ranks = [select_outer_calls(run.decode(rank)) for rank in run.ranks]
    for histogram in ranks:
        levels = histogram.signatures["level"].to_numpy()[histogram.order]
        gaps, durations = gaps_and_durations(levels, histogram.start_s, histogram.end_s)
        # Gaps below 0 are 0: at most a tick for each call.
        assert gaps.sum() + durations.sum() == pytest.approx(histogram.end_s[-1], abs=1e-7 * histogram.order.size)
        whole = compute_histograms(durations, histogram.order, histogram.signatures.height)
        assert sum(part.count * part.mean_s for part in whole) == pytest.approx(durations.sum())
        everything = merge_histograms(whole)
        assert everything.variance_s2 == pytest.approx(durations.var())
