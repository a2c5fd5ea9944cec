"""Compressed traces as one frame, a row for each node: the form in which they are kept in files, and back.

Each rank class begins with a row of kind `ranks`, which holds its rank list; its nodes follow in the order of their
numbers, a loop before its body. Rank lists and values stay the nested progressions that they are, so that a frame is
as small as the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from iosig.transforms.traces.checks import MOST_DEPTH, check
from iosig.transforms.traces.progressions import Listed, Progression, Stretch
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

#: the columns that `iosig.warehouse.sources.extrapolations.compressed_traces` documents
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
#: which columns a row of each kind fills, besides its class and kind; the others are NULL there
_FILLED = {
    "ranks": ("ranks",),
    "loop": ("node", "iterations"),
    "call": ("node", "module", "function", "level", "texts", "slots", "gaps", "durations"),
}
_Row = Mapping[str, Any]


# ---- into a frame


def to_frame(trace: CompressedTrace) -> pl.DataFrame:
    """Return a trace as a frame of `SCHEMA`; only its count of processes is not in it."""
    rows: list[dict[str, Any]] = []
    for number, rank_class in enumerate(trace.classes):
        ranks = [_progression_row(ranks) for ranks in rank_class.ranks]
        rows.append({"rank_class": number, "kind": "ranks", "ranks": ranks})
        rows += ({"rank_class": number, "node": node, **row} for node, row in enumerate(_body_rows(rank_class.body)))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _body_rows(body: Sequence[Node], parent: int | None = None, first: int = 0) -> list[dict[str, Any]]:
    """Return the rows of nodes beside one another, the first of which has the number `first`."""
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
    return [_listed_row(stretch) if isinstance(stretch, Listed) else _progression_row(stretch) for stretch in row]


def _listed_row(stretch: Listed) -> dict[str, Any]:
    return {"strides": list(stretch.strides), "counts": list(stretch.counts), "listed": list(stretch.numbers)}


def _progression_row(stretch: Progression) -> dict[str, Any]:
    return {"start": stretch.start, "strides": list(stretch.strides), "counts": list(stretch.counts)}


def _histogram_row(times: TimeHistogram) -> dict[str, Any]:
    bins = [_spread_row(part) for part in times.bins]
    return {**_spread_row(times), "variance_s2": times.variance_s2, "bins": bins}


def _spread_row(part: TimeHistogram | TimeBin) -> dict[str, Any]:
    return {"count": part.count, "minimum_s": part.minimum_s, "mean_s": part.mean_s, "maximum_s": part.maximum_s}


# ---- out of a frame


def from_frame(frame: pl.DataFrame, process_count: int) -> CompressedTrace:
    """Return the trace of a frame that `to_frame` made, of so many processes.

    Raises ValueError, naming class and node, for a frame of another schema, with rows that are not in order or lack
    values, or whose trace is not what `CompressedTrace` says.
    """
    if frame.schema != SCHEMA:
        wrong = [name for name in {**SCHEMA, **frame.schema} if frame.schema.get(name) != SCHEMA.get(name)]
        raise ValueError(f"The columns {', '.join(wrong) or 'of the frame'} are not those of a compressed trace.")
    reading = _Reading()
    for row in frame.iter_rows(named=True):
        reading.add(row)
    trace = CompressedTrace(process_count, reading.classes())
    check(trace)
    return trace


@dataclass(slots=True)
class _OpenLoop:
    """A loop whose body is still being read."""

    number: int | None
    counts: Vector
    body: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class _Reading:
    """Takes the rows in order and builds the classes; the loops around the last row are open."""

    done: list[RankClass] = field(default_factory=list)
    ranks: tuple[Progression, ...] | None = None
    open: list[_OpenLoop] = field(default_factory=list)
    node_count: int = 0

    def add(self, row: _Row) -> None:
        """Add a row, or raise ValueError if it cannot stand here."""
        kind, where = row["kind"], f"class {row['rank_class']}, node {row['node']}"
        if kind not in _FILLED:
            raise ValueError(f"{where}: there is no kind {kind!r} of rows.")
        missing = [name for name in _FILLED[kind] if row[name] is None]
        if missing:
            raise ValueError(f"{where}: it lacks {', '.join(missing)}.")
        foreign = set(row) - {"rank_class", "kind", "parent", *_FILLED[kind]}
        if too_many := [name for name in SCHEMA if name in foreign and row[name] is not None]:
            raise ValueError(f"{where}: a row of kind {kind} has no {', '.join(too_many)}.")
        try:
            self._take(kind, row)
        except _Lacking:
            raise ValueError(f"{where}: it lacks a part of its values.") from None
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    def classes(self) -> tuple[RankClass, ...]:
        """Return what was read."""
        self._close_class()
        return tuple(self.done)

    def _take(self, kind: str, row: _Row) -> None:
        if kind == "ranks":
            self._close_class()
            if row["rank_class"] != len(self.done) or row["parent"] is not None:
                raise ValueError("the class stands out of order, or in another row.")
            self.ranks, self.open = tuple(map(_progression, row["ranks"])), [_OpenLoop(None, ())]
            return
        if self.ranks is None or row["rank_class"] != len(self.done):
            raise ValueError("it stands before the row with the ranks of its class.")
        if row["node"] != self.node_count:
            raise ValueError(f"it stands where node {self.node_count} should.")
        while self.open and self.open[-1].number != row["parent"]:
            self._close_loop()
        if not self.open:
            raise ValueError(f"its parent {row['parent']} is no loop that is open here.")
        self.node_count += 1
        if kind == "call":
            self.open[-1].body.append(_call(row))
        elif len(self.open) > MOST_DEPTH:
            raise ValueError(f"it stands in more than {MOST_DEPTH} loops.")
        else:
            self.open.append(_OpenLoop(row["node"], _vector(row["iterations"])))

    def _close_loop(self) -> None:
        closed = self.open.pop()
        if self.open:
            self.open[-1].body.append(Loop(closed.counts, tuple(closed.body)))

    def _close_class(self) -> None:
        if self.ranks is None:
            return
        while len(self.open) > 1:
            self._close_loop()
        self.done.append(RankClass(self.ranks, tuple(self.open[0].body)))
        self.ranks, self.node_count = None, 0


class _Lacking(Exception):
    """A NULL where the form has none."""


def _each(row: _Row | None, *names: str) -> Iterator[Any]:
    """Yield the fields of a struct, none of which may be NULL."""
    if row is None:
        raise _Lacking
    for name in names:
        if row[name] is None:
            raise _Lacking
        yield row[name]


def _whole(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a list as a tuple; none of its elements may be NULL."""
    if None in row:
        raise _Lacking
    return tuple(row)


def _call(row: _Row) -> Call:
    return Call(
        row["module"],
        row["function"],
        row["level"],
        _whole(row["texts"]),
        tuple(map(_slot, row["slots"])),
        tuple(map(_gap, row["gaps"])),
        _histogram(row["durations"]),
    )


def _slot(row: _Row | None) -> Slot:
    width, shares = _each(row, "width", "shares")
    return Slot(width, _vector(shares))


def _gap(row: _Row | None) -> Gap:
    previous, times = _each(row, "previous", "times")
    return Gap(previous, _histogram(times))


def _vector(rows: Sequence[_Row | None]) -> Vector:
    return tuple(map(_share, rows))


def _share(row: _Row | None) -> Share:
    ranks, shifts, values = _each(row, "ranks", "shifts", "values")
    return Share(_progression(ranks), tuple(_row(own) for own in _whole(shifts)), _row(values))


def _row(rows: Sequence[_Row | None]) -> tuple[Stretch, ...]:
    return tuple(map(_stretch, rows))


def _stretch(row: _Row | None) -> Stretch:
    if row is None:
        raise _Lacking
    if row["listed"] is None:
        return _progression(row)
    if row["start"] is not None:
        raise ValueError("a stretch is both a progression and a list.")
    strides, counts, numbers = _each(row, "strides", "counts", "listed")
    return Listed(_whole(numbers), _whole(strides), _whole(counts))


def _progression(row: _Row | None) -> Progression:
    start, strides, counts = _each(row, *_PROGRESSION)
    return Progression(start, _whole(strides), _whole(counts))


def _histogram(row: _Row | None) -> TimeHistogram:
    count, minimum_s, mean_s, maximum_s, variance_s2, bins = _each(row, *_SPREAD, "variance_s2", "bins")
    parts = tuple(TimeBin(*_each(part, *_SPREAD)) for part in bins)
    return TimeHistogram(count, minimum_s, mean_s, maximum_s, variance_s2, parts)
