"""Find call templates: the text of a call's arguments, with its numbers as slots.

Two calls have the same template if they differ only in numbers. Function, level and text replace ScalaTrace's stack
signature, which Recorder does not log. Numbered file names need no special treatment (paper, section 3.2.2):
`f.00000012` is the text `f.` and the number 12 of eight digits. A minus sign belongs to the text, since `0-3` is the
fourth handle of rank 0. Statuses are an exception, because their numbers and signs are uninitialized memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, offsets_of, places_within
from iosig.transforms.traces.trace import STATUS_MODULES

#: number that fits into 64 bits; longer numbers are split
_NUMBER = "[0-9]{1,18}"
#: placeholder that cannot occur in C strings
_MARK = "\0"
_KEY = ["module", "function", "level", "text"]
#: text of an MPI_Status, `[source_tag]`; its numbers and signs are uninitialized memory
_STATUS = re.compile(f"(^| )\\[(-?){_MARK}_(-?){_MARK}\\]")
_UNSIGNED_STATUS = rf"\1[{_MARK}_{_MARK}]"


@dataclass(frozen=True, slots=True)
class Template:
    """Common part of calls: `texts` are the pieces of text around the slots, `widths` the slots' minimum widths."""

    module: str
    function: str
    level: int
    texts: tuple[str, ...]
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Templates:
    """Templates of signatures, with the numbers in their slots.

    number (S): index of each signature's template. first (S): index into `numbers` of its first slot.
    """

    templates: tuple[Template, ...]
    number: Ints
    first: Ints
    numbers: Ints


def find_templates(signatures: Sequence[pl.DataFrame]) -> Templates:
    """Find the templates of signatures.

    Parameters
    ----------
    signatures
        Frames with the columns `level`, `module`, `function` and `arguments`.

    Returns
    -------
    Templates
        Templates for the signatures of all frames, concatenated (S).

    Raises
    ------
    ValueError
        If arguments contain a NUL character.
    """
    rows = pl.concat(signatures).with_row_index("row")
    if rows["arguments"].str.contains(_MARK, literal=True).any():
        raise ValueError("Arguments contain a NUL character.")
    marked = rows.select(
        "row",
        *_KEY[:3],
        text=pl.col("arguments").str.replace_all(_NUMBER, _MARK),
        digits=pl.col("arguments").str.extract_all(_NUMBER),
    )
    counts = marked["digits"].list.len().to_numpy().astype(np.int64)
    coarse, slots = _move_signs(_add_template_numbers(marked, _KEY), _extract_numbers(marked["digits"], counts))
    fine = _add_widths(coarse, slots)
    return Templates(
        tuple(map(_to_template, fine.unique("template", maintain_order=True).iter_rows(named=True))),
        fine["template"].to_numpy().astype(np.int64),
        offsets_of(counts)[:-1],
        slots["value"].to_numpy(),
    )


def _add_widths(coarse: pl.DataFrame, slots: pl.DataFrame) -> pl.DataFrame:
    """Add the minimum widths of slots, and split templates in which numbers are padded to several widths.

    In the result, rows without widths have no padded numbers.
    """
    padded = _find_widths(slots, coarse)
    shared = padded.sort("slot").group_by("template").agg(widths="width")
    fine = coarse.join(shared, on="template", how="left", maintain_order="left")
    is_rigid = pl.col("template").is_in(padded.filter(~pl.col("is_sound"))["template"].unique().implode())
    rigid = fine.filter(is_rigid).select("row")
    if rigid.is_empty():
        return fine
    row_widths = slots.join(rigid, on="row", maintain_order="left").group_by("row").agg(row_widths="own_width")
    split = fine.join(row_widths, on="row", how="left", maintain_order="left")
    widths = pl.coalesce("row_widths", "widths")
    return _add_template_numbers(split.with_columns(widths=widths).drop("template", "row_widths"), [*_KEY, "widths"])


def _move_signs(coarse: pl.DataFrame, slots: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Move the signs of statuses from the text to the numbers, except for zeros and padded numbers."""
    is_status = pl.col("module").is_in(STATUS_MODULES) & pl.col("text").str.contains(f"[_\\[]-{_MARK}")
    status_templates = coarse.filter(is_status).unique("template").select("template", "text")
    signs = [(template, slot) for template, text in status_templates.iter_rows() for slot in _find_signs(text)]
    if not signs:
        return coarse, slots
    negative = pl.DataFrame(signs, {"template": pl.Int64, "slot": pl.Int64}, orient="row").with_columns(sign=-1)
    plain = status_templates.select(
        "template", plain=pl.Series([_STATUS.sub(_UNSIGNED_STATUS, text) for text in status_templates["text"]])
    )
    signed = slots.join(coarse.select("row", "template"), on="row", maintain_order="left").join(
        negative, on=["template", "slot"], how="left", maintain_order="left"
    )
    unchanged = signed.filter(pl.col("sign").is_not_null() & pl.col("is_zero_first"))["row"].unique()
    is_unchanged = pl.col("row").is_in(unchanged.implode())
    texts = coarse.join(plain, on="template", how="left", maintain_order="left").with_columns(
        text=pl.when(is_unchanged).then("text").otherwise(pl.coalesce("plain", "text"))
    )
    value = pl.when(is_unchanged).then("value").otherwise(pl.col("value") * pl.col("sign").fill_null(1))
    return _add_template_numbers(texts.drop("template", "plain"), _KEY), signed.with_columns(value=value).select(
        slots.columns
    )


def _find_signs(text: str) -> list[int]:
    """Find the slots of a text that the sign of a status precedes."""
    slots = []
    for status in _STATUS.finditer(text):
        first = text.count(_MARK, 0, status.start())
        slots += [first + part for part in (0, 1) if status[2 + part]]
    return slots


def _add_template_numbers(rows: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Add template numbers in order of first occurrence."""
    distinct = rows.select(key).unique(maintain_order=True)
    numbered = distinct.with_columns(template=pl.int_range(pl.len(), dtype=pl.Int64))
    return rows.join(numbered, on=key, how="left", nulls_equal=True, maintain_order="left")


def _extract_numbers(digits: pl.Series, counts: Ints) -> pl.DataFrame:
    """Convert digits to one row per number: row and slot of the number, value, length, and width if padded.

    counts (S): number of numbers in each row.
    """
    texts = digits.filter(pl.Series(counts > 0)).explode()
    numbers = pl.DataFrame(
        {
            "row": np.repeat(np.arange(counts.size, dtype=np.uint32), counts),
            "slot": places_within(counts),
            "value": texts.cast(pl.Int64),
            "length": texts.str.len_bytes().cast(pl.Int64),
            "is_zero_first": texts.str.starts_with("0"),
        }
    )
    return numbers.with_columns(own_width=pl.when("is_zero_first").then("length").otherwise(pl.lit(1, pl.Int64)))


def _find_widths(slots: pl.DataFrame, coarse: pl.DataFrame) -> pl.DataFrame:
    """Width of each slot of templates with padded numbers, and whether all numbers of the slot are consistent."""
    padded = slots.filter(pl.col("own_width") > 1).select("row").unique()
    templates = coarse.join(padded, on="row", how="semi")["template"].unique()
    rows = coarse.filter(pl.col("template").is_in(templates.implode())).select("row", "template")
    numbers = slots.join(rows, on="row")
    width = pl.col("own_width").max()
    is_sound = ((pl.col("own_width") == width) | ((pl.col("own_width") == 1) & (pl.col("length") >= width))).all()
    # a single 0 has width 1, and is inconsistent with wider numbers
    return numbers.group_by("template", "slot").agg(width=width, is_sound=is_sound)


def _to_template(row: dict[str, object]) -> Template:
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


# ---- arguments that differ between runs: addresses and uninitialized memory

# Recorder writes `%p` for pointers. It writes MPI_Op and MPI_Group as the numbers by which the MPI library represents
# them; these are addresses in Open MPI. It writes MPI_Status as `[source_tag]`, which MPI-IO leaves uninitialized.

#: Recorder's placeholder for pointers
POINTER = "%p"
_STATUS_ARGUMENT = r"^\[-?[0-9]+_-?[0-9]+\]$"
#: counts, ranks and tags of MPI are 32-bit C ints
_LARGEST_INT = (1 << 31) - 1


def mask_addresses(signatures: pl.DataFrame) -> pl.DataFrame:
    """Replace addresses and statuses in arguments by `%p`.

    Parameters
    ----------
    signatures
        Columns `level`, `module`, `function` and `arguments`.

    Returns
    -------
    pl.DataFrame
        The same rows, which may become equal. In MPI calls other than MPI-IO, an argument is an address if it is a
        number that exceeds a C int.
    """
    element = pl.element()
    is_status = element.str.contains(_STATUS_ARGUMENT)
    is_too_large = (element.cast(pl.Int64, strict=False) > _LARGEST_INT).fill_null(value=True)
    is_address = element.str.contains("^[0-9]+$") & is_too_large
    arguments = pl.col("arguments").str.split(" ")

    def mask(is_masked: pl.Expr) -> pl.Expr:
        return arguments.list.eval(pl.when(is_masked).then(pl.lit(POINTER)).otherwise(element)).list.join(" ")

    masked = (
        pl.when(pl.col("module") == "MPI")
        .then(mask(is_status | is_address))
        .when(pl.col("module") == "MPIIO")
        .then(mask(is_status))
        .otherwise("arguments")
    )
    return signatures.with_columns(arguments=masked)
