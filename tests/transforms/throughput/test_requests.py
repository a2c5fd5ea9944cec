"""Throughput as a step function: the examples of FTIO, conservation of bytes, and invariances."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.throughput.requests import NO_SUBJECT, Requests, Steps, step_function
from tests.naive.throughput import requests as naive
from tests.naive.throughput.requests import Request
from tests.transforms.request_lists import BOUNDED, DYADIC, FREE, of, together, total
from tests.transforms.signal_differences import shape_differences

NAN, INF = float("nan"), float("inf")


def is_same(first: Steps, second: Steps) -> bool:
    """Return whether two signals are bit-identical."""
    return all(np.array_equal(getattr(first, f.name), getattr(second, f.name)) for f in fields(Steps))


# ---- examples


@pytest.mark.parametrize(
    ("requests", "rates", "edges"),
    [
        # the cases of FTIO's test_bandwidth
        ([(1, 3, 100)], [50, 0], [1, 3]),
        ([(0, 10, 100), (2, 8, 120), (4, 6, 60)], [10, 30, 60, 30, 10, 0], [0, 2, 4, 6, 8, 10]),
        ([(0, 10, 1000), (5, 15, 2000)], [100, 300, 200, 0], [0, 5, 10, 15]),
        ([(0, 10, 1000), (5, 15, 500)], [100, 150, 50, 0], [0, 5, 10, 15]),
        # adjacent requests; equal times; a pause
        ([(0, 1, 4), (1, 2, 6)], [4, 6, 0], [0, 1, 2]),
        ([(0, 2, 4), (0, 2, 6)], [5, 0], [0, 2]),
        ([(0, 1, 4), (3, 4, 6)], [4, 0, 6, 0], [0, 1, 3, 4]),
    ],
)
def test_step_functions_of_known_requests_are_exact(
    requests: list[Request], rates: list[float], edges: list[float]
) -> None:
    steps = step_function(of(requests))
    assert steps.edges_s.tolist() == edges
    assert steps.bytes_per_s.tolist() == rates
    assert steps.volume_bytes.tolist() == [total(requests)]
    assert steps.peak_bytes_per_s.tolist() == [max(rates)]


def test_requests_of_no_duration_are_impulses() -> None:
    steps = step_function(of([(5, 5, 7), (2, 2, 1), (5, 5, 3), (0, 4, 8)]))
    assert steps.impulses_s.tolist() == [2, 5]
    assert steps.impulse_bytes.tolist() == [1, 10]
    assert steps.bytes_per_s.tolist() == [2, 0]
    assert steps.volume_bytes.tolist() == [19]


def test_too_short_requests_are_impulses() -> None:
    steps = step_function(of([(0, 5e-324, 1e12), (1, 1 + 1e-9, 1e15)]))
    assert steps.impulse_bytes.tolist() == [1e12]
    assert steps.volume_bytes[0] == pytest.approx(1.001e15, rel=1e-15)


def test_unusable_requests_are_counted_and_ignored() -> None:
    bad = [(2, 1, 5), (NAN, 1, 5), (0, NAN, 5), (0, INF, 5), (-INF, 0, 5), (0, 1, NAN), (0, 1, -5), (0, 1, INF)]
    requests = together([[*bad, (0, 2, 4)], [], [(0, 1, NAN)]])
    assert requests.unusable_counts.tolist() == [8, 0, 1]
    steps = step_function(requests)
    assert steps.bytes_per_s.tolist() == [2, 0]
    assert steps.offsets.tolist() == [0, 2, 2, 2]


def test_requests_without_bytes_have_no_edges() -> None:
    assert step_function(of([(0, 4, 0), (1, 2, 3)])).edges_s.tolist() == [1, 2]


def test_empty_input_has_an_empty_step_function() -> None:
    for requests in (of([]), together([[], []]), together([])):
        steps = step_function(requests)
        assert len(steps.edges_s) == len(steps.impulses_s) == len(steps.widths_s) == 0
        assert steps.volume_bytes.tolist() == steps.peak_bytes_per_s.tolist() == [0] * requests.subject_count


def test_columns_of_different_lengths_are_rejected() -> None:
    with pytest.raises(ValueError, match="equal lengths"):
        Requests.from_arrays([1], [2, 3], [4])
    with pytest.raises(IndexError):
        Requests(*[np.zeros(1)] * 3, np.array([1]), 1)


# ---- naive implementation


@BOUNDED
@given(st.lists(st.lists(FREE, max_size=12), max_size=5))
def test_step_function_matches_naive_implementation(lists: list[list[Request]]) -> None:
    steps = step_function(together(lists))
    for number, requests in enumerate(lists):
        mine = slice(steps.offsets[number], steps.offsets[number + 1])
        edges, rates = naive.step_function(requests)
        assert steps.edges_s[mine].tolist() == edges
        np.testing.assert_allclose(steps.bytes_per_s[mine], rates, rtol=2e-15)
        mine = slice(steps.impulse_offsets[number], steps.impulse_offsets[number + 1])
        impulses = naive.impulses(requests)
        assert steps.impulses_s[mine].tolist() == list(impulses)
        np.testing.assert_allclose(steps.impulse_bytes[mine], list(impulses.values()), rtol=1e-15)


# ---- properties


@BOUNDED
@given(st.lists(FREE, max_size=30))
def test_bytes_are_conserved(requests: list[Request]) -> None:
    steps = step_function(of(requests))
    assert steps.volume_bytes[0] == pytest.approx(total(requests), rel=1e-12)
    assert (steps.bytes_per_s >= 0).all()
    if len(steps.edges_s):
        assert steps.bytes_per_s[-1] == 0.0


@BOUNDED
@given(st.lists(st.lists(FREE, max_size=8), min_size=1, max_size=4), st.integers(0, 2**32))
def test_result_is_independent_of_order(lists: list[list[Request]], seed: int) -> None:
    requests = together(lists)
    order = np.random.default_rng(seed).permutation(len(requests.start_s))
    assert is_same(step_function(requests), step_function(requests.select(order)))


@BOUNDED
@given(st.lists(FREE, max_size=15), st.lists(FREE, max_size=15))
def test_step_functions_are_additive(first: list[Request], second: list[Request]) -> None:
    whole, *parts = (step_function(of(requests)) for requests in (first + second, first, second))
    for edge, rate in zip(whole.edges_s.tolist(), whole.bytes_per_s.tolist(), strict=True):
        summed = 0.0
        for part in parts:
            at = int(np.searchsorted(part.edges_s, edge, side="right")) - 1
            summed += float(part.bytes_per_s[at]) if at >= 0 else 0.0
        assert rate == pytest.approx(summed, rel=1e-14)


@BOUNDED
@given(st.lists(DYADIC, max_size=15), st.integers(-64, 64), st.integers(-3, 3), st.integers(-3, 3))
def test_step_function_follows_shift_and_scale(requests: list[Request], shift: int, slower: int, larger: int) -> None:
    time, size = 2.0**slower, 2.0**larger
    moved = [(began * time + shift, ceased * time + shift, volume * size) for began, ceased, volume in requests]
    plain, other = step_function(of(requests)), step_function(of(moved))
    np.testing.assert_array_equal(other.edges_s, plain.edges_s * time + shift)
    np.testing.assert_allclose(other.bytes_per_s, plain.bytes_per_s * (size / time), rtol=4e-16)
    np.testing.assert_array_equal(other.impulse_bytes, plain.impulse_bytes * size)


@BOUNDED
@given(st.lists(DYADIC, min_size=1, max_size=10), st.integers(1, 63))
def test_split_request_has_the_same_signal(requests: list[Request], cut: int) -> None:
    began, ceased, volume = requests[0]
    share = cut / 64
    middle = began + (ceased - began) * share
    halves = [(began, middle, volume * share), (middle, ceased, volume * (1 - share))]
    plain, other = (step_function(of(part)) for part in (requests, halves + requests[1:]))
    assert other.volume_bytes[0] == pytest.approx(plain.volume_bytes[0], rel=1e-15)
    assert np.nan_to_num(shape_differences(plain, other))[0] < 1e-14


@BOUNDED
@given(st.lists(st.lists(FREE, max_size=10), max_size=4))
def test_requests_of_a_signal_have_the_same_signal(lists: list[list[Request]]) -> None:
    steps = step_function(together(lists))
    again = step_function(steps.requests())
    np.testing.assert_allclose(again.volume_bytes, steps.volume_bytes, rtol=1e-14)
    assert (np.nan_to_num(shape_differences(steps, again)) < 1e-14).all()


# ---- magnitudes


def adversarial(count: int) -> Requests:
    """Return requests of 1 B in 1,000 s mixed with requests of 1 TB in 1 µs."""
    rng = np.random.default_rng(3)
    began, is_huge = rng.random(count) * 1e6, rng.random(count) < 0.5
    return Requests.from_arrays(began, began + np.where(is_huge, 1e-6, 1e3), np.where(is_huge, 1e12, 1.0))


def test_step_function_is_exact_for_adversarial_magnitudes() -> None:
    requests = adversarial(100_000)
    steps = step_function(requests)
    assert steps.volume_bytes[0] == pytest.approx(requests.volume_bytes.sum(), rel=1e-14)
    assert steps.bytes_per_s[-1] == 0.0
    # The rate is exact where only small requests are active, also after an earlier rate of 1e18 B/s.
    is_huge = requests.volume_bytes > 1
    levels = step_function(requests.select(~is_huge))
    huge = step_function(requests.select(is_huge))
    middles = (steps.edges_s[:-1] + steps.edges_s[1:]) / 2
    is_free = huge.bytes_per_s[np.searchsorted(huge.edges_s, middles) - 1] == 0
    expected = levels.bytes_per_s[np.searchsorted(levels.edges_s, middles) - 1]
    assert is_free.sum() > 10_000
    np.testing.assert_allclose(steps.bytes_per_s[:-1][is_free], expected[is_free], rtol=1e-14)
    # A naive sum leaves a remainder that exceeds the rate of any small request.
    rates = requests.rates()
    times = np.concatenate([requests.start_s, requests.end_s])
    order = np.argsort(times, kind="stable")
    residue = np.cumsum(np.concatenate([rates, -rates])[order])[-1]
    assert abs(residue) > 1e-3


def test_epoch_times_in_microseconds_preserve_volume() -> None:
    began = 1.7e9 + np.arange(1000) * 1e-6
    steps = step_function(Requests.from_arrays(began, began + 5e-6, np.full(1000, 4096.0)))
    assert steps.volume_bytes[0] == pytest.approx(4096e3, rel=1e-13)


def test_requests_without_subject_are_ignored() -> None:
    requests = Requests(np.zeros(2), np.ones(2), np.array([3.0, NAN]), np.array([NO_SUBJECT, NO_SUBJECT]), 1)
    assert step_function(requests).volume_bytes.tolist() == [0]
    assert requests.unusable_counts.tolist() == [0]
