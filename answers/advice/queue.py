"""What runs and waits at an instant, as the scheduler said when it was asked last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.estimates.staging import model_parameters
from iosig.settings.model import Settings
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import QUEUE_RECORDS, QUEUED_JOBS
from iosig.warehouse.store import models
from iosig.warehouse.store.ledger import Ledger
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

#: an answer that is older tells nothing of now
_OLDEST = timedelta(hours=1)
#: of a job that has its nodes
_HAS_NODES = ("RUNNING", "RESIZING", "COMPLETING")


def queue_at(
    store: Store, connection: duckdb.DuckDBPyConnection, landings: Ledger, settings: Settings, at: datetime
) -> pl.DataFrame:
    """Return rows of `queued_jobs`: what ran and waited on each cluster when it was asked last; none where long ago."""
    days = sorted({(at - _OLDEST).date(), at.date()})
    files = landings.parts(QUEUE_RECORDS, landings.in_force, pl.col("day").is_in(days))
    if files.is_empty():
        return frames.empty(QUEUED_JOBS)
    models.expose_files(store, connection, QUEUE_RECORDS, files)
    parameters = model_parameters(settings) | {"days": days}
    seen = models.select(connection, QUEUED_JOBS, parameters).filter(pl.col("seen_at").is_between(at - _OLDEST, at))
    return seen.filter(pl.col("seen_at") == pl.col("seen_at").max().over("cluster"))


def beside_the_log(queue: pl.DataFrame, logged: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs of a queue that run and of which the job log does not know yet, as the log will have them."""
    known = {(job["cluster"], job["job_id"].partition(".")[0]) for job in logged}
    running = queue.filter(pl.col("queue_state").is_in(_HAS_NODES), pl.col("started_at").is_not_null())
    return [
        row | {"ended_at": None}
        for row in running.iter_rows(named=True)
        if (row["cluster"], row["job_id"]) not in known
    ]
