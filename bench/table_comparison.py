"""Compare two folders of tables and command output, column by column and line by line."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_series_equal

from iosig.warehouse.contracts import TABLES

#: key columns by table; other tables are sorted by all of their columns
KEYS = {table.name: table.key for table in TABLES}
#: reason why the values of a (table, column) are not compared
LEFT_OUT = {
    ("releases", "created_at"): "the instant of the run",
    ("releases", "code_version"): "the version of the package, which may differ",
}
#: columns of JSON objects: values of keys that both sides have must be equal, other keys are listed
JSON_COLUMNS = {("releases", "parameters"), ("signatures", "method_parameters")}
#: maximum relative difference of numbers
RELATIVE = 1e-12
#: maximum length of lines; longer lines of text are compared in parts
_LINE = 150


def get_key(table: str, frame: pl.DataFrame) -> list[str]:
    """Return the key columns that the frame of a table has and that are compared."""
    names = KEYS.get(table, ()) or frame.columns
    return [name for name in names if name in frame.columns and (table, name) not in LEFT_OUT]


def in_order(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Sort the rows by their key, and by all other columns if several rows have the same key."""
    key = get_key(table, frame)
    plain = [name for name, dtype in frame.schema.items() if not dtype.is_nested() and (table, name) not in LEFT_OUT]
    names = [*(name for name in key if name in plain), *(name for name in plain if name not in key)]
    return frame.sort(names, nulls_last=True) if names else frame


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """Result for a table or text: differences, tolerated differences, and the diff of a text."""

    night: str
    name: str
    differences: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()

    def report(self) -> Iterator[str]:
        """Yield the lines that describe the differences."""
        place = f"{self.night}/{self.name}"
        yield from (f"{place} DIFFERS: {text}" for text in self.differences)
        yield from (f"{place}: {text}" for text in self.allowed)
        if not (self.differences or self.allowed):
            yield f"{place}: equal"


def compare_tables(night: str, table: str, before: pl.DataFrame, after: pl.DataFrame) -> ComparisonResult:
    """Compare two sorted frames of a table, column by column."""
    differences, near, allowed = list(_shape_differences(table, before, after)), [], []
    if before.height == after.height:
        for name in before.columns:
            if after.schema.get(name) != before.schema[name] or (table, name) in LEFT_OUT:
                continue
            is_unequal = before[name].ne_missing(after[name])
            if (table, name) in JSON_COLUMNS:
                is_unequal, notes = _unequal_documents(before[name], after[name])
                allowed += [f"keys of {name} {note}" for note in notes]
            elif is_unequal.any() and _is_near(before[name], after[name]):
                near.append(name)
                continue
            if is_unequal.any():
                first = _key_text(table, before, int(is_unequal.arg_max() or 0))
                differences.append(f"column {name}, {is_unequal.sum():,} rows, first at {first}")
    if near:
        allowed.insert(0, f"within {RELATIVE:g}: {', '.join(near)}")
    return ComparisonResult(night, table, tuple(differences), tuple(allowed))


def _is_near(before: pl.Series, after: pl.Series) -> bool:
    """Return whether floats or lists of floats differ by `RELATIVE` or less; NULL equals NULL, NaN equals NaN."""
    try:
        assert_series_equal(before, after, rel_tol=RELATIVE, abs_tol=0.0)
    except AssertionError:
        return False
    return True


def _shape_differences(table: str, before: pl.DataFrame, after: pl.DataFrame) -> Iterator[str]:
    for name in before.columns:
        if name not in after.columns:
            yield f"column {name} only in A"
        elif before.schema[name] != after.schema[name]:
            yield f"column {name} is {before.schema[name]} in A, {after.schema[name]} in B"
    yield from (f"column {name} only in B" for name in after.columns if name not in before.columns)
    shared = [
        [name for name in side.columns if name in opposite.columns]
        for side, opposite in ((before, after), (after, before))
    ]
    if shared[0] != shared[1]:
        yield "columns in another order"
    if before.height != after.height:
        key = [name for name in get_key(table, before) if after.schema.get(name) == before.schema[name]]
        common = min(before.height, after.height)
        is_unequal = pl.Series([False] * common, dtype=pl.Boolean)
        for name in key:
            is_unequal |= before[name].head(common).ne_missing(after[name].head(common))
        longer = max(before, after, key=lambda frame: frame.height)
        first = _key_text(table, longer, int(is_unequal.arg_max() or 0) if is_unequal.any() else common)
        yield f"{before.height:,} rows in A, {after.height:,} in B, first at {first}"


def _key_text(table: str, frame: pl.DataFrame, row: int) -> str:
    return ", ".join(f"{name} {_short(str(frame[name][row]))}" for name in get_key(table, frame)) or f"row {row + 1:,}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _unequal_documents(before: pl.Series, after: pl.Series) -> tuple[pl.Series, list[str]]:
    """Compare two columns of JSON; return the rows that differ, and the keys that only one side has."""
    only: dict[str, set[str]] = {"A": set(), "B": set()}
    unequal = [
        left != right and (left is None or right is None or not _is_same(json.loads(left), json.loads(right), (), only))
        for left, right in zip(before, after, strict=True)
    ]
    notes = [f"only in {side}: {', '.join(sorted(names))}" for side, names in only.items() if names]
    return pl.Series(unequal, dtype=pl.Boolean), notes


def _is_same(left: Any, right: Any, place: tuple[str, ...], only: dict[str, set[str]]) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        for side, document, counterpart in (("A", left, right), ("B", right, left)):
            only[side] |= {".".join((*place, name)) for name in document.keys() - counterpart.keys()}
        same = [_is_same(left[name], right[name], (*place, name), only) for name in left.keys() & right.keys()]
        return all(same)
    if isinstance(left, float) and isinstance(right, float):
        return left == right or math.isclose(left, right, rel_tol=RELATIVE)
    return type(left) is type(right) and bool(left == right)


def compare_texts(name: str, before: str, after: str) -> ComparisonResult:
    """Compare the output of commands, line by line."""
    if before == after:
        return ComparisonResult("command", name)
    diff = tuple(difflib.unified_diff(_lines(before), _lines(after), f"A {name}", f"B {name}", lineterm="", n=1))
    count = sum(line.startswith(("+", "-")) for line in diff[2:])
    return ComparisonResult("command", name, (f"{count:,} lines of the diff",), diff=diff)


def _lines(text: str) -> list[str]:
    """Split text into lines; divide long lines at commas into parts that fit a terminal."""
    pieces = []
    for line in text.split("\n"):
        parts = [line] if len(line) <= _LINE else re.findall(r"[^,]*,|[^,]+$", line)
        pieces += [part[start : start + _LINE] for part in parts for start in range(0, max(len(part), 1), _LINE)]
    return pieces


def compare_folders(before: Path, after: Path) -> Iterator[ComparisonResult]:
    """Compare all tables and all command output in two folders."""
    names = sorted({path.relative_to(side) for side in (before, after) for path in side.glob("*/*.*")})
    for name in sorted(names, key=lambda name: (name.suffix == ".txt", name)):
        sides = before / name, after / name
        if not all(path.is_file() for path in sides):
            side = "A" if sides[0].is_file() else "B"
            yield ComparisonResult(name.parent.name, name.stem, (f"only in {side}",))
        elif name.suffix == ".txt":
            yield compare_texts(name.stem, *(path.read_text(encoding="utf-8") for path in sides))
        else:
            yield compare_tables(name.parent.name, name.stem, *(pl.read_parquet(path) for path in sides))
