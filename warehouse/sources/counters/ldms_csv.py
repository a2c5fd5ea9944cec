"""Read counters as LDMS' store_csv writes them: one set of metrics per line, one schema per file.

Supported are the schemas of Lustre: lustre_ost, lustre_mdt, their job_stats, and lustre_client (llite). The header is
the first line, or a separate file (`altheader=1`: `lustre_ost.HEADER.1556525847` of `lustre_ost.1556525847`). LDMS
samples the sets of a target's jobs one after the other, each with its own time; all sets that it samples within one
second form one scrape. An unchanged job has no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.changes import KEYS, Changes, build_change_batches
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables, text_blocks
from iosig.warehouse.sources.rows.delimited import LINE, Header
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.rejects import ParsedRows, build_refused_rows, build_reject_frame
from iosig.warehouse.sources.rows.text_blocks import Block

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
_THREADS = 2
_SNIFFED_LINES = 20
_TIMES: Final = {"Time": 1e6, "Time_msec": 1e3}
_TARGETS: Final = {"ost": "ost", "mdt": "mdt", "llite": "client"}
_BYTES: Final = {
    "read_bytes_sum": "total_read_bytes",
    "write_bytes_sum": "total_written_bytes",
    "read": "total_read_count",
    "write": "total_write_count",
}
#: Lustre's names of operations that have no separate column; all other unknown names are not operations
_OTHERS: Final = frozenset({"get_info", "set_info", "quotactl"})
_ROW = re.compile(r"([0-9]{9,10}\.[0-9]{1,6}|[0-9]{13})(?:,[^,]*){3,}")
#: a row begins with the time, and its microseconds once more
_LDMS_ROW = re.compile(r"[0-9]{10}\.[0-9]{6},[0-9]{1,6},(?:[^,]*,){2}")
_REMEDY = "Check for a truncated file, or the header of another file."
_ALONE = re.compile(r"(?P<start>.+?)(?P<roll>\.[0-9]+)?(?P<packed>\.(?:gz|bz2|xz|zst))?")


def sniff(head: Head) -> bool:
    """Recognize a header of store_csv in the first lines, or rows with a header in a separate file."""
    if any(map(_header, head.lines[:_SNIFFED_LINES])):
        return True
    first = head.lines[0] if head.lines else ""
    return _ROW.fullmatch(first) is not None and head.path is not None and _read_separate_header(head.path) is not None


def find_near_miss(head: Head) -> InputRefused | None:
    """Recognize rows of store_csv without a header, neither in the file nor beside it."""
    lines = [line for line in head.lines if line.strip()][:_SNIFFED_LINES]
    if not lines or not all(map(_LDMS_ROW.match, lines)):
        return None
    return InputRefused(
        "These are rows of LDMS' store_csv without their header.",
        f"Place the header in {head.name}.HEADER, as store_csv names it, or in the file's first line.",
    )


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read counters of Lustre; raise InputRefused if the file has no header, or the header no column with a counter."""
    pieces = _Pieces(path, reading)
    changes = Changes()
    for _, parts in tables.read_ahead(_read_piece, pieces, _THREADS):
        for part in parts:
            yield from build_change_batches(part.rows, part.refused, changes, reading)
    pieces.require_any()
    yield from samples.build_sample_batches(build_reject_frame([]), scrapes=changes.scrapes())


@dataclass(frozen=True, slots=True)
class _Layout:
    """Maps iosig's column names to the header's, for one schema."""

    header: Header
    columns: dict[str, str]
    counts: dict[str, str]
    component: str | None
    has_jobs: bool
    unit_us: float

    @property
    def integer_columns(self) -> list[str]:
        """Return iosig's names of the integer columns."""
        return [*self.counts, *(name for name in ("usec", "held_s") if name in self.columns)]


def _layout(header: Header, reading: Reading) -> _Layout | str:
    """Map the columns of a header, or return the reason why this is impossible."""
    names_by_metric = {name.removeprefix("stats.").replace(".", "_"): name for name in header.names}
    site_columns = {
        our_column: site_column for our_column, site_column in reading.columns.items() if site_column in header.names
    }
    mapped = [_column(name) for name in names_by_metric]
    counts = {f"count {place}": name for place, name in enumerate(names_by_metric.values()) if mapped[place]}
    columns = {f"count {place}": column for place, column in enumerate(mapped) if column}
    for our_column, site_column in site_columns.items():
        if our_column.startswith("total_"):
            counts[our_column], columns[our_column] = site_column, our_column
    kind = next((name for name in _TARGETS if name in names_by_metric), None)
    target = site_columns.get("target", names_by_metric.get(kind or "", ""))
    if not target or not columns:
        return "None of the columns counts bytes or operations of storage."
    is_job = kind in ("ost", "mdt") and "job_id" in names_by_metric
    if not site_columns and kind != "llite" and is_job != ("snapshot_time" in names_by_metric):
        return "The header has only one of job_id and snapshot_time."
    roles = {
        "target": target,
        "filesystem": names_by_metric.get("fs_name", ""),
        "job_key": names_by_metric["job_id"] if is_job else "",
    }
    roles |= {our_column: site_column for our_column, site_column in site_columns.items() if our_column in KEYS}
    sources = {
        "time": header.names[0],
        **{role: site_column for role, site_column in roles.items() if site_column},
        **counts,
    }
    sources |= {"usec": "Time_usec"} if header.names[0] == "Time" and "Time_usec" in header.names else {}
    sources |= {"held_s": names_by_metric["snapshot_time"]} if is_job else {}
    sources |= {"producer": "ProducerName"} if kind == "llite" else {}
    if len(set(header.names)) < len(header.names):
        return "The header names a column more than once."
    component = None if kind is None else _TARGETS[kind]
    used = {site_column: counts_column for counts_column, site_column in sources.items()}
    note_fields(used | {sources[name]: column for name, column in columns.items()}, header.names)
    return _Layout(header, sources, columns, component, bool(roles["job_key"]), _TIMES[sources["time"]])


def _column(name: str) -> str | None:
    """Map a metric to iosig's column; None if it is not a counter."""
    if name in _BYTES:
        return _BYTES[name]
    column = samples.operation_column(name)
    return column if column != "total_other_count" or name in _OTHERS else None


def _header(line: str) -> Header | None:
    """Parse a header line; None for other lines."""
    names = [name.strip() for name in line.strip().removeprefix("#").split(",")]
    is_header = names[0] in _TIMES and "ProducerName" in names
    return Header(tuple(names), ",") if is_header else None


def _read_separate_header(path: Path) -> Header | None:
    """Read the separate header file that store_csv writes."""
    match = _ALONE.fullmatch(path.name)
    if match is None or ".HEADER" in path.name:
        return None
    name = f"{match['start']}.HEADER{match['roll'] or ''}"
    for header_path in (path.with_name(name + (match["packed"] or "")), path.with_name(name)):
        with suppress(InputRefused, OSError):
            lines = read_head(header_path).lines
            if lines and (header := _header(lines[0])):
                return header
    return None


@dataclass(slots=True)
class _Pieces:
    """Yields blocks, each with the header that applies; a header within the file applies to the lines after it."""

    path: Path
    reading: Reading
    _reasons: list[str] = field(default_factory=list)
    _has_any: bool = False

    def __iter__(self) -> Iterator[tuple[Block, _Layout | str]]:
        header = _read_separate_header(self.path)
        layout = _layout(header, self.reading) if header else "The file has no header."
        self._has_any |= isinstance(layout, _Layout)
        for block in text_blocks.blocks(self.path, BLOCK_BYTES):
            for line, content in _parts(block):
                header = _header(content.decode("utf-8", "replace")) if _is_header(content) else None
                if header:
                    layout = _layout(header, self.reading)
                    self._has_any |= isinstance(layout, _Layout)
                    self._reasons += [layout] if isinstance(layout, str) else []
                else:
                    yield from _split_last_line(
                        line, content, "The header is damaged." if _is_header(content) else layout
                    )

    def require_any(self) -> None:
        """Raise InputRefused if there was no usable header."""
        if not self._has_any:
            raise InputRefused(
                (self._reasons or ["The file has no header."])[0],
                "Known are lustre_ost, lustre_mdt, lustre_client, job_stats; keep the header file in the same folder.",
            )


def _split_last_line(line: int, content: bytes, layout: _Layout | str) -> Iterator[tuple[Block, _Layout | str]]:
    """Yield lines with their layout; a last line without a line end is separate, since it may be truncated."""
    end = content.rfind(b"\n") + 1
    count = content.count(b"\n")
    if count:
        yield Block(line, count, content[:end] if end < len(content) else content), layout
    if end < len(content):
        yield Block(line + count, 1, content[end:]), "The last line has no end: it may be truncated."


def _is_header(content: bytes) -> bool:
    return content.startswith((b"#", b"Time"))


def _parts(block: Block) -> Iterator[tuple[int, bytes]]:
    """Split a block into headers and the lines between them, each with the number of its first line."""
    content, line, start = block.content, block.first_line, 0
    while start < len(content):
        if _is_header(content[start : start + 4]):
            end = content.find(b"\n", start) + 1 or len(content)
        else:
            ends = (content.find(mark, start) + 1 for mark in (b"\n#", b"\nTime"))
            end = min((place for place in ends if place), default=len(content))
        yield line, content if end - start == len(content) else content[start:end]
        if end < len(content):
            line += content.count(b"\n", start, end)
        start = end


def _read_piece(piece: tuple[Block, _Layout | str]) -> list[ParsedRows]:
    """Parse a block to rows with KEYS, `line`, `at_us`, `held_us` and counter columns, and refused rows."""
    block, layout = piece
    if isinstance(layout, str):
        lines = text_blocks.lines(block).filter(pl.col("text") != "")
        return [ParsedRows(pl.DataFrame(), build_refused_rows(lines, layout, _REMEDY, "text"))] if lines.height else []
    cells = text_blocks.cells(block, layout.header, layout.columns)
    parsed = _rows(_numbers(cells.rows, layout), layout)
    return [ParsedRows(parsed.rows, pl.concat([cells.refused, parsed.refused]))]


def _numbers(cells: pl.DataFrame, layout: _Layout) -> pl.DataFrame:
    """Parse the numeric cells; NULL if malformed."""
    integer_columns = (pl.col(name).cast(pl.Int64, strict=False) for name in layout.integer_columns)
    return cells.with_columns(pl.col("time").cast(pl.Float64, strict=False), *integer_columns)


def _rows(cells: pl.DataFrame, layout: _Layout) -> ParsedRows:
    at_us = (pl.col("time") * layout.unit_us).round().cast(pl.Int64, strict=False)
    checked = sift(cells.with_columns(at_us=at_us), _faults(layout))
    rows = checked.rows
    totals = {
        column: [name for name, mapped_column in layout.counts.items() if mapped_column == column]
        for column in layout.counts.values()
    }
    target = pl.format("{}:{}", "producer", "target") if "producer" in layout.columns else pl.col("target")
    keys = {"filesystem": pl.col("filesystem")} if "filesystem" in layout.columns else {}
    keys |= {"target": target.str.strip_chars('" ')}
    if layout.has_jobs:
        # the sets of one second form one scrape
        scraped = pl.col("at_us") // 1_000_000 * 1_000_000
        held_us = pl.col("held_s") * 1_000_000 if "held_s" in layout.columns else pl.lit(None, pl.Int64)
        rows = rows.with_columns(samples.unquote_job_ids(rows["job_key"]), at_us=scraped).with_columns(
            held_us=pl.when(held_us.is_between(1, pl.col("at_us"))).then(held_us)
        )
        keys |= {"job_key": pl.col("job_key")}
    absent = (pl.lit(None, pl.String).alias(name) for name in KEYS if name not in (*keys, "component"))
    component = _component(layout)
    return ParsedRows(
        rows.select(
            LINE, "at_us", *(["held_us"] if layout.has_jobs else []), component, *absent,
            *(key.alias(name) for name, key in keys.items()),
            *(pl.sum_horizontal(names).alias(column) for column, names in totals.items()),
        ),
        checked.refused,
    )  # fmt: skip


def _component(layout: _Layout) -> pl.Expr:
    if "component" in layout.columns:
        return pl.col("component")
    if layout.component is not None:
        return pl.lit(layout.component).alias("component")
    return pl.col("target").map_batches(samples.find_components, pl.String).alias("component")


def _faults(layout: _Layout) -> Sequence[Fault]:
    bad = pl.any_horizontal(pl.col(name).is_null() | (pl.col(name) < 0) for name in layout.counts)
    untimed = ~pl.col("at_us").is_between(10**15, 9 * 10**15) | pl.col("at_us").is_null()
    faults = [
        Fault(untimed, "The time is not in seconds or milliseconds since 1970.", _REMEDY),
        Fault(pl.col("target").is_null(), "The row has no target.", _REMEDY),
        Fault(bad, "A counter is missing, or is not a non-negative integer.", _REMEDY),
    ]
    if "usec" in layout.columns:
        differs = (pl.col("at_us") % 1_000_000 != pl.col("usec")) | pl.col("usec").is_null()
        faults.append(Fault(differs, "The row has two different times.", _REMEDY))
    return faults


SOURCE = Source(
    name="ldms-csv",
    doc=(
        "LDMS' store_csv with counters of Lustre: targets, their jobs, clients; the header in the file or in a "
        "separate one."
    ),
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=3,
    find_near_miss=find_near_miss,
)
