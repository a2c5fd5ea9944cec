"""Read the output of Slurm's `sacct --parsable2`: a header with any fields, or two known forms without a header."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.jobs.fields import Layout, find_failure
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import times as job_times
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import reject_batches

#: iosig's cells -> sacct fields that fill them, in order of preference
FIELDS = {
    "cluster": ("cluster",),
    "job_id": ("jobid", "jobidraw"),
    "user": ("user",),
    "account": ("account",),
    "job_name": ("jobname",),
    "partition": ("partition",),
    "node_count": ("allocnodes", "nnodes"),
    "task_count": ("ntasks",),
    "submitted_at": ("submit",),
    "started_at": ("start",),
    "ended_at": ("end",),
    "state": ("state",),
    "exit_code": ("exitcode",),
    "node_list": ("nodelist",),
    "comment": ("comment",),
    "elapsed": ("elapsed", "elapsedraw"),
    "suspended": ("suspended",),
    "sharing": ("oversubscribe", "shared"),
    "submit_line": ("submitline",),
}
_CELL_BY_FIELD = {field: cell for cell, fields in FIELDS.items() for field in fields}
_HEADER_CELL = re.compile(r"[a-z][a-z0-9_/]*")
_TIME_LIKE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+Z-]{8,}|[0-9]{9,10}|Unknown|None|")
_STATE_LIKE = re.compile(r"[A-Z][A-Z_]*(?: by \S+)?")
_SEPARATORS = re.compile(r"\^\|\^|[|;,\t]")
_STATES = frozenset(JOB_RECORDS.column("state").choices)
_SNIFFED_LINES = 20


def _form(header: str) -> Layout:
    return Layout(tuple(header.lower().split("|")))


#: form without a header: XDMoD's shredder (Slurm.php)
FORM_26 = _form(
    "JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|GID|User|UID|Submit|Eligible|Start|End|Elapsed|ExitCode|State|"
    "NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|TimeLimit|NodeList|JobName"
)
#: form without a header: SUPReMM's collector (batch_acct.py, SLURMNative)
FORM_21 = _form(
    "JobID|Cluster|Partition|Account|Group|GID|User|UID|Submit|Eligible|Start|End|ExitCode|State|NNodes|NCPUS|ReqCPUS|"
    "NodeList|JobName|TimeLimit|ReqMem"
)


def _parse_header(text: str) -> Layout | None:
    """Parse a header with a job id and another known field; None for other lines."""
    layout = Layout.parse(text) if "jobid" in text.lower() else None
    if (
        layout is None
        or not {"jobid", "jobidraw"} & set(layout.fields)
        or len(_CELL_BY_FIELD.keys() & set(layout.fields)) < 2
    ):
        return None
    return layout if all(map(_HEADER_CELL.fullmatch, layout.fields)) else None


def _is_headerless(text: str) -> bool:
    cells = text.split("|", len(FORM_26.fields) - 1)
    if len(cells) == len(FORM_21.fields) + 1 and not cells[-1].strip():
        cells.pop()
    fields = next((form.fields for form in (FORM_26, FORM_21) if len(form.fields) == len(cells)), None)
    if fields is None:
        return False
    record = dict(zip(fields, cells, strict=True))
    times = all(_TIME_LIKE.fullmatch(record[name]) for name in ("submit", "start", "end"))
    return times and _STATE_LIKE.fullmatch(record["state"]) is not None


def sniff(head: Head) -> bool:
    """Recognize a header line of sacct, or lines of a form without header."""
    lines = [line for line in head.lines if line.strip()][:_SNIFFED_LINES]
    return any(map(_parse_header, lines)) or 2 * sum(map(_is_headerless, lines)) > len(lines)


def find_near_miss(head: Head) -> InputRefused | None:
    """Name the option of sacct that makes a log readable: its padded table, and rows without their header, are not."""
    lines = [line.strip() for line in head.lines if line.strip()][:_SNIFFED_LINES]
    if any("JobID" in first.split() and not second.strip("- ") for first, second in pairwise(lines)):
        return InputRefused(
            "This is sacct's table with padded columns, which truncates values to their width.",
            "Export with `sacct --parsable2`.",
        )
    if lines and 2 * sum(map(_is_record, lines)) > len(lines):
        return InputRefused(
            "The log has no header, so the meaning of its fields is unknown.",
            "Export without --noheader, or write the names of the fields as its first line, such as JobID|User|State.",
        )
    return find_failure(pl.Series(lines, dtype=pl.String))


def _is_record(line: str) -> bool:
    """Recognize a record of a job by a state and two times among its fields."""
    cells = _SEPARATORS.split(line)
    time_count = sum(bool(cell) and _TIME_LIKE.fullmatch(cell) is not None for cell in cells)
    return time_count >= 2 and any(cell.split(" by ")[0] in _STATES for cell in cells)


def _cells(lines: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Map the fields of split lines to iosig's cells."""
    filled = {}
    for cell, fields in FIELDS.items():
        places = [layout.fields.index(field) for field in fields if field in layout.fields]
        if places and not (cell in ("elapsed", "suspended") and "end" in layout.fields):
            values = [pl.col(f"field_{place}") for place in places]
            filled[cell] = pl.coalesce(pl.when(value.str.strip_chars() != "").then(value) for value in values)
    return lines.select("line", "raw", **filled)


def _parts(lines: pl.DataFrame, layout: Layout | None) -> Iterator[pl.DataFrame]:
    """Yield the cells of the lines under one header (None: before the first header), and the faults of bad lines."""
    expected = "no header with JobID precedes it, and a log without one has 26 or 21" if layout is None else ""
    for candidate in [FORM_26, FORM_21] if layout is None else [layout]:
        split = candidate.split(lines, expected)
        yield _cells(split.rows, candidate)
        lines = split.refused
    yield lines


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a log of sacct; each further header line, as in concatenated logs, changes the order of the fields.

    Surplus separators belong to the last field if it is the only one with free text; otherwise the line is refused. If
    the header lacks `End`, the end of jobs in a final state is start + elapsed (+ suspended). Raises InputRefused for
    an error message of sacct in the log.
    """
    time_zone = job_times.require_zone(reading.time_zone)
    numbers: dict[Layout, int] = {}

    def header_number(text: str) -> int | None:
        layout = _parse_header(text)
        if layout is None:
            return None
        note_fields(_CELL_BY_FIELD, layout.fields)
        return numbers.setdefault(layout, len(numbers))

    for block in blocks(path, header_number):
        yield from reject_batches(block.refused)
        layouts: dict[int | None, Layout] = dict(enumerate(numbers))
        parts = block.rows.partition_by("header", as_dict=True, include_key=False)
        cells = [part for (number,), lines in parts.items() for part in _parts(lines, layouts.get(number))]
        if cells:
            yield from settle(pl.concat(cells, how="diagonal").sort("line"), time_zone).batches(JOB_RECORDS)


SOURCE = Source(
    name="sacct",
    doc="Slurm job log: `sacct --parsable2` with a header, or XDMoD's 26 and SUPReMM's 21 fields without one.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
    find_near_miss=find_near_miss,
)
