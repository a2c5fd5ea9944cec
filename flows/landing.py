"""Landing many inputs: files, folders and databases, each on its own, so that a bad one costs only itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from flows.settings import Settings
from warehouse.errors import InputRefused
from warehouse.sources.files.opening import unreadable
from warehouse.sources.protocol import Reading, Source, owner
from warehouse.store import landing
from warehouse.store.landing import Landed
from warehouse.store.ledger import Known
from warehouse.store.lots import Lot
from warehouse.store.pseudonyms import Names, names_of
from warehouse.store.store import Store

#: a file of an input's name and this says that the input is whole
DONE = ".done"


@dataclass(frozen=True, slots=True)
class Told:
    """What the user says about the inputs of one call; it goes before the settings."""

    filesystem: str | None = None
    time_zone: str | None = None
    direction: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """What became of one input: landed now or before, or refused whole with the reason."""

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
        """Return what became of it, in a sentence."""
        if self.refusal or not self.landed:
            return f"{self.name}: refused. {self.refusal}"
        landing = self.landed.landing
        refused = f", {landing.refused_count:,} refused" if landing.refused_count else ""
        rows = f"{landing.row_count():,} rows{refused} ({landing.format})"
        if self.landed.is_new:
            return f"{self.name}: landed {rows}"
        return f"{self.name}: landed before, nothing changed; it holds {rows}"


def reading_of(source: Source, settings: Settings, told: Told) -> Reading:
    """Return how a format is to be read: by what the user says, else by the settings for its kind."""
    section = {"jobs": settings.jobs, "polls": settings.polls, "series": settings.series}.get(source.kind)
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

    Small traces are landed many at a time: what became of them is told together.
    """
    known, names = Known(store), names_in(store, settings)
    lot = Lot(store, known, names)
    for path in _expanded(paths):
        if not replace and isinstance(path, Path) and _taken(lot, path, settings, told, format_name):
            yield from _landed(lot) if lot.is_full else ()
            continue
        # what comes later is landed later, too
        yield from _landed(lot)
        yield (
            path
            if isinstance(path, Arrival)
            else _land(store, settings, path, told, format_name, known, names, is_anew=replace)
        )
    yield from _landed(lot)


def _taken(lot: Lot, path: Path, settings: Settings, told: Told, format_name: str | None) -> bool:
    return lot.add(
        path,
        lambda source: reading_of(source, settings, told),
        columns=settings.polls.columns,
        format_name=format_name,
    )


def _landed(lot: Lot) -> Iterator[Arrival]:
    """Land what is in a lot, and yield what became of each input."""
    for outcome in lot.land():
        yield Arrival(str(outcome.path), None if outcome.refusal else outcome.landed, outcome.refusal)


def _land(
    store: Store,
    settings: Settings,
    path: Path | str,
    told: Told,
    format_name: str | None,
    known: Known,
    names: Names | None,
    *,
    is_anew: bool,
) -> Arrival:
    name = str(path) if isinstance(path, Path) else _without_secret(path)
    try:
        if isinstance(path, Path):
            landed = landing.land(
                store,
                path,
                lambda source: reading_of(source, settings, told),
                columns=settings.polls.columns,
                format_name=format_name,
                replace=is_anew,
                known=known,
                names=names,
            )
        else:
            landed = _land_database(store, settings, path, told, names)
    except InputRefused as refusal:
        return Arrival(name, None, refusal)
    return Arrival(name, landed, None)


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
        paths = (Path(place, name) for name in files if name not in taken and not name.startswith("."))
        yield from filter(_may_be_file, paths)


def _may_be_file(path: Path) -> bool:
    """Return whether a path is that of a file; where nobody may look, it is tried, and refused with the reason."""
    try:
        return path.is_file()
    except PermissionError:
        return True


def _land_database(store: Store, settings: Settings, url: str, told: Told, names: Names | None) -> Landed:
    from warehouse.sources.polls import lmt_database

    reading = reading_of(lmt_database.SOURCE, settings, told)
    batches = list(lmt_database.read_url(url, reading))
    return landing.land_batches(store, _without_secret(url), lmt_database.SOURCE.name, batches, names=names)


def _without_secret(url: str) -> str:
    """Return a database URL without its password: it is shown and kept."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url.split("://", 1)[0] + "://…"
