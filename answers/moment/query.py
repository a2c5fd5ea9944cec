"""Collect the current state of a site for the live view: rates, their jobs, forecasts and problems.

The data of file systems are cached until new inputs land; until then, only the displayed ages are updated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from iosig.answers.advice.inputs import FilesystemState
from iosig.answers.advice.landed import site_state
from iosig.answers.advice.signatures import ReleaseSignatures
from iosig.answers.attribution.landed import LandedTraffic
from iosig.answers.attribution.query import TABLES, Answer, Query, who
from iosig.answers.forecast import query as forecast
from iosig.answers.moment.bursts import Burst, predict_bursts, read_predictions
from iosig.answers.status.condition import Condition, read_condition
from iosig.answers.status.problems import Problem, find_problems
from iosig.estimates.columns import epoch_s
from iosig.settings.model import Settings
from iosig.warehouse.errors import IosigError, NothingToDo
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger
from iosig.warehouse.store.store import Store

#: length of the rate curves [min]
#: length of the attribution of recent bytes [min]
MINUTES, RECENT_MINUTES = 60, 10
#: horizon of the outlook [h]
HOURS_AHEAD = 1.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """Expected rate in each step of the next hour, with its range [B/s] (k steps each)."""

    step_s: float
    expected_bytes_per_s: tuple[float, ...]
    low_bytes_per_s: tuple[float, ...]
    high_bytes_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FilesystemMoment:
    """State of a file system at its last poll.

    bytes_per_s: mean rate of each of the last minutes by direction, None if not polled. recent: attribution of the last
    minutes, None if they have no complete polls. bursts: the next bursts. outlook: None with a reason in
    no_outlook_reason.
    """

    filesystem: str
    polled_at: datetime
    bytes_per_s: Mapping[str, tuple[float | None, ...]]
    recent: Answer | None
    bursts: tuple[Burst, ...]
    outlook: Outlook | None
    no_outlook_reason: str | None


@dataclass(frozen=True, slots=True)
class Moment:
    """Condition, problems and file systems of a warehouse at one instant, most recently polled file systems first."""

    condition: Condition
    problems: tuple[Problem, ...]
    filesystems: tuple[FilesystemMoment, ...]

    @property
    def at(self) -> datetime:
        """Reference time of all ages in the snapshot."""
        return self.condition.at


class LiveView:
    """Takes snapshots of a warehouse, and caches the data of file systems until new inputs land."""

    def __init__(self, store: Store, settings: Settings) -> None:
        """Create a view with an empty cache."""
        self._store, self._settings = store, settings
        self._cache: tuple[object, tuple[FilesystemMoment, ...]] | None = None

    def take_snapshot(self, at: datetime) -> Moment:
        """Return the condition, the problems and the file systems at an instant."""
        condition = read_condition(self._store, self._settings, at)
        problems = find_problems(condition, self._settings.alerts)
        return Moment(condition, tuple(problems), self._filesystems(at))

    def _filesystems(self, at: datetime) -> tuple[FilesystemMoment, ...]:
        landings = ledger.read(self._store).landings
        release = releases.current(self._store)
        journal = self._store.journal
        written = journal.stat().st_mtime_ns if journal.is_file() else None
        # the maximum sequence changes with each landing, the count also when one is forgotten
        cache_key = (landings["sequence"].max(), landings.height, release.release_id if release else None, written)
        if self._cache is None or self._cache[0] != cache_key:
            self._cache = cache_key, self._read_filesystems(release, at)
        return self._cache[1]

    def _read_filesystems(self, release: Release | None, at: datetime) -> tuple[FilesystemMoment, ...]:
        try:
            # the state is that of the newest poll, since the job log may be newer, and poll clocks may be ahead of `at`
            state = site_state(self._store, release, self._settings, ReleaseSignatures(self._store, release), None)
        except NothingToDo:
            return ()
        states = {item.filesystem: item for item in state.filesystems}
        names = [*states, *(item.filesystem for item in state.excluded)]
        followed = read_predictions(self._store, at)
        views = (self._filesystem(release, name, state.at, states.get(name), followed.get(name, [])) for name in names)
        known_views = [view for view in views if view is not None]
        return tuple(sorted(known_views, key=lambda item: (-item.polled_at.timestamp(), item.filesystem)))

    def _filesystem(
        self,
        release: Release | None,
        name: str,
        newest: datetime,
        state: FilesystemState | None,
        followed: Sequence[Burst],
    ) -> FilesystemMoment | None:
        polled_at = state.load.measured_until if state is not None and state.load is not None else None
        # exclude the current minute: its polls are incomplete
        until = (polled_at or newest).replace(second=0, microsecond=0)
        query = Query(name, until - timedelta(minutes=MINUTES), until)
        try:
            traffic = LandedTraffic.read(self._store, release, self._settings, query)
        except NothingToDo:
            return None
        outlook, reason = self._outlook(release, name, until)
        return FilesystemMoment(
            name,
            polled_at or datetime.fromtimestamp(float(epoch_s(traffic.filesystem_rates["polled_at"])[-1]), UTC),
            _curves(traffic.filesystem_rates, until),
            _attribute_recent(traffic, name, until),
            tuple(_merge_bursts(followed, predict_bursts(state.running if state else (), newest))),
            outlook,
            reason,
        )

    def _outlook(self, release: Release | None, name: str, at: datetime) -> tuple[Outlook | None, str | None]:
        if release is None:
            return None, "No release exists yet."
        try:
            query = forecast.Query(name, HOURS_AHEAD, at=at)
            load = forecast.forecast_load(self._store, release, self._settings, query).forecast
        except IosigError as fault:
            return None, str(fault)
        lines = (load.expected_bytes_per_s, load.low_bytes_per_s, load.high_bytes_per_s)
        return Outlook(load.step_s, *(tuple(map(float, line)) for line in lines)), None


def _merge_bursts(followed: Sequence[Burst], predicted: Sequence[Burst]) -> list[Burst]:
    """Merge bursts in chronological order; a job's prediction takes precedence over its signature."""
    followed_ids = {burst.job_id for burst in followed}
    merged = [*followed, *(burst for burst in predicted if burst.job_id not in followed_ids)]
    return sorted(merged, key=lambda burst: (burst.starts_at, burst.job_id))


def _curves(ticks: pl.DataFrame, until: datetime) -> dict[str, tuple[float | None, ...]]:
    """Return the mean rate of each of the last minutes by direction, None if not polled."""
    # polled_at is the right edge of an interval
    ago = (pl.lit(until) - pl.col("polled_at")).dt.total_microseconds() / 60e6
    rows = ticks.with_columns(place=MINUTES - 1 - ago.floor().cast(pl.Int64))
    rows = rows.filter(pl.col("place").is_between(0, MINUTES - 1))
    return {
        direction: _means(rows["place"].to_numpy(), rows.select(column, "interval_s").cast(pl.Float64))
        for direction, column in (("read", "read_bytes"), ("write", "written_bytes"))
    }


def _means(places: Any, rows: pl.DataFrame) -> tuple[float | None, ...]:
    volume, interval_s = (rows.to_series(number).to_numpy() for number in range(2))
    is_known = np.isfinite(volume)
    sums, covered_s = (np.bincount(places[is_known], values[is_known], MINUTES) for values in (volume, interval_s))
    return tuple(
        float(total / seconds) if seconds > 0 else None for total, seconds in zip(sums, covered_s, strict=True)
    )


def _attribute_recent(traffic: LandedTraffic, name: str, until: datetime) -> Answer | None:
    try:
        with traffic.open(TABLES) as connection:
            return who(connection, Query(name, until - timedelta(minutes=RECENT_MINUTES), until), is_landed=True)
    except NothingToDo:
        return None
