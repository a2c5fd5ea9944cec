"""Read counters from Prometheus: an exporter's text, or responses of the HTTP API (`prometheus_json`).

An exporter's text does not contain the time of the reading. The time comes, in order of preference, from a line's own
time stamp, a line before the text (`date +%s`, ISO 8601), the file's name, or the file's modification time.
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
from iosig.warehouse.sources.counters.changes import CUT, Changes, pivot_points, pivot_series, select_changes
from iosig.warehouse.sources.counters.exposition import Exposition, ParsedLines
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source, build_near_miss
from iosig.warehouse.sources.rows import text_blocks, times
from iosig.warehouse.sources.rows.delimited import RAW
from iosig.warehouse.sources.rows.faults import Fault, sift
from iosig.warehouse.sources.rows.rejects import RefusedRow, build_refused_rows, build_reject_frame

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
_TIME = r"^#? ?([0-9]{10}(?:\.[0-9]{1,9})?|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{5,}[^\s]{0,6})\s*$"
_SNIFFED_LINES = 20
_OPEN = "The last line has no end: it may be truncated."
_DECLARED = re.compile(r"^# (?:TYPE|HELP) [a-zA-Z_:]", re.MULTILINE)
_VALUE = re.compile(r"[a-zA-Z_:][\w:]*\{[^\n]*\} +[-+0-9.eEINFinfaN]+(?: +[0-9.]+)?")


def sniff(head: Head) -> bool:
    """Recognize metrics as text, or a response of Prometheus' HTTP API."""
    if prometheus_json.is_answer(head.text):
        return True
    lines = [line for line in head.lines if line.strip()][:_SNIFFED_LINES]
    return any(_DECLARED.match(line) or _VALUE.fullmatch(line) for line in lines)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read metrics; raise InputRefused if no metric counts bytes or operations of storage."""
    zone = times.require_zone(reading.time_zone)
    if prometheus_json.is_answer_file(path):
        yield from prometheus_json.read(path, reading)
        return
    text = _Text(path, reading, zone)
    for block in text_blocks.blocks(path, BLOCK_BYTES):
        yield from text.take(block)
    yield from text.end()


@dataclass(slots=True)
class _Text:
    """Numbered snapshots of metrics, separated by time lines.

    The last snapshot of a block may continue in the next block.
    """

    path: Path
    reading: Reading
    zone: str | None
    has_any: bool = False
    _number: int = 0
    _stamps_us: dict[int, int | None] = field(default_factory=lambda: {0: None})
    _parsed: list[ParsedLines] = field(default_factory=list)
    _refused: list[pl.DataFrame] = field(default_factory=list)
    _changes: Changes = field(default_factory=Changes)
    _exposition: Exposition = field(init=False)
    _columns: dict[str, str | None] = field(init=False)

    def __post_init__(self) -> None:
        self._columns = metrics.map_metrics(self.reading)
        self._exposition = Exposition(self._columns, metrics.map_labels(self.reading))

    def take(self, block: text_blocks.Block) -> Iterator[Batch]:
        """Parse whole lines; yield the snapshots that end there."""
        checked = text_blocks.check_lines(block)
        self._refused.append(checked.refused)
        lines = self._refuse_open_line(block, checked.rows.rename({RAW: "text"}))
        # prefilter by the first character, since few lines can be times
        is_candidate = lines["text"].str.head(1).is_in(list("# 0123456789")).arg_true()
        stamps = lines[is_candidate.to_numpy()].with_columns(time=pl.col("text").str.extract(_TIME)).drop_nulls("time")
        for number, (line, text) in enumerate(stamps.select("line", "time").iter_rows(), self._number + 1):
            self._stamps_us[number] = at_us = samples.instant_us(text, self.zone)
            if at_us is None:
                self._refused.append(build_reject_frame([(line, "The line is not a time.", CUT, text)]))
        parsed = stamps["line"].search_sorted(lines["line"], side="right").cast(pl.Int64) + self._number
        numbered = lines.with_columns(snapshot=parsed)
        self._add(
            numbered if stamps.is_empty() else numbered.join(stamps, on="line", how="anti", maintain_order="left")
        )
        self._number += stamps.height
        if stamps.height:
            yield from self._yield_complete(is_end=False)

    def _refuse_open_line(self, block: text_blocks.Block, lines: pl.DataFrame) -> pl.DataFrame:
        """Refuse a sample without a line end, since its value may be truncated; return the other lines."""
        is_open = (pl.col("line") == block.first_line + block.line_count - 1) & ~pl.col("text").str.starts_with("#")
        if block.content.endswith(b"\n"):
            return lines
        self._refused.append(build_refused_rows(lines.filter(is_open), _OPEN, CUT, "text"))
        return lines.filter(~is_open)

    def _add(self, lines: pl.DataFrame) -> None:
        if not lines.is_empty():
            parsed = self._exposition.read(lines)
            self._parsed.append(parsed)
            self._refused.append(parsed.refused)

    def end(self) -> Iterator[Batch]:
        """Yield the last snapshot, and the scrape times."""
        yield from self._yield_complete(is_end=True)
        if not self.has_any:
            raise InputRefused(
                "The file has no metric that counts bytes or operations of storage.",
                "Name the site's own metrics in the settings (counters.columns).",
            )
        yield from samples.build_sample_batches(build_reject_frame([]), scrapes=self._changes.scrapes())

    def _yield_complete(self, *, is_end: bool) -> Iterator[Batch]:
        """Yield the changes in complete snapshots; keep the one that may continue."""
        refused, self._refused = [build_reject_frame([]), *self._refused], []
        if self._parsed:
            parsed, self._parsed = _concat_parsed(self._parsed), []
            goes_on = parsed.values["snapshot"] == self._number
            if not is_end and goes_on.any():
                self._parsed = [parsed._replace(values=parsed.values.filter(goes_on))]
                parsed = parsed._replace(values=parsed.values.filter(~goes_on))
            for rows, faulty in self._rows(parsed, is_only=is_end and self._number == 0):
                self.has_any = True
                refused += faulty
                yield from samples.build_sample_batches(build_reject_frame([]), rows)
        yield from samples.build_sample_batches(pl.concat(refused))
        self._stamps_us = {self._number: self._stamps_us[self._number]}

    def _rows(self, parsed: ParsedLines, *, is_only: bool) -> Iterator[tuple[pl.DataFrame, list[pl.DataFrame]]]:
        """Yield changed samples and refused rows, for all snapshots at once if their times are distinct."""
        values = parsed.values
        if values.is_empty():
            return
        numbers = values["snapshot"].unique().sort().to_list()
        stamps = [self._stamps_us[number] for number in numbers]
        is_plain = values["at_us"].null_count() == values.height and None not in stamps
        if is_plain and len(set(stamps)) == len(stamps):
            at_us = pl.col("snapshot").replace_strict(dict(zip(numbers, stamps, strict=True)), return_dtype=pl.Int64)
            yield self._rows_of_series(parsed._replace(values=values.with_columns(at_us=at_us)))
            return
        for number, snapshot_values in zip(numbers, values.partition_by("snapshot", maintain_order=True), strict=True):
            rows = parsed._replace(values=snapshot_values).rows()
            yield self._rows_of_one(rows, self._time_us(number, is_only=is_only))

    def _rows_of_series(self, parsed: ParsedLines) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Return the changed samples and the refused rows of several snapshots, which all have a time."""
        parsed = _split_series_by_node(parsed, self.path)
        numbered = parsed.series.with_row_index("line").cast({"line": pl.Int64})
        bad, values, refused = sift(numbered, _NO_OWNER).refused["line"], parsed.values, list[pl.DataFrame]()
        if len(bad):
            is_bad = values["series"].is_in(bad.implode())
            refused.append(sift(parsed._replace(values=values.filter(is_bad)).rows(), _NO_OWNER).refused)
            values = values.filter(~is_bad)
        rows, more_refused = self._select_changed(
            pivot_series(metrics.assign_columns(parsed.series, self._columns), values)
        )
        return rows, [*refused, more_refused]

    def _rows_of_one(self, values: pl.DataFrame, time_us: int | None) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Return the changed samples and the refused rows of one snapshot."""
        checked = sift(values, _NO_OWNER)
        refused = [checked.refused]
        values = checked.rows.with_columns(pl.col("at_us").fill_null(pl.lit(time_us, pl.Int64)))
        is_timed = values["at_us"].is_not_null()
        if not is_timed.all():
            refused.append(build_reject_frame([_refuse_untimed(int(values["line"][0]))]))
        points = metrics.select_counted_series(_fill_nodes(values.filter(is_timed), self.path), self._columns)
        rows, more_refused = self._select_changed(pivot_points(points))
        return rows, [*refused, more_refused]

    def _select_changed(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the changed counters, one row each, and the refused ones."""
        checked = sift(rows, _FAULTS)
        changed, lacking = select_changes(checked.rows.drop("is_doubled"), self._changes, self.reading)
        return changed, pl.concat([checked.refused, lacking])

    def _time_us(self, number: int, *, is_only: bool) -> int | None:
        if self._stamps_us[number] is not None or not is_only:
            return self._stamps_us[number]
        time_in_name_us = samples.parse_time_in_name(self.path.name, self.zone)
        return time_in_name_us if time_in_name_us is not None else round(self.path.stat().st_mtime * 1e6)


def _concat_parsed(parsed: Sequence[ParsedLines]) -> ParsedLines:
    """Concatenate the parsed lines of several blocks."""
    parts, before = [], 0
    for block in parsed:
        parts.append(block.values.with_columns(pl.col("series") + before))
        before += block.series.height
    return ParsedLines(pl.concat([block.series for block in parsed]), pl.concat(parts), parsed[0].refused.clear())


_FAULTS = [
    Fault(
        pl.col("is_doubled"),
        "A metric with the same labels occurs twice, with different values.",
        "Add a label that distinguishes them, or keep one.",
    ),
    Fault(pl.col("target").is_null(), "The metric has no label for its target.", CUT),
]


_NO_OWNER = [
    Fault(
        pl.col("job_key").is_null() & pl.col("name").str.starts_with("lustre_job_"),
        "The metric belongs to a job, but has no label for the job.",
        CUT,
    ),
    Fault(
        ~pl.col("component").is_in(COMPONENT.choices),
        pl.format("The component `{}` is not one of ost, mdt, server and client.", pl.col("component")),
        CUT,
    ),
]


def _fill_nodes(values: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Set the target of clients' metrics to the node that another metric or the file's name contains."""
    info = values.filter(pl.col("name") == metrics.GPFS_NODE).select("filesystem", node="target").drop_nulls()
    parsed = values.filter(pl.col("name") != metrics.GPFS_NODE).join(
        info.unique("filesystem", keep="first"), on="filesystem", how="left", maintain_order="left"
    )
    target = pl.coalesce("target", pl.when(metrics.is_of_client()).then(pl.coalesce("node", pl.lit(_parse_node(path)))))
    return parsed.with_columns(target=target).drop("node")


def _split_series_by_node(parsed: ParsedLines, path: Path) -> ParsedLines:
    """Split clients' series by node, as `_fill_nodes` does, for snapshots of several nodes."""
    series, values = parsed.series, parsed.values
    is_open = series.select(metrics.is_of_client() & pl.col("target").is_null()).to_series()
    if not is_open.any():
        return parsed
    keys = values.select("snapshot", "series", filesystem=series["filesystem"].gather(values["series"]))
    is_info = (series["name"] == metrics.GPFS_NODE).gather(values["series"])
    node = series["target"].gather(values["series"]).filter(is_info)
    info = keys.filter(is_info).select("snapshot", "filesystem", node=node).drop_nulls()
    nodes = info.unique(["snapshot", "filesystem"], keep="first")
    open_values = keys.filter(is_open.gather(values["series"]))
    open_values = open_values.join(nodes, on=["snapshot", "filesystem"], how="left", maintain_order="left")
    open_values = open_values.select("series", pl.col("node").fill_null(pl.lit(_parse_node(path))))
    new_series = open_values.unique(maintain_order=True)
    numbers = pl.int_range(series.height, series.height + new_series.height, eager=True)
    place = open_values.join(
        new_series.with_columns(number=numbers), on=["series", "node"], how="left", maintain_order="left"
    )
    positions = is_open.gather(values["series"]).arg_true()
    number = values["series"].scatter(positions, place["number"].cast(values["series"].dtype))
    node_series = series[new_series["series"]].with_columns(target=new_series["node"])
    return parsed._replace(series=pl.concat([series, node_series]), values=values.with_columns(number.alias("series")))


def _parse_node(path: Path) -> str:
    return re.split(r"[-_.]?(?:1[0-9]{9}|20[0-9]{2}-)", path.name.removesuffix(".prom"))[0] or path.name


def _refuse_untimed(line: int) -> RefusedRow:
    return line, "The time of the reading is unknown.", "Write `date +%s` before each snapshot.", None


SOURCE = Source(
    name="prometheus",
    doc="Metrics of exporters of Lustre, GPFS and DAOS: Prometheus' text, or what query and query_range answer (JSON).",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=4,
    find_near_miss=build_near_miss(
        r"\Aname,value,min,max,mean,sample_size,sum,std_dev\s*$",
        "These are metrics of a DAOS client at its end, which have no times.",
        "Enable telemetry in daos_agent.yml, and land its endpoint's text or a response of Prometheus.",
    ),
)
