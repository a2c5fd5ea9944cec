"""Read Lustre's job statistics as `lctl get_param` prints them, with many targets and snapshots per file.

An entry's `snapshot_time` is the time of its last change; some servers count it from their own start, and the time of
the reading replaces it. The time of the reading comes, in order of preference,
from a line before the entries (`date +%s`, ISO 8601), the file's name, or the newest entry in the same snapshot. An
entry with the same text as in the previous snapshot is counted but not parsed again, unless a new UTC day has begun.
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
from iosig.warehouse.sources.counters.jobstats_text import (
    ENTRY,
    Begin,
    Entries as EntriesText,
    Event,
    Stamp,
    parse_events,
)
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.rejects import RefusedRow, build_reject_frame

#: size of collected entries at which they are parsed [B]
_READ_BYTES = 8 << 20
#: number of rows at which batches are yielded
_BATCH_ROWS = 200_000
_ELAPSED = b"\n  elapsed_time"
_SECONDS = rb"([0-9]{1,10}(?:\.[0-9]{1,9})?)"
_SINCE = re.compile(rb"\n  start_time *: *" + _SECONDS + rb"[^\n]*\n  elapsed_time *: *" + _SECONDS)
#: pattern of an entry's time; with ten digits, the text order is the numeric order
_SNAPSHOT = re.compile(rb"\n  snapshot_time *: *(1[0-9]{9}(?:\.[0-9]{1,9})?)(?![0-9])")
_DAY_US = 86_400_000_000
#: earliest time of an entry [us since 1970]; some servers write earlier ones, which count from their own start
_EARLIEST_US = 10**15
_IN_NAME = re.compile(r"[A-Za-z0-9_.]+-(?P<kind>OST|MDT)[0-9a-f]{4}")
_JOB_STATS = re.compile(r"^(?:[a-z]+\.\S+\.job_stats=.*|job_stats:\s*)$", re.MULTILINE)
#: pattern of other parameters that `lctl get_param` prints for a server or client
_PARAMETERS = re.compile(
    r"^(?:memused|lnet_memused|health_check|memused_max|(?:obdfilter|mdt|osd-\w+|ost|mgs|mds|ldlm|lod|osp|mdd|llite|osc|"
    r"mdc)\.[^\s=]+)=",
    re.MULTILINE,
)


def sniff(head: Head) -> bool:
    """Recognize a header of job statistics, or parameters of a Lustre server."""
    return bool(_JOB_STATS.search(head.text) or len(_PARAMETERS.findall(head.text)) > 1)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read snapshots of job statistics; raise InputRefused if there are none, or their target is unknown."""
    rounds = _Rounds(path, reading, times.require_zone(reading.time_zone))
    for event in parse_events(path, rounds.zone):
        rounds.take(event)
        if rounds.row_count >= _BATCH_ROWS:
            yield from rounds.batches(is_end=False)
    if not rounds.has_any:
        raise InputRefused(
            "The file has parameters of a Lustre server, but no job statistics.",
            "Collect them with `lctl get_param obdfilter.*.job_stats mdt.*.job_stats`.",
        )
    yield from rounds.batches(is_end=True)


@dataclass(slots=True)
class _Snapshot:
    """Entries of one target in one round (see `_Rounds`)."""

    line: int
    round: int
    component: str
    target: str
    entry_count: int = 0


@dataclass(slots=True)
class _ChangedEntries:
    """Collects changed entries until they are parsed together."""

    entries: list[bytes] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    snapshots: list[_Snapshot] = field(default_factory=list)
    byte_count: int = 0

    def add(self, entry: bytes, line: int, snapshot: _Snapshot) -> None:
        """Add a changed entry, with its line and snapshot."""
        self.entries.append(entry)
        self.lines.append(line)
        self.snapshots.append(snapshot)
        self.byte_count += len(entry)

    def read(self, parser: Entries) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Parse the entries; return rows with their round, component and target, and the refused rows."""
        targets = [snapshot.target for snapshot in self.snapshots]
        parsed = parser.read(self.entries, self.lines, targets)
        snapshots = pl.DataFrame(
            {
                "round": [snapshot.round for snapshot in self.snapshots],
                "component": [snapshot.component for snapshot in self.snapshots],
                "target": targets,
            }
        )
        return parsed.rows.drop(PLACE).hstack(snapshots[parsed.rows[PLACE].to_numpy()]), parsed.refused


@dataclass(slots=True)
class _Rounds:
    """Groups snapshots into rounds: a round starts with a time, or when a target repeats.

    A round's rows are kept until its time is known. `_before` and `_now` contain hashes of each target's entries.
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
    _changed: _ChangedEntries = field(default_factory=_ChangedEntries)
    _rows: list[pl.DataFrame] = field(default_factory=list)
    _refused: list[pl.DataFrame] = field(default_factory=list)

    # ---- parsing

    def take(self, event: Event) -> None:
        """Process the next event of the text."""
        if isinstance(event, Stamp):
            self._end_round()
            self._times[self._round] = event.at_us
        elif isinstance(event, Begin):
            self._begin(event)
        elif isinstance(event, EntriesText):
            self._add(event)
        else:
            self._refused.append(build_reject_frame([event]))

    def _end_round(self) -> None:
        if self._targets or self._round in self._times:
            self._round += 1
            self._targets = set()

    def _begin(self, event: Begin) -> None:
        component, target = (event.component, event.target) if event.target else self._parse_name()
        if target in self._targets:
            if not event.target:
                raise InputRefused(
                    f"Line {event.line} starts job statistics without a header or time before them.",
                    "Take them without -n, so that each target has its header.",
                )
            self._end_round()
        self.has_any = True
        self._targets.add(target)
        self._snapshots.append(_Snapshot(event.line, self._round, component, target))
        self._before = self._seen.get(target, set())
        self._now = self._seen[target] = set()

    def _parse_name(self) -> tuple[str, str]:
        """Parse component and target from the file's name."""
        match = _IN_NAME.search(self.path.name)
        if match is None:
            raise InputRefused(
                "Neither a header nor the file's name contains the target of the job statistics.",
                "Take them without -n, or name the file after the target, as scratch-OST0001.job_stats.",
            )
        return match["kind"].lower(), match[0]

    def _add(self, event: EntriesText) -> None:
        entries = event.content.removesuffix(b"\n").split(b"\n" + ENTRY)
        hashes = [hash(_drop_elapsed(entry)) for entry in entries]
        lines = accumulate((entry.count(b"\n") + 1 for entry in entries), initial=event.line)
        snapshot, now = self._snapshots[-1], self._now
        before = self._before if self._is_on_same_day(event.content, entries[-1]) else set()
        for entry, line, entry_hash in zip(entries, lines, hashes, strict=False):
            if entry_hash not in before and entry_hash not in now:
                self._changed.add(entry, line, snapshot)
            now.add(entry_hash)
        snapshot.entry_count = len(now)
        if self._changed.byte_count >= _READ_BYTES:
            self._parse()

    def _is_on_same_day(self, content: bytes, last: bytes) -> bool:
        """Return whether the target was read before on this UTC day; set the round's time if unknown."""
        at_us = self._times.get(self._round)
        if at_us is None:
            newest = max(_SNAPSHOT.findall(content), default=b"0")
            at_us = max(self._newest.get(self._round, 0), _microseconds(newest), _read_us(last))
            self._newest[self._round] = at_us
        snapshot, day = self._snapshots[-1], at_us // _DAY_US
        is_same = self._days.get(snapshot.target) == day
        if not snapshot.entry_count:
            # if only later entries show that the day has changed, the entries before them get rows in the next round
            self._days[snapshot.target] = day
        return is_same

    def _parse(self) -> None:
        if self._changed.entries:
            rows, refused = self._changed.read(self._parser)
            self._changed = _ChangedEntries()
            self._rows.append(rows)
            self._refused.append(refused)
            self.row_count += rows.height

    # ---- landing

    def batches(self, *, is_end: bool) -> Iterator[Batch]:
        """Yield the rows of all rounds with a known time."""
        self._parse()
        self._infer_times(is_end=is_end)
        times_us = pl.col("round").replace_strict(self._times, default=None, return_dtype=pl.Int64)
        timed = pl.concat(self._rows).with_columns(at_us=times_us) if self._rows else pl.DataFrame()
        complete = [snapshot for snapshot in self._snapshots if is_end or snapshot.round < self._round]
        scrapes = self._scrapes([snapshot for snapshot in complete if snapshot.round in self._times])
        untimed = [_refuse_untimed(snapshot.line) for snapshot in complete if snapshot.round not in self._times]
        refused = pl.concat([build_reject_frame(untimed), *self._refused])
        timed_rows = timed.filter(pl.col("at_us").is_not_null()) if timed.width else timed
        self._rows = [timed.filter(pl.col("at_us").is_null()).drop("at_us")] if timed.width else []
        self._refused, self.row_count = [], sum(rows.height for rows in self._rows)
        self._snapshots = self._snapshots[len(complete) :]
        yield from samples.build_sample_batches(refused, self._samples(timed_rows), scrapes)

    def _infer_times(self, *, is_end: bool) -> None:
        """Set the times of rounds without a time line, once all of their entries are parsed."""
        for number in sorted({snapshot.round for snapshot in self._snapshots}):
            if number in self._times or (number == self._round and not is_end):
                continue
            is_only = number == self._round == 0
            time_in_name_us = samples.parse_time_in_name(self.path.name, self.zone) if is_only else None
            # a name from before an entry's last update is wrong
            if time_us := max(time_in_name_us or 0, self._newest.get(number, 0)):
                self._times[number] = time_us

    def _samples(self, rows: pl.DataFrame) -> pl.DataFrame:
        if not rows.width:
            return rows
        filesystem = samples.find_filesystems(rows["target"], self.reading)
        is_since_start = pl.col("sampled_at") < samples.instants(pl.lit(_EARLIEST_US))
        scraped_at = samples.instants(pl.col("at_us"))
        return rows.drop("round").with_columns(
            filesystem.alias("filesystem"),
            scraped_at=scraped_at,
            sampled_at=pl.when(is_since_start).then(scraped_at).otherwise("sampled_at"),
            counter_started_at=pl.when(~is_since_start).then("counter_started_at"),
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
            filesystem=samples.find_filesystems(frame["target"], self.reading),
            is_job_scrape=pl.lit(True),
        )


def _refuse_untimed(line: int) -> RefusedRow:
    return (
        line,
        "The time of the reading is unknown: no time line, no entry.",
        "Write `date +%s` before each snapshot.",
        None,
    )


def _drop_elapsed(entry: bytes) -> bytes:
    """Drop the elapsed time from an entry, because new servers update it at each reading."""
    start = entry.find(_ELAPSED)
    return entry if start < 0 else entry[:start] + entry[entry.find(b"\n", start + 1) :]


def _read_us(entry: bytes) -> int:
    """Return the latest time in an entry [us since 1970], 0 if it has none or only times since the server's start."""
    match = _SINCE.search(entry)
    at_us = _microseconds(match[1]) + _microseconds(match[2]) if match else 0
    return at_us if at_us >= _EARLIEST_US else 0


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
