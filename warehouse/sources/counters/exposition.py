"""Prometheus' text format: from lines to values with their labels, all of a block at once.

A line is `name{label="value",…} value [timestamp]` (Prometheus' exposition formats; OpenMetrics 1.0 writes timestamps
in seconds). Lines of one exporter have the same labels in the same order: what stands between the quotes is the same
few texts, which are read once each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import polars as pl

from warehouse.sources.rows.rejects import SCHEMA as REJECT_SCHEMA

#: labels of a line that is read with others; one with more is refused
_MOST_LABELS = 32
#: of so many lines, a label that one line has alone is a damaged one
_ENOUGH_LINES = 10
_SOUND = r"^(?:[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})? +[-+0-9.eEINFinfaN]+(?: +-?[0-9.]+)?(?: +# .*)?|#.*|)\s*$"
_FIRST = re.compile(r"([a-zA-Z_:][\w:]*)\{ *([a-zA-Z_]\w*)=")
_NEXT = re.compile(r" *, *([a-zA-Z_]\w*)=")
_TAIL = r"^ *,? *\} +(?P<value>[0-9][-+0-9.eE]*)(?: +(?P<at>[0-9]{9,13}(?:\.[0-9]{1,9})?))? *$"
_SUFFIXES = r"(?:_total|_created|_bucket|_sum|_count|_info)$"
_ESCAPES: Final = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_REMEDY = "Check for a cut file, or one that two wrote at once."


@dataclass(slots=True)
class Exposition:
    """Reads lines of metrics of these names; `declared` are those that a `# TYPE` line named."""

    names: Collection[str]
    roles: Mapping[str, tuple[str, ...]]
    declared: set[str] = field(default_factory=set)

    def read(self, lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return values and refused lines, of lines as `line` and `text`.

        Values have `line`, `name`, the roles, `value` (whole) and `at_us` (NULL where the line has no timestamp).
        """
        # what says the same twice says it once
        is_first = lines["text"].hash().is_first_distinct()
        lines = lines if is_first.all() else lines.filter(is_first)
        comments = lines.filter(lines["text"].str.starts_with("#"))
        types = comments["text"].str.extract(r"^# (?:TYPE|HELP) ([^ ]+)").drop_nulls().unique()
        self.declared.update(types)
        start = r"^(?:" + "|".join(map(re.escape, sorted(self.names))) + r")\{"
        is_meant = lines["text"].str.contains(start)
        refused = [self._strange(lines.filter(~is_meant))]
        found = []
        for values, bad in self._by_shape(lines.filter(is_meant)):
            found.append(values)
            refused.append(bad)
        return pl.concat([_none(self.roles), *found]), pl.concat(refused)

    def _strange(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Return the lines of no metric that is meant that are damaged, or have a name that nobody declared."""
        is_sound = lines["text"].str.contains(_SOUND)
        name = lines["text"].str.extract(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)")
        known = self.declared | {re.sub(_SUFFIXES, "", declared) for declared in self.declared}
        of_family = name.is_in(list(known)) | name.str.replace(_SUFFIXES, "").is_in(list(known)) | name.is_null()
        damaged = _refused(lines.filter(~is_sound), "The line is no metric with its value.")
        if not self.declared:
            return damaged
        undeclared = lines.filter(is_sound & ~of_family)
        return pl.concat([damaged, _refused(undeclared, "No line declares the type of the metric.")])

    def _by_shape(self, lines: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield values and refused lines, those with as many labels together."""
        text = lines["text"]
        escaped = text.str.contains("\\", literal=True)
        if escaped.any():
            plain = text.filter(escaped).map_elements(_without_escapes, pl.String)
            lines = pl.concat([lines.filter(~escaped), lines.filter(escaped).with_columns(plain.alias("text"))])
        shapes: list[_Shape] = []
        quotes = lines["text"].str.count_matches('"', literal=True)
        for count in quotes.unique().to_list():
            own = lines.filter(quotes == count)
            if not count or count % 2 or count > 2 * _MOST_LABELS:
                yield _none(self.roles), _refused(own, "The quotes of the line do not match.")
            else:
                shapes += _shapes(own, count // 2)
        on = Counter(label for shape in shapes for label in shape.labels for _ in range(min(shape.lines.height, 2)))
        known = {label for of in self.roles.values() for label in of}
        for shape in shapes:
            alone = [label for label in shape.labels if on[label] == 1 and label not in known]
            if None in shape.labels or len(set(shape.labels)) < len(shape.labels):
                yield _none(self.roles), _refused(shape.lines, "The labels of the line are damaged.")
            elif alone and lines.height >= _ENOUGH_LINES:
                yield _none(self.roles), _refused(shape.lines, f"No other line has the label `{alone[0]}`.")
            else:
                yield self._values(shape)

    def _values(self, shape: _Shape) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the values of lines that have the same labels in the same order; their names may differ."""
        place = {label: f"field_{2 * index + 1}" for index, label in enumerate(shape.labels) if label}
        value, at_us = _ends(shape.parts[f"field_{2 * len(shape.labels)}"])
        values = shape.lines.select(
            "line",
            shape.parts["name"],
            *(_role(shape.parts, place, of).alias(role) for role, of in self.roles.items()),
            value.alias("value"),
            at_us.alias("at_us"),
        )
        is_good = value.is_not_null()
        if is_good.all():
            return values, _refused(shape.lines.clear(), "")
        bad = shape.lines.filter(~is_good)
        return values.filter(is_good), _refused(bad, "The value is no whole number of at least 0.")


class _Shape(NamedTuple):
    """Lines with the same labels in the same order, split at their quotes; a label is None where it is damaged."""

    lines: pl.DataFrame
    parts: pl.DataFrame
    labels: list[str | None]


def _shapes(lines: pl.DataFrame, count: int) -> Iterator[_Shape]:
    """Yield lines of so many labels by what their labels are."""
    parts = lines["text"].str.splitn('"', 2 * count + 1).struct.unnest()
    starts = {text: _FIRST.fullmatch(text) for text in parts["field_0"].unique().to_list()}
    for index, name in ((1, "name"), (2, "label")):
        told = parts["field_0"].replace_strict(
            {text: match and match[index] for text, match in starts.items()}, return_dtype=pl.String
        )
        parts = parts.with_columns(told.alias(name))
    while lines.height:
        alike = parts["label"].eq_missing(parts["label"][0])
        for index in range(2, 2 * count, 2):
            alike &= parts[f"field_{index}"] == parts[f"field_{index}"][0]
        others = (_NEXT.fullmatch(parts[f"field_{2 * index}"][0]) for index in range(1, count))
        labels = [parts["label"][0], *(match and match[1] for match in others)]
        yield _Shape(lines.filter(alike), parts.filter(alike), labels)
        lines, parts = lines.filter(~alike), parts.filter(~alike)


def _ends(tails: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the values and the timestamps [us] behind the labels, NULL where there are none."""
    value = tails.str.strip_prefix("} ").cast(pl.Int64, strict=False)
    at_us = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(tails))
    is_bad = value.is_null() | (value < 0)
    if not is_bad.any():
        return value, at_us
    ends = tails.filter(is_bad).str.extract_groups(_TAIL).struct.unnest()
    whole, at = ends["value"].cast(pl.Int64, strict=False), ends["at"].cast(pl.Float64)
    if whole.has_nulls():
        whole = whole.zip_with(whole.is_not_null(), _whole(ends["value"]))
    # OpenMetrics has seconds, the older format milliseconds
    own_us = (at.zip_with(at > 1e11, at * 1e3) * 1e3).round().cast(pl.Int64)
    return value.scatter(is_bad.arg_true(), whole), at_us.scatter(is_bad.arg_true(), own_us)


def _role(parts: pl.DataFrame, place: Mapping[str, str], names: tuple[str, ...]) -> pl.Series:
    for name in names:
        if name in place:
            return parts[place[name]]
    return pl.Series([None], dtype=pl.String).new_from_index(0, parts.height)


def _whole(texts: pl.Series) -> pl.Series:
    """Return numbers that Go wrote with an exponent, where they are whole; NULL for others."""
    number = texts.cast(pl.Float64, strict=False)
    return number.set(~((number == number.floor()) & (number < 2.0**63)).fill_null(False), None).cast(pl.Int64)


def _without_escapes(text: str) -> str:
    """Return a line without escapes: a quote within a label becomes an apostrophe, which splits nothing."""
    plain = re.sub(r'\\[\\"n]', lambda found: _ESCAPES[found[0]].replace('"', "'").replace("\n", " "), text)
    return plain


def _none(roles: Mapping[str, tuple[str, ...]]) -> pl.DataFrame:
    texts = dict.fromkeys(("name", *roles), pl.String)
    return pl.DataFrame(schema={"line": pl.Int64, **texts, "value": pl.Int64, "at_us": pl.Int64})


def _refused(lines: pl.DataFrame, reason: str) -> pl.DataFrame:
    return lines.select(
        pl.col("line").cast(pl.Int64), reason=pl.lit(reason), remedy=pl.lit(_REMEDY), raw=pl.col("text")
    ).select(REJECT_SCHEMA.names())
