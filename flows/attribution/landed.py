"""Who moved what in a time that is in no release yet: from what has landed, by the signatures of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from iosig.flows.advice.landed import engine, jobs_near
from iosig.flows.arrays import epoch_s, floats
from iosig.flows.attribution.asking import Answer, Asked, answer
from iosig.flows.attribution.hurting import HurtAnswer, hurt_of
from iosig.flows.settings import Settings
from iosig.flows.steps.attribution import Laid, There, Traffic, known_signatures, slowed_bursts
from iosig.transforms.arrays import Reals
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import POLL_TICKS, POLLS, REPEATED_POLLS
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURES
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import connected, opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger, models
from iosig.warehouse.store.ledger import Ledger
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

#: runs that began earlier are seen from then on only
_BEFORE = timedelta(hours=6)
#: who does not say until when is told of so much: a poll of a wrong clock may be years ahead
_LONGEST = timedelta(days=7)
_GRID_COLUMNS = {"read": "read_bytes", "write": "written_bytes"}


def who_of_landed(store: Store, release: Release, settings: Settings, asked: Asked) -> Answer:
    """Return who moved what. NothingToDo where no polls of that time have landed."""
    return Landed.of(store, release, settings, asked).answer(asked)


def hurt_of_landed(store: Store, release: Release, settings: Settings, asked: Asked) -> HurtAnswer:
    """Return who was hurt. NothingToDo where no polls of that time have landed."""
    found = Landed.of(store, release, settings, asked)
    with _tables(slowdowns=slowed_bursts(found.laid), jobs=found.jobs, ticks=found.ticks) as connection:
        return replace(hurt_of(connection, asked), is_landed=True)


@dataclass(frozen=True, slots=True)
class Landed:
    """What has landed of a time: ticks of the file system, jobs that may have used it, and these laid on the ticks."""

    ticks: pl.DataFrame
    jobs: pl.DataFrame
    laid: tuple[Laid, ...]

    @classmethod
    def of(cls, store: Store, release: Release | None, settings: Settings, asked: Asked) -> Landed:
        """Read what has landed; without a release nothing is known of jobs. NothingToDo where no polls of it have."""
        landings = ledger.read(store)
        with engine(settings) as connection:
            ticks = _ticks(store, connection, landings, settings, asked)
            if ticks.is_empty():
                raise NothingToDo(f"No polls of {asked.filesystem} have landed of that time, and no release has some.")
            last = datetime.fromtimestamp(float(epoch_s(ticks["polled_at"])[-1]), UTC)
            jobs = jobs_near(store, connection, landings, settings, asked.until or last)
        there = _runs(jobs, asked.filesystem, settings)
        signatures, bursts = _signatures(store, release)
        known = known_signatures(signatures, bursts).filter(pl.col("filesystem") == asked.filesystem)
        theres = [
            (There(*_signed(there, known.filter(pl.col("direction") == name))), _traffic(ticks, name), name)
            for name in asked.directions
        ]
        return cls(ticks, there, tuple(Laid.each(theres)))

    def answer(self, asked: Asked) -> Answer:
        """Return who moved what in a part of that time. NothingToDo where no polls of it have landed."""
        rows = pl.concat([frames.empty(ATTRIBUTED_IO), *(one.rows() for one in self.laid)])
        with _tables(attributed_io=rows, jobs=self.jobs, ticks=self.ticks) as connection:
            return replace(answer(connection, asked), is_landed=True)


@contextmanager
def _tables(**rows: pl.DataFrame) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an engine that has these tables."""
    with connected() as connection:
        for name, frame in rows.items():
            connection.register(name, frame.to_arrow())
        yield connection


# ---- polls


#: polls that may be of a file system in some time: its name may be an alias yet
_POLLS = "select * from landed.polls where polled_at > $since and polled_at <= $until"


def _ticks(
    store: Store, connection: duckdb.DuckDBPyConnection, landings: Ledger, settings: Settings, asked: Asked
) -> pl.DataFrame:
    """Return the ticks of a file system, from some hours before, as the night would sum its polls."""
    since = asked.since - _BEFORE
    until = asked.until or asked.since + _LONGEST
    days = pl.col("day").is_between(since.date(), until.date())
    models.expose_files(store, connection, POLLS, landings.parts(POLLS, landings.in_force, days))
    polls = connection.sql(_POLLS, params={"since": since, "until": until}).pl()
    models.expose_frame(connection, "landed", "polls", polls)
    parameters = {"controller_limit_bytes_per_s": settings.polls.controller_limit_bytes_per_s}
    models.expose_frame(connection, "stage", "repeated_polls", models.select(connection, REPEATED_POLLS, parameters))
    every = models.select(connection, POLL_TICKS, parameters)
    return every.filter(pl.col("filesystem") == asked.filesystem).sort("polled_at", "interval_s")


def _traffic(ticks: pl.DataFrame, direction: str) -> Traffic:
    """Return ticks on a grid of their most common interval, NaN where nothing was polled."""
    interval_s = float(ticks["interval_s"].mode().sort()[0])
    edges, volume = epoch_s(ticks["polled_at"]), floats(ticks[_GRID_COLUMNS[direction]])
    began_s = float(edges[0]) - interval_s
    step = np.rint((edges - began_s) / interval_s).astype(np.int64) - 1
    is_known = np.isfinite(volume)
    count = int(step[-1]) + 1
    summed: Reals = np.bincount(step[is_known], volume[is_known], count).astype(np.float64)
    polled = np.bincount(step[is_known], minlength=count) > 0
    return Traffic(np.where(polled, summed, np.nan), began_s, interval_s)


# ---- runs


def _runs(jobs: Sequence[Mapping[str, Any]], filesystem: str, settings: Settings) -> pl.DataFrame:
    """Return the runs that may have used a file system: the log's own, else those of its partition, else all."""

    def used(job: Mapping[str, Any]) -> Sequence[str]:
        return (
            [job["filesystem"]] if job["filesystem"] else settings.partitions.get(job["partition"] or "", [filesystem])
        )

    rows = [job for job in jobs if filesystem in used(job)]
    user = pl.col("user").str.replace_all("/", "%2F", literal=True)
    name = pl.concat_str(user, "application", pl.col("node_count").cast(pl.String), separator="/")
    return pl.DataFrame(rows, schema=frames.schema(JOBS)).with_columns(
        # what has no end yet ends later: rows have a day
        ended_on=pl.col("ended_on").fill_null(pl.col("started_at").dt.date()),
        filesystem=pl.lit(filesystem),
        application_id=name,
        is_own=pl.lit(value=True),
    )


def _signed(runs: pl.DataFrame, known: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the runs with signatures, and those that servers counted: of these nothing is known before the night."""
    by_application = known.drop("filesystem", "direction")
    signed = runs.join(by_application, on="application_id", how="inner", maintain_order="left", suffix="_alone")
    signed = signed.with_columns(duration_s=pl.col("duration_s_alone"))
    none = signed.clear().with_columns(
        grid_started_at=pl.col("started_at"),
        sample_bytes_per_s=pl.lit(None, pl.List(pl.Float64)),
        counted_s=0.0,
        estimate_source=pl.lit("counted"),
    )
    return signed, none


def _signatures(store: Store, release: Release | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    if release is None:
        return frames.empty(SIGNATURES), frames.empty(SIGNATURE_BURSTS)
    with opened(store, release, "signatures signature_bursts") as connection:
        signatures = connection.sql("select * from signatures").pl()
        return signatures, connection.sql("select * from signature_bursts").pl()
