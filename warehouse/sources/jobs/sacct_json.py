"""Slurm's `sacct --json`, as the data parsers of Slurm 21.08 to 24.x write it: jobs, each with its steps.

A number is plain or `{"set": …, "infinite": …, "number": …}`; a state is a word or a list, whose first word is
the state and the others flags of it; a step's id is a number or name, an object, or `<job>.<step>`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import polars as pl

from warehouse.contracts.jobs import JOB_RECORDS
from warehouse.sources.jobs.records import settle
from warehouse.sources.protocol import RAW_LIMIT_CHARS, Batch, Head, Reading, Source
from warehouse.sources.rows import json_items, times as job_times
from warehouse.sources.rows.documents import MalformedError, items, members, text
from warehouse.sources.rows.rejects import Sifted

Cells: TypeAlias = dict[str, str | None]
_TEXTS = ("job_id", "user", "account", "cluster", "job_name", "partition", "state", "cancelled_by")
_OTHERS = ("exit_code", "node_list", "comment", "submitted_at", "started_at", "ended_at", "elapsed")
_NAMES = (*_TEXTS, *_OTHERS, "node_count", "task_count", "reason", "remedy")
_CELL_SCHEMA = pl.Schema({"line": pl.Int64} | dict.fromkeys(_NAMES, pl.String))
_BLOCK_RECORDS = 20_000
_SLURM_WORDS = ('"slurm"', '"derived_exit_code"', '"allocation_nodes"', '"kill_request_user"')
#: squeue's JSON also has jobs, in another form
_SQUEUE_WORD = '"job_state"'
_REMEDY = "Export the log anew with sacct --json."


def sniff(head: Head) -> bool:
    """Return whether the start is a JSON object with jobs as sacct writes them."""
    start = head.text.lstrip("\ufeff \t\r\n")
    lower = start.lower()
    return (
        start.startswith("{")
        and '"jobs"' in start
        and _SQUEUE_WORD not in start
        and any(word in lower for word in _SLURM_WORDS)
    )


def _object(value: object, name: str) -> Mapping[str, object]:
    return {} if value is None else members(value, name)


def _list(value: object, name: str) -> list[object]:
    return [] if value is None else items(value, name)


def _text(value: object, name: str) -> str | None:
    """Return a text or number as text; NULL for null and empty."""
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return text(str(value) if is_number else value, name) or None


def _number(value: object, name: str) -> str | None:
    """Return a plain or wrapped number as text; NULL where it is not set or infinite."""
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
        if isinstance(value, dict):
            raise MalformedError(f"{name} is no number")
    return _text(value, name)


def _instant(times: Mapping[str, object], key: str) -> str | None:
    """Return epoch seconds as text; Slurm writes 0 for what has not happened."""
    seconds = _number(times.get(key), f"time.{key}")
    return None if seconds == "0" else seconds


def _state(value: object) -> str | None:
    if isinstance(value, dict):
        value = value.get("current")
    if isinstance(value, list):
        value = value[0] if value else None
    return _text(value, "state")


def _exit_code(value: object) -> str | None:
    """Return `<code>:<signal>`, as sacct's text form writes it."""
    if not isinstance(value, dict):
        return _number(value, "exit_code")
    signal = _object(value.get("signal"), "exit_code.signal")
    code = _number(value.get("return_code"), "exit_code.return_code")
    number = _number(signal.get("id", signal.get("signal_id")), "exit_code.signal")
    return None if code is None and number is None else f"{code or 0}:{number or 0}"


def _job_id(job: Mapping[str, object]) -> str | None:
    """Return the job's id as sacct's text form writes it: `12`, `12_3`, `12_[4-9]` or `12+1`."""
    array = _object(job.get("array"), "array")
    het = _object(job.get("het"), "het")
    array_id = _number(array.get("job_id"), "array.job_id")
    if array_id not in (None, "0"):
        task = _number(array.get("task_id"), "array.task_id")
        waiting = _text(array.get("task"), "array.task")
        if task is not None:
            return f"{array_id}_{task}"
        if waiting is not None:
            return f"{array_id}_[{waiting.strip('[]')}]"
    het_id, offset = _number(het.get("job_id"), "het.job_id"), _number(het.get("job_offset"), "het.job_offset")
    if het_id not in (None, "0") and offset is not None:
        return f"{het_id}+{offset}"
    return _number(job.get("job_id"), "job_id")


def _step_id(step: Mapping[str, object], job_id: str | None) -> str | None:
    inner = _object(step.get("step"), "step")
    given = inner.get("id")
    if isinstance(given, dict):
        name = _number(given.get("step_id"), "step.id")
        component = _number(given.get("step_het_component"), "step.id.step_het_component")
    else:
        name = _number(given, "step.id")
        name = name and name.rpartition(".")[2]
        component = _number(_object(inner.get("het"), "step.het").get("component"), "step.het.component")
    if job_id is None or name is None:
        return None
    return f"{job_id}.{name}" if component is None else f"{job_id}.{name}+{component}"


def _run(record: Mapping[str, object]) -> Cells:
    """Return the cells that jobs and steps share."""
    times = _object(record.get("time"), "time")
    state = _state(record.get("state"))
    return {
        "started_at": _instant(times, "start"),
        "ended_at": _instant(times, "end"),
        # An end of 0 means that the run goes on; only where the end is absent does the elapsed time stand in.
        "elapsed": None if "end" in times else _number(times.get("elapsed"), "time.elapsed"),
        "state": state,
        "cancelled_by": _text(record.get("kill_request_user"), "kill_request_user"),
        "exit_code": _exit_code(record.get("exit_code")),
    }


def _job(job: Mapping[str, object]) -> Cells:
    comment = job.get("comment")
    return _run(job) | {
        "job_id": _job_id(job),
        "user": _text(job.get("user"), "user"),
        "account": _text(job.get("account"), "account"),
        "cluster": _text(job.get("cluster"), "cluster"),
        "job_name": _text(job.get("name"), "name"),
        "partition": _text(job.get("partition"), "partition"),
        "node_count": _number(job.get("allocation_nodes"), "allocation_nodes"),
        "node_list": _text(job.get("nodes"), "nodes"),
        "comment": _text(comment.get("job") if isinstance(comment, dict) else comment, "comment"),
        "submitted_at": _instant(_object(job.get("time"), "time"), "submission"),
    }


def _step(step: Mapping[str, object], of_job: Cells) -> Cells:
    """Return a step's cells; what is said once of the job holds of its steps."""
    if "reason" in of_job:
        raise MalformedError("its job is refused")
    nodes = _object(step.get("nodes"), "nodes")
    names = [_text(node, "nodes.list") or "" for node in _list(nodes.get("list"), "nodes.list")]
    shared = ("user", "account", "cluster", "partition", "comment", "submitted_at")
    return (
        {name: of_job.get(name) for name in shared}
        | _run(step)
        | {
            "job_id": _step_id(step, of_job.get("job_id")),
            "job_name": _text(_object(step.get("step"), "step").get("name"), "step.name"),
            "node_count": _number(nodes.get("count"), "nodes.count"),
            "node_list": _text(nodes.get("range"), "nodes.range") or ",".join(names),
            "task_count": _number(_object(step.get("tasks"), "tasks").get("count"), "tasks.count"),
        }
    )


def _malformed(error: Exception) -> Cells:
    return {"reason": f"The record is not as Slurm writes it: {error}.", "remedy": _REMEDY}


def _records(jobs: Iterable[object]) -> Iterator[tuple[Cells, object]]:
    """Yield each job and then its steps: the cells, and the record itself."""
    for job in jobs:
        cells: Cells = {}
        steps: list[object] = []
        try:
            record = _object(job, "the job")
            steps = _list(record.get("steps"), "steps")
            cells = _job(record)
        except MalformedError as error:
            cells = _malformed(error)
        yield cells, job
        for step in steps:
            try:
                yield _step(_object(step, "the step"), cells), step
            except MalformedError as error:
                yield _malformed(error), step


def _raw(record: object) -> str:
    try:
        return json.dumps(record)[:RAW_LIMIT_CHARS]
    except RecursionError:
        return "(nested too deeply to be shown)"


def _with_raw(settled: Sifted, records: Mapping[int, object]) -> Sifted:
    """Show refused records as they are; to write all records out would cost more than to read them."""
    lines = settled.refused["line"].to_list()
    raw = [_raw(records[line]) for line in lines]
    return Sifted(settled.rows, settled.refused.with_columns(raw=pl.Series(raw, dtype=pl.String)))


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read jobs and their steps; `line` counts the records in the file's order, a job before its steps.

    Times are epoch seconds. A step has its job's user, account, cluster, partition, comment and submit time.
    Raises InputRefused, after the records before it, for what is no JSON, and for what has no jobs.
    """
    time_zone = job_times.require_zone(reading.time_zone)
    numbered = enumerate(_records(json_items.items(path, "jobs", _REMEDY)), start=1)
    while block := list(islice(numbered, _BLOCK_RECORDS)):
        rows = [[line, *(cells.get(name) for name in _NAMES)] for line, (cells, _) in block]
        cells = pl.DataFrame(rows, schema=_CELL_SCHEMA, orient="row")
        yield from _with_raw(settle(cells, time_zone), {line: record for line, (_, record) in block}).batches(
            JOB_RECORDS
        )


SOURCE = Source(
    name="sacct-json",
    doc="Slurm job log: `sacct --json`, Slurm 21.08 and later; jobs and their steps.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
)
