"""Detect problems and notes in the condition of a warehouse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median

from iosig.answers.status.condition import (
    REFUSED_FOR,
    Condition,
    FilesystemCondition,
    SourceCondition,
    read_condition,
)
from iosig.reports.answer_tables import render_table
from iosig.reports.texts import format_count
from iosig.settings.model import AlertSettings, Settings
from iosig.warehouse.contracts.releases import WITH_WARNINGS
from iosig.warehouse.store.store import Store

#: minimum number of landing times for a typical interval
#: landings within this time count as one
_MIN_TIMES, _SAME_TIME = 5, timedelta(hours=1)
#: minimum number of days, or of landings, for a typical value
_MIN_REFERENCES = 5
#: minimum fraction of refused rows that is reported
_MIN_REFUSED_RATIO = 0.01
#: maximum inputs named in a message
_MAX_NAMED = 3
_REASONS = '`iosig run`, then `iosig sql "from rejects"` shows the reasons.'


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with its description and remedy; `name` stays the same while the problem persists."""

    name: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Status:
    """The condition of a warehouse, with its problems, most severe first, and notes that need no action."""

    condition: Condition
    problems: list[Problem]
    notes: list[Problem]

    def _repr_html_(self) -> str:
        """Return problems and notes as a table, which notebooks show."""
        rows = [("problem", item.name, item.sentence) for item in self.problems]
        rows += [("note", item.name, item.sentence) for item in self.notes]
        caption = f"{self.condition.warehouse}: release {self.condition.release_id or 'none'}, " + (
            format_count(len(self.problems), "problem") if self.problems else "no problems"
        )
        return render_table(caption, ("kind", "name", "what to do"), rows, len(rows))


def read_status(store: Store, settings: Settings, at: datetime | None = None) -> Status:
    """Read the condition of a warehouse, and derive problems and notes; at: reference time, default now."""
    condition = read_condition(store, settings, at)
    return Status(condition, find_problems(condition, settings.alerts), find_notes(condition))


def find_problems(condition: Condition, settings: AlertSettings) -> list[Problem]:
    """Return all problems of a condition, most severe first."""
    return [
        *_check_runs(condition, settings),
        *_check_refusals(condition),
        *(problem for source in condition.sources for problem in _check_source(source, condition.at, settings)),
        *(
            problem
            for filesystem in condition.filesystems
            for problem in (*_check_polls(filesystem), *_check_volume(filesystem, settings))
        ),
        *_check_disk(condition, settings),
    ]


def find_notes(condition: Condition) -> list[Problem]:
    """Return notes for an operator that need no action."""
    return [*_release_notes(condition), *_input_notes(condition)]


def _release_notes(condition: Condition) -> Iterator[Problem]:
    if condition.rollback:
        yield Problem("rollback", condition.rollback.sentence)
    if condition.verdict == WITH_WARNINGS:
        yield Problem(
            "warnings",
            f"Release {condition.release_id} passed with warnings: "
            "`iosig sql \"from quality where not success and severity = 'warning'\"` lists them.",
        )


def _input_notes(condition: Condition) -> Iterator[Problem]:
    partly = [item for item in condition.refused_inputs if item.rows]
    if partly:
        row_count = sum(item.refused_rows for item in partly)
        yield Problem(
            "refused rows",
            f"{format_count(row_count, 'row')} of {format_count(len(partly), 'input')} {_were(row_count)} refused in "
            f"the last {REFUSED_FOR.days} days. {_REASONS}",
        )
    for item in condition.filesystems:
        earlier = [day for day in item.incomplete_days if day.day < item.last_day]
        if earlier:
            yield Problem(
                f"earlier polls {item.filesystem}",
                f"{item.filesystem}: too many polls are missing on {format_count(len(earlier), 'earlier day')}, the "
                f"last of them {earlier[-1].day} ({earlier[-1].missing_ratio:.1%}).",
            )


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _check_refusals(condition: Condition) -> Iterator[Problem]:
    whole = [item for item in condition.refused_inputs if not item.rows]
    if whole:
        names = ", ".join(Path(item.file).name for item in whole[-_MAX_NAMED:]) + (", …" * (len(whole) > _MAX_NAMED))
        yield Problem(
            "refused inputs",
            f"{format_count(len(whole), 'input')} ({names}) {_were(len(whole))} refused whole in the last "
            f"{REFUSED_FOR.days} days. {_REASONS}",
        )


def _check_polls(condition: FilesystemCondition) -> Iterator[Problem]:
    latest = [day for day in condition.incomplete_days if day.day >= condition.last_day]
    if latest:
        yield Problem(
            f"polls {condition.filesystem}",
            f"{latest[-1].missing_ratio:.1%} of the polls of {condition.filesystem} are missing on {latest[-1].day}: "
            "check its collector, and land the missing polls.",
        )


def _check_runs(condition: Condition, settings: AlertSettings) -> Iterator[Problem]:
    if condition.refused_run:
        yield Problem("gate", f"The last run failed its checks and published nothing: read {condition.refused_run}.")
    waits_s = max(((condition.at - since).total_seconds() for since in condition.waiting), default=0.0)
    if waits_s > settings.max_release_delay_s:
        yield Problem(
            "late",
            f"{format_count(len(condition.waiting), 'landed input')} {'is' if len(condition.waiting) == 1 else 'are'} "
            f"in no release, the oldest for {_ago(waits_s)}: check whether the nightly flow runs (`iosig run`).",
        )


def _check_source(source: SourceCondition, at: datetime, settings: AlertSettings) -> Iterator[Problem]:
    typical_interval_s = typical_interval(source.landed_at)
    silent_s = (at - source.landed_at[-1]).total_seconds()
    if typical_interval_s is not None and silent_s > settings.stale_factor * typical_interval_s:
        yield Problem(
            f"silent {source.table}",
            f"Nothing of {source.table} has landed for {_ago(silent_s)}; typical is {_ago(typical_interval_s)}:"
            " check its collector.",
        )
    shares = [refused / max(1, rows) for refused, rows in zip(source.refused_rows, source.rows, strict=True)]
    if len(shares) > _MIN_REFERENCES:
        typical_share = median(shares[:-1])
        if shares[-1] > max(_MIN_REFUSED_RATIO, settings.anomaly_factor * typical_share):
            yield Problem(
                f"refused {source.table}",
                f"{shares[-1]:.1%} of the last input of {source.table} was refused; typical is "
                f"{typical_share:.1%}: {_REASONS}",
            )


def typical_interval(landed_at: tuple[datetime, ...]) -> float | None:
    """Return the median interval between landings [s]; None with fewer than `_MIN_TIMES` distinct times.

    Landings within `_SAME_TIME` count as one.
    """
    times: list[datetime] = []
    for instant in sorted(landed_at):
        if not times or instant - times[-1] > _SAME_TIME:
            times.append(instant)
    if len(times) < _MIN_TIMES:
        return None
    return median((after - before).total_seconds() for before, after in pairwise(times))


def _check_volume(condition: FilesystemCondition, settings: AlertSettings) -> Iterator[Problem]:
    typical_bytes = (
        median(condition.typical_bytes)
        if len(condition.typical_bytes) >= _MIN_REFERENCES and not condition.is_partial_day
        else 0.0
    )
    if not typical_bytes > 0:
        return
    ratio = condition.bytes_moved / typical_bytes
    if ratio > settings.anomaly_factor or ratio < 1.0 / settings.anomaly_factor:
        yield Problem(
            f"volume {condition.filesystem}",
            f"{condition.filesystem} moved {ratio:.2g} times its typical bytes on {condition.last_day}: check whether "
            "its polls are complete, and which jobs moved the bytes.",
        )


def _check_disk(condition: Condition, settings: AlertSettings) -> Iterator[Problem]:
    ratio = condition.disk_free_bytes / max(1, condition.disk_total_bytes)
    if ratio < settings.min_free_ratio:
        yield Problem(
            "disk", f"{ratio:.1%} of the disk is free: expire old releases (`iosig maintain`), or enlarge the disk."
        )


def _ago(seconds: float) -> str:
    for unit, length_s in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds:.0f} s"
