"""Stage landed polls and job records with the SQL models of the nightly run.

The nightly run stages whole days in its work items. Questions about a running job, the current state or a new landing
stage only the rows that they need. Both use the tables, parameters and models of this module.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.settings.model import Settings
from iosig.warehouse.contracts.jobs import JOB_RECORDS, JOBS
from iosig.warehouse.contracts.polls import POLL_TICKS, POLLS, POLLS_DAILY, REPEATED_POLLS, TICKS
from iosig.warehouse.store import models

if TYPE_CHECKING:
    import duckdb


@contextmanager
def engine(settings: Settings, spill: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB with the settings that models read as tables, such as `settings.filesystem_aliases`.

    spill: the folder for rows that exceed the memory limit; a temporary folder by default.
    """
    if spill is None:
        with tempfile.TemporaryDirectory(prefix="iosig-staging-") as folder, engine(settings, Path(folder)) as opened:
            yield opened
        return
    partitions = [(name, place) for name, places in settings.partitions.items() for place in places]
    with models.engine(spill, settings.engine.memory_limit) as connection:
        for table, columns, pairs in (
            ("cluster_machines", ("cluster", "machine"), [*settings.clusters.items()]),
            ("filesystem_aliases", ("name", "filesystem"), [*settings.filesystems.items()]),
            ("partition_filesystems", ("partition", "filesystem"), partitions),
        ):
            frame = pl.DataFrame(pairs, schema=dict.fromkeys(columns, pl.String), orient="row")
            models.expose_frame(connection, "settings", table, frame)
        yield connection


def model_parameters(settings: Settings) -> dict[str, Any]:
    """Return the parameters of SQL models that come from the settings."""
    # a pseudonymized warehouse contains the matches of the patterns, found before the names were replaced
    is_matched = settings.privacy.is_pseudonymized
    return {
        "application_pattern": "^(.*)$" if is_matched else settings.jobs.application_pattern,
        "filesystem_pattern": "^(.*)$" if is_matched else settings.jobs.filesystem_pattern,
        "shared_partitions": settings.jobs.shared_partitions,
        "excludes_shared_nodes": settings.jobs.excludes_shared_nodes,
        "max_controller_bytes_per_s": settings.polls.max_controller_bytes_per_s,
        "min_expected_correlation": settings.signatures.min_expected_correlation,
        "clock_tolerance_s": settings.traces.clock_tolerance_s,
        "max_excess_ratio": settings.traces.max_excess_ratio,
        "grace_s": settings.counters.grace_s,
        "signature_window_days": settings.signatures.window_days,
        "has_merged_sizes": settings.signatures.has_merged_sizes,
        "samples_from": settings.signatures.samples,
        "min_sample_count": settings.signatures.min_sample_count,
        "max_duration_s": settings.signatures.max_duration_s,
        "max_application_count": settings.joint.max_application_count,
        "max_sample_count": settings.signatures.max_sample_count,
    }


def stage_jobs(connection: duckdb.DuckDBPyConnection, settings: Settings, records: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `stage.jobs` for rows of `landed.job_records`, including running jobs."""
    models.expose_frame(connection, JOB_RECORDS.layer, JOB_RECORDS.name, records)
    days = records["ended_at"].dt.date().drop_nulls().unique().sort().to_list()
    return models.select(connection, JOBS, model_parameters(settings) | {"days": days, "has_undated": True})


def stage_polls(connection: duckdb.DuckDBPyConnection, settings: Settings, polls: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `stage.filesystem_rates` for rows of `landed.polls`.

    The tables `stage.filesystem_rates` and `stage.polls_daily` remain in the connection.
    """
    models.expose_frame(connection, POLLS.layer, POLLS.name, polls)
    # without the warehouse's first and last day, all days count as complete; only `missing_ratio` depends on them
    parameters = model_parameters(settings) | {
        "first_polled_on": None,
        "last_polled_on": None,
        "beginning_filesystems": [],
    }

    for table in (REPEATED_POLLS, POLL_TICKS, POLLS_DAILY):
        models.compute(connection, table, parameters)
    ticks: pl.DataFrame = models.compute(connection, TICKS, parameters).pl(lazy=False)
    return ticks
