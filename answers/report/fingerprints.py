"""What the pages of a report are made of, as texts that differ where any of it does."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path

from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

#: our own rooms that a page comes from, and the packages that its bytes may depend on
_ROOMS = ("expectations", "flows", "reports", "sql", "transforms", "warehouse")
_PACKAGES = ("duckdb", "jinja2", "matplotlib", "numpy", "polars", "scipy", "sqlglot")
_DAY_CHARACTERS = 10


class Inputs:
    """The files of a release by table and day, the program that reads them, and what is hidden."""

    def __init__(self, store: Store, release: Release, hidden: str = "") -> None:
        """Look at the files; hidden: what differs where names are shown otherwise."""
        self._always = [program(), hashlib.sha256(hidden.encode()).hexdigest(), store.address]
        self._parts: dict[str, dict[date | None, str]] = {
            table: _by_day(store, paths) for table, paths in releases.files_of(store, release).items()
        }
        self._whole = {table: _digest(sorted(parts.values())) for table, parts in self._parts.items()}

    def of(self, *more: object, tables: Iterable[str] = (), days: Collection[date | None] | None = None) -> str:
        """Return the fingerprint of some tables (none: all), on some days (None: all), and of whatever else there is.

        days: of tables that are kept by day; None among them is what has no day.
        """
        wanted = sorted(tables) or sorted(self._parts)
        if days is None:
            return _digest([self._always, more, [[table, self._whole.get(table)] for table in wanted]])
        asked = sorted(days, key=str)
        found = [[table, [self._parts.get(table, {}).get(day) for day in asked]] for table in wanted]
        return _digest([self._always, more, found])


def of_program() -> str:
    """Return the fingerprint of what depends on the program alone."""
    return _digest([program()])


def _digest(told: object) -> str:
    return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()


def _by_day(store: Store, paths: Iterable[Path]) -> dict[date | None, str]:
    """Return what changes whenever a day's files do; files that are of no day are together."""
    found: dict[date | None, list[list[object]]] = {}
    for path in paths:
        found.setdefault(_day(path), []).append(_mark(store, path))
    return {day: _digest(sorted(marks, key=str)) for day, marks in found.items()}


def _day(path: Path) -> date | None:
    try:
        return date.fromisoformat(path.name[:_DAY_CHARACTERS])
    except ValueError:
        return None


def _mark(store: Store, path: Path) -> list[object]:
    """Return what changes whenever a file does: released ones are never written again, under any name."""
    name = path.relative_to(store.root).as_posix()
    # in an object store each look is a request, and there are thousands of files
    return [name, *(store.files.mark(name) if store.url is None else ())]


@cache
def program() -> str:
    """Return the fingerprint of the program that makes pages: its own files, and the packages that it rests on."""
    root = Path(__file__).resolve().parents[2]
    found = hashlib.sha256(json.dumps([*map(version, _PACKAGES), zlib.ZLIB_RUNTIME_VERSION]).encode())
    for path in sorted(path for room in _ROOMS for path in _sources(root / room)):
        found.update(path.relative_to(root).as_posix().encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _sources(room: Path) -> Iterable[Path]:
    """Return the files of a room that are part of the program: not the data that lie in `warehouse/data`."""
    for each in sorted(room.iterdir()):
        if each.is_dir() and each.name not in ("data", "__pycache__"):
            yield from _sources(each)
        elif each.suffix in (".py", ".js", ".css", ".html", ".json", ".sql"):
            yield each
