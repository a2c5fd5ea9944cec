"""Piecewise-constant rates, and the residual of a load after subtracting the signatures of its jobs."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.answers.advice.inputs import (
    FilesystemState,
    KnownSignature,
    Load,
    Rates,
    RunningJob,
    choose_largest,
    find_for_filesystem,
)
from tests.budget import examples
from tests.sql.given import NOON

BURSTS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 30), st.floats(0, 1e12, allow_subnormal=False)), max_size=6
)


def of_bursts(bursts: list[tuple[int, int, float]], until_s: float = 0.0) -> Rates:
    columns = np.array(bursts, dtype=np.float64).reshape(-1, 3).T
    return Rates.of_bursts(columns[0], columns[1], columns[2], until_s)


def signature(*bursts: tuple[int, int, float], filesystem: str = "scratch", until_s: float = 0.0) -> KnownSignature:
    return KnownSignature("ana/x/1", filesystem, of_bursts(list(bursts), until_s), "bursts", {"write": "extracted"})


def job(elapsed_s: float, known: KnownSignature | None, ended_s_ago: float | None = None) -> RunningJob:
    return RunningJob("1", "ana/x/1", elapsed_s, known, ended_s_ago)


def state(load: Load | None, *jobs: RunningJob, given: float | None = None) -> FilesystemState:
    return FilesystemState("scratch", 1e10, "mix", jobs, load, given)


# ---- rates


def test_overlapping_bursts_add_up() -> None:
    rates = of_bursts([(10, 10, 100.0), (15, 10, 50.0)], until_s=40)
    assert rates.edges_s.tolist() == [0, 10, 15, 20, 25, 40]
    assert rates.bytes_per_s.tolist() == pytest.approx([0, 10, 15, 5, 0])
    assert (rates.duration_s, rates.volume_bytes, rates.peak_bytes_per_s) == (40, pytest.approx(150), 15)


def test_rates_without_bursts_have_no_duration() -> None:
    rates = of_bursts([])
    assert (rates.duration_s, rates.volume_bytes, rates.peak_bytes_per_s) == (0, 0, 0)
    assert rates.resample(-5, 1, 10).tolist() == [0] * 10


@settings(max_examples=examples(30), deadline=None)
@given(BURSTS, st.integers(-20, 100), st.integers(1, 9))
def test_resampled_rates_conserve_the_bytes_of_bursts(
    bursts: list[tuple[int, int, float]], from_s: int, step_s: int
) -> None:
    """Compared with a loop over bursts that sums the part of each within a step."""
    expected = [
        sum(
            volume * max(0, min(start + lasting, left + step_s) - max(start, left)) / lasting
            for start, lasting, volume in bursts
        )
        / step_s
        for left in range(from_s, from_s + 12 * step_s, step_s)
    ]
    whole = sum(volume for *_, volume in bursts)
    assert of_bursts(bursts).resample(from_s, step_s, 12) == pytest.approx(expected, rel=1e-9, abs=1e-9 * whole + 1e-9)


@settings(max_examples=examples(30), deadline=None)
@given(BURSTS, BURSTS)
def test_sum_of_rates_equals_rates_of_all_bursts(
    some: list[tuple[int, int, float]], more: list[tuple[int, int, float]]
) -> None:
    both, alone = Rates.sum_of([of_bursts(some), of_bursts(more)]), of_bursts(some + more)
    at_s = np.arange(0.0, 90.0, 0.5)
    assert both.cumulative_bytes(at_s) == pytest.approx(alone.cumulative_bytes(at_s), rel=1e-9, abs=1e-3)


def test_curve_has_a_value_per_second() -> None:
    rates = Rates.of_curve(np.array([1.0, 3.0]))
    assert (rates.duration_s, rates.volume_bytes) == (2, 4)
    assert rates.resample(0.5, 1.0, 2).tolist() == [2.0, 1.5]


# ---- jobs and background traffic


@pytest.mark.parametrize(
    ("elapsed_s", "known", "status"),
    [(10, signature((0, 20, 1.0)), "known"), (20, signature((0, 20, 1.0)), "over"), (10, None, "unknown")],
)
def test_status_of_a_job_depends_on_its_signature_and_elapsed_time(
    elapsed_s: float, known: KnownSignature | None, status: str
) -> None:
    assert job(elapsed_s, known).status == status


def test_attributed_traffic_is_not_background() -> None:
    # the load was measured from 100 s to 20 s ago; the burst began 50 s ago and lasts until now
    load = Load(10.0, from_s_ago=100, until_s_ago=20)
    one = state(load, job(150, signature((100, 50, 500.0))))
    assert one.attributed_bytes_per_s == pytest.approx(10 * 30 / 80)
    assert one.background_bytes_per_s == pytest.approx(10 - 10 * 30 / 80)


def test_ended_job_explains_past_load_but_is_not_running() -> None:
    ended = job(150, signature((0, 200, 2000.0)), ended_s_ago=60)
    one = state(Load(10.0, from_s_ago=100, until_s_ago=0), ended)
    assert one.attributed_bytes_per_s == pytest.approx(10 * 40 / 100)
    assert (one.now_running, ended.is_running) == ((), False)


def test_job_explains_nothing_before_its_start() -> None:
    one = state(Load(10.0, from_s_ago=100, until_s_ago=0), job(30, signature((0, 30, 600.0))))
    assert one.attributed_bytes_per_s == pytest.approx(20 * 30 / 100)


def test_background_is_never_negative_and_can_be_given() -> None:
    jobs = job(50, signature((0, 100, 1e6)))
    assert state(Load(10.0, 50, 0), jobs).background_bytes_per_s == 0
    assert state(None, jobs, given=7.0).background_bytes_per_s == 7
    assert state(None, jobs).attributed_bytes_per_s == 0


# ---- selection of a signature


def test_signature_of_the_same_file_system_precedes_the_largest() -> None:
    here, there = signature((0, 10, 1.0)), signature((0, 10, 5.0), filesystem="projects")
    known = {"ana/x/1": {"scratch": here, "projects": there}, "bob/y/*": {"scratch": here}}
    assert find_for_filesystem(known, "ana/x/1", "scratch", is_certain=False) is here
    assert find_for_filesystem(known, "ana/x/1", "third", is_certain=True) is there
    assert find_for_filesystem(known, "ana/x/1", "third", is_certain=False) is None
    assert find_for_filesystem(known, "bob/y/4", "scratch", is_certain=False) is here
    assert find_for_filesystem(known, "bob/z/4", "scratch", is_certain=True) is None
    assert choose_largest(known["ana/x/1"]) is there


def test_signature_is_valid_until_its_last_instant() -> None:
    known = KnownSignature("a", "b", of_bursts([]), "bursts", {}, valid_until=NOON)
    assert known.holds_at(NOON - timedelta(seconds=1))
    assert not known.holds_at(NOON)
    assert signature().holds_at(NOON)
