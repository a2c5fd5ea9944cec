"""What is wrong with a row, said in one sentence: the checks that part good rows from refused ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.sources.rows.rejects import SCHEMA as REJECT_SCHEMA, Sifted, as_text, refused_rows

SHOWN_CHARS = 60
_RULE = re.compile(r"(?P<column>.+?)_(?P<kind>not_null|finite|known|at_least|at_most)(?:_(?P<bound>\S+))?")
_SENTENCES = {
    "not_null": ("There is no {column}.", "Fill the cell at its source."),
    "finite": ("The {column} is not a finite number.", "Leave the cell empty where nothing was measured."),
    "known": ("The {column} is none of the known words.", "See the data dictionary for the words there are."),
    "at_least": ("The {column} is below {bound}.", "Leave the cell empty where nothing was measured."),
    "at_most": ("The {column} is above {bound}.", "Leave the cell empty where nothing was measured."),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that can be wrong: where it is true (NULL: it is not), how to say it, what to do; as text or by row."""

    broken: pl.Expr
    reason: pl.Expr | str
    remedy: pl.Expr | str


#: what was found before, and noted in the row itself
NOTED = Fault(pl.col("reason").is_not_null(), pl.col("reason"), pl.col("remedy"))


def of_contract(table: Table, *, but: Collection[str] = ()) -> list[Fault]:
    """Return the faults that a table's rules imply; `but` names rules that are not asked."""
    found = []
    for name, rule in frames.rules(table).items():
        match = _RULE.fullmatch(name)
        if name in but or match is None:
            continue
        reason, remedy = (text.format(**match.groupdict()) for text in _SENTENCES[match["kind"]])
        found.append(Fault(~rule, reason, remedy))
    return found


def no_number(given: str, column: str) -> Fault:
    """Return the fault of a cell in the column `given` that could not be read into the number `column`."""
    text = pl.col(given).cast(pl.String, strict=False).str.slice(0, SHOWN_CHARS)
    return Fault(
        pl.col(given).is_not_null() & pl.col(column).is_null(),
        pl.format("`{}` is no number: it stands for {}.", text, pl.lit(column)),
        "Write numbers with a point and without separators or units.",
    )


def _has_any(rows: pl.DataFrame, faults: Sequence[Fault]) -> bool:
    """Return whether any row has any of the faults."""
    if rows.is_empty() or not faults:
        return False
    return bool(rows.select(pl.any_horizontal(fault.broken.any() for fault in faults)).item())


def sift(rows: pl.DataFrame, faults: Sequence[Fault]) -> Sifted:
    """Part the rows; they hold `line` and may hold `raw`. A refused row says its first fault."""
    if not _has_any(rows, faults):
        return Sifted(rows, pl.DataFrame(schema=REJECT_SCHEMA))
    number = pl.coalesce(
        *(pl.when(fault.broken).then(pl.lit(index)) for index, fault in enumerate(faults)), pl.lit(None, pl.Int32)
    )
    marked = rows.with_columns(fault=number)
    bad = marked.filter(pl.col("fault").is_not_null())
    reason, remedy = (
        pl.coalesce(pl.when(pl.col("fault") == index).then(as_text(text)) for index, text in enumerate(texts))
        for texts in ([fault.reason for fault in faults], [fault.remedy for fault in faults])
    )
    return Sifted(marked.filter(pl.col("fault").is_null()).drop("fault"), refused_rows(bad, reason, remedy))


def held_to(table: Table, rows: pl.DataFrame, *own: Fault) -> Sifted:
    """Part the rows by faults of their own and by a table's rules; they have NULL in its columns that they lack."""
    absent = {name: dtype for name, dtype in frames.schema(table).items() if name not in rows.columns}
    whole = rows.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in absent.items())
    return sift(whole, [*own, *of_contract(table)])
