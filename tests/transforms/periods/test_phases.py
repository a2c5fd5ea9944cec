"""Phases of recent samples and their intervals: the naive implementation, scales, immediate detection, restarts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.phases import PhaseTracker, WindowPhases, find_window_phases
from iosig.transforms.predictions.pyramid import Pyramid
from iosig.transforms.throughput.requests import Requests
from tests.budget import examples
from tests.naive.periods import phases as naive

NAN = float("nan")
Gaps = list[tuple[float, float]]


def find_phases_of(values: Sequence[float], cycle_s: float = NAN, start_s: float = 0.0) -> WindowPhases:
    """The phases of one signal, sampled every second."""
    return find_window_phases(EvenSignals.from_samples(values, 1.0, start_s), cycle_s=np.array([cycle_s]))


def spans(result: WindowPhases) -> list[tuple[float, float]]:
    return list(zip(result.onset_s.tolist(), result.end_s.tolist(), strict=True))


def signal(*stretches: tuple[float, int]) -> list[float]:
    return [value for value, count in stretches for _ in range(count)]


# ---- phases of a window

_VALUES = st.lists(st.sampled_from([0.0, 0.0, 1.0, 3.0, 8.0, NAN]), min_size=1, max_size=40)


@settings(max_examples=examples(50), deadline=None)
@given(rows=st.lists(_VALUES, min_size=1, max_size=5), cycle=st.sampled_from([NAN, 16.0, 40.0]))
def test_phases_match_naive_implementation(rows: list[list[float]], cycle: float) -> None:
    count = max(len(row) for row in rows)
    table = np.array([row + [NAN] * (count - len(row)) for row in rows])
    hz = np.array([2.0**place for place in range(len(rows))])
    result = find_window_phases(EvenSignals(table, hz, np.zeros(len(rows))), cycle_s=cycle / hz)
    for place, row in enumerate(table):
        expected = naive.find_phases(row.tolist(), cycle)
        part = slice(int(result.offsets[place]), int(result.offsets[place + 1]))
        assert (result.onset_s[part] * hz[place]).tolist() == [phase[0] for phase in expected]
        assert (result.end_s[part] * hz[place]).tolist() == [phase[1] for phase in expected]
        assert (result.volume_bytes[part] * hz[place]).tolist() == [phase[2] for phase in expected]
        assert result.is_open[part].tolist() == [phase[3] for phase in expected]
        assert result.is_cut[part].tolist() == [phase[4] for phase in expected]


def test_chunking_does_not_change_results() -> None:
    values = np.random.default_rng(5).random((600, 512)) ** 8
    hz, started = np.full(600, 4.0), np.arange(600.0)
    cycles = np.where(np.arange(600) % 2, NAN, 20.0)
    result = find_window_phases(EvenSignals(values, hz, started), cycle_s=cycles)
    for place in (0, 1, 255, 256, 257, 599):
        one = find_window_phases(EvenSignals.from_samples(values[place], 4.0, place), cycle_s=cycles[place : place + 1])
        part = slice(int(result.offsets[place]), int(result.offsets[place + 1]))
        assert result.onset_s[part].tolist() == one.onset_s.tolist()
        assert result.volume_bytes[part].tolist() == one.volume_bytes.tolist()
    assert len(result.window_start_s) == 600


def test_empty_and_flat_signals_have_no_phases() -> None:
    none = find_window_phases(EvenSignals(np.zeros((0, 8)), np.zeros(0), np.zeros(0)))
    assert (none.offsets.tolist(), len(none.onset_s)) == ([0], 0)
    for flat in ([0.0] * 8, [3.0] * 8, [NAN] * 8):
        assert find_phases_of(flat).offsets.tolist() == [0, 0]
    assert find_window_phases(EvenSignals(np.zeros((2, 0)), np.ones(2), np.zeros(2))).offsets.tolist() == [0, 0, 0]


def test_phase_volume_covers_onset_to_end() -> None:
    result = find_phases_of(signal((1, 10), (50, 4), (1, 1), (50, 4), (1, 30), (60, 9), (1, 12)))
    assert spans(result) == [(10.0, 19.0), (49.0, 58.0)]
    assert result.volume_bytes.tolist() == [401.0, 540.0]
    assert (result.is_open.tolist(), result.is_cut.tolist()) == ([False, False], [False, False])


def test_slower_phase_is_not_split() -> None:
    assert spans(find_phases_of(signal((0, 9), (50, 5), (20, 10), (50, 5), (0, 9)))) == [(9.0, 29.0)]


def test_window_with_little_idle_time_has_one_phase() -> None:
    assert spans(find_phases_of([*signal((10, 30), (0, 1), (10, 30)), 0.0])) == [(0.0, 61.0)]


def test_known_period_separates_more_phases() -> None:
    # A single gap of 2 s among gaps of 30 s.
    values = signal((10, 20), (0, 30), (10, 20), (0, 30), (10, 20), (0, 2), (10, 20))
    assert len(find_phases_of(values).onset_s) == 3
    assert len(find_phases_of(values, 31.0).onset_s) == 4
    assert len(find_phases_of(values, 48.0).onset_s) == 3


def test_last_phase_is_open_until_a_separating_gap() -> None:
    values = signal((10, 10), (0, 30), (10, 10))
    assert [find_phases_of(values + [0.0] * quiet, 48.0).is_open.tolist()[-1] for quiet in (0, 3, 4)] == [
        True,
        True,
        False,
    ]


def test_single_phase_ends_after_enough_idle_time() -> None:
    assert [find_phases_of(signal((10, 40), (0, quiet))).is_open.tolist() for quiet in (1, 4, 5, 90)] == [
        [True]
    ] * 2 + [[False]] * 2


def test_missing_cycle_values_are_rejected() -> None:
    with pytest.raises(ValueError, match="one value per signal"):
        find_window_phases(EvenSignals.from_samples([1.0], 1.0), cycle_s=np.ones(2))


# ---- tracking


def run(onsets_s: Sequence[float], length_s: float, believed_s: Sequence[float], *, rank_count: int = 1) -> Gaps:
    """Intervals returned when each burst is flushed at its end, with a constant background of 1 %."""
    rng = np.random.default_rng(len(onsets_s))
    finest_s = 2.0 ** math.floor(math.log2(length_s / 500))
    pyramid, tracker, result, now = Pyramid(finest_s), PhaseTracker(), Gaps(), 0.0
    for onset, believed in zip(onsets_s, believed_s, strict=True):
        request = length_s * 0.9 / 8
        began = onset + (rng.uniform(0, 0.1 * length_s, (rank_count, 1)) + request * np.arange(8)).ravel()
        began[::8] = onset
        ceased = began + request * rng.uniform(0.8, 1.0, len(began))
        moved = np.full(len(began), 100.0 / len(began))
        until = float(ceased.max())
        columns = (np.append(began, now), np.append(ceased, until), np.append(moved, (until - now) / length_s))
        pyramid.add(Requests.from_arrays(*columns))
        now = until
        window = pyramid.window(0.0 if math.isnan(believed) else max(0.0, now - 8 * believed), now)
        samples = EvenSignals.from_samples(window.bytes_per_s, window.sampling_hz, window.start_s)
        tracker = PhaseTracker.from_dict(json.loads(json.dumps(tracker.to_dict())))
        result += tracker.update(find_window_phases(samples, cycle_s=np.array([believed])), first_io_s=pyramid.first_s)
    return result


def assert_all_seen(frequency_hz: float, factor: float, duty: float, rank_count: int, *, is_believed: bool) -> None:
    rng = np.random.default_rng(3)
    period = 1 / frequency_hz
    periods = np.repeat([period, period * factor], [6, 4]) * (1 + 0.03 * rng.standard_normal(10))
    onsets = 0.3 * period + np.concatenate([[0.0], np.cumsum(periods)])
    # After the change, the old period is still assumed.
    believed = [NAN] * 4 + [period if is_believed else NAN] * 7
    gaps = np.array(run(onsets.tolist(), duty * period, believed, rank_count=rank_count))
    assert gaps[:, 0] == pytest.approx(onsets[:-1], abs=0.02 * period)
    assert gaps[:, 1] - gaps[:, 0] == pytest.approx(periods, abs=0.02 * period)


@pytest.mark.parametrize("frequency_hz", [0.005, 0.05, 0.5, 5.0, 50.0])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_change_is_detected_immediately_at_any_scale(frequency_hz: float, factor: float) -> None:
    assert_all_seen(frequency_hz, factor, 0.05, 1, is_believed=True)
    assert_all_seen(frequency_hz, factor, 0.35, 8, is_believed=True)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_change_is_detected_immediately_without_a_known_period(factor: float) -> None:
    assert_all_seen(0.05, factor, 0.35, 8, is_believed=False)


def track(tracker: PhaseTracker, values: Sequence[float], start_s: float = 0.0) -> Gaps:
    return tracker.update(find_phases_of(values, 16.0, start_s))


def test_shifted_onset_gives_no_second_interval() -> None:
    tracker = PhaseTracker()
    assert track(tracker, signal((0, 4), (9, 4), (0, 8), (9, 4), (0, 4))) == [(4.0, 16.0)]
    later = signal((0, 3), (9, 6), (0, 6), (9, 6), (0, 7), (9, 4), (0, 4))
    assert track(tracker, later) == [(16.0, 28.0)]
    assert tracker.onset_s.tolist() == [4.0, 16.0, 28.0]
    assert (tracker.end_s.tolist(), tracker.volume_bytes.tolist()) == ([8.0, 21.0, 32.0], [36.0, 54.0, 36.0])


def test_open_phase_is_confirmed_after_half_the_volume() -> None:
    tracker = PhaseTracker()
    start = signal((0, 4), (9, 4), (0, 8))
    assert track(tracker, [*start, 9.0]) == []
    assert track(tracker, [*start, 9.0, 9.0]) == [(4.0, 16.0)]
    assert track(tracker, [*start, 9.0, 9.0, 9.0, 9.0, 0.0, 0.0]) == []
    assert tracker.volume_bytes.tolist() == [36.0, 36.0]
    assert tracker.phase_count == 2


def test_small_phase_counts_once_it_has_ended() -> None:
    tracker = PhaseTracker()
    assert track(tracker, signal((0, 4), (9, 4), (0, 8), (9, 1), (0, 2))) == [(4.0, 16.0)]


def test_cut_phase_has_no_onset_unless_the_run_begins_with_it() -> None:
    values = signal((9, 4), (0, 8), (9, 4), (0, 4))
    cut, whole = PhaseTracker(), PhaseTracker()
    assert cut.update(find_phases_of(values, 16.0, 100.0), first_io_s=50.0) == []
    assert cut.onset_s.tolist() == [112.0]
    assert whole.update(find_phases_of(values, 16.0, 100.0), first_io_s=99.5) == [(99.5 + 0.5, 112.0)]
    assert PhaseTracker().update(find_phases_of(values, 16.0, 100.0)) == []


def test_intervals_do_not_span_unobserved_time() -> None:
    tracker = PhaseTracker()
    track(tracker, signal((0, 4), (9, 4), (0, 4)))
    assert track(tracker, signal((0, 4), (9, 4), (0, 8), (9, 4), (0, 4)), 100.0) == [(104.0, 116.0)]
    assert tracker.phase_count == 3


def test_tracker_keeps_the_last_64_phases() -> None:
    tracker = PhaseTracker()
    seen = [track(tracker, signal((0, 4), (9, 4), (0, 8), (9, 4), (0, 4)), start) for start in range(0, 4000, 40)]
    assert seen == [[(start + 4.0, start + 16.0)] for start in range(0, 4000, 40)]
    assert (len(tracker.onset_s), tracker.phase_count) == (64, 200)
    assert PhaseTracker.from_dict(tracker.to_dict()).to_dict() == tracker.to_dict()
