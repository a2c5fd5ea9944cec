"""Read raw files of TACC Stats and HPCPerfStats: counters of a node's Lustre mounts, with the node's job.

A file has a header (`$hostname cn1`, and `!TYPE NAME,E,U=B …` with the counters of each type of devices), and readings:
a line `TIME JOB [HOST]`, and a line `TYPE DEVICE VALUE …` per device (stats_file.c of its monitor). Counters continue
from job to job, so a job's share is the rise of the counters while the readings name the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.contracts.counters import OPERATIONS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.changes import Changes
from iosig.warehouse.sources.counters.job_shares import JobShares, build_share_batches
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import text_blocks
from iosig.warehouse.sources.rows.delimited import LINE
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.field_use import is_recording, note_fields
from iosig.warehouse.sources.rows.rejects import ParsedRows, build_reject_frame

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
#: the type of Lustre's mounts, in TACC Stats and in HPCPerfStats since 2025
_TYPE = "(?:lustre_)?llite"
_SCHEMA = rf"^!{_TYPE} (\S.*)$"
_HOST = r"^\$hostname (\S+)\s*$"
_READING = r"^([0-9]{10}(?:\.[0-9]{1,9})?) (\S+)(?: (\S+))?\s*$"
_RECORD = rf"^{_TYPE} (\S+) (.*)$"
#: empty lines, properties, marks, devices, comments, schemas and records of other types
_OTHER = r"^\s*$|^[$%@#!]|^[a-z]\w* \S+(?: @\w+)?(?: (?:[-+]?[0-9][0-9.e+-]*|-?nan|-))+\s*$"
_BYTES: Final = {"read_bytes": "total_read_bytes", "write_bytes": "total_written_bytes"}
#: characters of damaged text
_NO_TEXT = "[\\x00\ufffd]"
_COLUMNS = (*_BYTES.values(), *(f"total_{name}_count" for name in OPERATIONS if name != "other"))
_VERSION = re.compile(r"^\$(?:tacc_stats|hpcperfstats) ", re.MULTILINE)
_ADDRESS = r"-[0-9a-f]{8,16}$"
_REMEDY = "Check for a truncated file, or two concurrent writers."


def sniff(head: Head) -> bool:
    """Recognize the version in the header, or a schema of Lustre's mounts."""
    return _VERSION.search(head.text) is not None or re.search(_SCHEMA, head.text, re.MULTILINE) is not None


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the counters of each mount, in total and by job; raise InputRefused if no header has them."""
    changes, shares, state = Changes(), JobShares(), _State()
    for block in text_blocks.blocks(path, BLOCK_BYTES):
        yield from build_share_batches(_parse(block, state), shares, changes, reading)
    if state.schema is None:
        raise InputRefused(
            "No header has counters of Lustre's mounts (!llite or !lustre_llite).",
            "Land the raw files of compute nodes with Lustre, with their headers.",
        )
    yield from samples.build_sample_batches(build_reject_frame([]), scrapes=changes.scrapes())


@dataclass(slots=True)
class _State:
    """The header's values and the reading that apply to the next line."""

    host: str | None = None
    schema: str | None = None
    time: str | None = None
    job_key: str | None = None


def _parse(block: text_blocks.Block, state: _State) -> ParsedRows:
    """Convert the records of Lustre's mounts, with the host, the job and the time of the lines above."""
    lines = text_blocks.lines(block).select(LINE, text=pl.col("text").str.strip_chars_end("\r"))
    text = pl.col("text")
    is_time, is_record = text.str.contains(_READING), text.str.contains(_RECORD)
    is_known = (is_record | is_time | text.str.contains(_OTHER)) & ~text.str.contains(_NO_TEXT)
    is_known &= text.str.len_bytes() <= current_limits().max_line_bytes
    groups = text.str.extract_groups(_READING).struct
    before = {name: pl.lit(getattr(state, name), pl.String) for name in ("host", "schema", "time", "job_key")}
    frame = lines.with_columns(
        host=pl.coalesce(text.str.extract(_HOST), groups.field("3")),
        schema=text.str.extract(_SCHEMA),
        time=groups.field("1"),
        job_key=groups.field("2"),
        # an unknown line may have been the start of a reading, so the time after it is unknown
        has_time=pl.when(is_known | is_record).then(pl.when(is_time).then(True)).otherwise(False),
        is_record=is_record,
        is_bad=~is_known,
        is_open=(pl.col(LINE) == lines[LINE].max()) & pl.lit(not block.content.endswith(b"\n")),
    ).with_columns(
        *(pl.col(name).forward_fill().fill_null(value) for name, value in before.items()),
        has_time=pl.col("has_time").forward_fill().fill_null(pl.lit(state.time is not None)),
    )
    frame = frame.with_columns(time=pl.when("has_time").then("time"))
    for name in before:
        setattr(state, name, frame[name][-1])
    return _convert(frame.filter(pl.col("is_record") | pl.col("is_bad")))


def _convert(records: pl.DataFrame) -> ParsedRows:
    """Split the values of records by their schema."""
    parts, refused = [], [build_reject_frame([])]
    for (schema,), rows in records.group_by("schema", maintain_order=True):
        names = [name.split(",")[0] for name in str(schema or "").split()]
        parsed = _split(rows, names)
        parts.append(parsed.rows)
        refused.append(parsed.refused)
    rows = pl.concat(parts).sort(LINE) if parts else pl.DataFrame()
    return ParsedRows(rows, pl.concat(refused).sort(LINE))


def _split(records: pl.DataFrame, names: list[str]) -> ParsedRows:
    columns = {name: column for name in names if (column := _BYTES.get(name) or _find_operation(name))}
    if is_recording():
        note_fields(columns, names)
    text = pl.col("text")
    values = text.str.extract(_RECORD, 2).str.strip_chars_end(" ").str.split(" ")
    cells = {
        column: values.list.get(names.index(name), null_on_oob=True).cast(pl.Int64, strict=False)
        for name, column in columns.items()
    }
    device = text.str.extract(_RECORD, 1).str.strip_prefix("/").str.replace(_ADDRESS, "")
    frame = records.with_columns(
        value_count=values.list.len(),
        raw=text,
        at_us=(pl.col("time").cast(pl.Float64, strict=False) * 1e6).round().cast(pl.Int64, strict=False),
        device=device,
        **cells,
    )
    faults = [
        Fault(pl.col("is_open"), "The last line has no end: it may be truncated.", _REMEDY),
        Fault(pl.col("is_bad"), "The line is not in TACC Stats' format.", _REMEDY),
        Fault(pl.lit(not columns), "No schema of Lustre's mounts precedes the record.", _REMEDY),
        Fault(
            pl.col("value_count") != len(names),
            pl.format("The record has {} values; its schema has {}.", "value_count", pl.lit(len(names))),
            _REMEDY,
        ),
        Fault(pl.col("host").is_null(), "No line names the node.", _REMEDY),
        Fault(pl.col("at_us").is_null(), "No time precedes the record.", _REMEDY),
        Fault(
            pl.any_horizontal([pl.lit(False), *((pl.col(each) < 0) | pl.col(each).is_null() for each in cells)]),
            "A counter is not a non-negative integer.",
            _REMEDY,
        ),
    ]
    checked = sift(frame, faults)
    rows = checked.rows.select(
        LINE,
        "at_us",
        *(name if name in cells else pl.lit(None, pl.Int64).alias(name) for name in _COLUMNS),
        filesystem="device",
        component=pl.lit("client"),
        target=pl.format("{}:{}", pl.col("host").str.extract(r"^([^.]+)"), "device"),
        job_key=pl.col("job_key").fill_null(""),
        collector=pl.lit(None, pl.String),
    )
    return ParsedRows(rows, checked.refused)


def _find_operation(name: str) -> str | None:
    column = samples.operation_column(name)
    return None if column in (None, "total_other_count") or name in ("read", "write") else column


SOURCE = Source(
    name="tacc-stats",
    doc="Raw files of TACC Stats and HPCPerfStats: counters of each Lustre mount of a node, in total and by job.",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=4,
)
