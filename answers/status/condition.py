"""Read the condition of a warehouse and its disk, from which problems are detected.

A landing is an input as it was read once, identified by the hash of its content.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl

from iosig.settings.model import ScheduleSettings, Settings
from iosig.warehouse.contracts.polls import POLLS_DAILY
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.releases import holds, releases
from iosig.warehouse.releases.holds import Hold
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger
from iosig.warehouse.store.ledger import Ledger
from iosig.warehouse.store.store import Store, holder

#: maximum number of reference landings of a source
_MAX_LANDINGS = 200
#: refused inputs are reported for this time
#: maximum number of refused inputs reported
REFUSED_FOR, _MAX_REFUSED = timedelta(days=7), 1000
#: number of reference days before a file system's last day
_REFERENCE_DAYS = 14


@dataclass(frozen=True, slots=True)
class SourceCondition:
    """Landings of one table in chronological order, with the numbers of refused and of all rows of each."""

    table: str
    landed_at: tuple[datetime, ...]
    refused_rows: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RefusedInput:
    """A recent input with refused rows; `rows` is the number of accepted rows, 0 if all were refused."""

    file: str
    landed_at: datetime
    refused_rows: int
    rows: int


@dataclass(frozen=True, slots=True)
class IncompleteDay:
    """A day with a missing ratio above the threshold in the settings."""

    day: date
    missing_ratio: float


@dataclass(frozen=True, slots=True)
class FilesystemCondition:
    """A file system's last complete day of polls in a release, and the days before it.

    last_day: last day that the data cover completely; without one, the last day. bytes_moved: read and written on that
    day. typical_bytes: bytes of each of up to 14 complete days before it. incomplete_days: reference days and later
    days with too many missing polls.
    """

    filesystem: str
    last_day: date
    bytes_moved: float
    typical_bytes: tuple[float, ...]
    missing_ratio: float
    is_partial_day: bool = False
    incomplete_days: tuple[IncompleteDay, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a warehouse at an instant.

    waiting: times of landings that are in no release. held_by: process that holds the lock. rollback: active rollback.
    refused_run: pages of the last run if it failed its checks.
    """

    warehouse: str
    at: datetime
    release_id: str | None
    released_at: datetime | None
    verdict: str | None
    rollback: Hold | None
    sources: tuple[SourceCondition, ...]
    filesystems: tuple[FilesystemCondition, ...]
    waiting: tuple[datetime, ...]
    refused_inputs: tuple[RefusedInput, ...]
    refused_run: str | None
    held_by: Mapping[str, object] | None
    disk_total_bytes: int
    disk_free_bytes: int
    next_run_at: datetime


def read_condition(store: Store, settings: Settings, at: datetime | None = None) -> Condition:
    """Read the condition of a warehouse; at: reference time, default now."""
    at = at or datetime.now(UTC)
    landed, current = ledger.read(store), releases.current(store)
    space = shutil.disk_usage(store.root)
    refusal = f"{store.data_docs.name}/refused/index.html"
    published_ids, hold = releases.landings_in(store, current), holds.in_force(store)
    decided = pl.concat([published_ids, pl.Series(hold.landing_ids if hold else [], dtype=pl.String)])
    waiting = landed.in_force.filter(~pl.col("landing_id").is_in(decided.implode()))["landed_at"]
    return Condition(
        warehouse=store.address,
        at=at,
        release_id=current.release_id if current else None,
        released_at=datetime.fromisoformat(current.created_at) if current else None,
        verdict=current.verdict if current else None,
        rollback=hold,
        sources=tuple(sorted(_sources(landed), key=lambda source: source.table)),
        filesystems=tuple(_filesystems(store, current, settings.quality.max_missing_ratio)) if current else (),
        waiting=tuple(map(datetime.fromisoformat, waiting)),
        refused_inputs=tuple(_find_refusals(landed, at)),
        refused_run=f"{store.name}/{refusal}" if store.has(refusal) else None,
        held_by=holder(store),
        disk_total_bytes=space.total,
        disk_free_bytes=space.free,
        next_run_at=next_run(settings.schedule, at),
    )


def _find_refusals(landed: Ledger, at: datetime) -> Iterator[RefusedInput]:
    """Yield the inputs with refused rows within `REFUSED_FOR`, in chronological order."""
    since = (at - REFUSED_FOR).isoformat()
    refused = landed.in_force.filter((pl.col("refused_count") > 0) & (pl.col("landed_at") >= since))
    for landing in landed.objects(refused.tail(_MAX_REFUSED)):
        yield RefusedInput(
            landing.source_file, datetime.fromisoformat(landing.landed_at), landing.refused_count, landing.row_count()
        )


def next_run(schedule: ScheduleSettings, after: datetime) -> datetime:
    """Return the start of the next scheduled run, in UTC."""
    from cronsim import CronSim

    start: datetime = next(CronSim(schedule.cron, after.astimezone(ZoneInfo(schedule.time_zone))))
    return start.astimezone(UTC)


def _sources(landed: Ledger) -> Iterator[SourceCondition]:
    holding = landed.files.select("folder", "table").unique()
    # an unreadable file has rejects only
    is_data = pl.col("table") != REJECTS.name
    data, rejects = holding.filter(is_data), holding.filter(~is_data)
    kinds = pl.concat([data, rejects.join(data, on="folder", how="anti")])
    for (name,), landings in landed.in_force.join(kinds, on="folder").sort("sequence").group_by("table"):
        latest = landings.tail(_MAX_LANDINGS)
        yield SourceCondition(
            str(name),
            tuple(map(datetime.fromisoformat, latest["landed_at"])),
            tuple(latest["refused_count"]),
            tuple(latest["row_count"] + latest["refused_count"]),
        )


def _filesystems(store: Store, release: Release, max_missing_ratio: float) -> Iterator[FilesystemCondition]:
    query = """
        select
            filesystem,
            polled_on,
            coalesce(read_bytes, 0) + coalesce(written_bytes, 0) as moved,
            missing_ratio,
            coalesce(is_partial_day, false) as is_partial_day
        from polls_daily
        qualify row_number() over (partition by filesystem order by polled_on desc) <= $days
        order by filesystem, polled_on
    """
    if POLLS_DAILY.name not in release.snapshots:
        return
    with open_release(store, release, query) as connection:
        rows = connection.execute(query, {"days": _REFERENCE_DAYS + 1}).fetchall()
    newest = max((row[1] for row in rows), default=date.min)
    for name in dict.fromkeys(row[0] for row in rows):
        days = [row for row in rows if row[0] == name]
        whole_days = [row for row in days if not row[4]]
        *before, (_, last_day, moved, missing, is_partial_day) = whole_days or days
        yield FilesystemCondition(
            filesystem=name,
            last_day=last_day,
            bytes_moved=moved,
            typical_bytes=tuple(row[2] for row in before if not row[4]),
            missing_ratio=missing,
            is_partial_day=is_partial_day,
            incomplete_days=tuple(_incomplete({row[1]: row[3] for row in days}, newest, max_missing_ratio)),
        )


def _incomplete(
    missing_ratios: Mapping[date, float], newest: date, max_missing_ratio: float
) -> Iterator[IncompleteDay]:
    """Yield days with too many missing polls, including days without any poll.

    missing_ratios: of the days with polls. newest: newest day of any file system. A file system without polls for more
    than `_REFERENCE_DAYS` counts as retired.
    """
    first, last = min(missing_ratios), max(missing_ratios)
    end = max(last, newest - timedelta(days=1)) if newest - last <= timedelta(days=_REFERENCE_DAYS) else last
    for number in range((end - first).days + 1):
        day = first + timedelta(days=number)
        if (missing := missing_ratios.get(day, 1.0)) > max_missing_ratio:
            yield IncompleteDay(day, missing)
