"""`iosig forecast`: forecast the rate of a file system with its range, and collisions of bursts.

The page docs/forecast.md documents the fields of the JSON document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import numpy as np
from pydantic import Field

from iosig.answers.advice.landed import find_capacity, newest_poll
from iosig.answers.advice.query import resample_demand
from iosig.answers.advice.signatures import ReleaseSignatures
from iosig.answers.attribution.query import truncate_to_minute
from iosig.answers.documents import Document, Instant, instant_text
from iosig.answers.forecast.jobs import JobAhead, find_jobs_ahead, prepare_jobs
from iosig.answers.forecast.past import build_history, read_minutes
from iosig.estimates.staging import engine
from iosig.reports.forecast import DrawnCollision, ForecastView
from iosig.settings.model import Settings
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.demands import Demand, Demands
from iosig.transforms.forecast.forecasting import Forecast, forecast
from iosig.transforms.forecast.unknown_traffic import TrafficHistory
from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger
from iosig.warehouse.store.store import Store

DEFAULT_HOURS, MAX_HOURS, STEP_MINUTES = 6.0, 48.0, 10
_MAX_STEPS = 600
_NO_DEMAND = Demand(np.zeros(1), 1.0)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """File system, horizon and step of a forecast that begins at `at` (None: the last poll).

    what_if: a hypothetical job that would start now.
    """

    filesystem: str
    hours: float = DEFAULT_HOURS
    step_minutes: int = STEP_MINUTES
    at: datetime | None = None
    what_if: JobAhead | None = None

    @property
    def step_s(self) -> float:
        """Step length in seconds."""
        return 60.0 * self.step_minutes

    @property
    def horizon(self) -> int:
        """Number of steps, 1 or more; raises UsageError above `_MAX_STEPS`."""
        count = max(1, round(self.hours * 60 / self.step_minutes))
        if count > _MAX_STEPS:
            raise UsageError(f"{count:,} steps exceed the maximum of {_MAX_STEPS}: use longer steps with --step.")
        return count


@dataclass(frozen=True, slots=True)
class ForecastResult:
    """Result of a forecast, with the running and waiting jobs that it includes.

    at: start of the forecast. applications: names of the rows of `Forecast.applications_bytes_per_s`. jobs: all running
    and waiting jobs. without: the forecast without the hypothetical job, None if no job is hypothetical. past_days:
    length of the history. level_bytes_per_s: unattributed rate of the last hour, NaN if unknown.
    """

    query: Query
    at: datetime
    forecast: Forecast
    applications: tuple[str, ...]
    jobs: tuple[JobAhead, ...]
    without: Forecast | None
    capacity_bytes_per_s: float | None
    past_days: float
    level_bytes_per_s: float

    @property
    def edges(self) -> tuple[datetime, ...]:
        """Edges of the steps (steps + 1)."""
        return tuple(
            self.at + timedelta(seconds=self.forecast.step_s * number)
            for number in range(len(self.forecast.expected_bytes_per_s) + 1)
        )


def forecast_load(store: Store, release: Release, settings: Settings, query: Query) -> ForecastResult:
    """Forecast the load of a file system; raises NothingToDo if no polls have landed, or too few for the horizon."""
    horizon = query.horizon
    names = _filesystems(store, release, query.filesystem)
    with engine(settings) as connection:
        at = truncate_to_minute(query.at or newest_poll(store, connection, ledger.read(store)))
    minutes = read_minutes(store, release, settings, query.filesystem, at)
    past = build_history(minutes, at, query.step_s, horizon)
    if len(past.unattributed_bytes_per_s) < 2 * horizon:
        hours = len(past.unattributed_bytes_per_s) * past.step_s / 7200
        raise NothingToDo(
            f"{query.filesystem} has polls of {2 * hours:.1f} hours before {at:%Y-%m-%dT%H:%MZ}, which allow a "
            f"forecast of at most {hours:.1f} hours: reduce --hours, or land more polls."
        )
    signatures = ReleaseSignatures(store, release)
    jobs = find_jobs_ahead(store, settings, signatures, query.filesystem, names, at)
    level = float(past.mean_levels(3600.0)[-1])
    hour = at.hour + at.minute / 60
    capacity = find_capacity(store, release, settings.advice, query.filesystem)
    known_jobs = tuple(job for job in jobs if job.status == "known")
    inputs = _ForecastInputs(store, release, at, past, (level, hour), capacity)
    extra = () if query.what_if is None else (query.what_if,)
    applications, load = inputs.run((*known_jobs, *extra))
    without = inputs.run(known_jobs)[1] if extra else None
    days = len(past.unattributed_bytes_per_s) * past.step_s / 86_400
    return ForecastResult(query, at, load, applications, (*jobs, *extra), without, capacity, days, level)


@dataclass(frozen=True, slots=True)
class _ForecastInputs:
    """Inputs of a forecast that do not depend on the set of jobs."""

    store: Store
    release: Release
    at: datetime
    past: TrafficHistory
    now: tuple[float, float]
    capacity: float | None

    def run(self, jobs: Sequence[JobAhead]) -> tuple[tuple[str, ...], Forecast]:
        """Forecast the load with a set of jobs; returns the application names and the forecast."""
        names = tuple(sorted({_name(job) for job in jobs}))
        application: Ints = np.array([names.index(_name(job)) for job in jobs], np.int64)
        demands, demand = _deduplicate_demands(jobs)
        prepared = prepare_jobs(self.store, self.release, jobs, demand, demands.duration_s, self.at)
        capacity = np.inf if self.capacity is None else self.capacity
        return names, forecast(demands, prepared, application, self.past, self.now, capacity)


def _deduplicate_demands(jobs: Sequence[JobAhead]) -> tuple[Demands, Ints]:
    """Return the distinct demands of jobs, and each job's index into them; a zero demand if there are no jobs."""
    rates = {id(job.signature): job.signature.rates for job in jobs if job.signature is not None}
    places = {key: place for place, key in enumerate(rates)}
    demand: Ints = np.array([places[id(job.signature)] for job in jobs], np.int64)
    return Demands.from_list(
        [resample_demand(signature_rates) for signature_rates in rates.values()] or [_NO_DEMAND]
    ), demand


def _name(job: JobAhead) -> str:
    return job.application_id or job.name


def _filesystems(store: Store, release: Release, filesystem: str) -> list[str]:
    """Return the file systems with polls; raises UsageError if `filesystem` has none."""
    with open_release(store, release, "filesystem_rates") as connection:
        names = [
            name
            for (name,) in connection.sql("select distinct filesystem from filesystem_rates order by all").fetchall()
        ]
    if filesystem not in names:
        available = ", ".join(names) or "none"
        raise UsageError(f"The release has no polls of file system {filesystem!r}, only of: {available}.")
    return names


# ---- as JSON


class ForecastDocument(Document, title="iosig forecast"):
    """Expected rate of a file system, and collisions of bursts."""

    format: Literal["iosig-forecast/1"] = "iosig-forecast/1"
    release_id: str = Field(description="the release")
    filesystem: str = Field(description="the file system")
    at: Instant = Field(description="start of the forecast [UTC]")
    step_s: float = Field(description="the step of time [s]")
    past_days: float = Field(description="length of the history [d]")
    capacity_bytes_per_s: float | None = Field(description="capacity of the file system [B/s]")
    unattributed_bytes_per_s: float | None = Field(description="unattributed rate of the last hour [B/s]")
    steps: list[Any] = Field(description="expected rates: see [the page](forecast.md#as-json)")
    collisions: list[Any] = Field(description="hours with overlapping bursts: see [the page](forecast.md#as-json)")
    jobs: list[Any] = Field(description="running and waiting jobs: see [the page](forecast.md#as-json)")


def build_document(result: ForecastResult, release_id: str) -> ForecastDocument:
    """Build the JSON document of a forecast."""
    load, edges = result.forecast, result.edges
    return ForecastDocument(
        release_id=release_id,
        filesystem=result.query.filesystem,
        at=instant_text(result.at),
        step_s=load.step_s,
        past_days=result.past_days,
        capacity_bytes_per_s=result.capacity_bytes_per_s,
        unattributed_bytes_per_s=None if np.isnan(result.level_bytes_per_s) else result.level_bytes_per_s,
        steps=[
            {
                "from": instant_text(edges[place]),
                "until": instant_text(edges[place + 1]),
                **{name: float(values[place]) for name, values in _lines(result).items()},
                "applications": _shares(result, load.applications_bytes_per_s[:, place]),
            }
            for place in range(len(edges) - 1)
        ],
        collisions=list_collisions(result),
        jobs=[_job(job) for job in result.jobs],
    )


def _lines(result: ForecastResult) -> dict[str, Reals]:
    """Return the time series of a forecast, keyed by their JSON names."""
    load = result.forecast
    lines = {
        "expected_bytes_per_s": load.expected_bytes_per_s,
        "low_bytes_per_s": load.low_bytes_per_s,
        "high_bytes_per_s": load.high_bytes_per_s,
        "unknown_bytes_per_s": load.unknown_bytes_per_s,
    }
    if result.without is not None:
        lines["added_bytes_per_s"] = load.expected_bytes_per_s - result.without.expected_bytes_per_s
    return lines


def _shares(result: ForecastResult, rates: Reals) -> dict[str, float]:
    return {name: float(rate) for name, rate in zip(result.applications, rates, strict=True) if rate > 0}


def list_collisions(result: ForecastResult) -> list[Row]:
    """Return overlapping bursts as rows, by decreasing overlap volume."""
    overlaps = result.forecast.collisions
    hours = [result.at + timedelta(hours=int(stretch)) for stretch in overlaps.interval]
    rows = zip(hours, overlaps.first, overlaps.second, overlaps.overlap_s, overlaps.overlap_bytes, strict=True)
    return [
        {
            "from": instant_text(hour),
            "until": instant_text(hour + timedelta(hours=1)),
            "first_application": result.applications[first],
            "second_application": result.applications[second],
            "meeting_s": float(seconds),
            "meeting_bytes": float(volume),
        }
        for hour, first, second, seconds, volume in rows
    ]


def count_jobs(result: ForecastResult) -> dict[str, int]:
    """Count the running and waiting jobs, and the jobs of each status."""
    jobs = result.jobs if result.query.what_if is None else result.jobs[:-1]
    statuses = Counter(job.status for job in jobs)
    running = sum(job.elapsed_s is not None for job in jobs)
    by_activity = {"running": running, "waiting": len(jobs) - running}
    return by_activity | {status: statuses[status] for status in ("known", "unknown", "held")}


def _job(job: JobAhead) -> Row:
    return {
        "job_id": job.name,
        "application_id": job.application_id,
        "status": job.status,
        "elapsed_s": job.elapsed_s,
        "waited_s": job.waited_s if job.elapsed_s is None else None,
    }


# ---- as a figure

#: maximum number of collisions that the figure labels
_MAX_COLLISIONS = 4


def build_view(result: ForecastResult) -> ForecastView:
    """Build the figure data of a forecast."""
    load = result.forecast
    meetings = zip(load.collisions.interval, list_collisions(result), strict=True)
    return ForecastView(
        filesystem=result.query.filesystem,
        at=f"{result.at:%Y-%m-%d %H:%M} UTC",
        step_s=load.step_s,
        expected_bytes_per_s=load.expected_bytes_per_s,
        low_bytes_per_s=load.low_bytes_per_s,
        high_bytes_per_s=load.high_bytes_per_s,
        unknown_bytes_per_s=load.unknown_bytes_per_s,
        layers=tuple(zip(result.applications, load.applications_bytes_per_s, strict=True)),
        without_bytes_per_s=None if result.without is None else result.without.expected_bytes_per_s,
        capacity_bytes_per_s=result.capacity_bytes_per_s,
        collisions=tuple(
            DrawnCollision(float(hour) * 3600.0, row["first_application"], row["second_application"])
            for hour, row in list(meetings)[:_MAX_COLLISIONS]
        ),
    )
