"""What there is to see of a warehouse at a moment, looked at again and again.

What landed is looked at once: as long as nothing more lands, only ages grow.
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
from iosig.answers.moment.bursts import Burst, coming_bursts, followed_bursts
from iosig.answers.status.condition import Condition, condition_of
from iosig.answers.status.problems import Problem, problems_of
from iosig.estimates.columns import epoch_s
from iosig.settings.model import Settings
from iosig.warehouse.errors import IosigError, NothingToDo
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger
from iosig.warehouse.store.store import Store

#: minutes of the curves, and of those who moved the bytes of late
MINUTES, OF_LATE_MINUTES = 60, 10
#: so far ahead
HOURS_AHEAD = 1.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """What rate is to be expected in the steps of the hour to come [B/s], and within which range (k each)."""

    step_s: float
    expected_bytes_per_s: tuple[float, ...]
    low_bytes_per_s: tuple[float, ...]
    high_bytes_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FilesystemMoment:
    """A file system at its last poll.

    bytes_per_s: by direction, of each of the last minutes, None where nothing was polled. of_late: who moved what in
    the last minutes, None where no polls are whole. bursts: those to come. outlook: None where there is none, and why.
    """

    filesystem: str
    polled_at: datetime
    bytes_per_s: Mapping[str, tuple[float | None, ...]]
    of_late: Answer | None
    bursts: tuple[Burst, ...]
    outlook: Outlook | None
    no_outlook_reason: str | None


@dataclass(frozen=True, slots=True)
class Moment:
    """A warehouse at an instant: its condition, what is wrong, and its file systems, those polled last first."""

    condition: Condition
    problems: tuple[Problem, ...]
    filesystems: tuple[FilesystemMoment, ...]

    @property
    def at(self) -> datetime:
        """When it was looked at."""
        return self.condition.at


class Lookout:
    """Looks at a warehouse, and remembers what it saw until more lands."""

    def __init__(self, store: Store, settings: Settings) -> None:
        """Look at nothing yet."""
        self._store, self._settings = store, settings
        self._seen: tuple[object, tuple[FilesystemMoment, ...]] | None = None

    def look(self, at: datetime) -> Moment:
        """Return what there is to see at an instant."""
        condition = condition_of(self._store, self._settings, at)
        problems = problems_of(condition, self._settings.alerts)
        return Moment(condition, tuple(problems), self._filesystems(at))

    def _filesystems(self, at: datetime) -> tuple[FilesystemMoment, ...]:
        landings = ledger.read(self._store).landings
        release = releases.current(self._store)
        journal = self._store.journal
        written = journal.stat().st_mtime_ns if journal.is_file() else None
        # the last one's number goes up with each landing; one that was forgotten is missing in the count
        mark = (landings["sequence"].max(), landings.height, release.release_id if release else None, written)
        if self._seen is None or self._seen[0] != mark:
            self._seen = mark, self._look(release, at)
        return self._seen[1]

    def _look(self, release: Release | None, at: datetime) -> tuple[FilesystemMoment, ...]:
        try:
            # a job log may be ahead of the polls, and a poll of a wrong clock ahead of all
            state = site_state(self._store, release, self._settings, ReleaseSignatures(self._store, release), None)
        except NothingToDo:
            return ()
        known = {one.filesystem: one for one in state.filesystems}
        names = [*known, *(one.filesystem for one in state.excluded)]
        followed = followed_bursts(self._store, at)
        found = (self._filesystem(release, name, state.at, known.get(name), followed.get(name, [])) for name in names)
        there = [one for one in found if one is not None]
        return tuple(sorted(there, key=lambda one: (-one.polled_at.timestamp(), one.filesystem)))

    def _filesystem(
        self,
        release: Release | None,
        name: str,
        newest: datetime,
        state: FilesystemState | None,
        followed: Sequence[Burst],
    ) -> FilesystemMoment | None:
        polled_at = state.load.measured_until if state is not None and state.load is not None else None
        # the minute that has begun is not told of: half of its polls are still to come
        until = (polled_at or newest).replace(second=0, microsecond=0)
        asked = Query(name, until - timedelta(minutes=MINUTES), until)
        try:
            landed = LandedTraffic.read(self._store, release, self._settings, asked)
        except NothingToDo:
            return None
        outlook, why = self._outlook(release, name, until)
        return FilesystemMoment(
            name,
            polled_at or datetime.fromtimestamp(float(epoch_s(landed.ticks["polled_at"])[-1]), UTC),
            _curves(landed.ticks, until),
            _of_late(landed, name, until),
            tuple(_beside(followed, coming_bursts(state.running if state else (), newest))),
            outlook,
            why,
        )

    def _outlook(self, release: Release | None, name: str, at: datetime) -> tuple[Outlook | None, str | None]:
        if release is None:
            return None, "There is no release yet."
        try:
            asked = forecast.Query(name, HOURS_AHEAD, at=at)
            told = forecast.forecast_load(self._store, release, self._settings, asked).forecast
        except IosigError as fault:
            return None, str(fault)
        lines = (told.expected_bytes_per_s, told.low_bytes_per_s, told.high_bytes_per_s)
        return Outlook(told.step_s, *(tuple(map(float, line)) for line in lines)), None


def _beside(followed: Sequence[Burst], known: Sequence[Burst]) -> list[Burst]:
    """Return bursts in their order; who is followed knows better than a signature."""
    better = {burst.job_id for burst in followed}
    both = [*followed, *(burst for burst in known if burst.job_id not in better)]
    return sorted(both, key=lambda burst: (burst.starts_at, burst.job_id))


def _curves(ticks: pl.DataFrame, until: datetime) -> dict[str, tuple[float | None, ...]]:
    """Return the mean rate of each of the last minutes by direction, None where nothing was polled."""
    # ticks are known by their right edges
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
    moved, covered_s = (np.bincount(places[is_known], of[is_known], MINUTES) for of in (volume, interval_s))
    return tuple(float(one / seconds) if seconds > 0 else None for one, seconds in zip(moved, covered_s, strict=True))


def _of_late(landed: LandedTraffic, name: str, until: datetime) -> Answer | None:
    try:
        with landed.open(TABLES) as connection:
            return who(connection, Query(name, until - timedelta(minutes=OF_LATE_MINUTES), until), is_landed=True)
    except NothingToDo:
        return None
