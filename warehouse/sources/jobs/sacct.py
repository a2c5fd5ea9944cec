"""Read the output of Slurm's `sacct --parsable2`: a header with any fields, or two known forms without a header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import times as job_times
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import build_refused_rows, reject_batches

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
_KNOWN = frozenset(field for fields in FIELDS.values() for field in fields)
#: free-text fields; the last field of a line may contain the delimiter if it is one of these
_FREE_TEXT = frozenset({"jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "extra"})
_HEADER_CELL = re.compile(r"[A-Za-z][A-Za-z0-9_/]*")
_TIME_LIKE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+Z-]{8,}|[0-9]{9,10}|Unknown|None|")
_STATE_LIKE = re.compile(r"[A-Z][A-Z_]*(?: by \S+)?")
_SNIFFED_LINES = 20


def _layout(header: str) -> tuple[str, ...]:
    """Split a header into field names; `--parsable` ends each line with the delimiter."""
    return tuple(cell.strip().lower() for cell in header.strip().removesuffix("|").split("|"))


#: form without a header: XDMoD's shredder (Slurm.php)
FORM_26 = _layout(
    "JobID|JobIDRaw|Cluster|Partition|QOS|Account|Group|GID|User|UID|Submit|Eligible|Start|End|Elapsed|ExitCode|State|"
    "NNodes|NCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|TimeLimit|NodeList|JobName"
)
#: form without a header: SUPReMM's collector (batch_acct.py, SLURMNative)
FORM_21 = _layout(
    "JobID|Cluster|Partition|Account|Group|GID|User|UID|Submit|Eligible|Start|End|ExitCode|State|NNodes|NCPUS|ReqCPUS|"
    "NodeList|JobName|TimeLimit|ReqMem"
)


def _is_header(text: str) -> bool:
    if "|" not in text or "jobid" not in text.lower():
        return False
    layout = _layout(text)
    if not ({"jobid", "jobidraw"} & set(layout)) or len(_KNOWN & set(layout)) < 2:
        return False
    return all(_HEADER_CELL.fullmatch(cell) for cell in layout)


def _is_headerless(text: str) -> bool:
    cells = text.split("|", len(FORM_26) - 1)
    if len(cells) == len(FORM_21) + 1 and not cells[-1].strip():
        cells.pop()
    layout = {len(FORM_26): FORM_26, len(FORM_21): FORM_21}.get(len(cells))
    if layout is None:
        return False
    record = dict(zip(layout, cells, strict=True))
    times = all(_TIME_LIKE.fullmatch(record[name]) for name in ("submit", "start", "end"))
    return times and _STATE_LIKE.fullmatch(record["state"]) is not None


def sniff(head: Head) -> bool:
    """Recognize a header line of sacct, or lines of a form without header."""
    lines = [line for line in head.lines if line.strip()][:_SNIFFED_LINES]
    return any(map(_is_header, lines)) or 2 * sum(map(_is_headerless, lines)) > len(lines)


def _cells(lines: pl.DataFrame, layout: tuple[str, ...]) -> pl.DataFrame:
    """Split lines into iosig's cells; surplus delimiters belong to the last field."""
    parts = pl.col("raw").str.splitn("|", len(layout)).alias("parts")
    filled = {}
    for cell, fields in FIELDS.items():
        places = [layout.index(field) for field in fields if field in layout]
        if places and not (cell in ("elapsed", "suspended") and "end" in layout):
            values = [pl.col("parts").struct.field(f"field_{place}") for place in places]
            filled[cell] = pl.coalesce(pl.when(value.str.strip_chars() != "").then(value) for value in values)
    return lines.with_columns(parts).select("line", pl.col("full").alias("raw"), **filled)


def _select_fitting(lines: pl.DataFrame, layout: tuple[str, ...]) -> pl.DataFrame:
    """Select lines with the layout's number of fields, without the trailing delimiter of `--parsable`."""
    width = len(layout)
    count = pl.col("raw").str.count_matches("|", literal=True).cast(pl.Int64) + 1
    closed = (count == width + 1) & pl.col("raw").str.ends_with("|")
    # Two merged lines have about twice the number of fields; this differs from free text with delimiters.
    overlong = count.is_between(width + 1, 2 * width - 2) & pl.lit(layout[-1] in _FREE_TEXT)
    trimmed = pl.when(closed).then(pl.col("raw").str.strip_suffix("|")).otherwise("raw")
    return lines.filter((count == width) | closed | overlong).with_columns(full=pl.col("raw"), raw=trimmed)


def _misfits(lines: pl.DataFrame, layouts: Sequence[tuple[str, ...]], expected: str) -> pl.DataFrame:
    fitting = pl.concat([_select_fitting(lines, layout).select("line") for layout in layouts])
    count = pl.col("raw").str.count_matches("|", literal=True) + 1
    return build_refused_rows(
        lines.join(fitting, on="line", how="anti"),
        pl.format("The line has {} fields; {}.", count, pl.lit(expected)),
        "Check for a truncated line, or for the delimiter | within a field that is not the last.",
    )


def _part(lines: pl.DataFrame, layout: tuple[str, ...] | None) -> Iterator[pl.DataFrame]:
    """Yield the cells of the lines under one header (None: before the first header), and the faults of bad lines."""
    if layout is None:
        layouts = [FORM_26, FORM_21]
        expected = "no header with JobID precedes it, and a log without one has 26 or 21"
    else:
        layouts, expected = [layout], f"the header has {len(layout)}"
    yield _misfits(lines, layouts, expected)
    for candidate in layouts:
        yield _cells(_select_fitting(lines, candidate), candidate)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a log of sacct; each further header line, as in concatenated logs, changes the order of the fields.

    If the header lacks `End`, the end of jobs in a final state is start + elapsed (+ suspended).
    """
    time_zone = job_times.require_zone(reading.time_zone)
    numbers: dict[tuple[str, ...], int] = {}

    def header_number(text: str) -> int | None:
        return numbers.setdefault(_layout(text), len(numbers)) if _is_header(text) else None

    for block in blocks(path, header_number):
        yield from reject_batches(block.refused)
        layouts: dict[int | None, tuple[str, ...]] = dict(enumerate(numbers))
        parts = block.rows.partition_by("header", as_dict=True, include_key=False)
        cells = [part for (number,), lines in parts.items() for part in _part(lines, layouts.get(number))]
        if cells:
            yield from settle(pl.concat(cells, how="diagonal").sort("line"), time_zone).batches(JOB_RECORDS)


SOURCE = Source(
    name="sacct",
    doc="Slurm job log: `sacct --parsable2` with a header, or XDMoD's 26 and SUPReMM's 21 fields without one.",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
)
