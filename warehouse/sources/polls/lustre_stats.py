"""Read `lctl get_param obdfilter.*.stats llite.*.stats`: cumulative bytes of each target or client mount, as polls.

A reading is a header with the target, `snapshot_time`, and a line per counter (lprocfs_stats_seq_show in Lustre's
sources); counters of 0 have no line. Unlike that of job statistics, `snapshot_time` is the time of the reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import text_blocks, times
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.faults import Fault, sift, validate_rows
from iosig.warehouse.sources.rows.field_use import is_recording, note_fields
from iosig.warehouse.sources.rows.rejects import build_refused_rows, build_reject_frame, reject_batches

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
_HEADER = r"^(obdfilter|llite)\.(\S+)\.stats=\s*$"
#: statistics of a target by client, which its own statistics include
_EXPORT = r"\.exports\."
#: other parameters, whose content is skipped; a line of statistics that is damaged by a `=` is none
_PARAMETER = r"^([A-Za-z][^\s=]*)="
_COUNTED = r"\s[0-9]+ samples\b"
_STAMP = r"^#? ?([0-9]{10})(?:[.,]([0-9]{1,9}))?\s*$"
#: time of the reading; Lustre up to 2.9 does not pad the microseconds
_TIME = r"^snapshot_time:?\s+([0-9]{10})\.([0-9]{1,9}) secs\.([un])secs\s*$"
#: number of samples, minimum, maximum and sum, and perhaps the sum of squares
_COUNTER = (
    r"^{}\s+([0-9]{{1,19}}) samples \[bytes\]\s+[0-9]{{1,19}}\s+([0-9]{{1,19}})\s+([0-9]{{1,19}})"
    r"(?:\s+[0-9]{{1,39}})?\s*$"
)
_COUNTERS: Final = {"READ_BYTES": _COUNTER.format("read_bytes"), "WRITE_BYTES": _COUNTER.format("write_bytes")}
_COUNTS: Final = {"READ_BYTES": "read_iops", "WRITE_BYTES": "write_iops"}
#: maximum time from the first to any other reading of a round [us]
_ROUND_US = 1_000_000
#: further lines of a reading
_OTHER = (
    r"^\s*$|^#? ?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{5,}|^(?:snapshot|start|elapsed)_time:?\s+[0-9]|"
    r"^(?:read|write)_bytes\s+0 samples|^\w+\s+[0-9]+ samples |^error: get_param: "
)
_OWN = re.compile(r"^(?:read|write)_bytes:?\s", re.ASCII)
_CLIENT = re.compile(r"(.+)-[0-9a-f]{8,16}")
_SNIFFED = re.compile(_HEADER, re.MULTILINE)
_BARE = re.compile(r"^snapshot_time:?\s+[0-9.]+ secs\.[un]secs\s*\n(?:[^\n]*\n)*?(?:read|write)_bytes\s", re.MULTILINE)
_REMEDY = "Check for a truncated file, or two concurrent writers."
_ADVICE = "Append readings to a file: while sleep 10; do lctl get_param 'obdfilter.*.stats'; done >> oss1.stats"
_COLUMNS: Final = {
    "snapshot_time": "polled_at",
    "read_bytes": "read_bytes_per_s, read_iops",
    "write_bytes": "write_bytes_per_s, write_iops",
}
_SCHEMA = pl.Schema({LINE: pl.Int64, "text": pl.String})
_READINGS = pl.Schema(
    {LINE: pl.Int64, "kind": pl.String, "target": pl.String, "at_us": pl.Int64, "stamp_us": pl.Int64}
    | {"damage": pl.String}
    | dict.fromkeys((*_COUNTERS, *_COUNTS.values()), pl.Int64)
)


def sniff(head: Head) -> bool:
    """Recognize statistics of targets or mounts without job statistics, which have their own format."""
    if "job_stats" in head.text:
        return False
    return bool(_SNIFFED.search(head.text) or _BARE.search(head.text))


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read polls: the rise of each counter between two readings; raise InputRefused if no target has two."""
    from iosig.warehouse.sources.polls.lmt_queries import compute_polls, drop_repeats

    readings, refused = _read_all(path)
    yield from reject_batches(refused)
    checked = sift(_name(readings, path, reading), _FAULTS)
    first = drop_repeats(checked.rows.sort("filesystem", "controller", "instant", maintain_order=True), "controller")
    yield from reject_batches(pl.concat([checked.refused, first[1]]).sort(LINE))
    rows = first[0]
    is_first = ~pl.struct("filesystem", "controller").eq_missing(pl.struct("filesystem", "controller").shift())
    is_start = rows.select(is_first.fill_null(True)).to_series()
    if is_start.all():
        raise InputRefused("No target or mount has two readings, and a poll needs two.", _ADVICE)
    rates = compute_polls(rows, is_start.to_numpy()).rename({"instant": "polled_at"})
    is_known = pl.col("flag").is_null()
    iops = [pl.when(is_known).then(pl.col(name) / pl.col("interval_s")).alias(name) for name in _COUNTS.values()]
    rises = rows.select("filesystem", "controller", LINE, pl.col(*_COUNTS.values()).diff()).filter(~is_start)
    yield from validate_rows(POLLS, rates.hstack(rises).with_columns(iops)).batches(POLLS)


_FAULTS: Final = [
    Fault(pl.col("damage").is_not_null(), pl.col("damage"), _REMEDY),
    Fault(
        ~times.in_range(pl.col("instant")).fill_null(False),
        "The reading has no time.",
        "Write `date +%s` before each reading.",
    ),
    Fault(
        pl.any_horizontal(pl.col(name).is_null() for name in _COUNTERS), "A counter is larger than 2^63 - 1.", _REMEDY
    ),
]


def _read_all(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the readings of a file, and refused lines; raise InputRefused if no header names a target."""
    pending, stamp_us = pl.DataFrame(schema=_SCHEMA), None
    readings, refused = [pl.DataFrame(schema=_READINGS)], [build_reject_frame([])]
    for block in text_blocks.blocks(path, BLOCK_BYTES):
        lines = pl.concat([pending, text_blocks.lines(block).with_columns(pl.col("text").str.strip_chars_end("\r"))])
        if not block.content.endswith(b"\n"):
            # no line of a reading ends in this mark
            is_last = pl.col(LINE) == pl.col(LINE).max()
            lines = lines.with_columns(text=pl.when(is_last).then(pl.col("text") + " (no end)").otherwise("text"))
        starts = lines.select(_is_own()).to_series().arg_true()
        end = int(starts[-1]) if starts.len() else 0
        parts, stamp_us = _parse(lines[:end], stamp_us)
        pending = lines[end:]
        readings.append(parts[0])
        refused.append(parts[1])
    parts, _ = _parse(pending, stamp_us)
    found = pl.concat([*readings, parts[0]])
    if found.is_empty():
        raise InputRefused("No header names the target of the statistics.", "Run lctl get_param without -n.")
    return _align(found), pl.concat([*refused, parts[1]])


def _align(readings: pl.DataFrame) -> pl.DataFrame:
    """Give the readings of a round the time of its first.

    lctl reads targets one after the other, in the same order each time, so a round ends where this order starts again.
    """
    order = pl.col(LINE).min().over("kind", "target")
    is_new = (order <= order.shift()) | (pl.col("stamp_us") != pl.col("stamp_us").shift())
    first_us = pl.col("at_us").drop_nulls().first().over(is_new.fill_null(True).cum_sum())
    is_close = (pl.col("at_us") - first_us).is_between(0, _ROUND_US)
    return readings.with_columns(at_us=pl.when(is_close).then(first_us).otherwise("at_us"))


def _parse(lines: pl.DataFrame, stamp_us: int | None) -> tuple[tuple[pl.DataFrame, pl.DataFrame], int | None]:
    """Parse whole readings; return them, the refused lines, and the last time line [us since 1970]."""
    if lines.is_empty():
        return (pl.DataFrame(schema=_READINGS), build_reject_frame([])), stamp_us
    text = pl.col("text")
    is_start = _is_own() | (text.str.contains(_PARAMETER) & ~text.str.contains(_COUNTED))
    stamped = _microseconds(_STAMP, padded=True).fill_null(strategy="forward").fill_null(pl.lit(stamp_us, pl.Int64))
    is_counter = pl.any_horizontal(text.str.contains(form) for form in _COUNTERS.values())
    is_known = is_start | is_counter | text.str.contains(_STAMP) | text.str.contains(_TIME) | text.str.contains(_OTHER)
    frame = lines.with_columns(
        section=is_start.cast(pl.Int64).cum_sum(),
        is_start=is_start,
        is_own=_is_own(),
        is_bad=~is_known | (text.str.contains(_OWN.pattern) & ~is_counter & ~text.str.contains(r"\s0 samples")),
        stamp_us=stamped,
    )
    if is_recording():
        _note(frame)
    lost = frame.filter((pl.col("section") == 0) & pl.col("is_bad"))
    refused = build_refused_rows(lost, "The line belongs to no target.", _REMEDY, "text")
    return (_collect(frame.filter(pl.col("section") > 0)), refused), frame["stamp_us"][-1]


def _is_own() -> pl.Expr:
    """Test whether a line is the header of a target's or mount's statistics."""
    return pl.col("text").str.contains(_HEADER) & ~pl.col("text").str.contains(_EXPORT)


def _note(lines: pl.DataFrame) -> None:
    """Note the counters of readings, and other parameters without the names of their targets."""
    text = pl.col("text")
    is_of_reading = pl.col("is_own").first().over("section")
    counters = lines.filter(is_of_reading).select(text.str.extract(r"^([a-z]\w*):?\s", 1)).to_series()
    name = text.str.extract(_PARAMETER, 1).str.replace(r"^([^.]+)\..+\.([^.]+)$", "${1}.*.${2}")
    others = lines.filter("is_start", ~pl.col("is_own")).select(name).to_series()
    note_fields(_COLUMNS, pl.concat([counters, others]).drop_nulls().unique(maintain_order=True))


def _collect(lines: pl.DataFrame) -> pl.DataFrame:
    """Collect the lines of each reading into a row; lines of other parameters are dropped."""
    text = pl.col("text")
    bad = text.filter("is_bad").first().str.slice(0, 60)
    excess = pl.any_horizontal(_has_excess(form).any() for form in _COUNTERS.values())
    doubled = pl.any_horizontal(text.str.contains(form).sum() > 1 for form in _COUNTERS.values())
    counters = {
        column: pl.when(text.str.contains(form).any())
        .then(text.str.extract(form, group).cast(pl.Int64, strict=False).drop_nulls().first())
        .otherwise(0)
        for name, form in _COUNTERS.items()
        for group, column in ((1, _COUNTS[name]), (3, name))
    }
    sections = lines.group_by("section", maintain_order=True).agg(
        pl.col(LINE, "is_own", "stamp_us").first(),
        kind=text.first().str.extract(_HEADER, 1),
        target=text.first().str.extract(_HEADER, 2),
        at_us=pl.coalesce(_microseconds(_TIME).drop_nulls().first(), pl.col("stamp_us").first()),
        damage=pl.when(bad.is_not_null())
        .then(pl.format("The reading has the line {}, which lctl does not write.", bad))
        .when(doubled)
        .then(pl.lit("The reading has a counter more than once."))
        .when(excess)
        .then(pl.lit("A counter has more bytes than its number of samples and their maximum allow.")),
        **counters,
    )
    return sections.filter("is_own").select(_READINGS.names())


def _has_excess(form: str) -> pl.Expr:
    """Test whether a sum exceeds its samples, as a sum of squares would; lctl reads it slightly later than them."""
    count, maximum, total = (pl.col("text").str.extract(form, group).cast(pl.Float64) for group in (1, 2, 3))
    return total > (2 * count + 64) * maximum


def _microseconds(form: str, *, padded: bool = False) -> pl.Expr:
    """Extract a time [us since 1970]; a fraction that is not padded counts microseconds or nanoseconds."""
    text = pl.col("text")
    seconds, part = (text.str.extract(form, group) for group in (1, 2))
    if padded:
        fraction = part.str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64).fill_null(0)
    else:
        is_nano = text.str.extract(form, 3) == "n"
        fraction = pl.when(is_nano).then(part.cast(pl.Int64) // 1000).otherwise(part.cast(pl.Int64))
    return seconds.cast(pl.Int64) * 1_000_000 + fraction


def _name(readings: pl.DataFrame, path: Path, reading: Reading) -> pl.DataFrame:
    """Add `filesystem`, `controller` and `instant`; a mount is named after the file, since its address is no name."""
    targets = readings["target"].unique().to_list()
    forms = (re.compile(reading.target_pattern), _CLIENT)
    matches = {name: next(filter(None, (form.search(name) for form in forms)), None) for name in targets}
    names = {name: match[1] if match and match[1] else DEFAULT_FILESYSTEM for name, match in matches.items()}
    target = pl.col("target")
    node = path.name.split(".")[0]
    return readings.with_columns(
        filesystem=pl.lit(reading.filesystem) if reading.filesystem else target.replace_strict(names),
        controller=pl.when(pl.col("kind") == "llite").then(pl.format("{}:{}", pl.lit(node), target)).otherwise(target),
        instant=pl.col("at_us").cast(times.INSTANT),
        **{RAW: pl.format("{}: read {}, write {}", "target", *_COUNTERS)},
    )


SOURCE = Source(
    name="lustre-stats",
    doc="Lustre's `lctl get_param obdfilter.*.stats` or `llite.*.stats`, read repeatedly: bytes per target or mount.",
    kind="polls",
    sniff=sniff,
    read=read,
    # recognized before job statistics, whose reader accepts any parameters of a server
    precedence=6,
)
