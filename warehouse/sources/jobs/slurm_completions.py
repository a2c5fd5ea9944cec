"""Read the log of Slurm's plugin jobcomp/filetxt: `JobId=… UserId=… GroupId=… Name=… JobState=…`, one job per line.

The keys follow jobcomp_filetxt.c. The value of a key ends at the next key of the format, so names may contain blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.field_use import is_recording, note_fields
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import reject_batches

#: keys in the order of the format; later versions of Slurm added those after WorkDir
_KEYS = (
    *("JobId", "UserId", "GroupId", "Name", "JobState", "Partition", "TimeLimit", "StartTime", "EndTime"),
    *("NodeList", "NodeCnt", "ProcCnt", "WorkDir", "ReservationName", "Gres", "Tres", "Account", "QOS", "WcKey"),
    *("Cluster", "SubmitTime", "EligibleTime", "ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset"),
    *("DerivedExitCode", "ExitCode"),
)
#: keys that every version writes; the last key of versions that write ReservationName
_NEEDED = _KEYS[: _KEYS.index("ReservationName")]
_LAST = "ExitCode"
#: iosig's columns of the keys that are read
_COLUMNS = {
    **dict.fromkeys(("JobId", "ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset"), "job_id"),
    **{"Cluster": "cluster", "UserId": "user", "Account": "account", "Name": "job_name", "Partition": "partition"},
    **{"NodeCnt": "node_count", "SubmitTime": "submitted_at", "StartTime": "started_at", "EndTime": "ended_at"},
    **{"JobState": "state", "ExitCode": "exit_code", "NodeList": "node_list"},
}
_KEY = rf"(?:^| )({'|'.join(_KEYS)})="
_LINE = re.compile(r"\ufeff?JobId=[0-9]+ UserId=\S*\([0-9]+\) GroupId=\S*\([0-9]+\) Name=")
_SHOW = re.compile(r"\ufeff?JobId=[0-9]+ (?:Array\w+=\S+ )*JobName=")
_ABSENT = ("", "unknown", "Unknown", "(null)")
_REMEDY = "Check for a truncated line, or for `Key=` of the format within a name."


def sniff(head: Head) -> bool:
    """Recognize a line of the log, or output of `scontrol show job`."""
    return any(_LINE.match(line) or _SHOW.match(line) for line in head.lines)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read completed jobs: one row per line; array tasks and parts of heterogeneous jobs get sacct's ids.

    Times are local. The number of processors is not a number of tasks, and not used. Raises InputRefused for output of
    scontrol, in which the end of a running job is an expected one.
    """
    time_zone = times.require_zone(reading.time_zone)
    for block in blocks(path):
        yield from reject_batches(block.refused)
        if block.rows["raw"].head(1).str.contains(_SHOW.pattern.removeprefix(r"\ufeff?")).any():
            raise InputRefused(
                "This is output of `scontrol show job`, not a log of completed jobs.",
                "Land the file of JobCompLoc (jobcomp/filetxt), or the output of `sacct --parsable2`.",
            )
        yield from settle(_cells(_parse(block.rows)), time_zone).batches(JOB_RECORDS)


def _parse(lines: pl.DataFrame) -> pl.DataFrame:
    """Split lines into a column per key; a line that lacks a key, or has one twice, gets a reason and a remedy."""
    keys = pl.col("raw").str.extract_all(_KEY).list.eval(pl.element().str.strip_chars(" ="))
    # A key ends the value before it. No text contains the mark, because readers refuse lines with NUL.
    values = pl.col("raw").str.replace_all(_KEY, "\0").str.split("\0").list.slice(1)
    frame = lines.select("line", "raw", key=keys, value=values)
    pairs = frame.select("line", "key", "value").explode("key", "value", empty_as_null=True, keep_nulls=True)
    if is_recording():
        note_fields(_COLUMNS, pairs["key"].drop_nulls().unique(maintain_order=True))
    firsts = [pl.col("value").filter(pl.col("key") == key).first().str.strip_chars().alias(key) for key in _KEYS]
    columns = pairs.group_by("line").agg(
        *firsts, doubled=pl.col("key").filter(pl.col("key").is_duplicated()).drop_nulls().first()
    )
    parsed = frame.select("line", "raw").join(columns, on="line", how="left", maintain_order="left")
    missing = pl.coalesce(
        *(pl.when(pl.col(key).is_null()).then(pl.lit(key)) for key in _NEEDED),
        pl.when(pl.col("ReservationName").is_not_null() & pl.col(_LAST).is_null()).then(pl.lit(_LAST)),
    )
    reason = (
        pl.when(pl.col("JobId").is_null() | ~pl.col("raw").str.starts_with("JobId="))
        .then(pl.lit("The line is not a record of a completed job."))
        .when(pl.col("doubled").is_not_null())
        .then(pl.format("The key {} occurs more than once.", "doubled"))
        .otherwise(pl.format("The line has no {}.", missing))
    )
    return parsed.with_columns(reason=reason).with_columns(
        remedy=pl.when(pl.col("reason").is_not_null()).then(pl.lit(_REMEDY))
    )


def _get_known_text(name: str) -> pl.Expr:
    return pl.when(~pl.col(name).is_in(_ABSENT)).then(name)


def _cells(jobs: pl.DataFrame) -> pl.DataFrame:
    job_id = (
        pl.when(pl.col("ArrayTaskId").is_not_null())
        .then(pl.format("{}_{}", "ArrayJobId", "ArrayTaskId"))
        .when(pl.col("HetJobOffset").is_not_null())
        .then(pl.format("{}+{}", "HetJobId", "HetJobOffset"))
        .otherwise("JobId")
    )
    return jobs.select(
        "line",
        "raw",
        "reason",
        "remedy",
        job_id=job_id,
        cluster=_get_known_text("Cluster"),
        user=pl.col("UserId").str.replace(r"\([0-9]+\)$", ""),
        account=_get_known_text("Account"),
        job_name="Name",
        partition="Partition",
        node_count="NodeCnt",
        submitted_at="SubmitTime",
        started_at="StartTime",
        ended_at="EndTime",
        state="JobState",
        exit_code="ExitCode",
        node_list="NodeList",
    )


SOURCE = Source(
    name="slurm-jobcomp",
    doc="Slurm's log of completed jobs (jobcomp/filetxt): JobId=... UserId=... Name=...; its times are local.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
)
