"""Convert any table of request events, text or typed, to checked rows, piece by piece."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import polars as pl

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.rows import times as job_times
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.faults import MAX_SHOWN_CHARS, Fault, build_number_fault, sift
from iosig.warehouse.sources.rows.rejects import ParsedRows
from iosig.warehouse.sources.rows.tables import text

REQUIRED = ("layer", "node", "rank", "request_id", "event", "start_s", "end_s")
OPTIONAL = ("layer_number", "peer", "bytes", "direction", "file", "is_collective")
#: known layers, outermost first; they need no number
KNOWN_LAYERS = ("application", "library", "io_node", "storage", "device")
#: schema of a piece, with times in the table's own unit and files by name
ROWS = pl.Schema(
    {
        "layer_number": pl.Int64(),
        "layer": pl.String(),
        "node": pl.String(),
        "rank": pl.Int64(),
        "request_id": pl.String(),
        "event_kind": pl.String(),
        "peer": pl.String(),
        "start": pl.Float64(),
        "end": pl.Float64(),
        "event_bytes": pl.Float64(),
        "direction": pl.String(),
        "path": pl.String(),
        "is_collective": pl.Boolean(),
    }
)
#: meaning of a table's times: seconds from the run's start, seconds since 1970, or instants
Clock = Literal["seconds", "epoch", "instants"]

_MAX_LAYERS = 64
_MAX_RANK = (1 << 31) - 1
#: times above this value are seconds since 1970, as in series
_EPOCH_FROM_S = 1e9
_LATEST_S = job_times.LATEST.timestamp()
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_TIMES = {"start": "start_s", "end": "end_s"}
_NUMBERS = {"rank": "rank", "layer_number": "layer_number", "bytes": "event_bytes"}
_GIVEN = "given_"


def locate(names: Collection[str]) -> dict[str, str]:
    """Map iosig's columns to the table's; raise InputRefused if a mandatory one is missing."""
    absent = [name for name in REQUIRED if name not in names]
    if absent:
        raise InputRefused(f"The table has no column {', '.join(absent)}.", "Rename its columns to the published ones.")
    return {name: name for name in (*REQUIRED, *OPTIONAL) if name in names}


def find_clock(times: pl.Series) -> Clock:
    """Infer the meaning of a table's times from the majority in the first piece."""
    if times.dtype.is_temporal():
        return "instants"
    bare = times.str.strip_chars() if times.dtype == pl.String else times
    number = bare.cast(pl.Float64, strict=False)
    if times.dtype == pl.String and number.count() * 2 < times.count():
        return "instants"
    median = number.median()
    return "epoch" if isinstance(median, float) and median >= _EPOCH_FROM_S else "seconds"


# ---- cells


def _bare(rows: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name).str.strip_chars() if rows.schema[name] == pl.String else pl.col(name)


def _whole(rows: pl.DataFrame, name: str) -> pl.Expr:
    """Convert a column to integers; NULL for other values, including fractions."""
    if name not in rows.columns:
        return pl.lit(None, pl.Int64)
    number = _bare(rows, name).cast(pl.Int64, strict=False)
    return pl.when(pl.col(name) == pl.col(name).floor()).then(number) if rows.schema[name].is_float() else number


def _real(rows: pl.DataFrame, name: str) -> pl.Expr:
    return _bare(rows, name).cast(pl.Float64, strict=False) if name in rows.columns else pl.lit(None, pl.Float64)


def _flag(rows: pl.DataFrame, name: str) -> pl.Expr:
    """Convert a column to Booleans; an empty cell is false, and an invalid one NULL."""
    if name not in rows.columns or rows[name].null_count() == rows.height:
        return pl.lit(value=False)
    if rows.schema[name] == pl.Boolean:
        return pl.col(name).fill_null(value=False)
    word = pl.col(name).cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    return pl.when(word.is_in(_TRUE)).then(True).when(word.is_in([*_FALSE, ""])).then(False)


def _times(rows: pl.DataFrame, name: str, clock: Clock, zone: str | None) -> pl.DataFrame:
    """Convert a column of times to the clock's unit (instants: microseconds since 1970), named without its suffix.

    If any time is faulty, the result also has its reason and remedy, which are NULL for good times.
    """
    short = name.removesuffix("_s")
    parsed = _instants(rows[name], short, zone) if clock == "instants" else _numbers(rows, name, short, clock)
    if parsed["reason"].null_count() == parsed.height:
        return parsed.select(short)
    return parsed.rename({"reason": f"{short}_reason", "remedy": f"{short}_remedy"})


def _numbers(rows: pl.DataFrame, name: str, short: str, clock: Clock) -> pl.DataFrame:
    low, high = (-_EPOCH_FROM_S, _EPOCH_FROM_S) if clock == "seconds" else (0.0, _LATEST_S)
    numbers = rows.select(_real(rows, name).alias(short))
    is_bad = numbers.select(~pl.col(short).is_between(low, high).fill_null(False)).to_series()
    if not is_bad.any():
        return numbers.with_columns(reason=pl.lit(None, pl.String), remedy=pl.lit(None, pl.String))
    unit = "seconds of a run" if clock == "seconds" else "seconds since 1970"
    shown = rows[name].cast(pl.String, strict=False).str.slice(0, MAX_SHOWN_CHARS).fill_null("")
    reason = pl.format("`{}` is not a number; the column is {} in {}.", shown, pl.lit(name), pl.lit(unit))
    remedy = pl.lit("Write all times of a file in the same way.")
    return numbers.with_columns(
        pl.when(is_bad).then(reason).alias("reason"), pl.when(is_bad).then(remedy).alias("remedy")
    )


def _instants(times: pl.Series, short: str, zone: str | None) -> pl.DataFrame:
    if times.dtype == pl.String:
        missing = pl.coalesce("reason", pl.lit(f"The time in {short}_s is missing."))
        parsed = job_times.parse(times, zone, f"event's {short}").with_columns(
            reason=pl.when(pl.col("instant").is_null()).then(missing),
            remedy=pl.coalesce("remedy", pl.lit("Fill in the time.")),
        )
    else:
        instants = job_times.convert_to_utc(times, zone, f"The event's {short} time").to_frame("instant")
        is_good = job_times.in_range(pl.col("instant")).fill_null(False)
        reason = pl.lit(f"The time in {short}_s is not an instant from 1970 to 2261.")
        parsed = instants.with_columns(
            reason=pl.when(~is_good).then(reason), remedy=pl.lit("Write times in UTC; fill in every cell.")
        )
    return parsed.select(pl.col("instant").dt.timestamp("us").cast(pl.Float64).alias(short), "reason", "remedy")


# ---- pieces


class Layers:
    """Layers found so far in one table, with a one-to-one mapping of names to numbers."""

    def __init__(self, *, are_numbered: bool) -> None:
        self.are_numbered = are_numbered
        numbers = {} if are_numbered else {name: number for number, name in enumerate(KNOWN_LAYERS)}
        self._number_of: dict[str, int] = numbers

    def sift(self, rows: pl.DataFrame) -> ParsedRows:
        """Refuse rows in which the pair of layer and number contradicts an earlier row."""
        pairs = rows.select("layer", "layer_number").unique(maintain_order=True)
        if self.are_numbered:
            used_numbers = set(self._number_of.values())
            for name, number in pairs.iter_rows():
                if name not in self._number_of and number not in used_numbers and len(used_numbers) < _MAX_LAYERS:
                    self._number_of[name] = number
                    used_numbers.add(number)
        names = pl.Series(list(self._number_of), dtype=pl.String)
        numbers = pl.Series(list(self._number_of.values()), dtype=pl.Int64)
        number = pl.col("layer").replace_strict(names, numbers, default=None, return_dtype=pl.Int64)
        placed = rows.with_columns(known_number=number)
        checked = sift(placed, [self._fault()])
        return ParsedRows(
            checked.rows.with_columns(layer_number=pl.col("known_number")).drop("known_number"), checked.refused
        )

    def _fault(self) -> Fault:
        shown = pl.col("layer").str.slice(0, MAX_SHOWN_CHARS)
        if not self.are_numbered:
            return Fault(
                pl.col("known_number").is_null(),
                pl.format("The position of the layer `{}` is unknown.", shown),
                f"Add the column layer_number, or call the layers {', '.join(KNOWN_LAYERS)}.",
            )
        return Fault(
            pl.col("known_number").ne_missing(pl.col("layer_number")),
            pl.format("The layer `{}` has the number {}, which contradicts earlier rows.", shown, "layer_number"),
            f"Give each layer a unique number, from 0 to {_MAX_LAYERS - 1}, lowest for the outermost.",
        )


def convert_types(
    rows: pl.DataFrame, clock: Clock, zone: str | None, *, are_numbered: bool
) -> tuple[pl.DataFrame, list[Fault]]:
    """Convert a piece of the table, with iosig's column names and any types, to ROWS, and build its checks.

    `rows` also have `line`, and `raw` if refused rows are to contain it.
    """
    nested = [name for name, dtype in rows.schema.items() if dtype.is_nested() or dtype in (pl.Binary, pl.Object)]
    if nested:
        raise InputRefused(f"The column {', '.join(nested)} has no plain values.", "Write one value per cell.")
    times = [column for name in _TIMES.values() for column in _times(rows, name, clock, zone).get_columns()]
    faulty = [short for short in _TIMES if f"{short}_reason" in {column.name for column in times}]
    layer = text(rows, "layer")
    number_columns = [name for name in _NUMBERS if name in rows.columns and not rows.schema[name].is_integer()]
    frame = rows.select(
        _whole(rows, "layer_number").alias("layer_number"),
        (layer if are_numbered else layer.str.to_lowercase()).alias("layer"),
        text(rows, "node").alias("node"),
        _whole(rows, "rank").alias("rank"),
        text(rows, "request_id").alias("request_id"),
        text(rows, "event").str.to_lowercase().alias("event_kind"),
        text(rows, "peer").alias("peer"),
        _real(rows, "bytes").alias("event_bytes"),
        text(rows, "direction").str.to_lowercase().alias("direction"),
        text(rows, "file").alias("path"),
        _flag(rows, "is_collective").alias("is_collective"),
        *(pl.col(name).alias(_GIVEN + name) for name in number_columns),
        *(pl.col(name) for name in (LINE, RAW) if name in rows.columns),
    ).with_columns(times)
    return frame, _faults(faulty, number_columns, are_numbered=are_numbered)


def _faults(faulty: Collection[str], number_columns: Collection[str], *, are_numbered: bool) -> list[Fault]:
    """Build the checks for times (`faulty`), for numbers that are not integers in the input, and for other columns."""
    fill = "Fill the cell at its source."
    size = pl.col("event_bytes")
    empty = [("layer", "layer"), ("rank", "rank"), ("event_kind", "event")]
    empty += [("layer_number", "layer_number")] if are_numbered else []
    return [
        *(
            Fault(pl.col(f"{short}_reason").is_not_null(), pl.col(f"{short}_reason"), pl.col(f"{short}_remedy"))
            for short in faulty
        ),
        Fault(
            pl.col("end") < pl.col("start"),
            "The event ends before it begins.",
            "Use the same clock for both times of an event.",
        ),
        *(build_number_fault(_GIVEN + name, _NUMBERS[name]) for name in number_columns),
        *(Fault(pl.col(name).is_null(), f"The {label} is missing.", fill) for name, label in empty),
        Fault(
            ~pl.col("rank").is_between(0, _MAX_RANK),
            pl.format("The rank {} is negative.", "rank"),
            "Number the processes from 0.",
        ),
        Fault(
            pl.col("request_id").is_null() & (pl.col("event_kind") != "open"),
            "The request_id is missing, so the event belongs to no request.",
            fill,
        ),
        Fault(
            ~(size.is_finite() & (size >= 0)),
            "The bytes are not a non-negative number.",
            "Leave the cell empty if the bytes are unknown.",
        ),
        Fault(
            ~pl.col("direction").is_in(c.DIRECTIONS),
            pl.format("The direction `{}` is unknown.", pl.col("direction").str.slice(0, MAX_SHOWN_CHARS)),
            "Write read or write, or leave the cell empty.",
        ),
        Fault(
            pl.col("is_collective").is_null(),
            "Whether the call is collective is neither true nor false.",
            "Write true or false, or leave the cell empty.",
        ),
        Fault(
            ~pl.col("layer_number").is_between(0, _MAX_LAYERS - 1),
            pl.format("The layer_number {} is out of range.", "layer_number"),
            f"Number the layers from 0 to {_MAX_LAYERS - 1}, the outermost first.",
        ),
    ]


def sift_rows(frame: pl.DataFrame, faults: list[Fault], layers: Layers) -> ParsedRows:
    """Separate good rows, with the columns of ROWS and `line`, from refused ones."""
    checked = sift(frame, faults)
    placed = layers.sift(checked.rows)
    refused = pl.concat([checked.refused, placed.refused]).sort(LINE)
    return ParsedRows(placed.rows.select(*ROWS.names(), LINE), refused)
