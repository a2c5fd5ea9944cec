"""Read the Standard Workload Format, version 2.2: 18 numbers per job, `;` comments with a header.

Source: the Parallel Workloads Archive's definition (Chapin et al. 1999, doi:10.1007/3-540-47954-6_4; Feitelson,
Tsafrir and Krakov 2014, doi:10.1016/j.jpdc.2014.06.013).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import reject_batches
from iosig.warehouse.sources.rows.times import INSTANT

FIELDS = (
    "job",
    "submit",
    "wait",
    "run",
    "processors",
    "cpu_time",
    "memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
#: iosig's columns of the fields that are read
_COLUMNS = {
    **{"job": "job_id", "submit": "submitted_at", "wait": "started_at", "run": "ended_at", "status": "state"},
    **{"processors": "task_count", "user": "user", "executable": "job_name"},
    **dict.fromkeys(("queue", "partition"), "partition"),
}
STATES = {"0": "FAILED", "1": "COMPLETED", "5": "CANCELLED"}
#: status codes of parts of a swapped job; the job's own line, which comes first, includes the parts
PARTIAL = ("2", "3", "4")
_TIMES = ("submit", "wait", "run")
_WHOLE = ("job", "processors", "status", "user", "executable", "queue", "partition")
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NUMBER_PATTERN = re.compile(_NUMBER)
_HEADER = re.compile(r";\s*([A-Za-z]+)\s*:\s*(.*?)\s*$")
_HEADER_KEYS = frozenset({"UnixStartTime", "MaxJobs", "MaxRecords", "MaxNodes", "MaxProcs", "TimeZoneString"})
_SNIFFED_LINES = 20
_MAX_SECONDS = 10_000_000_000
_MAX_SHOWN_CHARS = 60


def _header(comments: list[str]) -> dict[str, str]:
    """Parse the comments `; Key: value`, and keep the first value of each key."""
    header: dict[str, str] = {}
    for comment in comments:
        if match := _HEADER.match(comment):
            header.setdefault(match[1], match[2])
    return header


def sniff(head: Head) -> bool:
    """Recognize 18 numbers in most of the first lines that are not comments, or a header of SWF comments."""
    lines = [line.strip() for line in head.lines if line.strip()]
    records = [line.split() for line in lines if not line.startswith((";", "#"))][:_SNIFFED_LINES]
    if not records:
        return bool(_HEADER_KEYS & _header(lines).keys())
    return 2 * sum(map(_is_record, records)) > len(records)


def _is_record(cells: list[str]) -> bool:
    return len(cells) == len(FIELDS) and all(map(_NUMBER_PATTERN.fullmatch, cells))


def _start_s(header: Mapping[str, str]) -> float:
    """Return the epoch seconds of the log's time origin, or raise InputRefused if the header lacks them."""
    text = header.get("UnixStartTime", "")
    if re.fullmatch(r"[0-9]{1,10}(?:\.[0-9]+)?", text):
        return float(text)
    raise InputRefused(
        f"The header's UnixStartTime is {text[:_MAX_SHOWN_CHARS]!r}: the start of the log is unknown.",
        "Write `; UnixStartTime: <seconds since 1970>` at its top.",
    )


def _has_one_processor_nodes(header: Mapping[str, str]) -> bool:
    nodes, processors = (re.match(r"[0-9]+", header.get(key, "")) for key in ("MaxNodes", "MaxProcs"))
    return nodes is not None and processors is not None and int(nodes[0]) == int(processors[0])


def _fields(lines: pl.DataFrame) -> pl.DataFrame:
    """Split lines into the 18 fields as text, -1 (unknown) as NULL, with `reason` and `remedy` of faults."""
    cells = pl.col("cells")
    frame = lines.with_columns(cells=pl.col("raw").str.extract_all(r"\S+")).with_columns(
        [cells.list.get(place, null_on_oob=True).alias(name) for place, name in enumerate(FIELDS)]
    )
    frame = frame.with_columns(reason=_fault())
    remedy = pl.lit("Compare the line with the format's 18 fields (-1: unknown); check for a truncated line.")
    values = [pl.when(pl.col(name).cast(pl.Float64, strict=False) != -1).then(name).alias(name) for name in FIELDS]
    return frame.with_columns(*values, remedy=pl.when(pl.col("reason").is_not_null()).then(remedy)).drop("cells")


def _fault() -> pl.Expr:
    cells = pl.col("cells")
    odd = cells.list.eval(pl.element().filter(~pl.element().str.contains(_NUMBER))).list.first()
    fraction = pl.coalesce(pl.when(~pl.col(name).str.contains(r"^-?[0-9]{1,18}$")).then(name) for name in _WHOLE)
    seconds = [pl.col(name).cast(pl.Float64, strict=False) for name in _TIMES]
    return (
        pl.when(cells.list.len() != len(FIELDS))
        .then(pl.format("The line has {} fields where the format has 18.", cells.list.len()))
        .when(odd.is_not_null())
        .then(pl.format("The field {} is not a number.", odd.str.slice(0, _MAX_SHOWN_CHARS)))
        .when(fraction.is_not_null())
        .then(pl.format("The field {} must be a whole number.", fraction.str.slice(0, _MAX_SHOWN_CHARS)))
        .when(pl.any_horizontal(((value < 0) & (value != -1)) | (value > _MAX_SECONDS) for value in seconds))
        .then(pl.lit("A submit, wait or run time is negative, or longer than three centuries."))
        .when(~pl.col("status").is_in([*STATES, *PARTIAL, "-1"]))
        .then(pl.format("The status {} does not exist.", "status"))
    )


def _cells(frame: pl.DataFrame, header: Mapping[str, str]) -> pl.DataFrame:
    submit, wait, run = (pl.col(name).cast(pl.Float64, strict=False) for name in _TIMES)
    submitted_s = submit + _start_s(header)
    times = {
        "submitted_at": submitted_s,
        "started_at": submitted_s + wait,
        "ended_at": submitted_s + wait + run,
    }
    is_valid = pl.col("reason").is_null()
    instants = {
        name: pl.when(is_valid).then((value * 1e6).round()).cast(pl.Int64, strict=False).cast(INSTANT)
        for name, value in times.items()
    }
    return frame.select(
        "line",
        "raw",
        "reason",
        "remedy",
        "user",
        job_id="job",
        cluster=pl.lit(header.get("Computer"), pl.String),
        job_name="executable",
        partition=pl.coalesce("partition", "queue"),
        node_count=pl.col("processors") if _has_one_processor_nodes(header) else pl.lit(None, pl.String),
        task_count="processors",
        state=pl.col("status").replace_strict(STATES, default=None),
        **instants,
    )


def _drop_parts(frame: pl.DataFrame, whole_jobs: pl.Series) -> pl.DataFrame:
    """Drop parts of swapped jobs that follow the job's own line; refuse all other parts."""
    is_part = pl.col("reason").is_null() & pl.col("status").is_in(PARTIAL).fill_null(False)
    is_orphan = is_part & ~pl.col("job").is_in(whole_jobs.implode()).fill_null(False)
    return frame.filter(~is_part | is_orphan).with_columns(
        reason=pl.when(is_orphan)
        .then(pl.lit("The line is a part of a job, but the line of the job does not precede it."))
        .otherwise("reason"),
        remedy=pl.when(is_orphan).then(pl.lit("Check whether the log is truncated.")).otherwise("remedy"),
    )


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a workload log: one row per job; the job's own line includes its parts (status 2 to 4).

    Times count from the header's UnixStartTime, which is UTC by definition, so no time zone is needed. The number of
    processors is the format's only measure of parallelism. It becomes the number of tasks and, if MaxNodes equals
    MaxProcs, also the number of nodes. The partition defaults to the queue. Raises InputRefused without UnixStartTime.
    """
    note_fields(_COLUMNS, FIELDS)
    del reading
    header: dict[str, str] = {}
    whole_jobs = pl.Series(dtype=pl.String)
    for block in blocks(path):
        yield from reject_batches(block.refused)
        is_comment = pl.col("raw").str.contains(r"^\s*[;#]")
        comments = block.rows.filter(is_comment)["raw"].str.strip_chars().to_list()
        header = _header(comments) | header
        frame = _fields(block.rows.filter(~is_comment))
        if frame.is_empty():
            continue
        is_whole = pl.col("reason").is_null() & ~pl.col("status").is_in(PARTIAL).fill_null(False)
        whole_jobs = pl.concat([whole_jobs, frame.filter(is_whole)["job"]])
        yield from settle(_cells(_drop_parts(frame, whole_jobs), header), "UTC").batches(JOB_RECORDS)


SOURCE = Source(
    name="swf",
    doc="Standard Workload Format 2.2: 18 numbers a job, `;` comments with UnixStartTime.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
)
