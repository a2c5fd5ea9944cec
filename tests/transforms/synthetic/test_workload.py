"""The workload: plans depend only on seed and key, and transfer the requested bytes."""

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
    make_plans,
    stream,
)

USUAL = Workload(
    seed=3, span_s=1.5 * DAY_S, foreign_level=1.0, drift_ratio=0.03, stop_ratio=0.3, storm_bytes_per_s=1e11
)
STEADY = replace(USUAL, foreign_level=0.0, drift_ratio=0.0, stop_ratio=0.0)

Part = tuple[Job, tuple[Piece, ...]]


@pytest.fixture(scope="module")
def typical_plans() -> list[Plan]:
    return make_plans(APPLICATIONS, USUAL)


def parts(found: list[Plan], source: str) -> list[Part]:
    return [part for plan in found for part in plan.parts if part[0].source == source]


def sum_bytes(pieces: tuple[Piece, ...], direction: str) -> float:
    return sum(piece.volume_bytes for piece in pieces if piece.direction == direction)


# ---- streams


def test_stream_depends_on_seed_and_key() -> None:
    keys: list[tuple[int, tuple[str | int, ...]]] = [
        (1, ("a", 1)), (2, ("a", 1)), (1, ("a", 2)), (1, ("b", 1)), (1, ("a",)), (1, (1, "a")), (1, ("a1",)),
    ]  # fmt: skip
    drawn = [stream(seed, *key).integers(1 << 62) for seed, key in keys]
    assert len(set(drawn)) == len(keys)
    assert [stream(seed, *key).integers(1 << 62) for seed, key in keys] == drawn


def test_stream_is_reproducible() -> None:
    # Literal values: Python's `hash` of a text, for example, differs between processes.
    assert stream(1, "application", "ior_a", 0).integers(1000, size=4).tolist() == [972, 697, 864, 560]


# ---- independence of plans


def test_same_workload_makes_the_same_plans(typical_plans: list[Plan]) -> None:
    assert make_plans(APPLICATIONS, USUAL) == typical_plans
    assert make_plans(APPLICATIONS, replace(USUAL, seed=4)) != typical_plans


def test_plans_are_independent_of_other_applications(typical_plans: list[Plan]) -> None:
    backwards = make_plans(APPLICATIONS[::-1], USUAL)
    for name in (found.name for found in APPLICATIONS):
        runs = [[plan for plan in given if plan.parts[0][0].name == name] for given in (typical_plans, backwards)]
        assert len(runs[0]) == 10
        assert runs[0] == runs[1]
    others = [plan for plan in typical_plans if plan.parts[0][0].source != "application"]
    assert make_plans([], USUAL) == others


def test_longer_workload_starts_with_the_same_days() -> None:
    assert list(USUAL.days) == [0, 1]
    short, long = make_plans([], replace(USUAL, span_s=DAY_S)), make_plans([], replace(USUAL, span_s=3 * DAY_S))
    assert [plan for plan in long if plan.start_s < DAY_S] == short


def test_plans_start_within_the_days_and_advance(typical_plans: list[Plan]) -> None:
    for plan in typical_plans:
        assert 0 <= plan.start_s < len(USUAL.days) * DAY_S
        for job, pieces in plan.parts:
            assert job.queue_s >= 0
            assert all(piece.wait_s >= 0 and piece.volume_bytes >= 0 and piece.peak_bytes_per_s > 0 for piece in pieces)


# ---- runs of the application


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_complete_runs_move_the_volume_of_the_application(typical_plans: list[Plan], application: Application) -> None:
    whole = [part for part in parts(typical_plans, "application") if part[0].name == application.name]
    whole = [part for part in whole if part[0].kind == "complete"]
    assert whole
    for job, pieces in whole:
        assert (job.state, job.node_count, job.first_burst) == ("COMPLETED", application.node_count, 0)
        for direction in DIRECTIONS:
            assert sum_bytes(pieces, direction) == pytest.approx(application.volume_bytes(direction), rel=1e-12)


def test_run_without_drift_equals_the_signature() -> None:
    for application in APPLICATIONS:
        job, pieces = make_plans([application], STEADY)[0].parts[0]
        assert (pieces[0].burst, pieces[-1].burst, job.kind) == (START, END, "complete")
        clock, begun = 0.0, {}
        for piece in pieces:
            clock += piece.wait_s
            begun.setdefault(piece.burst, clock)
            clock += piece.volume_bytes / piece.peak_bytes_per_s
        offsets = [begun[number] for number in range(len(application.bursts))]
        assert offsets == pytest.approx([burst.offset_s for burst in application.bursts])
        assert clock == pytest.approx(application.duration_s)


def test_restart_continues_after_the_last_complete_burst(typical_plans: list[Plan]) -> None:
    of = {application.name: application for application in APPLICATIONS}
    stopped = [plan for plan in typical_plans if plan.parts[0][0].kind == "stopped"]
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
def test_stop_ratio_determines_the_kinds_of_runs(stop_ratio: float, kinds: set[str]) -> None:
    found = parts(make_plans(APPLICATIONS, replace(USUAL, stop_ratio=stop_ratio)), "application")
    assert {job.kind for job, _ in found} == kinds


def test_runs_of_an_application_are_in_order(typical_plans: list[Plan]) -> None:
    for application in APPLICATIONS:
        starts = [plan.start_s for plan in typical_plans if plan.parts[0][0].name == application.name]
        assert all(first < second for first, second in pairwise(starts))
        assert starts[-1] + application.duration_s < USUAL.span_s


# ---- background


def test_background_activity_scales_with_the_level(typical_plans: list[Plan]) -> None:
    counts = {source: len(parts(typical_plans, source)) for source in ("foreign", "transfer", "storm")}
    # Poisson: 60, 360 and 2 expected on two days; five standard deviations
    assert 60 - 39 < counts["foreign"] < 60 + 39
    assert 360 - 95 < counts["transfer"] < 360 + 95
    assert counts["storm"] < 10
    assert len(make_plans([], replace(USUAL, foreign_level=0.0))) == 0
    assert len(make_plans([], replace(USUAL, foreign_level=4.0))) > 3 * sum(counts.values())


def test_foreign_application_keeps_interval_and_bursts(typical_plans: list[Plan]) -> None:
    runs: dict[str, list[tuple[Piece, ...]]] = {}
    for job, pieces in parts(typical_plans, "foreign"):
        runs.setdefault(job.name, []).append(pieces)
    for pieces_of in runs.values():
        writes = [piece for pieces in pieces_of for piece in pieces[1:-1] if piece.direction == "write"]
        assert len({piece.volume_bytes for piece in writes}) <= 2
        steps = np.array([piece.wait_s + piece.volume_bytes / piece.peak_bytes_per_s for piece in writes])
        assert steps.std() < 0.03 * steps.mean()


def test_storms_last_minutes_at_the_given_bandwidth() -> None:
    storms = parts(make_plans([], replace(USUAL, span_s=20 * DAY_S)), "storm")
    assert storms
    for _, (piece,) in storms:
        assert piece.peak_bytes_per_s == USUAL.storm_bytes_per_s
        assert 240 <= piece.volume_bytes / piece.peak_bytes_per_s <= 900


# ---- bursts


def test_burst_duration_follows_the_profile() -> None:
    assert sum(volume for volume, _ in PROFILE) == pytest.approx(1.0)
    burst = Burst(10.0, 60 * GB, 2 * GB)
    assert burst.duration_s == pytest.approx(30.0 * (0.05 / 0.5 + 0.80 + 0.15 / 0.6))
    assert burst.end_s == pytest.approx(10.0 + burst.duration_s)


def test_bursts_have_a_fixed_interval_and_cyclic_peaks() -> None:
    found = bursts(5, 10, [1, 2, 3], [4, 8], "read")
    assert [(burst.offset_s, burst.volume_bytes / GB, burst.peak_bytes_per_s / GB) for burst in found] == [
        (5, 1, 4),
        (15, 2, 8),
        (25, 3, 4),
    ]
    assert {burst.direction for burst in found} == {"read"}


def test_waits_are_the_time_between_bursts() -> None:
    for application in APPLICATIONS:
        busy = sum(burst.duration_s for burst in application.bursts)
        assert min(application.waits_s) >= 0
        assert sum(application.waits_s) + busy == pytest.approx(application.duration_s)


def test_overlapping_or_late_bursts_are_rejected() -> None:
    one = Burst(10, 10 * GB, 1 * GB)
    with pytest.raises(ValueError, match="overlaps the previous one"):
        Application("x", "u", "a", 1, 100.0, (one, replace(one, offset_s=15)))
    with pytest.raises(ValueError, match="ends after the run"):
        Application("x", "u", "a", 1, 15.0, (one,))


# ---- planned runs


def test_planned_runs_start_on_time_and_are_complete() -> None:
    planned = replace(APPLICATIONS[0], starts_s=(10.0, 5000.0, 9000.0))
    found = make_plans((planned,), replace(USUAL, foreign_level=0.0, stop_ratio=1.0))
    assert [plan.start_s for plan in found] == [10.0, 5000.0, 9000.0]
    assert {job.kind for plan in found for job, _ in plan.parts} == {"complete"}


def test_revision_applies_to_later_runs() -> None:
    later = Revision(6000.0, 900.0, bursts(100, 200, [7] * 4, [2.0], "write"))
    application = replace(APPLICATIONS[0], starts_s=(0.0, 6000.0), revision=later)
    before, after = make_plans((application,), STEADY)
    assert sum_bytes(before.parts[0][1], "write") == pytest.approx(APPLICATIONS[0].volume_bytes("write"))
    assert sum_bytes(after.parts[0][1], "write") == pytest.approx(4 * 7 * GB)
    assert application.at(5999.9).bursts == APPLICATIONS[0].bursts
    assert application.at(6000.0).duration_s == 900.0


def test_revision_with_overlapping_bursts_is_rejected() -> None:
    with pytest.raises(ValueError, match="overlaps the previous one"):
        replace(APPLICATIONS[0], revision=Revision(0.0, 900.0, bursts(0, 1, [7] * 4, [2.0], "write")))


def test_transfers_have_the_weight_of_the_application() -> None:
    (plan,) = make_plans((replace(APPLICATIONS[0], starts_s=(0.0,), weight=8.0),), STEADY)
    assert {piece.weight for piece in plan.parts[0][1] if piece.volume_bytes} == {8.0}
