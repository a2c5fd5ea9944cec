"""Read the output of Slurm's `squeue --json`, as Slurm 21.08 to 24.x write it: the running and waiting jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from iosig.warehouse.contracts.jobs import QUEUE_RECORDS
from iosig.warehouse.sources.jobs.queue import infer_observation_time, settle_queue
from iosig.warehouse.sources.jobs.slurm_json import (
    Cells,
    build_malformed_cells,
    format_job_id,
    get_instant,
    get_number,
    get_object,
    get_state,
    get_text,
    settle_in_blocks,
)
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import json_items, times
from iosig.warehouse.sources.rows.documents import MalformedError
from iosig.warehouse.sources.rows.field_use import note_fields

_REMEDY = "Run squeue --json again."
_SECONDS = re.compile(r"1[0-9]{9}")
_TEXTS = {"user": "user_name", "account": "account", "cluster": "cluster", "job_name": "name", "partition": "partition"}
_TEXTS |= {"comment": "comment", "wait_reason": "state_reason"}
_TIMES = {"submitted_at": "submit_time", "eligible_at": "eligible_time", "started_at": "start_time"}
#: members of a job -> columns that they fill
_COLUMNS = {member: column for column, member in (_TEXTS | _TIMES).items()} | {
    **dict.fromkeys(("job_id", "array_job_id", "array_task_id", "het_job_id", "het_job_offset"), "job_id"),
    **{"array_task_string": "job_id, run_count", "node_count": "node_count"},
    **{"time_limit": "time_limit_s", "job_state": "queue_state"},
}
_NAMES = (*_TEXTS, *_TIMES, "job_id", "node_count", "time_limit", "state", "reason", "remedy")


def sniff(head: Head) -> bool:
    """Recognize a JSON object with jobs in squeue's form."""
    start = head.text.lstrip()
    return start.startswith("{") and '"jobs"' in start and '"job_state"' in start


def _job_id(job: Mapping[str, object]) -> str | None:
    array = (get_number(job.get("array_job_id"), "array_job_id"), get_number(job.get("array_task_id"), "array_task_id"))
    waiting = get_text(job.get("array_task_string"), "array_task_string")
    het = get_number(job.get("het_job_id"), "het_job_id"), get_number(job.get("het_job_offset"), "het_job_offset")
    return format_job_id(get_number(job.get("job_id"), "job_id"), (*array, waiting), het)


def _job(job: Mapping[str, object]) -> Cells:
    minutes = get_number(job.get("time_limit"), "time_limit")
    if minutes is not None and not (minutes.isascii() and minutes.isdigit()):
        raise MalformedError("time_limit is not a number of minutes")
    texts = {column: get_text(job.get(field), field) for column, field in _TEXTS.items()}
    instants = {column: get_instant(job.get(field), field) for column, field in _TIMES.items()}
    return {
        **texts,
        **instants,
        "job_id": _job_id(job),
        "node_count": get_number(job.get("node_count"), "node_count"),
        "time_limit": None if minutes is None else str(60 * int(minutes)),
        "state": get_state(job.get("job_state")),
    }


def _read_update_time_s(path: Path) -> float | None:
    """Return the time of the last change of the queue [s since 1970]; None for a document without it."""
    seconds = get_instant(json_items.find_last_update(path, "jobs", _REMEDY), "last_update")
    return float(seconds) if seconds and _SECONDS.fullmatch(seconds) else None


def _records(path: Path) -> Iterator[tuple[Cells, object]]:
    for job in json_items.items(path, "jobs", _REMEDY):
        try:
            record = get_object(job, "the job")
            note_fields(_COLUMNS, record)
            yield _job(record), job
        except MalformedError as error:
            yield build_malformed_cells(error, _REMEDY), job


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the jobs in a queue; `line` numbers them.

    The time of the query comes, in order of preference, from the epoch seconds in the file's name, the document's
    `last_update` (Slurm 23.11 and later), or the file's modification time. A name from before `last_update` is wrong.
    Raises InputRefused for invalid JSON, for JSON without jobs, and for JSON with errors.
    """
    zone = times.require_zone(reading.time_zone)
    observed_at = infer_observation_time(path, _read_update_time_s(path))
    for sifted in settle_in_blocks(_records(path), _NAMES, lambda cells: settle_queue(cells, zone, observed_at)):
        yield from sifted.batches(QUEUE_RECORDS)


SOURCE = Source(
    name="squeue-json",
    doc="Running and waiting jobs of Slurm: `squeue --json`, Slurm 21.08 and later.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=11,
)
