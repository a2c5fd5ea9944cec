"""Counters as LDMS' store_csv writes them: a set of metrics a line, a schema a file.

Known are the schemas of Lustre: lustre_ost, lustre_mdt, their job_stats, and lustre_client (llite). The header is the
first line, or a file of its own beside (`altheader=1`: `lustre_ost.HEADER.1556525847` of `lustre_ost.1556525847`).
LDMS samples the sets of a target's jobs one after the other, and each has its own time: they are one scrape, of the
second in which they were sampled. A job that did not change has no line.
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
from iosig.warehouse.sources.counters.changes import KEYS, Changes, landed
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables, text_blocks
from iosig.warehouse.sources.rows.delimited import LINE, Header
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.rejects import Sifted, frame_of, refused_rows
from iosig.warehouse.sources.rows.text_blocks import Block

#: text that is read at once
BLOCK_BYTES = 16 << 20
_THREADS = 2
_TIMES: Final = {"Time": 1e6, "Time_msec": 1e3}
_TARGETS: Final = {"ost": "ost", "mdt": "mdt", "llite": "client"}
_BYTES: Final = {
    "read_bytes_sum": "total_read_bytes",
    "write_bytes_sum": "total_written_bytes",
    "read": "total_read_count",
    "write": "total_write_count",
}
#: operations without a column of their own, by the names that Lustre gives them; what else there is is none
_OTHERS: Final = frozenset({"get_info", "set_info", "quotactl"})
_ROW = re.compile(r"([0-9]{9,10}\.[0-9]{1,6}|[0-9]{13})(?:,[^,]*){3,}")
_REMEDY = "Check for a cut file, or a header of another one."
_ALONE = re.compile(r"(?P<start>.+?)(?P<roll>\.[0-9]+)?(?P<packed>\.(?:gz|bz2|xz|zst))?")


def sniff(head: Head) -> bool:
    """Return whether there is a header of store_csv, or rows of it with a header in a file beside them."""
    first = head.lines[0] if head.lines else ""
    if _header(first) is not None:
        return True
    return _ROW.fullmatch(first) is not None and head.path is not None and _beside(head.path) is not None


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read counters of Lustre; raise InputRefused where there is no header, or none of its columns counts."""
    pieces = _Pieces(path, reading)
    changes = Changes()
    for _, found in tables.ahead(_read_piece, pieces, _THREADS):
        for part in found:
            yield from landed(part.rows, part.refused, changes, reading)
    pieces.require_any()
    yield from samples.batches(frame_of([]), scrapes=changes.scrapes())


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the columns of a schema are: our names, and the header's."""

    header: Header
    columns: dict[str, str]
    counts: dict[str, str]
    component: str | None
    has_jobs: bool
    unit_us: float

    @property
    def wholes(self) -> list[str]:
        """Our names of columns of whole numbers."""
        return [*self.counts, *(name for name in ("usec", "held_s") if name in self.columns)]


def _layout(header: Header, reading: Reading) -> _Layout | str:
    """Return what the columns are, or why nobody can say that."""
    plain = {name.removeprefix("stats.").replace(".", "_"): name for name in header.names}
    own = {ours: theirs for ours, theirs in reading.columns.items() if theirs in header.names}
    known = [_column(name) for name in plain]
    counts = {f"count {place}": name for place, name in enumerate(plain.values()) if known[place]}
    columns = {f"count {place}": column for place, column in enumerate(known) if column}
    for ours, theirs in own.items():
        if ours.startswith("total_"):
            counts[ours], columns[ours] = theirs, ours
    kind = next((name for name in _TARGETS if name in plain), None)
    target = own.get("target", plain.get(kind or "", ""))
    if not target or not columns:
        return "None of the columns counts bytes or operations of storage."
    is_job = kind in ("ost", "mdt") and "job_id" in plain
    if not own and kind != "llite" and is_job != ("snapshot_time" in plain):
        return "The header has one of job_id and snapshot_time, and not the other."
    roles = {"target": target, "filesystem": plain.get("fs_name", ""), "job_key": plain["job_id"] if is_job else ""}
    roles |= {ours: theirs for ours, theirs in own.items() if ours in KEYS}
    found = {"time": header.names[0], **{role: theirs for role, theirs in roles.items() if theirs}, **counts}
    found |= {"usec": "Time_usec"} if header.names[0] == "Time" and "Time_usec" in header.names else {}
    found |= {"held_s": plain["snapshot_time"]} if is_job else {}
    found |= {"producer": "ProducerName"} if kind == "llite" else {}
    if len(set(header.names)) < len(header.names):
        return "The header names a column more than once."
    component = None if kind is None else _TARGETS[kind]
    return _Layout(header, found, columns, component, bool(roles["job_key"]), _TIMES[found["time"]])


def _column(name: str) -> str | None:
    """Return the column that a metric counts into, None where it is none."""
    if name in _BYTES:
        return _BYTES[name]
    column = samples.operation_column(name)
    return column if column != "total_other_count" or name in _OTHERS else None


def _header(line: str) -> Header | None:
    """Return the header that a line is, None where it is none."""
    names = [name.strip() for name in line.strip().removeprefix("\ufeff").removeprefix("#").split(",")]
    is_header = names[0] in _TIMES and "ProducerName" in names
    return Header(tuple(names), ",") if is_header else None


def _beside(path: Path) -> Header | None:
    """Return the header in a file of its own, as store_csv calls it."""
    found = _ALONE.fullmatch(path.name)
    if found is None or ".HEADER" in path.name:
        return None
    name = f"{found['start']}.HEADER{found['roll'] or ''}"
    for beside in (path.with_name(name + (found["packed"] or "")), path.with_name(name)):
        with suppress(InputRefused, OSError):
            lines = read_head(beside).lines
            if lines and (header := _header(lines[0])):
                return header
    return None


@dataclass(slots=True)
class _Pieces:
    """Blocks, each with the header that holds for it; a header within the file holds from there on."""

    path: Path
    reading: Reading
    _reasons: list[str] = field(default_factory=list)
    _has_any: bool = False

    def __iter__(self) -> Iterator[tuple[Block, _Layout | str]]:
        header = _beside(self.path)
        layout = _layout(header, self.reading) if header else "No header says what the columns are."
        self._has_any |= isinstance(layout, _Layout)
        for block in text_blocks.blocks(self.path, BLOCK_BYTES, has_header=False):
            for line, content in _parts(block):
                header = _header(content.decode("utf-8", "replace")) if _is_header(content) else None
                if header:
                    layout = _layout(header, self.reading)
                    self._has_any |= isinstance(layout, _Layout)
                    self._reasons += [layout] if isinstance(layout, str) else []
                else:
                    yield from _told(line, content, "The header is damaged." if _is_header(content) else layout)

    def require_any(self) -> None:
        """Raise InputRefused where no header said what the columns are."""
        if not self._has_any:
            raise InputRefused(
                (self._reasons or ["No header says what the columns are."])[0],
                "Known are lustre_ost, lustre_mdt, lustre_client and job_stats; keep the header file beside the rows.",
            )


def _told(line: int, content: bytes, layout: _Layout | str) -> Iterator[tuple[Block, _Layout | str]]:
    """Yield lines with what holds for them; a last one without an end may be cut within a number."""
    whole = content.rfind(b"\n") + 1
    count = content.count(b"\n")
    if count:
        yield Block(line, count, content[:whole] if whole < len(content) else content), layout
    if whole < len(content):
        yield Block(line + count, 1, content[whole:]), "The last line has no end: it may be cut."


def _is_header(content: bytes) -> bool:
    return content.startswith((b"#", b"Time", b"\xef\xbb\xbf"))


def _parts(block: Block) -> Iterator[tuple[int, bytes]]:
    """Yield headers by themselves, and the lines between them, each with the number of its first line."""
    content, line, start = block.content, block.first_line, 0
    while start < len(content):
        if _is_header(content[start : start + 4]):
            end = content.find(b"\n", start) + 1 or len(content)
        else:
            found = (content.find(mark, start) + 1 for mark in (b"\n#", b"\nTime"))
            end = min((place for place in found if place), default=len(content))
        yield line, content if end - start == len(content) else content[start:end]
        if end < len(content):
            line += content.count(b"\n", start, end)
        start = end


def _read_piece(piece: tuple[Block, _Layout | str]) -> list[Sifted]:
    """Return the rows of a block as KEYS, `line`, `at_us`, `held_us` and columns, and the refused ones."""
    block, layout = piece
    if isinstance(layout, str):
        lines = text_blocks.lines(block).filter(pl.col("text") != "")
        return [Sifted(pl.DataFrame(), refused_rows(lines, layout, _REMEDY, "text"))] if lines.height else []
    cells = text_blocks.cells(block, layout.header, layout.columns)
    found = _rows(_numbers(cells.rows, layout), layout)
    return [Sifted(found.rows, pl.concat([cells.refused, found.refused]))]


def _numbers(cells: pl.DataFrame, layout: _Layout) -> pl.DataFrame:
    """Return cells of text with those of numbers as such, NULL where they are none."""
    wholes = (pl.col(name).cast(pl.Int64, strict=False) for name in layout.wholes)
    return cells.with_columns(pl.col("time").cast(pl.Float64, strict=False), *wholes)


def _rows(cells: pl.DataFrame, layout: _Layout) -> Sifted:
    at_us = (pl.col("time") * layout.unit_us).round().cast(pl.Int64, strict=False)
    found = sift(cells.with_columns(at_us=at_us), _faults(layout))
    rows = found.rows
    totals = {
        column: [name for name, own in layout.counts.items() if own == column] for column in layout.counts.values()
    }
    target = pl.format("{}:{}", "producer", "target") if "producer" in layout.columns else pl.col("target")
    keys = {"filesystem": pl.col("filesystem")} if "filesystem" in layout.columns else {}
    keys |= {"target": target.str.strip_chars('" ')}
    if layout.has_jobs:
        # of one scrape, see above
        scraped = pl.col("at_us") // 1_000_000 * 1_000_000
        held = pl.col("held_s") * 1_000_000 if "held_s" in layout.columns else pl.lit(None, pl.Int64)
        rows = rows.with_columns(samples.unquoted(rows["job_key"]), at_us=scraped).with_columns(
            held_us=pl.when(held.is_between(1, pl.col("at_us"))).then(held)
        )
        keys |= {"job_key": pl.col("job_key")}
    absent = (pl.lit(None, pl.String).alias(name) for name in KEYS if name not in (*keys, "component"))
    component = _component(layout)
    return Sifted(
        rows.select(
            LINE, "at_us", *(["held_us"] if layout.has_jobs else []), component, *absent,
            *(told.alias(name) for name, told in keys.items()),
            *(pl.sum_horizontal(names).alias(column) for column, names in totals.items()),
        ),
        found.refused,
    )  # fmt: skip


def _component(layout: _Layout) -> pl.Expr:
    if "component" in layout.columns:
        return pl.col("component")
    if layout.component is not None:
        return pl.lit(layout.component).alias("component")
    return pl.col("target").map_batches(samples.components, pl.String).alias("component")


def _faults(layout: _Layout) -> Sequence[Fault]:
    bad = pl.any_horizontal(pl.col(name).is_null() | (pl.col(name) < 0) for name in layout.counts)
    untimed = ~pl.col("at_us").is_between(10**15, 9 * 10**15) | pl.col("at_us").is_null()
    found = [
        Fault(untimed, "The time is none in seconds or thousandths of them since 1970.", _REMEDY),
        Fault(pl.col("target").is_null(), "The row does not say its target.", _REMEDY),
        Fault(bad, "A counter is missing, or is no whole number of at least 0.", _REMEDY),
    ]
    if "usec" in layout.columns:
        differs = (pl.col("at_us") % 1_000_000 != pl.col("usec")) | pl.col("usec").is_null()
        found.append(Fault(differs, "The row has two times, and they differ.", _REMEDY))
    return found


SOURCE = Source(
    name="ldms-csv",
    doc="LDMS' store_csv with counters of Lustre: targets, their jobs, clients; the header inside or beside.",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=3,
)
