"""Landing many inputs: files, folders and databases, each on its own, so that a bad one costs only itself."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from flows import processes
from flows.settings import Settings
from warehouse.errors import InputRefused
from warehouse.sources.files.limits import Limits, limited
from warehouse.sources.files.opening import content_hash, file_size, unreadable
from warehouse.sources.protocol import Reading, Source, owner
from warehouse.store import landing
from warehouse.store.landing import Landed
from warehouse.store.ledger import Known
from warehouse.store.lots import Lot
from warehouse.store.positions import position
from warehouse.store.pseudonyms import Names, names_of
from warehouse.store.store import Store

#: a file of an input's name and this says that the input is whole
DONE = ".done"
#: a file is worth a process beside others from here on, and so many of them are, which take a second to start; workers
#: of other machines are there already
_LARGE_BYTES = 16 << 20
_FEWEST_AT_ONCE = 4
#: files that have places in the order of landing before they are read: who follows landings waits for no more
_MOST_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Told:
    """What the user says about the inputs of one call; it goes before the settings."""

    filesystem: str | None = None
    time_zone: str | None = None
    direction: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """What became of one input: landed now or before, or refused whole with the reason; nothing new if neither."""

    name: str
    landed: Landed | None
    refusal: InputRefused | None

    @property
    def has_refusals(self) -> bool:
        """Whether any of the input was refused, now or when it was landed."""
        return self.refusal is not None or (self.landed is not None and self.landed.landing.refused_count > 0)

    @property
    def row_count(self) -> int:
        """Rows that the input holds in the warehouse."""
        return self.landed.landing.row_count() if self.landed else 0

    def line(self) -> str:
        """Return what became of it, in one line: nothing in a name steers a terminal, or begins another line."""
        return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in self._line())

    def _line(self) -> str:
        if self.refusal:
            return f"{self.name}: refused. {self.refusal}"
        if not self.landed:
            return f"{self.name}: nothing new"
        landing = self.landed.landing
        refused = f", {landing.refused_count:,} refused" if landing.refused_count else ""
        rows = f"{landing.row_count():,} rows{refused} ({landing.format})"
        if self.landed.is_new:
            return f"{self.name}: landed {rows}"
        return f"{self.name}: landed before, nothing changed; it holds {rows}"


def reading_of(source: Source, settings: Settings, told: Told) -> Reading:
    """Return how a format is to be read: by what the user says, else by the settings for its kind."""
    sections = {
        "jobs": settings.jobs,
        "polls": settings.polls,
        "series": settings.series,
        "counters": settings.counters,
    }
    section = sections.get(source.kind)
    known = section.params(Reading) if section else Reading()
    return replace(known, **{name: value for name, value in asdict(told).items() if value})


def names_in(store: Store, settings: Settings) -> Names | None:
    """Return what hides the names that land in a warehouse, None where they are not hidden; see `names_of`."""
    return names_of(store, settings, settings.privacy.key())


def land_paths(
    store: Store,
    settings: Settings,
    paths: Iterable[str],
    told: Told,
    *,
    format_name: str | None = None,
    replace: bool = False,
) -> Iterator[Arrival]:
    """Land files, what lies within folders in the order of the names, and database URLs.

    Small traces are landed many at a time: what became of them is told together. Large files that follow each other are
    landed side by side (by processes, or by the workers of other machines), as if one came after the other.
    """
    call = _Call(store, settings, told, format_name, replace, Known(store), names_in(store, settings))
    lot, large = Lot(store, call.known, call.names), _Large(call)
    for path in _expanded(paths):
        # what comes later is landed later, too
        if isinstance(path, Path) and large.add(path):
            yield from _landed(lot)
            yield from large.land() if large.is_full else ()
            continue
        yield from large.land()
        if isinstance(path, Path) and call.is_taken(lot, path):
            yield from _landed(lot) if lot.is_full else ()
            continue
        yield from _landed(lot)
        yield path if isinstance(path, Arrival) else call.land(path)
    yield from large.land()
    yield from _landed(lot)


def _landed(lot: Lot) -> Iterator[Arrival]:
    """Land what is in a lot, and yield what became of each input."""
    for outcome in lot.land():
        yield Arrival(str(outcome.path), None if outcome.refusal else outcome.landed, outcome.refusal)


@dataclass(frozen=True, slots=True)
class _Call:
    """What inputs of one call have in common: where they land, how they are read, what was landed before."""

    store: Store
    settings: Settings
    told: Told
    format_name: str | None
    is_anew: bool
    known: Known
    names: Names | None

    def is_taken(self, lot: Lot, path: Path) -> bool:
        """Return whether a lot takes a file."""
        columns = self.settings.polls.columns
        with limited(self.settings.limits.params(Limits)):
            return not self.is_anew and lot.add(path, self._reading, columns=columns, format_name=self.format_name)

    def land(self, path: Path | str, sequence: int | None = None) -> Arrival:
        """Land an input by itself, at its place in the order of landing if it has one, and return what became of it."""
        name = str(path) if isinstance(path, Path) else _without_secret(path)
        try:
            if isinstance(path, Path):
                landed = self._land_file(path, sequence)
            else:
                landed = _land_database(self.store, self.settings, path, self.told, self.names)
        except InputRefused as refusal:
            return Arrival(name, None, refusal)
        return Arrival(name, landed, None)

    def _land_file(self, path: Path, sequence: int | None) -> Landed:
        with limited(self.settings.limits.params(Limits)):
            return landing.land(
                self.store,
                path,
                self._reading,
                columns=self.settings.polls.columns,
                format_name=self.format_name,
                replace=self.is_anew,
                known=self.known,
                names=self.names,
                sequence=sequence,
            )

    def _reading(self, source: Source) -> Reading:
        return reading_of(source, self.settings, self.told)


class _Large:
    """Large files of one call that follow each other: they land side by side, in processes of their own."""

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._worker_count = processes.workers(call.settings.engine.worker_count)
        self._paths: list[Path] = []

    @property
    def is_full(self) -> bool:
        """Whether they are to be landed before more are taken: their places in the order of landing are given first."""
        return len(self._paths) >= _MOST_AT_ONCE

    def add(self, path: Path) -> bool:
        """Take a path if it is that of a large file, and return whether it was taken."""
        is_helped = self._worker_count > 1 or processes.are_elsewhere()
        is_taken = is_helped and not self._call.is_anew and (file_size(path) or 0) >= _LARGE_BYTES
        if is_taken:
            self._paths.append(path)
        return is_taken

    def land(self) -> Iterator[Arrival]:
        """Land what was taken, and yield what became of each, in order; begin anew."""
        paths, self._paths = self._paths, []
        if not paths or not (len(paths) >= _FEWEST_AT_ONCE or processes.are_elsewhere()):
            yield from map(self._call.land, paths)
            return
        call, firsts = self._call, _firsts(paths)
        asked = call.store.root.absolute(), call.settings, call.told, call.format_name
        sequence = landing.reserved(call.store, len(firsts))
        with processes.pool(self._worker_count) as pool:
            # who lands it may stand elsewhere
            tasks = ((place, (*asked, paths[place].absolute(), sequence + rank)) for rank, place in enumerate(firsts))
            answers = processes.in_order(pool, _land_apart, tasks)
            is_first = set(firsts)
            for place, path in enumerate(paths):
                if place not in is_first:
                    # its like has landed by now
                    yield call.land(path)
                    continue
                arrival = next(answers)[1]
                if arrival is None:
                    yield call.land(path, sequence + firsts.index(place))
                    continue
                if arrival.landed:
                    call.known.with_one(arrival.landed)
                yield replace(arrival, name=str(path))


def _land_apart(
    root: Path, settings: Settings, told: Told, format_name: str | None, path: Path, sequence: int
) -> Arrival | None:
    """Land a file in a process of its own; None where that is on a machine that does not see it."""
    if not path.exists():
        return None
    store = Store(root)
    call = _Call(store, settings, told, format_name, False, Known(store), names_in(store, settings))
    return call.land(path, sequence)


def _firsts(paths: Sequence[Path]) -> list[int]:
    """Return the places of files unlike all before them: only those of one size are looked into."""
    sizes = [file_size(path) for path in paths]
    counts = Counter(sizes)
    seen: set[str] = set()
    found = []
    for place, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        with suppress(InputRefused):
            content = content_hash(path) if size is not None and counts[size] > 1 else None
            if content in seen:
                continue
            seen |= {content} if content else set()
        found.append(place)
    return found


def _expanded(paths: Iterable[str]) -> Iterator[Path | str | Arrival]:
    """Yield files, URLs, and what became of folders that cannot be looked into."""
    for text in paths:
        path = Path(text)
        if "://" in text and not path.exists():
            yield text
        elif os.path.isdir(path):
            closed: list[OSError] = []
            yield from sorted(within(path, closed))
            yield from (Arrival(str(fault.filename), None, unreadable(fault)) for fault in closed)
        else:
            yield path


def within(folder: Path, closed: list[OSError]) -> Iterator[Path]:
    """Yield the inputs of a folder: those of its folders that are one input, and every file that is of none.

    closed: gets the faults of folders that cannot be looked into. Files that only say that another one is whole are
    no inputs.
    In a folder that is one input, what lies in folders of names with `_` is what the tracer's tools made of it.
    """
    for place, folders, files in os.walk(folder, onerror=closed.append):
        found = owner(Path(place))
        if found is not None:
            yield Path(place)
            folders[:] = [name for name in folders if not name.startswith("_")]
        taken = set(found[1]) if found is not None else set()
        taken |= {name for name in files if name.endswith(DONE) and name.removesuffix(DONE) in {*files, *folders}}
        # what is no file, as a socket or a link to nothing, is refused with that reason
        yield from (Path(place, name) for name in files if name not in taken and not name.startswith("."))


def _land_database(store: Store, settings: Settings, url: str, told: Told, names: Names | None) -> Landed:
    """Land what is new in a database: where it was read to is kept beside what is landed."""
    from warehouse.sources.polls import lmt_database

    reading, name = reading_of(lmt_database.SOURCE, settings, told), _without_secret(url)
    begun = position(store, f"{name} {reading}")
    batches, cursor = lmt_database.read_url(url, reading, begun.cursor)
    if not batches and (before := begun.last()):
        return before
    return begun.land(name, lmt_database.SOURCE.name, batches, cursor, names)


def _without_secret(url: str) -> str:
    """Return a database URL without its password: it is shown and kept."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url.split("://", 1)[0] + "://…"
