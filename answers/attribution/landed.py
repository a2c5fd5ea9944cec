"""Open the tables behind `iosig who`: those of a release or, after its last poll, computed from landed inputs.

Both ways give the same tables, `attributed_io`, `slowdowns`, `jobs` and `filesystem_rates`, so the same queries
work on both. The nightly flow's SQL models stage landed polls and jobs; the signatures come from the release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.answers.advice.landed import jobs_near, list_filesystems
from iosig.answers.attribution.query import Query, is_released
from iosig.estimates.attribution import (
    ActiveRuns,
    TrafficAttribution,
    compute_slowdowns,
    extract_traffic,
    list_signatures,
)
from iosig.estimates.staging import engine, stage_polls
from iosig.settings.model import Settings
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import POLLS, POLLS_DAILY
from iosig.warehouse.contracts.samples import GRID_STEPS, RUNS
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURES
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import open_duckdb, open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger, models
from iosig.warehouse.store.ledger import Ledger
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

#: polls are read from this long before the time range; the bursts of runs that started earlier are placed from there on
_BEFORE = timedelta(hours=6)
#: maximum time range of a query without an end: polls with a wrong clock may be years ahead
_MAX_TIME = timedelta(days=7)


@contextmanager
def open_tables(
    store: Store, release: Release, settings: Settings, query: Query, tables: str
) -> Iterator[tuple[duckdb.DuckDBPyConnection, bool]]:
    """Open the named tables of a release, or of landed inputs if the time begins after the release's last poll.

    Yields the connection, and whether the tables are computed from landed inputs. Without landed polls of that time
    the tables are those of the release, so that the query reports which times have polls.
    """
    if not is_released(store, release, query):
        try:
            landed = LandedTraffic.read(store, release, settings, query)
        except NothingToDo:
            pass
        else:
            with landed.open(tables) as connection:
                yield connection, True
            return
    with open_release(store, release, tables) as connection:
        yield connection, False


@dataclass(frozen=True)
class LandedTraffic:
    """Landed poll rows of a file system, the jobs that may have used it, and their bursts placed on the traffic.

    signatures: those of the release. laid: the placed bursts of each direction.
    """

    filesystem_rates: pl.DataFrame
    jobs: pl.DataFrame
    signatures: pl.DataFrame
    laid: tuple[TrafficAttribution, ...]

    @classmethod
    def read(cls, store: Store, release: Release | None, settings: Settings, query: Query) -> LandedTraffic:
        """Read landed inputs and place the bursts of jobs; without a release no job has a signature.

        Raises NothingToDo if no polls of the time range have landed.
        """
        landings = ledger.read(store)
        with engine(settings) as connection:
            ticks = _ticks(store, connection, landings, settings, query)
            if ticks.is_empty():
                raise NothingToDo(f"No polls of {query.filesystem} cover that time, neither landed nor in a release.")
            grid, window = _grid(connection, ticks), _window(ticks)
            jobs = jobs_near(store, connection, landings, settings, query.until or window[1])
        runs = _runs(jobs, query.filesystem, settings)
        signatures, bursts = _signatures(store, release)
        filesystem_signatures = list_signatures(signatures, bursts).filter(pl.col("filesystem") == query.filesystem)
        signed = {
            name: ActiveRuns(*_join_signatures(runs, filesystem_signatures.filter(direction=name)))
            for name in query.directions
        }
        placements = [(runs_there, extract_traffic(grid, name, window), name) for name, runs_there in signed.items()]
        return cls(ticks, runs, signatures, tuple(TrafficAttribution.attribute(placements)))

    @cached_property
    def attributed_io(self) -> pl.DataFrame:
        """Attributed bytes per run and minute, as rows of `attributed_io`."""
        return pl.concat([frames.empty(ATTRIBUTED_IO), *(placed.rows() for placed in self.laid)])

    @cached_property
    def slowdowns(self) -> pl.DataFrame:
        """Bursts of each run with the interference during each, as rows of `slowdowns`."""
        return compute_slowdowns(self.laid)

    @contextmanager
    def open(self, tables: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open DuckDB on the named tables, as `reading.opened` does for a release."""
        with open_duckdb() as connection:
            for name in tables.split():
                connection.register(name, getattr(self, name).to_arrow())
            yield connection


# ---- polls


#: polls of all file systems: names in polls may be aliases, which staging resolves
_POLLS = "select * from landed.polls where polled_at > $since and polled_at <= $until"


def _ticks(
    store: Store, connection: duckdb.DuckDBPyConnection, landings: Ledger, settings: Settings, query: Query
) -> pl.DataFrame:
    """Return the poll rows of a file system, from `_BEFORE` before the time range on."""
    since = query.since - _BEFORE
    until = query.until or query.since + _MAX_TIME
    days = pl.col("day").is_between(since.date(), until.date())
    models.expose_files(store, connection, POLLS, landings.parts(POLLS, landings.in_force, days))
    polls = connection.sql(_POLLS, params={"since": since, "until": until}).pl()
    ticks = stage_polls(connection, settings, polls)
    return ticks.filter(pl.col("filesystem") == query.filesystem).sort("polled_at", "interval_s")


def _grid(connection: duckdb.DuckDBPyConnection, ticks: pl.DataFrame) -> pl.DataFrame:
    """Return the poll rows on a regular grid, by the model that the nightly flow uses."""
    filesystem, last = ticks["filesystem"][0], ticks["polled_at"][-1]
    first = _window(ticks)[0]
    days = connection.sql(f"from stage.{POLLS_DAILY.name}").pl().filter(pl.col("filesystem") == filesystem)
    step_us, phase_us = (round(days[name][0] * 1e6) for name in ("interval_s", "grid_phase_s"))
    first_us, last_us = (round(at.timestamp() * 1e6) for at in (first, last))
    run = dict.fromkeys(RUNS.column_names) | {
        "ended_on": last.date(),
        "filesystem": filesystem,
        "step_us": step_us,
        "phase_us": phase_us,
        "expected_controller_count": days["controller_count"][0],
        "first_step": (first_us - phase_us) // step_us + 1,
        "last_step": -((phase_us - last_us) // step_us),
    }
    models.expose_frame(connection, RUNS.layer, RUNS.name, pl.DataFrame([run], schema=frames.schema(RUNS)))
    return models.select(connection, GRID_STEPS, {"days": [last.date()]})


def _window(ticks: pl.DataFrame) -> tuple[datetime, datetime]:
    """Return the left edge of the first tick and the right edge of the last one."""
    return ticks["polled_at"][0] - timedelta(seconds=ticks["interval_s"][0]), ticks["polled_at"][-1]


# ---- runs


def _runs(jobs: Sequence[Mapping[str, Any]], filesystem: str, settings: Settings) -> pl.DataFrame:
    """Return the runs that used a file system, or may have because theirs is unknown."""
    used = [job for job in jobs if filesystem in (list_filesystems(job, settings) or [filesystem])]
    return pl.DataFrame(used, schema=frames.schema(JOBS)).with_columns(
        # every row needs a day, and a running job ends no earlier than it started
        ended_on=pl.col("ended_on").fill_null(pl.col("started_at").dt.date()),
        filesystem=pl.lit(filesystem),
        is_own=pl.lit(value=True),
    )


def _join_signatures(runs: pl.DataFrame, signatures: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return runs with signatures, and an empty frame of runs with counters, which only the nightly flow computes."""
    by_application = signatures.drop("filesystem", "direction")
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
    with open_release(store, release, "signatures signature_bursts") as connection:
        signatures = connection.sql("select * from signatures").pl()
        return signatures, connection.sql("select * from signature_bursts").pl()
