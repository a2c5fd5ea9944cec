"""Read the output of `mmperfmon query` for GPFS: bytes and operations per time bucket, node, and disk or file system.

The output of a query has a legend of keys (`node|GPFSNSDDisk|disk|metric`, `node|GPFSFilesystem|cluster|fs|metric`),
followed by their values in groups of columns (IBM Storage Scale, "mmperfmon command"). A row's time is the end of its
bucket, on the clock of the queried node. A tar archive of such outputs is read as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import open_decompressed, read_head, refusing_damage
from iosig.warehouse.sources.files.tar_stream import TarStream, is_tar
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Head, Reading, Source, build_near_miss
from iosig.warehouse.sources.rows import text_blocks, times
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.faults import Fault, sift, validate_rows
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.rejects import ParsedRows, RefusedRow, build_reject_frame
from iosig.warehouse.sources.rows.text_blocks import Block

#: maximum size of a read [B]; maximum size of a query's output [B]
BLOCK_BYTES, MAX_BYTES = 16 << 20, 256 << 20
_LEGEND = "Legend:"
_READ, _WRITE, _READS, _WRITES = "read_bytes_per_s", "write_bytes_per_s", "read_iops", "write_iops"
#: suffix of a metric -> quantity
_METRICS: Final = {
    "GPFSNSDDisk": {"bytes_read": _READ, "bytes_written": _WRITE, "ops_read": _READS, "ops_written": _WRITES},
    "GPFSFilesystem": {"bytes_read": _READ, "bytes_written": _WRITE, "read_ops": _READS, "write_ops": _WRITES},
}
_STARTS: Final = {"GPFSNSDDisk": "gpfs_nsdds_", "GPFSFilesystem": "gpfs_fs_"}
#: pattern of the start of an archive's entry
_IN_ARCHIVE = re.compile(rb"\0\s*Legend:\s+1:\s*\S+\|")
_SNIFFED_LINES = 20
_KEY = re.compile(r"1:\s*\S+\|")
_ENTRY = r"^([0-9]+): ?(\S+)$"
_ROW = r"^(?P<row>[0-9]{1,9}) (?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})-(?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2}) (?P<cells>.+)$"
#: number, or a text for a missing one
_CELL = r"^(?i:[0-9]+(?:\.[0-9]+)?|null|nan|n/?a|none|-)$"
_REMEDY = "Check for a truncated file. If cells have units, query raw numbers (--raw)."
#: mark that is appended to a last line without a line end
_CUT = "\N{HORIZONTAL ELLIPSIS}"


def sniff(head: Head) -> bool:
    """Recognize a query's legend at the start, or in an archive."""
    if is_tar(head.start):
        return _IN_ARCHIVE.search(head.start) is not None
    lines = [line.strip() for line in head.lines if line.strip()][:_SNIFFED_LINES]
    return any(first == _LEGEND and _KEY.match(second) for first, second in pairwise(lines))


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the queries of a file; raise InputRefused if no query contains bytes or operations of storage."""
    zone, has_any = times.require_zone(reading.time_zone), False
    for lines in _queries(path):
        if (lines["text"] == "").all():
            continue
        query = _Query.parse(lines, reading)
        has_any |= isinstance(query, _Query) and query.columns.height > 0
        parsed = (
            ParsedRows(frames.empty(POLLS), build_reject_frame([query]))
            if not isinstance(query, _Query)
            else query.polls(zone)
        )
        yield from parsed.batches(POLLS)
    if not has_any:
        raise InputRefused(
            "None of the columns counts bytes or operations of storage.",
            "Query gpfs_nsdds_bytes_read, gpfs_nsdds_bytes_written, or the gpfs_fs equivalents.",
        )


def _queries(path: Path) -> Iterator[pl.DataFrame]:
    """Yield the lines of each query, as `line` and `text` with single blanks."""
    waiting: list[pl.DataFrame] = []
    byte_count = 0
    for block in _blocks(path):
        # comments become empty lines
        text = pl.col("text").str.replace(r"^#.*$", "").str.replace_all(r"\s+", " ").str.strip_chars()
        lines = text_blocks.lines(block).with_columns(text)
        if not block.content.endswith(b"\n"):
            is_last = pl.col(LINE) == pl.col(LINE).max()
            lines = lines.with_columns(text=pl.when(is_last).then(text + _CUT).otherwise("text"))
        start = 0
        for place in (lines["text"] == _LEGEND).arg_true().to_list():
            if waiting or place > start:
                yield pl.concat([*waiting, lines[start:place]])
            waiting, byte_count, start = [], 0, place
        waiting.append(lines[start:])
        byte_count += len(block.content)
        if byte_count > MAX_BYTES:
            raise InputRefused(f"A query is longer than {MAX_BYTES:,} bytes.", "Query fewer days or nodes at a time.")
    yield pl.concat(waiting)


def _blocks(path: Path) -> Iterator[Block]:
    """Yield the text of a file, or of the entries of an archive in order."""
    if not is_tar(read_head(path).start):
        yield from text_blocks.blocks(path, BLOCK_BYTES)
        return
    line = 1
    with refusing_damage(), open_decompressed(path) as file:
        archive = TarStream(file)
        for member in archive:
            if member.size > MAX_BYTES:
                raise InputRefused(
                    f"An entry of the archive is longer than {MAX_BYTES:,} bytes.", "Split it into smaller archives."
                )
            if content := b"".join(archive.pieces()):
                count = content.count(b"\n") + (not content.endswith(b"\n"))
                yield Block(line, count, content)
                line += count


@dataclass(frozen=True, slots=True)
class _Query:
    """The columns and rows of one query."""

    #: columns with counters: `place` in the legend, `filesystem`, `controller`, `what`
    columns: pl.DataFrame
    #: groups of columns: `section`, index and number of the section's columns
    sections: pl.DataFrame
    #: rows of values: `line`, `raw`, `section`, `row`, `time`, `cells`
    rows: pl.DataFrame
    refused: pl.DataFrame

    @classmethod
    def parse(cls, lines: pl.DataFrame, reading: Reading) -> _Query | RefusedRow:
        """Parse the lines of a query, or return the reason why the whole query is refused."""
        lines = lines.filter(pl.col("text") != "")
        first = int(lines["line"][0]) if lines.height else 1
        legend = lines.filter(pl.col("text").str.contains(_ENTRY))["text"].str.extract_groups(_ENTRY).struct.unnest()
        keys = legend["2"].to_list()
        is_header = pl.col("text").str.starts_with("Row ")
        headers = [text.split(" ")[2:] for text in lines.filter(is_header)["text"]]
        header_names = [name for header in headers for name in header]
        if legend["1"].cast(pl.Int64, strict=False).to_list() != list(range(1, len(keys) + 1)) or not keys:
            return first, "The legend is damaged.", _REMEDY, None
        if header_names != [key.rpartition("|")[2] for key in keys]:
            return first, "The columns do not match the legend.", _REMEDY, None
        columns = _columns(keys, reading)
        counts = pl.Series([len(header) for header in headers], dtype=pl.Int64)
        sections = pl.DataFrame(
            {"section": range(1, len(headers) + 1), "begin": counts.cum_sum() - counts, "count": counts},
            schema={"section": pl.Int64, "begin": pl.Int64, "count": pl.Int64},
        )
        sectioned = lines.with_columns(section=is_header.cast(pl.Int64).cum_sum())
        value_lines = sectioned.filter(~is_header & ~pl.col("text").str.contains(_ENTRY) & (pl.col("text") != _LEGEND))
        return cls(
            columns, sections, *_rows(value_lines.join(sections, on="section", how="left", maintain_order="left"))
        )

    def polls(self, zone: str | None) -> ParsedRows:
        """Return one poll per key and bucket."""
        if self.columns.is_empty():
            return ParsedRows(frames.empty(POLLS), build_reject_frame([]))
        instant = times.parse(self.rows["time"], zone, "bucket's")
        rows = self.rows.with_columns(polled_at=instant["instant"], reason=instant["reason"], remedy=instant["remedy"])
        timed = sift(rows, [Fault(pl.col("polled_at").is_null(), pl.col("reason"), pl.col("remedy"))])
        interval_s = timed.rows.select(times.infer_interval_s(pl.col("polled_at"))).item()
        if interval_s is None:
            single = [_single(timed.rows)] if timed.rows.height else []
            return ParsedRows(frames.empty(POLLS), pl.concat([self.refused, timed.refused, build_reject_frame(single)]))
        points = timed.rows.select(LINE, "polled_at", "begin", pl.col("cells")).with_columns(
            place=pl.int_ranges(pl.col("begin"), pl.col("begin") + pl.col("cells").list.len())
        )
        values = points.drop("begin").explode("place", "cells").join(self.columns, on="place", how="inner")
        wide = _wide(
            values.with_columns(value=pl.col("cells").cast(pl.Float64, strict=False).fill_nan(None) / interval_s)
        )
        validated = validate_rows(POLLS, wide.with_columns(interval_s=pl.lit(interval_s)), _DOUBLED)
        refused = pl.concat([self.refused, timed.refused, validated.refused])
        return ParsedRows(validated.rows.select(*POLLS.column_names, LINE), refused)


def _columns(keys: list[str], reading: Reading) -> pl.DataFrame:
    """Map the columns with counters: `place`, `filesystem`, `controller`, `what`."""
    mapped: list[tuple[int, str, str, str]] = []
    for place, key in enumerate(keys):
        node, sensor, *names, metric = key.split("|") if key.count("|") >= 3 else ("", "", "", "")
        start = _STARTS.get(sensor)
        quantity = _METRICS[sensor].get(metric.removeprefix(start)) if start and metric.startswith(start) else None
        is_used = bool(quantity and node and all(names))
        note_fields({metric: str(quantity)} if is_used else {}, [metric])
        if quantity and is_used:
            filesystem = names[-1] if sensor == "GPFSFilesystem" else DEFAULT_FILESYSTEM
            controller = node if sensor == "GPFSFilesystem" else f"{node}:{names[-1]}"
            mapped.append((place, reading.filesystem or filesystem, controller, quantity))
    columns = pl.DataFrame(
        mapped, schema=["place", "filesystem", "controller", "what"], orient="row", infer_schema_length=None
    )
    if columns.is_empty():
        return columns
    # reads and writes often come from two queries, and the polls of one must not replace those of the other
    directions = columns.group_by("filesystem", "controller").agg(
        reads=pl.col("what").is_in([_READ, _READS]).any(), writes=pl.col("what").is_in([_WRITE, _WRITES]).any()
    )
    suffix = (
        pl.when(~pl.col("writes"))
        .then(pl.lit(":read"))
        .when(~pl.col("reads"))
        .then(pl.lit(":write"))
        .otherwise(pl.lit(""))
    )
    joined = columns.join(directions, on=["filesystem", "controller"], how="left", maintain_order="left")
    return joined.select("place", "filesystem", pl.col("controller") + suffix, "what")


def _rows(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Parse rows of values into cells; refuse other lines."""
    parsed = lines.with_columns(pl.col("text").str.extract_groups(_ROW).alias("found")).unnest("found")
    rows = parsed.select(
        LINE,
        pl.col("text").alias(RAW),
        "section",
        "begin",
        "count",
        pl.col("row").cast(pl.Int64),
        (pl.col("date") + "T" + pl.col("clock")).alias("time"),
        pl.col("cells").str.split(" "),
    )
    is_number = pl.col("cells").list.eval(pl.element().str.contains(_CELL)).list.all()
    is_late = pl.col("row") <= pl.col("row").shift().over("section")
    parted = sift(
        rows,
        [
            Fault(pl.col(RAW).str.ends_with(_CUT), "The last line has no end: it may be truncated.", _REMEDY),
            Fault(pl.col("row").is_null() | pl.col("count").is_null(), "The line is not a row of a query.", _REMEDY),
            Fault(
                pl.col("cells").list.len() != pl.col("count"),
                pl.format("The row has {} cells where {} are expected.", pl.col("cells").list.len(), "count"),
                _REMEDY,
            ),
            Fault(~is_number, "A cell is not a non-negative number.", _REMEDY),
            Fault(is_late, "The row's number is not greater than the previous one.", _REMEDY),
        ],
    )
    return parted.rows, parted.refused


def _single(rows: pl.DataFrame) -> RefusedRow:
    return (
        int(rows[LINE][0]),
        "The query has one bucket only, so its duration is unknown.",
        "Query several buckets.",
        None,
    )


def _wide(values: pl.DataFrame) -> pl.DataFrame:
    """Pivot the values of each key to one row per bucket."""
    names = (_READ, _WRITE, _READS, _WRITES)
    by_name = {name: pl.col("value").filter(pl.col("what") == name) for name in names}
    rows = values.group_by("filesystem", "controller", "polled_at", maintain_order=True).agg(
        pl.col(LINE).min(),
        pl.col("what").is_duplicated().any().alias("is_doubled"),
        *(expression.first().alias(name) for name, expression in by_name.items()),
    )
    is_missing = pl.any_horizontal(pl.col(_READ, _WRITE).is_null())
    return rows.with_columns(flag=pl.when(is_missing).then(pl.lit("missing")))


_DOUBLED = Fault(pl.col("is_doubled"), "A key has two values for one bucket.", "Query each node and disk once.")

SOURCE = Source(
    name="mmperfmon",
    doc="GPFS' `mmperfmon query`: bytes per time bucket, by node and NSD or file system; times are right edges.",
    kind="polls",
    sniff=sniff,
    read=read,
    precedence=3,
    find_near_miss=build_near_miss(
        r"^Row,Timestamp,\S*gpfs_",
        "This is output of mmperfmon query as CSV, which lacks the legend of nodes and disks.",
        "Run mmperfmon query without --csv.",
    ),
)
