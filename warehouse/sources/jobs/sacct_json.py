"""Read the output of Slurm's `sacct --json`, as Slurm 21.08 to 24.x write it: jobs, each with its steps.

A step's id is a number or name, an object, or `<job>.<step>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.jobs.slurm_json import (
    Cells,
    build_malformed_cells,
    format_job_id,
    get_instant,
    get_list,
    get_number,
    get_object,
    get_state,
    get_text,
    settle_in_blocks,
)
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import json_items, times as job_times
from iosig.warehouse.sources.rows.documents import MalformedError
from iosig.warehouse.sources.rows.field_use import note_fields

_TEXTS = ("job_id", "user", "account", "cluster", "job_name", "partition", "state", "cancelled_by")
_OTHERS = ("exit_code", "node_list", "comment", "submitted_at", "started_at", "ended_at", "elapsed", "submit_line")
_NAMES = (*_TEXTS, *_OTHERS, "node_count", "task_count", "reason", "remedy")
#: members of a job -> columns that they fill
_COLUMNS = {
    **dict.fromkeys(("job_id", "array", "het"), "job_id"),
    **{name: name for name in ("user", "account", "cluster", "partition", "comment", "exit_code", "state")},
    **{"name": "job_name", "allocation_nodes": "node_count", "nodes": "node_list", "kill_request_user": "cancelled_by"},
    **{"time": "submitted_at, started_at, ended_at", "steps": "rows of the steps"},
}
_SLURM_WORDS = ('"slurm"', '"derived_exit_code"', '"allocation_nodes"', '"kill_request_user"')
#: word that only squeue's JSON contains, which has jobs in another form
_SQUEUE_WORD = '"job_state"'
_REMEDY = "Export the log again with sacct --json."


def sniff(head: Head) -> bool:
    """Recognize a JSON object with jobs in sacct's form."""
    start = head.text.lstrip()
    lower = start.lower()
    return (
        start.startswith("{")
        and '"jobs"' in start
        and _SQUEUE_WORD not in start
        and any(word in lower for word in _SLURM_WORDS)
    )


def _exit_code(value: object) -> str | None:
    """Format `<code>:<signal>` as in sacct's text output."""
    if not isinstance(value, dict):
        return get_number(value, "exit_code")
    signal = get_object(value.get("signal"), "exit_code.signal")
    code = get_number(value.get("return_code"), "exit_code.return_code")
    number = get_number(signal.get("id", signal.get("signal_id")), "exit_code.signal")
    return None if code is None and number is None else f"{code or 0}:{number or 0}"


def _job_id(job: Mapping[str, object]) -> str | None:
    """Format the job's id as in sacct's text output: `12`, `12_3`, `12_[4-9]` or `12+1`."""
    array = get_object(job.get("array"), "array")
    het = get_object(job.get("het"), "het")
    task = get_number(array.get("task_id"), "array.task_id")
    array_id, waiting = get_number(array.get("job_id"), "array.job_id"), get_text(array.get("task"), "array.task")
    het_id, offset = get_number(het.get("job_id"), "het.job_id"), get_number(het.get("job_offset"), "het.job_offset")
    return format_job_id(get_number(job.get("job_id"), "job_id"), (array_id, task, waiting), (het_id, offset))


def _step_id(step: Mapping[str, object], job_id: str | None) -> str | None:
    inner = get_object(step.get("step"), "step")
    raw_id = inner.get("id")
    if isinstance(raw_id, dict):
        name = get_number(raw_id.get("step_id"), "step.id")
        component = get_number(raw_id.get("step_het_component"), "step.id.step_het_component")
    else:
        name = get_number(raw_id, "step.id")
        name = name and name.rpartition(".")[2]
        component = get_number(get_object(inner.get("het"), "step.het").get("component"), "step.het.component")
    if job_id is None or name is None:
        return None
    return f"{job_id}.{name}" if component is None else f"{job_id}.{name}+{component}"


def _run(record: Mapping[str, object]) -> Cells:
    """Extract the cells that jobs and steps share."""
    times = get_object(record.get("time"), "time")
    state = get_state(record.get("state"))
    return {
        "started_at": get_instant(times.get("start"), "time.start"),
        "ended_at": get_instant(times.get("end"), "time.end"),
        # An end of 0 means that the job is running; the elapsed time replaces the end only if the end is absent.
        "elapsed": None if "end" in times else get_number(times.get("elapsed"), "time.elapsed"),
        "state": state,
        "cancelled_by": get_text(record.get("kill_request_user"), "kill_request_user"),
        "exit_code": _exit_code(record.get("exit_code")),
    }


def _job(job: Mapping[str, object]) -> Cells:
    comment = job.get("comment")
    return _run(job) | {
        "job_id": _job_id(job),
        "user": get_text(job.get("user"), "user"),
        "account": get_text(job.get("account"), "account"),
        "cluster": get_text(job.get("cluster"), "cluster"),
        "job_name": get_text(job.get("name"), "name"),
        "partition": get_text(job.get("partition"), "partition"),
        "node_count": get_number(job.get("allocation_nodes"), "allocation_nodes"),
        "node_list": get_text(job.get("nodes"), "nodes"),
        "comment": get_text(comment.get("job") if isinstance(comment, dict) else comment, "comment"),
        "submit_line": get_text(job.get("submit_line"), "submit_line"),
        "submitted_at": get_instant(get_object(job.get("time"), "time").get("submission"), "time.submission"),
    }


def _step(step: Mapping[str, object], of_job: Cells) -> Cells:
    """Extract a step's cells; values of the job apply to its steps, too."""
    if "reason" in of_job:
        raise MalformedError("its job is refused")
    nodes = get_object(step.get("nodes"), "nodes")
    names = [get_text(node, "nodes.list") or "" for node in get_list(nodes.get("list"), "nodes.list")]
    shared = ("user", "account", "cluster", "partition", "comment", "submitted_at")
    return (
        {name: of_job.get(name) for name in shared}
        | _run(step)
        | {
            "job_id": _step_id(step, of_job.get("job_id")),
            "job_name": get_text(get_object(step.get("step"), "step").get("name"), "step.name"),
            "node_count": get_number(nodes.get("count"), "nodes.count"),
            "node_list": get_text(nodes.get("range"), "nodes.range") or ",".join(names),
            "task_count": get_number(get_object(step.get("tasks"), "tasks").get("count"), "tasks.count"),
        }
    )


def _records(jobs: Iterable[object]) -> Iterator[tuple[Cells, object]]:
    """Yield each job and then its steps: the cells, and the raw record."""
    for job in jobs:
        cells: Cells = {}
        steps: list[object] = []
        try:
            record = get_object(job, "the job")
            note_fields(_COLUMNS, record)
            steps = get_list(record.get("steps"), "steps")
            cells = _job(record)
        except MalformedError as error:
            cells = build_malformed_cells(error, _REMEDY)
        yield cells, job
        for step in steps:
            try:
                yield _step(get_object(step, "the step"), cells), step
            except MalformedError as error:
                yield build_malformed_cells(error, _REMEDY), step


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read jobs and their steps; `line` counts the records in the file's order, a job before its steps.

    Times are epoch seconds. A step has its job's user, account, cluster, partition, comment and submit time. Raises
    InputRefused, after the records before it, for invalid JSON, and for JSON without jobs.
    """
    time_zone = job_times.require_zone(reading.time_zone)
    records = _records(json_items.items(path, "jobs", _REMEDY))
    for sifted in settle_in_blocks(records, _NAMES, lambda cells: settle(cells, time_zone)):
        yield from sifted.batches(JOB_RECORDS)


SOURCE = Source(
    name="sacct-json",
    doc="Slurm job log: `sacct --json`, Slurm 21.08 and later; jobs and their steps.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
)
