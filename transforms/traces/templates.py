"""Calls by what they have in common: the text of their arguments, and the numbers in it as slots to be filled.

Two calls are of one template if they differ in numbers only. What stands for ScalaTrace's stack signature, which
Recorder does not log, is the function, its level and that text. File names with numbers come out of it by themselves
(paper, section 3.2.2): `f.00000012` is the text `f.` and the number 12 of eight digits. A minus sign is text, too:
`0-3` is the fourth handle of rank 0, and no -3; but for those of statuses, whose numbers and signs are chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, offsets_of, places_within
from iosig.transforms.traces.trace import STATUS_MODULES

#: no 64-bit number has more digits; longer ones are several numbers, one behind the other
_NUMBER = "[0-9]{1,18}"
#: strings of C do not have it
_MARK = "\0"
_KEY = ["module", "function", "level", "text"]
#: the text of an MPI_Status, whose numbers are what memory held, and the signs of these: `[source_tag]`
_STATUS = re.compile(f"(^| )\\[(-?){_MARK}_(-?){_MARK}\\]")
_UNSIGNED_STATUS = rf"\1[{_MARK}_{_MARK}]"


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
    number: Ints
    first: Ints
    numbers: Ints


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
        text=pl.col("arguments").str.replace_all(_NUMBER, _MARK),
        digits=pl.col("arguments").str.extract_all(_NUMBER),
    )
    counts = marked["digits"].list.len().to_numpy().astype(np.int64)
    coarse, slots = _signed(_numbered(marked, _KEY), _slots(marked["digits"], counts))
    fine = _widened(coarse, slots)
    return Templates(
        tuple(map(_template, fine.unique("template", maintain_order=True).iter_rows(named=True))),
        fine["template"].to_numpy().astype(np.int64),
        offsets_of(counts)[:-1],
        slots["value"].to_numpy(),
    )


def _widened(coarse: pl.DataFrame, slots: pl.DataFrame) -> pl.DataFrame:
    """Add the widths of each row's slots, and divide the templates in which numbers are filled up to several widths.

    Rows without widths have none filled up.
    """
    padded = _padded(slots, coarse)
    shared = padded.sort("slot").group_by("template").agg(widths="width")
    fine = coarse.join(shared, on="template", how="left", maintain_order="left")
    is_rigid = pl.col("template").is_in(padded.filter(~pl.col("is_sound"))["template"].unique().implode())
    rigid = fine.filter(is_rigid).select("row")
    if rigid.is_empty():
        return fine
    own = slots.join(rigid, on="row", maintain_order="left").group_by("row").agg(own_widths="own_width")
    told = fine.join(own, on="row", how="left", maintain_order="left")
    widths = pl.coalesce("own_widths", "widths")
    return _numbered(told.with_columns(widths=widths).drop("template", "own_widths"), [*_KEY, "widths"])


def _signed(coarse: pl.DataFrame, slots: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make the signs of statuses those of their numbers; but for a 0 or one filled up, which have no sign."""
    is_status = pl.col("module").is_in(STATUS_MODULES) & pl.col("text").str.contains(f"[_\\[]-{_MARK}")
    known = coarse.filter(is_status).unique("template").select("template", "text")
    signs = [(template, slot) for template, text in known.iter_rows() for slot in _signs(text)]
    if not signs:
        return coarse, slots
    negative = pl.DataFrame(signs, {"template": pl.Int64, "slot": pl.Int64}, orient="row").with_columns(sign=-1)
    plain = known.select("template", plain=pl.Series([_STATUS.sub(_UNSIGNED_STATUS, text) for text in known["text"]]))
    told = slots.join(coarse.select("row", "template"), on="row", maintain_order="left").join(
        negative, on=["template", "slot"], how="left", maintain_order="left"
    )
    kept = told.filter(pl.col("sign").is_not_null() & pl.col("is_zero_first"))["row"].unique()
    is_kept = pl.col("row").is_in(kept.implode())
    texts = coarse.join(plain, on="template", how="left", maintain_order="left").with_columns(
        text=pl.when(is_kept).then("text").otherwise(pl.coalesce("plain", "text"))
    )
    value = pl.when(is_kept).then("value").otherwise(pl.col("value") * pl.col("sign").fill_null(1))
    return _numbered(texts.drop("template", "plain"), _KEY), told.with_columns(value=value).select(slots.columns)


def _signs(text: str) -> list[int]:
    """Return the slots of a text that have the sign of a status before them."""
    found = []
    for status in _STATUS.finditer(text):
        slot = text.count(_MARK, 0, status.start())
        found += [slot + place for place in (0, 1) if status[2 + place]]
    return found


def _numbered(rows: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Add the number of each row's template, in the order in which they first come."""
    known = rows.select(key).unique(maintain_order=True)
    numbered = known.with_columns(template=pl.int_range(pl.len(), dtype=pl.Int64))
    return rows.join(numbered, on=key, how="left", nulls_equal=True, maintain_order="left")


def _slots(digits: pl.Series, counts: Ints) -> pl.DataFrame:
    """Return a row for each number: the row and the slot it is of, its value, its length, its width if filled up.

    counts (S): how many numbers each row has.
    """
    each = digits.filter(pl.Series(counts > 0)).explode()
    numbers = pl.DataFrame(
        {
            "row": np.repeat(np.arange(counts.size, dtype=np.uint32), counts),
            "slot": places_within(counts),
            "value": each.cast(pl.Int64),
            "length": each.str.len_bytes().cast(pl.Int64),
            "is_zero_first": each.str.starts_with("0"),
        }
    )
    return numbers.with_columns(own_width=pl.when("is_zero_first").then("length").otherwise(pl.lit(1, pl.Int64)))


def _padded(slots: pl.DataFrame, coarse: pl.DataFrame) -> pl.DataFrame:
    """Return the width of each slot of templates with numbers filled up, and whether all of its numbers have it."""
    filled = slots.filter(pl.col("own_width") > 1).select("row").unique()
    templates = coarse.join(filled, on="row", how="semi")["template"].unique()
    own = coarse.filter(pl.col("template").is_in(templates.implode())).select("row", "template")
    known = slots.join(own, on="row")
    width = pl.col("own_width").max()
    is_sound = ((pl.col("own_width") == width) | ((pl.col("own_width") == 1) & (pl.col("length") >= width))).all()
    # A lone 0 is filled up to one digit, like any number: where others have more, it is not of their width.
    return known.group_by("template", "slot").agg(width=width, is_sound=is_sound)


def _template(row: dict[str, object]) -> Template:
    text, widths = row["text"], row["widths"]
    assert isinstance(text, str)
    texts = tuple(text.split(_MARK))
    return Template(
        str(row["module"]),
        str(row["function"]),
        int(str(row["level"])),
        texts,
        tuple(widths) if isinstance(widths, list) else (1,) * (len(texts) - 1),
    )


# ---- arguments that are no parameters: addresses and what uninitialized memory held, which no run shares with another

# Recorder writes `%p` for pointers. It writes MPI_Op and MPI_Group as the numbers that they are in the MPI library,
# which with Open MPI are addresses, and MPI_Status as `[source_tag]`, which MPI-IO leaves uninitialized.

#: what Recorder itself writes for a pointer
POINTER = "%p"
_STATUS_ARGUMENT = r"^\[-?[0-9]+_-?[0-9]+\]$"
#: counts, ranks and tags of MPI are C ints, of 31 bits and the sign
_LARGEST_INT = (1 << 31) - 1


def without_addresses(signatures: pl.DataFrame) -> pl.DataFrame:
    """Return calls (level, module, function, arguments) with `%p` for addresses and statuses; rows can become equal.

    In calls of MPI that are not of MPI-IO, a whole argument is an address if it is a number that no C int holds.
    """
    each = pl.element()
    is_status = each.str.contains(_STATUS_ARGUMENT)
    is_too_large = (each.cast(pl.Int64, strict=False) > _LARGEST_INT).fill_null(value=True)
    is_address = each.str.contains("^[0-9]+$") & is_too_large
    given = pl.col("arguments").str.split(" ")

    def marked(is_hidden: pl.Expr) -> pl.Expr:
        return given.list.eval(pl.when(is_hidden).then(pl.lit(POINTER)).otherwise(each)).list.join(" ")

    masked = (
        pl.when(pl.col("module") == "MPI")
        .then(marked(is_status | is_address))
        .when(pl.col("module") == "MPIIO")
        .then(marked(is_status))
        .otherwise("arguments")
    )
    return signatures.with_columns(arguments=masked)
