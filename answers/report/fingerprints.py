"""Compute fingerprints of the inputs of report pages: a page is rebuilt when its fingerprint changes."""

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

#: packages of iosig and of others on which the content of a page may depend
_OWN_PACKAGES = ("expectations", "flows", "reports", "sql", "transforms", "warehouse")
_PACKAGES = ("duckdb", "jinja2", "matplotlib", "numpy", "polars", "scipy", "sqlglot")
_DAY_CHARACTERS = 10


class Inputs:
    """Hashes of a release's files by table and day, of the program, and of the pseudonyms."""

    def __init__(self, store: Store, release: Release, hidden: str = "") -> None:
        """Hash the files; hidden: identifies the pseudonyms, empty without pseudonyms."""
        self._always = [hash_program(), hashlib.sha256(hidden.encode()).hexdigest(), store.address]
        self._parts: dict[str, dict[date | None, str]] = {
            table: _by_day(store, paths) for table, paths in releases.files_of(store, release).items()
        }
        self._whole = {table: _digest(sorted(parts.values())) for table, parts in self._parts.items()}

    def fingerprint(
        self, *more: object, tables: Iterable[str] = (), days: Collection[date | None] | None = None
    ) -> str:
        """Hash tables (default: all) on some days (None: all), and further values.

        days: select from tables partitioned by day; the element None stands for rows without a day.
        """
        table_names = sorted(tables) or sorted(self._parts)
        if days is None:
            return _digest([self._always, more, [[table, self._whole.get(table)] for table in table_names]])
        ordered = sorted(days, key=str)
        parts = [[table, [self._parts.get(table, {}).get(day) for day in ordered]] for table in table_names]
        return _digest([self._always, more, parts])


def fingerprint_program() -> str:
    """Return the fingerprint of a page that depends only on the program."""
    return _digest([hash_program()])


def _digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values, default=str).encode()).hexdigest()


def _by_day(store: Store, paths: Iterable[Path]) -> dict[date | None, str]:
    """Hash the files of each day; files without a day form one group."""
    marks_by_day: dict[date | None, list[list[object]]] = {}
    for path in paths:
        marks_by_day.setdefault(_day(path), []).append(_mark(store, path))
    return {day: _digest(sorted(marks, key=str)) for day, marks in marks_by_day.items()}


def _day(path: Path) -> date | None:
    try:
        return date.fromisoformat(path.name[:_DAY_CHARACTERS])
    except ValueError:
        return None


def _mark(store: Store, path: Path) -> list[object]:
    """Return name and modification mark of a file; in an object store the name is enough, since files are immutable."""
    name = path.relative_to(store.root).as_posix()
    # in an object store each mark costs a request
    return [name, *(store.files.mark(name) if store.url is None else ())]


@cache
def hash_program() -> str:
    """Hash the source files that build pages, and the versions of the packages that they use."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256(json.dumps([*map(version, _PACKAGES), zlib.ZLIB_RUNTIME_VERSION]).encode())
    for path in sorted(path for folder in _OWN_PACKAGES for path in _sources(root / folder)):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(folder: Path) -> Iterable[Path]:
    """Yield the source files of a package folder, without `data`."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in ("data", "__pycache__"):
            yield from _sources(path)
        elif path.suffix in (".py", ".js", ".css", ".html", ".json", ".sql"):
            yield path
