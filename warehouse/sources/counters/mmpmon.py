"""Read the output of `mmpmon` on a GPFS node: bytes and operations per file system since its mount.

With -p, a line contains keywords and values in a fixed order; without, a line contains a label and a value (IBM Storage
Scale, "Understanding the fs_io_s and io_s output"). The counters belong to the node and name no job.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.changes import CUT, KEYS, Changes, build_change_batches
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import text_blocks
from iosig.warehouse.sources.rows.delimited import RAW
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.rejects import ParsedRows, build_reject_frame

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
_COUNTS: Final = {
    "br": "total_read_bytes",
    "bw": "total_written_bytes",
    "oc": "total_open_count",
    "cc": "total_close_count",
    "rdc": "total_read_count",
    "wc": "total_write_count",
    "dir": "total_readdir_count",
    "iu": "total_other_count",
}
_START = "_fs_io_s_ "
_WHO = r"_n_ \S+ _nn_ (?P<target>\S+) _rc_ "
_LINE: Final = (
    rf"^_fs_io_s_ {_WHO}0 _t_ (?P<seconds>[1-9][0-9]{{9}}) _tu_ (?P<usec>[0-9]{{1,6}}) "
    r"_cl_ \S+ _fs_ (?P<filesystem>\S+)(?: _d_ [0-9]+)?"
    + "".join(rf" _{name}_ (?P<{column}>[0-9]{{1,19}})" for name, column in _COUNTS.items())
    + r"\s*$"
)
#: error lines, such as a file system that is not mounted
_FAILED = rf"^_fs_io_s_ {_WHO}[1-9][0-9]* "
#: comments, output lines of other requests, or of all file systems together
_OTHER = r"^\s*$|^#|^_[a-z]\w*_ |^mmpmon "


#: first line of a record without -p
_RECORD = "mmpmon node "
#: maximum number of lines of such a record
_MAX_RECORD_LINES = 40
_HEAD = r"^mmpmon node (?P<node>\S+) name (?P<name>\S+) fs_io_s (?P<status>OK|status)"
#: labels without -p -> keywords with -p
_LABELS: Final = {
    "cluster": "cl",
    "filesystem": "fs",
    "bytes read": "br",
    "bytes written": "bw",
    "opens": "oc",
    "closes": "cc",
    "reads": "rdc",
    "writes": "wc",
    "readdir": "dir",
    "inode updates": "iu",
}
_SNIFFED_LINES = 20


def sniff(head: Head) -> bool:
    """Recognize output of mmpmon for file systems or for a node as a whole in the first lines."""
    starts = (_START, "_io_s_ ", "_ver_ ")
    return any(
        (line.startswith(starts) and " _n_ " in line) or line.startswith(_RECORD)
        for line in head.lines[:_SNIFFED_LINES]
    )


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read counters of file systems; raise InputRefused if there are none."""
    changes, has_any = Changes(), False
    note_fields(_COUNTS, _COUNTS)
    for lines, open_line in _lines(path):
        checked = sift(_read(lines.rows, open_line), _FAULTS)
        has_any |= checked.rows.height > 0
        rows = checked.rows.select("line", "at_us", *KEYS, *_COUNTS.values())
        yield from build_change_batches(rows, pl.concat([lines.refused, checked.refused]), changes, reading)
    if not has_any:
        raise InputRefused(
            "The file has no counters of a file system.",
            "Run mmpmon -p with the request `fs_io_s`; `io_s` names no file system.",
        )
    yield from samples.build_sample_batches(build_reject_frame([]), scrapes=changes.scrapes())


def _lines(path: Path) -> Iterator[tuple[ParsedRows, int | None]]:
    """Yield lines (`line`, `text`) as with -p, refused lines, and the number of a line without a line end.

    A record without -p is read when it is complete, since it may extend over two blocks.
    """
    pending, open_line = pl.DataFrame(schema={"line": pl.Int64, "text": pl.String}), None
    for block in text_blocks.blocks(path, BLOCK_BYTES):
        open_line = None if block.content.endswith(b"\n") else block.first_line + block.line_count - 1
        checked = text_blocks.check_lines(block)
        lines = pl.concat([pending, checked.rows.rename({RAW: "text"})])
        starts = lines["text"].str.starts_with(_RECORD).arg_true()
        is_within = len(starts) > 0 and lines.height - int(starts[-1]) < _MAX_RECORD_LINES
        end = int(starts[-1]) if is_within else lines.height
        pending = lines[end:]
        yield ParsedRows(_convert_records(lines[:end]), checked.refused), open_line
    if pending.height:
        if open_line is not None and not pending["text"][-1].startswith("_"):
            # a record has the number of its first line
            open_line = int(pending["line"][0])
        yield ParsedRows(_convert_records(pending), build_reject_frame([])), open_line


def _convert_records(lines: pl.DataFrame) -> pl.DataFrame:
    """Convert each record of file system counters without -p to its line with -p; drop other records."""
    number = lines["text"].str.starts_with(_RECORD).cast(pl.Int64).cum_sum()
    number = number.set(lines["text"].str.starts_with("_"), 0)
    if not (number > 0).any():
        return lines
    label, value = (pl.col("text").str.extract(r"^ *([a-z ]+): +(\S+)\s*$", group) for group in (1, 2))
    values = {keyword: value.filter(label == name).first() for name, keyword in _LABELS.items()}
    at = value.filter(label == "timestamp").first().str.split_exact("/", 1)
    records = lines.with_columns(number=number).filter(pl.col("number") > 0).group_by("number", maintain_order=True)
    frame = records.agg(pl.col("line", "text").first(), at=at, **values).unnest("at")
    frame = frame.with_columns(pl.col("text").str.extract_groups(_HEAD).alias("head")).unnest("head")
    start = pl.format("_fs_io_s_ _n_ {} _nn_ {} _rc_ ", "node", "name")
    parts = [pl.format(f" _{keyword}_ {{}}", keyword) for keyword in values]
    line = pl.concat_str(start, pl.format("0 _t_ {} _tu_ {}", "field_0", "field_1"), *parts)
    # an incomplete record fails the form of a line
    text = pl.when(pl.col("status") == "OK").then(pl.coalesce(line, start)).otherwise(start + "1 ")
    converted = frame.filter(pl.col("node").is_not_null()).select("line", text=text)
    return pl.concat([lines.filter(number == 0), converted]).sort("line")


_FAULTS: Final = [
    Fault(pl.col("is_cut"), "The last line has no end: it may be truncated.", CUT),
    Fault(pl.col("target").is_null(), "The line is not in mmpmon's format.", CUT),
    Fault(
        pl.any_horizontal(pl.col(name).is_null() for name in _COUNTS.values()),
        "A counter is larger than 2^63 - 1.",
        CUT,
    ),
]


def _read(lines: pl.DataFrame, open_line: int | None) -> pl.DataFrame:
    """Parse the counter lines; the target is NULL for lines that mmpmon did not write.

    open_line: number of the line without a line end, if there is one.
    """
    text = pl.col("text")
    is_selected = text.str.starts_with(_START) & ~text.str.contains(_FAILED)
    counter_lines = lines.filter(is_selected | ~text.str.contains(_OTHER))
    parsed = counter_lines.with_columns(text.str.extract_groups(_LINE).alias("found")).unnest("found")
    seconds, usec = pl.col("seconds").cast(pl.Int64), pl.col("usec").cast(pl.Int64)
    return parsed.with_columns(
        *(pl.col(name).cast(pl.Int64, strict=False) for name in _COUNTS.values()),
        pl.lit(None, pl.String).alias("job_key"),
        pl.lit(None, pl.String).alias("collector"),
        raw=text,
        at_us=seconds * 1_000_000 + usec,
        component=pl.lit("client"),
        is_cut=pl.col("line").eq_missing(pl.lit(open_line, pl.Int64)),
    )


SOURCE = Source(
    name="mmpmon",
    doc="GPFS' `mmpmon`, with or without -p: counters of each file system on a node (fs_io_s).",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=3,
)
