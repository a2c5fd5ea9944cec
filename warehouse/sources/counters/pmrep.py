"""Read `pmrep -o csv` of Performance Co-Pilot archives: counters or rates of file systems and disks of a node.

A header names the columns `metric-instance`; `--extended-csv` adds the host, the interval and the offset from UTC to
each line, and `--extended-header` states host and offset in comments (pcp 6.0, `pmrep.py`). No form states whether
values are counters (`--raw`) or rates, but pmrep prints the former as integers and the latter with decimals. Metrics
are those of the agents pmdagpfs, pmdalustre and pmdanfsclient, and disk.dev of pmdalinux, in the units that these
declare. A rate is that of the interval before its time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.changes import CUT, KEYS, Changes, build_change_batches
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import text_blocks, times
from iosig.warehouse.sources.rows.delimited import LINE, names_in
from iosig.warehouse.sources.rows.faults import NOTED, Fault, sift
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.rejects import ParsedRows, build_refused_rows, build_reject_frame

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
_READ, _WRITTEN, _READS, _WRITES = "total_read_bytes", "total_written_bytes", "total_read_count", "total_write_count"
#: metric -> column
_METRICS: Final = {
    "gpfs.fsios.read_bytes": _READ,
    "gpfs.fsios.write_bytes": _WRITTEN,
    "gpfs.fsios.reads": _READS,
    "gpfs.fsios.writes": _WRITES,
    "gpfs.fsios.opens": "total_open_count",
    "gpfs.fsios.closes": "total_close_count",
    "gpfs.fsios.readdir": "total_readdir_count",
    "gpfs.fsios.inode_updates": "total_other_count",
    "lustre.llite.read_bytes.total": _READ,
    "lustre.llite.write_bytes.total": _WRITTEN,
    "lustre.llite.read_bytes.count": _READS,
    "lustre.llite.write_bytes.count": _WRITES,
    # bytes between the client and the NFS server, without those that the client's cache served
    "nfsclient.bytes.read.server": _READ,
    "nfsclient.bytes.write.server": _WRITTEN,
    "disk.dev.read_bytes": _READ,
    "disk.dev.write_bytes": _WRITTEN,
    "disk.dev.read": _READS,
    "disk.dev.write": _WRITES,
}
_DISK = "disk.dev."
#: unit of a disk's bytes: Kbyte
_DISK_BYTES = 1024
#: column of a counter -> column of its rate
_RATES: Final = {
    _READ: "read_bytes_per_s", _WRITTEN: "write_bytes_per_s", _READS: "read_iops", _WRITES: "write_iops"
}  # fmt: skip
_HEADER = re.compile(r'(?:Host,Interval,)?Time,"[A-Za-z]\w*(?:\.\w+)+')
_SNIFFED_LINES = 20
#: bytes 4 to 7 of each file of an archive (PM_LOG_MAGIC), and the abbreviated metrics of pmrep's table
_ARCHIVE = b"\x50\x05\x26"
_TABLE = re.compile(r"\s*(?:[a-z]\.)+[a-z_]+(?:\s+(?:[a-z]\.)+[a-z_]+)*\s*")
_EXPORT = "Export with pmrep -o csv -t 10 -a ARCHIVE gpfs.fsios lustre.llite nfsclient.bytes disk.dev."
_NAME = re.compile(r"([A-Za-z][\w.]*)(?:-(.*))?")
_STATED = re.compile(r"#\s+(host|timezone): (\S+)")
_OFFSET = r"\s*UTC(?P<sign>[+-])(?P<hours>\d{1,2})(?::(?P<minutes>\d{1,2}))?$"
_COUNTER, _RATE = r"^[0-9]{1,19}$", r"^[0-9]{1,18}\.[0-9]+$"
_KNOWN = "Known are gpfs.fsios, lustre.llite, nfsclient.bytes and disk.dev."
_MAX_INT = 2**63 - 1
#: maximum share of lines in which a counter falls
_MAX_FALLING_RATIO = 0.1


def sniff(head: Head) -> bool:
    """Recognize pmrep's header in the first lines."""
    return any(_HEADER.match(line.removeprefix("\ufeff")) for line in head.lines[:_SNIFFED_LINES])


def find_near_miss(head: Head) -> InputRefused | None:
    """Name the export of an archive itself, and of pmrep's table, which abbreviates metrics and lacks dates."""
    if head.start[4:7] == _ARCHIVE:
        return InputRefused("This is an archive of Performance Co-Pilot.", _EXPORT)
    first = next((line for line in head.lines if line.strip()), "")
    return InputRefused("This is pmrep's table, which has no dates.", _EXPORT) if _TABLE.fullmatch(first) else None


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read counters as `counter_samples`, and rates as polls, whose controller is the node or its disk.

    Lines without any value are skipped: pmrep has no rate at the first time. Raises InputRefused without a known
    metric, and if integers often fall, because they are then rounded rates.
    """
    changes, file, timed = Changes(), _File(path, reading), list[pl.DataFrame]()
    for block in file.blocks():
        timed += [block.rates.select("host", "polled_at").unique()] if block.rates.height else []
        yield from build_change_batches(block.counters, block.refused, changes, reading)
    file.require_counters()
    yield from samples.build_sample_batches(build_reject_frame([]), scrapes=changes.scrapes())
    if timed:
        intervals = pl.concat(timed).group_by("host").agg(inferred_s=times.infer_interval_s(pl.col("polled_at")))
        for block in _File(path, reading).blocks():
            yield from _fill_intervals(block.rates, intervals).batches(POLLS)


def _fill_intervals(rates: pl.DataFrame, intervals: pl.DataFrame) -> ParsedRows:
    """Fill unknown intervals with `inferred_s` of the host; refuse rates whose interval stays unknown."""
    if rates.is_empty():
        return ParsedRows(rates, build_reject_frame([]))
    filled = rates.join(intervals, on="host", how="left", maintain_order="left")
    unknown = Fault(
        pl.col("interval_s").is_null(),
        "The host has rates of one time only, so their interval is unknown.",
        "Export with --extended-csv.",
    )
    return sift(filled.with_columns(interval_s=pl.coalesce("interval_s", "inferred_s")), [unknown])


@dataclass(frozen=True, slots=True)
class _Layout:
    """Meaning of the cells under a header.

    columns: `place` of each cell that is used, KEYS except the host, `column` and `factor`. host, offset: of all lines,
    if not in the lines themselves.
    """

    width: int
    columns: pl.DataFrame
    host: str
    offset: str | None
    is_extended: bool


@dataclass(frozen=True, slots=True)
class _Block:
    """Counters (see `build_change_batches`), rates (columns of polls, and `host`) and refused lines of a block."""

    counters: pl.DataFrame
    rates: pl.DataFrame
    refused: pl.DataFrame


@dataclass(slots=True)
class _File:
    """The state between blocks: the last header, and how often its counters fall."""

    path: Path
    reading: Reading
    _layout: _Layout | None = None
    _stated: dict[str, str] = field(default_factory=dict)
    _has_any: bool = False
    _last: pl.DataFrame | None = None
    _counts: list[int] = field(default_factory=lambda: [0, 0])

    def blocks(self) -> Iterator[_Block]:
        """Yield the content of each header's lines, block by block."""
        for block in text_blocks.blocks(self.path, BLOCK_BYTES):
            lines = text_blocks.lines(block).filter(pl.col("text").str.contains(r"\S"))
            is_cut = pl.lit(not block.content.endswith(b"\n")) & (pl.col(LINE) == pl.col(LINE).max())
            lines = lines.with_columns(is_cut=is_cut, text=pl.col("text").str.strip_chars_end("\r"))
            is_event = pl.col("text").str.contains(r'^#|^(Host,|Time,")')
            start = 0
            for place in (*lines.select(is_event).to_series().arg_true().to_list(), lines.height):
                if place > start:
                    yield self._read(lines[start:place])
                if place < lines.height:
                    self._take(lines["text"][place])
                start = place + 1

    def require_counters(self) -> None:
        """Raise InputRefused without a header with known metrics, or if integers fall too often for counters."""
        if not self._has_any:
            raise InputRefused("None of the columns counts bytes or operations of storage.", _KNOWN)
        fall_count, line_count = self._counts
        if fall_count > 1 + _MAX_FALLING_RATIO * line_count:
            raise InputRefused(
                f"Values fall in {fall_count:,} of {line_count:,} lines: they are rates, not counters.",
                "Run pmrep without --precision 0, or with --raw.",
            )

    def _take(self, line: str) -> None:
        """Take a comment or a header."""
        if line.startswith("#"):
            if stated := _STATED.match(line):
                self._stated[stated[1]] = stated[2]
            return
        host = self._stated.get("host", self.path.name.split(".")[0])
        self._layout = _parse_header(line, host, self._stated.get("timezone"), self.reading)
        self._has_any |= self._layout is not None and self._layout.columns.height > 0
        self._last = None

    def _read(self, lines: pl.DataFrame) -> _Block:
        layout = self._layout
        if layout is None:
            refused = build_refused_rows(lines, "No header of pmrep precedes the line.", CUT, "text")
            return _Block(pl.DataFrame(), pl.DataFrame(), refused)
        if layout.columns.is_empty():
            return _Block(pl.DataFrame(), pl.DataFrame(), build_reject_frame([]))
        checked = _parse_lines(lines, layout, self.reading.time_zone)
        is_rate = pl.col("is_rate")
        counters, rates = (_points(checked.rows.filter(each), layout) for each in (~is_rate, is_rate))
        self._count_falls(counters)
        return _Block(_counters(counters, layout), _rates(rates, self.reading), checked.refused)

    def _count_falls(self, points: pl.DataFrame) -> None:
        """Count the lines in which a value is below the previous one of its host and column."""
        values = points.select(LINE, "host", "place", pl.col("cell").cast(pl.Int64))
        known = values if self._last is None else pl.concat([self._last, values])
        is_fall = (pl.col("cell") < pl.col("cell").shift()).over("host", "place")
        self._counts[0] += known.filter(is_fall)[LINE].n_unique()
        self._counts[1] += values[LINE].n_unique()
        self._last = known.unique(["host", "place"], keep="last", maintain_order=True)


def _parse_header(line: str, host: str, offset: str | None, reading: Reading) -> _Layout | None:
    """Map the columns of a header; None if it is damaged, raise InputRefused if two columns count the same."""
    names = names_in(line.removeprefix("\ufeff"), ",")
    is_extended = names[:2] == ("Host", "Interval")
    if "Time" not in names[:3]:
        return None
    own = {name: column for column, name in reading.columns.items() if column.startswith("total_")}
    mapped = []
    for place, name in enumerate(names):
        match = _NAME.fullmatch(name)
        metric, instance = (match[1], match[2]) if match else ("", None)
        column = _METRICS.get(metric) or own.get(metric)
        if column and place > names.index("Time"):
            is_disk = metric.startswith(_DISK)
            factor = _DISK_BYTES if is_disk and column in (_READ, _WRITTEN) else 1
            of_disk = ("server", None, f":{instance}") if is_disk else ("client", instance or None, "")
            mapped.append((place, *of_disk, column, factor))
    used = {names[place]: column for place, *_, column, _ in mapped}
    note_fields(used | {"Host": "target", "Time": "sampled_at"}, names)
    schema = {"place": pl.Int64, "component": pl.String, "filesystem": pl.String, "suffix": pl.String}
    columns = pl.DataFrame(mapped, schema | {"column": pl.String, "factor": pl.Int64}, orient="row")
    if columns.select(pl.exclude("place", "factor")).is_duplicated().any():
        raise InputRefused("Two columns of the header count the same.", "Query each metric once.")
    return _Layout(len(names), columns, host, offset, is_extended)


def _parse_lines(lines: pl.DataFrame, layout: _Layout, time_zone: str | None) -> ParsedRows:
    """Parse lines to `line`, `host`, `at`, `interval_s`, `cells` and `is_rate`; drop lines without a value."""
    cells, first = pl.col("cells").list, 2 * layout.is_extended
    places = layout.columns["place"].to_list()
    stamp = cells.get(first, null_on_oob=True)
    frame = lines.with_columns(cells=pl.col("text").str.split(",")).with_columns(
        width=cells.len(),
        stamp=_offset_stamps(stamp, layout.offset),
        host=cells.get(0) if layout.is_extended else pl.lit(layout.host),
        interval_s=cells.get(1, null_on_oob=True).cast(pl.Float64, strict=False)
        if layout.is_extended
        else pl.lit(None, pl.Float64),
        used=pl.concat_list(cells.get(place, null_on_oob=True).str.strip_chars().replace("", None) for place in places),
    )
    instants = times.parse(frame["stamp"], time_zone, "sample's")
    values = pl.col("used").list.drop_nulls()
    frame = frame.with_columns(
        at=instants["instant"], reason=instants["reason"], remedy=instants["remedy"]
    ).with_columns(
        is_rate=values.list.eval(pl.element().str.contains(_RATE)).list.all(),
        is_counter=values.list.eval(pl.element().str.contains(_COUNTER)).list.all(),
        is_large=pl.any_horizontal(
            pl.col("used").list.get(number).str.contains(_COUNTER)
            & ~(pl.col("used").list.get(number).cast(pl.Int64, strict=False) <= _MAX_INT // factor).fill_null(False)
            for number, factor in enumerate(layout.columns["factor"])
        ),
        has_value=values.list.len() > 0,
    )
    checked = sift(frame.with_columns(raw="text"), _faults(layout.width))
    rows = checked.rows.filter("has_value").with_columns(
        interval_s=pl.when(pl.col("interval_s") > 0).then("interval_s")
    )
    return ParsedRows(rows.select(LINE, "host", "at", "interval_s", "used", "is_rate"), checked.refused)


def _offset_stamps(stamp: pl.Expr, offset: str | None) -> pl.Expr:
    """Convert the offset from UTC, in the time or of all lines, to ISO 8601; epoch seconds have none."""
    is_local = stamp.str.contains(r"^\d{4}-.*\d$") & ~stamp.str.contains("UTC")
    stated = pl.when(is_local).then(stamp + pl.lit(f" {offset}")).otherwise(stamp) if offset else stamp
    part = stated.str.extract_groups(_OFFSET).struct
    minutes = part.field("minutes").fill_null("0")
    zone = part.field("sign") + part.field("hours").str.zfill(2) + ":" + minutes.str.zfill(2)
    return pl.when(part.field("sign").is_null()).then(stated).otherwise(stated.str.replace(_OFFSET, "") + zone)


def _faults(width: int) -> list[Fault]:
    is_number = pl.col("is_rate") | pl.col("is_counter")
    return [
        Fault(pl.col("is_cut"), "The last line has no end: it may be truncated.", CUT),
        Fault(
            pl.col("width") != width,
            pl.format("The line has {} cells; the header has {}.", "width", pl.lit(width)),
            CUT,
        ),
        NOTED,
        Fault(pl.col("at").is_null(), "The line has no time.", CUT),
        Fault(pl.col("host") == "", "The line has no host.", CUT),
        Fault(
            ~is_number,
            "A cell is not a number, or counters and rates are mixed.",
            "Export with pmrep -o csv, with or without --raw.",
        ),
        Fault(pl.col("is_large"), "A counter is larger than 2^63 - 1.", CUT),
    ]


def _points(rows: pl.DataFrame, layout: _Layout) -> pl.DataFrame:
    """Return one row per value, with its keys."""
    places = pl.lit(layout.columns["place"].to_list(), pl.List(pl.Int64))
    points = rows.with_columns(place=places).rename({"used": "cell"}).explode("cell", "place").drop_nulls("cell")
    return points.join(layout.columns, on="place", how="left", maintain_order="left").with_columns(
        target=pl.col("host") + pl.col("suffix")
    )


def _counters(points: pl.DataFrame, layout: _Layout) -> pl.DataFrame:
    """Pivot counters to one row per line and node or disk, with its file system."""
    if points.is_empty():
        return pl.DataFrame()
    none = pl.lit(None, pl.String)
    keyed = points.with_columns(
        job_key=none,
        collector=none,
        at_us=pl.col("at").dt.timestamp("us"),
        value=pl.col("cell").cast(pl.Int64) * pl.col("factor"),
    )
    columns = layout.columns["column"].unique().sort()
    return _pivot(keyed, (*KEYS, "at_us"), {column: column for column in columns})


def _rates(points: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Pivot rates to polls; a rate without the other direction is flagged."""
    filesystem = (
        pl.lit(reading.filesystem) if reading.filesystem else pl.col("filesystem").fill_null(DEFAULT_FILESYSTEM)
    )
    keyed = points.filter(pl.col("column").is_in(list(_RATES))).with_columns(
        polled_at="at",
        controller="target",
        filesystem=filesystem,
        value=pl.col("cell").cast(pl.Float64) * pl.col("factor"),
    )
    polls = _pivot(keyed, ("host", "polled_at", "filesystem", "controller", "interval_s"), _RATES)
    is_missing = pl.any_horizontal(pl.col("read_bytes_per_s", "write_bytes_per_s").is_null())
    return polls.with_columns(flag=pl.when(is_missing).then(pl.lit("missing"))).select(
        *POLLS.column_names, LINE, "host"
    )


def _pivot(points: pl.DataFrame, keys: Sequence[str], names: Mapping[str, str]) -> pl.DataFrame:
    """Return one row per line and key; names: the new column of each `column`."""
    values = [pl.col("value").filter(pl.col("column") == column).first().alias(name) for column, name in names.items()]
    return points.group_by(LINE, *keys, maintain_order=True).agg(values)


SOURCE = Source(
    name="pmrep",
    doc="Performance Co-Pilot archives by `pmrep -o csv`: counters or rates of GPFS, Lustre, NFS and disks on a node.",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=3,
    find_near_miss=find_near_miss,
)
