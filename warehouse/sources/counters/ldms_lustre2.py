"""Read counters of LDMS' sampler lustre2_client, as store_csv writes them: all Lustre mounts of a node per line.

A column is called `client.read_bytes#llite.scratch` (older versions: `client.lstats.…`), after the counter and the
mount. Counters continue from job to job, so a job's share is the rise of the counters while `job_id` names the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.changes import Changes
from iosig.warehouse.sources.counters.job_shares import JobShares, build_share_batches
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables
from iosig.warehouse.sources.rows.delimited import LINE
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.rejects import ParsedRows, build_reject_frame

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
_COUNTER = re.compile(r"client\.(?:lstats\.)?(\w+)#llite\.(.+)")
_BYTES: Final = {"read_bytes": "total_read_bytes", "write_bytes": "total_written_bytes"}
#: separates the column of a counter from its mount; names from CSV cannot contain it
_MARK = "\n"
_REMEDY = "Check for a truncated file, or the header of another file."


def sniff(head: Head) -> bool:
    """Recognize a header with bytes of a Lustre mount in the first lines."""
    return any("ProducerName" in line and "#llite." in line and "Time" in line[:8] for line in head.lines)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the counters of each mount, in total and by job; raise InputRefused if no column counts bytes of a mount."""
    changes, shares = Changes(), JobShares()
    for piece in tables.text_pieces(path, _locate, _read_rows, block_bytes=BLOCK_BYTES):
        yield from build_share_batches(piece, shares, changes, reading)
    yield from samples.build_sample_batches(build_reject_frame([]), scrapes=changes.scrapes())


def _locate(names: Sequence[str]) -> dict[str, str]:
    """Map the time, the node, the job and each counter (column and mount) to the header's columns."""
    roles = {"time": next((name for name in names if name.removeprefix("#") == "Time"), ""), "node": "ProducerName"}
    counters = {}
    for name in names:
        match = _COUNTER.fullmatch(name)
        if match and (column := _BYTES.get(match[1]) or _find_operation(match[1])):
            counters[f"{column}{_MARK}{match[2]}"] = name
    if not roles["time"] or "ProducerName" not in names or not any(key.startswith("total_read_b") for key in counters):
        raise InputRefused(
            "The header has no counters of LDMS' lustre2_client.",
            "Keep the header of store_csv as the first line, with the columns client.read_bytes#llite.…",
        )
    return roles | ({"job_key": "job_id"} if "job_id" in names else {}) | counters


def _find_operation(name: str) -> str | None:
    column = samples.operation_column(name)
    return None if column in (None, "total_other_count") or name in ("read", "write") else column


def _read_rows(cells: pl.DataFrame) -> ParsedRows:
    """Convert each line into a row per mount, with the keys and counters of `counter_samples`, `line` and `at_us`."""
    counters = [name for name in cells.columns if _MARK in name]
    at_us = (pl.col("time").cast(pl.Float64, strict=False) * 1e6).round().cast(pl.Int64, strict=False)
    numbers = cells.with_columns(pl.col(name).cast(pl.Int64, strict=False) for name in counters)
    checked = sift(numbers.with_columns(at_us=at_us), _faults(counters))
    mounts = dict.fromkeys(name.partition(_MARK)[2] for name in counters)
    columns = sorted({name.partition(_MARK)[0] for name in counters})
    parts = [_select_mount(checked.rows, mount, columns) for mount in mounts]
    return ParsedRows(pl.concat(parts).sort(LINE, maintain_order=True), checked.refused)


def _select_mount(rows: pl.DataFrame, mount: str, columns: Sequence[str]) -> pl.DataFrame:
    names = {column: f"{column}{_MARK}{mount}" for column in columns}
    counts = [pl.col(name) if name in rows.columns else pl.lit(None, pl.Int64) for name in names.values()]
    job_key = pl.col("job_key").fill_null("") if "job_key" in rows.columns else pl.lit("")
    return rows.select(
        LINE,
        "at_us",
        filesystem=pl.lit(mount),
        component=pl.lit("client"),
        target=pl.format("{}:{}", "node", pl.lit(mount)),
        job_key=job_key,
        collector=pl.lit(None, pl.String),
        **dict(zip(columns, counts, strict=True)),
    )


def _faults(counters: Sequence[str]) -> Sequence[Fault]:
    bad = pl.any_horizontal(pl.col(name).is_null() | (pl.col(name) < 0) for name in counters)
    untimed = ~pl.col("at_us").is_between(10**15, 9 * 10**15) | pl.col("at_us").is_null()
    return [
        Fault(untimed, "The time is not in seconds since 1970.", _REMEDY),
        Fault(pl.col("node").is_null(), "The row has no node.", _REMEDY),
        Fault(bad, "A counter is missing, or is not a non-negative integer.", _REMEDY),
    ]


SOURCE = Source(
    name="ldms-lustre2",
    doc="LDMS' store_csv of the sampler lustre2_client: counters of each Lustre mount of a node, in total and by job.",
    kind="counters",
    sniff=sniff,
    read=read,
    # recognized before other schemas of store_csv
    precedence=4,
)
