"""What is wrong with a condition, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from flows.settings import WatchSettings
from flows.watch.condition import Condition, FilesystemCondition, SourceCondition

#: so many times at which something landed tell how often it usually does; what lands within an hour is one of them
_LEAST_TIMES, _ONE_TIME = 5, timedelta(hours=1)
#: so many days, or landings, tell how much is usual
_LEAST_USUAL = 5
#: a share of refused rows below this is none to be told of
_LEAST_REFUSED_RATIO = 0.01


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that somebody has to look at: its name, the same as long as it lasts, and what to do, in a sentence."""

    name: str
    sentence: str


def problems_of(condition: Condition, settings: WatchSettings) -> list[Problem]:
    """Return what is wrong, the worst first."""
    return [
        *_of_runs(condition, settings),
        *(found for source in condition.sources for found in _of_source(source, condition.at, settings)),
        *(found for one in condition.filesystems for found in _of_filesystem(one, settings)),
        *_of_disk(condition, settings),
    ]


def _of_runs(condition: Condition, settings: WatchSettings) -> Iterator[Problem]:
    if condition.refused_run:
        yield Problem("gate", f"The last run was refused by its checks: read {condition.refused_run}.")
    waits_s = max(((condition.at - since).total_seconds() for since in condition.waiting), default=0.0)
    if waits_s > settings.release_late_after_s:
        yield Problem(
            "late",
            f"{len(condition.waiting):,} landed inputs are in no release, the first since {_ago(waits_s)}:"
            " look whether the night runs (`iosig run`).",
        )


def _of_source(source: SourceCondition, at: datetime, settings: WatchSettings) -> Iterator[Problem]:
    usual_s = rhythm_s(source.landed_at)
    silent_s = (at - source.landed_at[-1]).total_seconds()
    if usual_s is not None and silent_s > settings.silent_ratio * usual_s:
        yield Problem(
            f"silent {source.table}",
            f"Nothing of {source.table} has landed for {_ago(silent_s)}, where {_ago(usual_s)} is usual:"
            " look at its collector.",
        )
    shares = [refused / max(1, rows) for refused, rows in zip(source.refused_rows, source.rows, strict=True)]
    if len(shares) > _LEAST_USUAL:
        usual = median(shares[:-1])
        if shares[-1] > max(_LEAST_REFUSED_RATIO, settings.jump_ratio * usual):
            yield Problem(
                f"refused {source.table}",
                f"{shares[-1]:.1%} of the last input of {source.table} was refused, where {usual:.1%} is usual:"
                ' `iosig sql "select * from rejects"` has the reasons.',
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


def _of_filesystem(one: FilesystemCondition, settings: WatchSettings) -> Iterator[Problem]:
    usual = median(one.usual_bytes) if len(one.usual_bytes) >= _LEAST_USUAL else 0.0
    if not usual > 0:
        return
    ratio = one.bytes_moved / usual
    if ratio > settings.jump_ratio or ratio < 1.0 / settings.jump_ratio:
        yield Problem(
            f"volume {one.filesystem}",
            f"{one.filesystem} moved {ratio:.2g} times of what is usual on {one.last_day}: look whether its polls are"
            " whole, and who moved the bytes.",
        )


def _of_disk(condition: Condition, settings: WatchSettings) -> Iterator[Problem]:
    ratio = condition.disk_free_bytes / max(1, condition.disk_total_bytes)
    if ratio < settings.least_free_ratio:
        yield Problem(
            "disk", f"{ratio:.1%} of the disk is free: have old releases expire (`iosig maintain`), or give it more."
        )


def _ago(seconds: float) -> str:
    for unit, length_s in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds:.0f} s"
