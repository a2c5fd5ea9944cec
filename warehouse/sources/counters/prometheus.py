"""Counters as Prometheus has them: an exporter's text, or what the server's HTTP API answers (`prometheus_json`).

An exporter's text does not say when it was read. A line's own time stamp goes first, then a line before all of it
(`date +%s`, ISO 8601), then the file's name, and at last the time of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.counters import COMPONENT
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import metrics, prometheus_json, samples
from iosig.warehouse.sources.counters.changes import CUT, Changes, news, wide, wide_of_series
from iosig.warehouse.sources.counters.exposition import Exposition, Told
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import text_blocks, times
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.rejects import Refused, frame_of

#: text that is read at once
BLOCK_BYTES = 16 << 20
_TIME = r"^#? ?([0-9]{10}(?:\.[0-9]{1,9})?|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{5,}[^\s]{0,6})\s*$"
_DECLARED = re.compile(r"^# (?:TYPE|HELP) [a-zA-Z_:]", re.MULTILINE)
_VALUE = re.compile(r"[a-zA-Z_:][\w:]*\{[^\n]*\} +[-+0-9.eEINFinfaN]+(?: +[0-9.]+)?")


def sniff(head: Head) -> bool:
    """Return whether the content is metrics as text, or an answer of Prometheus' HTTP API."""
    if prometheus_json.is_answer(head.text):
        return True
    lines = [line for line in head.lines if line.strip() and not re.fullmatch(_TIME, line)]
    return bool(lines) and (bool(_DECLARED.match(lines[0])) or _VALUE.fullmatch(lines[0]) is not None)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read metrics; raise InputRefused where none of them count bytes or operations of storage."""
    zone = times.require_zone(reading.time_zone)
    if prometheus_json.is_answer_of(path):
        yield from prometheus_json.read(path, reading)
        return
    text = _Text(path, reading, zone)
    for block in text_blocks.blocks(path, BLOCK_BYTES, has_header=False):
        yield from text.take(block)
    yield from text.end()


@dataclass(slots=True)
class _Text:
    """Snapshots of metrics, each of which begins with a time or is the only one.

    They are numbered; the last one of a block may go on in the next block.
    """

    path: Path
    reading: Reading
    zone: str | None
    has_any: bool = False
    _number: int = 0
    _stamps_us: dict[int, int | None] = field(default_factory=lambda: {0: None})
    _told: list[Told] = field(default_factory=list)
    _refused: list[pl.DataFrame] = field(default_factory=list)
    _changes: Changes = field(default_factory=Changes)
    _exposition: Exposition = field(init=False)
    _columns: dict[str, str | None] = field(init=False)

    def __post_init__(self) -> None:
        self._columns = metrics.columns_of(self.reading)
        self._exposition = Exposition(self._columns, metrics.roles_of(self.reading))

    def take(self, block: text_blocks.Block) -> Iterator[Batch]:
        """Take whole lines; yield the snapshots that end there."""
        lines = text_blocks.lines(block)
        # few lines begin as a time does: the others need no closer look
        may_be = lines["text"].str.head(1).is_in(list("# 0123456789")).arg_true()
        stamps = lines[may_be.to_numpy()].with_columns(time=pl.col("text").str.extract(_TIME)).drop_nulls("time")
        for number, (line, text) in enumerate(stamps.select("line", "time").iter_rows(), self._number + 1):
            self._stamps_us[number] = at_us = samples.instant_us(text, self.zone)
            if at_us is None:
                self._refused.append(frame_of([(line, "This is no time.", CUT, text)]))
        told = stamps["line"].search_sorted(lines["line"], side="right").cast(pl.Int64) + self._number
        own = lines.with_columns(snapshot=told)
        self._add(own if stamps.is_empty() else own.join(stamps, on="line", how="anti", maintain_order="left"))
        self._number += stamps.height
        if stamps.height:
            yield from self._ended(is_end=False)

    def _add(self, lines: pl.DataFrame) -> None:
        if not lines.is_empty():
            told = self._exposition.read(lines)
            self._told.append(told)
            self._refused.append(told.refused)

    def end(self) -> Iterator[Batch]:
        """Yield the last snapshot, and when each was read."""
        yield from self._ended(is_end=True)
        if not self.has_any:
            raise InputRefused(
                "The file holds none of the metrics that count bytes or operations of storage.",
                "Name the site's own metrics in the settings (counters.columns).",
            )
        yield from samples.batches(frame_of([]), scrapes=self._changes.scrapes())

    def _ended(self, *, is_end: bool) -> Iterator[Batch]:
        """Yield what changed in the snapshots that have ended; the one that goes on waits."""
        refused, self._refused = [frame_of([]), *self._refused], []
        if self._told:
            told, self._told = _together(self._told), []
            goes_on = told.values["snapshot"] == self._number
            if not is_end and goes_on.any():
                self._told = [told._replace(values=told.values.filter(goes_on))]
                told = told._replace(values=told.values.filter(~goes_on))
            for rows, faulty in self._rows(told, is_only=is_end and self._number == 0):
                self.has_any = True
                refused += faulty
                yield from samples.batches(frame_of([]), rows)
        yield from samples.batches(pl.concat(refused))
        self._stamps_us = {self._number: self._stamps_us[self._number]}

    def _rows(self, told: Told, *, is_only: bool) -> Iterator[tuple[pl.DataFrame, list[pl.DataFrame]]]:
        """Yield the samples that changed, and the refused rows, of snapshots together where one cannot be another."""
        values = told.values
        if values.is_empty():
            return
        numbers = values["snapshot"].unique().sort().to_list()
        stamps = [self._stamps_us[number] for number in numbers]
        is_plain = values["at_us"].null_count() == values.height and None not in stamps
        if is_plain and len(set(stamps)) == len(stamps):
            at_us = pl.col("snapshot").replace_strict(dict(zip(numbers, stamps, strict=True)), return_dtype=pl.Int64)
            yield self._rows_of_series(told._replace(values=values.with_columns(at_us=at_us)))
            return
        for number, own in zip(numbers, values.partition_by("snapshot", maintain_order=True), strict=True):
            rows = told._replace(values=own).rows()
            yield self._rows_of_one(rows, self._time_us(number, is_only=is_only))

    def _rows_of_series(self, told: Told) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Return the samples that changed of snapshots with a time each."""
        told = _of_nodes(told, self.path)
        numbered = told.series.with_row_index("line").cast({"line": pl.Int64})
        bad, values, refused = sift(numbered, _NO_OWNER).refused["line"], told.values, list[pl.DataFrame]()
        if len(bad):
            is_bad = values["series"].is_in(bad.implode())
            refused.append(sift(told._replace(values=values.filter(is_bad)).rows(), _NO_OWNER).refused)
            values = values.filter(~is_bad)
        rows, more = self._changed(wide_of_series(metrics.with_columns_of(told.series, self._columns), values))
        return rows, [*refused, more]

    def _rows_of_one(self, values: pl.DataFrame, time_us: int | None) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Return the samples that changed in one snapshot."""
        sound = sift(values, _NO_OWNER)
        refused = [sound.refused]
        values = sound.rows.with_columns(pl.col("at_us").fill_null(pl.lit(time_us, pl.Int64)))
        is_timed = values["at_us"].is_not_null()
        if not is_timed.all():
            refused.append(frame_of([_untimed(int(values["line"][0]))]))
        points = metrics.meant(_with_nodes(values.filter(is_timed), self.path), self._columns)
        rows, more = self._changed(wide(points))
        return rows, [*refused, more]

    def _changed(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return what changed of counters a row, and the refused ones."""
        found = sift(rows, _FAULTS)
        changed, lacking = news(found.rows.drop("is_doubled"), self._changes, self.reading)
        return changed, pl.concat([found.refused, lacking])

    def _time_us(self, number: int, *, is_only: bool) -> int | None:
        if self._stamps_us[number] is not None or not is_only:
            return self._stamps_us[number]
        named = samples.said_time(self.path.name, self.zone)
        return named if named is not None else round(self.path.stat().st_mtime * 1e6)


def _together(told: Sequence[Told]) -> Told:
    """Return what lines of several blocks say as one."""
    parts, before = [], 0
    for each in told:
        parts.append(each.values.with_columns(pl.col("series") + before))
        before += each.series.height
    return Told(pl.concat([each.series for each in told]), pl.concat(parts), told[0].refused.clear())


_FAULTS = [
    Fault(
        pl.col("is_doubled"),
        "A metric of the same labels comes twice, with different values.",
        "Add the label that tells them apart, or keep one.",
    ),
    Fault(pl.col("target").is_null(), "The metric has no label for its target.", CUT),
]


_NO_OWNER = [
    Fault(
        pl.col("job_key").is_null() & pl.col("name").str.starts_with("lustre_job_"),
        "The metric is a job's, and has no label for the job.",
        CUT,
    ),
    Fault(
        ~pl.col("component").is_in(COMPONENT.choices),
        pl.format("The component `{}` is none of ost, mdt, server and client.", pl.col("component")),
        CUT,
    ),
]


def _with_nodes(values: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return values with the node as the target of GPFS, where only another metric or the file's name says it."""
    is_gpfs = pl.col("name").str.starts_with("gpfs_")
    info = values.filter(pl.col("name") == metrics.GPFS_NODE).select("filesystem", node="target").drop_nulls()
    told = values.filter(pl.col("name") != metrics.GPFS_NODE).join(
        info.unique("filesystem", keep="first"), on="filesystem", how="left", maintain_order="left"
    )
    target = pl.coalesce("target", pl.when(is_gpfs).then(pl.coalesce("node", pl.lit(_node_of(path)))))
    return told.with_columns(target=target).drop("node")


def _of_nodes(told: Told, path: Path) -> Told:
    """Return series that each are of one node, as `_with_nodes` has them, of snapshots that may be of many nodes."""
    series, values = told.series, told.values
    is_open = series["name"].str.starts_with("gpfs_") & series["target"].is_null()
    if not is_open.any():
        return told
    of = values.select("snapshot", "series", filesystem=series["filesystem"].gather(values["series"]))
    is_info = (series["name"] == metrics.GPFS_NODE).gather(values["series"])
    node = series["target"].gather(values["series"]).filter(is_info)
    info = of.filter(is_info).select("snapshot", "filesystem", node=node).drop_nulls()
    known = info.unique(["snapshot", "filesystem"], keep="first")
    own = of.filter(is_open.gather(values["series"]))
    own = own.join(known, on=["snapshot", "filesystem"], how="left", maintain_order="left")
    own = own.select("series", pl.col("node").fill_null(pl.lit(_node_of(path))))
    made = own.unique(maintain_order=True)
    numbers = pl.int_range(series.height, series.height + made.height, eager=True)
    place = own.join(made.with_columns(number=numbers), on=["series", "node"], how="left", maintain_order="left")
    which = is_open.gather(values["series"]).arg_true()
    number = values["series"].scatter(which, place["number"].cast(values["series"].dtype))
    more = series[made["series"]].with_columns(target=made["node"])
    return told._replace(series=pl.concat([series, more]), values=values.with_columns(number.alias("series")))


def _node_of(path: Path) -> str:
    return re.split(r"[-_.]?(?:1[0-9]{9}|20[0-9]{2}-)", path.name.removesuffix(".prom"))[0] or path.name


def _untimed(line: int) -> Refused:
    return line, "Nothing says when this was read.", "Write `date +%s` before each snapshot.", None


SOURCE = Source(
    name="prometheus",
    doc="Metrics of Lustre's and GPFS' exporters: Prometheus' text, or what query and query_range answer (JSON).",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=4,
)
