"""Read jobs of Flux: `flux jobs --json`, and the JSON Lines of `flux job list` (the service job-list).

Both have the keys of flux-core's job-list (RFC 43). `flux jobs` adds names of users and results and the return code;
job-list has numbers instead. A job that started instances of Flux is one run: its inner jobs are of another instance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.jobs.slurm_json import Cells, get_number, get_object, get_text, settle_in_blocks
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import json_items
from iosig.warehouse.sources.rows.documents import MalformedError
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import reject_batches

_COLUMNS = {
    "id": "job_id",
    **dict.fromkeys(("username", "userid"), "user"),
    **dict.fromkeys(("bank", "project"), "account"),
    "name": "job_name",
    "queue": "partition",
    "nnodes": "node_count",
    "ntasks": "task_count",
    "nodelist": "node_list",
    "t_submit": "submitted_at",
    "t_run": "started_at",
    **dict.fromkeys(("t_cleanup", "t_inactive"), "ended_at"),
    "result": "state",
    **dict.fromkeys(("returncode", "waitstatus"), "exit_code"),
}
_NAMES = (*dict.fromkeys(_COLUMNS.values()), "reason", "remedy")
#: results by name and by number (flux_job_result_t)
_STATES = {
    **{"COMPLETED": "COMPLETED", "FAILED": "FAILED", "CANCELED": "CANCELLED", "TIMEOUT": "TIMEOUT"},
    **{"1": "COMPLETED", "2": "FAILED", "4": "CANCELLED", "8": "TIMEOUT"},
}
_OWN = re.compile(r'^(?=.*"t_submit"\s*:)(?=.*"(?:userid|t_depend)"\s*:)', re.DOTALL)
_EMPTY = re.compile(r'\{\s*"jobs"\s*:\s*\[\s*\]\s*\}\s*')
_LIST = re.compile(r'\{\s*"jobs"\s*:')
_SNIFFED_LINES = 20
_REMEDY = "Export the jobs again with flux jobs -a -A --json."
_MAX_EXIT_STATUS = 0xFFFF


def sniff(head: Head) -> bool:
    """Recognize an object with the keys of a job, a list of such objects, or one in the first lines."""
    text = head.text.lstrip()
    if _EMPTY.fullmatch(text) or (text.startswith("{") and _OWN.match(text)):
        return True
    return any(line.startswith("{") and _OWN.match(line) for line in head.lines[:_SNIFFED_LINES])


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a list of jobs, one job, or a job per line; an unreadable line is refused alone.

    A run lasts from `t_run` to `t_cleanup`, when its last process has ended. A job that never ran has no start, and
    ends with `t_inactive`. Times are seconds since 1970. The user of job-list is a number.
    """
    del reading
    lines = read_head(path).lines
    first = next((line for line in lines if line.strip()), "")
    if not _LIST.match(first.lstrip()) and any(_is_object(line) for line in lines[:_SNIFFED_LINES]):
        yield from _read_lines(path)
        return
    is_list = _LIST.match("\n".join(lines).lstrip())
    jobs = json_items.items(path, "jobs", _REMEDY) if is_list else iter([dict(json_items.members(path, _REMEDY))])
    records = ((_convert(job), job) for job in jobs)
    for sifted in settle_in_blocks(records, _NAMES, lambda cells: settle(cells, "UTC")):
        yield from sifted.batches(JOB_RECORDS)


def _is_object(line: str) -> bool:
    return line.startswith("{") and isinstance(_parse(line), dict)


def _read_lines(path: Path) -> Iterator[Batch]:
    for block in blocks(path):
        yield from reject_batches(block.refused)
        lines = block.rows.filter(~pl.col("raw").str.starts_with("#"))
        cells = [_convert(_parse(line)) for line in lines["raw"].to_list()]
        columns = {name: pl.Series([each.get(name) for each in cells], dtype=pl.String) for name in _NAMES}
        yield from settle(lines.select("line", "raw").with_columns(**columns), "UTC").batches(JOB_RECORDS)


def _parse(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _convert(job: object) -> Cells:
    """Extract the cells of a job; for a malformed one, the reason and the remedy."""
    try:
        if not isinstance(job, dict):
            raise MalformedError("it is no JSON object")
        note_fields(_COLUMNS, job)
        return _get_cells(job)
    except MalformedError as error:
        return {"reason": f"The record is not a job of Flux: {error}.", "remedy": _REMEDY}


def _get_cells(job: dict[str, object]) -> Cells:
    texts = {name: get_text(job.get(name), name) for name in ("username", "bank", "project", "name", "queue")}
    numbers = {name: get_number(job.get(name), name) for name in ("id", "userid", "nnodes", "ntasks", "returncode")}
    times = {name: _get_time(job, name) for name in ("t_submit", "t_run", "t_cleanup", "t_inactive")}
    get_object(job.get("annotations"), "annotations")
    return {
        "job_id": numbers["id"],
        "user": texts["username"] or numbers["userid"],
        "account": texts["bank"] or texts["project"],
        "job_name": texts["name"],
        "partition": texts["queue"],
        "node_count": numbers["nnodes"],
        "task_count": numbers["ntasks"],
        "node_list": get_text(job.get("nodelist"), "nodelist"),
        "submitted_at": times["t_submit"],
        "started_at": times["t_run"],
        "ended_at": times["t_cleanup"] if times["t_run"] else times["t_inactive"],
        "state": _get_state(job, has_started=times["t_run"] is not None),
        "exit_code": numbers["returncode"] or _decode_status(job.get("waitstatus")),
    }


def _get_time(job: dict[str, object], name: str) -> str | None:
    """Convert seconds since 1970 to text; 0, which stands for events that have not happened, becomes None."""
    seconds = job.get(name)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float | None):
        raise MalformedError(f"{name} is not a number")
    return str(seconds) if seconds else None


def _get_state(job: dict[str, object], *, has_started: bool) -> str:
    result = get_text(job.get("result"), "result")
    if result is None:
        return "RUNNING" if has_started else "PENDING"
    if result not in _STATES:
        raise MalformedError(f"the result {result[:20]} does not exist")
    return _STATES[result]


def _decode_status(status: object) -> str | None:
    """Decode a status of wait(2) like `returncode`: the exit code, or the negative number of a signal."""
    if not isinstance(status, int) or isinstance(status, bool) or not 0 <= status <= _MAX_EXIT_STATUS:
        return None
    signal = status & 0x7F
    return str(-signal if signal else status >> 8)


SOURCE = Source(
    name="flux",
    doc="Jobs of Flux: `flux jobs -a -A --json`, or the JSON Lines of `flux job list -A`.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
)
