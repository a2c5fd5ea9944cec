"""Checks: every built table is held to its suite; what was taken out or refused is gathered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from flows.settings import Settings
from flows.steps.run import WHOLE, Run, daily, write_days
from warehouse.contracts import Table, frames, table as table_named
from warehouse.contracts.jobs import JOBS
from warehouse.contracts.polls import FAULTY_POLLS, POLLS
from warehouse.contracts.predictions import FAULTY_PREDICTIONS, PREDICTION_RECORDS
from warehouse.contracts.quality import QUALITY, QUARANTINE, REJECTS
from warehouse.releases import releases
from warehouse.store import models
from warehouse.store.store import write_json, write_parquet

if TYPE_CHECKING:
    from expectations.gate import Checked

#: rows that a suite looks at: pandas takes some hundred bytes for each
_MOST_ROWS = 2_000_000


def limits(settings: Settings) -> dict[str, float]:
    """Return the parameters of the suites that the settings give."""
    return {name: value for name, value in settings.quality.model_dump().items() if value is not None}


def keep_verdict(run: Run, table: Table, checked: Checked) -> None:
    """Keep what a check found, until all tables are checked."""
    write_parquet(checked.verdicts, QUALITY, run.folder / "verdicts" / f"{table.name}.parquet")
    write_json(checked.validation, run.folder / "verdicts" / f"{table.name}.json")


def begin(run: Run, built: Iterable[Table]) -> None:
    """Begin to hold built tables to their suites, unless all of the run's checks are done."""
    if not _verdict(run).is_file():
        run.begun.update((table.name, _checked(run, table)) for table in built if table.name not in run.begun)


def _checked(run: Run, table: Table) -> Future[Checked]:
    days = dict(daily(run)).get(table, (None,))
    files = [path for path in run.built(table, days).values() if path.is_file()]
    return run.checker.check(table, _scalars(table, files), limits(run.settings))


def check(run: Run) -> int:
    """Hold every built table to its suite, and decide. Returns the expectations that do not hold.

    Raises GateFailed where a critical expectation does not hold; the verdicts stay in the plan's folder.
    """
    from expectations import gate

    begin(run, (table for table in (*dict(daily(run)), *WHOLE, REJECTS) if table != JOBS))
    # The release needs Iceberg, whose import takes a second: where a child checks, it goes on meanwhile.
    import_module("warehouse.releases.catalogue")
    for name in list(run.begun):
        keep_verdict(run, table_named(name), run.begun.pop(name).result())
    verdicts = pl.concat([pl.read_parquet(path) for path in sorted((run.folder / "verdicts").glob("*.parquet"))])
    validations = [json.loads(path.read_text()) for path in sorted((run.folder / "verdicts").glob("*.json"))]
    run.checker.build_docs(validations, run.store.data_docs)
    run.checker.end()
    write_json({"verdict": gate.decide(verdicts)}, _verdict(run))
    write_parquet(verdicts, QUALITY, run.path(QUALITY, None))
    return int((~verdicts["success"]).sum())


def _verdict(run: Run) -> Path:
    return run.folder / "verdict.json"


def _scalars(table: Table, files: Sequence[Path]) -> pl.DataFrame:
    """Read built files, lists as their lengths: all that the suites look at.

    Of a very long table they look at the end: what is new comes last, and every row met the contract when it was
    written.
    """
    import polars.selectors as cs

    if not files:
        return frames.empty(table)
    return pl.scan_parquet(list(files)).tail(_MOST_ROWS).with_columns(cs.list().list.len().cast(pl.Int64)).collect()


def gather_quarantine(run: Run) -> int:
    """Gather what was taken out of jobs, polls and predictions, by day. Returns the rows."""
    plan = run.plan
    pieces = [pl.read_parquet(run.folder / "faulty_jobs.parquet")]
    pieces += [pl.read_parquet(run.path(FAULTY_POLLS, day)) for day in plan.poll_days]
    pieces += [pl.read_parquet(run.path(FAULTY_PREDICTIONS, day)) for day in plan.prediction_days]
    # A day of which not all is computed anew keeps what was taken out of the rest.
    anew = (
        (JOBS, plan.job_days),
        (POLLS, plan.poll_days),
        (PREDICTION_RECORDS, plan.prediction_days),
    )
    for path in run.base_files(QUARANTINE):
        if (day := releases.day_of(path)) in plan.days:
            kept = [table.name for table, days in anew if day not in days]
            pieces.append(pl.read_parquet(path).filter(pl.col("table_name").is_in(kept)))
    gathered = pl.concat(pieces)
    write_days(run, QUARANTINE, gathered, run.plan.days)
    return gathered.height


def gather_rejects(run: Run) -> int:
    """Gather the refused rows of every landing. Returns the rows."""
    with run.engine() as connection:
        run.expose_landed(connection, REJECTS)
        path = models.build(connection, REJECTS, run.path(REJECTS, None))
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())
