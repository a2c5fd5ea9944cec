"""Land many inputs (files, folders and databases) independently, so that one failure affects no other input.

A lot is a group of small inputs that land together, in one folder with one manifest.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from iosig.settings.model import Settings
from iosig.warehouse import processes
from iosig.warehouse.engine_paths import is_url
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.printable import one_line
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.files.opening import content_hash, file_size, unreadable
from iosig.warehouse.sources.protocol import Reading, Source, find_folder_source, list_sources
from iosig.warehouse.sources.rows.times import record_zones
from iosig.warehouse.store import landing
from iosig.warehouse.store.landing import LandingResult
from iosig.warehouse.store.ledger import LandedIndex
from iosig.warehouse.store.lots import MAX_INPUTS, SMALL_BYTES, Lot
from iosig.warehouse.store.manifests import Landing
from iosig.warehouse.store.positions import Position, position
from iosig.warehouse.store.pseudonyms import Names, open_names
from iosig.warehouse.store.store import Store

#: suffix of a marker file, which states that the input with this name is complete
DONE = ".done"
#: minimum size at which a file is worth a separate process
_LARGE_BYTES = 16 << 20


class _Size(NamedTuple):
    """Parallel landing of files of one size class.

    fewest_count: minimum number of files that justifies processes, which take a second to start. at_once: files per
    task. most_count: maximum number of files per group.
    """

    fewest_count: int
    at_once: int
    max_count: int


#: small files land in lots; queued files already have their position in the landing order, so a process that follows
#: landings waits only for the current group and the running tasks
_SMALL = _Size(fewest_count=2 * MAX_INPUTS, at_once=MAX_INPUTS, max_count=40 * MAX_INPUTS)
_LARGE = _Size(fewest_count=4, at_once=1, max_count=64)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options that the user gave for the inputs of one call; they override the settings."""

    filesystem: str | None = None
    time_zone: str | None = None
    direction: str | None = None
    value: str | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """Outcome of landing one input: landed now or earlier, refused with a reason, or nothing new.

    name: its path or address. names: pseudonyms for displayed text, in a private warehouse.
    """

    name: str
    landed: LandingResult | None
    refusal: InputRefused | None
    names: Names | None = None
    #: time zone that the current settings imply, where the input landed earlier with another one
    other_zone: str | None = None

    @property
    def shown_name(self) -> str:
        """Displayable name; in a private warehouse, the pseudonym that the tables contain."""
        return self.name if self.names is None else self.names.path(self.name)

    @property
    def shown_refusal(self) -> InputRefused | None:
        """Displayable refusal; its sentences may quote the input, so names are pseudonymized."""
        if self.refusal is None or self.names is None:
            return self.refusal
        return InputRefused(self.names.said(self.refusal.reason), self.names.said(self.refusal.remedy))

    @property
    def is_refused(self) -> bool:
        """Whether the input was refused completely, now or when it landed."""
        return self.refusal is not None or (self.has_refusals and not self.row_count)

    @property
    def has_refusals(self) -> bool:
        """Whether any row of the input was refused, now or when it landed."""
        return self.refusal is not None or (self.landed is not None and self.landed.landing.refused_count > 0)

    @property
    def row_count(self) -> int:
        """Number of rows of the input in the warehouse."""
        return self.landed.landing.row_count() if self.landed else 0

    def line(self) -> str:
        """Format the outcome as one line without control characters."""
        return one_line(self._line())

    def _line(self) -> str:
        name = self.shown_name
        if self.refusal:
            return f"{name}: refused. {self.shown_refusal}"
        if not self.landed:
            return f"{name}: no new data"
        landing = self.landed.landing
        refused = f", {landing.refused_count:,} refused" if landing.refused_count else ""
        rows = f"{landing.row_count():,} rows{refused} ({landing.format})"
        if self.landed.is_new:
            return f"{name}: landed {rows}{_times_text(landing)}"
        if self.other_zone:
            return (
                f"{name}: already landed with time zone {landing.time_zone}, unchanged; --replace lands it with "
                f"{self.other_zone}. It contains {rows}{_times_text(landing)}"
            )
        return f"{name}: already landed, unchanged; it contains {rows}{_times_text(landing)}"


def _times_text(landing: Landing) -> str:
    """Format a landing's time range and its time zone; an empty string where it has no times."""
    if landing.first_at is None or landing.last_at is None:
        return ""
    first, last = (f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S}" for at in (landing.first_at, landing.last_at))
    zone = f", local times read as {landing.time_zone}" if landing.time_zone else ""
    return f", {first} to {last} UTC{zone}"


def make_reading(source: Source, settings: Settings, read_options: ReadOptions) -> Reading:
    """Determine the read options of a format: the user's, else the settings for the format or its kind."""
    sections = {
        "jobs": settings.jobs,
        "polls": settings.polls,
        "series": settings.series,
        "counters": settings.counters,
    }
    section = sections.get(source.kind)
    reading = section.params(Reading) if section else Reading()
    reading = dataclasses.replace(reading, **{name: value for name, value in asdict(read_options).items() if value})
    zones = settings.time_zones
    if read_options.time_zone:
        return reading
    if source.name in zones:
        return dataclasses.replace(reading, time_zone=zones[source.name])
    return dataclasses.replace(
        reading, time_zone=zones.get(reading.filesystem or "", reading.time_zone), filesystem_zones=zones
    )


def names_in(store: Store, settings: Settings) -> Names | None:
    """Return the pseudonyms of a private warehouse, None for other warehouses; see `names_of`."""
    return open_names(store, settings, settings.privacy.key())


def land_paths(
    store: Store,
    settings: Settings,
    paths: Iterable[str],
    read_options: ReadOptions,
    *,
    format_name: str | None = None,
    replace: bool = False,
    executor: Executor | None = None,
) -> Iterator[Arrival]:
    """Land files, the contents of folders in name order, and databases given by URL.

    Small traces land in lots and are reported together. Consecutive large files, and many small ones, land in parallel,
    with the same result as sequential landing.

    executor: workers on other machines that land the files. By default processes of this machine do, where the work
    justifies starting them.
    """
    call = _Call(
        store, settings, read_options, format_name, replace, LandedIndex(store), names_in(store, settings), executor
    )
    for arrival in map(call.with_other_zone, _land_paths(call, paths)):
        # addresses of databases belong to the operator, so they are not private
        yield arrival if "://" in arrival.name else dataclasses.replace(arrival, names=call.names)


def _land_paths(call: _Call, paths: Iterable[str]) -> Iterator[Arrival]:
    """Land inputs in order: in lots, in parallel, or sequentially."""
    is_helped = not call.is_anew and (call.worker_count > 1 or call.executor is not None)
    for size, run in groupby(_expand_paths(paths), _size if is_helped else lambda _: None):
        if size is None:
            yield from call.in_turn(run)
            continue
        while files := [path for path in islice(run, size.max_count) if isinstance(path, Path)]:
            # workers of other machines are already running
            is_worth_it = len(files) >= size.fewest_count or (size is _LARGE and call.executor is not None)
            yield from _side_by_side(call, files, size) if is_worth_it else call.in_turn(files)


def _size(path: Path | str | Arrival) -> _Size | None:
    """Return the size class of a file; None for medium files, and for anything but a file."""
    byte_count = file_size(path) if isinstance(path, Path) else None
    if byte_count is None or SMALL_BYTES < byte_count < _LARGE_BYTES:
        return None
    return _LARGE if byte_count >= _LARGE_BYTES else _SMALL


def _land_lot(lot: Lot) -> Iterator[Arrival]:
    """Land the inputs of a lot and yield the outcome of each."""
    for outcome in lot.land():
        yield Arrival(str(outcome.path), None if outcome.refusal else outcome.landed, outcome.refusal)


@dataclass(frozen=True, slots=True)
class _Call:
    """Shared state of one call: the warehouse, the read options, and the contents landed earlier."""

    store: Store
    settings: Settings
    told: ReadOptions
    format_name: str | None
    is_anew: bool
    known: LandedIndex
    names: Names | None
    executor: Executor | None = None

    @property
    def worker_count(self) -> int:
        """Number of processes of this machine that land in parallel."""
        return processes.workers(self.settings.engine.worker_count)

    def in_turn(self, inputs: Iterable[Path | str | Arrival], sequence: int | None = None) -> Iterator[Arrival]:
        """Land inputs sequentially, small traces in lots, and yield the outcome of each.

        sequence: reserved position of the first input in the landing order; the next inputs have the next positions.
        Inputs that already have an outcome are yielded unchanged.
        """
        lot = Lot(self.store, self.known, self.names)
        for rank, item in enumerate(inputs):
            position = None if sequence is None else sequence + rank
            if isinstance(item, Path) and self._is_taken(lot, item, position):
                yield from _land_lot(lot) if lot.is_full else ()
                continue
            # keeps the landing order
            yield from _land_lot(lot)
            yield item if isinstance(item, Arrival) else self.land(item, position)
        yield from _land_lot(lot)

    def accept_arrivals(
        self, paths: Sequence[Path], sequence: int, arrivals: Sequence[Arrival] | None
    ) -> Iterator[Arrival]:
        """Yield the outcomes of files that workers have landed; `sequence` is the first position in the landing order.

        arrivals: None if the workers cannot access the files, which then land in this process.
        """
        for path, arrival in zip(paths, self.in_turn(paths, sequence) if arrivals is None else arrivals, strict=True):
            if arrivals is not None and arrival.landed:
                self.known.add(arrival.landed.landing)
            yield dataclasses.replace(arrival, name=str(path))

    def _is_taken(self, lot: Lot, path: Path, sequence: int | None) -> bool:
        if self.is_anew:
            return False
        columns, format_name = self.settings.polls.columns, self.format_name
        with apply_limits(self.settings.limits.params(Limits)):
            return lot.add(
                path, partial(self._reading, path), columns=columns, format_name=format_name, sequence=sequence
            )

    def land(self, path: Path | str, sequence: int | None = None) -> Arrival:
        """Land a single input, at its position in the landing order if it has one, and return the outcome."""
        name = str(path) if isinstance(path, Path) else _without_secret(path)
        try:
            if isinstance(path, Path):
                landed = self._land_file(path, sequence)
            else:
                landed = _land_database(self.store, self.settings, path, self.told, self.names, is_anew=self.is_anew)
        except InputRefused as refusal:
            return Arrival(name, None, refusal)
        return Arrival(name, landed, None)

    def _land_file(self, path: Path, sequence: int | None) -> LandingResult:
        with apply_limits(self.settings.limits.params(Limits)):
            return landing.land(
                self.store,
                path,
                partial(self._reading, path),
                columns=self.settings.polls.columns,
                format_name=self.format_name,
                replace=self.is_anew,
                index=self.known,
                names=self.names,
                sequence=sequence,
            )

    def _reading(self, path: Path, source: Source) -> Reading:
        """Return the read options of a file, with the job that its path names by the pattern in the settings."""
        reading, pattern = make_reading(source, self.settings, self.told), self.settings.traces.job_id_pattern
        if source.kind != "traces" or pattern is None or reading.job_id is not None:
            return reading
        named = re.search(pattern, path.absolute().as_posix())
        return dataclasses.replace(reading, job_id=named[1]) if named else reading

    def with_other_zone(self, arrival: Arrival) -> Arrival:
        """Set the current time zone on an input that landed earlier with another one."""
        if arrival.landed is None or arrival.landed.is_new or arrival.landed.landing.time_zone is None:
            return arrival
        before = arrival.landed.landing
        source = next((candidate for candidate in list_sources() if candidate.name == before.format), None)
        reading = make_reading(source, self.settings, self.told) if source else Reading()
        is_same = before.time_zone in {reading.time_zone, *reading.filesystem_zones.values()}
        return arrival if is_same else dataclasses.replace(arrival, other_zone=reading.time_zone)


def _side_by_side(call: _Call, paths: Sequence[Path], size: _Size) -> Iterator[Arrival]:
    """Land files in parallel processes or on other machines, and yield the outcomes in order."""
    # for a large file, the process that lands it computes the hash
    firsts, before = _firsts(paths, call.known if size is _SMALL else None)
    ready = {place: Arrival(str(paths[place]), landed, None) for place, landed in before.items()}
    groups = (firsts[begin : begin + size.at_once] for begin in range(0, len(firsts), size.at_once))
    are_first = set(firsts)
    opened = processes.pool(call.worker_count) if call.executor is None else nullcontext(call.executor)
    limit = 2 * call.worker_count if call.executor is None else size.max_count
    with opened as executor:
        results = processes.in_order(executor, _land_apart, _tasks(call, paths, groups, are_new=size is _SMALL), limit)
        for place, path in enumerate(paths):
            if place in are_first and place not in ready:
                (group, sequence), arrivals = next(results)
                ready.update(
                    zip(group, call.accept_arrivals([paths[index] for index in group], sequence, arrivals), strict=True)
                )
            # duplicates of a file have landed by now
            yield ready.pop(place) if place in ready else call.land(path)


def _tasks(
    call: _Call, paths: Sequence[Path], groups: Iterable[list[int]], *, are_new: bool
) -> Iterator[tuple[tuple[list[int], int], tuple[Any, ...]]]:
    """Yield groups of files with their first position in the landing order, and the arguments of the call."""
    for group in groups:
        sequence = landing.reserve_positions(call.store, len(group))
        # workers may have another current folder
        absolute_paths = [paths[place].absolute() for place in group]
        arguments = (
            call.store.root.absolute(),
            call.settings,
            call.told,
            call.format_name,
            absolute_paths,
            sequence,
            are_new,
        )
        yield (group, sequence), arguments


def _land_apart(
    root: Path,
    settings: Settings,
    read_options: ReadOptions,
    format_name: str | None,
    paths: Sequence[Path],
    sequence: int,
    are_new: bool,
) -> list[Arrival] | None:
    """Land files in a worker process; None where it runs on a machine that cannot access them.

    are_new: the caller has checked that their contents have not landed, which saves a lookup.
    """
    if not all(path.exists() for path in paths):
        return None
    store = Store(root)
    index = LandedIndex(store, is_empty=are_new)
    call = _Call(store, settings, read_options, format_name, False, index, names_in(store, settings))
    return [*call.in_turn(paths, sequence)]


def _firsts(paths: Sequence[Path], index: LandedIndex | None = None) -> tuple[list[int], dict[int, LandingResult]]:
    """Return the indexes of the first file of each distinct content; only files of equal size are compared.

    index: index of landed contents; if given, all files are compared, and those that have landed are returned
    separately.
    """
    sizes = [file_size(path) for path in paths]
    counts = Counter(sizes)
    contents: set[str] = set()
    first_places, before = [], {}
    for place, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        with suppress(InputRefused):
            content = content_hash(path) if size is not None and (index or counts[size] > 1) else None
            if content in contents:
                continue
            if index and content and (earlier := index.generations(content)):
                # the caller may retry contents that landed without a row
                if earlier[-1].row_count():
                    before[place] = LandingResult(earlier[-1], is_new=False)
                continue
            contents |= {content} if content else set()
        first_places.append(place)
    return first_places, before


def _expand_paths(paths: Iterable[str]) -> Iterator[Path | str | Arrival]:
    """Expand paths to files and URLs; yield an outcome for each folder that cannot be read."""
    for text in paths:
        path = Path(text)
        if is_url(text) and not path.exists():
            yield text
        elif os.path.isdir(path):
            closed: list[OSError] = []
            yield from sorted(within(path, closed))
            yield from (Arrival(str(fault.filename), None, unreadable(fault)) for fault in closed)
        else:
            yield path


def within(folder: Path, closed: list[OSError]) -> Iterator[Path]:
    """Yield the inputs of a folder, both files and subfolders that form one input.

    closed: receives the errors of unreadable folders. Marker files are not inputs. In a folder that forms one input,
    subfolders with `_` in their names contain output of the tracer's tools.
    """
    for place, folders, files in os.walk(folder, onerror=closed.append):
        source_files = find_folder_source(Path(place))
        if source_files is not None:
            yield Path(place)
            folders[:] = [name for name in folders if not name.startswith("_")]
        skipped = set(source_files[1]) if source_files is not None else set()
        skipped |= {name for name in files if name.endswith(DONE) and name.removesuffix(DONE) in {*files, *folders}}
        # sockets, dangling links and the like are refused with that reason
        yield from (Path(place, name) for name in files if name not in skipped and not name.startswith("."))


def _land_database(
    store: Store, settings: Settings, url: str, read_options: ReadOptions, names: Names | None, *, is_anew: bool
) -> LandingResult:
    """Land rows of a database after its stored cursor; with `is_anew`, land all rows and replace the earlier ones.

    Raises InputRefused if its local times were read in another zone before, since the same traffic would land twice.
    """
    from iosig.warehouse.sources.polls import lmt_database

    reading, name = make_reading(lmt_database.SOURCE, settings, read_options), _without_secret(url)
    cursor_position = _database_position(store, name, reading)
    before = cursor_position.last()
    if is_anew:
        cursor_position = dataclasses.replace(cursor_position, cursor=None)
    with record_zones() as zones:
        batches, cursor = lmt_database.read_url(url, reading, cursor_position.cursor, settings.live.params(Timeouts))
    zone = ", ".join(sorted(zones)) or None
    known_zone = before.landing.time_zone if before else None
    if known_zone and zone and known_zone != zone and not is_anew:
        raise InputRefused(
            f"The database has landed with time zone {known_zone}; with {zone}, its traffic would be duplicated.",
            f"Land it with {known_zone}, or use --replace once to land all of it with {zone}.",
        )
    if is_anew:
        _withdraw(store, name if names is None else names.path(name), lmt_database.SOURCE.name)
    elif not batches and before:
        return before
    return cursor_position.land(name, lmt_database.SOURCE.name, batches, cursor, names, zone)


def _database_position(store: Store, name: str, reading: Reading) -> Position:
    """Return the read position of a database, regardless of the zone; earlier versions stored one per zone."""
    zoneless = position(store, f"{name} {dataclasses.replace(reading, time_zone=None)}")
    earlier = position(store, f"{name} {reading}") if zoneless.cursor is None and reading.time_zone else zoneless
    return dataclasses.replace(earlier, name=zoneless.name)


def _withdraw(store: Store, source_file: str, format_name: str) -> None:
    """Supersede every landing of an input by an empty one."""
    for landed in landing.ledger(store):
        if (landed.source_file, landed.format) == (source_file, format_name) and landed.row_count():
            landing.write(store, source_file, landed.content_sha256, format_name, [landed], iter(()))


def _without_secret(url: str) -> str:
    """Remove the password from a database URL, which is displayed and stored."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url.split("://", 1)[0] + "://…"
