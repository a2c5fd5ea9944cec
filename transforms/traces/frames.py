"""Convert compressed traces to frames with one row per node, as stored in files, and back.

Each rank class begins with a row of kind `ranks` with its rank list. Its nodes follow in the order of their numbers, a
loop before its body. Rank lists and values remain nested progressions, so a frame is as small as the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from iosig.transforms.traces.checks import MAX_DEPTH, check
from iosig.transforms.traces.progressions import NumberList, Progression, Stretch
from iosig.transforms.traces.trace import (
    Call,
    CompressedTrace,
    Gap,
    Loop,
    Node,
    RankClass,
    Share,
    Slot,
    TimeBin,
    TimeHistogram,
    Vector,
)

_NUMBERS = pl.List(pl.Int64())
_PROGRESSION: dict[str, pl.DataType] = {"start": pl.Int64(), "strides": _NUMBERS, "counts": _NUMBERS}
_ROW = pl.List(pl.Struct({**_PROGRESSION, "listed": _NUMBERS}))
_VECTOR = pl.List(pl.Struct({"ranks": pl.Struct(_PROGRESSION), "shifts": pl.List(_ROW), "values": _ROW}))
_SPREAD = {"count": pl.Int64(), "minimum_s": pl.Float64(), "mean_s": pl.Float64(), "maximum_s": pl.Float64()}
_HISTOGRAM = pl.Struct({**_SPREAD, "variance_s2": pl.Float64(), "bins": pl.List(pl.Struct(_SPREAD))})

#: columns; `iosig.warehouse.sources.extrapolations.compressed_traces` documents them
SCHEMA = pl.Schema(
    {
        "rank_class": pl.Int64(),
        "node": pl.Int64(),
        "parent": pl.Int64(),
        "kind": pl.String(),
        "ranks": pl.List(pl.Struct(_PROGRESSION)),
        "iterations": _VECTOR,
        "module": pl.String(),
        "function": pl.String(),
        "level": pl.Int64(),
        "texts": pl.List(pl.String()),
        "slots": pl.List(pl.Struct({"width": pl.Int64(), "shares": _VECTOR})),
        "gaps": pl.List(pl.Struct({"previous": pl.Int64(), "times": _HISTOGRAM})),
        "durations": _HISTOGRAM,
    }
)
#: columns of each kind of row besides class and kind; the other columns are NULL
_COLUMNS_BY_KIND = {
    "ranks": ("ranks",),
    "loop": ("node", "iterations"),
    "call": ("node", "module", "function", "level", "texts", "slots", "gaps", "durations"),
}
_Row = Mapping[str, Any]


# ---- conversion to a frame


def to_frame(trace: CompressedTrace) -> pl.DataFrame:
    """Convert a trace to a frame.

    Parameters
    ----------
    trace
        Compressed trace.

    Returns
    -------
    SCHEMA
        One row per class and node; the number of processes is not included.
    """
    rows: list[dict[str, Any]] = []
    for number, rank_class in enumerate(trace.classes):
        ranks = [_progression_row(ranks) for ranks in rank_class.ranks]
        rows.append({"rank_class": number, "kind": "ranks", "ranks": ranks})
        rows += ({"rank_class": number, "node": node, **row} for node, row in enumerate(_body_rows(rank_class.body)))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _body_rows(body: Sequence[Node], parent: int | None = None, first: int = 0) -> list[dict[str, Any]]:
    """Rows of sibling nodes and their bodies; `first` is the number of the first node."""
    rows: list[dict[str, Any]] = []
    for node in body:
        if isinstance(node, Call):
            rows.append({"parent": parent, **_call_row(node)})
            continue
        number = first + len(rows)
        rows.append({"parent": parent, "kind": "loop", "iterations": _vector_rows(node.counts)})
        rows += _body_rows(node.body, number, number + 1)
    return rows


def _call_row(call: Call) -> dict[str, Any]:
    return {
        "kind": "call",
        "module": call.module,
        "function": call.function,
        "level": call.level,
        "texts": list(call.texts),
        "slots": [{"width": slot.width, "shares": _vector_rows(slot.vector)} for slot in call.slots],
        "gaps": [{"previous": gap.previous, "times": _histogram_row(gap.histogram)} for gap in call.gaps],
        "durations": _histogram_row(call.durations),
    }


def _vector_rows(vector: Vector) -> list[dict[str, Any]]:
    return [
        {
            "ranks": _progression_row(share.ranks),
            "shifts": [_stretch_rows(row) for row in share.shifts],
            "values": _stretch_rows(share.values),
        }
        for share in vector
    ]


def _stretch_rows(row: Sequence[Stretch]) -> list[dict[str, Any]]:
    return [_list_row(stretch) if isinstance(stretch, NumberList) else _progression_row(stretch) for stretch in row]


def _list_row(stretch: NumberList) -> dict[str, Any]:
    return {"strides": list(stretch.strides), "counts": list(stretch.counts), "listed": list(stretch.numbers)}


def _progression_row(stretch: Progression) -> dict[str, Any]:
    return {"start": stretch.start, "strides": list(stretch.strides), "counts": list(stretch.counts)}


def _histogram_row(times: TimeHistogram) -> dict[str, Any]:
    bins = [_spread_row(part) for part in times.bins]
    return {**_spread_row(times), "variance_s2": times.variance_s2, "bins": bins}


def _spread_row(part: TimeHistogram | TimeBin) -> dict[str, Any]:
    return {"count": part.count, "minimum_s": part.minimum_s, "mean_s": part.mean_s, "maximum_s": part.maximum_s}


# ---- conversion from a frame


def from_frame(frame: pl.DataFrame, process_count: int) -> CompressedTrace:
    """Convert a frame back to a trace.

    Parameters
    ----------
    frame : SCHEMA
        Result of `to_frame`.
    process_count
        Number of processes.

    Returns
    -------
    CompressedTrace
        Validated by `check`.

    Raises
    ------
    ValueError
        If the schema differs, rows are out of order, values are missing, or the trace is invalid; the message names
        class and node.
    """
    if frame.schema != SCHEMA:
        mismatched = [name for name in {**SCHEMA, **frame.schema} if frame.schema.get(name) != SCHEMA.get(name)]
        raise ValueError(
            f"Columns that differ from those of a compressed trace: {', '.join(mismatched) or 'their order'}."
        )
    builder = _TraceBuilder()
    for row in frame.iter_rows(named=True):
        builder.add(row)
    trace = CompressedTrace(process_count, builder.classes())
    check(trace)
    return trace


@dataclass(slots=True)
class _OpenLoop:
    """Loop with an incomplete body."""

    number: int | None
    counts: Vector
    body: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class _TraceBuilder:
    """Builder of classes from consecutive rows; the loops around the last row are open."""

    finished: list[RankClass] = field(default_factory=list)
    ranks: tuple[Progression, ...] | None = None
    open_loops: list[_OpenLoop] = field(default_factory=list)
    node_count: int = 0

    def add(self, row: _Row) -> None:
        """Add a row; raise ValueError if it is invalid at this position."""
        kind, place_text = row["kind"], f"class {row['rank_class']}, node {row['node']}"
        if kind not in _COLUMNS_BY_KIND:
            raise ValueError(f"{place_text}: unknown kind of row {kind!r}.")
        missing = [name for name in _COLUMNS_BY_KIND[kind] if row[name] is None]
        if missing:
            raise ValueError(f"{place_text}: missing {', '.join(missing)}.")
        excluded = set(row) - {"rank_class", "kind", "parent", *_COLUMNS_BY_KIND[kind]}
        if unexpected := [name for name in SCHEMA if name in excluded and row[name] is not None]:
            raise ValueError(f"{place_text}: a row of kind {kind} must not have {', '.join(unexpected)}.")
        try:
            self._add_to_class(kind, row)
        except _MissingValueError:
            raise ValueError(f"{place_text}: some of its values are missing.") from None
        except ValueError as error:
            raise ValueError(f"{place_text}: {error}") from None

    def classes(self) -> tuple[RankClass, ...]:
        """Classes of all rows added so far."""
        self._close_class()
        return tuple(self.finished)

    def _add_to_class(self, kind: str, row: _Row) -> None:
        if kind == "ranks":
            self._close_class()
            if row["rank_class"] != len(self.finished) or row["parent"] is not None:
                raise ValueError("the class is out of order, or has a parent.")
            self.ranks, self.open_loops = tuple(map(_progression, row["ranks"])), [_OpenLoop(None, ())]
            return
        if self.ranks is None or row["rank_class"] != len(self.finished):
            raise ValueError("the row precedes the ranks of its class.")
        if row["node"] != self.node_count:
            raise ValueError(f"the row is out of order; node {self.node_count} is expected.")
        while self.open_loops and self.open_loops[-1].number != row["parent"]:
            self._close_loop()
        if not self.open_loops:
            raise ValueError(f"its parent {row['parent']} is not an enclosing loop.")
        self.node_count += 1
        if kind == "call":
            self.open_loops[-1].body.append(_call(row))
        elif len(self.open_loops) > MAX_DEPTH:
            raise ValueError(f"it is nested in more than {MAX_DEPTH} loops.")
        else:
            self.open_loops.append(_OpenLoop(row["node"], _vector(row["iterations"])))

    def _close_loop(self) -> None:
        closed = self.open_loops.pop()
        if self.open_loops:
            self.open_loops[-1].body.append(Loop(closed.counts, tuple(closed.body)))

    def _close_class(self) -> None:
        if self.ranks is None:
            return
        while len(self.open_loops) > 1:
            self._close_loop()
        self.finished.append(RankClass(self.ranks, tuple(self.open_loops[0].body)))
        self.ranks, self.node_count = None, 0


class _MissingValueError(Exception):
    """NULL in a field that must not be NULL."""


def _iterate_fields(row: _Row | None, *names: str) -> Iterator[Any]:
    """Yield the fields of a struct; none may be NULL."""
    if row is None:
        raise _MissingValueError
    for name in names:
        if row[name] is None:
            raise _MissingValueError
        yield row[name]


def _to_tuple(row: Sequence[Any]) -> tuple[Any, ...]:
    """Convert a list to a tuple; no element may be NULL."""
    if None in row:
        raise _MissingValueError
    return tuple(row)


def _call(row: _Row) -> Call:
    return Call(
        row["module"],
        row["function"],
        row["level"],
        _to_tuple(row["texts"]),
        tuple(map(_slot, row["slots"])),
        tuple(map(_gap, row["gaps"])),
        _histogram(row["durations"]),
    )


def _slot(row: _Row | None) -> Slot:
    width, shares = _iterate_fields(row, "width", "shares")
    return Slot(width, _vector(shares))


def _gap(row: _Row | None) -> Gap:
    previous, times = _iterate_fields(row, "previous", "times")
    return Gap(previous, _histogram(times))


def _vector(rows: Sequence[_Row | None]) -> Vector:
    return tuple(map(_share, rows))


def _share(row: _Row | None) -> Share:
    ranks, shifts, values = _iterate_fields(row, "ranks", "shifts", "values")
    return Share(_progression(ranks), tuple(_row(shift) for shift in _to_tuple(shifts)), _row(values))


def _row(rows: Sequence[_Row | None]) -> tuple[Stretch, ...]:
    return tuple(map(_stretch, rows))


def _stretch(row: _Row | None) -> Stretch:
    if row is None:
        raise _MissingValueError
    if row["listed"] is None:
        return _progression(row)
    if row["start"] is not None:
        raise ValueError("a row element is both a progression and a list.")
    strides, counts, numbers = _iterate_fields(row, "strides", "counts", "listed")
    return NumberList(_to_tuple(numbers), _to_tuple(strides), _to_tuple(counts))


def _progression(row: _Row | None) -> Progression:
    start, strides, counts = _iterate_fields(row, *_PROGRESSION)
    return Progression(start, _to_tuple(strides), _to_tuple(counts))


def _histogram(row: _Row | None) -> TimeHistogram:
    count, minimum_s, mean_s, maximum_s, variance_s2, bins = _iterate_fields(row, *_SPREAD, "variance_s2", "bins")
    parts = tuple(TimeBin(*_iterate_fields(part, *_SPREAD)) for part in bins)
    return TimeHistogram(count, minimum_s, mean_s, maximum_s, variance_s2, parts)
