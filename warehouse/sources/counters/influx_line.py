"""Read counters in Influx line protocol: Telegraf's lustre2, beegfs-mon, and a site's own counters.

lustre2 writes a point for each target, and one for each of the target's jobs, with the counters of job statistics.
beegfs-mon (highResStorage) writes the bytes that each server transferred within a second, which are polls. Points of
other measurements are skipped.
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
from iosig.warehouse.sources.counters.changes import CUT, KEYS, Changes, build_change_batches
from iosig.warehouse.sources.counters.line_protocol import (
    Lines,
    Points,
    Shape,
    find_lone_names,
    is_point,
    parse_points,
    select_measurements,
)
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Head, Reading, Source, build_near_miss
from iosig.warehouse.sources.rows import tables, text_blocks
from iosig.warehouse.sources.rows.delimited import RAW
from iosig.warehouse.sources.rows.faults import validate_rows
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.rejects import build_refused_rows, build_reject_frame

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
#: number of rows that are compared with earlier ones at once
_NEWS_ROWS = 100_000
_THREADS = 2
_SNIFFED_LINES = 20
LUSTRE: Final = "lustre2"
BEEGFS: Final = "highResStorage"
_JOB = "jobstats_"
#: tags of points that repeat a target's counts per client or per size
_PARTS: Final = frozenset({"client", "brw_section"})
_ROLES: Final = {"filesystem": "", "component": "", "target": "name", "job_key": "jobid", "collector": ""}
_FIELDS: Final = {
    "read_bytes": "total_read_bytes",
    "write_bytes": "total_written_bytes",
    "read_calls": "total_read_count",
    "write_calls": "total_write_count",
}
#: suffixes of job fields that are neither bytes nor operation counts
_SIZES: Final = ("_min_size", "_max_size")
#: points of Slurm's acct_gather_profile/influxdb
_SLURM = re.compile(r"^\w+,job=[0-9]+,step=-?[0-9]+,task=[^,\s]+,host=\S+ value=", re.MULTILINE)
_NO_NUMBER = "The value of `{}` is not a non-negative integer."


def sniff(head: Head) -> bool:
    """Recognize points of line protocol with times."""
    lines = [line for line in head.lines if line.strip() and not line.startswith("#")][:_SNIFFED_LINES]
    return 2 * sum(map(is_point, lines)) > len(lines)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read points; raise InputRefused if no point counts bytes or operations of storage."""
    site_columns = {
        site_name: column for column, site_name in reading.columns.items() if column in COUNTER_SAMPLES.column_names
    }
    roles = {role: reading.columns.get(role, tag) for role, tag in _ROLES.items()}
    meaning = _Meaning(
        {site_name: column for site_name, column in site_columns.items() if column.startswith("total_")}, roles
    )
    changes, has_any, pending = Changes(), False, list[pl.DataFrame]()
    blocks = text_blocks.blocks(path, BLOCK_BYTES)
    for _, parsed in tables.read_ahead(partial(_read_block, meaning=meaning), blocks, _THREADS):
        has_any |= parsed.has_any
        yield from _polls(parsed.polls, reading)
        yield from samples.build_sample_batches(parsed.refused)
        pending += [parsed.counters] if parsed.counters.height else []
        if sum(rows.height for rows in pending) >= _NEWS_ROWS:
            yield from build_change_batches(
                pl.concat(pending, how="diagonal"), build_reject_frame([]), changes, reading
            )
            pending = []
    if pending:
        yield from build_change_batches(pl.concat(pending, how="diagonal"), build_reject_frame([]), changes, reading)
    if not has_any and _SLURM.search(read_head(path).text):
        raise InputRefused(
            "The points are a Slurm profile: whether they are totals or differences depends on Slurm's version, which "
            "they do not contain.",
            "Land the servers' job statistics instead: they count by job, exactly.",
        )
    if not has_any:
        raise InputRefused(
            "None of the points counts bytes or operations of storage.",
            "Known are lustre2 and highResStorage; name the site's tags and fields in the settings (counters.columns).",
        )
    yield from samples.build_sample_batches(build_reject_frame([]), scrapes=changes.scrapes())


@dataclass(frozen=True, slots=True)
class _Meaning:
    """Maps fields to iosig's columns, and roles to tags."""

    own_fields: Mapping[str, str]
    roles: Mapping[str, str]

    def measurements(self, *names: str) -> tuple[str, ...] | None:
        """Return `names` as the measurements to read, or None for all if the site has fields of its own."""
        return None if self.own_fields else names

    def columns(self, shape: Shape) -> dict[str, str]:
        """Map the counting fields of a point shape to iosig's columns; empty if other points count the same."""
        if shape.measurement != LUSTRE:
            return {name: self.own_fields[name] for name in shape.fields if name in self.own_fields}
        if _PARTS & set(shape.tags):
            return {}
        start = _JOB if self.roles["job_key"] in shape.tags else ""
        mapped = {name: _column(name.removeprefix(start)) for name in shape.fields if name.startswith(start)}
        if not start:
            mapped = {name: column for name, column in mapped.items() if column != "total_other_count"}
        return {name: column for name, column in mapped.items() if column} | {
            name: column for name, column in self.own_fields.items() if name in shape.fields
        }

    def fault(self, shape: Shape, lone_name: str | None) -> str | None:
        """Return the reason for refusing points, None if they are sound; lone_name: a name that no other point has."""
        has_job = self.roles["job_key"] in shape.tags
        is_job = [name.startswith(_JOB) for name in shape.fields] if shape.measurement == LUSTRE else [has_job]
        if any(is_job) and not has_job:
            return "The point has counters of a job, but no tag for the job."
        if has_job and not all(is_job):
            return "The point has a tag for a job, but counters that do not belong to a job."
        if not self.columns(shape):
            return None
        if lone_name:
            return f"No other point has a tag or field `{lone_name}`."
        return None if self.roles["target"] in shape.tags else "The point has no target."


@dataclass(frozen=True, slots=True)
class _ParsedBlock:
    """Counters, polls and refused lines of a block; has_any: whether any point contains a counter."""

    counters: pl.DataFrame
    polls: pl.DataFrame
    refused: pl.DataFrame
    has_any: bool


def _read_block(block: text_blocks.Block, meaning: _Meaning) -> _ParsedBlock:
    checked = text_blocks.check_lines(block)
    lines = checked.rows.rename({RAW: "text"})
    selected, malformed = select_measurements(lines, meaning.measurements(LUSTRE, BEEGFS))
    timed, untimed = Lines.split_times(selected)
    groups, damaged = parse_points(timed.said)
    counters, polls, faulty = [], [], [damaged]
    for group, name in zip(groups, find_lone_names(groups), strict=True):
        if group.shape.measurement == BEEGFS:
            polls.append(_convert_polls(group))
            continue
        columns, fault = meaning.columns(group.shape), meaning.fault(group.shape, name)
        tags = {tag: role for role, tag in meaning.roles.items()}
        note_fields(columns | tags, (*group.shape.tags, *group.shape.fields))
        if fault or not columns:
            faulty.append(build_refused_rows(group.lines, fault, CUT, "text") if fault else damaged.clear())
            continue
        rows, bad = _counters(group, columns, meaning.roles)
        counters.append(rows)
        faulty.append(bad)
    refused = pl.concat([checked.refused, malformed, untimed, timed.expand_refused(pl.concat(faulty), selected)])
    rows = timed.expand(pl.concat(counters, how="diagonal")) if counters else pl.DataFrame()
    poll_rows = timed.expand(pl.concat(polls)) if polls else pl.DataFrame()
    return _ParsedBlock(rows, poll_rows, refused, bool(counters or polls))


def _column(field_name: str) -> str | None:
    """Map a field of lustre2 to iosig's column; None if it is no counter or another field counts the same."""
    if field_name in _FIELDS:
        return _FIELDS[field_name]
    if field_name.endswith(_SIZES):
        return None
    return samples.operation_column(field_name.removeprefix("ost_"))


def _counters(
    points: Points, columns: Mapping[str, str], roles: Mapping[str, str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return one row of counters per point, and the refused points with an invalid value."""
    counts = points.counts(list(columns))
    is_good = ~counts.select(pl.any_horizontal(pl.all().is_null())).to_series()
    rows = points.lines.select("line").hstack(_keys(points, roles)).hstack(_sums(counts, columns))
    if is_good.all():
        return rows, build_reject_frame([])
    bad = build_refused_rows(points.lines.filter(~is_good), _NO_NUMBER.format("`, `".join(columns)), CUT, "text")
    return rows.filter(is_good), bad


def _keys(points: Points, roles: Mapping[str, str]) -> pl.DataFrame:
    """Build the columns KEYS from the tags of points."""
    keys = {role: points.tag(roles[role]) for role in KEYS}
    keys["job_key"] = samples.unquote_job_ids(keys["job_key"]) if roles["job_key"] in points.tags else keys["job_key"]
    keys["component"] = keys["component"].fill_null(samples.find_components(keys["target"]))
    return pl.DataFrame(keys)


def _sums(counts: pl.DataFrame, columns: Mapping[str, str]) -> pl.DataFrame:
    """Sum the fields of points that map to the same column."""
    mapped = {
        column: [name for name, mapped_column in columns.items() if mapped_column == column]
        for column in columns.values()
    }
    return counts.select(pl.sum_horizontal(names).alias(column) for column, names in mapped.items())


def _convert_polls(points: Points) -> pl.DataFrame:
    """Convert BeeGFS points to polls; each point covers the second before its time."""
    volumes = points.counts(["diskReadBytes", "diskWriteBytes"]).cast(pl.Float64)
    return points.lines.select(
        "line",
        pl.col("text").alias("raw"),
        pl.lit(points.tag("nodeID")).alias("controller"),
    ).hstack(volumes.rename({"diskReadBytes": "read_bytes_per_s", "diskWriteBytes": "write_bytes_per_s"}))


def _polls(volumes: pl.DataFrame, reading: Reading) -> Iterator[Batch]:
    if volumes.is_empty():
        return
    is_missing = pl.any_horizontal(pl.col("read_bytes_per_s", "write_bytes_per_s").is_null())
    rows = volumes.with_columns(
        samples.instants(pl.col("at_us")).alias("polled_at"),
        pl.lit(reading.filesystem or DEFAULT_FILESYSTEM).alias("filesystem"),
        pl.lit(1.0).alias("interval_s"),
        pl.when(is_missing).then(pl.lit("missing")).alias("flag"),
    )
    yield from validate_rows(POLLS, rows).batches(POLLS)


SOURCE = Source(
    name="influx-line",
    doc="Influx line protocol: Telegraf's lustre2, beegfs-mon, and a site's own counters.",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=3,
    find_near_miss=build_near_miss(
        r'^\{(?=.*"fields":)(?=.*"tags":)',
        "This is Telegraf's output as JSON.",
        "Set data_format to influx for Telegraf's outputs.file.",
    ),
)
