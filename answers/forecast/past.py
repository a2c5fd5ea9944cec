"""What flowed of which nobody knew, in the days before: of a release, and of what has landed since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.answers.attribution.landed import Landed
from iosig.answers.attribution.query import TABLES, Asked
from iosig.estimates.columns import floats
from iosig.settings.model import Settings
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.forecast.unknown_traffic import TrafficHistory
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

_MINUTE_S = 60.0
#: older days tell little of now
_MOST_DAYS = 28


@dataclass(frozen=True, slots=True)
class Minutes:
    """What flowed, by the right edges of minutes: measured_bytes; and attributed_bytes of runs by submitted_at."""

    measured: pl.DataFrame
    explained: pl.DataFrame


def minutes_of(store: Store, release: Release, settings: Settings, filesystem: str, at: datetime) -> Minutes:
    """Return what flowed before an instant. NothingToDo where the release has no polls of it."""
    known, last = _released(store, release, filesystem, at)
    if last is None:
        raise NothingToDo(
            f"The release has no polls of {filesystem} before {at:%Y-%m-%dT%H:%MZ}: a forecast needs some days. Land "
            "polls, then `iosig run`."
        )
    if last >= at:
        return known
    asked = Asked(filesystem, last, at)
    try:
        landed = Landed.of(store, release, settings, asked)
    except NothingToDo:
        return known
    with landed.opened(TABLES) as connection:
        since = _queried(connection, asked)
    pairs = ((known.measured, since.measured), (known.explained, since.explained))
    return Minutes(*(pl.concat(pair) for pair in pairs))


def _released(store: Store, release: Release, filesystem: str, at: datetime) -> tuple[Minutes, datetime | None]:
    with opened(store, release, TABLES) as connection:
        minutes = _queried(connection, Asked(filesystem, at - timedelta(days=_MOST_DAYS), at))
    last = minutes.measured["minute_at"].max()
    assert last is None or isinstance(last, datetime)
    return minutes, None if last is None else last.astimezone(UTC)


def _queried(connection: duckdb.DuckDBPyConnection, asked: Asked) -> Minutes:
    parameters = {"filesystem": asked.filesystem, "since": asked.since, "until": asked.until}
    return Minutes(*(connection.sql(query, params=parameters).pl() for query in (_MEASURED, _EXPLAINED)))


_MEASURED = """
    select to_timestamp(ceil(epoch(polled_at) / 60) * 60) as minute_at,
        sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0))::double as measured_bytes
    from filesystem_rates
    where filesystem = $filesystem and polled_at > $since and polled_at <= $until
        and coalesce(read_bytes, written_bytes) is not null
    group by all
    order by all
"""
_EXPLAINED = """
    select minute_at, coalesce(submitted_at, started_at) as submitted_at, sum(attributed_bytes) as attributed_bytes
    from attributed_io
    left join jobs using (cluster, job_id, started_at)
    where attributed_io.filesystem = $filesystem and minute_at > $since and minute_at <= $until
    group by all
    order by all
"""


def past_of(minutes: Minutes, at: datetime, step_s: float, horizon: int) -> TrafficHistory:
    """Return the past in steps that end at an instant, as far as a forecast of so many steps needs it."""
    first = minutes.measured["minute_at"].min()
    assert isinstance(first, datetime)
    count = max(1, int((at - first).total_seconds() // step_s))

    def step(instants: pl.Series) -> Ints:
        """Return the step that each instant is in, its right edge included; below 0 before the first one."""
        ago = (pl.lit(at) - instants).dt.total_microseconds()
        steps: Ints = count - 1 - pl.select(ago // round(step_s * 1e6)).to_series().to_numpy()
        return steps

    place = step(minutes.measured["minute_at"])
    is_in = place >= 0
    covered_s = np.bincount(place[is_in], minlength=count) * _MINUTE_S
    moved = np.bincount(place[is_in], floats(minutes.measured["measured_bytes"])[is_in], count)
    explained = floats(minutes.explained["attributed_bytes"])
    flowed = step(minutes.explained["minute_at"])
    lag = flowed - step(minutes.explained["submitted_at"])
    own = np.bincount(flowed[flowed >= 0], explained[flowed >= 0], count)
    is_late = (flowed >= 0) & (lag >= 0) & (lag < horizon)
    submitted = np.bincount(flowed[is_late] * horizon + lag[is_late], explained[is_late], count * horizon)
    began = at - timedelta(seconds=count * step_s)
    with np.errstate(invalid="ignore", divide="ignore"):
        unexplained: Reals = np.where(covered_s > 0, np.maximum(moved - own, 0.0) / covered_s, np.nan)
        late: Reals = np.nan_to_num(submitted.reshape(count, horizon) / covered_s[:, None], posinf=0.0)
    return TrafficHistory(unexplained, late, step_s, began.hour + began.minute / 60)
