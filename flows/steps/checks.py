"""Validate every built table against its suite, and collect quarantined and rejected rows.

Results are stored by table and day and carried forward with the days, so they cover all rows of a release.
"""

from __future__ import annotations

import gc
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from iosig.flows.steps.items import Day, StepContext, TableFile
from iosig.flows.steps.run import DECISION, Run
from iosig.flows.steps.step import Input, Step, read_built_on, read_landed, read_live, read_released
from iosig.warehouse.contracts import TABLES, Table, frames, table as table_named
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import FAULTY_POLLS, POLLS
from iosig.warehouse.contracts.predictions import FAULTY_PREDICTIONS, PREDICTION_RECORDS
from iosig.warehouse.contracts.quality import FAULTY_JOBS, QUALITY, QUALITY_DAILY, QUARANTINE, REJECTS
from iosig.warehouse.contracts.traces import TRACE_JOBS
from iosig.warehouse.engine_paths import read_parquet, scan_parquet
from iosig.warehouse.errors import GateFailed
from iosig.warehouse.releases import locations, releases
from iosig.warehouse.store import models
from iosig.warehouse.store.store import Store, write_json, write_parquet

if TYPE_CHECKING:
    from iosig.expectations.gate import CheckResult

#: tables of quarantined rows, by the table that they were taken out of
_FAULTY_ROWS = {JOBS: FAULTY_JOBS, POLLS: FAULTY_POLLS, PREDICTION_RECORDS: FAULTY_PREDICTIONS}
#: tables without a check step: jobs are validated before they are written, the others are results of checks
_UNVALIDATED_TABLES = (JOBS, QUARANTINE, QUALITY, QUALITY_DAILY)
#: folder of the results until all tables are checked
VERDICTS = "verdicts/"
#: number of rows from several files in a batch: pandas takes some hundred bytes per row
_BATCH_ROWS = 500_000
#: garbage is collected after each batch with more rows
_LARGE_BATCH_ROWS = 50_000
#: maximum number of rows of a file that are validated; the last ones are
_MAX_ROWS = 2_000_000
#: tables of runs: a run must have rows on one day only
_RUNS = (JOBS, TRACE_JOBS)
_DOUBLED = {"table_name": pl.String(), "day": pl.Date(), "doubled_count": pl.Int64(), "row": pl.String()}
#: JSON key of the days that a result covers, in releases without results by day
_OF_DAYS = "of_days"


# ---- tables, as they are made


def verdicts_on(table: Table) -> Table:
    """Return the table of one table's verdicts; a JSON document next to its file lists the recomputed days."""
    return replace(QUALITY_DAILY, name=f"{VERDICTS}{table.name}", partition=None, is_published=False)


def check_rows(context: StepContext, table: Table, frame: pl.DataFrame) -> CheckResult:
    """Validate rows against a table's suite, and store the verdicts until all tables are checked."""
    from iosig.expectations import gate

    result = gate.check(table, frame, _limits(context))
    keep_verdicts(context, table, [result.verdicts], context.days)
    return result


def keep_verdicts(context: StepContext, table: Table, verdicts: Iterable[pl.DataFrame], days: Sequence[Day]) -> int:
    """Store the verdicts on some days of a table until all tables are checked. Returns the number of verdicts."""
    rows = pl.concat([frames.empty(QUALITY_DAILY), *verdicts])
    path = write_parquet(rows, QUALITY_DAILY, context.path(verdicts_on(table)))
    write_json([day and day.isoformat() for day in days], path.with_suffix(".json"))
    return rows.height


def _limits(context: StepContext) -> dict[str, float]:
    return {name: value for name, value in context.settings.quality.model_dump().items() if value is not None}


def make_check_step(step: Step) -> Step | None:
    """Return the step that validates the published tables of another step, None if it has none.

    One work item validates all tables, since most are small. A resumed run validates them again, since the suites may
    have changed, unless it has already decided on the release.
    """
    tables = tuple(table for table in step.writes if table.is_published and table not in _UNVALIDATED_TABLES)
    if not tables:
        return None

    def read(run: Run, _: Day) -> Iterator[TableFile]:
        for table, files in step.files(run).items():
            if table in tables:
                yield from run.built(table, list(dict.fromkeys(file.day for file in files)))

    is_dated = any(table.partition for table in tables)
    return Step(
        f"check {step.name}",
        hold,
        reads=(Input(tables, read),),
        writes=tuple(map(verdicts_on, tables)),
        days=step.days if is_dated else (lambda run: ()),
        days_after=tables,
        is_needed=lambda run, _: not run.is_decided,
        is_check=True,
        is_repeated=True,
    )


def hold(context: StepContext) -> int:
    """Validate built tables against their suites.

    Returns the number of verdicts, one for each expectation and day with rows.
    """
    return sum(_check_table(context, table_named(file.table.removeprefix(VERDICTS))) for file in context.item.writes)


def _check_table(context: StepContext, table: Table) -> int:
    from iosig.expectations import daily_summary, gate, suites

    limits = _limits(context)
    verdicts = []
    for rows in _batches(context.files(table), suites.list_checked_columns(table)):
        # only the verdicts are kept; Great Expectations leaves the rows in reference cycles
        verdicts.append(gate.check(table, rows, limits).verdicts)
        if rows.height > _LARGE_BATCH_ROWS:
            gc.collect()
    merged = verdicts if len(verdicts) < 2 else [daily_summary.by_day(table, pl.concat(verdicts), limits)]
    return keep_verdicts(context, table, merged, context.days if table.partition else (None,))


def _batches(files: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """Read columns (None: all) of built files in batches, with lists replaced by their lengths.

    Each file is within one batch, because its keys are compared with each other. Only the last rows of a very long file
    are read: new rows come last, and every row met the contract when it was written.
    """
    batch: list[pl.DataFrame] = []
    row_count = 0
    for path in files:
        rows = _scalars(path, columns)
        if batch and row_count + rows.height > _BATCH_ROWS:
            yield pl.concat(batch)
            batch, row_count = [], 0
        # one file after the other, since a few thousand rows of samples contain millions of numbers
        batch.append(rows)
        row_count += rows.height
    if batch:
        yield pl.concat(batch)


def _scalars(path: Path, columns: Sequence[str] | None) -> pl.DataFrame:
    import polars.selectors as cs

    lengths = cs.list().list.len().cast(pl.Int64)
    return scan_parquet(path).select(columns or pl.all()).tail(_MAX_ROWS).with_columns(lengths).collect()


# ---- the release as a whole


def decide(context: StepContext) -> int:
    """Decide whether to publish the release, by the results of all its days. Returns the number of failed expectations.

    Raises GateFailed if a critical expectation fails. Then the verdicts stay in the plan's folder, and their pages are
    separate from those of the current release.
    """
    from iosig.expectations import daily_summary, docs, gate

    by_day = _fail_duplicate_keys(_by_day(context), _on_two_days(context))
    quality = daily_summary.aggregate_days(by_day, _limits(context))
    try:
        gate.decide(quality)
    except GateFailed as refusal:
        index = docs.write_refusal_docs(Store(context.root), quality)
        raise GateFailed(f"{refusal}\nAll results: {index}") from refusal
    recomputed = by_day.filter(pl.col("day").is_in(context.days, nulls_equal=True)).sort(QUALITY_DAILY.key)
    context.write_days(recomputed, QUALITY_DAILY)
    write_parquet(quality, QUALITY, context.path(QUALITY))
    return int((~quality["success"]).sum())


def _by_day(context: StepContext) -> pl.DataFrame:
    """Return the results of every day of the release: new ones for recomputed days, carried ones for the others."""
    paths = context.files(QUALITY_DAILY)
    recomputed_days: dict[str, list[str | None]] = defaultdict(list)
    for path in paths:
        # a table that is checked day by day has several files
        recomputed_days[path.parent.name] += json.loads(path.with_suffix(".json").read_text())
    parts = [frames.empty(QUALITY_DAILY), *map(read_parquet, paths), _carry_verdicts(context, recomputed_days)]
    return pl.concat(parts)


def _on_two_days(context: StepContext) -> pl.DataFrame:
    """Count the rows of runs on recomputed days with a key that is on another day, too, with an example.

    Suites validate one day at a time, so they cannot detect a run on two days. Columns: table_name, day, doubled_count,
    row.
    """
    parts = [pl.DataFrame(schema=_DOUBLED)]
    for table in _RUNS:
        assert table.partition
        day = pl.col(table.partition)
        of_run = context.scan(table).group_by(table.key).agg(day.unique()).filter(day.list.len() > 1)
        doubled = of_run.with_columns(row=pl.struct(table.key).struct.json_encode()).explode(table.partition)
        counted = doubled.group_by(day=day).agg(doubled_count=pl.len().cast(pl.Int64), row=pl.col("row").min())
        parts.append(counted.select(pl.lit(table.name).alias("table_name"), *list(_DOUBLED)[1:]).collect())
    return pl.concat(parts).filter(pl.col("day").is_in(context.days, nulls_equal=True))


def _fail_duplicate_keys(by_day: pl.DataFrame, doubled: pl.DataFrame) -> pl.DataFrame:
    """Mark the key check as failed on days with keys that are also on another day."""
    if doubled.is_empty():
        return by_day
    joined = by_day.join(doubled, on=["table_name", "day"], how="left", nulls_equal=True, maintain_order="left")
    is_hit = pl.col("doubled_count").is_not_null() & (pl.col("expectation") == "key_unique")
    observed = [
        text if row is None else json.dumps(json.loads(text) | {"examples": [json.loads(row)]})
        for text, row in joined.select("observed", pl.when(is_hit).then("row")).iter_rows()
    ]
    return joined.with_columns(
        success=pl.col("success") & ~is_hit,
        unexpected_count=pl.col("unexpected_count") + pl.when(is_hit).then("doubled_count").otherwise(0),
        observed=pl.Series(observed, dtype=pl.String),
    ).select(by_day.columns)


def _carry_verdicts(context: StepContext, recomputed_days: Mapping[str, Sequence[str | None]]) -> pl.DataFrame:
    """Return the base release's verdicts on days of a table that are not recomputed."""
    files = context.list_base_files(QUALITY_DAILY)
    previous = read_parquet(files) if files else _convert_older_verdicts(context)
    pairs = [(name, day) for name, days in recomputed_days.items() for day in days]
    recomputed = pl.DataFrame(pairs, schema={"table_name": pl.String, "day": pl.String}, orient="row")
    carried = previous.join(
        recomputed.with_columns(pl.col("day").str.to_date()), on=["table_name", "day"], how="anti", nulls_equal=True
    )
    is_older = pl.col("observed").str.contains(f'"{_OF_DAYS}"', literal=True)
    return pl.concat([carried.filter(~is_older), _still_standing(carried.filter(is_older), recomputed_days)])


def _convert_older_verdicts(context: StepContext) -> pl.DataFrame:
    """Return the verdicts of a base release without results by day, as undated rows with the days that each covers."""
    store, files = Store(context.root), context.list_base_files(QUALITY)
    base = releases.current(store)
    if not files or base is None:
        return frames.empty(QUALITY_DAILY)
    dates, place = set(base.dates), releases.files_of(store, base)
    days = {
        name: sorted({day.isoformat() for path in paths if (day := locations.parse_day(path))} & dates)
        for name, paths in place.items()
        if name in {table.name for table in TABLES if table.partition}
    }
    undated = read_parquet(files).filter(pl.col("table_name").is_in([name for name in days if days[name]]))
    observations = [(name, json.loads(text)) for name, text in undated.select("table_name", "observed").iter_rows()]
    counts = [observed.get("row_count", observed.get("observed_value")) for _, observed in observations]
    return undated.with_columns(
        pl.Series(
            "observed", [json.dumps(observed | {_OF_DAYS: days[name]}) for name, observed in observations], pl.String
        ),
        pl.Series("row_count", [count if isinstance(count, int) else 0 for count in counts], pl.Int64),
        day=pl.lit(None, pl.Date),
    ).select(QUALITY_DAILY.column_names)


def _still_standing(older: pl.DataFrame, recomputed_days: Mapping[str, Sequence[str | None]]) -> pl.DataFrame:
    """Return the undated results of older releases that cover a day which has not been recomputed yet."""
    observations = [
        observed | {_OF_DAYS: [day for day in observed[_OF_DAYS] if day not in recomputed_days.get(name, ())]}
        for name, observed in zip(older["table_name"], map(json.loads, older["observed"]), strict=True)
    ]
    is_valid = pl.Series([bool(observed[_OF_DAYS]) for observed in observations], dtype=pl.Boolean)
    return older.with_columns(observed=pl.Series(map(json.dumps, observations), dtype=pl.String)).filter(is_valid)


def _verdicts(run: Run, _: Day) -> Iterator[TableFile]:
    """Yield the verdicts on each table."""
    for name in run.store.files.matching(f"{run.place(run.folder)}/{VERDICTS}*/*.parquet"):
        yield TableFile(QUALITY_DAILY.name, name)


# ---- quarantined and rejected rows


def gather_quarantine(context: StepContext) -> int:
    """Join the quarantined rows of jobs, polls and predictions, including other days. Returns the number of rows."""
    rebuilt = [
        (table.name, day) for table, faulty in _FAULTY_ROWS.items() for day in context.get_file_days(faulty).values()
    ]
    rebuilt_days = pl.DataFrame(rebuilt, schema={"table_name": pl.String, "day": pl.Date}, orient="row")
    with context.engine() as connection:
        context.expose(connection, *_FAULTY_ROWS.values())
        context.expose_released(connection, QUARANTINE)
        models.expose_frame(connection, "run", "rebuilt_days", rebuilt_days)
        return context.build_days(connection, QUARANTINE)


def gather_rejects(context: StepContext) -> int:
    """Join the rejected rows of every landing. Returns the number of rows."""
    with context.engine() as connection:
        context.expose_landed(connection, REJECTS)
        return context.build(connection, REJECTS)


QUARANTINED = Step(
    "quarantine",
    gather_quarantine,
    reads=(
        read_built_on(lambda run, _: run.plan.job_days, FAULTY_JOBS),
        read_built_on(lambda run, _: run.plan.poll_days, FAULTY_POLLS),
        read_built_on(lambda run, _: run.plan.prediction_days, FAULTY_PREDICTIONS),
        read_released(QUARANTINE, days=lambda run: run.plan.days),
    ),
    writes=(QUARANTINE,),
    days=lambda run: run.plan.days,
)
REJECTED = Step("rejects", gather_rejects, (read_landed(REJECTS),), (REJECTS,))


def decision(steps: Iterable[Step]) -> Step:
    """Return the step that decides on the release by the verdicts on all tables that steps write."""
    verdicts = tuple(table for step in steps for table in step.writes if table.name.startswith(VERDICTS))
    return Step(
        DECISION,
        decide,
        # summed-up results are needed only from an older release, which has no results by day
        reads=(Input(verdicts, _verdicts), read_released(QUALITY_DAILY, QUALITY), read_live(*_RUNS)),
        writes=(QUALITY_DAILY, QUALITY),
        # undated tables are rebuilt in every run, and so are undated verdicts
        days=lambda run: run.plan.days if None in run.plan.days else (*run.plan.days, None),
        is_check=True,
    )
