"""Build rows of `queue_records` from the fields of a scheduler's queue listing."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.jobs import QUEUE_RECORDS
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.rejects import ParsedRows

#: text that squeue writes for missing values
_NOTHING = ("", "(null)", "N/A", "None", "NONE")
_UNLIMITED = ("UNLIMITED", "NOT_SET", "Partition_Limit", "INVALID")
#: states that only squeue reports, and their short forms -> equivalent states in accounting (sacct)
_STATES = {
    **dict.fromkeys(
        ("REQUEUE_HOLD", "RH", "REQUEUE_FED", "RF", "RESV_DEL_HOLD", "RD", "SPECIAL_EXIT", "SE"), "PENDING"
    ),
    **dict.fromkeys(("SIGNALING", "SI"), "RUNNING"),
    **dict.fromkeys(("STOPPED", "ST"), "SUSPENDED"),
    **dict.fromkeys(("STAGE_OUT", "SO"), "COMPLETING"),
}
_WAITS = ("PENDING", "REQUEUED")
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
_EPOCH = re.compile(r"(?<!\d)1\d{9}(?!\d)")


def infer_observation_time(path: Path, updated_s: float | None = None) -> datetime:
    """Infer the time of the query from the epoch seconds in the file's name, else from the file's modification time.

    updated_s: time of the last change that the content states [s since 1970]; it replaces an earlier time in the name,
    and any modification time, which a copy changes.
    """
    epochs = _EPOCH.findall(path.name)
    named_s = float(epochs[0]) if len(epochs) == 1 else None
    if named_s is not None and named_s >= (updated_s or 0.0):
        return datetime.fromtimestamp(named_s, UTC)
    return datetime.fromtimestamp(path.stat().st_mtime if updated_s is None else updated_s, UTC)


def settle_queue(cells: pl.DataFrame, time_zone: str | None, observed_at: datetime) -> ParsedRows:
    """Convert cells to rows of `queue_records`; finished jobs are dropped.

    cells: as in `records.settle`, with the expected start as `started_at` of a waiting job, and additionally
    `eligible_at`, `time_limit` ([DD-]HH:MM:SS or seconds) and `wait_reason`. A row with a bad cell is refused.
    """
    text_columns = [
        name for name, kind in cells.schema.items() if kind == pl.String and name not in ("job_name", "raw")
    ]
    cleaned = cells.with_columns(
        pl.when(~pl.col(name).str.strip_chars().is_in(_NOTHING)).then(name).alias(name) for name in text_columns
    )
    cleaned, queue_columns = _check_queue_cells(
        cleaned.with_columns(pl.col("state").str.to_uppercase().replace(_STATES)), time_zone
    )
    settled = settle(cleaned, time_zone)
    rows = settled.rows.join(queue_columns, on="line", how="left", maintain_order="left")
    rows = rows.filter(pl.col("state").is_in(QUEUE_RECORDS.column("queue_state").choices))
    waits = pl.col("state").is_in(_WAITS)
    return ParsedRows(
        rows.with_columns(
            observed_at=pl.lit(observed_at, times.INSTANT),
            started_at=pl.when(~waits).then("started_at"),
            expected_start_at=pl.when(waits).then("started_at"),
            wait_reason=pl.when(waits).then("wait_reason"),
            queue_state="state",
            run_count=_run_counts(rows["job_id"]),
        ).select(QUEUE_RECORDS.column_names),
        settled.refused,
    )


def _check_queue_cells(cells: pl.DataFrame, time_zone: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Check the cells that only queues have; return them by `line`, and the cells with faults."""
    lacking = {"eligible_at", "time_limit", "wait_reason", "reason", "remedy"} - set(cells.columns)
    cells = cells.with_columns(pl.lit(None, pl.String).alias(name) for name in lacking)
    eligible = times.parse(cells["eligible_at"], time_zone, "eligible")
    limit = pl.col("time_limit").str.strip_chars()
    # complete a limit of minutes and seconds without hours
    limit = pl.when(limit.str.contains(r"^\d+:\d\d$")).then("0:" + limit.str.zfill(5)).otherwise(limit)
    limit = pl.when(~limit.is_in(_UNLIMITED)).then(limit)
    limits = times.parse_durations(cells.select(limit.alias("time_limit")).to_series())
    is_faulty = limits["is_fault"]
    queue_columns = cells.select(
        "line",
        "wait_reason",
        eligible_at=eligible["instant"],
        time_limit_s=limits["duration"].dt.total_microseconds() / 1e6,
    )
    return cells.with_columns(
        reason=pl.coalesce(
            "reason", eligible["reason"], pl.when(is_faulty).then(pl.lit("The time limit is not a duration."))
        ),
        remedy=pl.coalesce("remedy", eligible["remedy"], pl.lit("Run squeue with %l, or with --json.")),
    ), queue_columns


def _run_counts(job_ids: pl.Series) -> pl.Series:
    """Count the array tasks that each id contains: `12_[1-9:2,11%4]` contains six; NULL if the list is abridged."""
    lists = job_ids.str.extract(r"\[([^%\]]*)", 1)
    counts = {text: _task_count(text) for text in lists.drop_nulls().unique()}
    task_counts = lists.replace_strict(counts, return_dtype=pl.Int64, default=None) if counts else lists.cast(pl.Int64)
    return pl.select(pl.when(lists.is_null()).then(1).otherwise(task_counts)).to_series()


def _task_count(text: str) -> int | None:
    parts = [_TASKS.fullmatch(part) for part in text.split(",")]
    if not all(parts):
        return None
    ranges = [[int(number) for number in part.groups(default="0")] for part in parts if part]
    return sum((last - first) // (step or 1) + 1 if last else 1 for first, last, step in ranges)
