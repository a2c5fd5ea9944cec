"""Check rows, and separate good rows from refused ones; each check has a reason and a remedy."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.sources.rows.rejects import REJECT_SCHEMA, ParsedRows, as_text, build_refused_rows

MAX_SHOWN_CHARS = 60
#: texts that programs write for a number that was not measured, in lower case: of C libraries, spreadsheets, databases
MISSING = (
    *("nan", "+nan", "-nan", "nan(ind)", "-nan(ind)", "nan(snan)", "1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind"),
    *("na", "n/a", "<na>", "#na", "#n/a", "#n/a n/a", "null", "none", "nil", "undefined", "-", "\\n"),
)
_RULE = re.compile(r"(?P<column>.+?)_(?P<kind>not_null|finite|known|at_least|at_most)(?:_(?P<bound>\S+))?")
_SENTENCES = {
    "not_null": ("The {column} is missing.", "Fill the cell at its source."),
    "finite": ("The {column} is not a finite number.", "Leave the cell empty if the value was not measured."),
    "known": ("The {column} is not one of the allowed values.", "See the data dictionary for the allowed values."),
    "at_least": ("The {column} is below {bound}.", "Leave the cell empty if the value was not measured."),
    "at_most": ("The {column} is above {bound}.", "Leave the cell empty if the value was not measured."),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A check, with an expression that is true for failing rows, and reason and remedy, as text or as expressions.

    NULL counts as passed.
    """

    broken: pl.Expr
    reason: pl.Expr | str
    remedy: pl.Expr | str


#: check for a fault that an earlier stage recorded in the row itself
NOTED = Fault(pl.col("reason").is_not_null(), pl.col("reason"), pl.col("remedy"))


def build_contract_faults(table: Table, *, but: Collection[str] = ()) -> list[Fault]:
    """Convert the rules of a table's contract into checks, except those named in `but`."""
    checks = []
    for name, rule in frames.rules(table).items():
        match = _RULE.fullmatch(name)
        if name in but or match is None:
            continue
        reason, remedy = (text.format(**match.groupdict()) for text in _SENTENCES[match["kind"]])
        checks.append(Fault(~rule, reason, remedy))
    return checks


def build_number_fault(raw_column: str, column: str) -> Fault:
    """Build the check for cells in column `raw_column` that could not be parsed as the number `column`."""
    text = pl.col(raw_column).cast(pl.String, strict=False).str.slice(0, MAX_SHOWN_CHARS)
    return Fault(
        pl.col(raw_column).is_not_null() & pl.col(column).is_null(),
        pl.format("`{}` is not a number; the column is {}.", text, pl.lit(column)),
        "Write numbers with a point and without separators or units.",
    )


def blank_missing(cells: pl.Series, numbers: pl.Series) -> pl.Series:
    """Replace texts that stand for a missing number (`NaN`, `NULL`, `-`) by NULL.

    numbers: the numbers that the cells were parsed to, NULL for NaN.
    """
    is_odd = numbers.is_null() & cells.is_not_null()
    if not is_odd.any():
        return cells
    texts = cells.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
    return cells.set(is_odd & texts.is_in(MISSING).fill_null(False), None)


def _has_any(rows: pl.DataFrame, faults: Sequence[Fault]) -> bool:
    """Return whether any row fails any of the checks."""
    if rows.is_empty() or not faults:
        return False
    return bool(rows.select(pl.any_horizontal(fault.broken.any() for fault in faults)).item())


def sift(rows: pl.DataFrame, faults: Sequence[Fault]) -> ParsedRows:
    """Separate good rows from refused ones, which get the reason of the first failed check.

    rows: with the column `line` and optionally `raw`.
    """
    if not _has_any(rows, faults):
        return ParsedRows(rows, pl.DataFrame(schema=REJECT_SCHEMA))
    number = pl.coalesce(
        *(pl.when(fault.broken).then(pl.lit(index)) for index, fault in enumerate(faults)), pl.lit(None, pl.Int32)
    )
    marked = rows.with_columns(fault=number)
    bad = marked.filter(pl.col("fault").is_not_null())
    reason, remedy = (
        pl.coalesce(pl.when(pl.col("fault") == index).then(as_text(text)) for index, text in enumerate(texts))
        for texts in ([fault.reason for fault in faults], [fault.remedy for fault in faults])
    )
    return ParsedRows(marked.filter(pl.col("fault").is_null()).drop("fault"), build_refused_rows(bad, reason, remedy))


def validate_rows(table: Table, rows: pl.DataFrame, *extra: Fault) -> ParsedRows:
    """Fill missing columns with NULL, and check rows against the `extra` checks and a table's contract."""
    absent = {name: dtype for name, dtype in frames.schema(table).items() if name not in rows.columns}
    all_columns = rows.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in absent.items())
    return sift(all_columns, [*extra, *build_contract_faults(table)])
