"""Parse Prometheus' text format, block by block.

A line is `name{label="value",…} value [timestamp]` (Prometheus' exposition formats; OpenMetrics 1.0 writes timestamps
in seconds). The part before the value identifies a series. An input has few series, even if they are scraped often, so
each is parsed only once. Series of one exporter have the same labels in the same order, so the text between the quoted
values repeats.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.sources.rows.field_use import is_recording, note_fields
from iosig.warehouse.sources.rows.rejects import build_refused_rows

Ints = npt.NDArray[np.int64]
#: maximum number of labels per line; lines with more are refused
_MAX_LABELS = 32
#: minimum number of lines from which a label that occurs in only one line is treated as damaged
_MIN_LINES = 10
_VALID_LINE = r"^(?:[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})? +[-+0-9.eEINFinfaN]+(?: +-?[0-9.]+)?(?: +# .*)?|#.*|)\s*$"
_METRIC = r"^([a-zA-Z_:][a-zA-Z0-9_:]*)"
_FIRST = re.compile(r"([a-zA-Z_:][\w:]*)\{ *([a-zA-Z_]\w*)=")
_NEXT = re.compile(r" *, *([a-zA-Z_]\w*)=")
_END = "} "
_TAIL = r"^ *,? *\} +(?P<value>[0-9][-+0-9.eE]*)(?: +(?P<at>[0-9]{9,13}(?:\.[0-9]{1,9})?))? *$"
_SUFFIXES = r"(?:_total|_created|_bucket|_sum|_count|_info)$"
_ESCAPES: Final = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_REMEDY = "Check for a truncated file, or two concurrent writers."
_NO_VALUE = "The value is not a non-negative integer."


class ParsedLines(NamedTuple):
    """Series and their values, parsed from lines.

    series: `name` and roles of each series. values: `line`, `snapshot`, `series` (an index), `value` (an integer) and
    `at_us` (NULL if the line has no timestamp), in the order of lines. refused: refused rows.
    """

    series: pl.DataFrame
    values: pl.DataFrame
    refused: pl.DataFrame

    def rows(self) -> pl.DataFrame:
        """Join the values with the names and roles of their series."""
        return pl.concat([self.values.drop("series"), self.series[self.values["series"].to_numpy()]], how="horizontal")


@dataclass(slots=True)
class Exposition:
    """Parses lines of the metrics `names`; `declared` collects the names of `# TYPE` and `# HELP` lines."""

    names: Collection[str]
    roles: Mapping[str, tuple[str, ...]]
    declared: set[str] = field(default_factory=set)

    def read(self, lines: pl.DataFrame) -> ParsedLines:
        """Parse lines, given as `line`, `text` and the number of their `snapshot`."""
        text = lines["text"]
        comments = text.filter(text.str.starts_with("#"))
        self.declared.update(comments.str.extract(r"^# (?:TYPE|HELP) ([^ ]+)").drop_nulls().unique())
        series_texts, coded = _encode_series(lines)
        start = r"^(?:" + "|".join(map(re.escape, sorted(self.names))) + r")\{"
        if is_recording():
            metrics = series_texts.str.extract(_METRIC).drop_nulls().unique(maintain_order=True)
            note_fields(dict.fromkeys(self.names, "a count"), metrics)
        is_selected = series_texts.str.contains(start).gather(coded["series"])
        refused = self._refuse_unknown(lines if not is_selected.any() else lines.filter(~is_selected))
        selected = _drop_repeated(coded if is_selected.all() else coded.filter(is_selected))
        shapes, reasons = _shapes(series_texts, selected["series"].unique().sort())
        reasons = _add_lone_labels(
            reasons, shapes, selected, {label for labels in self.roles.values() for label in labels}
        )
        values, faulty = _parse_values(selected, shapes, reasons)
        return ParsedLines(
            self._series(len(series_texts), shapes), values, pl.concat([refused, _refuse_lines(lines, faulty)])
        )

    def _refuse_unknown(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Refuse those lines of unused metrics that are damaged or have an undeclared name."""
        lines = lines.unique(["snapshot", "text"], keep="first", maintain_order=True)
        is_sound = lines["text"].str.contains(_VALID_LINE)
        name = lines["text"].str.extract(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)")
        declared_names = self.declared | {re.sub(_SUFFIXES, "", declared) for declared in self.declared}
        is_declared = (
            name.is_in(list(declared_names))
            | name.str.replace(_SUFFIXES, "").is_in(list(declared_names))
            | name.is_null()
        )
        damaged = pl.when(~pl.lit(is_sound)).then(pl.lit("The line is not a metric with a value."))
        undeclared = pl.when(~pl.lit(is_declared) & bool(self.declared)).then(
            pl.lit("No line declares the type of the metric.")
        )
        reason = pl.coalesce(damaged, undeclared)
        parsed = build_refused_rows(lines, reason, _REMEDY, "text")
        return parsed.filter(pl.col("reason").is_not_null())

    def _series(self, count: int, shapes: Sequence[_Shape]) -> pl.DataFrame:
        """Return names and roles of `count` series; damaged series have "" and NULL."""
        roles = {role: [shape.role(names) for shape in shapes] for role, names in self.roles.items()}
        columns = {"name": [shape.parts["name"] for shape in shapes], **roles}
        empty = pl.Series([], dtype=pl.String)
        rows = pl.DataFrame({name: pl.concat([empty, *parts]) for name, parts in columns.items()})
        place = np.full(count, -1)
        place[np.concatenate([np.zeros(0, np.int64), *(shape.series for shape in shapes)])] = np.arange(rows.height)
        result = rows.select(pl.all().gather(pl.Series(place).set(pl.Series(place < 0), None)))
        return result.with_columns(pl.col("name").fill_null(""))


def _encode_series(lines: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    """Dictionary-encode the series of lines, so that each series is parsed only once.

    Returns the text of each series, and lines as `place`, `line`, `snapshot`, `series`, `tail`. A series is the text up
    to the quote before the value, and the tail is the rest. A line of another form is a separate series without a tail.
    """
    text = lines["text"]
    split = text.str.splitn('"} ', 2).struct
    head, tail = split[0], split[1]
    is_regular = (tail.is_not_null() & ~head.str.contains("\\", literal=True)) & ~tail.str.contains('"', literal=True)
    is_regular = is_regular.fill_null(False)
    code = head.hash().zip_with(is_regular, text.hash(1))
    is_first = code.is_first_distinct()
    codes = pl.DataFrame({"code": code.filter(is_first)}).with_row_index("series")
    series = code.to_frame("code").join(codes, on="code", how="left", maintain_order="left")["series"]
    first = pl.DataFrame({"head": head, "text": text, "is_usual": is_regular}).filter(is_first)
    series_texts = first.select(pl.when("is_usual").then(pl.col("head") + '"').otherwise("text")).to_series()
    return series_texts, lines.select(
        pl.int_range(pl.len()).alias("place"),
        "line",
        "snapshot",
        series.cast(pl.Int64).alias("series"),
        pl.lit(tail.set(~is_regular, None)).alias("tail"),
    )


def _drop_repeated(coded: pl.DataFrame) -> pl.DataFrame:
    """Drop lines that repeat another line in their snapshot."""
    of_snapshot = coded.select(pl.struct("snapshot", "series").n_unique()).item()
    if of_snapshot == coded.height:
        return coded
    return coded.unique(["snapshot", "series", "tail"], keep="first", maintain_order=True)


class _Shape(NamedTuple):
    """Series with the same labels in the same order, split at their quotes; a damaged label is None."""

    series: Ints
    parts: pl.DataFrame
    labels: list[str | None]

    @property
    def tail(self) -> pl.Series:
        """Text after the last label's value."""
        return self.parts[f"field_{2 * len(self.labels)}"]

    def role(self, names: Sequence[str]) -> pl.Series:
        """Return the values of the first of these labels that the series have; NULL if they have none."""
        index = next((self.labels.index(name) for name in names if name in self.labels), None)
        if index is None:
            return pl.Series([None], dtype=pl.String).new_from_index(0, self.parts.height)
        return self.parts[f"field_{2 * index + 1}"]


def _shapes(series_texts: pl.Series, selected: pl.Series) -> tuple[list[_Shape], pl.DataFrame]:
    """Group series by their labels; also return damaged series with `series` and `reason`."""
    text = series_texts.gather(selected)
    escaped = text.str.contains("\\", literal=True)
    if escaped.any():
        text = text.zip_with(~escaped, text.map_elements(_unescape, pl.String))
    quotes = text.str.count_matches('"', literal=True).to_numpy()
    shapes: list[_Shape] = []
    reasons = [_reasons([], "")]
    for count in np.unique(quotes).tolist():
        indices = np.flatnonzero(quotes == count)
        if not count or count % 2 or count > 2 * _MAX_LABELS:
            reasons.append(_reasons(selected.gather(indices), "The quotes of the line do not match."))
            continue
        for shape in _group_by_labels(selected.gather(indices).to_numpy(), text.gather(indices), count // 2):
            shapes.append(shape)
            if None in shape.labels or len(set(shape.labels)) < len(shape.labels):
                reasons.append(_reasons(shape.series, "The labels of the line are damaged."))
    return shapes, pl.concat(reasons)


def _reasons(series: pl.Series | Ints | list[int], reason: str) -> pl.DataFrame:
    return pl.DataFrame({"series": pl.Series(series, dtype=pl.Int64)}).with_columns(reason=pl.lit(reason))


def _group_by_labels(series: Ints, text: pl.Series, count: int) -> Iterator[_Shape]:
    """Yield series with `count` labels, grouped by their label names."""
    parts = text.str.splitn('"', 2 * count + 1).struct.unnest()
    starts = {text: _FIRST.fullmatch(text) for text in parts["field_0"].unique().to_list()}
    for index, name in ((1, "name"), (2, "label")):
        parsed = parts["field_0"].replace_strict(
            {text: match and match[index] for text, match in starts.items()}, return_dtype=pl.String
        )
        parts = parts.with_columns(parsed.alias(name))
    while parts.height:
        is_same = parts["label"].eq_missing(parts["label"][0])
        for index in range(2, 2 * count, 2):
            is_same &= parts[f"field_{index}"] == parts[f"field_{index}"][0]
        matches = (_NEXT.fullmatch(parts[f"field_{2 * index}"][0]) for index in range(1, count))
        labels = [parts["label"][0], *(match and match[1] for match in matches)]
        yield _Shape(series[is_same.to_numpy()], parts.filter(is_same), labels)
        series, parts = series[~is_same.to_numpy()], parts.filter(~is_same)


def _add_lone_labels(
    reasons: pl.DataFrame, shapes: Sequence[_Shape], selected: pl.DataFrame, role_labels: Collection[str]
) -> pl.DataFrame:
    """Add a reason (`series`, `snapshot`, `reason`) for each label that only one line of a snapshot has.

    role_labels: labels with a role, which are exempt, since they may be rare. A reason without a snapshot applies to
    all snapshots.
    """
    everywhere = reasons.with_columns(snapshot=pl.lit(None, pl.Int64))
    unknown_labels = {label for shape in shapes for label in shape.labels} - set(role_labels) - {None}
    if not unknown_labels:
        return everywhere
    snapshots = selected["snapshot"].unique().sort()
    of_series = np.full(int(selected["series"].max() or 0) + 1, -1)  # type: ignore[arg-type]
    for number, shape in enumerate(shapes):
        of_series[shape.series] = number
    snapshot_indices = snapshots.search_sorted(selected["snapshot"]).to_numpy()
    shape_numbers = of_series[selected["series"].to_numpy()]
    is_shaped, size = shape_numbers >= 0, (len(shapes), len(snapshots))
    counts = np.bincount((shape_numbers * size[1] + snapshot_indices)[is_shaped], minlength=size[0] * size[1]).reshape(
        size
    )
    is_enough = np.bincount(snapshot_indices, minlength=size[1]) >= _MIN_LINES
    parts = [everywhere]
    for label in sorted(label for label in unknown_labels if label):
        with_it = np.array([label in shape.labels for shape in shapes])
        is_alone = (np.minimum(counts, 2) * with_it[:, None]).sum(axis=0) == 1
        for number, place in np.argwhere((counts == 1) & with_it[:, None] & (is_alone & is_enough)).tolist():
            parsed = _reasons(shapes[number].series, f"No other line has the label `{label}`.")
            parts.append(parsed.with_columns(snapshot=pl.lit(snapshots[place], pl.Int64)))
    return pl.concat(parts)


def _parse_values(
    selected: pl.DataFrame, shapes: Sequence[_Shape], reasons: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Parse the values of lines; also return lines without a value as `place`, `line` and `reason`."""
    value, at_us = _parse_ends(selected["tail"])
    is_odd = value.is_null() & selected["tail"].is_null()
    if is_odd.any():
        ends = _parse_series_ends(shapes, selected.filter(is_odd)["series"])
        value, at_us = (
            column.scatter(is_odd.arg_true(), odd_values)
            for column, odd_values in zip((value, at_us), ends, strict=True)
        )
    parsed = selected.select("place", "line", "snapshot", "series", value.alias("value"), at_us.alias("at_us"))
    if reasons.is_empty() and not value.has_nulls():
        return parsed.drop("place"), parsed.select("place", "line", reason=pl.lit(None, pl.String)).clear()
    series_reasons = reasons.filter(pl.col("snapshot").is_null()).drop("snapshot").unique("series", keep="first")
    snapshot_reasons = reasons.filter(pl.col("snapshot").is_not_null()).unique(["series", "snapshot"], keep="first")
    checked = (
        parsed.join(series_reasons, on="series", how="left", maintain_order="left")
        .join(snapshot_reasons, on=["series", "snapshot"], how="left", maintain_order="left", suffix="_once")
        .with_columns(
            reason=pl.coalesce("reason", "reason_once", pl.when(pl.col("value").is_null()).then(pl.lit(_NO_VALUE)))
        )
    )
    is_good = pl.col("reason").is_null()
    return checked.filter(is_good).select(parsed.columns).drop("place"), checked.filter(~is_good).select(
        "place", "line", "reason"
    )


def _parse_series_ends(shapes: Sequence[_Shape], series: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Parse the values and timestamps [us] of series that consist of one line."""
    parts = [pl.DataFrame({"series": shape.series, "tail": shape.tail}) for shape in shapes]
    tails = pl.concat([pl.DataFrame(schema={"series": pl.Int64, "tail": pl.String}), *parts])
    text = series.to_frame("series").join(tails, on="series", how="left", maintain_order="left")["tail"]
    return _parse_ends(text.str.strip_prefix(_END), text)


def _parse_ends(tails: pl.Series, full_ends: pl.Series | None = None) -> tuple[pl.Series, pl.Series]:
    """Parse the values and timestamps [us] after the labels; NULL if absent.

    full_ends: the complete ends of lines, if they may deviate from the regular form.
    """
    value = tails.cast(pl.Int64, strict=False)
    at_us = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(tails))
    is_bad = (value.is_null() | (value < 0)) & tails.is_not_null()
    if not is_bad.any():
        return value, at_us
    whole_tails = _END + tails.filter(is_bad) if full_ends is None else full_ends.filter(is_bad)
    ends = whole_tails.str.extract_groups(_TAIL).struct.unnest()
    integers, timestamps = ends["value"].cast(pl.Int64, strict=False), ends["at"].cast(pl.Float64)
    if integers.has_nulls():
        integers = integers.zip_with(integers.is_not_null(), _parse_exponent(ends["value"]))
    # OpenMetrics writes seconds, the older format milliseconds
    own_us = (timestamps.zip_with(timestamps > 1e11, timestamps * 1e3) * 1e3).round().cast(pl.Int64)
    return value.scatter(is_bad.arg_true(), integers), at_us.scatter(is_bad.arg_true(), own_us)


def _parse_exponent(texts: pl.Series) -> pl.Series:
    """Parse integers that Go wrote with an exponent; NULL for other numbers."""
    number = texts.cast(pl.Float64, strict=False)
    return number.set(~((number == number.floor()) & (number < 2.0**63)).fill_null(False), None).cast(pl.Int64)


def _unescape(text: str) -> str:
    """Resolve escapes; a quote within a label becomes an apostrophe, so that it does not split the line."""
    unescaped = re.sub(r'\\[\\"n]', lambda match: _ESCAPES[match[0]].replace('"', "'").replace("\n", " "), text)
    return unescaped


def _refuse_lines(lines: pl.DataFrame, faulty: pl.DataFrame) -> pl.DataFrame:
    raw = lines["text"].gather(faulty["place"])
    return build_refused_rows(faulty.with_columns(raw.alias("raw")), pl.col("reason"), _REMEDY)
