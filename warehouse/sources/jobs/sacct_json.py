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
    instant_of,
    list_of,
    number_of,
    object_of,
    settle_in_blocks,
    state_of,
    text_of,
)
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import json_items, times as job_times
from iosig.warehouse.sources.rows.documents import MalformedError

_TEXTS = ("job_id", "user", "account", "cluster", "job_name", "partition", "state", "cancelled_by")
_OTHERS = ("exit_code", "node_list", "comment", "submitted_at", "started_at", "ended_at", "elapsed")
_NAMES = (*_TEXTS, *_OTHERS, "node_count", "task_count", "reason", "remedy")
_SLURM_WORDS = ('"slurm"', '"derived_exit_code"', '"allocation_nodes"', '"kill_request_user"')
#: word that only squeue's JSON contains, which has jobs in another form
_SQUEUE_WORD = '"job_state"'
_REMEDY = "Export the log again with sacct --json."


def sniff(head: Head) -> bool:
    """Recognize a JSON object with jobs in sacct's form."""
    start = head.text.lstrip("\ufeff \t\r\n")
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
        return number_of(value, "exit_code")
    signal = object_of(value.get("signal"), "exit_code.signal")
    code = number_of(value.get("return_code"), "exit_code.return_code")
    number = number_of(signal.get("id", signal.get("signal_id")), "exit_code.signal")
    return None if code is None and number is None else f"{code or 0}:{number or 0}"


def _job_id(job: Mapping[str, object]) -> str | None:
    """Format the job's id as in sacct's text output: `12`, `12_3`, `12_[4-9]` or `12+1`."""
    array = object_of(job.get("array"), "array")
    het = object_of(job.get("het"), "het")
    task = number_of(array.get("task_id"), "array.task_id")
    array_id, waiting = number_of(array.get("job_id"), "array.job_id"), text_of(array.get("task"), "array.task")
    het_id, offset = number_of(het.get("job_id"), "het.job_id"), number_of(het.get("job_offset"), "het.job_offset")
    return format_job_id(number_of(job.get("job_id"), "job_id"), (array_id, task, waiting), (het_id, offset))


def _step_id(step: Mapping[str, object], job_id: str | None) -> str | None:
    inner = object_of(step.get("step"), "step")
    given = inner.get("id")
    if isinstance(given, dict):
        name = number_of(given.get("step_id"), "step.id")
        component = number_of(given.get("step_het_component"), "step.id.step_het_component")
    else:
        name = number_of(given, "step.id")
        name = name and name.rpartition(".")[2]
        component = number_of(object_of(inner.get("het"), "step.het").get("component"), "step.het.component")
    if job_id is None or name is None:
        return None
    return f"{job_id}.{name}" if component is None else f"{job_id}.{name}+{component}"


def _run(record: Mapping[str, object]) -> Cells:
    """Extract the cells that jobs and steps share."""
    times = object_of(record.get("time"), "time")
    state = state_of(record.get("state"))
    return {
        "started_at": instant_of(times.get("start"), "time.start"),
        "ended_at": instant_of(times.get("end"), "time.end"),
        # An end of 0 means that the job is running; the elapsed time replaces the end only if the end is absent.
        "elapsed": None if "end" in times else number_of(times.get("elapsed"), "time.elapsed"),
        "state": state,
        "cancelled_by": text_of(record.get("kill_request_user"), "kill_request_user"),
        "exit_code": _exit_code(record.get("exit_code")),
    }


def _job(job: Mapping[str, object]) -> Cells:
    comment = job.get("comment")
    return _run(job) | {
        "job_id": _job_id(job),
        "user": text_of(job.get("user"), "user"),
        "account": text_of(job.get("account"), "account"),
        "cluster": text_of(job.get("cluster"), "cluster"),
        "job_name": text_of(job.get("name"), "name"),
        "partition": text_of(job.get("partition"), "partition"),
        "node_count": number_of(job.get("allocation_nodes"), "allocation_nodes"),
        "node_list": text_of(job.get("nodes"), "nodes"),
        "comment": text_of(comment.get("job") if isinstance(comment, dict) else comment, "comment"),
        "submitted_at": instant_of(object_of(job.get("time"), "time").get("submission"), "time.submission"),
    }


def _step(step: Mapping[str, object], of_job: Cells) -> Cells:
    """Extract a step's cells; values of the job apply to its steps, too."""
    if "reason" in of_job:
        raise MalformedError("its job is refused")
    nodes = object_of(step.get("nodes"), "nodes")
    names = [text_of(node, "nodes.list") or "" for node in list_of(nodes.get("list"), "nodes.list")]
    shared = ("user", "account", "cluster", "partition", "comment", "submitted_at")
    return (
        {name: of_job.get(name) for name in shared}
        | _run(step)
        | {
            "job_id": _step_id(step, of_job.get("job_id")),
            "job_name": text_of(object_of(step.get("step"), "step").get("name"), "step.name"),
            "node_count": number_of(nodes.get("count"), "nodes.count"),
            "node_list": text_of(nodes.get("range"), "nodes.range") or ",".join(names),
            "task_count": number_of(object_of(step.get("tasks"), "tasks").get("count"), "tasks.count"),
        }
    )


def _records(jobs: Iterable[object]) -> Iterator[tuple[Cells, object]]:
    """Yield each job and then its steps: the cells, and the raw record."""
    for job in jobs:
        cells: Cells = {}
        steps: list[object] = []
        try:
            record = object_of(job, "the job")
            steps = list_of(record.get("steps"), "steps")
            cells = _job(record)
        except MalformedError as error:
            cells = build_malformed_cells(error, _REMEDY)
        yield cells, job
        for step in steps:
            try:
                yield _step(object_of(step, "the step"), cells), step
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
