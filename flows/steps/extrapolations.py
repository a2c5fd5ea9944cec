"""Extrapolations: of every set of traces and rank count, what its latest extrapolation came to."""

from __future__ import annotations

import polars as pl

from flows.steps.run import Run
from warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS, EXTRAPOLATIONS
from warehouse.store import models


def gather_extrapolations(run: Run) -> int:
    """Gather the extrapolations of all landed records, be they new or not. Returns the rows."""
    with run.engine() as connection:
        run.expose_landed(connection, EXTRAPOLATION_RECORDS)
        path = models.build(connection, EXTRAPOLATIONS, run.path(EXTRAPOLATIONS, None))
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())
