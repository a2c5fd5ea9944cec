"""Convert any table of polls to landed polls, and infer missing intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Reading
from iosig.warehouse.sources.rows import times as job_times
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.faults import (
    NOTED,
    Fault,
    blank_missing,
    build_contract_faults,
    build_number_fault,
    sift,
)
from iosig.warehouse.sources.rows.rejects import REJECT_SCHEMA, ParsedRows, reject_batches
from iosig.warehouse.sources.rows.tables import text

UInts = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

REQUIRED = ("polled_at", "controller", "read_bytes_per_s", "write_bytes_per_s")
OPTIONAL = ("filesystem", "interval_s", "read_iops", "write_iops")
NUMBERS = ("interval_s", "read_bytes_per_s", "write_bytes_per_s", "read_iops", "write_iops")

#: maximum number of rows in memory until their interval is known; the rest is read twice
MAX_BUFFERED_ROWS = 1_000_000
#: minimum number of new instants per merge
_MIN_MERGED_INSTANTS = 100_000
#: columns that identify a file system's poll instant
_POLLED = ("filesystem", "polled_at")
_GIVEN = "given_"
_US_PER_S = 1_000_000
_LATEST_S = job_times.LATEST.timestamp()
# DuckDB and PostgreSQL write whole-hour offsets in this form.
_SHORT_OFFSET = r"(:[0-9]{2}(?:\.[0-9]+)? ?[+-][0-9]{2})$"


def locate(names: Collection[str], reading: Reading) -> dict[str, str]:
    """Map iosig's columns to the input's; raise InputRefused if a mandatory one is missing."""
    source_names = {column: reading.columns.get(column, column) for column in (*REQUIRED, *OPTIONAL)}
    present = {column: source_name for column, source_name in source_names.items() if source_name in names}
    absent = [
        source_name
        for column, source_name in source_names.items()
        if column not in present and (column in REQUIRED or source_name != column)
    ]
    if absent:
        raise InputRefused(
            f"The table has no column {', '.join(absent)}.",
            "Name its columns in the settings, or rename them to the published ones.",
        )
    return present


def _text_instants(texts: pl.Series, zone: str | None) -> pl.DataFrame:
    # Each poll time occurs once per controller, so it is faster to parse only distinct strings.
    runs = texts.rename("text").to_frame().select(pl.col("text").rle()).unnest("text")
    distinct = runs["value"].unique()
    instants = job_times.parse(distinct.str.strip_chars().str.replace(_SHORT_OFFSET, "${1}:00"), zone, "poll")
    parsed = runs.join(
        instants.with_columns(value=distinct), on="value", how="left", maintain_order="left", nulls_equal=True
    )
    times = parsed.select(pl.col("instant").alias("polled_at"), "reason", "remedy")
    if times["reason"].null_count() == times.height:
        times = times.select("polled_at")
    if times.height == len(texts):
        return times
    return times[np.repeat(np.arange(times.height), parsed["len"].to_numpy())]


def _number_instants(seconds: pl.Series) -> pl.Series:
    number = pl.lit(seconds.cast(pl.Float64))
    in_years = number.is_between(0, _LATEST_S, closed="left")
    micros = (pl.when(in_years).then(number) * _US_PER_S).round().cast(pl.Int64)
    return pl.select(micros.cast(job_times.INSTANT)).to_series()


def instants(times: pl.Series, zone: str | None) -> pl.DataFrame:
    """Convert poll times of any type to UTC.

    Strings are ISO 8601 or epoch seconds, numbers are epoch seconds, and times without a zone are local in `zone`.
    Returns the column polled_at. If any time has a fault, the columns reason and remedy are added, NULL for good times.
    """
    if times.dtype == pl.String:
        return _text_instants(times, zone)
    is_number = times.dtype.is_numeric()
    if not (is_number or times.dtype in (pl.Date, pl.Datetime)):
        raise InputRefused(f"The poll times are of type {times.dtype}.", "Write them as timestamps or epoch seconds.")
    converted = _number_instants(times) if is_number else job_times.convert_to_utc(times, zone, "The poll time")
    read = converted.to_frame("polled_at")
    is_good = read.select(job_times.in_range(pl.col("polled_at")).fill_null(value=False)).to_series()
    is_faulty = times.is_not_null() & ~is_good
    if not is_faulty.any():
        # formatting every time as text would dominate the cost
        return read
    reason = pl.format(
        "The poll time {} is not an instant from 1970 to 2261 in {}.", times.cast(pl.String), pl.lit(zone)
    )
    remedy = pl.lit("Write times in UTC: local times skipped or repeated by a clock change are ambiguous.")
    return read.select(
        pl.when(is_good).then("polled_at").alias("polled_at"),
        pl.when(is_faulty).then(reason).alias("reason"),
        pl.when(is_faulty).then(remedy).alias("remedy"),
    )


def _parse_instants(rows: pl.DataFrame, filesystems: pl.Series, reading: Reading) -> pl.DataFrame:
    """Convert the poll times in a table, each in the zone of its own file system."""
    zones = {name: job_times.require_zone(reading.zone_of(name)) for name in filesystems.unique().to_list()}
    if len(set(zones.values())) <= 1:
        return instants(rows["polled_at"], next(iter(zones.values()), reading.time_zone))
    parts = []
    for zone in set(zones.values()):
        is_own = filesystems.is_in([name for name, named_zone in zones.items() if named_zone == zone])
        parts.append(instants(rows["polled_at"].filter(is_own), zone).with_columns(place=is_own.arg_true()))
    return pl.concat(parts, how="diagonal").sort("place").drop("place")


def _faults(times: pl.DataFrame, number_columns: Collection[str]) -> list[Fault]:
    numbers = [build_number_fault(_GIVEN + name, name) for name in number_columns]
    contract = build_contract_faults(POLLS, but=("interval_s_not_null",))
    return [*([NOTED] if "reason" in times.columns else []), *numbers, *contract]


def _number_column(rows: pl.DataFrame, name: str) -> pl.Expr:
    if name not in rows.columns:
        return pl.lit(None, pl.Float64).alias(name)
    return pl.col(name).cast(pl.Float64, strict=False).fill_nan(None)


def convert_types(rows: pl.DataFrame, reading: Reading) -> tuple[pl.DataFrame, list[Fault]]:
    """Convert a table's columns, which have iosig's names and any type, to those of `polls`.

    `rows` also have `line`, and `raw` if refused rows are to contain it. Returns the rows, with NULL for missing
    numbers (an empty cell, NaN), and the checks that separate good rows from refused ones.
    """
    number_columns = [name for name in NUMBERS if name in rows.columns and rows.schema[name] != pl.Float64]
    filesystem = pl.coalesce(text(rows, "filesystem"), pl.lit(reading.filesystem or DEFAULT_FILESYSTEM))
    numbers = rows.select(_number_column(rows, name) for name in NUMBERS)
    is_missing = pl.any_horizontal(numbers[name].is_null() for name in REQUIRED[2:])
    times = _parse_instants(rows, rows.select(filesystem.alias("filesystem")).to_series(), reading)
    frame = rows.select(
        *times.get_columns(),
        filesystem.alias("filesystem"),
        text(rows, "controller").alias("controller"),
        *numbers.get_columns(),
        pl.when(is_missing).then(pl.lit("missing")).alias("flag"),
        *(blank_missing(rows[name], numbers[name]).alias(_GIVEN + name) for name in number_columns),
        pl.col(LINE, RAW) if RAW in rows.columns else pl.col(LINE),
    )
    return frame, _faults(times, number_columns)


def read_rows(rows: pl.DataFrame, reading: Reading) -> ParsedRows | None:
    """Convert and check a table's rows (see `convert_types`); the good ones have the columns of `polls` and `line`.

    Returns None if a row is refused but has no `raw`.
    """
    checked = sift(*convert_types(rows, reading))
    if not checked.refused.is_empty() and RAW not in rows.columns:
        return None
    return ParsedRows(checked.rows.select(*POLLS.column_names, LINE), checked.refused)


@dataclass(slots=True)
class _Steps:
    """The distinct poll instants of each file system so far.

    A year of polls has some 16 million instants, so they are stored as sorted numbers, and file systems as hashes.
    """

    _filesystem: UInts = field(default_factory=lambda: np.empty(0, np.uint64))
    _at_us: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _new: list[tuple[UInts, Ints]] = field(default_factory=list)
    _new_count: int = 0

    def add(self, rows: pl.DataFrame) -> None:
        """Add the instants of more rows."""
        # Drop the rows that repeat the previous instant first, which is fast; most rows do.
        is_new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in _POLLED)
        new = rows.lazy().select(_POLLED).filter(is_new | (pl.int_range(pl.len()) == 0)).collect()
        # copy, because the result of a filter may keep its whole input in memory
        self._new.append((new["filesystem"].hash().to_numpy().copy(), new["polled_at"].to_physical().to_numpy().copy()))
        self._new_count += new.height
        # merging when the size doubles keeps the cost per instant constant
        if self._new_count > max(len(self._at_us), _MIN_MERGED_INSTANTS):
            self._merge()

    def _merge(self) -> None:
        filesystem = np.concatenate([self._filesystem, *(part for part, _ in self._new)])
        at_us = np.concatenate([self._at_us, *(part for _, part in self._new)])
        self._new, self._new_count = [], 0
        filesystem, at_us = _sort_by_filesystem(filesystem, at_us)
        is_first = _changes(filesystem) | _changes(at_us)
        self._filesystem, self._at_us = filesystem[is_first], at_us[is_first]

    def intervals(self) -> pl.DataFrame:
        """Return the most common distance [s] between neighboring instants per file system; the smallest in a tie."""
        self._merge()
        is_within = ~_changes(self._filesystem)
        every = pl.DataFrame({"filesystem": self._filesystem[~is_within]})
        filesystem, distance_us = self._filesystem[is_within], np.diff(self._at_us)[is_within[1:]]
        # free the memory, since no more instants are added
        self._filesystem, self._at_us = self._filesystem[:0].copy(), self._at_us[:0].copy()
        filesystem, distance_us = _sort_by_filesystem(filesystem, distance_us)
        starts = np.flatnonzero(_changes(filesystem) | _changes(distance_us))
        runs = pl.DataFrame(
            {
                "filesystem": filesystem[starts],
                "step": distance_us[starts] / _US_PER_S,
                "count": np.diff(starts, append=len(filesystem)),
            }
        )
        best = runs.sort("count", "step", descending=[True, False]).unique("filesystem", keep="first")
        return every.join(best, on="filesystem", how="left").select("filesystem", "step")


def _sort_by_filesystem(filesystem: UInts, number: Ints) -> tuple[UInts, Ints]:
    """Sort both arrays by file system, then by number."""
    if not len(filesystem) or (filesystem == filesystem[0]).all():
        # in place, since an argsort would take several times the memory of the values
        number.sort()
        return filesystem, number
    order = np.lexsort((number, filesystem))
    return filesystem[order], number[order]


def _changes(values: UInts | Ints) -> Bools:
    """Mark values that differ from the previous one, including the first."""
    is_new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return is_new


@dataclass(frozen=True, slots=True)
class _PendingPiece:
    """A piece that waits for its interval; constant columns (mostly half of all columns) are stored once."""

    rows: pl.DataFrame
    same: pl.DataFrame
    refused: pl.DataFrame

    @classmethod
    def from_piece(cls, piece: ParsedRows) -> Self:
        """Create from a piece with one row or more."""
        differs = piece.rows.select(pl.exclude(LINE).ne_missing(pl.exclude(LINE).first()).any())
        constant_columns = [name for name in differs.columns if not differs[name][0]]
        first = piece.rows.select(constant_columns).head(1)
        # copy the first row, because a slice would keep all values in memory
        return cls(
            piece.rows.drop(constant_columns),
            pl.DataFrame(first.rows(), schema=first.schema, orient="row"),
            piece.refused,
        )

    def restore(self) -> ParsedRows:
        """Return the original piece, with the constant columns expanded."""
        return ParsedRows(self.rows.with_columns(pl.lit(column).first() for column in self.same), self.refused)


def _fill_piece(piece: ParsedRows, steps: pl.DataFrame, *, is_again: bool) -> Iterator[Batch]:
    rows = piece.rows
    if rows["interval_s"].has_nulls():
        key = pl.col("filesystem").hash()
        step = key.replace_strict(steps["filesystem"], steps["step"], return_dtype=pl.Float64)
        if steps.height == 1:
            step = pl.lit(steps["step"][0], pl.Float64)
        rows = rows.with_columns(interval_s=pl.coalesce("interval_s", step))
    unknown = Fault(
        pl.col("interval_s").is_null(),
        "Its file system has polls of one instant only, so their interval is unknown.",
        "Add the column interval_s.",
    )
    checked = sift(rows, [unknown])
    faulty = checked.refused if is_again else pl.concat([piece.refused, checked.refused])
    yield from ParsedRows(checked.rows, faulty).batches(POLLS)


def _refuse_single_instant(refused: pl.DataFrame) -> InputRefused:
    """Build the refusal of polls of one instant; refused: the first refused row, which is the cause if there is one."""
    if refused.is_empty():
        return InputRefused("All polls are of one instant, so their interval is unknown.", "Add the column interval_s.")
    line, reason, remedy, _ = refused.row(0)
    return InputRefused(
        f"Line {line}: {reason} The polls that can be read are of one instant, so their interval is unknown.", remedy
    )


def fill_intervals(read: Callable[[], Iterator[ParsedRows]], held_rows: int | None = None) -> Iterator[Batch]:
    """Fill the interval of every poll, and yield the batches.

    `read` yields the pieces of one input (columns of `polls` and `line`), identically at every call. Pieces with
    intervals are yielded at once. Other pieces wait until all instants are known: up to `held_rows`
    rows, by default MAX_BUFFERED_ROWS, stay in memory, and the rest is read again. Raises InputRefused if no interval
    can be inferred.
    """
    max_rows = MAX_BUFFERED_ROWS if held_rows is None else held_rows
    steps = _Steps()
    waiting: list[_PendingPiece] = []
    pending_indices: set[int] = set()
    held_count = yielded_count = 0
    refused = REJECT_SCHEMA.to_frame()
    for index, piece in enumerate(read()):
        refused = piece.refused.head(1) if refused.is_empty() else refused
        if piece.rows.is_empty():
            # yield refused rows at once, since they may be millions
            yield from reject_batches(piece.refused)
            continue
        steps.add(piece.rows)
        if not piece.rows["interval_s"].has_nulls():
            yielded_count += piece.rows.height
            yield from _fill_piece(piece, pl.DataFrame(), is_again=False)
        elif held_count < max_rows:
            held_count += piece.rows.height
            waiting.append(_PendingPiece.from_piece(piece))
        else:
            pending_indices.add(index)
            waiting.append(_PendingPiece.from_piece(ParsedRows(piece.rows.clear(), piece.refused)))
    intervals = steps.intervals()
    if waiting and not yielded_count and intervals["step"].null_count() == intervals.height:
        raise _refuse_single_instant(refused)
    while waiting:
        yield from _fill_piece(waiting.pop(0).restore(), intervals, is_again=False)
    if pending_indices:
        for index, piece in enumerate(read()):
            if index in pending_indices:
                yield from _fill_piece(piece, intervals, is_again=True)
