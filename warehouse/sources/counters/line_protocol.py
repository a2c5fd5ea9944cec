"""Influx line protocol: from lines to points, all of a block at once.

A line is `measurement,tag=value,… field=value,… time` (InfluxDB's line protocol reference). Lines of one collector have
the same tags and fields in the same order: a line is split at its equals signs, and what stands between a value and the
next one is the same few texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from warehouse.sources.counters.changes import CUT
from warehouse.sources.rows.rejects import SCHEMA as REJECT_SCHEMA

#: so many different sequences of tags and fields a block may have; what has yet another one is refused
_MOST_SHAPES = 500
#: tags and fields of a line that is read with others; one with more is refused
_MOST_NAMES = 200
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
#: digits of a time since 1970 from 2001 to 2286, and how many microseconds its unit has
_UNITS: Final = {10: 1_000_000, 13: 1_000, 16: 1, 19: 0}


@dataclass(frozen=True, slots=True)
class Points:
    """Points with the same measurement, tags and fields in the same order."""

    measurement: str
    #: `line`, `text` and `at_us`
    lines: pl.DataFrame
    tags: tuple[str, ...]
    fields: tuple[str, ...]
    #: what the lines are between their equals signs, before and after their first blank
    _head: pl.DataFrame
    _body: pl.DataFrame

    def tag(self, name: str) -> pl.Series:
        """Return the texts of a tag, NULL where there is none of that name."""
        values = _between(self._head, self.tags, name)
        return values.str.replace_many(_PLAIN) if values.str.contains_any(list(_PLAIN)).any() else values

    def counts(self, names: Collection[str]) -> pl.DataFrame:
        """Return fields as whole numbers, NULL where a value is none of at least 0, or there is no such field."""
        there = [name for name in names if name in self.fields]
        absent = [pl.repeat(None, pl.len(), dtype=pl.Int64).alias(name) for name in names if name not in there]
        found = self._body.select(*(self._value(name, "i").cast(pl.Int64, strict=False) for name in there), *absent)
        for name in there:
            # written otherwise than as Telegraf does, or no count
            if found[name].has_nulls() or (found[name] < 0).any():
                found = found.with_columns(_whole(self._body.select(self._value(name, "")).to_series()))
        return found.select(names)

    def _value(self, name: str, unit: str) -> pl.Expr:
        place = self.fields.index(name) + 1
        end = f",{self.fields[place]}" if place < len(self.fields) else ""
        return pl.col(f"field_{place}").str.strip_suffix(unit + end).alias(name)


def points(lines: pl.DataFrame, measurements: Collection[str] | None) -> tuple[list[Points], pl.DataFrame]:
    """Return the points of these measurements (None: of all), and refused lines, of lines as `line` and `text`."""
    text = lines["text"]
    is_meant = _is_of(text, measurements)
    other = lines.filter(~is_meant)
    refused = [_refused(other.filter(~other["text"].str.contains(SOUND)), "The line is no point of line protocol.")]
    found: list[Points] = []
    for shape in _shapes(lines.filter(is_meant) if other.height else lines):
        if isinstance(shape, pl.DataFrame):
            refused.append(shape)
        else:
            found.append(shape)
    return found, pl.concat(refused)


def strange_names(found: Sequence[Points]) -> list[str | None]:
    """Return for each of the points of a block the tag or field that has another name in all other points, or None.

    That is one that only one point has, while others of its measurement have another one in its place, and all else.
    """
    shapes = [(each.measurement, frozenset((*each.tags, *each.fields))) for each in found]
    heights: dict[str, int] = {}
    for each in found:
        heights[each.measurement] = heights.get(each.measurement, 0) + each.lines.height
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
    starts = [f"{name}{mark}" for name in sorted(measurements) for mark in ", "]
    return pl.select(pl.any_horizontal(pl.lit(text).str.starts_with(start) for start in starts)).to_series()


def _split(lines: pl.DataFrame) -> pl.DataFrame:
    """Return lines as `head`, `body` and `at`, in which commas and equals signs split, all of them."""
    special = lines["text"].str.contains_any(["\\", '"'])
    if not special.any():
        parts = lines["text"].str.splitn(" ", 3).struct.unnest()
        return lines.hstack(parts).rename({"field_0": "head", "field_1": "body", "field_2": "at"})
    plain = pl.col("text").str.replace_many(_ESCAPED).str.splitn(" ", 2)
    # quotes of a tag are its own, those of a field are around a text, which counts nothing
    parts = lines.select(plain.struct.field("field_0").alias("head"), plain.struct.field("field_1").alias("rest"))
    rest = parts["rest"].str.replace_all(_STRING, '""').str.splitn(" ", 2).struct.unnest()
    return lines.hstack([parts["head"], rest["field_0"].alias("body"), rest["field_1"].alias("at")])


def _shapes(lines: pl.DataFrame) -> Iterator[Points | pl.DataFrame]:
    """Yield lines by what their tags and fields are, and those that are refused."""
    parts = _split(lines)
    parts = parts.with_columns(at_us=_instants(parts["at"].str.strip_chars_end("\r ")))
    untimed = parts.filter(parts["at_us"].is_null())
    yield _refused(untimed, "The point has no time in seconds, or in thousandths, millionths … of them, since 1970.")
    timed = parts.filter(parts["at_us"].is_not_null()) if untimed.height else parts
    counts = timed.select(
        tags=pl.col("head").str.count_matches("=", literal=True),
        fields=pl.col("body").str.count_matches("=", literal=True),
        commas=pl.col("head").str.count_matches(",", literal=True),
    )
    shape_count = 0
    kinds = counts.unique(maintain_order=True)
    for tag_count, field_count, comma_count in kinds.iter_rows():
        is_own = (pl.col("tags") == tag_count) & (pl.col("fields") == field_count) & (pl.col("commas") == comma_count)
        own = timed.filter(counts.select(is_own).to_series()) if kinds.height > 1 else timed
        if not field_count or tag_count != comma_count or tag_count + field_count > _MOST_NAMES:
            yield _refused(own, "The tags or fields of the point are damaged, or too many.")
            continue
        rest = own
        while rest.height:
            shape_count += 1
            if shape_count > _MOST_SHAPES:
                yield _refused(rest, "The point has other tags and fields than hundreds of points before it.")
                break
            found, rest = _alike(rest, tag_count, field_count)
            yield found


def _alike(lines: pl.DataFrame, tag_count: int, field_count: int) -> tuple[Points | pl.DataFrame, pl.DataFrame]:
    """Return the lines that have the tags and fields of the first, and the others."""
    head = lines["head"].str.splitn("=", tag_count + 1).struct.unnest()
    body = lines["body"].str.splitn("=", field_count + 1).struct.unnest()
    measurement, tags = _names(head.row(0), with_first=True)
    first, fields = _names(body.row(0), with_first=False)
    if measurement is None or tags is None or fields is None or len({*tags, *fields}) < len(tags) + len(fields):
        return _refused(lines[:1], "The tags or fields of the point are damaged."), lines[1:]
    ends = [*_ends(head, [f"{measurement},{tags[0]}" if tags else measurement, *(f",{tag}" for tag in tags[1:])])]
    ends += _ends(body, [str(first), *(f",{field}" for field in fields[1:])])
    alike = pl.select(pl.all_horizontal(ends)).to_series()
    if not alike.all():
        rest, lines, head, body = lines.filter(~alike), lines.filter(alike), head.filter(alike), body.filter(alike)
    else:
        rest = lines.clear()
    return Points(measurement, lines.select("line", "text", "at_us"), tuple(tags), tuple(fields), head, body), rest


def _names(row: tuple[str, ...], *, with_first: bool) -> tuple[str | None, list[str] | None]:
    """Return what stands before the first name and the names, of a line that is split at its equals signs."""
    first, *others = row
    if with_first:
        measurement, comma, tag = first.partition(",")
        names = [*([tag] if others else []), *(part.rpartition(",")[2] for part in others[:-1])]
        is_sound = bool(measurement) and bool(comma) == bool(others)
    else:
        measurement, names = first, [first, *(part.rpartition(",")[2] for part in others[:-1])]
        is_sound = True
    # of all parts but the last, each is a value, one comma and a name
    is_sound &= all(part.count(",") == 1 for part in others[:-1])
    is_good = is_sound and all(names)
    return (measurement, names) if is_good else (None, None)


def _ends(parts: pl.DataFrame, ends: list[str]) -> Iterator[pl.Expr]:
    """Yield which lines have these texts at the ends of their parts; of the last part nothing is asked but a value."""
    yield pl.lit(parts["field_0"] == ends[0])
    for index, end in enumerate(ends[1:], start=1):
        yield pl.lit(parts[f"field_{index}"].str.ends_with(end))
    if len(ends) < parts.width:
        yield pl.lit(~parts[f"field_{parts.width - 1}"].str.contains(",", literal=True))


def _between(parts: pl.DataFrame, names: tuple[str, ...], name: str) -> pl.Series:
    if name not in names:
        return pl.repeat(None, parts.height, dtype=pl.String, eager=True)
    place = names.index(name) + 1
    own = parts[f"field_{place}"]
    return own.str.strip_suffix(f",{names[place]}") if place < len(names) else own


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
    for digits, factor in _UNITS.items():
        own = pl.lit(number) * factor if factor else pl.lit(number) // 1_000
        told = pl.when(pl.lit(length) == digits).then(own).otherwise(told)
    is_number = pl.lit(at.str.contains(r"^[1-9][0-9]*$"))
    return pl.select(pl.when(is_number).then(told)).to_series()


def _refused(lines: pl.DataFrame, reason: str) -> pl.DataFrame:
    return lines.select(
        pl.col("line").cast(pl.Int64), reason=pl.lit(reason), remedy=pl.lit(CUT), raw=pl.col("text")
    ).select(REJECT_SCHEMA.names())


def is_point(text: str) -> bool:
    """Return whether a line is a point with a field and a time."""
    return re.match(SOUND, text) is not None and re.search(r"=\S+ [0-9]{10,19}\s*$", text) is not None
