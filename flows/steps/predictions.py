"""Land the journal of predictions, and stage the predictions of each day.

The journal stores the evaluations of followed inputs until they land.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import polars as pl

from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, read_landed
from iosig.settings.model import Settings
from iosig.streams.landing import Arrival
from iosig.warehouse.contracts.predictions import FAULTY_PREDICTIONS, PREDICTION_RECORDS, PREDICTIONS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.predictions.source import SOURCE
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.journal import Journal, Range
from iosig.warehouse.store.store import Store, lock_warehouse

_BATCH_ROWS = 20_000


def land_journal(store: Store, settings: Settings) -> Iterator[Arrival]:
    """Land new rows of the journal once each, then remove old rows that have landed.

    A damaged journal is reported and left unchanged; other inputs still land.
    """
    if not store.journal.is_file():
        return
    name = str(store.journal)
    try:
        with lock_warehouse(store), Journal(store.journal) as journal:
            last = journal.last_sequence()
            while (rows := journal.begin_landing()) and rows.first <= last:
                yield Arrival(name, _land(store, journal, rows), None)
            journal.prune(datetime.now(UTC) - timedelta(days=settings.predictions.keep_days))
    except InputRefused as refusal:
        yield Arrival(name, None, refusal)


def _land(store: Store, journal: Journal, rows: Range) -> landing.LandingResult:
    """Land a range of rows, unless an interrupted call has already landed it."""
    content = journal.fingerprint(rows).encode()
    landed = landing.land_batches(store, journal.path.name, SOURCE.name, _batches(journal, rows), content=content)
    journal.end_landing(rows, datetime.now(UTC))
    return landed


def _batches(journal: Journal, rows: Range) -> Iterator[Batch]:
    """Yield batches of the rows of a range, numbered like lines of a file."""
    last_sequence, count = rows.first - 1, 0
    while last_sequence < rows.last:
        frame, last_sequence = journal.rows_after(last_sequence, _BATCH_ROWS, rows.last)
        if frame.is_empty():
            return
        lines = pl.int_range(count + 1, count + frame.height + 1, dtype=pl.Int64, eager=True)
        yield Batch(PREDICTION_RECORDS, frame.with_columns(source_file=pl.lit(""), line=lines))
        count += frame.height


def stage_predictions(context: StepContext) -> int:
    """Stage one day of predictions, with the first record of each evaluation. Returns the number of rows."""
    with context.engine() as connection:
        context.expose_landed(connection, PREDICTION_RECORDS)
        context.build(connection, FAULTY_PREDICTIONS)
        return context.build(connection, PREDICTIONS)


STEP = Step(
    "predictions",
    stage_predictions,
    reads=(read_landed(PREDICTION_RECORDS),),
    writes=(FAULTY_PREDICTIONS, PREDICTIONS),
    days=lambda run: run.plan.prediction_days,
    is_daily=True,
)
