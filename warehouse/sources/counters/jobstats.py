"""Lustre's job statistics as `lctl get_param` prints them, many targets and snapshots in a file.

`snapshot_time` of an entry is when it last counted anything, so when it was read is told by a line before it (`date
+%s`, ISO 8601), by the file's name, or else by the newest entry of the same snapshot. An entry whose text is that of
the snapshot before is not read again: it is only counted, except on another UTC day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.jobstats_entries import PLACE, Entries
from iosig.warehouse.sources.counters.jobstats_text import ENTRY, Begin, Entries as EntriesText, Event, Stamp, events
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.rejects import Refused, frame_of

#: entries are read together until they have so much text
_READ_BYTES = 8 << 20
#: rows that are handed over together
_BATCH_ROWS = 200_000
_ELAPSED = b"\n  elapsed_time:"
_SECONDS = rb"([0-9]{1,10}(?:\.[0-9]{1,9})?)"
_SINCE = re.compile(rb"\n  start_time: *" + _SECONDS + rb"[^\n]*\n  elapsed_time: *" + _SECONDS)
#: ten digits, which are in order as texts, too
_SNAPSHOT = re.compile(rb"\n  snapshot_time: *(1[0-9]{9}(?:\.[0-9]{1,9})?)(?![0-9])")
_DAY_US = 86_400_000_000
_IN_NAME = re.compile(r"[A-Za-z0-9_.]+-(?P<kind>OST|MDT)[0-9a-f]{4}")
_JOB_STATS = re.compile(r"^(?:[a-z]+\.\S+\.job_stats=.*|job_stats:\s*)$", re.MULTILINE)
#: what else `lctl get_param` prints of a server or client
_PARAMETERS = re.compile(
    r"^(?:memused|lnet_memused|health_check|memused_max|(?:obdfilter|mdt|osd-\w+|ost|mgs|mds|ldlm|lod|osp|mdd|llite|osc|"
    r"mdc)\.[^\s=]+)=",
    re.MULTILINE,
)


def sniff(head: Head) -> bool:
    """Return whether there is a header of job statistics, or any parameters of a Lustre server."""
    return bool(_JOB_STATS.search(head.text) or len(_PARAMETERS.findall(head.text)) > 1)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read snapshots of job statistics; raise InputRefused where there are none, or nobody says of which target."""
    rounds = _Rounds(path, reading, times.require_zone(reading.time_zone))
    for event in events(path, rounds.zone):
        rounds.take(event)
        if rounds.row_count >= _BATCH_ROWS:
            yield from rounds.batches(is_end=False)
    if not rounds.has_any:
        raise InputRefused(
            "The file holds parameters of a Lustre server, but no job statistics.",
            "Collect them with `lctl get_param obdfilter.*.job_stats mdt.*.job_stats`.",
        )
    yield from rounds.batches(is_end=True)


@dataclass(slots=True)
class _Snapshot:
    """One target as one round found it."""

    line: int
    round: int
    component: str
    target: str
    entry_count: int = 0


@dataclass(slots=True)
class _Changed:
    """Entries that changed, until they are read together."""

    entries: list[bytes] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    snapshots: list[_Snapshot] = field(default_factory=list)
    byte_count: int = 0

    def add(self, entry: bytes, line: int, snapshot: _Snapshot) -> None:
        """Add one."""
        self.entries.append(entry)
        self.lines.append(line)
        self.snapshots.append(snapshot)
        self.byte_count += len(entry)

    def read(self, parser: Entries) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return their rows, each with its round, component and target, and the refused ones."""
        targets = [snapshot.target for snapshot in self.snapshots]
        found = parser.read(self.entries, self.lines, targets)
        whose = pl.DataFrame(
            {
                "round": [snapshot.round for snapshot in self.snapshots],
                "component": [snapshot.component for snapshot in self.snapshots],
                "target": targets,
            }
        )
        return found.rows.drop(PLACE).hstack(whose[found.rows[PLACE].to_numpy()]), found.refused


@dataclass(slots=True)
class _Rounds:
    """Snapshots by rounds: a round begins with a time, or where a target comes again.

    Rows of a round wait until its time is known. `_before` and `_now` tell entries of each target apart by hash.
    """

    path: Path
    reading: Reading
    zone: str | None
    has_any: bool = False
    row_count: int = 0
    _round: int = 0
    _targets: set[str] = field(default_factory=set)
    _times: dict[int, int] = field(default_factory=dict)
    _newest: dict[int, int] = field(default_factory=dict)
    _snapshots: list[_Snapshot] = field(default_factory=list)
    _seen: dict[str, set[int]] = field(default_factory=dict)
    _days: dict[str, int] = field(default_factory=dict)
    _before: set[int] = field(default_factory=set)
    _now: set[int] = field(default_factory=set)
    _parser: Entries = field(default_factory=Entries)
    _changed: _Changed = field(default_factory=_Changed)
    _rows: list[pl.DataFrame] = field(default_factory=list)
    _refused: list[pl.DataFrame] = field(default_factory=list)

    # ---- what the text says, piece by piece

    def take(self, event: Event) -> None:
        """Take the next piece of the text."""
        if isinstance(event, Stamp):
            self._end_round()
            self._times[self._round] = event.at_us
        elif isinstance(event, Begin):
            self._begin(event)
        elif isinstance(event, EntriesText):
            self._add(event)
        else:
            self._refused.append(frame_of([event]))

    def _end_round(self) -> None:
        if self._targets or self._round in self._times:
            self._round += 1
            self._targets = set()

    def _begin(self, event: Begin) -> None:
        component, target = (event.component, event.target) if event.target else self._of_name()
        if target in self._targets:
            if not event.target:
                raise InputRefused(
                    f"Line {event.line} begins job statistics, and neither a header nor a time tells them from those "
                    "before.",
                    "Take them without -n, so that each target has its header.",
                )
            self._end_round()
        self.has_any = True
        self._targets.add(target)
        self._snapshots.append(_Snapshot(event.line, self._round, component, target))
        self._before = self._seen.get(target, set())
        self._now = self._seen[target] = set()

    def _of_name(self) -> tuple[str, str]:
        """Return component and target as the file's name says them."""
        found = _IN_NAME.search(self.path.name)
        if found is None:
            raise InputRefused(
                "Neither a header nor the file's name says of which target the job statistics are.",
                "Take them without -n, or name the file after the target, as scratch-OST0001.job_stats.",
            )
        return found["kind"].lower(), found[0]

    def _add(self, event: EntriesText) -> None:
        entries = event.content.removesuffix(b"\n").split(b"\n" + ENTRY)
        hashes = [hash(_without_elapsed(entry)) for entry in entries]
        lines = accumulate((entry.count(b"\n") + 1 for entry in entries), initial=event.line)
        snapshot, now = self._snapshots[-1], self._now
        before = self._before if self._is_on_same_day(event.content, entries[-1]) else set()
        for entry, line, own in zip(entries, lines, hashes, strict=False):
            if own not in before and own not in now:
                self._changed.add(entry, line, snapshot)
            now.add(own)
        snapshot.entry_count = len(now)
        if self._changed.byte_count >= _READ_BYTES:
            self._parse()

    def _is_on_same_day(self, content: bytes, last: bytes) -> bool:
        """Return whether the target was read on this UTC day before, and take its time as the round's, if need be."""
        at_us = self._times.get(self._round)
        if at_us is None:
            newest = max(_SNAPSHOT.findall(content), default=b"0")
            at_us = max(self._newest.get(self._round, 0), _microseconds(newest), _read_us(last))
            self._newest[self._round] = at_us
        snapshot, day = self._snapshots[-1], at_us // _DAY_US
        is_same = self._days.get(snapshot.target) == day
        if not snapshot.entry_count:
            # where only its later entries say that it is another day, those before them get their rows next time
            self._days[snapshot.target] = day
        return is_same

    def _parse(self) -> None:
        if self._changed.entries:
            rows, refused = self._changed.read(self._parser)
            self._changed = _Changed()
            self._rows.append(rows)
            self._refused.append(refused)
            self.row_count += rows.height

    # ---- what lands

    def batches(self, *, is_end: bool) -> Iterator[Batch]:
        """Yield the rows of all rounds whose time is known."""
        self._parse()
        self._set_times(is_end=is_end)
        times_us = pl.col("round").replace_strict(self._times, default=None, return_dtype=pl.Int64)
        timed = pl.concat(self._rows).with_columns(at_us=times_us) if self._rows else pl.DataFrame()
        whole = [snapshot for snapshot in self._snapshots if is_end or snapshot.round < self._round]
        scrapes = self._scrapes([snapshot for snapshot in whole if snapshot.round in self._times])
        untimed = [_untimed(snapshot.line) for snapshot in whole if snapshot.round not in self._times]
        refused = pl.concat([frame_of(untimed), *self._refused])
        known = timed.filter(pl.col("at_us").is_not_null()) if timed.width else timed
        self._rows = [timed.filter(pl.col("at_us").is_null()).drop("at_us")] if timed.width else []
        self._refused, self.row_count = [], sum(rows.height for rows in self._rows)
        self._snapshots = self._snapshots[len(whole) :]
        yield from samples.batches(refused, self._samples(known), scrapes)

    def _set_times(self, *, is_end: bool) -> None:
        """Set the times of rounds that nobody stamped, once all of their entries are there."""
        for number in sorted({snapshot.round for snapshot in self._snapshots}):
            if number in self._times or (number == self._round and not is_end):
                continue
            is_only = number == self._round == 0
            named = samples.said_time(self.path.name, self.zone) if is_only else None
            if known := named or self._newest.get(number):
                self._times[number] = known

    def _samples(self, rows: pl.DataFrame) -> pl.DataFrame:
        if not rows.width:
            return rows
        filesystem = samples.filesystems(rows["target"], self.reading)
        return rows.drop("round").with_columns(
            filesystem.alias("filesystem"), scraped_at=samples.instants(pl.col("at_us"))
        )

    def _scrapes(self, snapshots: list[_Snapshot]) -> pl.DataFrame:
        if not snapshots:
            return pl.DataFrame()
        frame = pl.DataFrame(
            {
                "at_us": [self._times[snapshot.round] for snapshot in snapshots],
                "component": [snapshot.component for snapshot in snapshots],
                "target": [snapshot.target for snapshot in snapshots],
                "entry_count": [snapshot.entry_count for snapshot in snapshots],
            }
        )
        return frame.select(
            pl.exclude("at_us"),
            scraped_at=samples.instants(pl.col("at_us")),
            filesystem=samples.filesystems(frame["target"], self.reading),
            is_job_scrape=pl.lit(True),
        )


def _untimed(line: int) -> Refused:
    return line, "Nothing says when this was read: no time, no entry.", "Write `date +%s` before each snapshot.", None


def _without_elapsed(entry: bytes) -> bytes:
    """Return an entry without the time it is there, which new servers count up to when it is read."""
    start = entry.find(_ELAPSED)
    return entry if start < 0 else entry[:start] + entry[entry.find(b"\n", start + 1) :]


def _read_us(entry: bytes) -> int:
    """Return until when an entry says that it is there [us since 1970], 0 where it does not say it."""
    found = _SINCE.search(entry)
    return _microseconds(found[1]) + _microseconds(found[2]) if found else 0


def _microseconds(seconds: bytes) -> int:
    whole, _, part = seconds.partition(b".")
    return int(whole) * 1_000_000 + int(part.ljust(6, b"0")[:6])


SOURCE = Source(
    name="jobstats",
    doc="Lustre's job statistics as `lctl get_param` prints them: one or many targets and snapshots, by job.",
    kind="counters",
    sniff=sniff,
    read=read,
    precedence=5,
)
