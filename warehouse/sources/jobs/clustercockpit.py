"""Read `meta.json` of ClusterCockpit's job archives: one job per file, by the schema job-meta of cc-lib."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.jobs.slurm_json import Cells, get_list, get_number, get_object, get_text, settle_in_blocks
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import json_items
from iosig.warehouse.sources.rows.documents import MalformedError
from iosig.warehouse.sources.rows.field_use import note_fields

_COLUMNS = {
    "jobId": "job_id",
    "cluster": "cluster",
    "user": "user",
    "project": "account",
    "partition": "partition",
    "numNodes": "node_count",
    "resources": "node_list",
    "submitTime": "submitted_at",
    "startTime": "started_at",
    **dict.fromkeys(("stopTime", "duration"), "ended_at"),
    "jobState": "state",
    "metaData": "job_name",
    **dict.fromkeys(("shared", "exclusive"), "sharing"),
}
_NAMES = (*dict.fromkeys(_COLUMNS.values()), "reason", "remedy")
#: whether jobs share nodes, by `shared`, and by `exclusive` of older versions, as words of `settle`
_SHARING = {"none": "no", "single_user": "user", "multi_user": "yes", "1": "no", "2": "user", "0": "yes"}
_OWN = re.compile(r'\s*\{(?=.*"jobId"\s*:)(?=.*"(?:numNodes|resources|jobState)"\s*:)', re.DOTALL)
_REMEDY = "Copy the job's folder of the archive again."


def sniff(head: Head) -> bool:
    """Recognize an object with the id, the state and the nodes of a job in ClusterCockpit's spelling."""
    return _OWN.match(head.text) is not None


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the job; times are seconds since 1970. A job that runs has no end."""
    del reading
    job = dict(json_items.members(path, _REMEDY))
    note_fields(_COLUMNS, job)
    for sifted in settle_in_blocks(iter([(_convert(job), job)]), _NAMES, lambda cells: settle(cells, "UTC")):
        yield from sifted.batches(JOB_RECORDS)


def _convert(job: Mapping[str, object]) -> Cells:
    """Extract the cells of a job; for a malformed one, the reason and the remedy."""
    try:
        return _get_cells(job)
    except MalformedError as error:
        return {"reason": f"The document is not a job of ClusterCockpit: {error}.", "remedy": _REMEDY}


def _get_cells(job: Mapping[str, object]) -> Cells:
    texts = {name: get_text(job.get(name), name) for name in ("cluster", "user", "project", "partition", "jobState")}
    hosts = [get_text(get_object(each, "resources").get("hostname"), "hostname") for each in _get_resources(job)]
    names = list(dict.fromkeys(host for host in hosts if host))
    count = get_number(job.get("numNodes"), "numNodes")
    if names and count is not None and count != str(len(names)):
        raise MalformedError(f"numNodes is {count[:20]}, but resources has {len(names)} hosts")
    started, ended = _find_period(job, is_running=texts["jobState"] in ("running", "suspended", "pending"))
    shared = get_text(job.get("shared"), "shared") or get_number(job.get("exclusive"), "exclusive")
    return {
        "job_id": get_number(job.get("jobId"), "jobId"),
        "cluster": texts["cluster"],
        "user": texts["user"],
        "account": texts["project"],
        "job_name": get_text(get_object(job.get("metaData"), "metaData").get("jobName"), "jobName"),
        "partition": texts["partition"],
        "node_count": count or (str(len(names)) if names else None),
        "node_list": ",".join(names),
        "submitted_at": get_number(job.get("submitTime"), "submitTime"),
        "started_at": started,
        "ended_at": ended,
        "state": texts["jobState"],
        "sharing": _SHARING.get(shared) if shared else None,
    }


def _get_resources(job: Mapping[str, object]) -> list[object]:
    return get_list(job.get("resources"), "resources")


def _find_period(job: Mapping[str, object], *, is_running: bool) -> tuple[str | None, str | None]:
    """Return the start and the end: `stopTime`, or the start plus `duration`."""
    started = get_number(job.get("startTime"), "startTime")
    if is_running:
        return started, None
    stop, duration = get_number(job.get("stopTime"), "stopTime"), job.get("duration")
    if stop is None and isinstance(duration, int) and not isinstance(duration, bool) and started and started.isdigit():
        if duration < 0:
            raise MalformedError("duration is negative")
        stop = str(int(started) + duration)
    return started, stop


SOURCE = Source(
    name="clustercockpit",
    doc="A job of ClusterCockpit's archive: meta.json.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
)
