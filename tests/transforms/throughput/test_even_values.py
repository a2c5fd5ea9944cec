"""Throughput on grids and at instants: exact integrals, streaming, volume errors, and naive implementations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.arrays import Ragged, places_within
from iosig.transforms.throughput.even_values import (
    BinAccumulator,
    BinnedBytes,
    Grid,
    Instants,
    bin_requests,
    is_resolved,
    sample_at,
)
from iosig.transforms.throughput.requests import Requests, Steps, step_function
from tests.naive.throughput import even_values as naive
from tests.naive.throughput.requests import Request
from tests.transforms.request_lists import BOUNDED, DYADIC, FREE, of, together, total
from tests.transforms.signal_differences import shape_differences, volume_errors

NAN = float("nan")


def make_grid(started: float, interval: float, count: int) -> Grid:
    return Grid(np.array([started]), np.array([interval]), np.array([count]))


def make_instants(started: float, hz: float, count: int) -> Instants:
    return Instants(np.array([started]), np.array([hz]), np.array([count]))


def make_steps(requests: list[Request]) -> Steps:
    return step_function(of(requests))


def hold_samples(samples: Ragged, where: Instants) -> Steps:
    """Return the signal of samples: each value holds until the next instant."""
    owner, place = samples.owner, places_within(samples.counts)
    started, hz = where.start_s[owner], where.sampling_hz[owner]
    volume = samples.values / hz
    return step_function(Requests(started + place / hz, started + (place + 1) / hz, volume, owner, len(where.start_s)))


def subject_bytes(found: BinnedBytes, number: int) -> list[float]:
    offsets = found.grid.offsets
    return found.volume_bytes[offsets[number] : offsets[number + 1]].tolist()


#: Several subjects, each with a grid of exact edges.
GRIDS = st.tuples(st.integers(-64, 640).map(lambda n: n / 64), st.sampled_from([0.25, 0.5, 1, 3]), st.integers(0, 12))
SUBJECTS = st.lists(st.tuples(st.lists(DYADIC, max_size=8), GRIDS), max_size=5)
#: Grids that are independent of the times of requests.
FREE_GRIDS = st.tuples(st.floats(-1e3, 1e6), st.floats(1e-3, 1e5), st.integers(0, 12))


def make_grids(found: list[tuple[float, float, int]]) -> Grid:
    started, interval, count = zip(*found, strict=True) if found else ((), (), ())
    return Grid(np.array(started, float), np.array(interval, float), np.array(count, np.int64))


# ---- bins: examples


@pytest.mark.parametrize(
    ("request_", "expected", "outside"),
    [
        # within a bin; exactly a bin; two bins; many; across the whole grid and beyond
        ((0.25, 0.75, 8), [8, 0, 0, 0], 0),
        ((1, 2, 8), [0, 8, 0, 0], 0),
        ((0.5, 1.5, 8), [4, 4, 0, 0], 0),
        ((0.5, 3.5, 6), [1, 2, 2, 1], 0),
        ((-2, 6, 8), [1, 1, 1, 1], 4),
        # half outside, wholly outside, touching from outside
        ((-1, 1, 8), [4, 0, 0, 0], 4),
        ((3, 5, 8), [0, 0, 0, 4], 4),
        ((-3, -1, 8), [0, 0, 0, 0], 8),
        ((5, 7, 8), [0, 0, 0, 0], 8),
        ((-1, 0, 8), [0, 0, 0, 0], 8),
        ((4, 5, 8), [0, 0, 0, 0], 8),
        # instants: into their bin; an edge belongs to the bin on its right, the last edge to the last bin
        ((1.5, 1.5, 8), [0, 8, 0, 0], 0),
        ((0, 0, 8), [8, 0, 0, 0], 0),
        ((2, 2, 8), [0, 0, 8, 0], 0),
        ((4, 4, 8), [0, 0, 0, 8], 0),
        ((-1, -1, 8), [0, 0, 0, 0], 8),
        ((4.5, 4.5, 8), [0, 0, 0, 0], 8),
    ],
)
def test_single_request_fills_its_bins(request_: Request, expected: list[float], outside: float) -> None:
    found = bin_requests(of([request_]), make_grid(0, 1, 4))
    assert found.volume_bytes.tolist() == expected
    assert found.outside_bytes.tolist() == [outside]


def test_rates_use_the_width_of_the_bin() -> None:
    assert bin_requests(of([(0, 1, 8)]), make_grid(0, 0.25, 4)).bytes_per_s.tolist() == [8, 8, 8, 8]


def test_grid_without_steps_has_all_bytes_outside() -> None:
    found = bin_requests(of([(0, 1, 8), (0, 0, 2), (5, 5, 1)]), make_grid(0, 1, 0))
    assert found.volume_bytes.tolist() == []
    assert found.outside_bytes.tolist() == [11]


def test_unusable_requests_are_counted() -> None:
    requests = together([[(0, 1, NAN), (1, 0, 3), (0, 1, 5)], [(NAN, 1, 1)]])
    found = bin_requests(requests, make_grids([(0, 1, 1), (0, 1, 1)]))
    assert found.unusable_counts.tolist() == [2, 1]
    assert found.volume_bytes.tolist() == [5, 0]


def test_grid_from_range_includes_the_end() -> None:
    rng = np.random.default_rng(2)
    started, duration = rng.random(2000) * 1e9, 1 + rng.random(2000) * 1e5
    found = Grid.from_range(started, started + duration, 200)
    assert (found.end_s >= started + duration).all()
    np.testing.assert_allclose(found.interval_s, duration / 200, rtol=1e-7)
    last = Requests(started, started + duration, np.ones(2000), np.arange(2000), 2000)
    assert bin_requests(last, found).outside_bytes.tolist() == [0.0] * 2000


@pytest.mark.parametrize(
    ("started", "interval", "count"),
    [(0, 0, 3), (0, -1, 3), (0, NAN, 3), (NAN, 1, 3), (1e18, 1, 3), (0, 1, -1), (0, 1e308, 1000)],
)
def test_invalid_grids_are_rejected(started: float, interval: float, count: int) -> None:
    assert not is_resolved(np.array([started]), np.array([interval]), np.array([count])).any()
    with pytest.raises(ValueError, match="interval"):
        make_grid(started, interval, count)


def test_mismatched_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="equal lengths"):
        Grid(np.zeros(1), np.ones(2), np.ones(2, dtype=np.int64))
    with pytest.raises(ValueError, match="subjects"):
        bin_requests(of([]), Grid.from_range([0, 0], 1, 2))


# ---- bins: properties


@BOUNDED
@given(SUBJECTS)
def test_bins_match_naive_implementation(subjects: list[tuple[list[Request], tuple[float, float, int]]]) -> None:
    found = bin_requests(together([requests for requests, _ in subjects]), make_grids([each for _, each in subjects]))
    for number, (requests, each) in enumerate(subjects):
        expected, outside = naive.bin_requests(requests, *each)
        np.testing.assert_allclose(subject_bytes(found, number), expected, rtol=1e-13, atol=1e-13 * total(requests))
        assert found.outside_bytes[number] == pytest.approx(outside, rel=1e-13, abs=1e-13 * total(requests))


@BOUNDED
@given(st.lists(FREE, max_size=20), FREE_GRIDS)
def test_bytes_are_conserved(requests: list[Request], each: tuple[float, float, int]) -> None:
    found = bin_requests(of(requests), make_grid(*each))
    assert found.volume_bytes.sum() + found.outside_bytes[0] == pytest.approx(total(requests), rel=1e-12)
    assert (found.volume_bytes >= 0).all()


@BOUNDED
@given(st.lists(FREE, max_size=25), FREE_GRIDS, st.integers(0, 2**32), st.integers(1, 7))
def test_bins_are_independent_of_order_and_chunks(
    requests: list[Request], each: tuple[float, float, int], seed: int, step: int
) -> None:
    whole, given_, bins = bin_requests(of(requests), make_grid(*each)), of(requests), BinAccumulator(make_grid(*each))
    order = np.random.default_rng(seed).permutation(len(requests))
    for start in range(0, len(order), step):
        bins.add(given_.select(order[start : start + step]))
    assert bins.result().volume_bytes.tolist() == whole.volume_bytes.tolist()
    assert bins.result().outside_bytes.tolist() == whole.outside_bytes.tolist()


@BOUNDED
@given(st.lists(FREE, max_size=15), st.lists(FREE, max_size=15), FREE_GRIDS)
def test_bins_are_additive(first: list[Request], second: list[Request], each: tuple[float, float, int]) -> None:
    whole, *parts = (
        bin_requests(of(requests), make_grid(*each)).volume_bytes for requests in (first + second, first, second)
    )
    np.testing.assert_allclose(whole, parts[0] + parts[1], rtol=1e-14)


@BOUNDED
@given(st.lists(DYADIC, max_size=15), st.integers(1, 5), st.integers(1, 8))
def test_coarse_grid_equals_sums_of_a_finer_grid(requests: list[Request], count: int, times: int) -> None:
    coarse = bin_requests(of(requests), make_grid(0.5, times / 8, count)).volume_bytes
    fine = bin_requests(of(requests), make_grid(0.5, 1 / 8, count * times)).volume_bytes
    np.testing.assert_allclose(fine.reshape(count, times).sum(axis=1), coarse, rtol=1e-13, atol=1e-13 * total(requests))


@BOUNDED
@given(st.lists(DYADIC, max_size=15), st.integers(-64, 64), st.integers(-3, 3), st.integers(-3, 3))
def test_bins_follow_shift_and_scale(requests: list[Request], shift: int, slower: int, larger: int) -> None:
    time, size = 2.0**slower, 2.0**larger
    moved = [(began * time + shift, ceased * time + shift, volume * size) for began, ceased, volume in requests]
    plain = bin_requests(of(requests), make_grid(1, 0.5, 20))
    other = bin_requests(of(moved), make_grid(time + shift, 0.5 * time, 20))
    np.testing.assert_allclose(other.volume_bytes, plain.volume_bytes * size, rtol=1e-14)
    np.testing.assert_allclose(other.outside_bytes, plain.outside_bytes * size, rtol=1e-14)


@BOUNDED
@given(SUBJECTS)
def test_bins_of_the_step_function_equal_bins_of_requests(
    subjects: list[tuple[list[Request], tuple[float, float, int]]],
) -> None:
    requests, each = together([found for found, _ in subjects]), make_grids([found for _, found in subjects])
    directly, by_steps = bin_requests(requests, each), bin_requests(step_function(requests).requests(), each)
    whole = float(requests.volume_bytes.sum())
    np.testing.assert_allclose(by_steps.volume_bytes, directly.volume_bytes, rtol=1e-13, atol=1e-14 * whole)


@BOUNDED
@given(st.lists(DYADIC, min_size=1, max_size=10), st.integers(1, 63))
def test_split_request_has_the_same_bins(requests: list[Request], cut: int) -> None:
    began, ceased, volume = requests[0]
    middle = began + (ceased - began) * cut / 64
    halves = [(began, middle, volume * cut / 64), (middle, ceased, volume * (64 - cut) / 64)]
    plain, other = (
        bin_requests(of(part), make_grid(0.25, 0.5, 20)).volume_bytes for part in (requests, halves + requests[1:])
    )
    np.testing.assert_allclose(other, plain, rtol=1e-13, atol=1e-14 * total(requests))


def test_bins_are_exact_for_adversarial_magnitudes() -> None:
    """1 B in 1,000 s and 1 TB in 1 µs: bins without a large request are exact to the last digit."""
    rng = np.random.default_rng(3)
    began, is_huge = rng.random(100_000) * 1e6, rng.random(100_000) < 0.002
    ceased, volume = began + np.where(is_huge, 1e-6, 1e3), np.where(is_huge, 1e12, 1.0)
    each = make_grid(-10, 100, 10_011)
    whole = bin_requests(Requests.from_arrays(began, ceased, volume), each).volume_bytes
    assert whole.sum() == pytest.approx(volume.sum(), rel=1e-14)
    small = bin_requests(Requests.from_arrays(began[~is_huge], ceased[~is_huge], volume[~is_huge]), each).volume_bytes
    is_free = np.ones(each.step_count[0], dtype=bool)
    is_free[((began[is_huge] + 10) / 100).astype(int)] = False
    assert is_free.sum() > 9_000
    np.testing.assert_array_equal(whole[is_free], small[is_free])


def test_memory_does_not_grow_with_requests() -> None:
    bins, rng, moved = BinAccumulator(Grid.from_range([0.0, 0.0], 1e3, 100)), np.random.default_rng(1), 0.0
    for _ in range(20):
        began, volume = rng.random(10_000) * 1e3, rng.integers(1, 1 << 30, 10_000).astype(float)
        bins.add(Requests(began, began + rng.exponential(5, 10_000), volume, rng.integers(0, 2, 10_000), 2))
        moved += volume.sum()
    found = bins.result()
    assert found.volume_bytes.sum() + found.outside_bytes.sum() == pytest.approx(moved, rel=1e-14)
    kept = [limb for sums in (bins._volume, bins._changes) for limb in sums._limbs.values()]
    assert sum(limb.nbytes for limb in kept) <= 2 * 5 * 200 * 8


# ---- instants


def test_samples_equal_ftio() -> None:
    """A sample at an edge has the value after that edge."""
    steps = make_steps([(1, 3, 100), (3, 4, 10)])
    each = make_instants(0, 1, 6)
    assert sample_at(steps, each).values.tolist() == [0, 50, 50, 10, 0, 0]
    assert sample_at(steps, make_instants(1, 2, 6)).values.tolist() == [50, 50, 50, 50, 10, 10]


@BOUNDED
@given(SUBJECTS)
def test_samples_match_naive_implementation(subjects: list[tuple[list[Request], tuple[float, float, int]]]) -> None:
    steps = step_function(together([requests for requests, _ in subjects]))
    each = make_grids([found for _, found in subjects])
    where = Instants(each.start_s, 1 / each.interval_s, each.step_count)
    samples = sample_at(steps, where)
    for number in range(len(subjects)):
        mine = slice(steps.offsets[number], steps.offsets[number + 1])
        edges, rates = steps.edges_s[mine].tolist(), steps.bytes_per_s[mine].tolist()
        count = int(where.sample_count[number])
        times = (where.start_s[number] + np.arange(count) / where.sampling_hz[number]).tolist()
        expected = [naive.rate_at(edges, rates, time, is_right=True) for time in times]
        assert samples.values[samples.offsets[number] : samples.offsets[number + 1]].tolist() == expected


@BOUNDED
@given(st.lists(FREE, max_size=10), st.floats(-1e3, 1e6), st.sampled_from([0.1, 10, 3, 1 / 7]), st.integers(0, 50))
def test_samples_at_any_instants_equal_the_step_function(
    requests: list[Request], started: float, hz: float, count: int
) -> None:
    steps, where = make_steps(requests), make_instants(started, hz, count)
    times = started + np.arange(count) / hz
    at = np.searchsorted(steps.edges_s, times, side="right")
    expected = np.concatenate([[0.0], steps.bytes_per_s])[at]
    assert sample_at(steps, where).values.tolist() == expected.tolist()


# ---- volume errors


def test_volume_error_of_ftio_misses_cancelling_errors() -> None:
    """FTIO's error is 0 although the samples miss the signal; the shape difference shows the miss."""
    steps = make_steps([(0, 0.5, 10), (1.5, 2, 10)])
    where = make_instants(0, 1, 2)
    samples = sample_at(steps, where)
    assert samples.values.tolist() == [20, 0]
    assert volume_errors(steps, samples, where).tolist() == [0]
    # Of 20 + 20 bytes, half a second at 20 B/s coincides.
    assert shape_differences(steps, hold_samples(samples, where)).tolist() == [0.5]


def test_bin_means_preserve_volume_but_not_shape() -> None:
    requests = of([(0, 1, 8)])
    (volume,) = bin_requests(requests, make_grid(0, 4, 1)).volume_bytes
    means = make_steps([(0, 4, volume)])
    assert means.volume_bytes.tolist() == [8]
    # 2 B/s for 4 s against 8 B/s for 1 s: a difference of 6 + 3 * 2 bytes in 16
    assert shape_differences(step_function(requests), means).tolist() == [0.75]


def test_samples_do_not_observe_impulses() -> None:
    steps, where = make_steps([(0, 2, 4), (1, 1, 4)]), make_instants(0, 1, 2)
    samples = sample_at(steps, where)
    assert volume_errors(steps, samples, where).tolist() == [0.5]
    assert shape_differences(steps, hold_samples(samples, where)).tolist() == [pytest.approx(4 / 12)]


def test_equal_impulses_have_no_difference() -> None:
    first, second = make_steps([(1, 1, 4), (2, 2, 4)]), make_steps([(1, 1, 1), (3, 3, 4)])
    assert shape_differences(first, second).tolist() == [pytest.approx((3 + 4 + 4) / 13)]


def test_subjects_without_requests_have_nan_differences() -> None:
    steps = step_function(together([[], [(0, 1, 5)], []]))
    where = Instants(np.zeros(3), np.full(3, 10.0), np.array([0, 10, 0]))
    samples = sample_at(steps, where)
    assert np.isnan(volume_errors(steps, samples, where)).tolist() == [True, False, True]
    assert np.isnan(shape_differences(steps, hold_samples(samples, where))).tolist() == [True, False, True]


@BOUNDED
@given(st.lists(st.tuples(st.lists(DYADIC, max_size=6), st.lists(DYADIC, max_size=6)), max_size=4))
def test_shape_differences_match_naive_implementation(pairs: list[tuple[list[Request], list[Request]]]) -> None:
    first, second = (step_function(together([pair[side] for pair in pairs])) for side in (0, 1))
    found = shape_differences(first, second)
    np.testing.assert_array_equal(found, shape_differences(second, first))
    np.testing.assert_array_equal(np.nan_to_num(shape_differences(first, first)), 0)
    for number in range(len(pairs)):
        curves, impulses = [], []
        for steps in (first, second):
            mine = slice(steps.offsets[number], steps.offsets[number + 1])
            curves.append((steps.edges_s[mine].tolist(), steps.bytes_per_s[mine].tolist()))
            mine = slice(steps.impulse_offsets[number], steps.impulse_offsets[number + 1])
            impulses.append(dict(zip(steps.impulses_s[mine].tolist(), steps.impulse_bytes[mine].tolist(), strict=True)))
        apart = naive.area_apart(*curves)
        apart += sum(abs(impulses[0].get(t, 0) - impulses[1].get(t, 0)) for t in {*impulses[0], *impulses[1]})
        volume = first.volume_bytes[number] + second.volume_bytes[number]
        if volume:
            assert found[number] == pytest.approx(apart / volume, rel=1e-12, abs=1e-13)
            gap = abs(first.volume_bytes[number] - second.volume_bytes[number]) / volume
            assert gap - 1e-13 <= found[number] <= 1
        else:
            assert np.isnan(found[number])
