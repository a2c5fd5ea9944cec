"""PEARC'18 classifier: labels, limits of Algorithm 1, naive implementation, and real series."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings, strategies as st

from iosig.transforms import classes
from iosig.transforms.arrays import Reals
from iosig.transforms.classes import ClassParams, Sections, classify, grid_sections, interval_sections, label_sections
from tests.budget import examples
from tests.naive import classes as naive

MB = 1e6
NAN = float("nan")


def label(*section_bytes: float, nodes: float = NAN, params: ClassParams | None = None) -> str:
    return str(label_sections(np.array([section_bytes], dtype=float), np.array([nodes]), params)[0])


def one(intervals: list[naive.Interval], started: float, ended: float, count: int = 4) -> Sections:
    left, right, volume = (np.array(column, dtype=float) for column in zip(*intervals, strict=True))
    offsets = np.array([0, len(intervals)])
    return interval_sections(left, right, volume, offsets, np.array([started]), np.array([ended]), count)


def run(*section_bytes: float, duration: float = 3600.0) -> Sections:
    """Sections of one fully covered run."""
    covered = np.full((1, 4), duration / 4)
    return Sections(np.array([section_bytes], dtype=float), covered, np.array([duration]))


# ---- labels


@pytest.mark.parametrize(
    ("section_mb", "expected"),
    [
        ((10, 1, 1, 1), "START"),
        ((1, 1, 1, 10), "END"),
        ((1, 10, 10, 1), "HILL"),
        ((10, 1, 1, 10), "CANYON"),
        ((10, 0, 0, 9), "CANYON"),
        ((9, 0, 0, 10), "CANYON"),
        ((10, 10, 10, 10), "UNIFORM"),
        ((10, 5, 9, 3), "OTHER"),
        ((0, 0, 0, 0), "NO_USAGE"),
    ],
)
def test_sections_have_the_expected_label(section_mb: tuple[float, ...], expected: str) -> None:
    assert label(*(value * MB for value in section_mb)) == expected


@pytest.mark.parametrize(
    ("section_mb", "expected"),
    [
        # s0 > s1 + s2 + s3 is strict: equality falls through (and s1 + s2 = 4 < 2 * 10)
        ((8, 2, 2, 4), "OTHER"),
        ((9, 2, 2, 4), "START"),
        # Within START, s3 > 2 (s1 + s2) is strict
        ((20, 2, 2, 8), "START"),
        ((20, 2, 2, 9), "CANYON"),
        # s3 > s0 + s1 + s2 is strict
        ((4, 2, 2, 8), "OTHER"),
        ((4, 2, 2, 9), "END"),
        # Within END, s0 > 2 (s1 + s2) is strict
        ((8, 2, 2, 20), "END"),
        ((9, 2, 2, 20), "CANYON"),
        # s1 + s2 > 2 (s0 + s3) is strict
        ((2, 8, 4, 4), "OTHER"),
        ((2, 8, 5, 4), "HILL"),
        # min(s0, s3) > 2 max(s1, s2) is strict
        ((10, 4, 5, 10), "OTHER"),
        ((11, 4, 5, 11), "CANYON"),
        # The larger middle section and the smaller outer section count.
        ((12, 1, 6, 12), "OTHER"),
        ((12, 1, 5, 10), "OTHER"),
    ],
)
def test_inequalities_of_algorithm_1_are_strict(section_mb: tuple[float, ...], expected: str) -> None:
    assert label(*(value * MB for value in section_mb)) == expected


def test_no_usage_threshold_is_strict_and_per_node() -> None:
    assert label(1e6, 0, 0, 0) == "START"
    assert label(1e6 - 1, 0, 0, 0) == "NO_USAGE"
    assert label(3e6, 0, 0, 0, nodes=4) == "NO_USAGE"
    assert label(4e6, 0, 0, 0, nodes=4) == "START"
    assert label(3e6, 0, 0, 0, nodes=0) == "START", "a node count below 1 is none"
    assert label(0, 0, 0, 0, params=ClassParams(no_usage_bytes=0)) == "NO_USAGE"


def test_uniform_uses_population_standard_deviation() -> None:
    # Population CV .228 and sample CV .264 of a real job (ub-hpc-6665127, writes).
    quarters = np.array([19.6, 21.7, 34.5, 24.2]) * MB
    assert quarters.std(ddof=1) / quarters.mean() > 0.25
    assert label(*quarters) == "UNIFORM"
    # Mean 4, deviations 1: exactly 0.25.
    assert label(3 * MB, 3 * MB, 5 * MB, 5 * MB) == "OTHER"


def test_thresholds_are_configurable() -> None:
    assert label(5, 1, 1, 1) == "NO_USAGE"
    assert label(5, 1, 1, 1, params=ClassParams(no_usage_bytes=8)) == "START"
    assert label(5 * MB, 1 * MB, 1 * MB, 1 * MB, params=ClassParams(uniform_cv=1)) == "UNIFORM"
    assert label(9 * MB, 4 * MB, 4 * MB, 9 * MB, params=ClassParams(predominance=3)) == "OTHER"
    assert label(9 * MB, 4 * MB, 4 * MB, 9 * MB) == "CANYON"


volumes = st.one_of(st.just(0.0), st.floats(1.0, 1e15), st.integers(0, 5).map(lambda n: n * 1e6))
quarters = st.tuples(volumes, volumes, volumes, volumes)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(quarters, min_size=1, max_size=20), st.integers(1, 20))
def test_labels_match_naive_implementation(rows: list[tuple[float, ...]], nodes: int) -> None:
    # Near 0.25, rounding may differ.
    cv = classes.compute_variation_coefficients(np.array(rows))
    rows = [row for row, value in zip(rows, cv, strict=True) if abs(value - 0.25) > 1e-9 or sum(row) == 0]
    assume(rows)
    result = label_sections(np.array(rows), np.full(len(rows), float(nodes)))
    assert result.tolist() == [naive.label(row, nodes) for row in rows]


@settings(max_examples=examples(50), deadline=None)
@given(quarters, st.integers(0, 30))
def test_labels_are_scale_free_above_the_threshold(row: tuple[float, ...], exponent: int) -> None:
    assume(sum(row) >= 1e6)
    assert label(*row) == label(*(value * 2.0**exponent for value in row))


@settings(max_examples=examples(50), deadline=None)
@given(quarters)
def test_reversed_time_swaps_start_and_end(row: tuple[float, ...]) -> None:
    # Reversal changes the order of summation, so near-ties are excluded.
    sums = [row[0] - sum(row[1:]), row[3] - sum(row[:3])]
    assume(all(value == 0 or abs(value) > 1e-9 * sum(row) for value in sums))
    swapped = {"START": "END", "END": "START"}
    forward = label(*row)
    assert label(*reversed(row)) == swapped.get(forward, forward)


# ---- sections


def test_interval_across_an_edge_is_divided_by_time() -> None:
    sections = one([(0, 30, 30), (30, 100, 70)], 0, 100)
    np.testing.assert_allclose(sections.volume_bytes, [[25, 25, 25, 25]])
    sections = one([(20, 40, 20)], 0, 100)
    np.testing.assert_allclose(sections.volume_bytes, [[5, 15, 0, 0]])


def test_bytes_outside_the_run_are_dropped() -> None:
    sections = one([(-10, 10, 20), (90, 110, 40), (200, 210, 99), (-50, -40, 99)], 0, 100)
    np.testing.assert_allclose(sections.volume_bytes, [[10, 0, 0, 20]])
    np.testing.assert_allclose(sections.missing_ratios, [0.8])


def test_missing_volume_counts_as_missing() -> None:
    sections = one([(0, 50, 10), (50, 75, NAN), (75, 100, 30)], 0, 100)
    np.testing.assert_allclose(sections.volume_bytes, [[5, 5, 0, 30]])
    np.testing.assert_allclose(sections.missing_ratios, [0.25])
    np.testing.assert_allclose(sections.section_missing_ratios, [[0, 0, 1, 0]])


def test_overlap_adds_bytes_but_covers_time_once() -> None:
    sections = one([(50, 100, 8), (0, 20, 2), (10, 30, 2), (0, 20, 2), (0, 20, NAN)], 0, 100)
    np.testing.assert_allclose(sections.volume_bytes.sum(), 14)
    np.testing.assert_allclose(sections.missing_ratios, [0.2])


def test_run_without_duration_or_points_has_no_data() -> None:
    nothing = interval_sections(
        np.array([0.0]), np.array([10.0]), np.array([5.0]), np.array([0, 1, 1, 1]),
        np.array([5.0, 0.0, NAN]), np.array([5.0, 100.0, 100.0]),
    )  # fmt: skip
    assert not nothing.volume_bytes.any()
    np.testing.assert_array_equal(nothing.missing_ratios, [NAN, 1.0, NAN])
    empty = np.empty(0)
    assert interval_sections(empty, empty, empty, np.array([0]), empty, empty).volume_bytes.shape == (0, 4)
    assert grid_sections(empty, np.array([0]), empty, empty, empty, empty).volume_bytes.shape == (0, 4)


@st.composite
def ragged_intervals(draw: st.DrawFn, disjoint: bool) -> tuple[list[list[naive.Interval]], list[tuple[float, float]]]:
    subjects, runs = [], []
    for _ in range(draw(st.integers(1, 6))):
        edges = draw(st.lists(st.integers(-50, 150), max_size=12, unique=True).map(sorted))
        pairs = list(pairwise(edges))
        if not disjoint:
            pairs = draw(st.lists(st.tuples(st.integers(-50, 60), st.integers(61, 150)), max_size=8))
        values = st.one_of(st.just(NAN), st.floats(0, 1e9))
        subjects.append([(float(low), float(high), draw(values)) for low, high in pairs])
        started = draw(st.integers(-20, 50))
        runs.append((float(started), float(started + draw(st.integers(1, 120)))))
    return subjects, runs


@pytest.mark.parametrize("disjoint", [True, False])
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), count=st.integers(1, 6))
def test_intervals_match_naive_implementation(data: st.DataObject, count: int, disjoint: bool) -> None:
    subjects, runs = data.draw(ragged_intervals(disjoint))
    flat = np.array([point for subject in subjects for point in subject], dtype=float).reshape(-1, 3)
    offsets = np.cumsum([0, *(len(subject) for subject in subjects)])
    started, ended = np.array(runs).T
    result = interval_sections(flat[:, 0], flat[:, 1], flat[:, 2], offsets, started, ended, count)
    for index, (subject, (low, high)) in enumerate(zip(subjects, runs, strict=True)):
        np.testing.assert_allclose(result.volume_bytes[index], naive.sections(subject, low, high, count), atol=1e-3)
        np.testing.assert_allclose(result.missing_ratios[index], naive.missing(subject, low, high), atol=1e-9)


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[list[float]], list[tuple[float, float, float, float]]]:
    rates = st.one_of(st.just(NAN), st.floats(0, 1e9))
    subjects = draw(st.lists(st.lists(rates, max_size=15), min_size=1, max_size=6))
    times = st.tuples(
        st.integers(-40, 40).map(lambda n: n / 2),
        st.sampled_from([0.5, 1.0, 2.0, 5.0, 0.3]),
        st.integers(-20, 20).map(float),
        st.integers(1, 60).map(float),
    )
    return subjects, draw(st.lists(times, min_size=len(subjects), max_size=len(subjects)))


@settings(max_examples=examples(50), deadline=None)
@given(grids(), st.integers(1, 6))
def test_grids_match_naive_implementation(
    drawn: tuple[list[list[float]], list[tuple[float, float, float, float]]], count: int
) -> None:
    subjects, times = drawn
    offsets = np.cumsum([0, *(len(rates) for rates in subjects)])
    grid_started, interval, started, duration = np.array(times).T
    flat = np.array([rate for rates in subjects for rate in rates], dtype=float)
    result = grid_sections(flat, offsets, grid_started, interval, started, started + duration, count)
    for index, rates in enumerate(subjects):
        left, step, low, length = times[index]
        points = [(left + i * step, left + (i + 1) * step, rate * step) for i, rate in enumerate(rates)]
        expected = naive.sections(points, low, low + length, count)
        np.testing.assert_allclose(result.volume_bytes[index], expected, rtol=1e-9, atol=1e-3)
        np.testing.assert_allclose(result.missing_ratios[index], naive.missing(points, low, low + length), atol=1e-9)


def _large(subjects: int, steps: int) -> tuple[Reals, np.ndarray, Reals, Reals]:
    rng = np.random.default_rng(7)
    rates = rng.exponential(1e9, subjects * steps)
    rates[rng.random(rates.size) < 0.01] = NAN
    started = 1.5e9 + np.floor(rng.uniform(0, 1e6, subjects))
    return rates, np.arange(subjects + 1) * steps, started, started + 2.0 * steps - 7


def test_grids_and_intervals_agree_across_batches() -> None:
    rates, offsets, started, ended = _large(60, 5400)
    grid = grid_sections(rates, offsets, started - 3, np.full(60, 2.0), started, ended)
    left = np.repeat(started - 3, 5400) + np.tile(np.arange(5400) * 2.0, 60)
    intervals = interval_sections(left, left + 2, rates * 2, offsets, started, ended)
    np.testing.assert_allclose(grid.volume_bytes, intervals.volume_bytes, rtol=1e-9)
    np.testing.assert_allclose(grid.covered_s, intervals.covered_s, atol=1e-6)
    # A slice of an Arrow list column does not start at 0.
    part = grid_sections(rates, offsets[20:], started[20:] - 3, np.full(40, 2.0), started[20:], ended[20:])
    np.testing.assert_array_equal(part.volume_bytes, grid.volume_bytes[20:])
    some = interval_sections(left, left + 2, rates * 2, offsets[20:], started[20:], ended[20:])
    np.testing.assert_allclose(some.volume_bytes, grid.volume_bytes[20:], rtol=1e-9)


def test_day_of_samples_has_bounded_time_and_memory() -> None:
    rates, offsets, started, ended = _large(2000, 1350)
    tracemalloc.start()
    begun = time.process_time()
    grid_sections(rates, offsets, started - 3, np.full(2000, 2.0), started, ended)
    took = time.process_time() - begun
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A loop over points would take about 100 times as long.
    assert took < 1.0
    assert peak < 1.5 * rates.nbytes


# ---- outcomes


def test_outcomes_have_a_precedence() -> None:
    sections = Sections(
        volume_bytes=np.array([[8, 1, 1, 1], [8, 1, 1, 1], [8, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]) * MB,
        covered_s=np.array([[900.0] * 4, [100.0] * 4, [900, 900, 440, 900], [0.0] * 4, [900.0] * 4]),
        duration_s=np.array([3600.0, 400.0, 3600.0, 400.0, 3600.0]),
    )
    result = classify(sections, np.full(5, NAN))
    assert result.schema == {
        "outcome": pl.String,
        "label": pl.String,
        "section_bytes": pl.List(pl.Float64),
        "cv": pl.Float64,
        "volume_bytes": pl.Float64,
        "missing_ratio": pl.Float64,
    }
    assert result["outcome"].to_list() == ["classified", "too_short", "too_many_gaps", "no_data", "classified"]
    assert result["label"].to_list() == ["START", None, None, None, "NO_USAGE"]
    assert result["section_bytes"].is_null().to_list() == [False, False, False, True, False]
    assert result["volume_bytes"].to_list() == [11 * MB, 11 * MB, 10 * MB, None, 0.0]
    assert result["cv"].is_null().to_list() == [False, False, False, True, True]
    assert result["missing_ratio"].to_list() == pytest.approx([0, 0, 460 / 3600, 1.0, 0])


def test_limits_of_duration_and_gaps_are_inclusive() -> None:
    assert classify(run(9e6, 0, 0, 0, duration=600), np.array([NAN]))["outcome"].item() == "classified"
    assert classify(run(9e6, 0, 0, 0, duration=599), np.array([NAN]))["outcome"].item() == "too_short"
    half = Sections(np.array([[9e6, 0, 0, 0]]), np.array([[450.0, 900, 900, 900]]), np.array([3600.0]))
    assert classify(half, np.array([NAN]))["outcome"].item() == "classified"


def test_section_without_data_is_no_canyon() -> None:
    sections = one([(0, 900, 9e6), (900, 2700, NAN), (2700, 3600, 9e6)], 0, 3600)
    assert label_sections(sections.volume_bytes, np.array([NAN])).item() == "CANYON"
    assert classify(sections, np.array([NAN]))["outcome"].item() == "too_many_gaps"


def test_unknown_end_gives_no_data() -> None:
    sections = grid_sections(
        np.full(10, 1e9), np.array([0, 10]), np.array([0.0]), np.array([2.0]), np.array([0.0]), np.array([NAN])
    )
    assert classify(sections, np.array([4.0])).row(0) == ("no_data", None, None, None, None, None)


def test_empty_input_gives_an_empty_frame() -> None:
    empty = np.empty(0)
    result = classify(interval_sections(empty, empty, empty, np.array([0]), empty, empty), empty)
    assert result.height == 0
    assert result.schema == classify(run(9e6, 0, 0, 0), np.array([NAN])).schema


# ---- real series: `time cumulative_bytes` of jobs and nodes on CCR's GPFS

REAL = {
    "industry-2895978-gpfs-reads.csv": "START",
    "industry-2896041-gpfs-writes.csv": "START",
    "industry-writes-2904963-cpn-m28-15-01.csv": "OTHER",
    "chemistry-1455991-gpfs-writes.csv": "OTHER",
    "ub-hpc-6665127-gpfs-reads.csv": "UNIFORM",
    "ub-hpc-reads-6299171.csv": "START",
    "ub-hpc-writes-cpn-k16-25-01.csv": "END",
}


@pytest.mark.parametrize(("name", "expected"), REAL.items())
def test_real_series_have_their_known_labels(shared_data: Path, name: str, expected: str) -> None:
    path = shared_data / "ccr-gpfs" / name
    if not path.is_file():
        pytest.skip(f"{name} is not among the real measurements")
    times, counter = np.loadtxt(path).T
    volume = np.diff(counter)
    assert (volume >= 0).all(), "this test reads only series that never decrease"
    sections = interval_sections(times[:-1], times[1:], volume, np.array([0, len(volume)]), times[:1], times[-1:])
    result = classify(sections, np.array([NAN]))
    assert result["label"].item() == expected
    assert result["missing_ratio"].item() == 0
    np.testing.assert_allclose(sections.volume_bytes.sum(), counter[-1] - counter[0], rtol=1e-9)


# ---- runs by the bursts of their signatures


def test_burst_sections_scale_with_slow_runs_and_end_with_stopped_runs() -> None:
    """A signature of 1,000 s has a burst in its first and a burst in its last quarter."""
    began, ceased = np.tile([0.0, 900.0], 4), np.tile([100.0, 1000.0], 4)
    volume = np.tile([4.0, 2.0], 4)
    lasted = np.array([1000.0, 2000.0, 950.0, 600.0])
    result = classes.burst_sections(began, ceased, volume, np.arange(0, 10, 2), np.full(4, 1000.0), lasted)
    # Evenly slower, slightly shorter, and stopped before the second burst.
    assert result.volume_bytes.tolist() == pytest.approx(np.array([[4.0, 0, 0, 2]] * 3 + [[4.0, 0, 0, 0]]))
    assert result.duration_s.tolist() == lasted.tolist()
    assert not result.missing_ratios.any()


def test_runs_without_bursts_have_empty_sections() -> None:
    none, one = np.zeros(0), np.ones(1)
    result = classes.burst_sections(none, none, none, np.zeros(2, np.int64), 900 * one, 900 * one)
    assert classes.classify(result, one)["label"].to_list() == ["NO_USAGE"]
