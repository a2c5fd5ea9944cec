"""Checks: every built table is held to its suite; what was taken out or refused is gathered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from flows.steps.pieces import Day, File, Given, Piece
from flows.steps.run import Run, Work, built, landed, released
from warehouse.contracts import Table, frames, table as table_named
from warehouse.contracts.jobs import JOBS
from warehouse.contracts.polls import FAULTY_POLLS, POLLS
from warehouse.contracts.predictions import FAULTY_PREDICTIONS, PREDICTION_RECORDS
from warehouse.contracts.quality import QUALITY, QUARANTINE, REJECTS
from warehouse.store.store import Store, write_json, write_parquet

if TYPE_CHECKING:
    from expectations.gate import Checked

#: what is taken out of the jobs of a day, until all that is taken out is gathered
FAULTY_JOBS = replace(QUARANTINE, name="faulty_jobs", is_published=False)
#: what is taken out of which table
_TAKEN_OUT = (
    (JOBS, FAULTY_JOBS),
    (POLLS, FAULTY_POLLS),
    (PREDICTION_RECORDS, FAULTY_PREDICTIONS),
)
#: jobs are held to their suite before they are written; the others are what checks find
_NOT_HELD = (JOBS, QUARANTINE, QUALITY)
#: the folder of what the checks found, until all tables are checked
_VERDICTS = "verdicts/"
#: rows that a suite looks at: pandas takes some hundred bytes for each
_MOST_ROWS = 2_000_000


def verdicts_on(table: Table) -> Table:
    """Return what holds the verdicts on a table alone; the JSON of its validation lies beside them."""
    return replace(QUALITY, name=f"{_VERDICTS}{table.name}", is_published=False)


def checked(given: Given, table: Table, frame: pl.DataFrame) -> Checked:
    """Hold rows to a table's suite, and keep what it says until all tables are checked."""
    from expectations import gate

    limits = {name: value for name, value in given.settings.quality.model_dump().items() if value is not None}
    found = gate.check(table, frame, limits)
    path = write_parquet(found.verdicts, QUALITY, given.path(verdicts_on(table)))
    write_json(found.validation, path.with_suffix(".json"))
    return found


def check_pieces(run: Run, work: Work) -> Iterator[Piece]:
    """Yield the checks of the tables that are complete after some work, unless all checks of the run are done."""
    if not any(piece.is_done(run.store.root) for piece in DECIDED.pieces(run)):
        for table, files in work.files(run).items():
            if table.is_published and table not in _NOT_HELD:
                yield _check_of(run, table, [file.day for file in files])


def _check_of(run: Run, table: Table, days: Sequence[Day]) -> Piece:
    reads = built(table, days=lambda plan: days)
    (piece,) = Work(f"check {table.name}", hold, (reads,), (verdicts_on(table),), is_check=True).pieces(run)
    # A run that goes on checks all of it again: the suites may have changed.
    return replace(piece, mark="")


def hold(given: Given) -> int:
    """Hold a built table to its suite. Returns the expectations."""
    (verdicts,) = given.piece.writes
    table = table_named(verdicts.table.removeprefix(_VERDICTS))
    return checked(given, table, _scalars(table, given.files(table))).verdicts.height


def _scalars(table: Table, files: Sequence[Path]) -> pl.DataFrame:
    """Read built files, lists as their lengths: all that the suites look at.

    Of a very long table they look at the end: what is new comes last, and every row met the contract when it was
    written.
    """
    import polars.selectors as cs

    if not files:
        return frames.empty(table)
    return pl.scan_parquet(list(files)).tail(_MOST_ROWS).with_columns(cs.list().list.len().cast(pl.Int64)).collect()


def decide(given: Given) -> int:
    """Decide on the release by what all checks found. Returns the expectations that do not hold.

    Raises GateFailed where a critical expectation does not hold; the verdicts stay in the plan's folder.
    """
    from expectations import docs, gate

    paths = given.files(QUALITY)
    verdicts = pl.concat([pl.read_parquet(path) for path in paths])
    docs.build([json.loads(path.with_suffix(".json").read_text()) for path in paths], Store(given.root).data_docs)
    gate.decide(verdicts)
    write_parquet(verdicts, QUALITY, given.path(QUALITY))
    return int((~verdicts["success"]).sum())


def _verdicts(run: Run, _: Day) -> Iterator[File]:
    """Yield what each table's check found."""
    for path in sorted((run.folder / _VERDICTS).glob("*/*.parquet")):
        yield File(QUALITY.name, run.place(path))


def gather_quarantine(given: Given) -> int:
    """Gather what was taken out of jobs, polls and predictions, by day. Returns the rows."""
    pieces = [frames.empty(QUARANTINE)]
    pieces += [pl.read_parquet(path) for _, faulty in _TAKEN_OUT for path in given.files(faulty)]
    # A day of which not all is computed anew keeps what was taken out of the rest.
    for path, day in given.dated(QUARANTINE, is_released=True).items():
        kept = [table.name for table, faulty in _TAKEN_OUT if day not in given.dated(faulty).values()]
        pieces.append(pl.read_parquet(path).filter(pl.col("table_name").is_in(kept)))
    gathered = pl.concat(pieces)
    given.write_days(gathered, QUARANTINE)
    return gathered.height


def gather_rejects(given: Given) -> int:
    """Gather the refused rows of every landing. Returns the rows."""
    with given.engine() as connection:
        given.expose_landed(connection, REJECTS)
        return given.build(connection, REJECTS)


QUARANTINED = Work(
    "quarantine",
    gather_quarantine,
    reads=(
        built(FAULTY_JOBS, days=lambda plan: plan.job_days),
        built(FAULTY_POLLS, days=lambda plan: plan.poll_days),
        built(FAULTY_PREDICTIONS, days=lambda plan: plan.prediction_days),
        released(QUARANTINE, days=lambda plan: plan.days),
    ),
    writes=(QUARANTINE,),
    days=lambda plan: plan.days,
)
REJECTED = Work("rejects", gather_rejects, (landed(REJECTS),), (REJECTS,))
DECIDED = Work("checks", decide, (_verdicts,), (QUALITY,), is_check=True, is_last=True)
