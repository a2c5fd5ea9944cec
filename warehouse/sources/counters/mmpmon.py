"""Read the output of `mmpmon -p` on a GPFS node: bytes and operations per file system since its mount.

A line contains keywords and values in a fixed order (IBM Storage Scale, "Understanding the fs_io_s and io_s output").
The counters belong to the node and name no job.
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
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.rejects import build_reject_frame

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
#: output lines of other requests, or of all file systems together
_OTHER = r"^\s*$|^_[a-z]\w*_ |^mmpmon "


def sniff(head: Head) -> bool:
    """Recognize output of mmpmon for file systems or for a node as a whole."""
    first = head.lines[0] if head.lines else ""
    return first.startswith((_START, "_io_s_ ", "_ver_ ")) and " _n_ " in first


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read counters of file systems; raise InputRefused if there are none."""
    changes, has_any = Changes(), False
    for block in text_blocks.blocks(path, BLOCK_BYTES, has_header=False):
        checked = sift(_read(text_blocks.lines(block), is_cut=not block.content.endswith(b"\n")), _FAULTS)
        has_any |= checked.rows.height > 0
        rows = checked.rows.select("line", "at_us", *KEYS, *_COUNTS.values())
        yield from build_change_batches(rows, checked.refused, changes, reading)
    if not has_any:
        raise InputRefused(
            "The file has no counters of a file system.",
            "Run mmpmon -p with the request `fs_io_s`; `io_s` names no file system.",
        )
    yield from samples.build_sample_batches(build_reject_frame([]), scrapes=changes.scrapes())


_FAULTS: Final = [
    Fault(pl.col("is_cut"), "The last line has no end: it may be truncated.", CUT),
    Fault(pl.col("target").is_null(), "The line is not in mmpmon's format.", CUT),
    Fault(
        pl.any_horizontal(pl.col(name).is_null() for name in _COUNTS.values()),
        "A counter is larger than 2^63 - 1.",
        CUT,
    ),
]


def _read(lines: pl.DataFrame, *, is_cut: bool) -> pl.DataFrame:
    """Parse the counter lines; the target is NULL for lines that mmpmon did not write."""
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
        is_cut=pl.lit(is_cut) & (pl.col("line") == lines["line"].max()),
    )


SOURCE = Source(
    name="mmpmon",
    doc="GPFS' `mmpmon -p`: counters of each file system on a node (fs_io_s).",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=3,
)
