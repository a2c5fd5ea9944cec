"""Parse Influx line protocol, block by block.

A line is `measurement,tag=value,… field=value,… time` (InfluxDB's line protocol reference). Lines of one collector have
the same tags and fields in the same order. So a line is split at its equals signs, and the text between a value and the
next equals sign repeats.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from iosig.warehouse.sources.counters.changes import CUT
from iosig.warehouse.sources.rows.rejects import REJECT_SCHEMA, build_refused_rows, build_reject_frame

#: maximum number of distinct shapes and damaged lines per block; further lines are refused
MAX_SHAPES = 500
#: maximum number of tags and fields per line; lines with more are refused
MAX_NAMES = 200
#: minimum number of lines from which a tag or field that occurs in only one line is treated as damaged
_MIN_LINES = 10
_NAME = r"(?:[^\s,=\\]|\\.)+"
_STRING = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf"(?:[-+]?[0-9][0-9.eE+-]*[iu]?|[tTfF]\w*|{_STRING})"
VALID_LINE: Final = (
    rf"^(?:{_NAME}(?:,{_NAME}={_NAME})* {_NAME}={_VALUE}(?:,{_NAME}={_VALUE})*(?: -?[0-9]+)?)\s*$|^\s*(?:#.*)?$"
)
#: private-use characters that replace escapes while a line is split
_ESCAPED: Final = {"\\ ": "\ue000", "\\,": "\ue001", "\\=": "\ue002"}
_PLAIN: Final = dict(zip(_ESCAPED.values(), " ,=", strict=True))
_UNTIMED = "The point has no time in s, ms, us or ns since 1970."
#: number of digits of a time from 2001 to 2286 -> microseconds per unit (0: nanoseconds)
UNITS: Final = {10: 1_000_000, 13: 1_000, 16: 1, 19: 0}


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines separated from their times, so that repeated text is parsed only once."""

    #: distinct text without times: `line` (the first line with this text) and `text`
    said: pl.DataFrame
    #: per line: `first` (the line number in `said`), `line` and `at_us`
    times: pl.DataFrame

    @classmethod
    def split_times(cls, lines: pl.DataFrame) -> tuple[Lines, pl.DataFrame]:
        """Separate lines (`line`, `text`) from their times; refuse those without a time."""
        text, at_us = _split_time(lines["text"])
        is_timed = at_us.is_not_null()
        refused = _refuse_lines(lines.filter(~is_timed), _UNTIMED)
        timed = pl.DataFrame({"line": lines["line"], "text": text, "at_us": at_us})
        timed = timed if is_timed.all() else timed.filter(is_timed)
        code = timed["text"].hash()
        first = timed.filter(code.is_first_distinct())
        if first.height == timed.height:
            return cls(timed.drop("at_us"), timed.select(pl.col("line").alias("first"), "line", "at_us")), refused
        first_lines = pl.DataFrame({"code": code.filter(code.is_first_distinct()), "first": first["line"]})
        places = code.to_frame("code").join(first_lines, on="code", how="left", maintain_order="left")
        return cls(first.drop("at_us"), timed.select(places["first"], "line", "at_us")), refused

    def expand(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Join rows parsed from `said` with the lines and times (`at_us`) of all repetitions."""
        return self.times.join(rows.rename({"line": "first"}), on="first", how="inner", maintain_order="left").drop(
            "first"
        )

    def expand_refused(self, refused: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
        """Expand refused rows of `said` to all lines with the same text; lines: the input of `split_times`."""
        if refused.is_empty():
            return refused
        expanded = self.expand(refused.drop("raw")).join(lines, on="line", how="left", maintain_order="left")
        return expanded.rename({"text": "raw"}).select(REJECT_SCHEMA.names())


@dataclass(frozen=True, slots=True)
class Shape:
    """Measurement, and tags and fields in order, that several points share."""

    measurement: str
    tags: tuple[str, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Points:
    """Points with the same shape, split at their equals signs."""

    shape: Shape
    #: `line` and `text` of the points
    lines: pl.DataFrame
    #: parts of the lines between their equals signs
    _parts: pl.DataFrame

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of the tags, in order."""
        return self.shape.tags

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields, in order."""
        return self.shape.fields

    def tag(self, name: str) -> pl.Series:
        """Return the values of a tag; NULL if the shape lacks the tag."""
        if name not in self.tags:
            return pl.Series([None], dtype=pl.String).new_from_index(0, self._parts.height)
        place = self.tags.index(name)
        values = self._parts[f"field_{place + 1}"].str.strip_suffix(_ends(self.tags, self.fields)[place + 1])
        return values.str.replace_many(_PLAIN) if values.str.contains_any(list(_PLAIN)).any() else values

    def counts(self, names: Collection[str]) -> pl.DataFrame:
        """Parse fields as non-negative integers; NULL if malformed or absent."""
        present = [name for name in names if name in self.fields]
        absent = [pl.repeat(None, pl.len(), dtype=pl.Int64).alias(name) for name in names if name not in present]
        counts = self._parts.select(*(self._value(name, "i").cast(pl.Int64, strict=False) for name in present), *absent)
        odd = counts.select(pl.col(name).has_nulls() | (pl.col(name) < 0).any() for name in present)
        for name in (name for name in present if odd[name][0]):
            # parse again, since values are not in Telegraf's form or are not counts
            counts = counts.with_columns(_parse_counts(self._parts.select(self._value(name, "")).to_series()))
        return counts.select(names)

    def _value(self, name: str, unit: str) -> pl.Expr:
        place = len(self.tags) + self.fields.index(name) + 1
        return pl.col(f"field_{place}").str.strip_suffix(unit + _ends(self.tags, self.fields)[place]).alias(name)


def parse_points(lines: pl.DataFrame) -> tuple[list[Points], pl.DataFrame]:
    """Group lines without times (`line`, `text`) into points by shape; refuse damaged lines."""
    groups: list[Points] = []
    remaining, refused = _mask_escapes(lines), list[pl.DataFrame]()
    while remaining.height:
        if len(groups) + len(refused) == MAX_SHAPES:
            refused.append(
                _refuse_lines(remaining, "The point has yet another shape after hundreds of shapes, or is damaged.")
            )
            break
        first, remaining = _take_shape(remaining)
        if isinstance(first, Points):
            groups.append(first)
        else:
            refused.append(first)
    return groups, pl.concat([build_reject_frame([]), *refused])


def select_measurements(lines: pl.DataFrame, measurements: Collection[str] | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Select the lines of these measurements (None: all); refuse other lines that are not points."""
    is_selected = _matches_measurement(lines["text"], measurements)
    if is_selected.all():
        return lines, _refuse_lines(lines.clear(), "")
    unselected = lines.filter(~is_selected)
    return lines.filter(is_selected), _refuse_lines(
        unselected.filter(~unselected["text"].str.contains(VALID_LINE)), "The line is not a point of line protocol."
    )


def find_lone_names(groups: Sequence[Points]) -> list[str | None]:
    """Return, for each shape, a tag or field name that is probably damaged, or None.

    A name is returned if its shape has a single point, and another shape of the same measurement differs in this name
    only. Measurements with few points are exempt.
    """
    shapes = [(group.shape.measurement, frozenset((*group.tags, *group.fields))) for group in groups]
    heights: dict[str, int] = {}
    for group in groups:
        heights[group.shape.measurement] = heights.get(group.shape.measurement, 0) + group.lines.height
    result: list[str | None] = []
    for group, (measurement, names) in zip(groups, shapes, strict=True):
        is_alone = group.lines.height == 1 and heights[measurement] >= _MIN_LINES
        siblings = (
            other_names for kind, other_names in shapes if kind == measurement and len(other_names) == len(names)
        )
        lone_names = [names - other_names for other_names in siblings if is_alone and len(names - other_names) == 1]
        result.append(min(next(iter(lone_names))) if lone_names else None)
    return result


def _matches_measurement(text: pl.Series, measurements: Collection[str] | None) -> pl.Series:
    if measurements is None:
        return ~text.str.contains(r"^\s*(?:#.*)?$")
    is_match = pl.repeat(False, len(text), dtype=pl.Boolean, eager=True)
    for start in (f"{name}{mark}" for name in measurements for mark in ", "):
        if not is_match.all():
            is_match |= text.str.starts_with(start)
    return is_match


def _split_time(text: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Split lines into text and time [us since 1970]; NULL if the time is missing."""
    tails = text.str.tail(20)
    if tails.str.starts_with(" ").all():
        number = tails.str.strip_prefix(" ").cast(pl.Int64, strict=False)
        # all times are in nanoseconds
        if (number >= 10**18).all() and not number.has_nulls():
            return text.str.head(-20), number // 1_000
    parts = text.str.extract_groups(r"^(.*\S) +([0-9]{10,19})\s*$").struct.unnest()
    return parts["1"].fill_null(""), _instants(parts["2"])


def _mask_escapes(lines: pl.DataFrame) -> pl.DataFrame:
    """Mask escapes and empty quoted fields, so that all remaining blanks, commas and equals signs are separators."""
    special = lines["text"].str.contains_any(["\\", '"'])
    if not special.any():
        return lines
    # quotes in a tag are part of its value
    parts = pl.col("text").str.replace_many(_ESCAPED).str.splitn(" ", 2)
    body = parts.struct.field("field_1").str.replace_all(_STRING, '""')
    plain = pl.concat_str(parts.struct.field("field_0"), pl.coalesce(pl.lit(" ") + body, pl.lit("")))
    return lines.with_columns(text=pl.when(special).then(plain).otherwise("text"))


def _take_shape(lines: pl.DataFrame) -> tuple[Points | pl.DataFrame, pl.DataFrame]:
    """Return the lines that have the shape of the first line, and all other lines."""
    names = parse_names(str(lines["text"][0]))
    if names is None:
        return _refuse_lines(lines[:1], "The tags or fields of the point are damaged."), lines[1:]
    measurement, tags, fields = names
    # a prefilter is cheaper than splitting all lines once per shape
    is_candidate = lines["text"].str.contains(f" {fields[0]}=", literal=True)
    remaining = lines.clear() if is_candidate.all() else lines.filter(~is_candidate)
    expanded = lines if remaining.is_empty() else lines.filter(is_candidate)
    parts = expanded["text"].str.splitn("=", len(tags) + len(fields) + 1).struct.unnest()
    ends = _ends(tags, fields)
    starts = f"{measurement}{ends[0]}"
    has_ends = (pl.col(f"field_{place}").str.ends_with(end) for place, end in enumerate(ends[1:-1], start=1))
    values = [pl.col(f"field_{place}").str.strip_suffix(ends[place]) for place in range(1, len(tags) + 1)]
    are_plain = (~value.str.contains_any([",", " ", "="]) for value in (*values, pl.col(f"field_{len(ends) - 1}")))
    is_same_shape = parts.select(pl.all_horizontal(pl.col("field_0") == starts, *has_ends, *are_plain)).to_series()
    if is_same_shape.all():
        return Points(Shape(measurement, tags, fields), expanded, parts), remaining
    if not is_same_shape[0]:
        return _refuse_lines(lines[:1], "The tags or fields of the point are damaged."), lines[1:]
    remaining = pl.concat([remaining, expanded.filter(~is_same_shape)])
    return Points(
        Shape(measurement, tags, fields), expanded.filter(is_same_shape), parts.filter(is_same_shape)
    ), remaining


def _ends(tags: tuple[str, ...], fields: tuple[str, ...]) -> list[str]:
    """Return the text between each value and the next equals sign; empty after the last value."""
    first = f" {fields[0]}"
    return [*(f",{tag}" for tag in tags), first, *(f",{name}" for name in fields[1:]), ""]


def parse_names(text: str) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
    """Parse measurement, tags and fields of a line; None if it is damaged."""
    head, _, body = text.partition(" ")
    measurement, *tags = head.split(",")
    tag_names = [tag.partition("=")[0] for tag in tags]
    fields = [field.partition("=")[0] for field in body.split(",")]
    is_sound = all(part.count("=") == 1 for part in (*tags, *body.split(","))) and " " not in body
    is_good = (
        is_sound
        and measurement
        and all((*tag_names, *fields))
        and len({*tag_names, *fields}) == len(tag_names) + len(fields)
    )
    return (
        (measurement, tuple(tag_names), tuple(fields))
        if is_good and len(tag_names) + len(fields) <= MAX_NAMES
        else None
    )


def _parse_counts(values: pl.Series) -> pl.Series:
    """Parse values of a field as non-negative integers; NULL for all other values."""
    is_number = values.str.contains(r"^[0-9]+(?:[iu]|\.[0-9]+)?(?:[eE][+]?[0-9]+)?$")
    plain = pl.select(pl.when(is_number).then(values.str.strip_chars_end("iu"))).to_series()
    real = plain.cast(pl.Float64, strict=False)
    exact = pl.when((pl.lit(real) < 2**53) & (pl.lit(real) == pl.lit(real).floor())).then(pl.lit(real))
    numbers = pl.coalesce(pl.lit(plain.cast(pl.Int64, strict=False)), exact.cast(pl.Int64))
    return pl.select(numbers.alias(values.name)).to_series()


def _instants(texts: pl.Series) -> pl.Series:
    """Convert times to microseconds since 1970, with the unit inferred from the number of digits; NULL if invalid."""
    length = texts.str.len_bytes()
    number = texts.cast(pl.Int64, strict=False)
    timed = pl.lit(None, pl.Int64)
    for digits, factor in UNITS.items():
        expanded = pl.lit(number) * factor if factor else pl.lit(number) // 1_000
        timed = pl.when(pl.lit(length) == digits).then(expanded).otherwise(timed)
    is_number = pl.lit(texts.str.contains(r"^[1-9][0-9]*$"))
    return pl.select(pl.when(is_number).then(timed)).to_series()


def _refuse_lines(lines: pl.DataFrame, reason: str) -> pl.DataFrame:
    return build_refused_rows(lines, reason, CUT, "text")


def is_point(text: str) -> bool:
    """Test whether a line is a point with a field and a time."""
    return re.match(VALID_LINE, text) is not None and re.search(r"=\S+ [0-9]{10,19}\s*$", text) is not None
