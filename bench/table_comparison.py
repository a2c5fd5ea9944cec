"""Whether two folders of tables and texts hold the same, column by column and line by line."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.contracts import TABLES

#: the columns of each table's key; a table that is not here is put in order by all of its columns
KEYS = {table.name: table.key for table in TABLES}
#: (table, column) -> why its values are not compared
LEFT_OUT = {
    ("releases", "created_at"): "the instant of the run",
    ("releases", "code_version"): "the version of the package, which may be another one",
}
#: columns of JSON objects: values of keys that both sides have must be equal, other keys are listed
JSON_COLUMNS = {("releases", "parameters"), ("signatures", "method_parameters")}
#: by how much of them numbers may differ
RELATIVE = 1e-12
#: longer lines of texts are compared in parts
_LINE = 150


def key_of(table: str, frame: pl.DataFrame) -> list[str]:
    """Return the columns that tell the rows of a table apart, of those that it has and that are compared."""
    names = KEYS.get(table, ()) or frame.columns
    return [name for name in names if name in frame.columns and (table, name) not in LEFT_OUT]


def in_order(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows by their key, and by all else where several have one."""
    key = key_of(table, frame)
    plain = [name for name, dtype in frame.schema.items() if not dtype.is_nested() and (table, name) not in LEFT_OUT]
    names = [*(name for name in key if name in plain), *(name for name in plain if name not in key)]
    return frame.sort(names, nulls_last=True) if names else frame


@dataclass(frozen=True, slots=True)
class Compared:
    """What became of a table or text: sizes and hashes on both sides, what differs, what may differ."""

    night: str
    name: str
    row_counts: tuple[int | None, int | None]
    column_counts: tuple[int | None, int | None]
    hashes: tuple[str, str]
    differences: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    def verdict(self) -> list[str]:
        """Return what is to be said, a line each."""
        if self.differences:
            return [f"DIFFERS: {self.differences[0]}", *self.differences[1:], *self.allowed]
        return list(self.allowed) or ["equal"]


def compare_tables(night: str, table: str, before: pl.DataFrame, after: pl.DataFrame) -> Compared:
    """Compare two frames of a table, whose rows are in order, column by column."""
    sides = _without_left_out(table, before), _without_left_out(table, after)
    differences, near, allowed = list(_shape_differences(table, *sides)), [], []
    if before.height == after.height:
        for name in sides[0].columns:
            if sides[1].schema.get(name) != sides[0].schema[name]:
                continue
            if (table, name) in JSON_COLUMNS:
                unequal, notes = _unequal_documents(sides[0][name], sides[1][name])
                allowed += [f"keys of {name} {note}" for note in notes]
            else:
                unequal = unequal_rows(sides[0][name], sides[1][name], RELATIVE)
                if not unequal.any() and unequal_rows(sides[0][name], sides[1][name], 0.0).any():
                    near.append(name)
            if unequal.any():
                first = _key_text(table, sides[0], int(unequal.argmax()))
                differences.append(f"column {name}, {unequal.sum():,} rows, first at {first}")
    if near:
        allowed.insert(0, f"within {RELATIVE:g}: {', '.join(near)}")
    return Compared(
        night,
        table,
        (before.height, after.height),
        (before.width, after.width),
        (content_hash(sides[0]), content_hash(sides[1])),
        tuple(differences),
        tuple(allowed),
    )


def _without_left_out(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    # A column that is left out must still be there, and of its type.
    return frame.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in frame.schema.items() if (table, name) in LEFT_OUT
    )


def _shape_differences(table: str, before: pl.DataFrame, after: pl.DataFrame) -> Iterator[str]:
    for name in before.columns:
        if name not in after.columns:
            yield f"column {name} only in A"
        elif before.schema[name] != after.schema[name]:
            yield f"column {name} is {before.schema[name]} in A, {after.schema[name]} in B"
    yield from (f"column {name} only in B" for name in after.columns if name not in before.columns)
    shared = [
        [name for name in side.columns if name in other.columns] for side, other in ((before, after), (after, before))
    ]
    if shared[0] != shared[1]:
        yield "columns in another order"
    if before.height != after.height:
        key = [name for name in key_of(table, before) if after.schema.get(name) == before.schema[name]]
        common = min(before.height, after.height)
        unequal = np.zeros(common, dtype=np.bool_)
        for name in key:
            unequal |= unequal_rows(before[name].head(common), after[name].head(common), RELATIVE)
        longer = max(before, after, key=lambda frame: frame.height)
        first = _key_text(table, longer, int(unequal.argmax()) if unequal.any() else common)
        yield f"{before.height:,} rows in A, {after.height:,} in B, first at {first}"


def _key_text(table: str, frame: pl.DataFrame, row: int) -> str:
    return ", ".join(f"{name} {_short(str(frame[name][row]))}" for name in key_of(table, frame)) or f"row {row + 1:,}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def unequal_rows(before: pl.Series, after: pl.Series, relative: float) -> npt.NDArray[np.bool_]:
    """Return for each row whether two columns of one type differ there; floats may do so by that share of them.

    NULL equals NULL, NaN equals NaN, 0 equals -0; lists are compared number by number.
    """
    if isinstance(before.dtype, pl.List):
        return _unequal_lists(before, after, relative)
    unequal = before.ne_missing(after).to_numpy()
    if not before.dtype.is_float() or not relative or not unequal.any():
        return unequal
    rows = np.flatnonzero(unequal)
    left, right = (side.gather(rows).fill_null(math.nan).to_numpy() for side in (before, after))
    with np.errstate(invalid="ignore", over="ignore"):
        is_near = np.abs(left - right) <= relative * np.maximum(np.abs(left), np.abs(right))
    unequal = unequal.copy()
    unequal[rows[is_near & np.isfinite(left) & np.isfinite(right)]] = False
    return unequal


def _unequal_lists(before: pl.Series, after: pl.Series, relative: float) -> npt.NDArray[np.bool_]:
    lengths = before.list.len()
    unequal = lengths.ne_missing(after.list.len()).to_numpy().copy()
    rows = np.flatnonzero(~unequal & (lengths.fill_null(0).to_numpy() > 0))
    if len(rows):
        of_item = np.repeat(rows, lengths.gather(rows).to_numpy())
        unequal[of_item[unequal_rows(before.gather(rows).explode(), after.gather(rows).explode(), relative)]] = True
    return unequal


def _unequal_documents(before: pl.Series, after: pl.Series) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """Compare two columns of JSON; returns the rows that differ, and the keys that only one side has."""
    only: dict[str, set[str]] = {"A": set(), "B": set()}
    unequal = [
        left != right and (left is None or right is None or not _is_same(json.loads(left), json.loads(right), (), only))
        for left, right in zip(before, after, strict=True)
    ]
    notes = [f"only in {side}: {', '.join(sorted(names))}" for side, names in only.items() if names]
    return np.array(unequal, dtype=np.bool_), notes


def _is_same(left: Any, right: Any, place: tuple[str, ...], only: dict[str, set[str]]) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        for side, one, other in (("A", left, right), ("B", right, left)):
            only[side] |= {".".join((*place, name)) for name in one.keys() - other.keys()}
        same = [_is_same(left[name], right[name], (*place, name), only) for name in left.keys() & right.keys()]
        return all(same)
    if isinstance(left, float) and isinstance(right, float):
        return left == right or math.isclose(left, right, rel_tol=RELATIVE)
    return type(left) is type(right) and bool(left == right)


def content_hash(frame: pl.DataFrame) -> str:
    """Return the SHA-256 of names, types and values of a frame, however they lie in memory."""
    total = hashlib.sha256()
    for column in frame:
        total.update(f"{column.name}\0{column.dtype}\0{len(column)}\0".encode())
        _hash_values(column, total)
    return total.hexdigest()


def _hash_values(column: pl.Series, total: hashlib._Hash) -> None:
    total.update(np.packbits(column.is_null().to_numpy()).tobytes())
    column = column.drop_nulls()
    if isinstance(column.dtype, pl.List):
        lengths = column.list.len()
        total.update(lengths.to_numpy().tobytes())
        _hash_values(column.filter(lengths > 0).explode(), total)
    elif column.dtype == pl.String:
        texts = [text.encode() for text in column]
        total.update(np.array([len(text) for text in texts], dtype=np.int64).tobytes() + b"".join(texts))
    elif column.dtype.is_float():
        # One zero, and one NaN.
        values = column.to_numpy() + 0.0
        total.update(np.where(np.isnan(values), np.nan, values).tobytes())
    else:
        total.update(column.to_physical().to_numpy().tobytes())


def compare_texts(name: str, before: str, after: str) -> tuple[Compared, list[str]]:
    """Compare what commands printed, line by line; returns the unified diff too."""
    sides = _lines(before), _lines(after)
    hashes = hashlib.sha256(before.encode()).hexdigest(), hashlib.sha256(after.encode()).hexdigest()
    difference: list[str] = []
    if before != after:
        difference += difflib.unified_diff(*sides, f"A {name}", f"B {name}", lineterm="", n=1)
    count = sum(line.startswith(("+", "-")) for line in difference[2:])
    told = (f"{count:,} lines of the diff",) if before != after else ()
    return Compared("command", name, (len(sides[0]), len(sides[1])), (None, None), hashes, told), difference


def _lines(text: str) -> list[str]:
    """Return lines, the long ones in parts that end with a comma and that a terminal can show."""
    found = []
    for line in text.split("\n"):
        parts = [line] if len(line) <= _LINE else re.findall(r"[^,]*,|[^,]+$", line)
        found += [part[start : start + _LINE] for part in parts for start in range(0, max(len(part), 1), _LINE)]
    return found


def _only_one(night: str, name: str, side: str) -> Compared:
    return Compared(night, name, (None, None), (None, None), ("", ""), (f"only in {side}",))


def compare_folders(before: Path, after: Path) -> Iterator[tuple[Compared, list[str]]]:
    """Compare all that two folders hold; yields what became of each table and text, and the diff of texts."""
    names = sorted({path.relative_to(side) for side in (before, after) for path in side.glob("*/*.*")})
    for name in sorted(names, key=lambda name: (name.suffix == ".txt", name)):
        sides = before / name, after / name
        if not all(path.is_file() for path in sides):
            yield _only_one(name.parent.name, name.stem, "A" if sides[0].is_file() else "B"), []
        elif name.suffix == ".txt":
            yield compare_texts(name.stem, *(path.read_text(encoding="utf-8") for path in sides))
        else:
            yield compare_tables(name.parent.name, name.stem, *(pl.read_parquet(path) for path in sides)), []


def report(found: Sequence[Compared], width: int) -> Iterator[str]:
    """Yield the lines of a table: night, table, rows, columns, hashes, verdict."""
    heading = ("night", "table", "rows", "columns", "A", "B", "verdict")
    rows = [
        (one.night, one.name, _both(one.row_counts), _both(one.column_counts), *(text[:8] for text in one.hashes))
        for one in found
    ]
    widths = [max(len(row[place]) for row in (heading, *rows)) for place in range(6)]
    indent = sum(widths) + 2 * len(widths)
    for row, verdict in zip((heading, *rows), (["verdict"], *(one.verdict() for one in found)), strict=True):
        cells = (
            text.rjust(size) if place in (2, 3) else text.ljust(size)
            for place, (text, size) in enumerate(zip(row, widths, strict=False))
        )
        texts = list(chain.from_iterable(textwrap.wrap(text, max(width - indent, 30)) for text in verdict))
        yield f"{'  '.join(cells)}  {texts[0]}"
        yield from (" " * indent + text for text in texts[1:])


def _both(counts: tuple[int | None, int | None]) -> str:
    texts = dict.fromkeys("" if count is None else f"{count:,}" for count in counts)
    return "/".join(texts)
