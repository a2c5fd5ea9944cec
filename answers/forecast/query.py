"""`iosig forecast`: the rate that is to be expected of a file system, its range, and where bursts meet.

The page docs/forecast.md is the promise to readers of the JSON document, and names its fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import numpy as np
from pydantic import Field

from iosig.answers.advice.landed import capacity_of, newest_poll
from iosig.answers.advice.query import demand_of
from iosig.answers.advice.signatures import ReleaseSignatures
from iosig.answers.attribution.query import minute_of
from iosig.answers.documents import Document, Instant, instant_text
from iosig.answers.forecast.jobs import JobAhead, coming, jobs_ahead
from iosig.answers.forecast.past import minutes_of, past_of
from iosig.estimates.staging import engine
from iosig.reports.forecast import DrawnCollision, ForecastView
from iosig.settings.model import Settings
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.demands import Demand, Demands
from iosig.transforms.forecast.forecasting import Forecast, forecast
from iosig.transforms.forecast.unknown_traffic import TrafficHistory
from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger
from iosig.warehouse.store.store import Store

DEFAULT_HOURS, MOST_HOURS, STEP_MINUTES = 6.0, 48.0, 10
_MOST_STEPS = 600
_NO_DEMAND = Demand(np.zeros(1), 1.0)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: a file system, how many hours, in steps of how many minutes, from when on (None: the last poll).

    what_if: a job that would start now, which does not run.
    """

    filesystem: str
    hours: float = DEFAULT_HOURS
    step_minutes: int = STEP_MINUTES
    at: datetime | None = None
    what_if: JobAhead | None = None

    @property
    def step_s(self) -> float:
        """How long a step is."""
        return 60.0 * self.step_minutes

    @property
    def horizon(self) -> int:
        """How many steps there are, one at least; UsageError where these are too many."""
        count = max(1, round(self.hours * 60 / self.step_minutes))
        if count > _MOST_STEPS:
            raise UsageError(f"{count:,} steps are more than {_MOST_STEPS}: ask for longer ones with --step.")
        return count


@dataclass(frozen=True, slots=True)
class Told:
    """A forecast, and what it rests on.

    at: the minute from which on it tells. applications: those of `Forecast.applications_bytes_per_s`. jobs: all that
    run and wait. added: the same forecast without what is asked about, None where nothing is. past_days: how long the
    past is that it knows; level_bytes_per_s: what was unexplained in the last hour, NaN where that is not known.
    """

    asked: Asked
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
        """When each step begins, and when the last one ends."""
        return tuple(
            self.at + timedelta(seconds=self.forecast.step_s * number)
            for number in range(len(self.forecast.expected_bytes_per_s) + 1)
        )


def told(store: Store, release: Release, settings: Settings, asked: Asked) -> Told:
    """Return what is to come; NothingToDo where no polls landed, or too few to tell what always comes."""
    horizon = asked.horizon
    names = _filesystems(store, release, asked.filesystem)
    with engine(settings) as connection:
        at = minute_of(asked.at or newest_poll(store, connection, ledger.read(store)))
    minutes = minutes_of(store, release, settings, asked.filesystem, at)
    past = past_of(minutes, at, asked.step_s, horizon)
    if len(past.unattributed_bytes_per_s) < 2 * horizon:
        hours = len(past.unattributed_bytes_per_s) * past.step_s / 7200
        raise NothingToDo(
            f"There are polls of {asked.filesystem} of {2 * hours:.1f} hours before {at:%Y-%m-%dT%H:%MZ}, which tell "
            f"of {hours:.1f} hours to come at most: ask for less with --hours, or land more polls."
        )
    signatures = ReleaseSignatures(store, release)
    ahead = jobs_ahead(store, settings, signatures, asked.filesystem, names, at)
    level = float(past.mean_levels(3600.0)[-1])
    hour = at.hour + at.minute / 60
    capacity = capacity_of(store, release, settings.advice, asked.filesystem)
    known = tuple(job for job in ahead if job.status == "known")
    one = _Asking(store, release, at, past, (level, hour), capacity)
    extra = () if asked.what_if is None else (asked.what_if,)
    applications, found = one.of((*known, *extra))
    without = one.of(known)[1] if extra else None
    days = len(past.unattributed_bytes_per_s) * past.step_s / 86_400
    return Told(asked, at, found, applications, (*ahead, *extra), without, capacity, days, level)


@dataclass(frozen=True, slots=True)
class _Asking:
    """What a forecast of any jobs rests on."""

    store: Store
    release: Release
    at: datetime
    past: TrafficHistory
    now: tuple[float, float]
    capacity: float | None

    def of(self, jobs: Sequence[JobAhead]) -> tuple[tuple[str, ...], Forecast]:
        """Return a forecast with some jobs, and the applications that it tells of."""
        names = tuple(sorted({_name(job) for job in jobs}))
        application: Ints = np.array([names.index(_name(job)) for job in jobs], np.int64)
        demands, demand = _demands(jobs)
        ahead = coming(self.store, self.release, jobs, demand, demands.duration_s, self.at)
        capacity = np.inf if self.capacity is None else self.capacity
        return names, forecast(demands, ahead, application, self.past, self.now, capacity)


def _demands(jobs: Sequence[JobAhead]) -> tuple[Demands, Ints]:
    """Return the demands of jobs, each once, and which one each job makes; one of nothing where there is no job."""
    rates = {id(job.signature): job.signature.rates for job in jobs if job.signature is not None}
    places = {key: place for place, key in enumerate(rates)}
    demand: Ints = np.array([places[id(job.signature)] for job in jobs], np.int64)
    return Demands.from_list([demand_of(one) for one in rates.values()] or [_NO_DEMAND]), demand


def _name(job: JobAhead) -> str:
    return job.application_id or job.name


def _filesystems(store: Store, release: Release, filesystem: str) -> list[str]:
    """Return the file systems that were polled; UsageError where this one is none of them."""
    with opened(store, release, "filesystem_rates") as connection:
        names = [
            name
            for (name,) in connection.sql("select distinct filesystem from filesystem_rates order by all").fetchall()
        ]
    if filesystem not in names:
        known = ", ".join(names) or "none"
        raise UsageError(f"No file system {filesystem!r} was polled; the release has polls of: {known}.")
    return names


# ---- as JSON


class ForecastDocument(Document, title="iosig forecast"):
    """The rate to come, and where bursts meet."""

    format: Literal["iosig-forecast/1"] = "iosig-forecast/1"
    release_id: str = Field(description="the release")
    filesystem: str = Field(description="the file system")
    at: Instant = Field(description="from then on [UTC]")
    step_s: float = Field(description="the step of time [s]")
    past_days: float = Field(description="how much of the past is known [d]")
    capacity_bytes_per_s: float | None = Field(description="what it can move at most [B/s]")
    unattributed_bytes_per_s: float | None = Field(description="what nobody explained in the last hour [B/s]")
    steps: list[Any] = Field(description="rates to come: see [the page](forecast.md#as-json)")
    collisions: list[Any] = Field(description="hours in which bursts meet: see [the page](forecast.md#as-json)")
    jobs: list[Any] = Field(description="jobs that run and wait: see [the page](forecast.md#as-json)")


def document(of: Told, release_id: str) -> ForecastDocument:
    """Return a forecast for programs."""
    found, edges = of.forecast, of.edges
    return ForecastDocument(
        release_id=release_id,
        filesystem=of.asked.filesystem,
        at=instant_text(of.at),
        step_s=found.step_s,
        past_days=of.past_days,
        capacity_bytes_per_s=of.capacity_bytes_per_s,
        unattributed_bytes_per_s=None if np.isnan(of.level_bytes_per_s) else of.level_bytes_per_s,
        steps=[
            {
                "from": instant_text(edges[place]),
                "until": instant_text(edges[place + 1]),
                **{name: float(values[place]) for name, values in _lines(of).items()},
                "applications": _shares(of, found.applications_bytes_per_s[:, place]),
            }
            for place in range(len(edges) - 1)
        ],
        collisions=collisions(of),
        jobs=[_job(job) for job in of.jobs],
    )


def _lines(of: Told) -> dict[str, Reals]:
    """Return the rates that a forecast has, by name."""
    found = of.forecast
    lines = {
        "expected_bytes_per_s": found.expected_bytes_per_s,
        "low_bytes_per_s": found.low_bytes_per_s,
        "high_bytes_per_s": found.high_bytes_per_s,
        "unknown_bytes_per_s": found.unknown_bytes_per_s,
    }
    if of.without is not None:
        lines["added_bytes_per_s"] = found.expected_bytes_per_s - of.without.expected_bytes_per_s
    return lines


def _shares(of: Told, rates: Reals) -> dict[str, float]:
    return {name: float(rate) for name, rate in zip(of.applications, rates, strict=True) if rate > 0}


def collisions(of: Told) -> list[Row]:
    """Return where bursts meet, those that move most first."""
    found = of.forecast.collisions
    hours = [of.at + timedelta(hours=int(stretch)) for stretch in found.interval]
    rows = zip(hours, found.first, found.second, found.overlap_s, found.overlap_bytes, strict=True)
    return [
        {
            "from": instant_text(hour),
            "until": instant_text(hour + timedelta(hours=1)),
            "first_application": of.applications[first],
            "second_application": of.applications[second],
            "meeting_s": float(seconds),
            "meeting_bytes": float(volume),
        }
        for hour, first, second, seconds, volume in rows
    ]


def counts(of: Told) -> dict[str, int]:
    """Return how many jobs run, wait, and of how many of them what is known."""
    asked = of.jobs if of.asked.what_if is None else of.jobs[:-1]
    statuses = Counter(job.status for job in asked)
    running = sum(job.elapsed_s is not None for job in asked)
    told = {"running": running, "waiting": len(asked) - running}
    return told | {status: statuses[status] for status in ("known", "unknown", "held")}


def _job(job: JobAhead) -> Row:
    return {
        "job_id": job.name,
        "application_id": job.application_id,
        "status": job.status,
        "elapsed_s": job.elapsed_s,
        "waited_s": job.waited_s if job.elapsed_s is None else None,
    }


# ---- as a picture

#: so many pairs of applications are named
_MOST_COLLISIONS = 4


def view_of(told: Told) -> ForecastView:
    """Return what there is to see."""
    found = told.forecast
    meetings = zip(found.collisions.interval, collisions(told), strict=True)
    return ForecastView(
        filesystem=told.asked.filesystem,
        at=f"{told.at:%Y-%m-%d %H:%M} UTC",
        step_s=found.step_s,
        expected_bytes_per_s=found.expected_bytes_per_s,
        low_bytes_per_s=found.low_bytes_per_s,
        high_bytes_per_s=found.high_bytes_per_s,
        unknown_bytes_per_s=found.unknown_bytes_per_s,
        layers=tuple(zip(told.applications, found.applications_bytes_per_s, strict=True)),
        without_bytes_per_s=None if told.without is None else told.without.expected_bytes_per_s,
        capacity_bytes_per_s=told.capacity_bytes_per_s,
        collisions=tuple(
            DrawnCollision(float(hour) * 3600.0, row["first_application"], row["second_application"])
            for hour, row in list(meetings)[:_MOST_COLLISIONS]
        ),
    )
