"""Read series of one subject (a job, a node): times and a byte counter, or times and rates, as text or CSV.

Without a header, two columns are time and cumulative bytes by default; a header line can name other content. The file's
name is the subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import counters, text_blocks, times as job_times
from iosig.warehouse.sources.rows.delimited import COMMENT, LINE, MAX_HEADER_LINES, RAW, Header, names_in
from iosig.warehouse.sources.rows.faults import NOTED, Fault, blank_missing, build_number_fault, sift, validate_rows
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.rejects import ParsedRows, reject_batches

VALUES = ("counter", "rate", "volume")
DIRECTIONS = ("read", "write", "unstated")
_TIMES = ("time_s", "time")
_RATES = {"read_bytes_per_s": "read", "write_bytes_per_s": "write"}
_BYTES = {"read_bytes": "read", "write_bytes": "write"}
_KNOWN = {*_TIMES, *_RATES, *_BYTES}
_DELIMITERS = (",", ";", "\t", " ")
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9:]+)?)?"
_ISO_BLANK = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9:.]+(?:Z|[+-][0-9:]+)?"
#: delimiter of columns without a header -> pattern of such a line
_BARE = {
    mark: re.compile(rf"\s*(?:{_NUMBER}|{_ISO}|{blank}){between}(?:{_NUMBER}|[nN]a[nN])?\s*")
    for mark, between, blank in (
        (",", r"\s*,\s*", _ISO_BLANK),
        (";", r"\s*;\s*", _ISO_BLANK),
        (" ", r"\s+", _ISO),
    )
}
_SNIFFED_LINES = 20
_MIN_LINES = 2
_DATE = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})$"
_PACKED = {".gz", ".bz2", ".xz", ".zst", ".zstd"}
_TEXT = {".csv", ".txt", ".tsv", ".dat", ".log"}
_WORDS = {"read": "read", "reads": "read", "write": "write", "writes": "write"}


@dataclass(frozen=True, slots=True)
class _Measure:
    """A column of values with its position, direction and kind of numbers."""

    name: str
    direction: str
    value: str


@dataclass(frozen=True, slots=True)
class _Layout:
    """Column names, delimiter, number of the header's line (0: none) and measured columns of the text."""

    names: tuple[str, ...]
    delimiter: str
    header_line: int
    time: str
    measures: tuple[_Measure, ...]


def subject(name: str) -> str:
    """Derive the subject from a file's name, without the suffixes for compression and text."""
    path = Path(name)
    if path.suffix.lower() in _PACKED:
        path = path.with_suffix("")
    return path.with_suffix("").name if path.suffix.lower() in _TEXT else path.name


def find_direction(name: str) -> str:
    """Return the direction that a word in the file's name states, or `unstated`."""
    directions = {_WORDS[word] for word in re.split(r"[^a-z]+", name.lower()) if word in _WORDS}
    return directions.pop() if len(directions) == 1 else "unstated"


def _is_header(names: tuple[str, ...]) -> bool:
    return any(name in names for name in _TIMES) and any(name in names for name in (*_RATES, *_BYTES))


def sniff(head: Head) -> bool:
    """Recognize a header of series, or lines that consist of a time and a number."""
    lines = [line for line in head.lines if line.strip() and not line.startswith(COMMENT)][:_SNIFFED_LINES]
    if any(_is_header(names_in(line, mark)) for line in lines for mark in _DELIMITERS):
        return True
    return len(lines) >= _MIN_LINES and any(all(map(form.fullmatch, lines)) for form in _BARE.values())


def _parse_header(line: str, number: int, reading: Reading) -> _Layout | None:
    column_names = {site_name: column for column, site_name in reading.columns.items()}
    for delimiter in _DELIMITERS:
        header_names = [column_names.get(name, name) for name in names_in(line, delimiter)]
        # Rename unknown columns, which are ignored and may have repeated names.
        names = tuple(name if name in _KNOWN else f"column {index}" for index, name in enumerate(header_names))
        if not _is_header(names):
            continue
        if len(set(names)) < len(names):
            raise InputRefused("The header names a column more than once.", "Rename or drop the other column.")
        note_fields({name: name for name in _KNOWN}, header_names)
        counted = "volume" if reading.value == "volume" else "counter"
        measures = [_Measure(name, _RATES[name], "rate") for name in names if name in _RATES]
        directions = {measure.direction for measure in measures}
        counters_there = [name for name in names if name in _BYTES and _BYTES[name] not in directions]
        measures += [_Measure(name, _BYTES[name], counted) for name in counters_there]
        return _Layout(names, delimiter, number, next(name for name in _TIMES if name in names), tuple(measures))
    return None


def _layout(path: Path, reading: Reading) -> _Layout:
    for value, choices in ((reading.value, VALUES), (reading.direction, DIRECTIONS)):
        if value is not None and value not in choices:
            raise UsageError(f"{value!r} is not one of {', '.join(choices)}.")
    lines = read_head(path).lines
    first = next((line for line in lines if line.strip()), "")
    for number, line in enumerate(lines[:MAX_HEADER_LINES], start=1):
        if layout := _parse_header(line, number, reading):
            return layout
    counts = {mark: sum(form.fullmatch(line) is not None for line in lines) for mark, form in _BARE.items()}
    delimiter = max(counts, key=lambda mark: counts[mark])
    if not counts[delimiter]:
        raise InputRefused(
            f"Neither a header of series nor two columns of numbers: `{first[:60]}`.",
            "Use two columns, time and bytes, or a header such as time_s and read_bytes_per_s.",
        )
    direction = reading.direction or find_direction(path.name)
    return _Layout(("time", "value"), delimiter, 0, "time", (_Measure("value", direction, reading.value or "counter"),))


def _seconds(times: pl.Series, zone: str | None) -> pl.DataFrame:
    """Convert times to seconds: numbers as they are, or ISO times as seconds since 1970.

    The majority determines the form of times in the file. Returns time_s, reason and remedy.
    """
    number = times.cast(pl.Float64, strict=False)
    if number.count() * 2 >= times.count():
        reason = pl.format("The time `{}` is not a number of seconds.", times.str.slice(0, 60))
        bad = times.is_null() | number.is_null() | ~number.is_finite()
        remedy = pl.lit("Write all times of a file in the same way.")
        return pl.select(
            time_s=number, reason=pl.when(bad).then(reason.fill_null("The time is missing.")), remedy=remedy
        )
    instants = job_times.parse(times.str.replace(_DATE, "${1}T00:00:00"), zone, "reading's")
    return instants.select(
        (pl.col("instant").dt.timestamp("us") / 1e6).alias("time_s"),
        pl.when(pl.col("instant").is_null())
        .then(pl.coalesce("reason", pl.lit("The time is missing.")))
        .alias("reason"),
        pl.coalesce("remedy", pl.lit("Fill in the time.")).alias("remedy"),
    )


def _select_ordered(cells: pl.DataFrame, layout: _Layout, zone: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep rows with valid, increasing times; refuse all others."""
    timed = cells.with_columns(_seconds(cells[layout.time], zone))
    good = sift(timed, [NOTED])
    late = Fault(
        pl.col("time_s") <= pl.col("time_s").cum_max().shift(),
        "The time is not later than all earlier times.",
        "Sort the series by time, and keep one row for each time.",
    )
    ordered = sift(good.rows, [late])
    return ordered.rows, pl.concat([good.refused, ordered.refused])


def _compute_intervals(rows: pl.DataFrame, measure: _Measure) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Convert a column of timed rows to intervals (time_s, interval_s, bytes_per_s, flag, line, raw)."""
    values = rows[measure.name].cast(pl.Float64, strict=False).fill_nan(None)
    typed = rows.select("time_s", LINE, RAW, given=blank_missing(rows[measure.name], values), value=values)
    checked = sift(typed, [build_number_fault("given", "value")])
    if measure.value == "counter":
        intervals, refused = _difference_counter(checked.rows)
    else:
        # The interval starts at the previous time, even if that row's value was refused.
        intervals, refused = _convert_rates(typed, checked.rows, is_volume=measure.value == "volume"), pl.DataFrame()
    return intervals, pl.concat([part for part in (checked.refused, refused) if part.width])


def _difference_counter(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    negative = Fault(
        ~((pl.col("value") >= 0) & pl.col("value").is_finite()),
        "A counter is not a non-negative number.",
        "Leave the cell empty without a reading.",
    )
    checked = sift(rows.filter(pl.col("given").is_not_null()), [negative])
    integers = checked.rows["given"].cast(pl.Int64, strict=False)
    # Use integers, because floats would round counters above 2^53.
    values = (checked.rows["value"] if integers.has_nulls() else integers).to_numpy()
    rises, codes = counters.confirm_increases(values)
    interval = pl.col("time_s").diff()
    frame = checked.rows.select("time_s", LINE, RAW, interval_s=interval).with_columns(
        pl.Series("volume", rises).cast(pl.Float64), counters.decode_flags(codes)
    )
    rate = pl.when(pl.col("flag").ne_missing("reset")).then(pl.col("volume") / pl.col("interval_s"))
    return frame.slice(1).with_columns(bytes_per_s=rate), checked.refused


def _convert_rates(timed: pl.DataFrame, rows: pl.DataFrame, *, is_volume: bool) -> pl.DataFrame:
    distances = np.diff(timed["time_s"].to_numpy())
    # Use the median, because time stamps jitter, so all distances may differ.
    first = float(np.percentile(distances, 50, method="lower")) if distances.size else None
    intervals = timed.select(LINE, interval_s=pl.col("time_s").diff().fill_null(pl.lit(first, pl.Float64)))
    rate = pl.col("value") / pl.col("interval_s") if is_volume else pl.col("value")
    return rows.join(intervals, on=LINE, how="left", maintain_order="left").with_columns(
        bytes_per_s=rate, flag=pl.when(pl.col("value").is_null()).then(pl.lit("missing"))
    )


def _batches(name: str, layout: _Layout, rows: pl.DataFrame) -> Iterator[Batch]:
    for measure in layout.measures:
        intervals, faulty = _compute_intervals(rows, measure)
        validated = validate_rows(
            SERIES,
            intervals.select(
                pl.lit(subject(name)).alias("subject_id"),
                pl.lit(measure.direction).alias("direction"),
                "time_s",
                "interval_s",
                "bytes_per_s",
                "flag",
                LINE,
                RAW,
            ),
        )
        yield from ParsedRows(validated.rows, pl.concat([faulty, validated.refused]).sort("line")).batches(SERIES)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the series of one subject; a bad row is refused, and the next interval includes its time."""
    zone = job_times.require_zone(reading.time_zone)
    layout = _layout(path, reading)
    used = [layout.time, *(measure.name for measure in layout.measures)]
    header, columns = Header(layout.names, layout.delimiter), {name: name for name in used}
    # prepend an empty block, since a file may have only a header
    blocks = [text_blocks.Block(1, 0, b""), *text_blocks.blocks(path, skipped_line_count=layout.header_line)]
    pieces = [text_blocks.cells(block, header, columns) for block in blocks]
    cells = pl.concat([piece.rows for piece in pieces])
    rows, untimely = _select_ordered(cells, layout, zone)
    yield from reject_batches(pl.concat([*(piece.refused for piece in pieces), untimely]).sort("line"))
    yield from _batches(path.name, layout, rows)


SOURCE = Source(
    name="series",
    doc="Time and bytes of one job or node, as text or CSV: bare columns (a counter) or a header.",
    kind="series",
    sniff=sniff,
    read=read,
    precedence=-10,
)
