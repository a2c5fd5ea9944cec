"""The workload: plans that depend on their own seed and key only, and move what was asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from iosig.transforms.synthetic.workload import (
    APPLICATIONS,
    DAY_S,
    DIRECTIONS,
    END,
    GB,
    PROFILE,
    START,
    Application,
    Burst,
    Job,
    Piece,
    Plan,
    Revision,
    Workload,
    bursts,
    plans,
    stream,
)

USUAL = Workload(
    seed=3, span_s=1.5 * DAY_S, foreign_level=1.0, drift_ratio=0.03, stop_ratio=0.3, storm_bytes_per_s=1e11
)
STEADY = replace(USUAL, foreign_level=0.0, drift_ratio=0.0, stop_ratio=0.0)

Part = tuple[Job, tuple[Piece, ...]]


@pytest.fixture(scope="module")
def usual() -> list[Plan]:
    return plans(APPLICATIONS, USUAL)


def parts(found: list[Plan], source: str) -> list[Part]:
    return [part for plan in found for part in plan.parts if part[0].source == source]


def moved(pieces: tuple[Piece, ...], direction: str) -> float:
    return sum(piece.volume_bytes for piece in pieces if piece.direction == direction)


# ---- streams


def test_a_stream_depends_on_its_seed_and_on_every_part_of_its_key() -> None:
    keys: list[tuple[int, tuple[str | int, ...]]] = [
        (1, ("a", 1)), (2, ("a", 1)), (1, ("a", 2)), (1, ("b", 1)), (1, ("a",)), (1, (1, "a")), (1, ("a1",)),
    ]  # fmt: skip
    drawn = [stream(seed, *key).integers(1 << 62) for seed, key in keys]
    assert len(set(drawn)) == len(keys)
    assert [stream(seed, *key).integers(1 << 62) for seed, key in keys] == drawn


def test_a_stream_is_the_same_on_every_machine_and_day() -> None:
    # Literal values: Python's own `hash` of a text, say, would differ from process to process.
    assert stream(1, "application", "ior_a", 0).integers(1000, size=4).tolist() == [972, 697, 864, 560]


# ---- plans depend on nothing but themselves


def test_the_same_workload_makes_the_same_plans(usual: list[Plan]) -> None:
    assert plans(APPLICATIONS, USUAL) == usual
    assert plans(APPLICATIONS, replace(USUAL, seed=4)) != usual


def test_the_order_and_number_of_applications_change_no_plan(usual: list[Plan]) -> None:
    backwards = plans(APPLICATIONS[::-1], USUAL)
    for name in (found.name for found in APPLICATIONS):
        runs = [[plan for plan in given if plan.parts[0][0].name == name] for given in (usual, backwards)]
        assert len(runs[0]) == 10
        assert runs[0] == runs[1]
    others = [plan for plan in usual if plan.parts[0][0].source != "application"]
    assert plans([], USUAL) == others


def test_a_longer_workload_begins_with_the_same_days_of_others() -> None:
    assert list(USUAL.days) == [0, 1]
    short, long = plans([], replace(USUAL, span_s=DAY_S)), plans([], replace(USUAL, span_s=3 * DAY_S))
    assert [plan for plan in long if plan.start_s < DAY_S] == short


def test_all_begins_within_the_days_and_never_goes_back(usual: list[Plan]) -> None:
    for plan in usual:
        assert 0 <= plan.start_s < len(USUAL.days) * DAY_S
        for job, pieces in plan.parts:
            assert job.queue_s >= 0
            assert all(piece.wait_s >= 0 and piece.volume_bytes >= 0 and piece.peak_bytes_per_s > 0 for piece in pieces)


# ---- an application's own runs


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_every_whole_run_moves_the_applications_volume(usual: list[Plan], application: Application) -> None:
    whole = [part for part in parts(usual, "application") if part[0].name == application.name]
    whole = [part for part in whole if part[0].kind == "complete"]
    assert whole
    for job, pieces in whole:
        assert (job.state, job.node_count, job.first_burst) == ("COMPLETED", application.node_count, 0)
        for direction in DIRECTIONS:
            assert moved(pieces, direction) == pytest.approx(application.volume_bytes(direction), rel=1e-12)


def test_without_drift_a_run_is_the_signature() -> None:
    for application in APPLICATIONS:
        job, pieces = plans([application], STEADY)[0].parts[0]
        assert (pieces[0].burst, pieces[-1].burst, job.kind) == (START, END, "complete")
        clock, begun = 0.0, {}
        for piece in pieces:
            clock += piece.wait_s
            begun.setdefault(piece.burst, clock)
            clock += piece.volume_bytes / piece.peak_bytes_per_s
        offsets = [begun[number] for number in range(len(application.bursts))]
        assert offsets == pytest.approx([burst.offset_s for burst in application.bursts])
        assert clock == pytest.approx(application.duration_s)


def test_a_restart_does_all_from_the_last_whole_burst_on(usual: list[Plan]) -> None:
    of = {application.name: application for application in APPLICATIONS}
    stopped = [plan for plan in usual if plan.parts[0][0].kind == "stopped"]
    restarted = [plan for plan in stopped if len(plan.parts) == 2]
    assert len(stopped) > len(restarted) > 0
    for plan in restarted:
        (first, before), (again, after) = plan.parts
        count = len(of[first.name].bursts)
        assert (first.state != "COMPLETED", again.state, again.kind) == (True, "COMPLETED", "restart")
        assert {piece.burst for piece in after} == {START, END, *range(again.first_burst, count)}
        assert {piece.burst for piece in before} >= {START, END, *range(again.first_burst)}
        wanted = [burst.volume_bytes for burst in of[first.name].bursts]
        done = [sum(piece.volume_bytes for piece in after if piece.burst == i) for i in range(count)]
        assert done == pytest.approx([0.0] * again.first_burst + wanted[again.first_burst :], rel=1e-12)
        begun = sum(piece.volume_bytes for piece in before if piece.burst == again.first_burst)
        assert begun < wanted[again.first_burst]


@pytest.mark.parametrize(("stop_ratio", "kinds"), [(0.0, {"complete"}), (1.0, {"stopped", "restart"})])
def test_the_share_of_stopped_runs_is_what_was_asked_for(stop_ratio: float, kinds: set[str]) -> None:
    found = parts(plans(APPLICATIONS, replace(USUAL, stop_ratio=stop_ratio)), "application")
    assert {job.kind for job, _ in found} == kinds


def test_runs_of_one_application_come_one_after_the_other(usual: list[Plan]) -> None:
    for application in APPLICATIONS:
        starts = [plan.start_s for plan in usual if plan.parts[0][0].name == application.name]
        assert all(first < second for first, second in pairwise(starts))
        assert starts[-1] + application.duration_s < USUAL.span_s


# ---- everybody else


def test_others_are_as_many_as_their_level_says(usual: list[Plan]) -> None:
    counts = {source: len(parts(usual, source)) for source in ("foreign", "transfer", "storm")}
    # Poisson: 60, 360 and 2 expected on two days; five standard deviations
    assert 60 - 39 < counts["foreign"] < 60 + 39
    assert 360 - 95 < counts["transfer"] < 360 + 95
    assert counts["storm"] < 10
    assert len(plans([], replace(USUAL, foreign_level=0.0))) == 0
    assert len(plans([], replace(USUAL, foreign_level=4.0))) > 3 * sum(counts.values())


def test_a_foreign_application_keeps_its_step_and_its_bursts(usual: list[Plan]) -> None:
    runs: dict[str, list[tuple[Piece, ...]]] = {}
    for job, pieces in parts(usual, "foreign"):
        runs.setdefault(job.name, []).append(pieces)
    for pieces_of in runs.values():
        writes = [piece for pieces in pieces_of for piece in pieces[1:-1] if piece.direction == "write"]
        assert len({piece.volume_bytes for piece in writes}) <= 2
        steps = np.array([piece.wait_s + piece.volume_bytes / piece.peak_bytes_per_s for piece in writes])
        assert steps.std() < 0.03 * steps.mean()


def test_storms_last_minutes_at_the_bandwidth_that_was_given() -> None:
    storms = parts(plans([], replace(USUAL, span_s=20 * DAY_S)), "storm")
    assert storms
    for _, (piece,) in storms:
        assert piece.peak_bytes_per_s == USUAL.storm_bytes_per_s
        assert 240 <= piece.volume_bytes / piece.peak_bytes_per_s <= 900


# ---- bursts


def test_a_burst_takes_as_long_as_its_profile() -> None:
    assert sum(volume for volume, _ in PROFILE) == pytest.approx(1.0)
    burst = Burst(10.0, 60 * GB, 2 * GB)
    assert burst.duration_s == pytest.approx(30.0 * (0.05 / 0.5 + 0.80 + 0.15 / 0.6))
    assert burst.end_s == pytest.approx(10.0 + burst.duration_s)


def test_bursts_come_at_a_fixed_step_and_take_the_peaks_in_turn() -> None:
    found = bursts(5, 10, [1, 2, 3], [4, 8], "read")
    assert [(burst.offset_s, burst.volume_bytes / GB, burst.peak_bytes_per_s / GB) for burst in found] == [
        (5, 1, 4),
        (15, 2, 8),
        (25, 3, 4),
    ]
    assert {burst.direction for burst in found} == {"read"}


def test_waits_are_what_the_bursts_leave_of_the_run() -> None:
    for application in APPLICATIONS:
        busy = sum(burst.duration_s for burst in application.bursts)
        assert min(application.waits_s) >= 0
        assert sum(application.waits_s) + busy == pytest.approx(application.duration_s)


def test_bursts_that_overlap_or_outlast_the_run_are_refused() -> None:
    one = Burst(10, 10 * GB, 1 * GB)
    with pytest.raises(ValueError, match="before the one before it ends"):
        Application("x", "u", "a", 1, 100.0, (one, replace(one, offset_s=15)))
    with pytest.raises(ValueError, match="ends after the run"):
        Application("x", "u", "a", 1, 15.0, (one,))


# ---- planned runs


def test_planned_runs_start_when_they_are_planned_and_are_complete() -> None:
    planned = replace(APPLICATIONS[0], starts_s=(10.0, 5000.0, 9000.0))
    found = plans((planned,), replace(USUAL, foreign_level=0.0, stop_ratio=1.0))
    assert [plan.start_s for plan in found] == [10.0, 5000.0, 9000.0]
    assert {job.kind for plan in found for job, _ in plan.parts} == {"complete"}


def test_runs_from_a_revision_on_do_what_it_says() -> None:
    later = Revision(6000.0, 900.0, bursts(100, 200, [7] * 4, [2.0], "write"))
    application = replace(APPLICATIONS[0], starts_s=(0.0, 6000.0), revision=later)
    before, after = plans((application,), STEADY)
    assert moved(before.parts[0][1], "write") == pytest.approx(APPLICATIONS[0].volume_bytes("write"))
    assert moved(after.parts[0][1], "write") == pytest.approx(4 * 7 * GB)
    assert application.at(5999.9).bursts == APPLICATIONS[0].bursts
    assert application.at(6000.0).duration_s == 900.0


def test_a_revision_whose_bursts_overlap_is_refused() -> None:
    with pytest.raises(ValueError, match="a burst begins before the one before it ends"):
        replace(APPLICATIONS[0], revision=Revision(0.0, 900.0, bursts(0, 1, [7] * 4, [2.0], "write")))


def test_transfers_have_their_applications_weight() -> None:
    (plan,) = plans((replace(APPLICATIONS[0], starts_s=(0.0,), weight=8.0),), STEADY)
    assert {piece.weight for piece in plan.parts[0][1] if piece.volume_bytes} == {8.0}
