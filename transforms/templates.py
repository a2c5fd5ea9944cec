"""Calls by what they have in common: the text of their arguments, and the numbers in it as slots to be filled.

Two calls are of one template if they differ in numbers only. What stands for ScalaTrace's stack signature, which
Recorder does not log, is the function, its level and that text. File names with numbers come out of it by themselves
(paper, section 3.2.2): `f.00000012` is the text `f.` and the number 12 of eight digits. A minus sign is text, too:
`0-3` is the fourth handle of rank 0, and no -3; but for those of statuses, whose numbers and signs are chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms.compressed_traces import STATUS_MODULES

Longs = npt.NDArray[np.int64]

#: no 64-bit number has more digits; longer ones are several numbers, one behind the other
_NUMBER = "[0-9]{1,18}"
#: strings of C do not have it: it stands for a number, and in front of one for its sign
_MARK = "\0"
_SIGNED_NUMBER = f"{_MARK}?{_NUMBER}"
#: signs of the numbers of an MPI_Status, which are what memory held: `[source_tag]`
_STATUS_SIGNS = (
    r"((?:^| )\[)-([1-9][0-9]*_-?[0-9]+\])",
    rf"((?:^| )\[{_MARK}?[0-9]+_)-([1-9][0-9]*\])",
)
_KEY = ["module", "function", "level", "text"]


@dataclass(frozen=True, slots=True)
class Template:
    """What calls have in common; `texts` stand around the slots, and `widths` are the slots' least widths."""

    module: str
    function: str
    level: int
    texts: tuple[str, ...]
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Templates:
    """The templates of signatures: the number of each one's template, and where its slots' numbers begin.

    number (S): index into `templates`. first (S): index into `numbers` of the signature's first slot.
    """

    templates: tuple[Template, ...]
    number: Longs
    first: Longs
    numbers: Longs


def templates_of(signatures: Sequence[pl.DataFrame]) -> Templates:
    """Return the templates of signatures, which have level, module, function and arguments, one frame behind the other.

    Raises ValueError where arguments have a NUL in them.
    """
    rows = pl.concat(signatures).with_row_index("row")
    if rows["arguments"].str.contains(_MARK, literal=True).any():
        raise ValueError("arguments have a NUL in them")
    marked = rows.select(
        "row",
        *_KEY[:3],
        text=_signed().str.replace_all(_SIGNED_NUMBER, _MARK),
        digits=_signed().str.extract_all(_SIGNED_NUMBER),
    )
    slots = _slots(marked)
    coarse = _numbered(marked, _KEY)
    padded = _padded(slots, coarse)
    rigid = padded.filter(~pl.col("is_sound"))["template"].unique()
    widths = pl.when(pl.col("template").is_in(rigid.implode())).then("own_widths").otherwise("widths")
    per_row = (
        slots.join(coarse.select("row", "template"), on="row", maintain_order="left")
        .join(padded.select("template", "slot", "width"), on=["template", "slot"], maintain_order="left")
        .group_by("row", maintain_order=True)
        .agg(own_widths=pl.col("own_width"), widths=pl.col("width"))
    )
    fine = coarse.join(per_row, on="row", how="left", maintain_order="left").with_columns(widths=widths)
    numbered = _numbered(fine.drop("template"), [*_KEY, "widths"])
    counts = marked["digits"].list.len().to_numpy().astype(np.int64)
    return Templates(
        tuple(map(_template, numbered.unique("template", maintain_order=True).iter_rows(named=True))),
        numbered["template"].to_numpy().astype(np.int64),
        np.cumsum(counts) - counts,
        slots["value"].to_numpy(),
    )


def _signed() -> pl.Expr:
    """Return arguments in which the signs of statuses are marked, so that they become those of their numbers."""
    given = signed = pl.col("arguments")
    for sign in _STATUS_SIGNS:
        signed = signed.str.replace_all(sign, f"${{1}}{_MARK}${{2}}")
    return pl.when(pl.col("module").is_in(STATUS_MODULES)).then(signed).otherwise(given)


def _numbered(rows: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Add the number of each row's template, in the order in which they first come."""
    known = rows.select(key).unique(maintain_order=True)
    numbered = known.with_columns(template=pl.int_range(pl.len(), dtype=pl.Int64))
    return rows.join(numbered, on=key, how="left", nulls_equal=True, maintain_order="left")


def _slots(marked: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each number: the row and the slot it is of, its value, its length, its width if filled up."""
    digits = marked.select("row", "digits").filter(pl.col("digits").list.len() > 0).explode("digits")
    length = pl.col("digits").str.len_bytes().cast(pl.Int64)
    return digits.select(
        "row",
        slot=pl.int_range(pl.len(), dtype=pl.Int64).over("row"),
        value=pl.col("digits").str.replace(_MARK, "-", literal=True).cast(pl.Int64),
        length=length,
        own_width=pl.when(pl.col("digits").str.starts_with("0")).then(length).otherwise(pl.lit(1, pl.Int64)),
    )


def _padded(slots: pl.DataFrame, coarse: pl.DataFrame) -> pl.DataFrame:
    """Return the width of each slot of each template, and whether all its numbers are filled up to that one width."""
    known = slots.join(coarse.select("row", "template"), on="row")
    width = pl.col("own_width").max()
    is_sound = ((pl.col("own_width") == width) | ((pl.col("own_width") == 1) & (pl.col("length") >= width))).all()
    # A lone 0 is filled up to one digit, like any number: where others have more, it is not of their width.
    return known.group_by("template", "slot").agg(width=width, is_sound=is_sound)


def _template(row: dict[str, object]) -> Template:
    text, widths = row["text"], row["widths"]
    assert isinstance(text, str)
    return Template(
        str(row["module"]),
        str(row["function"]),
        int(str(row["level"])),
        tuple(text.split(_MARK)),
        tuple(widths) if isinstance(widths, list) else (),
    )
