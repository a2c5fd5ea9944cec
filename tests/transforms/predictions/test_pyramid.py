"""Pyramid: equality with sampling all requests, in any batches and after restarts, and invalid input."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.predictions.pyramid import Pyramid, Window
from iosig.transforms.throughput.even_values import Grid, Instants, bin_requests, sample_at
from iosig.transforms.throughput.requests import Requests, step_function
from tests.budget import examples
from tests.naive.predictions import pyramid as naive
from tests.naive.throughput.requests import Request
from tests.transforms.request_lists import BOUNDED, DYADIC, FREE, of, total

NAN = float("nan")
#: Finest cells of a 16th of a second: times in 64ths begin and end within them.
FINEST_S = 1 / 16
KINDS = st.sampled_from(["volumes", "instants"])
BATCHES = st.lists(st.lists(DYADIC, max_size=6), min_size=1, max_size=6)
WINDOW = st.tuples(st.integers(-64, 1200), st.integers(0, 1200)).map(lambda ends: (ends[0] / 64, sum(ends) / 64))


def pyramid(batches: Sequence[Sequence[Request]], kind: str = "volumes", cell_count: int = 16) -> Pyramid:
    result = Pyramid(FINEST_S, cell_count, kind)
    for batch in batches:
        result.add(of(batch))
    return result


def held_bytes(one: Pyramid) -> int:
    return sum(level.cells.nbytes for level in one._levels)


def restored(result: Pyramid) -> Pyramid:
    state, blob = result.to_state()
    return Pyramid.from_state(json.loads(json.dumps(state)), blob)


def sampled_anew(requests: Requests, window: Window, kind: str) -> list[float]:
    """Sample all requests directly, with one more bin for instantaneous requests at the end."""
    count, started = np.array([len(window.bytes_per_s) + 1]), np.array([window.start_s])
    if kind == "volumes":
        rates = bin_requests(requests, Grid(started, np.array([1 / window.sampling_hz]), count)).bytes_per_s
    else:
        rates = sample_at(step_function(requests), Instants(started, np.array([window.sampling_hz]), count)).values
    return [float(rate) for rate in rates[:-1]]


# ---- equality with direct sampling


@BOUNDED
@given(batches=BATCHES, kind=KINDS, edges=WINDOW, most=st.sampled_from([1, 5, 16, 40]))
def test_window_matches_all_requests(
    batches: list[list[Request]], kind: str, edges: tuple[float, float], most: int
) -> None:
    requests = [request for batch in batches for request in batch if request[2] > 0]
    result = pyramid(batches, kind).window(*edges, most)
    if not requests:
        assert len(result.bytes_per_s) == 0
        return
    spans = [(began, ceased) for began, ceased, _ in requests]
    width = naive.chosen_width(FINEST_S, 16, spans, *edges, most)
    assert result.sampling_hz == 1 / width
    cells = naive.cells(width, edges[0], min(edges[1], max(right for _, right in spans)))
    expected = [
        naive.volume_in(requests, cell) / width if kind == "volumes" else naive.rate_at(requests, cell[0])
        for cell in cells
    ]
    assert result.bytes_per_s.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if cells:
        assert (result.start_s, result.end_s) == (cells[0][0], cells[-1][1])


@settings(max_examples=examples(20), deadline=None)
@given(requests=st.lists(FREE, min_size=1, max_size=12), kind=KINDS, rng=st.randoms(use_true_random=False))
def test_window_is_independent_of_batches(requests: list[Request], kind: str, rng: Any) -> None:
    result = Pyramid(kind=kind)
    rest = list(requests)
    while rest:
        count = rng.randint(1, len(rest))
        result.add(of(rest[:count]))
        rest = rest[count:]
    if math.isnan(result.until_s):
        return
    for length in (result.until_s - result.first_s, 1e5, 1.0):
        window = result.window(result.until_s - length, result.until_s)
        expected = sampled_anew(of(requests), window, kind)
        assert window.bytes_per_s.tolist() == pytest.approx(expected, rel=1e-9, abs=0)


@BOUNDED
@given(batches=BATCHES, kind=KINDS, at=st.integers(0, 6))
def test_pyramid_resumes_bit_for_bit(batches: list[list[Request]], kind: str, at: int) -> None:
    whole = pyramid(batches, kind)
    halves = restored(pyramid(batches[:at], kind))
    for batch in batches[at:]:
        halves.add(of(batch))
    assert halves.to_state() == whole.to_state()
    assert held_bytes(restored(whole)) == held_bytes(whole)


@pytest.mark.parametrize("interval_s", [5.0, 0.1, 2.0])
def test_window_matches_all_requests_at_other_cell_widths(interval_s: float) -> None:
    rng = np.random.default_rng(7)
    began = rng.uniform(0, 3000 * interval_s, 500)
    requests = Requests.from_arrays(began, began + rng.exponential(20 * interval_s, 500), rng.uniform(1, 1e9, 500))
    result = Pyramid(interval_s, 256)
    for start in range(0, 500, 50):
        result.add(requests.select(slice(start, start + 50)))
    for length in (100, 600, 3500):
        window = result.window(result.until_s - length * interval_s, result.until_s)
        assert window.bytes_per_s.tolist() == pytest.approx(sampled_anew(requests, window, "volumes"), rel=1e-6)


# ---- windows


def test_edges_move_inwards() -> None:
    result = pyramid([[(0.0, 1.0, 16.0)]]).window(0.03, 0.99)
    assert (result.start_s, result.end_s, result.sampling_hz) == (1 / 16, 15 / 16, 16.0)
    assert result.bytes_per_s.tolist() == [16.0] * 14


def test_instantaneous_requests_have_no_rate() -> None:
    requests = [(0.5, 0.5, 8.0), (0.0, 1.0, 16.0)]
    assert pyramid([requests], cell_count=64).window(0.0, 1.0).bytes_per_s.tolist() == [16.0] * 8 + [144.0] + [16.0] * 7
    assert pyramid([requests], "instants", 64).window(0.0, 1.0).bytes_per_s.tolist() == [16.0] * 16


def test_older_windows_are_coarser() -> None:
    result = pyramid([[(float(start), start + 0.25, 1.0)] for start in range(100)])
    assert [result.window(end - 0.5, end).sampling_hz for end in (99.25, 96.0, 90.0, 50.0)] == [16, 4, 1, 0.25]
    assert len(result.window(49.0, 50.0).bytes_per_s) == 0


def test_rate_is_zero_before_first_request() -> None:
    window = pyramid([[(1e6, 1e6 + 1, 16.0)]]).window(0.0, 1e6 + 1, 4096)
    assert window.bytes_per_s.sum() / window.sampling_hz == 0.0
    assert 1024 * 0.9 < len(window.bytes_per_s) <= 4096
    late = pyramid([[(1e6, 1e6 + 512, 16.0)]]).window(0.0, 2e6, 4096)
    assert late.bytes_per_s.sum() / late.sampling_hz == pytest.approx(16.0 * (late.end_s - 1e6) / 512)


def test_cells_are_known_until_last_request_or_advance() -> None:
    result = pyramid([[(0.0, 1.0, 16.0)]])
    assert result.window(0.0, 99.0).end_s == 1.0
    result.advance(3.0)
    result.advance(2.0)
    assert result.until_s == 3.0
    window = result.window(0.0, 99.0)
    assert (window.end_s, window.bytes_per_s.tolist()) == (3.0, [16.0] * 4 + [0.0] * 8)


def test_empty_pyramid_has_no_samples() -> None:
    result = Pyramid()
    result.add(of([]))
    assert len(result.window(0.0, 9.0).bytes_per_s) == 0
    assert math.isnan(result.first_s)
    assert (result.volume_bytes, len(result._levels)) == (0.0, 0)
    result.advance(8.0)
    assert result.window(0.0, 9.0, 8).bytes_per_s.tolist() == [0.0] * 8
    assert restored(result).to_state() == result.to_state()


# ---- measured intervals


@BOUNDED
@given(ends=st.lists(st.integers(0, 640), min_size=2, max_size=24, unique=True), most=st.sampled_from([3, 16, 64]))
def test_unmeasured_cells_are_nan(ends: list[int], most: int) -> None:
    # Disjoint intervals: every second gap between sorted edges.
    times = [end / 64 for end in sorted(ends)][: len(ends) // 2 * 2]
    polls = list(zip(times[::2], times[1::2], strict=True))
    result = Pyramid(FINEST_S, 16)
    for left, right in polls:
        result.add(of([(left, right, 64.0)]), np.array([[left, right]]))
    window = restored(result).window(0.0, 10.0, most)
    width = naive.chosen_width(FINEST_S, 16, polls, 0.0, 10.0, most)
    cells = naive.cells(width, 0.0, min(10.0, result.until_s))
    requests = [(left, right, 64.0) for left, right in polls]
    expected = [
        naive.volume_in(requests, cell) / width if naive.measured_ratio(polls, cell) >= 0.5 else NAN for cell in cells
    ]
    assert window.bytes_per_s.tolist() == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_polls_without_bytes_are_zero_and_missing_polls_nan() -> None:
    result = Pyramid(5.0)
    result.add(of([(0.0, 5.0, 10.0), (5.0, 10.0, 0.0)]), np.array([[0.0, 5.0], [5.0, 10.0], [8.0, NAN], [9.0, 9.0]]))
    result.add(of([]), np.array([[15.0, 20.0]]))
    assert result.window(0.0, 20.0).bytes_per_s.tolist() == pytest.approx([2.0, 0.0, NAN, 0.0], nan_ok=True)
    assert (result.first_s, result.until_s) == (0.0, 20.0)
    with pytest.raises(ValueError, match="left and a right"):
        result.add(of([]), np.array([1.0, 2.0]))


# ---- totals


def test_invalid_requests_are_counted_and_ignored() -> None:
    result = Pyramid()
    began = [0.0, NAN, 1.0, 0.0, 0.0, 0.0, -math.inf, 0.0]
    ceased = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0]
    volume = [8.0, 8.0, 8.0, NAN, -1.0, 1e300, 8.0, 0.0]
    result.add(Requests.from_arrays(began, ceased, volume))
    assert (result.request_count, result.unknown_size_count, result.unusable_count) == (2, 1, 5)
    assert (result.volume_bytes, result.first_s, result.until_s) == (8.0, 0.0, 1.0)


def test_several_subjects_raise() -> None:
    both = Requests(np.zeros(2), np.ones(2), np.ones(2), np.array([0, 1]), 2)
    with pytest.raises(ValueError, match="one subject"):
        Pyramid().add(both)
    result = Pyramid()
    result.add(Requests(np.zeros(2), np.ones(2), np.ones(2), np.array([0, -1]), 1))
    assert (result.request_count, result.volume_bytes) == (1, 1.0)


def test_volume_is_exact() -> None:
    result = Pyramid()
    for _ in range(10):
        result.add(of([(0.0, 1.0, 0.1), (0.0, 1.0, 2.0**60)]))
    assert result.volume_bytes == math.fsum([0.1, 2.0**60] * 10)


@BOUNDED
@given(batches=BATCHES)
def test_volume_of_all_requests_is_preserved(batches: list[list[Request]]) -> None:
    result = pyramid(batches)
    assert result.volume_bytes == total([request for batch in batches for request in batch])
    if result._levels:
        result.advance(result.until_s + 16.0)
        window = result.window(result.first_s - 16.0, result.until_s)
        assert window.bytes_per_s.sum() / window.sampling_hz == pytest.approx(result.volume_bytes)


# ---- bounds


@pytest.mark.parametrize("kind", ["volumes", "instants"])
def test_clock_jump_is_cheap(kind: str) -> None:
    result = Pyramid(kind=kind)
    jump = [(0.0, 1.0, 1024.0), (1e9, 1e9 + 1, 1024.0)]
    for request in jump:
        result.add(of([request]))
    assert len(result._levels) == 15
    assert held_bytes(result) == 15 * 4096 * 8
    window = result.window(1e9 - 1, 1e9 + 1)
    assert window.bytes_per_s.tolist() == [0.0] * 1024 + [1024.0] * 1024
    result.add(of([(-1e9, -1e9 + 1, 512.0)]))
    assert result.window(1e9 - 1, 1e9 + 1).bytes_per_s.tolist() == window.bytes_per_s.tolist()
    assert (result.first_s, len(result._levels)) == (-1e9, 16)


@pytest.mark.parametrize("time_s", [2.0**39, -(2.0**39), 1e300])
def test_unresolvable_time_raises_without_change(time_s: float) -> None:
    result = Pyramid()
    result.add(of([(0.0, 1.0, 8.0)]))
    before = result.to_state()
    with pytest.raises(ValueError, match="too far from 0"):
        result.add(of([(2.0, 3.0, 8.0), (time_s, time_s, 8.0)]))
    with pytest.raises(ValueError, match="too far from 0"):
        result.advance(abs(time_s))
    assert result.to_state() == before


@pytest.mark.parametrize(
    "wrong", [{"kind": "sums"}, {"finest_s": 0.0}, {"finest_s": NAN}, {"cell_count": 100}, {"cell_count": 2}]
)
def test_invalid_parameters_raise(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"pyramid|cells|cell_count"):
        Pyramid(**wrong)


@pytest.mark.parametrize(("start_s", "most"), [(NAN, 8), (-math.inf, 8), (0.0, 0)])
def test_invalid_windows_raise(start_s: float, most: int) -> None:
    with pytest.raises(ValueError, match="window"):
        pyramid([[(0.0, 1.0, 1.0)]]).window(start_s, 1.0, most)


# ---- states
