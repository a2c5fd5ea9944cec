"""Counters as Influx line protocol: Telegraf's lustre2, beegfs-mon, and what a site itself writes so.

lustre2 has a point for each target, and one for each of its jobs, with the counters of job statistics. beegfs-mon
(highResStorage) has what each server moved within a second, which is a poll. Points of others are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.contracts.counters import COUNTER_SAMPLES
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.changes import CUT, KEYS, Changes, landed
from iosig.warehouse.sources.counters.line_protocol import (
    Lines,
    Points,
    Shape,
    is_point,
    meant,
    points,
    strange_names,
)
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import tables, text_blocks
from iosig.warehouse.sources.rows.faults import held_to
from iosig.warehouse.sources.rows.rejects import frame_of, refused_rows

#: text that is read at once
BLOCK_BYTES = 16 << 20
#: rows that are told from those before them at once
_NEWS_ROWS = 100_000
_THREADS = 2
_SNIFFED_LINES = 20
LUSTRE: Final = "lustre2"
BEEGFS: Final = "highResStorage"
_JOB = "jobstats_"
#: tags of points that count again what a target counts: by client, and by size
_PARTS: Final = frozenset({"client", "brw_section"})
_ROLES: Final = {"filesystem": "", "component": "", "target": "name", "job_key": "jobid", "collector": ""}
_FIELDS: Final = {
    "read_bytes": "total_read_bytes",
    "write_bytes": "total_written_bytes",
    "read_calls": "total_read_count",
    "write_calls": "total_write_count",
}
#: of a job, what is neither bytes nor a count of operations
_SIZES: Final = ("_min_size", "_max_size")
#: acct_gather_profile/influxdb
_SLURM = re.compile(r"^\w+,job=[0-9]+,step=-?[0-9]+,task=[^,\s]+,host=\S+ value=", re.MULTILINE)
_NO_NUMBER = "The value of `{}` is no whole number of at least 0."


def sniff(head: Head) -> bool:
    """Return whether the content is points of line protocol with their times."""
    lines = [line for line in head.lines if line.strip() and not line.startswith("#")][:_SNIFFED_LINES]
    return bool(lines) and is_point(lines[0]) and sum(map(is_point, lines)) > len(lines) // 2


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read points; raise InputRefused where none of them count bytes or operations of storage."""
    own = {theirs: ours for ours, theirs in reading.columns.items() if ours in COUNTER_SAMPLES.column_names}
    roles = {role: reading.columns.get(role, theirs) for role, theirs in _ROLES.items()}
    meaning = _Meaning({theirs: ours for theirs, ours in own.items() if ours.startswith("total_")}, roles)
    changes, has_any, waiting = Changes(), False, list[pl.DataFrame]()
    blocks = text_blocks.blocks(path, BLOCK_BYTES, has_header=False)
    for _, found in tables.ahead(partial(_read_block, meaning=meaning), blocks, _THREADS):
        has_any |= found.has_any
        yield from _polls(found.polls, reading)
        yield from samples.batches(found.refused)
        waiting += [found.counters] if found.counters.height else []
        if sum(rows.height for rows in waiting) >= _NEWS_ROWS:
            yield from landed(pl.concat(waiting, how="diagonal"), frame_of([]), changes, reading)
            waiting = []
    if waiting:
        yield from landed(pl.concat(waiting, how="diagonal"), frame_of([]), changes, reading)
    if not has_any and _SLURM.search(read_head(path).text):
        raise InputRefused(
            "The points are a profile of Slurm's: whether they are totals or differences depends on its version, and "
            "nothing in them says it.",
            "Land the servers' job statistics: they count by job, too, to the byte.",
        )
    if not has_any:
        raise InputRefused(
            "None of the points counts bytes or operations of storage.",
            "Known are lustre2 and highResStorage; name a site's own tags and fields in the settings "
            "(counters.columns).",
        )
    yield from samples.batches(frame_of([]), scrapes=changes.scrapes())


@dataclass(frozen=True, slots=True)
class _Meaning:
    """Which fields of other measurements count what, and which tags say of whom."""

    own_fields: Mapping[str, str]
    roles: Mapping[str, str]

    def measurements(self, *known: str) -> tuple[str, ...] | None:
        """Return the measurements that are meant, None for all; known: those that are without the site's own."""
        return None if self.own_fields else known

    def columns(self, found: Shape) -> dict[str, str]:
        """Return the fields of points that count, each with its column; none where they count elsewhere."""
        if found.measurement != LUSTRE:
            return {name: self.own_fields[name] for name in found.fields if name in self.own_fields}
        if _PARTS & set(found.tags):
            return {}
        start = _JOB if self.roles["job_key"] in found.tags else ""
        told = {name: _column(name.removeprefix(start)) for name in found.fields if name.startswith(start)}
        if not start:
            told = {name: column for name, column in told.items() if column != "total_other_count"}
        return {name: column for name, column in told.items() if column} | {
            name: column for name, column in self.own_fields.items() if name in found.fields
        }

    def fault(self, found: Shape, strange: str | None) -> str | None:
        """Return why points are refused, None where they are sound; strange: a name that others have otherwise."""
        has_job = self.roles["job_key"] in found.tags
        is_job = [name.startswith(_JOB) for name in found.fields] if found.measurement == LUSTRE else [has_job]
        if any(is_job) and not has_job:
            return "The point has counters of a job, and no tag for the job."
        if has_job and not all(is_job):
            return "The point has a tag for a job, and counters that are not the job's."
        if not self.columns(found):
            return None
        if strange:
            return f"No other point has a tag or field `{strange}`."
        return None if self.roles["target"] in found.tags else "The point does not say its target."


@dataclass(frozen=True, slots=True)
class _Found:
    """What lines hold: counters, polls, and refused lines; has_any: whether any point counts something."""

    counters: pl.DataFrame
    polls: pl.DataFrame
    refused: pl.DataFrame
    has_any: bool


def _read_block(block: text_blocks.Block, meaning: _Meaning) -> _Found:
    own, strange = meant(text_blocks.lines(block), meaning.measurements(LUSTRE, BEEGFS))
    timed, untimed = Lines.of(own)
    found, damaged = points(timed.said)
    counters, polls, faulty = [], [], [damaged]
    for each, name in zip(found, strange_names(found), strict=True):
        if each.shape.measurement == BEEGFS:
            polls.append(_moved(each))
            continue
        columns, fault = meaning.columns(each.shape), meaning.fault(each.shape, name)
        if fault or not columns:
            faulty.append(refused_rows(each.lines, fault, CUT, "text") if fault else damaged.clear())
            continue
        rows, bad = _counters(each, columns, meaning.roles)
        counters.append(rows)
        faulty.append(bad)
    refused = pl.concat([strange, untimed, timed.everywhere(pl.concat(faulty), own)])
    rows = timed.expanded(pl.concat(counters, how="diagonal")) if counters else pl.DataFrame()
    moved = timed.expanded(pl.concat(polls)) if polls else pl.DataFrame()
    return _Found(rows, moved, refused, bool(counters or polls))


def _column(field_name: str) -> str | None:
    """Return the column that a field of lustre2 counts into, None where it is none or counted elsewhere."""
    if field_name in _FIELDS:
        return _FIELDS[field_name]
    if field_name.endswith(_SIZES):
        return None
    return samples.operation_column(field_name.removeprefix("ost_"))


def _counters(found: Points, columns: Mapping[str, str], roles: Mapping[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return counters a row, and the points that have a value that is no count."""
    counts = found.counts(list(columns))
    is_good = ~counts.select(pl.any_horizontal(pl.all().is_null())).to_series()
    rows = found.lines.select("line").hstack(_keys(found, roles)).hstack(_sums(counts, columns))
    if is_good.all():
        return rows, frame_of([])
    bad = refused_rows(found.lines.filter(~is_good), _NO_NUMBER.format("`, `".join(columns)), CUT, "text")
    return rows.filter(is_good), bad


def _keys(found: Points, roles: Mapping[str, str]) -> pl.DataFrame:
    """Return KEYS of points."""
    keys = {role: found.tag(roles[role]) for role in KEYS}
    keys["job_key"] = samples.unquoted(keys["job_key"]) if roles["job_key"] in found.tags else keys["job_key"]
    keys["component"] = keys["component"].fill_null(samples.components(keys["target"]))
    return pl.DataFrame(keys)


def _sums(counts: pl.DataFrame, columns: Mapping[str, str]) -> pl.DataFrame:
    """Return columns of counters: what counts into one column is added up."""
    told = {column: [name for name, own in columns.items() if own == column] for column in columns.values()}
    return counts.select(pl.sum_horizontal(names).alias(column) for column, names in told.items())


def _moved(found: Points) -> pl.DataFrame:
    """Return what servers of BeeGFS moved within the second before."""
    moved = found.counts(["diskReadBytes", "diskWriteBytes"]).cast(pl.Float64)
    return found.lines.select(
        "line",
        pl.col("text").alias("raw"),
        pl.lit(found.tag("nodeID")).alias("controller"),
    ).hstack(moved.rename({"diskReadBytes": "read_bytes_per_s", "diskWriteBytes": "write_bytes_per_s"}))


def _polls(moved: pl.DataFrame, reading: Reading) -> Iterator[Batch]:
    if moved.is_empty():
        return
    is_missing = pl.any_horizontal(pl.col("read_bytes_per_s", "write_bytes_per_s").is_null())
    rows = moved.with_columns(
        samples.instants(pl.col("at_us")).alias("polled_at"),
        pl.lit(reading.filesystem or DEFAULT_FILESYSTEM).alias("filesystem"),
        pl.lit(1.0).alias("interval_s"),
        pl.when(is_missing).then(pl.lit("missing")).alias("flag"),
    )
    yield from held_to(POLLS, rows).batches(POLLS)


SOURCE = Source(
    name="influx-line",
    doc="Influx line protocol: Telegraf's lustre2, beegfs-mon, and a site's own counters.",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=3,
)
