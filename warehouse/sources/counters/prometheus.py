"""Counters as Prometheus has them: an exporter's text, or what the server's HTTP API answers (`prometheus_json`).

An exporter's text does not say when it was read. A line's own time stamp goes first, then a line before all of it
(`date +%s`, ISO 8601), then the file's name, and at last the time of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from warehouse.contracts.counters import COMPONENT
from warehouse.errors import InputRefused
from warehouse.sources.counters import metrics, prometheus_json, samples
from warehouse.sources.counters.changes import CUT, Changes, news, wide
from warehouse.sources.counters.exposition import Exposition
from warehouse.sources.protocol import Batch, Head, Reading, Source
from warehouse.sources.rows import text_blocks, times
from warehouse.sources.rows.faults import Fault, sift
from warehouse.sources.rows.rejects import Refused, frame_of

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
    """Snapshots of metrics, each of which begins with a time or is the only one."""

    path: Path
    reading: Reading
    zone: str
    has_any: bool = False
    _stamp_us: int | None = None
    _is_first: bool = True
    _points: list[pl.DataFrame] = field(default_factory=list)
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
        found = lines["text"].gather(may_be).str.extract(_TIME)
        stamps = dict(zip(may_be.to_list(), found.to_list(), strict=True))
        start = 0
        for place in (place for place, text in stamps.items() if text is not None):
            self._add(lines[start:place])
            at_us = samples.instant_us(stamps[place], self.zone)
            if at_us is None:
                self._refused.append(frame_of([(lines["line"][place], "This is no time.", CUT, stamps[place])]))
            yield from self._snapshot(is_end=False)
            self._stamp_us, start = at_us, place + 1
        self._add(lines[start:])

    def _add(self, lines: pl.DataFrame) -> None:
        if not lines.is_empty():
            values, refused = self._exposition.read(lines)
            self._points.append(values)
            self._refused.append(refused)

    def end(self) -> Iterator[Batch]:
        """Yield the last snapshot, and when each was read."""
        yield from self._snapshot(is_end=True)
        if not self.has_any:
            raise InputRefused(
                "The file holds none of the metrics that count bytes or operations of storage.",
                "Name the site's own metrics in the settings (counters.columns).",
            )
        yield from samples.batches(frame_of([]), scrapes=self._changes.scrapes())

    def _snapshot(self, *, is_end: bool) -> Iterator[Batch]:
        """Yield what changed in the snapshot that ends here."""
        values = pl.concat(self._points) if self._points else pl.DataFrame()
        self._points, refused, self._refused = [], self._refused, []
        is_only, self._is_first = self._is_first and is_end, False
        if values.is_empty():
            yield from samples.batches(pl.concat([frame_of([]), *refused]))
            return
        self.has_any = True
        sound = sift(values.sort("line"), _NO_OWNER)
        refused.append(sound.refused)
        values = sound.rows.with_columns(pl.col("at_us").fill_null(pl.lit(self._time_us(is_only=is_only), pl.Int64)))
        is_timed = values["at_us"].is_not_null()
        if not is_timed.all():
            refused.append(frame_of([_untimed(int(values["line"][0]))]))
        points = metrics.meant(_with_nodes(values.filter(is_timed), self.path), self._columns)
        rows, faulty = self._rows(points)
        yield from samples.batches(pl.concat([*refused, faulty]), rows)

    def _time_us(self, *, is_only: bool) -> int | None:
        if self._stamp_us is not None or not is_only:
            return self._stamp_us
        named = samples.said_time(self.path.name, self.zone)
        return named if named is not None else round(self.path.stat().st_mtime * 1e6)

    def _rows(self, points: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the samples that changed, and the refused rows."""
        found = sift(wide(points), _FAULTS)
        rows, lacking = news(found.rows.drop("is_doubled"), self._changes, self.reading)
        return rows, pl.concat([found.refused, lacking])


_FAULTS = [
    Fault(
        pl.col("is_doubled"),
        pl.lit("A metric of the same labels comes twice, with different values."),
        pl.lit("Add the label that tells them apart, or keep one."),
    ),
    Fault(pl.col("target").is_null(), pl.lit("The metric has no label for its target."), pl.lit(CUT)),
]


_NO_OWNER = [
    Fault(
        pl.col("job_key").is_null() & pl.col("name").str.starts_with("lustre_job_"),
        pl.lit("The metric is a job's, and has no label for the job."),
        pl.lit(CUT),
    ),
    Fault(
        ~pl.col("component").is_in(COMPONENT.choices),
        pl.format("The component `{}` is none of ost, mdt, server and client.", pl.col("component")),
        pl.lit(CUT),
    ),
]


def _with_nodes(values: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return values with the node as the target of GPFS, where only another metric or the file's name says it."""
    is_gpfs = pl.col("name").str.starts_with("gpfs_")
    info = values.filter(pl.col("name") == metrics.GPFS_NODE).select("filesystem", node="target").drop_nulls()
    told = values.filter(pl.col("name") != metrics.GPFS_NODE).join(
        info.unique("filesystem"), on="filesystem", how="left", maintain_order="left"
    )
    named = pl.lit(re.split(r"[-_.]?(?:1[0-9]{9}|20[0-9]{2}-)", path.name.removesuffix(".prom"))[0] or path.name)
    target = pl.coalesce("target", pl.when(is_gpfs).then(pl.coalesce("node", named)))
    return told.with_columns(target=target).drop("node")


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
