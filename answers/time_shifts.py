"""Warn of job logs and polls whose times differ by whole hours, usually because of a wrong time zone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from iosig.estimates import staging
from iosig.estimates.columns import epoch_s, floats
from iosig.settings.model import Settings
from iosig.transforms.time_shifts import TimeShift, TimeShiftParams, find_time_shift
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.printable import one_line
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store import ledger, models
from iosig.warehouse.store.ledger import Ledger
from iosig.warehouse.store.manifests import Landing

if TYPE_CHECKING:
    import duckdb

    from iosig.warehouse.releases.releases import Release
    from iosig.warehouse.store.store import Store

#: maximum number of days, the latest ones, that one call checks, to bound its run time
_MAX_DAYS = 7
#: maximum number of job log landings that are searched for a day's time zone
_MAX_JOB_LOGS = 50
_DAY_MINUTES = 24 * 60
_PARAMS = TimeShiftParams()
_MARGIN = timedelta(hours=_PARAMS.max_shift_h + 1)
#: example time zones; those with the same UTC offset are in order of likelihood
_ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Chicago", "America/Denver",
    "America/Los_Angeles", "Asia/Tokyo", "Asia/Shanghai", "Europe/Helsinki", "Europe/Moscow", "Australia/Sydney",
    "America/Anchorage", "Pacific/Honolulu", "America/Halifax", "America/Sao_Paulo", "Asia/Dubai", "Asia/Karachi",
    "Asia/Dhaka", "Asia/Bangkok", "Australia/Brisbane", "Pacific/Noumea", "Pacific/Auckland", "Atlantic/Azores",
    "Atlantic/South_Georgia", "Pacific/Pago_Pago", "Etc/GMT+12", "Pacific/Kiritimati",
)  # fmt: skip

_MINUTES_OF_POLLS = """
    select
        filesystem,
        (epoch_us(polled_at) - 1) // 60000000 as minute,
        sum(interval_s * (coalesce(read_bytes_per_s, 0) + coalesce(write_bytes_per_s, 0))) as moved_bytes
    from landed.polls
    where coalesce(read_bytes_per_s, write_bytes_per_s) is not null
    group by all
"""
_MINUTES_OF_TICKS = """
    select
        filesystem,
        (epoch_us(polled_at) - 1) // 60000000 as minute,
        sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) as moved_bytes
    from filesystem_rates
    where list_contains($days::date[], polled_on)
    group by all
"""
_NEAR_JOBS = "started_at <= $until and ended_at >= $since"


@dataclass(frozen=True, slots=True)
class _Zones:
    """Time zones in which the times of jobs and polls of a day were read; None if they were not local."""

    jobs: str | None
    polls: str | None


def check_landings(store: Store, settings: Settings, landings: Iterable[Landing]) -> list[str]:
    """Check the days of new landings that have both jobs and polls; returns one message per finding."""
    new = [landing for landing in landings if {part.table for part in landing.parts} & {JOB_RECORDS.name, POLLS.name}]
    if not new:
        return []
    landed = ledger.read(store)
    polled = set(landed.parts(POLLS, landed.in_force, pl.col("row_count") > 0)["day"])
    days = sorted(polled & {day for landing in new for day in _list_days(landing)})[-_MAX_DAYS:]
    if not days or landed.parts(JOB_RECORDS, landed.in_force).is_empty():
        return []
    with staging.engine(settings, store.builds / "spill") as connection:
        files = landed.parts(POLLS, landed.in_force, pl.col("day").is_in(days))
        models.expose_files(store, connection, POLLS, files)
        minutes = connection.sql(_MINUTES_OF_POLLS).pl()
        jobs = _stage_jobs(store, connection, landed, settings, days)
    return [*_warnings(landed, settings, days, minutes, jobs)]


def check_release(store: Store, settings: Settings, release: Release) -> list[str]:
    """Check the new days of a release; returns one message per finding."""
    days = sorted(date.fromisoformat(day) for day in release.dates if day)[-_MAX_DAYS:]
    if not days:
        return []
    query = f"from jobs select * where is_application_run and {_NEAR_JOBS}"
    with open_release(store, release, "jobs filesystem_rates") as connection:
        minutes = connection.sql(_MINUTES_OF_TICKS, params={"days": days}).pl()
        jobs = connection.sql(query, params=_window(days)).pl()
    return [*_warnings(ledger.read(store), settings, days, minutes, jobs)]


def _list_days(landing: Landing) -> Iterator[date]:
    """Yield the days of a landing's polls, and the days that its job log covers."""
    yield from (date.fromisoformat(part.day) for part in landing.parts if part.table == POLLS.name and part.day)
    has_jobs = any(part.table == JOB_RECORDS.name for part in landing.parts)
    if has_jobs and landing.first_at and landing.last_at:
        first, last = (datetime.fromisoformat(at).date() for at in (landing.first_at, landing.last_at))
        first = max(first, last - timedelta(days=_MAX_DAYS))
        yield from (first + timedelta(days=number) for number in range(-1, (last - first).days + 2))


def _window(days: Sequence[date]) -> dict[str, datetime]:
    since, until = (datetime.combine(day, time(), UTC) for day in (days[0], days[-1] + timedelta(days=1)))
    return {"since": since - _MARGIN, "until": until + _MARGIN}


def _stage_jobs(
    store: Store, connection: duckdb.DuckDBPyConnection, landed: Ledger, settings: Settings, days: Sequence[date]
) -> pl.DataFrame:
    """Stage the application runs near some days, as in the nightly flow."""
    models.expose_files(store, connection, JOB_RECORDS, landed.parts(JOB_RECORDS, landed.in_force))
    query = f"from landed.job_records select * where {_NEAR_JOBS}"
    records = connection.sql(query, params=_window(days)).pl()
    return staging.stage_jobs(connection, settings, records).filter("is_application_run")


def _warnings(
    landed: Ledger, settings: Settings, days: Sequence[date], minutes: pl.DataFrame, jobs: pl.DataFrame
) -> Iterator[str]:
    """Yield one message per file system and finding, with the affected days."""
    jobs = jobs.filter(pl.col("ended_at") >= pl.col("started_at"))
    for (filesystem,), filesystem_minutes in minutes.partition_by(
        "filesystem", as_dict=True, include_key=False
    ).items():
        runs = jobs.filter(_uses(str(filesystem), settings))
        shifted_days: dict[tuple[str, int | None], list[date]] = {}
        for day in days:
            shift = _shift_on(day, filesystem_minutes, runs)
            if shift is not None and shift.outcome in ("shifted", "no_overlap"):
                shifted_days.setdefault((shift.outcome, shift.shift_h), []).append(day)
        for (_, shift_h), shifted in shifted_days.items():
            yield _format_warning(str(filesystem), shifted, shift_h, _zones_on(landed, shifted[-1]))


def _uses(filesystem: str, settings: Settings) -> pl.Expr:
    """Return an expression for whether a run may have used a file system, by the log, else its partition, else true."""
    partitions = [name for name, filesystems in settings.partitions.items() if filesystem in filesystems]
    partition = pl.col("partition").fill_null("")
    by_partition = partition.is_in(partitions) | ~partition.is_in(list(settings.partitions))
    return pl.col("filesystem").eq(filesystem).fill_null(by_partition)


def _shift_on(day: date, minutes: pl.DataFrame, runs: pl.DataFrame) -> TimeShift | None:
    """Estimate the time shift of a day; None if it has no polls."""
    first_s = datetime.combine(day, time(), UTC).timestamp()
    place = minutes["minute"].to_numpy() - int(first_s) // 60
    is_own = (place >= 0) & (place < _DAY_MINUTES)
    if not is_own.any():
        return None
    volumes = np.full(_DAY_MINUTES, np.nan)
    volumes[place[is_own]] = floats(minutes["moved_bytes"])[is_own]
    return find_time_shift(epoch_s(runs["started_at"]), epoch_s(runs["ended_at"]), volumes, first_s, _PARAMS)


def _zones_on(landed: Ledger, day: date) -> _Zones:
    """Return the time zones of a day's latest landings of jobs and polls."""
    logs = landed.objects(landed.having([JOB_RECORDS]).tail(_MAX_JOB_LOGS))
    jobs = [log.time_zone for log in logs if log.first_at and log.last_at and _spans(log, day)]
    polls = [landing.time_zone for landing in landed.objects(landed.having([POLLS], pl.col("day") == day))]
    return _Zones(jobs[-1] if jobs else None, polls[-1] if polls else None)


def _spans(log: Landing, day: date) -> bool:
    first, last = (datetime.fromisoformat(at or "").date() for at in (log.first_at, log.last_at))
    return first - timedelta(days=1) <= day <= last + timedelta(days=1)


def _format_warning(filesystem: str, days: Sequence[date], shift_h: int | None, zones: _Zones) -> str:
    """Format a finding with the likely time zone and the remedy."""
    name = one_line(filesystem)
    days_text = f"{days[0]}" if len(days) == 1 else f"{len(days)} days from {days[0]} to {days[-1]}"
    if shift_h is None:
        return (
            f"{name}, {days_text}: jobs and polls hardly overlap in time. Check the time zones of both, "
            "and land the wrong files again with --replace --time-zone."
        )
    hours = f"{abs(shift_h)} {'hour' if abs(shift_h) == 1 else 'hours'}"
    is_of_polls = zones.jobs is None and zones.polls is not None
    # only local times can have been read in a wrong zone
    subject, zone = ("polls", zones.polls) if is_of_polls else ("jobs", zones.jobs)
    early_h = -shift_h if is_of_polls else shift_h
    offset_h = _utc_offset_h(zone or "UTC", days[-1]) - early_h
    read = f", read as {zone}," if zone else ""
    likely = _zone_with(offset_h, days[-1])
    return (
        f"{name}, {days_text}: the times of {subject}{read} look {hours} {'early' if early_h > 0 else 'late'}. "
        f"Is their time zone {_zone_text(offset_h, likely)}? Then land the file again with "
        f"--replace --time-zone{f' {likely}' if likely else ''}."
    )


def _utc_offset_h(zone: str, day: date) -> float:
    """Return the UTC offset of a time zone at noon of a day [h]; 0 for a list of zones."""
    if ", " in zone:
        return 0.0
    offset = datetime.combine(day, time(12), ZoneInfo(zone)).utcoffset()
    return 0.0 if offset is None else offset.total_seconds() / 3600


def _zone_with(offset_h: float, day: date) -> str | None:
    """Return the most likely IANA time zone with a UTC offset on a day; None without a match."""
    return next((zone for zone in _ZONES if _utc_offset_h(zone, day) == offset_h), None)


def _zone_text(offset_h: float, zone: str | None) -> str:
    """Format a UTC offset, with the name of a time zone if known."""
    if zone == "UTC":
        return zone
    offset = f"UTC{offset_h:+g}"
    return f"{zone} ({offset})" if zone else offset
