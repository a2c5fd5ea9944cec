"""What is wrong with a condition, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median

from iosig.answers.status.condition import REFUSED_FOR, Condition, FilesystemCondition, SourceCondition
from iosig.reports.texts import counted
from iosig.settings.model import AlertSettings
from iosig.warehouse.contracts.releases import WITH_WARNINGS

#: so many times at which something landed tell how often it usually does; what lands within an hour is one of them
_LEAST_TIMES, _ONE_TIME = 5, timedelta(hours=1)
#: so many days, or landings, tell how much is usual
_LEAST_USUAL = 5
#: a share of refused rows below this is none to be told of
_LEAST_REFUSED_RATIO = 0.01
#: inputs that a sentence names
_MAX_NAMED = 3
_REASONS = '`iosig run`, then `iosig sql "from rejects"` shows the reasons.'


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that somebody has to look at: its name, the same as long as it lasts, and what to do, in a sentence."""

    name: str
    sentence: str


def problems_of(condition: Condition, settings: AlertSettings) -> list[Problem]:
    """Return what is wrong, the worst first."""
    return [
        *_of_runs(condition, settings),
        *_of_refusals(condition),
        *(found for source in condition.sources for found in _of_source(source, condition.at, settings)),
        *(found for one in condition.filesystems for found in (*_of_polls(one), *_of_filesystem(one, settings))),
        *_of_disk(condition, settings),
    ]


def notes_of(condition: Condition) -> list[Problem]:
    """Return what an operator should know and need not act on: no problem, and not "all is well" either."""
    return [*_notes_of_release(condition), *_notes_of_inputs(condition)]


def _notes_of_release(condition: Condition) -> Iterator[Problem]:
    if condition.rollback:
        yield Problem("rollback", condition.rollback.sentence)
    if condition.verdict == WITH_WARNINGS:
        yield Problem(
            "warnings",
            f"Release {condition.release_id} passed with warnings: "
            "`iosig sql \"from quality where not success and severity = 'warning'\"` lists them.",
        )


def _notes_of_inputs(condition: Condition) -> Iterator[Problem]:
    partly = [one for one in condition.refused_inputs if one.rows]
    if partly:
        row_count = sum(one.refused_rows for one in partly)
        yield Problem(
            "refused rows",
            f"{counted(row_count, 'row')} of {counted(len(partly), 'input')} {_were(row_count)} refused in the last "
            f"{REFUSED_FOR.days} days. {_REASONS}",
        )
    for one in condition.filesystems:
        earlier = [day for day in one.incomplete_days if day.day < one.last_day]
        if earlier:
            yield Problem(
                f"earlier polls {one.filesystem}",
                f"{one.filesystem}: too many polls are missing on {counted(len(earlier), 'earlier day')}, the last of "
                f"them {earlier[-1].day} ({earlier[-1].missing_ratio:.1%}).",
            )


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _of_refusals(condition: Condition) -> Iterator[Problem]:
    whole = [one for one in condition.refused_inputs if not one.rows]
    if whole:
        names = ", ".join(Path(one.file).name for one in whole[-_MAX_NAMED:]) + (", …" * (len(whole) > _MAX_NAMED))
        yield Problem(
            "refused inputs",
            f"{counted(len(whole), 'input')} ({names}) {_were(len(whole))} refused whole in the last "
            f"{REFUSED_FOR.days} days. {_REASONS}",
        )


def _of_polls(one: FilesystemCondition) -> Iterator[Problem]:
    latest = [day for day in one.incomplete_days if day.day >= one.last_day]
    if latest:
        yield Problem(
            f"polls {one.filesystem}",
            f"{latest[-1].missing_ratio:.1%} of the polls of {one.filesystem} are missing on {latest[-1].day}: look at "
            "its collector, and land what is missing.",
        )


def _of_runs(condition: Condition, settings: AlertSettings) -> Iterator[Problem]:
    if condition.refused_run:
        yield Problem("gate", f"The last run failed its checks and published nothing: read {condition.refused_run}.")
    waits_s = max(((condition.at - since).total_seconds() for since in condition.waiting), default=0.0)
    if waits_s > settings.max_release_delay_s:
        yield Problem(
            "late",
            f"{counted(len(condition.waiting), 'landed input')} {'is' if len(condition.waiting) == 1 else 'are'} in no "
            f"release, the first since {_ago(waits_s)}: look whether the night runs (`iosig run`).",
        )


def _of_source(source: SourceCondition, at: datetime, settings: AlertSettings) -> Iterator[Problem]:
    typical_interval_s = rhythm_s(source.landed_at)
    silent_s = (at - source.landed_at[-1]).total_seconds()
    if typical_interval_s is not None and silent_s > settings.stale_factor * typical_interval_s:
        yield Problem(
            f"silent {source.table}",
            f"Nothing of {source.table} has landed for {_ago(silent_s)}, where {_ago(typical_interval_s)} is usual:"
            " look at its collector.",
        )
    shares = [refused / max(1, rows) for refused, rows in zip(source.refused_rows, source.rows, strict=True)]
    if len(shares) > _LEAST_USUAL:
        usual = median(shares[:-1])
        if shares[-1] > max(_LEAST_REFUSED_RATIO, settings.anomaly_factor * usual):
            yield Problem(
                f"refused {source.table}",
                f"{shares[-1]:.1%} of the last input of {source.table} was refused, where {usual:.1%} is usual:"
                f" {_REASONS}",
            )


def rhythm_s(landed_at: tuple[datetime, ...]) -> float | None:
    """Return after how long something usually lands again [s]; None where too little has landed to tell.

    What lands together is one time. The median of the gaps between them.
    """
    times: list[datetime] = []
    for one in sorted(landed_at):
        if not times or one - times[-1] > _ONE_TIME:
            times.append(one)
    if len(times) < _LEAST_TIMES:
        return None
    return median((after - before).total_seconds() for before, after in pairwise(times))


def _of_filesystem(one: FilesystemCondition, settings: AlertSettings) -> Iterator[Problem]:
    usual = median(one.typical_bytes) if len(one.typical_bytes) >= _LEAST_USUAL and not one.is_partial_day else 0.0
    if not usual > 0:
        return
    ratio = one.bytes_moved / usual
    if ratio > settings.anomaly_factor or ratio < 1.0 / settings.anomaly_factor:
        yield Problem(
            f"volume {one.filesystem}",
            f"{one.filesystem} moved {ratio:.2g} times of what is usual on {one.last_day}: look whether its polls are"
            " whole, and who moved the bytes.",
        )


def _of_disk(condition: Condition, settings: AlertSettings) -> Iterator[Problem]:
    ratio = condition.disk_free_bytes / max(1, condition.disk_total_bytes)
    if ratio < settings.min_free_ratio:
        yield Problem(
            "disk", f"{ratio:.1%} of the disk is free: have old releases expire (`iosig maintain`), or give it more."
        )


def _ago(seconds: float) -> str:
    for unit, length_s in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds:.0f} s"
