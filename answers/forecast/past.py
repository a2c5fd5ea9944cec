"""Read measured and attributed traffic of the preceding days, from a release and inputs that landed after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.answers.attribution.landed import LandedTraffic
from iosig.answers.attribution.query import TABLES, Query
from iosig.estimates.columns import floats
from iosig.settings.model import Settings
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.forecast.unknown_traffic import TrafficHistory
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

_MINUTE_S = 60.0
#: how far back history is read [days]
_MAX_DAYS = 28


@dataclass(frozen=True, slots=True)
class Minutes:
    """Traffic by minute (right edge): measured_bytes, and attributed_bytes by submitted_at of the run."""

    measured: pl.DataFrame
    attributed: pl.DataFrame


def read_minutes(store: Store, release: Release, settings: Settings, filesystem: str, at: datetime) -> Minutes:
    """Read the traffic before an instant; raises NothingToDo if the release has no polls of the file system."""
    minutes, last = _read_release(store, release, filesystem, at)
    if last is None:
        raise NothingToDo(
            f"The release has no polls of {filesystem} before {at:%Y-%m-%dT%H:%MZ}; a forecast needs several days. "
            "Land polls, then `iosig run`."
        )
    if last >= at:
        return minutes
    query = Query(filesystem, last, at)
    try:
        landed = LandedTraffic.read(store, release, settings, query)
    except NothingToDo:
        return minutes
    with landed.open(TABLES) as connection:
        newer = _query(connection, query)
    pairs = ((minutes.measured, newer.measured), (minutes.attributed, newer.attributed))
    return Minutes(*(pl.concat(pair) for pair in pairs))


def _read_release(store: Store, release: Release, filesystem: str, at: datetime) -> tuple[Minutes, datetime | None]:
    with open_release(store, release, TABLES) as connection:
        minutes = _query(connection, Query(filesystem, at - timedelta(days=_MAX_DAYS), at))
    last = minutes.measured["minute_at"].max()
    assert last is None or isinstance(last, datetime)
    return minutes, None if last is None else last.astimezone(UTC)


def _query(connection: duckdb.DuckDBPyConnection, query: Query) -> Minutes:
    parameters = {"filesystem": query.filesystem, "since": query.since, "until": query.until}
    return Minutes(*(connection.sql(sql, params=parameters).pl() for sql in (_MEASURED, _ATTRIBUTED)))


_MEASURED = """
    select to_timestamp(ceil(epoch(polled_at) / 60) * 60) as minute_at,
        sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0))::double as measured_bytes
    from filesystem_rates
    where filesystem = $filesystem and polled_at > $since and polled_at <= $until
        and coalesce(read_bytes, written_bytes) is not null
    group by all
    order by all
"""
_ATTRIBUTED = """
    select minute_at, coalesce(submitted_at, started_at) as submitted_at, sum(attributed_bytes) as attributed_bytes
    from attributed_io
    left join jobs using (cluster, job_id, started_at)
    where attributed_io.filesystem = $filesystem and minute_at > $since and minute_at <= $until
    group by all
    order by all
"""


def build_history(minutes: Minutes, at: datetime, step_s: float, horizon: int) -> TrafficHistory:
    """Aggregate traffic into steps that end at an instant, for a forecast of `horizon` steps."""
    first = minutes.measured["minute_at"].min()
    assert isinstance(first, datetime)
    count = max(1, int((at - first).total_seconds() // step_s))

    def step(instants: pl.Series) -> Ints:
        """Return the step of each instant, with right-closed steps; negative before the first one."""
        ago = (pl.lit(at) - instants).dt.total_microseconds()
        steps: Ints = count - 1 - pl.select(ago // round(step_s * 1e6)).to_series().to_numpy()
        return steps

    place = step(minutes.measured["minute_at"])
    is_in = place >= 0
    covered_s = np.bincount(place[is_in], minlength=count) * _MINUTE_S
    measured_bytes = np.bincount(place[is_in], floats(minutes.measured["measured_bytes"])[is_in], count)
    attributed = floats(minutes.attributed["attributed_bytes"])
    flow_step = step(minutes.attributed["minute_at"])
    lag = flow_step - step(minutes.attributed["submitted_at"])
    attributed_per_step = np.bincount(flow_step[flow_step >= 0], attributed[flow_step >= 0], count)
    is_late = (flow_step >= 0) & (lag >= 0) & (lag < horizon)
    submitted = np.bincount(flow_step[is_late] * horizon + lag[is_late], attributed[is_late], count * horizon)
    started_at = at - timedelta(seconds=count * step_s)
    with np.errstate(invalid="ignore", divide="ignore"):
        unattributed: Reals = np.where(
            covered_s > 0, np.maximum(measured_bytes - attributed_per_step, 0.0) / covered_s, np.nan
        )
        late_bytes: Reals = np.nan_to_num(submitted.reshape(count, horizon) / covered_s[:, None], posinf=0.0)
    return TrafficHistory(unattributed, late_bytes, step_s, started_at.hour + started_at.minute / 60)
