"""Read Grid Engine's accounting (SGE, Son of Grid Engine, UGE, OCS): 43 or more fields separated by `:`, or JSON Lines.

accounting(5) defines the first 43 fields; Grid Engine 6.2 added two, and UGE further ones. UGE writes milliseconds,
and the JSON Lines of OCS 9 microseconds. A line is a run, a task of an array, or a task that a parallel job started
through `qrsh -inherit`. The latter is part of its job's own line, and gives a host of the job only.
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
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import reject_batches

_N = r"-?[0-9.]+(?:[eE][+-]?[0-9]+)?"
#: a line; only the category may contain `:` (up to 9), and the numbers around it show where it ends
_RECORD = (
    r"^(?P<qname>[^:]*):(?P<hostname>[^:]*):[^:]*:(?P<owner>[^:]*):(?P<job_name>[^:]*):(?P<job_number>[0-9]{1,18}):"
    r"(?P<account>[^:]*):-?[0-9]+:(?P<submission_time>[0-9]{1,18}):(?P<start_time>[0-9]{1,18}):"
    r"(?P<end_time>[0-9]{1,18}):(?P<failed>[0-9]{1,9}):(?P<exit_status>-?[0-9]{1,9})"
    rf"(?::{_N}){{17,18}}:(?P<project>[^:]*):[^:]*:(?P<granted_pe>[^:]*):(?P<slots>[0-9]{{1,9}}):"
    rf"(?P<task_number>[0-9]{{1,18}})(?::{_N}){{3}}:[^:]*(?::[^:]*){{0,9}}?:{_N}:"
    rf"(?P<pe_task_id>(?:NONE|none|past_usage)?|[0-9]+\.[^:]*[A-Za-z][^:]*):{_N}"
    rf"(?::{_N}:{_N}(?::[^:]*(?::(?:(?P<qdel_info>[^:@]+@[^:]*)|[^:]*)(?::.*)?)?)?)?$"
)
_FIELDS = tuple(re.findall(r"\?P<(\w+)>", _RECORD))
#: fields of accounting(5), and iosig's columns of those that are read
_ALL_FIELDS = (
    *("qname", "hostname", "group", "owner", "job_name", "job_number", "account", "priority", "submission_time"),
    *(
        "start_time",
        "end_time",
        "failed",
        "exit_status",
        "ru_wallclock",
        "project",
        "department",
        "granted_pe",
        "slots",
    ),
    *("task_number", "cpu", "mem", "io", "category", "pe_taskid", "maxvmem", "arid", "ar_submission_time"),
)
_COLUMNS = {
    **{"qname": "partition", "hostname": "node_list", "owner": "user", "job_name": "job_name", "slots": "task_count"},
    **dict.fromkeys(("job_number", "task_number"), "job_id"),
    **dict.fromkeys(("account", "project"), "account"),
    **{"submission_time": "submitted_at", "start_time": "started_at", "end_time": "ended_at", "failed": "state"},
    **{"exit_status": "exit_code", "granted_pe": "node_count", "pe_taskid": "node_count"},
}
_WHOLE = ("job_number", "submission_time", "start_time", "end_time", "failed", "exit_status", "slots", "task_number")
#: code of the field `failed` for a run that exceeded a limit, and for runs that start again (sge_status(5))
_LIMIT, _AGAIN = "37", ("24", "25")
_NONE = ("", "none", "NONE", "defaultproject")
_LINE = re.compile(r"(?:[^:\n]*:){5}[0-9]+:[^:\n]*:-?[0-9]+(?::[0-9]+){4}:-?[0-9]+:.*")
_JSON_LINE = re.compile(r'\ufeff?\{ ?"job_number": ?[0-9]+, ?"task_number":.*"submission_time": ?[0-9]+')
#: first line of files that contain the same jobs in another form
_OTHERS = {
    "output of qacct": r"^(?:={20,}|qname +\S+) *$",
    "Grid Engine's reporting file": r"^[0-9]{9,16}:(?:acct|job_log|new_job|host|queue)(?:_consumable)?:",
}
_REMEDY = "Check for a truncated line, or a `:` within a name."


def sniff(head: Head) -> bool:
    """Recognize a line of accounting below comments, or other files of Grid Engine with the same jobs."""
    if any(_LINE.match(line) or _JSON_LINE.match(line) for line in head.lines):
        return True
    return re.match(r"={20,} *\nqname +\S", head.text) is not None or _name_other(head.lines[:1]) is not None


def _name_other(first_lines: list[str]) -> str | None:
    """Name the other file of Grid Engine that starts with these lines; None for an accounting file."""
    return next((name for name, form in _OTHERS.items() if any(re.match(form, line) for line in first_lines)), None)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read accounting lines: one row per run of a job or array task; array tasks are called `JOB_TASK`.

    Slots are the number of tasks. Grid Engine does not state the number of nodes. A job with one slot, or without a
    parallel environment, has one; otherwise, it is the number of hosts on which the job started tasks, and NULL if it
    logged none. UGE names the user who deleted a job. Raises InputRefused for output of qacct and for the reporting
    file.
    """
    del reading
    note_fields(_COLUMNS, _ALL_FIELDS)
    hosts, has_any = pl.DataFrame(schema={"run": pl.String, "hostname": pl.String}), False
    for block in blocks(path):
        yield from reject_batches(block.refused)
        lines = block.rows.filter(~pl.col("raw").str.starts_with("#"))
        if not has_any:
            _refuse_other(lines)
        has_any = True
        is_json = pl.col("raw").str.starts_with("{")
        frame = pl.concat([_parse(lines.filter(~is_json)), _parse_json(lines.filter(is_json))]).sort("line")
        frame = frame.with_columns(run=_format_run())
        is_part = pl.col("reason").is_null() & ~pl.col("pe_task_id").is_in(_NONE).fill_null(True)
        hosts = pl.concat([hosts, frame.filter(is_part).select("run", "hostname")]).unique(maintain_order=True)
        own = _add_node_counts(frame.filter(~is_part), hosts)
        hosts = hosts.filter(~pl.col("run").is_in(own["run"].implode()).fill_null(False))
        yield from settle(_cells(own), "UTC").batches(JOB_RECORDS)


def _refuse_other(lines: pl.DataFrame) -> None:
    if (name := _name_other(lines["raw"].head(1).to_list())) is not None:
        raise InputRefused(
            f"This is {name}, not an accounting file.",
            "Land $SGE_ROOT/$SGE_CELL/common/accounting (or accounting.jsonl) itself.",
        )


def _parse(lines: pl.DataFrame) -> pl.DataFrame:
    """Split lines into _FIELDS; a line whose numbers are not where the format has them gets a reason."""
    groups = pl.col("raw").str.extract_groups(_RECORD).alias("groups")
    count = pl.col("raw").str.count_matches(":") + 1
    reason = (
        pl.when((count < 43) & pl.col("job_number").is_null())
        .then(pl.format("The line has {} fields where the format has at least 43.", count))
        .when(pl.col("job_number").is_null())
        .then(pl.format("The line has {} fields, and its numbers are not where the format has them.", count))
    )
    return lines.select("line", "raw", groups).unnest("groups").with_columns(reason=reason)


def _parse_json(lines: pl.DataFrame) -> pl.DataFrame:
    """Extract _FIELDS from JSON Lines as text; a line that lacks a number that all jobs have gets a reason."""
    texts = {name: pl.col("raw").str.json_path_match(f"$.{name}") for name in _FIELDS}
    odd = pl.coalesce(
        pl.when(~pl.col(name).str.contains(r"^-?[0-9]{1,18}$").fill_null(False)).then(pl.lit(name)) for name in _WHOLE
    )
    reason = pl.format("The line is not complete JSON of a job: {} is not a whole number.", odd)
    return lines.select("line", "raw", **texts).with_columns(reason=reason)


def _format_run() -> pl.Expr:
    task = pl.col("task_number")
    return pl.when(task != "0").then(pl.format("{}_{}", "job_number", "task_number")).otherwise("job_number")


def _add_node_counts(runs: pl.DataFrame, hosts: pl.DataFrame) -> pl.DataFrame:
    """Count the hosts of each run: its own and those of its tasks; NULL for a parallel run without tasks."""
    own = runs.select("run", "hostname")
    counts = pl.concat([hosts.join(own, on="run", how="semi"), own.join(hosts, on="run", how="semi")])
    counted = counts.group_by("run").agg(host_count=pl.col("hostname").n_unique().cast(pl.String))
    has_one = (pl.col("slots") == "1") | pl.col("granted_pe").is_in(_NONE)
    return runs.join(counted, on="run", how="left", maintain_order="left").with_columns(
        node_count=pl.when(has_one).then(pl.lit("1")).otherwise("host_count")
    )


def _epoch(name: str) -> pl.Expr:
    """Write seconds, milliseconds or microseconds since 1970 as seconds; 0 means that it has not happened."""
    return pl.when(pl.col(name) != "0").then(pl.col(name).str.replace(r"^([0-9]{10})([0-9]{3}|[0-9]{6})$", "${1}.${2}"))


def _state() -> pl.Expr:
    failed, status = pl.col("failed"), pl.col("exit_status")
    return (
        pl.when(pl.col("qdel_info").is_not_null())
        .then(pl.lit("CANCELLED"))
        .when(failed == _LIMIT)
        .then(pl.lit("TIMEOUT"))
        .when(failed.is_in(_AGAIN))
        .then(pl.lit("REQUEUED"))
        .when((failed == "0") & (status == "0"))
        .then(pl.lit("COMPLETED"))
        .when(failed.is_not_null())
        .then(pl.lit("FAILED"))
    )


def _cells(runs: pl.DataFrame) -> pl.DataFrame:
    has_run = pl.col("start_time") != "0"
    project = pl.when(~pl.col("project").is_in(_NONE)).then("project")
    return runs.select(
        "line",
        "raw",
        "reason",
        "job_name",
        remedy=pl.when(pl.col("reason").is_not_null()).then(pl.lit(_REMEDY)),
        job_id="run",
        user="owner",
        # `sge` is Grid Engine's default for jobs without an account
        account=pl.coalesce(project, pl.when(pl.col("account") != "sge").then("account")),
        partition="qname",
        node_count=pl.when(has_run).then("node_count"),
        task_count="slots",
        submitted_at=_epoch("submission_time"),
        started_at=_epoch("start_time"),
        ended_at=_epoch("end_time"),
        state=_state(),
        cancelled_by=pl.col("qdel_info").str.extract("^([^@]+)", 1),
        exit_code="exit_status",
        node_list=pl.when(has_run & (pl.col("node_count") == "1")).then("hostname"),
    )


SOURCE = Source(
    name="sge",
    doc="Grid Engine's accounting file (SGE, UGE, OCS): fields separated by `:`, or JSON Lines.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
)
