"""Read counters of LDMS' sampler lustre2_client, as store_csv writes them: all Lustre mounts of a node per line.

A column is called `client.read_bytes#llite.scratch` (older versions: `client.lstats.…`), after the counter and the
mount. Counters continue from job to job, so a job's share is the rise of the counters while `job_id` names the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.changes import Changes, build_change_batches
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
#: LDMS' job id of a node without a job
_NO_JOB = ("", "0")
_REMEDY = "Check for a truncated file, or the header of another file."


def sniff(head: Head) -> bool:
    """Recognize a header with bytes of a Lustre mount in the first lines."""
    return any("ProducerName" in line and "#llite." in line and "Time" in line[:8] for line in head.lines)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the counters of each mount, in total and by job; raise InputRefused if no column counts bytes of a mount."""
    changes, shares = Changes(), _JobShares()
    for piece in tables.text_pieces(path, _locate, _read_rows, block_bytes=BLOCK_BYTES):
        if piece.rows.is_empty():
            yield from samples.build_sample_batches(piece.refused)
            continue
        by_job = shares.take(piece.rows)
        idle = by_job.filter(pl.col("job_key").is_in(_NO_JOB))
        jobs = by_job.filter(~pl.col("job_key").is_in(_NO_JOB))
        totals = piece.rows.with_columns(job_key=pl.lit(None, pl.String))
        yield from build_change_batches(pl.concat([totals, jobs]).sort(LINE), piece.refused, changes, reading)
        yield from samples.build_sample_batches(build_reject_frame([]), scrapes=_idle_scrapes(idle, reading))
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


@dataclass(slots=True)
class _JobShares:
    """Counts each job's share of its nodes' counters, from its first reading of a node on.

    The rise since the previous reading belongs to the job if that reading named it or no job. The rise from one job to
    the next belongs to neither, so a share is a lower bound. After a restart of the counter, its value is the rise.
    """

    _last: pl.DataFrame | None = field(default=None)

    def take(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace counters by the share of the job that the reading names; readings of a target come in time order."""
        counts = [name for name in rows.columns if name.startswith("total_")]
        new = rows.with_columns(pl.lit(None, pl.Int64).alias(f"own {name}") for name in counts)
        new = new.with_columns(is_new=pl.lit(True))
        all_rows = new if self._last is None else pl.concat([self._last, new])
        job, before = pl.col("job_key"), pl.col("job_key").shift().over("target")
        continues = (job == before) | before.is_in(_NO_JOB)
        rises = {name: pl.col(name) - pl.col(name).shift().over("target") for name in counts}
        rises = {name: pl.when(rise < 0).then(pl.col(name)).otherwise(rise) for name, rise in rises.items()}
        owned = [
            pl.coalesce(f"own {name}", pl.when(continues).then(rise), pl.lit(0)).alias(f"own {name}")
            for name, rise in rises.items()
        ]
        numbered = all_rows.with_columns(*owned, run=(job != before).fill_null(True).cum_sum().over("target"))
        shares = numbered.with_columns(pl.col(f"own {name}").cum_sum().over("target", "run") for name in counts)
        self._last = (
            shares.group_by("target", maintain_order=True).last().select(new.columns).with_columns(is_new=False)
        )
        found = shares.filter("is_new")
        return found.with_columns(
            pl.when(pl.col(name).is_not_null()).then(f"own {name}").alias(name) for name in counts
        ).select(rows.columns)


def _idle_scrapes(idle: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Return scrapes without entries for readings of nodes that had no job."""
    filesystem = pl.lit(reading.filesystem) if reading.filesystem else pl.col("filesystem")
    return idle.select(
        filesystem.alias("filesystem"),
        "component",
        "target",
        "collector",
        scraped_at=samples.instants(pl.col("at_us")),
        entry_count=pl.lit(0, pl.Int64),
        is_job_scrape=pl.lit(True),
    )


SOURCE = Source(
    name="ldms-lustre2",
    doc="LDMS' store_csv of the sampler lustre2_client: counters of each Lustre mount of a node, in total and by job.",
    kind="counters",
    sniff=sniff,
    read=read,
    # recognized before other schemas of store_csv
    precedence=4,
)
