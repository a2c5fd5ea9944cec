"""Prometheus' text format: from lines to values with their labels, all of a block at once.

A line is `name{label="value",…} value [timestamp]` (Prometheus' exposition formats; OpenMetrics 1.0 writes timestamps
in seconds). What stands before the value names a series: of these there are few, however often they were scraped, and
each is read once. Series of one exporter have the same labels in the same order, so that what stands between the quotes
is the same few texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.sources.rows.rejects import refused_rows

Ints = npt.NDArray[np.int64]
#: labels of a line that is read with others; one with more is refused
_MOST_LABELS = 32
#: of so many lines, a label that one line has alone is a damaged one
_ENOUGH_LINES = 10
_SOUND = r"^(?:[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})? +[-+0-9.eEINFinfaN]+(?: +-?[0-9.]+)?(?: +# .*)?|#.*|)\s*$"
_FIRST = re.compile(r"([a-zA-Z_:][\w:]*)\{ *([a-zA-Z_]\w*)=")
_NEXT = re.compile(r" *, *([a-zA-Z_]\w*)=")
_END = "} "
_TAIL = r"^ *,? *\} +(?P<value>[0-9][-+0-9.eE]*)(?: +(?P<at>[0-9]{9,13}(?:\.[0-9]{1,9})?))? *$"
_SUFFIXES = r"(?:_total|_created|_bucket|_sum|_count|_info)$"
_ESCAPES: Final = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_REMEDY = "Check for a cut file, or one that two wrote at once."
_NO_VALUE = "The value is no whole number of at least 0."


class Told(NamedTuple):
    """What lines say.

    series: `name` and the roles of each. values: `line`, `snapshot`, `series` (its place there), `value` (whole) and
    `at_us` (NULL where the line has no timestamp), in the order of lines. refused: lines as refused rows.
    """

    series: pl.DataFrame
    values: pl.DataFrame
    refused: pl.DataFrame

    def rows(self) -> pl.DataFrame:
        """Return the values with the name and the roles of their series."""
        return pl.concat([self.values.drop("series"), self.series[self.values["series"].to_numpy()]], how="horizontal")


@dataclass(slots=True)
class Exposition:
    """Reads lines of metrics of these names; `declared` are those that a `# TYPE` line named."""

    names: Collection[str]
    roles: Mapping[str, tuple[str, ...]]
    declared: set[str] = field(default_factory=set)

    def read(self, lines: pl.DataFrame) -> Told:
        """Return what lines say, given as `line`, `text` and the number of their `snapshot`."""
        text = lines["text"]
        comments = text.filter(text.str.starts_with("#"))
        self.declared.update(comments.str.extract(r"^# (?:TYPE|HELP) ([^ ]+)").drop_nulls().unique())
        said, coded = _coded(lines)
        start = r"^(?:" + "|".join(map(re.escape, sorted(self.names))) + r")\{"
        is_meant = said.str.contains(start).gather(coded["series"])
        strange = self._strange(lines if not is_meant.any() else lines.filter(~is_meant))
        meant = _once(coded if is_meant.all() else coded.filter(is_meant))
        shapes, reasons = _shapes(said, meant["series"].unique().sort())
        reasons = _with_lonely(reasons, shapes, meant, {label for of in self.roles.values() for label in of})
        values, faulty = _valued(meant, shapes, reasons)
        return Told(self._series(len(said), shapes), values, pl.concat([strange, _refused(lines, faulty)]))

    def _strange(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Return the lines of no metric that is meant that are damaged, or have a name that nobody declared."""
        lines = lines.unique(["snapshot", "text"], keep="first", maintain_order=True)
        is_sound = lines["text"].str.contains(_SOUND)
        name = lines["text"].str.extract(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)")
        known = self.declared | {re.sub(_SUFFIXES, "", declared) for declared in self.declared}
        of_family = name.is_in(list(known)) | name.str.replace(_SUFFIXES, "").is_in(list(known)) | name.is_null()
        damaged = pl.when(~pl.lit(is_sound)).then(pl.lit("The line is no metric with its value."))
        undeclared = pl.when(~pl.lit(of_family) & bool(self.declared)).then(
            pl.lit("No line declares the type of the metric.")
        )
        reason = pl.coalesce(damaged, undeclared)
        told = refused_rows(lines, reason, _REMEDY, "text")
        return told.filter(pl.col("reason").is_not_null())

    def _series(self, count: int, shapes: Sequence[_Shape]) -> pl.DataFrame:
        """Return the names and roles of so many series: those of damaged ones are "" and NULL."""
        roles = {role: [shape.role(names) for shape in shapes] for role, names in self.roles.items()}
        columns = {"name": [shape.parts["name"] for shape in shapes], **roles}
        empty = pl.Series([], dtype=pl.String)
        known = pl.DataFrame({name: pl.concat([empty, *parts]) for name, parts in columns.items()})
        place = np.full(count, -1)
        place[np.concatenate([np.zeros(0, np.int64), *(shape.series for shape in shapes)])] = np.arange(known.height)
        found = known.select(pl.all().gather(pl.Series(place).set(pl.Series(place < 0), None)))
        return found.with_columns(pl.col("name").fill_null(""))


def _coded(lines: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    """Return what names each series, and lines as `place`, `line`, `snapshot`, `series` and `tail`.

    Up to the quote before the value it is the series that a line is of, and behind it is the tail. A line that is
    written otherwise is a series of its own, without a tail.
    """
    text = lines["text"]
    split = text.str.splitn('"} ', 2).struct
    head, tail = split[0], split[1]
    is_usual = (tail.is_not_null() & ~head.str.contains("\\", literal=True)) & ~tail.str.contains('"', literal=True)
    is_usual = is_usual.fill_null(False)
    code = head.hash().zip_with(is_usual, text.hash(1))
    is_first = code.is_first_distinct()
    known = pl.DataFrame({"code": code.filter(is_first)}).with_row_index("series")
    series = code.to_frame("code").join(known, on="code", how="left", maintain_order="left")["series"]
    first = pl.DataFrame({"head": head, "text": text, "is_usual": is_usual}).filter(is_first)
    said = first.select(pl.when("is_usual").then(pl.col("head") + '"').otherwise("text")).to_series()
    return said, lines.select(
        pl.int_range(pl.len()).alias("place"),
        "line",
        "snapshot",
        series.cast(pl.Int64).alias("series"),
        pl.lit(tail.set(~is_usual, None)).alias("tail"),
    )


def _once(coded: pl.DataFrame) -> pl.DataFrame:
    """Return lines without those that say again what another one of their snapshot says."""
    of_snapshot = coded.select(pl.struct("snapshot", "series").n_unique()).item()
    if of_snapshot == coded.height:
        return coded
    return coded.unique(["snapshot", "series", "tail"], keep="first", maintain_order=True)


class _Shape(NamedTuple):
    """Series with the same labels in the same order, split at their quotes; a label is None where it is damaged."""

    series: Ints
    parts: pl.DataFrame
    labels: list[str | None]

    @property
    def tail(self) -> pl.Series:
        """What stands behind the last label."""
        return self.parts[f"field_{2 * len(self.labels)}"]

    def role(self, names: Sequence[str]) -> pl.Series:
        """Return the values of the first of these labels that there is, NULL where there is none."""
        there = next((self.labels.index(name) for name in names if name in self.labels), None)
        if there is None:
            return pl.Series([None], dtype=pl.String).new_from_index(0, self.parts.height)
        return self.parts[f"field_{2 * there + 1}"]


def _shapes(said: pl.Series, meant: pl.Series) -> tuple[list[_Shape], pl.DataFrame]:
    """Return some series by what their labels are, and as `series` and `reason` those that are damaged."""
    text = said.gather(meant)
    escaped = text.str.contains("\\", literal=True)
    if escaped.any():
        text = text.zip_with(~escaped, text.map_elements(_without_escapes, pl.String))
    quotes = text.str.count_matches('"', literal=True).to_numpy()
    shapes: list[_Shape] = []
    reasons = [_reasons([], "")]
    for count in np.unique(quotes).tolist():
        own = np.flatnonzero(quotes == count)
        if not count or count % 2 or count > 2 * _MOST_LABELS:
            reasons.append(_reasons(meant.gather(own), "The quotes of the line do not match."))
            continue
        for shape in _of_labels(meant.gather(own).to_numpy(), text.gather(own), count // 2):
            shapes.append(shape)
            if None in shape.labels or len(set(shape.labels)) < len(shape.labels):
                reasons.append(_reasons(shape.series, "The labels of the line are damaged."))
    return shapes, pl.concat(reasons)


def _reasons(series: pl.Series | Ints | list[int], reason: str) -> pl.DataFrame:
    return pl.DataFrame({"series": pl.Series(series, dtype=pl.Int64)}).with_columns(reason=pl.lit(reason))


def _of_labels(series: Ints, text: pl.Series, count: int) -> Iterator[_Shape]:
    """Yield series of so many labels by what their labels are."""
    parts = text.str.splitn('"', 2 * count + 1).struct.unnest()
    starts = {text: _FIRST.fullmatch(text) for text in parts["field_0"].unique().to_list()}
    for index, name in ((1, "name"), (2, "label")):
        told = parts["field_0"].replace_strict(
            {text: match and match[index] for text, match in starts.items()}, return_dtype=pl.String
        )
        parts = parts.with_columns(told.alias(name))
    while parts.height:
        alike = parts["label"].eq_missing(parts["label"][0])
        for index in range(2, 2 * count, 2):
            alike &= parts[f"field_{index}"] == parts[f"field_{index}"][0]
        others = (_NEXT.fullmatch(parts[f"field_{2 * index}"][0]) for index in range(1, count))
        labels = [parts["label"][0], *(match and match[1] for match in others)]
        yield _Shape(series[alike.to_numpy()], parts.filter(alike), labels)
        series, parts = series[~alike.to_numpy()], parts.filter(~alike)


def _with_lonely(
    reasons: pl.DataFrame, shapes: Sequence[_Shape], meant: pl.DataFrame, known: Collection[str]
) -> pl.DataFrame:
    """Add as `series`, `snapshot` and `reason` the lines with a label that no other line of their snapshot has.

    known: labels that mean something, however few have them. A reason without a snapshot holds for all.
    """
    everywhere = reasons.with_columns(snapshot=pl.lit(None, pl.Int64))
    rare = {label for shape in shapes for label in shape.labels} - set(known) - {None}
    if not rare:
        return everywhere
    snapshots = meant["snapshot"].unique().sort()
    of_series = np.full(int(meant["series"].max() or 0) + 1, -1)  # type: ignore[arg-type]
    for number, shape in enumerate(shapes):
        of_series[shape.series] = number
    at = snapshots.search_sorted(meant["snapshot"]).to_numpy()
    own = of_series[meant["series"].to_numpy()]
    is_shaped, size = own >= 0, (len(shapes), len(snapshots))
    counts = np.bincount((own * size[1] + at)[is_shaped], minlength=size[0] * size[1]).reshape(size)
    is_enough = np.bincount(at, minlength=size[1]) >= _ENOUGH_LINES
    found = [everywhere]
    for label in sorted(label for label in rare if label):
        with_it = np.array([label in shape.labels for shape in shapes])
        is_alone = (np.minimum(counts, 2) * with_it[:, None]).sum(axis=0) == 1
        for number, place in np.argwhere((counts == 1) & with_it[:, None] & (is_alone & is_enough)).tolist():
            told = _reasons(shapes[number].series, f"No other line has the label `{label}`.")
            found.append(told.with_columns(snapshot=pl.lit(snapshots[place], pl.Int64)))
    return pl.concat(found)


def _valued(meant: pl.DataFrame, shapes: Sequence[_Shape], reasons: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the values of lines, and as `place`, `line` and `reason` the lines that have none."""
    value, at_us = _ends(meant["tail"])
    is_odd = value.is_null() & meant["tail"].is_null()
    if is_odd.any():
        ends = _own_ends(shapes, meant.filter(is_odd)["series"])
        value, at_us = (known.scatter(is_odd.arg_true(), own) for known, own in zip((value, at_us), ends, strict=True))
    told = meant.select("place", "line", "snapshot", "series", value.alias("value"), at_us.alias("at_us"))
    if reasons.is_empty() and not value.has_nulls():
        return told.drop("place"), told.select("place", "line", reason=pl.lit(None, pl.String)).clear()
    always = reasons.filter(pl.col("snapshot").is_null()).drop("snapshot").unique("series", keep="first")
    once = reasons.filter(pl.col("snapshot").is_not_null()).unique(["series", "snapshot"], keep="first")
    found = (
        told.join(always, on="series", how="left", maintain_order="left")
        .join(once, on=["series", "snapshot"], how="left", maintain_order="left", suffix="_once")
        .with_columns(
            reason=pl.coalesce("reason", "reason_once", pl.when(pl.col("value").is_null()).then(pl.lit(_NO_VALUE)))
        )
    )
    is_good = pl.col("reason").is_null()
    return found.filter(is_good).select(told.columns).drop("place"), found.filter(~is_good).select(
        "place", "line", "reason"
    )


def _own_ends(shapes: Sequence[_Shape], series: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the values and timestamps [us] of series that are a line each."""
    known = [pl.DataFrame({"series": shape.series, "tail": shape.tail}) for shape in shapes]
    tails = pl.concat([pl.DataFrame(schema={"series": pl.Int64, "tail": pl.String}), *known])
    own = series.to_frame("series").join(tails, on="series", how="left", maintain_order="left")["tail"]
    return _ends(own.str.strip_prefix(_END), own)


def _ends(tails: pl.Series, written: pl.Series | None = None) -> tuple[pl.Series, pl.Series]:
    """Return the values and the timestamps [us] behind the labels, NULL where there are none.

    written: the tails with what stands before them, where that may be otherwise than it mostly is.
    """
    value = tails.cast(pl.Int64, strict=False)
    at_us = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(tails))
    is_bad = (value.is_null() | (value < 0)) & tails.is_not_null()
    if not is_bad.any():
        return value, at_us
    whole_tails = _END + tails.filter(is_bad) if written is None else written.filter(is_bad)
    ends = whole_tails.str.extract_groups(_TAIL).struct.unnest()
    whole, at = ends["value"].cast(pl.Int64, strict=False), ends["at"].cast(pl.Float64)
    if whole.has_nulls():
        whole = whole.zip_with(whole.is_not_null(), _whole(ends["value"]))
    # OpenMetrics has seconds, the older format milliseconds
    own_us = (at.zip_with(at > 1e11, at * 1e3) * 1e3).round().cast(pl.Int64)
    return value.scatter(is_bad.arg_true(), whole), at_us.scatter(is_bad.arg_true(), own_us)


def _whole(texts: pl.Series) -> pl.Series:
    """Return numbers that Go wrote with an exponent, where they are whole; NULL for others."""
    number = texts.cast(pl.Float64, strict=False)
    return number.set(~((number == number.floor()) & (number < 2.0**63)).fill_null(False), None).cast(pl.Int64)


def _without_escapes(text: str) -> str:
    """Return a line without escapes: a quote within a label becomes an apostrophe, which splits nothing."""
    plain = re.sub(r'\\[\\"n]', lambda found: _ESCAPES[found[0]].replace('"', "'").replace("\n", " "), text)
    return plain


def _refused(lines: pl.DataFrame, faulty: pl.DataFrame) -> pl.DataFrame:
    raw = lines["text"].gather(faulty["place"])
    return refused_rows(faulty.with_columns(raw.alias("raw")), pl.col("reason"), _REMEDY)
