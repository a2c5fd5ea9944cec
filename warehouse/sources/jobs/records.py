"""Build rows of `job_records` from the fields of any job log, with uniform states, counts and times."""

from __future__ import annotations

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.faults import NOTED, validate_rows
from iosig.warehouse.sources.rows.rejects import ParsedRows

#: Slurm's one- and two-letter state codes (sacct manual, "Job state codes")
SHORT_STATES = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "TO": "TIMEOUT",
}
#: final states, in which the elapsed time is the total duration
FINAL_STATES = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
)
_TEXTS = ("cluster", "job_id", "user", "account", "job_name", "partition", "exit_code", "node_list", "comment")
_COUNTS = {"node_count": "nodes", "task_count": "tasks"}
_TIMES = {"submitted_at": "submit", "started_at": "start", "ended_at": "end"}
_OTHER = ("state", "cancelled_by", "elapsed", "suspended", "sharing", "submit_line")
#: words that state whether other jobs may use a job's nodes: OverSubscribe of Slurm's scontrol, options of sbatch
#: (exclusive=user admits other jobs of the user), and the sharing in PBS' resource `place` (manual pbs_resources)
_SHARING = {
    **dict.fromkeys(("no", "exclusive", "excl", "exclhost"), False),
    **dict.fromkeys(("yes", "ok", "user", "mcs", "topo", "share", "shared", "oversubscribe"), True),
    **dict.fromkeys(("exclusive=user", "exclusive=mcs", "exclusive=topo"), True),
}
#: sbatch's option; those of srun within a wrapped command only concern steps
_SUBMITTED = r"\s--(exclusive(?:=\w+)?|oversubscribe|share)(?:\s|$)"
_AS_IS = ("raw", "reason", "remedy")
_NO_NODES = ("none assigned", "(null)", "(unknown)")
_STATE = r"^(?P<word>\S+)(?:\s+(?i:by)\s+(?P<by>\S.*))?$"
_COUNT = r"^(?P<digits>[0-9]{1,12})(?P<unit>[KMkm]?)$"
_MAX_SHOWN_CHARS = 60


def settle(cells: pl.DataFrame, time_zone: str | None) -> ParsedRows:
    """Convert cells to rows of `job_records`; a row with an unreadable cell is refused.

    `cells` has `line` (unique), and any of these columns: the text columns of `job_records`, `state` and
    `cancelled_by`, the counts, the three times (text, or UTC instants), `elapsed` and `suspended` (Slurm durations,
    for logs without the end of a job), `sharing` (a word) or `submit_line` (Slurm's), `raw`, and `reason` with `remedy`
    for faults that the source found.

    Counts may have Slurm's suffix K or M (1,024 and 1,024^2; slurm `convert_num_unit`), but only after integers,
    because Slurm rounds fractions. `elapsed` excludes suspended time (slurmdbd: end - start - suspended). So for final
    states, ended_at = started_at + elapsed + suspended.
    """
    frame = _complete(cells)
    frame = _refuse(
        frame, pl.col("job_id").is_null(), pl.lit("The record has no job id."), "Export the log with job ids."
    )
    frame = _states(frame).with_columns(_sharing())
    for name, label in _COUNTS.items():
        frame = _count(frame, name, label)
    for name, label in _TIMES.items():
        frame = _time(frame, name, label, time_zone)
    typed = [pl.col(name).cast(kind) for name, kind in frames.schema(JOB_RECORDS).items()]
    validated = validate_rows(JOB_RECORDS, _ends(frame).with_columns(source_file=pl.lit("")).with_columns(typed), NOTED)
    return ParsedRows(validated.rows.select(JOB_RECORDS.column_names), validated.refused.sort("line"))


def _complete(cells: pl.DataFrame) -> pl.DataFrame:
    """Add missing columns as NULL, and strip white space from text."""
    names = [*_TEXTS, *_COUNTS, *_TIMES, *_OTHER]
    missing = [pl.lit(None, pl.String).alias(name) for name in (*names, *_AS_IS) if name not in cells.columns]
    trimmed = [
        pl.col(name).cast(pl.String).str.strip_chars()
        for name in names
        if name in cells.columns and not isinstance(cells.schema[name], pl.Datetime)
    ]
    frame = cells.with_columns(*missing, *trimmed)
    no_nodes = pl.col("node_list").str.to_lowercase().is_in(_NO_NODES)
    return frame.with_columns(
        pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in (*_TEXTS, "state", "cancelled_by")
    ).with_columns(node_list=pl.when(~no_nodes).then("node_list"))


def _refuse(frame: pl.DataFrame, is_broken: pl.Expr, reason: pl.Expr, remedy: str) -> pl.DataFrame:
    """Record a fault for broken rows that have none yet."""
    is_new = pl.col("reason").is_null() & is_broken.fill_null(False)
    return frame.with_columns(
        reason=pl.when(is_new).then(reason).otherwise("reason"),
        remedy=pl.when(is_new).then(pl.lit(remedy)).otherwise("remedy"),
    )


def _states(frame: pl.DataFrame) -> pl.DataFrame:
    upper = pl.col("word").str.to_uppercase()
    frame = (
        frame.with_columns(pl.col("state").str.extract_groups(_STATE).alias("_state"))
        .unnest("_state")
        .with_columns(said=pl.col("state"), state=upper.replace(SHORT_STATES))
        .with_columns(by=pl.coalesce("by", "cancelled_by"))
    )
    is_valid = pl.col("state").is_in(JOB_RECORDS.column("state").choices)
    by_whom = pl.col("by").is_not_null() & pl.col("word").ne(pl.col("said"))
    unknown = pl.col("said").is_not_null() & (
        pl.col("state").is_null() | ~is_valid | (by_whom & pl.col("state").ne("CANCELLED"))
    )
    reason = pl.format("The state {} is not one of Slurm's.", pl.col("said").str.slice(0, _MAX_SHOWN_CHARS))
    frame = _refuse(frame, unknown, reason, "Write the state as sacct does, such as COMPLETED or CANCELLED by 123.")
    cancelled_by = pl.when(pl.col("state") == "CANCELLED").then("by")
    return frame.with_columns(cancelled_by=cancelled_by).drop("word", "by", "said")


def _sharing() -> pl.Expr:
    """Whether other jobs may use the nodes: the word, else the option of an allocation's submit line; else NULL."""
    command = pl.col("submit_line").str.replace(r"\s--wrap[ =].*$", "")
    submitted = pl.when(~pl.col("job_id").str.contains(".", literal=True)).then(command.str.extract(_SUBMITTED))
    words = pl.coalesce("sharing", submitted).str.to_lowercase()
    return words.replace_strict(_SHARING, default=None, return_dtype=pl.Boolean).alias("has_shared_nodes")


def _is_absent(frame: pl.DataFrame, name: str) -> bool:
    return frame[name].null_count() == frame.height


def _count(frame: pl.DataFrame, name: str, label: str) -> pl.DataFrame:
    if _is_absent(frame, name):
        return frame
    unit = pl.col("unit").str.to_uppercase().replace_strict({"K": 1024, "M": 1024**2}, default=1)
    empty = pl.col(name).is_null() | pl.col(name).eq("")
    reason = pl.format("The number of {} is given as {}.", pl.lit(label), pl.col(name).str.slice(0, _MAX_SHOWN_CHARS))
    frame = frame.with_columns(pl.col(name).str.extract_groups(_COUNT).alias("_count")).unnest("_count")
    frame = _refuse(frame, ~empty & pl.col("digits").is_null(), reason, "Write whole numbers (for sacct: --noconvert).")
    return frame.with_columns((pl.col("digits").cast(pl.Int64) * unit).alias(name)).drop("digits", "unit")


def _time(frame: pl.DataFrame, name: str, label: str, time_zone: str | None) -> pl.DataFrame:
    if _is_absent(frame, name):
        return frame.with_columns(pl.lit(None, times.INSTANT).alias(name))
    if isinstance(frame.schema[name], pl.Datetime):
        reason = pl.format("The {} time is outside 1970 to 2261.", pl.lit(label))
        return _refuse(frame, ~times.in_range(pl.col(name)), reason, "Check the log's own clock.")
    parsed = times.parse(frame[name], time_zone, label)
    return frame.with_columns(
        parsed["instant"].alias(name),
        pl.coalesce("reason", parsed["reason"]).alias("reason"),
        pl.when(pl.col("reason").is_null()).then(parsed["remedy"]).otherwise("remedy").alias("remedy"),
    )


def _ends(frame: pl.DataFrame) -> pl.DataFrame:
    """Compute the end of runs in a final state from the elapsed time, if the log lacks the end."""
    if _is_absent(frame, "elapsed"):
        return frame
    elapsed = times.parse_durations(frame["elapsed"])
    suspended = times.parse_durations(frame["suspended"])
    frame = frame.with_columns(
        elapsed=elapsed["duration"], suspended=suspended["duration"], _fault=elapsed["is_fault"] | suspended["is_fault"]
    )
    # If the end is known, faults of the elapsed time do not matter.
    open_end = pl.col("ended_at").is_null() & pl.col("state").is_in(FINAL_STATES)
    frame = _refuse(
        frame,
        open_end & pl.col("_fault"),
        pl.lit("The elapsed or suspended time is not a duration, and the end is not given."),
        "Export the log with the field End, or durations as [DD-]HH:MM:SS.",
    )
    reckoned = pl.col("started_at") + pl.col("elapsed") + pl.coalesce("suspended", pl.duration(seconds=0))
    frame = frame.with_columns(ended_at=pl.when(open_end).then(reckoned).otherwise("ended_at"))
    outside = ~times.in_range(pl.col("ended_at"))
    return _refuse(frame, outside, pl.lit("The end time is outside 1970 to 2261."), "Check the elapsed time.")
