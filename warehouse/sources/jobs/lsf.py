"""Read LSF's `lsb.acct`: one record per line, fields separated by blanks, texts in quotes.

The order of the fields is that of IBM Spectrum LSF, "lsb.acct". A record of a finished job (JOB_FINISH) contains two
lists with their lengths before them, so later fields are found from these lengths. Other records are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source, build_near_miss
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import reject_batches

#: fields before the lists, by position
_FIRST = {
    "ended_at": 2,
    "job_number": 3,
    "processors": 6,
    "submitted_at": 7,
    "started_at": 10,
    "user": 11,
    "partition": 12,
}
#: position of the number of requested hosts, which their list follows, then the number of hosts of the job and theirs
_ASKED = 22
#: fields after the lists, by their distance from the first
_LATER = {"status": 0, "job_name": 2, "account": 24, "exit_status": 25, "index": 29, "exit_info": 38}
#: fields of lsb.acct by their names in IBM's documentation, and iosig's columns
_COLUMNS = {
    **{
        "Event Time": "ended_at",
        "numProcessors": "task_count",
        "submitTime": "submitted_at",
        "startTime": "started_at",
    },
    **{"userName": "user", "queue": "partition", "execHosts": "node_count, node_list", "jobName": "job_name"},
    **{"projectName": "account", "exitStatus": "exit_code"},
    **dict.fromkeys(("jobId", "idx"), "job_id"),
    **dict.fromkeys(("jStatus", "exitInfo"), "state"),
}
_WHOLE = ("ended_at", "job_number", "processors", "submitted_at", "started_at", "status", "exit_status", "index")
#: other records of lsb.acct
_SKIPPED = ("EVENT_ADRSV_FINISH", "JOB_RESIZE")
_TOKEN = r'"(?:[^"]|"")*"|[^ "]+'
_EXIT, _DONE = "32", "64"
#: reasons of termination in the field exitInfo (lsbatch.h), for jobs that ended with an error
_REASONS = {
    "1": "PREEMPTED",
    "5": "TIMEOUT",
    "6": "DEADLINE",
    "8": "CANCELLED",
    "9": "CANCELLED",
    "10": "REQUEUED",
    "11": "REQUEUED",
    "14": "CANCELLED",
    "15": "CANCELLED",
    "16": "OUT_OF_MEMORY",
    "20": "OUT_OF_MEMORY",
    "23": "CANCELLED",
}
_REMEDY = "Check for a truncated line, or for a quote that is not doubled within a text."
_LINE = re.compile(r'\ufeff?"(?:JOB_FINISH|EVENT_ADRSV_FINISH|JOB_RESIZE)" "[0-9.]+" [0-9]+ ')


def sniff(head: Head) -> bool:
    """Recognize a record of lsb.acct in the first lines."""
    return any(_LINE.match(line) for line in head.lines)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read finished jobs: one row per job or array element (`101[3]`).

    Nodes are the distinct hosts of the job, however often or with whatever number of slots the list names each
    (`host1 host1`, `2*host1`). Slots are the number of tasks. The reason of termination decides the state of a job that
    ended with an error.
    """
    del reading
    note_fields(_COLUMNS, _COLUMNS)
    for block in blocks(path):
        yield from reject_batches(block.refused)
        kind = pl.col("raw").str.extract(r'^"([A-Z_]+)" ', 1)
        lines = block.rows.filter(~kind.is_in(_SKIPPED).fill_null(False) & ~pl.col("raw").str.starts_with("#"))
        yield from settle(_cells(_parse(lines)), "UTC").batches(JOB_RECORDS)


def _parse(lines: pl.DataFrame) -> pl.DataFrame:
    """Split lines into fields; a line without the fields that its lists' lengths require gets a reason and a remedy."""
    token = pl.element()
    is_text = token.str.starts_with('"')
    text = token.str.slice(1, token.str.len_chars() - 2).str.replace_all('""', '"', literal=True)
    fields = pl.col("raw").str.extract_all(_TOKEN).list.eval(pl.when(is_text).then(text).otherwise(token))
    frame = lines.select("line", "raw", fields=fields)
    asked_count = _number(_ASKED)
    frame = frame.with_columns(place=_ASKED + 1 + asked_count).with_columns(host_count=_number(pl.col("place")))
    hosts = pl.col("fields").list.slice(pl.col("place") + 1, pl.col("host_count"))
    end = pl.col("place") + 1 + pl.col("host_count")
    frame = frame.with_columns(
        *(_field(place).alias(name) for name, place in _FIRST.items()),
        *(_field(end + place).alias(name) for name, place in _LATER.items()),
        hosts=hosts.list.eval(pl.element().str.replace(r"^[0-9]+\*", "")).list.unique(maintain_order=True),
        remainder=pl.col("raw").str.replace_all(_TOKEN, "").str.strip_chars(),
    )
    return _check(frame)


def _field(place: pl.Expr | int) -> pl.Expr:
    return pl.col("fields").list.get(place, null_on_oob=True)


def _number(place: pl.Expr | int) -> pl.Expr:
    return _field(place).str.extract(r"^([0-9]{1,6})$", 1).cast(pl.Int64)


def _check(frame: pl.DataFrame) -> pl.DataFrame:
    odd = pl.coalesce(
        pl.when(~pl.col(name).str.contains(r"^-?[0-9]{1,18}$").fill_null(False)).then(pl.lit(name)) for name in _WHOLE
    )
    count = pl.col("fields").list.len()
    reason = (
        pl.when(~pl.col("raw").str.starts_with('"JOB_FINISH" ') | (pl.col("remainder") != ""))
        .then(pl.lit("The line is not a record of lsb.acct."))
        .when(odd.is_not_null() | ~pl.col("status").is_in([_EXIT, _DONE]))
        .then(
            pl.format("The line has {} fields, and its numbers are not where the lengths of its lists put them.", count)
        )
    )
    return frame.with_columns(reason=reason).with_columns(
        remedy=pl.when(pl.col("reason").is_not_null()).then(pl.lit(_REMEDY))
    )


def _epoch(name: str) -> pl.Expr:
    """Parse epoch seconds; 0, which LSF writes for a start that has not happened, becomes NULL."""
    return pl.when(pl.col(name) != "0").then(pl.col(name))


def _cells(jobs: pl.DataFrame) -> pl.DataFrame:
    is_array = pl.col("index") != "0"
    reason = pl.col("exit_info").replace_strict(_REASONS, default="FAILED")
    return jobs.select(
        "line",
        "raw",
        "reason",
        "remedy",
        "user",
        "partition",
        "job_name",
        job_id=pl.when(is_array).then(pl.format("{}[{}]", "job_number", "index")).otherwise("job_number"),
        account=pl.when(pl.col("account") != "default").then("account"),
        node_count=pl.when(pl.col("started_at") != "0").then(pl.col("hosts").list.len().cast(pl.String)),
        task_count="processors",
        submitted_at=_epoch("submitted_at"),
        started_at=_epoch("started_at"),
        ended_at=_epoch("ended_at"),
        state=pl.when(pl.col("status") == _DONE).then(pl.lit("COMPLETED")).otherwise(reason),
        exit_code="exit_status",
        node_list=pl.col("hosts").list.join(","),
    )


SOURCE = Source(
    name="lsf",
    doc='LSF\'s lsb.acct: "JOB_FINISH" "10.1" ..., one finished job a line.',
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
    find_near_miss=build_near_miss(
        r"^Accounting information about jobs that are:|^Job <[0-9]+>, ",
        "This is output of bacct, bhist or bjobs, not LSF's accounting file.",
        "Land the file lsb.acct itself.",
    ),
)
