"""Problems and notes are derived from the condition of a warehouse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iosig.answers.status.condition import Condition, FilesystemCondition, IncompleteDay, RefusedInput
from iosig.answers.status.problems import find_notes, find_problems, typical_interval
from iosig.settings.model import AlertSettings
from iosig.warehouse.releases.holds import Hold
from tests.answers.status.conditions import DAY, HOUR, NOON, WELL, but, filesystem, nightly_source

REFUSED_WHOLE = RefusedInput("/in/torn.csv", NOON, 1, 0)
HOLD = Hold("20260318T023000Z-run", "2026-03-20T03:00:00+00:00", ("abc",), (), None)


def missing(days_before: int) -> FilesystemCondition:
    """Most polls are missing on the day `days_before` days before the last whole day."""
    day = (NOON - DAY - days_before * DAY).date()
    return replace(filesystem(), incomplete_days=(IncompleteDay(day, 0.86),))


REFUSING = replace(nightly_source(), refused_rows=(*(3,) * 19, 120))


@pytest.mark.parametrize(
    ("condition", "name", "part"),
    [
        (but(refused_run="/w/refused/index.html"), "gate", "read /w/refused/index.html"),
        (but(waiting=(NOON - 2 * DAY,)), "late", "1 landed input is in no release, the oldest for 2 days"),
        (but(waiting=(NOON - 2 * DAY, NOON)), "late", "2 landed inputs are in no release, the oldest for 2 days"),
        (but(sources=(nightly_source(ended=4 * DAY),)), "silent sacct", "for 4 days; typical is 24 hours"),
        (but(sources=(REFUSING,)), "refused sacct", "12.0% of the last input of sacct was refused; typical is 0.3%"),
        (but(filesystems=(filesystem(20e12),)), "volume scratch", "20 times its typical bytes on 2026-03-19"),
        (but(filesystems=(filesystem(1e10),)), "volume scratch", "0.01 times"),
        (but(disk_free_bytes=10**10), "disk", "1.0% of the disk is free"),
        (but(refused_inputs=(REFUSED_WHOLE,) * 5), "refused inputs", "5 inputs (torn.csv, torn.csv, torn.csv, …) were"),
        (but(filesystems=(missing(0),)), "polls scratch", "86.0% of the polls of scratch are missing on 2026-03-19"),
        (but(filesystems=(missing(-1),)), "polls scratch", "are missing on 2026-03-20"),
    ],
)
def test_problem_is_named_with_a_sentence(condition: Condition, name: str, part: str) -> None:
    (found,) = find_problems(condition, AlertSettings())
    assert found.name == name
    assert part in found.sentence


@pytest.mark.parametrize(
    "condition",
    [
        WELL,
        but(release_id=None, released_at=None, verdict=None, sources=(), filesystems=(), waiting=()),
        but(sources=(nightly_source(nights=4, ended=40 * DAY),)),
        but(sources=(replace(nightly_source(), refused_rows=(*(0,) * 19, 9)),)),
        but(filesystems=(filesystem(1e15, (1e12,) * 4),)),
        but(filesystems=(filesystem(1e12, (0.0,) * 14),)),
        but(waiting=(NOON - DAY,)),
    ],
)
def test_healthy_or_unknown_condition_has_no_problem(condition: Condition) -> None:
    assert find_problems(condition, AlertSettings()) == []


def test_thresholds_come_from_the_settings() -> None:
    strict = AlertSettings(max_release_delay_s=60, stale_factor=1.01, anomaly_factor=1.5, min_free_ratio=0.9)
    several = but(sources=(nightly_source(ended=DAY + HOUR),), filesystems=(filesystem(2e12),))
    assert [one.name for one in find_problems(several, strict)] == ["late", "silent sacct", "volume scratch", "disk"]


def test_landings_close_together_count_as_one_time() -> None:
    nightly = [NOON - night * DAY + minute * HOUR / 60 for night in range(6) for minute in range(30)]
    assert typical_interval(tuple(nightly)) == pytest.approx(86_400.0, rel=0.05)
    assert typical_interval(tuple(NOON + minute * HOUR / 60 for minute in range(300))) != 0.0
    assert typical_interval(()) is None
    assert typical_interval((NOON,) * 50) is None


@pytest.mark.parametrize(
    ("condition", "name", "part"),
    [
        (but(rollback=HOLD), "rollback", "in force since 2026-03-20 03:00: runs exclude 1 landing (abc)"),
        (but(verdict="passed with warnings"), "warnings", "passed with warnings"),
        (but(refused_inputs=(replace(REFUSED_WHOLE, rows=9),)), "refused rows", "1 row of 1 input was refused"),
        (
            but(filesystems=(missing(3),)),
            "earlier polls scratch",
            "1 earlier day, the last of them 2026-03-16 (86.0%)",
        ),
    ],
)
def test_note_is_not_a_problem(condition: Condition, name: str, part: str) -> None:
    (found,) = find_notes(condition)
    assert (found.name, find_problems(condition, AlertSettings())) == (name, [])
    assert part in found.sentence


def test_healthy_condition_has_no_notes() -> None:
    assert find_notes(WELL) == []
