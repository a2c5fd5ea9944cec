"""Windows: exact clipping, and skipping of the first phase."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.arrays import Ragged, Reals
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.windows import (
    PhaseParams,
    clip_samples,
    clip_steps,
    find_first_phases,
    find_first_phases_of_signals,
    find_io_range,
    find_io_samples,
    find_smallest_changes,
)
from iosig.transforms.throughput.requests import Requests, Steps, step_function
from tests.naive.throughput.even_values import rate_at
from tests.naive.throughput.requests import Request
from tests.transforms.request_lists import BOUNDED, DYADIC, FREE, of, together

NAN = float("nan")
windows = st.tuples(st.integers(-64, 700), st.integers(-64, 900)).map(lambda pair: (pair[0] / 64, pair[1] / 64))


def subject(steps: Steps, number: int) -> tuple[list[float], list[float]]:
    selected = slice(*steps.offsets[number : number + 2])
    return steps.edges_s[selected].tolist(), steps.bytes_per_s[selected].tolist()


# ---- windows


@BOUNDED
@given(st.lists(st.tuples(st.lists(DYADIC, max_size=8), windows), min_size=1, max_size=4))
def test_clipped_steps_have_the_rates_of_the_window(drawn: list[tuple[list[Request], tuple[float, float]]]) -> None:
    whole = step_function(together([requests for requests, _ in drawn]))
    started, ended = np.array([window for _, window in drawn]).T
    result = clip_steps(whole, started, ended)
    for number, (_, (low, high)) in enumerate(drawn):
        edges, levels = subject(result, number)
        assert edges == sorted(set(edges))
        assert all(low <= edge <= high for edge in edges)
        assert not edges or (levels[0] > 0 and levels[-1] == 0)
        instants = {low, high, *edges, *subject(whole, number)[0]}
        for middle in [time + shift for time in instants for shift in (-1 / 128, 0.0, 1 / 128)]:
            expected = rate_at(*subject(whole, number), middle, is_right=True) if low <= middle < high else 0.0
            assert rate_at(edges, levels, middle, is_right=True) == expected
        selected, kept = (slice(*steps.impulse_offsets[number : number + 2]) for steps in (whole, result))
        inside = [time for time in whole.impulses_s[selected] if low <= time <= high]
        assert result.impulses_s[kept].tolist() == inside


@BOUNDED
@given(st.lists(FREE, max_size=8))
def test_window_around_all_requests_has_no_effect(requests: list[Request]) -> None:
    whole = step_function(of(requests))
    instants = np.concatenate([np.zeros(1), whole.edges_s, whole.impulses_s])
    result = clip_steps(whole, instants.min(), instants.max())
    for name in ("edges_s", "bytes_per_s", "offsets", "impulses_s", "impulse_bytes", "impulse_offsets"):
        np.testing.assert_array_equal(getattr(result, name), getattr(whole, name))


@pytest.mark.parametrize("window", [(5.0, 5.0), (9.0, 3.0), (NAN, 4.0), (0.0, NAN)])
def test_empty_window_has_no_rate(window: tuple[float, float]) -> None:
    result = clip_steps(step_function(of([(0, 10, 8), (4, 6, 8)])), *window)
    assert result.offsets.tolist() == [0, 0]
    assert result.volume_bytes.tolist() == [0.0]


def test_samples_are_clipped_to_whole_samples() -> None:
    pieces = Ragged(np.arange(25.0), np.array([0, 10, 20, 20, 25]))
    hz, begun = np.array([1.0, 10.0, 1.0, 1.0]), np.array([100.0, 0.0, 0.0, 0.0])

    def within(start_s: npt.ArrayLike, end_s: npt.ArrayLike) -> tuple[Ragged, Reals]:
        return clip_samples(pieces, hz, begun, np.broadcast_to(start_s, 4), np.broadcast_to(end_s, 4))

    result, started = within([102.5, 0.3, -1.0, 2.0], [107.0, 9.0, 1.0, 2.0])
    assert result.values.tolist() == [3, 4, 5, 6, *range(13, 20)]
    assert result.offsets.tolist() == [0, 4, 11, 11, 11]
    np.testing.assert_allclose(started[:2], [103.0, 0.3])
    for window in ((50.0, 40.0), (NAN, 200.0), (0.0, NAN), (np.inf, np.inf)):
        nothing, _ = within(*window)
        assert nothing.offsets.tolist() == [0, 0, 0, 0, 0]
    everything, _ = within(-np.inf, np.inf)
    assert everything.values.tolist() == pieces.values.tolist()


# ---- the I/O's own time


@BOUNDED
@given(st.lists(st.lists(DYADIC, max_size=6), min_size=1, max_size=4))
def test_io_range_is_from_the_first_start_to_the_last_end(drawn: list[list[Request]]) -> None:
    first_s, last_s = find_io_range(step_function(together(drawn)))
    for number, requests in enumerate(drawn):
        moving = [(start, end) for start, end, size in requests if size > 0 and end >= start]
        low = min((start for start, _ in moving), default=NAN)
        high = max((end for _, end in moving), default=NAN)
        np.testing.assert_equal([first_s[number], last_s[number]], [low, high])


@BOUNDED
@given(st.lists(st.lists(DYADIC, max_size=6), min_size=1, max_size=4))
def test_smallest_change_is_the_shortest_distance_of_edges(drawn: list[list[Request]]) -> None:
    whole = step_function(together(drawn))
    found = find_smallest_changes(whole)
    for number in range(len(drawn)):
        edges, _ = subject(whole, number)
        expected = min((later - earlier for earlier, later in pairwise(edges)), default=NAN)
        np.testing.assert_equal(found[number], expected)


def test_io_samples_are_those_above_zero() -> None:
    pieces = [[0, 0, 5, 0, 6, 0], [], [0, 0, 0], [NAN, 0, 7, NAN], [1, 0], [NAN]]
    values = Ragged(np.array([value for piece in pieces for value in piece]), np.cumsum([0, *map(len, pieces)]))
    first, last = find_io_samples(values)
    assert first.tolist() == [2, 0, 0, 2, 0, 0]
    assert last.tolist() == [4, -1, 2, 2, 0, 0]


# ---- phases


def phases(*spans_s: tuple[float, float, float]) -> Steps:
    return step_function(of(spans_s))


def test_first_phase_ends_with_substantial_io() -> None:
    """A constant log of a few bytes neither splits nor merges phases."""
    result = find_first_phases(phases((0, 100, 10), (5, 12, 700), (30, 34, 400), (60, 64, 400), (90, 94, 400)), 0, 100)
    assert result.end_s.tolist() == [12.0]
    assert result.second_onset_s.tolist() == [30.0]
    assert result.skip_first(0.0).tolist() == [30.0]


def test_short_gaps_do_not_split_a_phase() -> None:
    bursts = [(start + part, start + part + 0.5, 100) for start in (0, 20, 40, 60) for part in range(6)]
    assert find_first_phases(phases(*bursts), 0, 80).second_onset_s.tolist() == [20.0]
    params = PhaseParams(gap_s=0.1)
    assert find_first_phases(phases(*bursts), 0, 80, params).end_s.tolist() == [0.5]


def test_impulse_is_substantial() -> None:
    result = find_first_phases(phases((0, 0, 5), (10, 10, 5), (20, 20, 5)), 0, 30)
    assert (result.end_s.tolist(), result.second_onset_s.tolist()) == ([0.0], [10.0])


def test_single_phase_is_not_skipped() -> None:
    requests = together([[(3, 5, 8)], [], [(0, 10, 5)], [(0, 1, 5), (8, 9, 5)]])
    result = find_first_phases(step_function(requests), 0.0, 10.0)
    np.testing.assert_array_equal(result.end_s, [5, NAN, NAN, 1])
    np.testing.assert_array_equal(result.second_onset_s, [NAN, NAN, NAN, 8])
    np.testing.assert_array_equal(result.skip_first([0.0, 1.0, 2.0, 3.0]), [0, 1, 2, 8])


def test_samples_and_steps_have_the_same_first_phase() -> None:
    table = np.zeros((5, 100))
    table[:, :9] = 3.0
    table[:, 30::20] = table[:, 31::20] = 5.0
    table[1, 35] = NAN
    table[2], table[3] = NAN, 7.0
    table[4, 9:] = 0.0
    result = find_first_phases_of_signals(EvenSignals(table, np.full(5, 2.0), np.full(5, 10.0)))
    np.testing.assert_array_equal(result.end_s, [14.5, 14.5, NAN, NAN, 14.5])
    np.testing.assert_array_equal(result.second_onset_s, [25, 25, NAN, NAN, NAN])
    assert len(find_first_phases_of_signals(EvenSignals(np.zeros((0, 4)), np.zeros(0), np.zeros(0))).end_s) == 0


@pytest.mark.parametrize("name", ["ior_mpiio_shared_n8_i8_d3.write", "ior_posix_fpp_n8_i12_d3.write"])
def test_second_burst_of_a_real_run_is_found(shared_data: Path, name: str) -> None:
    path = shared_data / "dxt" / f"{name}_bursts.csv"
    onset, ended, volume, _ = np.genfromtxt(path, delimiter=",", skip_header=1, unpack=True)
    result = find_first_phases(step_function(Requests.from_arrays(onset, ended, volume)), onset[0], ended[-1])
    assert result.end_s[0] == ended[0]
    assert result.second_onset_s[0] == onset[1]
