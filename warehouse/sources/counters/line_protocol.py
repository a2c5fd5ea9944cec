"""Influx line protocol: from lines to points, all of a block at once.

A line is `measurement,tag=value,… field=value,… time` (InfluxDB's line protocol reference). Lines of one collector have
the same tags and fields in the same order: a line is split at its equals signs, and what stands between a value and the
next one is the same few texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from iosig.warehouse.sources.counters.changes import CUT
from iosig.warehouse.sources.rows.rejects import SCHEMA as REJECT_SCHEMA, frame_of, refused_rows

#: so many different sequences of tags and fields, and damaged lines, a block may have; what is left is refused
MOST_SHAPES = 500
#: tags and fields of a line that is read with others; one with more is refused
MOST_NAMES = 200
#: of so many lines, a tag or field that one line has alone is a damaged one
_ENOUGH_LINES = 10
_NAME = r"(?:[^\s,=\\]|\\.)+"
_STRING = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf"(?:[-+]?[0-9][0-9.eE+-]*[iu]?|[tTfF]\w*|{_STRING})"
SOUND: Final = (
    rf"^(?:{_NAME}(?:,{_NAME}={_NAME})* {_NAME}={_VALUE}(?:,{_NAME}={_VALUE})*(?: -?[0-9]+)?)\s*$|^\s*(?:#.*)?$"
)
#: what is escaped, while a line is split; nothing that anybody writes
_ESCAPED: Final = {"\\ ": "\ue000", "\\,": "\ue001", "\\=": "\ue002"}
_PLAIN: Final = dict(zip(_ESCAPED.values(), " ,=", strict=True))
_UNTIMED = "The point has no time in seconds, or in thousandths, millionths … of them, since 1970."
#: digits of a time since 1970 from 2001 to 2286, and how many microseconds its unit has
UNITS: Final = {10: 1_000_000, 13: 1_000, 16: 1, 19: 0}


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines whose times are told apart: what several say alike is read once."""

    #: `line` (of the first that says so) and `text`, without the time
    said: pl.DataFrame
    #: `first` (the line in `said`), `line` and `at_us` of each
    times: pl.DataFrame

    @classmethod
    def of(cls, lines: pl.DataFrame) -> tuple[Lines, pl.DataFrame]:
        """Return lines as `line` and `text` with their times told apart, and those that have none, refused."""
        text, at_us = _parted(lines["text"])
        is_timed = at_us.is_not_null()
        refused = _refused(lines.filter(~is_timed), _UNTIMED)
        told = pl.DataFrame({"line": lines["line"], "text": text, "at_us": at_us})
        told = told if is_timed.all() else told.filter(is_timed)
        code = told["text"].hash()
        first = told.filter(code.is_first_distinct())
        if first.height == told.height:
            return cls(told.drop("at_us"), told.select(pl.col("line").alias("first"), "line", "at_us")), refused
        known = pl.DataFrame({"code": code.filter(code.is_first_distinct()), "first": first["line"]})
        places = code.to_frame("code").join(known, on="code", how="left", maintain_order="left")
        return cls(first.drop("at_us"), told.select(places["first"], "line", "at_us")), refused

    def expanded(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return what was read of `said`, with `line`, as rows of all lines with their `at_us`."""
        return self.times.join(rows.rename({"line": "first"}), on="first", how="inner", maintain_order="left").drop(
            "first"
        )

    def everywhere(self, refused: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
        """Return what was refused of `said` as refused rows of all lines that say so; lines: as `of` was given them."""
        if refused.is_empty():
            return refused
        own = self.expanded(refused.drop("raw")).join(lines, on="line", how="left", maintain_order="left")
        return own.rename({"text": "raw"}).select(REJECT_SCHEMA.names())


@dataclass(frozen=True, slots=True)
class Shape:
    """What points have alike: the measurement, and the tags and fields in their order."""

    measurement: str
    tags: tuple[str, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Points:
    """Points of one shape."""

    shape: Shape
    #: `line` and `text`
    lines: pl.DataFrame
    #: what the lines are between their equals signs
    _parts: pl.DataFrame

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags that each has."""
        return self.shape.tags

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields that each has."""
        return self.shape.fields

    def tag(self, name: str) -> pl.Series:
        """Return the texts of a tag, NULL where there is none of that name."""
        if name not in self.tags:
            return pl.Series([None], dtype=pl.String).new_from_index(0, self._parts.height)
        place = self.tags.index(name)
        values = self._parts[f"field_{place + 1}"].str.strip_suffix(_ends(self.tags, self.fields)[place + 1])
        return values.str.replace_many(_PLAIN) if values.str.contains_any(list(_PLAIN)).any() else values

    def counts(self, names: Collection[str]) -> pl.DataFrame:
        """Return fields as whole numbers, NULL where a value is none of at least 0, or there is no such field."""
        there = [name for name in names if name in self.fields]
        absent = [pl.repeat(None, pl.len(), dtype=pl.Int64).alias(name) for name in names if name not in there]
        found = self._parts.select(*(self._value(name, "i").cast(pl.Int64, strict=False) for name in there), *absent)
        odd = found.select(pl.col(name).has_nulls() | (pl.col(name) < 0).any() for name in there)
        for name in (name for name in there if odd[name][0]):
            # written otherwise than as Telegraf does, or no count
            found = found.with_columns(_whole(self._parts.select(self._value(name, "")).to_series()))
        return found.select(names)

    def _value(self, name: str, unit: str) -> pl.Expr:
        place = len(self.tags) + self.fields.index(name) + 1
        return pl.col(f"field_{place}").str.strip_suffix(unit + _ends(self.tags, self.fields)[place]).alias(name)


def points(said: pl.DataFrame) -> tuple[list[Points], pl.DataFrame]:
    """Return points, and refused lines, of lines without their times as `line` and `text`."""
    found: list[Points] = []
    rest, refused = _plain(said), list[pl.DataFrame]()
    while rest.height:
        if len(found) + len(refused) == MOST_SHAPES:
            refused.append(_refused(rest, "The point is like none of hundreds of kinds before it, or damaged."))
            break
        first, rest = _alike(rest)
        if isinstance(first, Points):
            found.append(first)
        else:
            refused.append(first)
    return found, pl.concat([frame_of([]), *refused])


def meant(lines: pl.DataFrame, measurements: Collection[str] | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the lines of these measurements (None: of all), and what is no point at all, refused."""
    is_meant = _is_of(lines["text"], measurements)
    if is_meant.all():
        return lines, _refused(lines.clear(), "")
    other = lines.filter(~is_meant)
    return lines.filter(is_meant), _refused(
        other.filter(~other["text"].str.contains(SOUND)), "The line is no point of line protocol."
    )


def strange_names(found: Sequence[Points]) -> list[str | None]:
    """Return for each of the points of a block the tag or field that has another name in all other points, or None.

    That is one that only one point has, while others of its measurement have another one in its place, and all else.
    """
    shapes = [(each.shape.measurement, frozenset((*each.tags, *each.fields))) for each in found]
    heights: dict[str, int] = {}
    for each in found:
        heights[each.shape.measurement] = heights.get(each.shape.measurement, 0) + each.lines.height
    told: list[str | None] = []
    for each, (measurement, names) in zip(found, shapes, strict=True):
        is_alone = each.lines.height == 1 and heights[measurement] >= _ENOUGH_LINES
        others = (other for of, other in shapes if of == measurement and len(other) == len(names))
        ours = [names - other for other in others if is_alone and len(names - other) == 1]
        told.append(min(next(iter(ours))) if ours else None)
    return told


def _is_of(text: pl.Series, measurements: Collection[str] | None) -> pl.Series:
    if measurements is None:
        return ~text.str.contains(r"^\s*(?:#.*)?$")
    found = pl.repeat(False, len(text), dtype=pl.Boolean, eager=True)
    for start in (f"{name}{mark}" for name in measurements for mark in ", "):
        if not found.all():
            found |= text.str.starts_with(start)
    return found


def _parted(text: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return lines without their times, and the times [us since 1970], NULL where there is none."""
    at = text.str.tail(20)
    if at.str.starts_with(" ").all():
        number = at.str.strip_prefix(" ").cast(pl.Int64, strict=False)
        # as many digits as billionths of seconds have, in all lines
        if (number >= 10**18).all() and not number.has_nulls():
            return text.str.head(-20), number // 1_000
    parts = text.str.extract_groups(r"^(.*\S) +([0-9]{10,19})\s*$").struct.unnest()
    return parts["1"].fill_null(""), _instants(parts["2"])


def _plain(lines: pl.DataFrame) -> pl.DataFrame:
    """Return lines in which blanks, commas and equals signs split, all of them; texts of fields are emptied."""
    special = lines["text"].str.contains_any(["\\", '"'])
    if not special.any():
        return lines
    # quotes of a tag are its own
    parts = pl.col("text").str.replace_many(_ESCAPED).str.splitn(" ", 2)
    body = parts.struct.field("field_1").str.replace_all(_STRING, '""')
    plain = pl.concat_str(parts.struct.field("field_0"), pl.coalesce(pl.lit(" ") + body, pl.lit("")))
    return lines.with_columns(text=pl.when(special).then(plain).otherwise("text"))


def _alike(lines: pl.DataFrame) -> tuple[Points | pl.DataFrame, pl.DataFrame]:
    """Return the lines that have the measurement, tags and fields of the first, and the others."""
    names = names_of(str(lines["text"][0]))
    if names is None:
        return _refused(lines[:1], "The tags or fields of the point are damaged."), lines[1:]
    measurement, tags, fields = names
    # cheaper than to split all lines once for each kind that there is
    may_be = lines["text"].str.contains(f" {fields[0]}=", literal=True)
    rest = lines.clear() if may_be.all() else lines.filter(~may_be)
    own = lines if rest.is_empty() else lines.filter(may_be)
    parts = own["text"].str.splitn("=", len(tags) + len(fields) + 1).struct.unnest()
    ends = _ends(tags, fields)
    starts = f"{measurement}{ends[0]}"
    alike = (pl.col(f"field_{place}").str.ends_with(end) for place, end in enumerate(ends[1:-1], start=1))
    values = [pl.col(f"field_{place}").str.strip_suffix(ends[place]) for place in range(1, len(tags) + 1)]
    whole = (~value.str.contains_any([",", " ", "="]) for value in (*values, pl.col(f"field_{len(ends) - 1}")))
    is_alike = parts.select(pl.all_horizontal(pl.col("field_0") == starts, *alike, *whole)).to_series()
    if is_alike.all():
        return Points(Shape(measurement, tags, fields), own, parts), rest
    if not is_alike[0]:
        return _refused(lines[:1], "The tags or fields of the point are damaged."), lines[1:]
    rest = pl.concat([rest, own.filter(~is_alike)])
    return Points(Shape(measurement, tags, fields), own.filter(is_alike), parts.filter(is_alike)), rest


def _ends(tags: tuple[str, ...], fields: tuple[str, ...]) -> list[str]:
    """Return what stands before each equals sign behind the value before it, and nothing behind the last value."""
    first = f" {fields[0]}"
    return [*(f",{tag}" for tag in tags), first, *(f",{name}" for name in fields[1:]), ""]


def names_of(text: str) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
    """Return measurement, tags and fields of a line, None where it is damaged."""
    head, _, body = text.partition(" ")
    measurement, *tags = head.split(",")
    named = [tag.partition("=")[0] for tag in tags]
    fields = [field.partition("=")[0] for field in body.split(",")]
    is_sound = all(part.count("=") == 1 for part in (*tags, *body.split(","))) and " " not in body
    is_good = is_sound and measurement and all((*named, *fields)) and len({*named, *fields}) == len(named) + len(fields)
    return (measurement, tuple(named), tuple(fields)) if is_good and len(named) + len(fields) <= MOST_NAMES else None


def _whole(values: pl.Series) -> pl.Series:
    """Return values of a field as whole numbers of at least 0, NULL where they are none."""
    is_number = values.str.contains(r"^[0-9]+(?:[iu]|\.[0-9]+)?(?:[eE][+]?[0-9]+)?$")
    plain = pl.select(pl.when(is_number).then(values.str.strip_chars_end("iu"))).to_series()
    real = plain.cast(pl.Float64, strict=False)
    exact = pl.when((pl.lit(real) < 2**53) & (pl.lit(real) == pl.lit(real).floor())).then(pl.lit(real))
    numbers = pl.coalesce(pl.lit(plain.cast(pl.Int64, strict=False)), exact.cast(pl.Int64))
    return pl.select(numbers.alias(values.name)).to_series()


def _instants(at: pl.Series) -> pl.Series:
    """Return times as microseconds since 1970, NULL where a text is none; the number of digits tells the unit."""
    length = at.str.len_bytes()
    number = at.cast(pl.Int64, strict=False)
    told = pl.lit(None, pl.Int64)
    for digits, factor in UNITS.items():
        own = pl.lit(number) * factor if factor else pl.lit(number) // 1_000
        told = pl.when(pl.lit(length) == digits).then(own).otherwise(told)
    is_number = pl.lit(at.str.contains(r"^[1-9][0-9]*$"))
    return pl.select(pl.when(is_number).then(told)).to_series()


def _refused(lines: pl.DataFrame, reason: str) -> pl.DataFrame:
    return refused_rows(lines, reason, CUT, "text")


def is_point(text: str) -> bool:
    """Return whether a line is a point with a field and a time."""
    return re.match(SOUND, text) is not None and re.search(r"=\S+ [0-9]{10,19}\s*$", text) is not None
