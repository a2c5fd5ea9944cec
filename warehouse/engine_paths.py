"""Convert paths to the form that each engine reads literally.

DuckDB expands `*`, `?` and `[` in every path that it reads, and fails if a name in a listed folder begins with a
backslash. Polars expands them unless `glob=False`. Both interpret certain starts of a relative path (`~`, `file:`).
URIs (SQLite, SQLAlchemy) cut a path at `?` and `#`. All code that hands a path to an engine goes through this module.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.errors import MachineFault

if TYPE_CHECKING:
    import polars as pl

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
#: pattern characters; DuckDB escapes or splits at a backslash, depending on the rest of the path
_PATTERN = re.compile(r"[*?\[\\]")
_PLAIN_SUFFIX = re.compile(r"(\.[a-z0-9]{1,8}){0,2}", re.IGNORECASE)
_FILE = "file://"


def is_url(text: str) -> bool:
    """Return whether the text begins with a URL scheme; a path may contain `://` further on."""
    return _URL.match(text) is not None


def is_utf8(path: str | Path) -> bool:
    """Return whether a path is valid UTF-8, which JSON, SQLite, Iceberg and DuckDB require."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def utf8_path(path: str | Path) -> str:
    """Return an absolute path for a library that requires UTF-8: a temporary link if the path is not valid UTF-8."""
    absolute = str(Path(path).absolute())
    return absolute if is_utf8(absolute) else duckdb_path(absolute)


# ---- DuckDB


def duckdb_path(path: str | Path) -> str:
    """Return an absolute path that DuckDB reads as exactly this file or folder.

    A path with pattern characters is reached through a symbolic link with a plain name. The link lies in a private
    folder of this process and disappears with it, so the returned path must not be stored: see `duckdb_pattern`.
    """
    parts = Path(path).absolute().parts
    special = [place for place, part in enumerate(parts) if _is_special(part)]
    if not special:
        return os.path.join(*parts)
    end = special[-1] + 1
    return os.path.join(_ALIASES.link_to(os.path.join(*parts[:end])), *parts[end:])


def duckdb_paths(paths: Iterable[str | Path]) -> list[str]:
    """Convert several paths with `duckdb_path`."""
    return [duckdb_path(path) for path in paths]


def duckdb_pattern(path: str | Path) -> str | None:
    """Escape a path as a pattern for a stored view; None if no pattern matches only this path."""
    text = str(Path(path).absolute())
    escaped = re.sub(r"[*?\[]", r"[\g<0>]", text)
    return None if not is_utf8(text) or (escaped != text and "\\" in text) else escaped


def original_paths(text: str) -> str:
    """Replace temporary links in an engine's message by the user's paths."""
    return _ALIASES.replace_links(text)


def _is_special(part: str) -> bool:
    return _PATTERN.search(part) is not None or not is_utf8(part)


class _Aliases:
    """Symbolic links with plain names, in a temporary folder of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._links: dict[str, str] = {}
        self._folder: str | None = None

    def link_to(self, target: str) -> str:
        """Return a cached link to an absolute path, creating it if necessary."""
        with self._lock:
            if target not in self._links:
                folder = self._folder = self._folder or _private_folder()
                # readers choose a decompressor by the file extension
                suffix = "".join(Path(target).suffixes[-2:])
                name = f"{len(self._links)}{suffix if _PLAIN_SUFFIX.fullmatch(suffix) else ''}"
                link = os.path.join(folder, name)
                os.symlink(target, link)
                self._links[target] = link
            return self._links[target]

    def replace_links(self, text: str) -> str:
        """Replace links in the text by their targets."""
        for target, link in sorted(self._links.items(), key=lambda item: len(item[1]), reverse=True):
            text = text.replace(link, target)
        return text


def _private_folder() -> str:
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"):
        with suppress(OSError):
            if not any(_is_special(part) for part in Path(parent).absolute().parts):
                folder = tempfile.mkdtemp(prefix="iosig-paths-", dir=os.path.abspath(parent))
                atexit.register(_remove, folder, os.getpid())
                return folder
    raise MachineFault(
        "DuckDB needs a temporary folder without *, ?, [ or backslash in its path. Set TMPDIR to such a folder."
    )


def _remove(folder: str, process: int) -> None:
    # a forked child shares the folder with its parent
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


_ALIASES = _Aliases()


# ---- Polars


def scan_parquet(
    paths: str | Path | Sequence[str | Path], *, path_column: str | None = None, schema: pl.Schema | None = None
) -> pl.LazyFrame:
    """Scan one or several local Parquet files; `path_column` names a column for the file of each row.

    With `schema`, columns that a file lacks are NULL.
    """
    import polars as pl

    return pl.scan_parquet(
        _polars_paths(paths),
        glob=False,
        hive_partitioning=False,
        include_file_paths=path_column,
        schema=schema,
        missing_columns="raise" if schema is None else "insert",
    )


def read_parquet(paths: str | Path | Sequence[str | Path], columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read one or several local Parquet files; `columns` selects columns, by default all."""
    import polars as pl

    return pl.read_parquet(
        _polars_paths(paths), columns=None if columns is None else list(columns), glob=False, hive_partitioning=False
    )


def read_ipc(path: str | Path) -> pl.DataFrame:
    """Read a local Arrow IPC file."""
    import polars as pl

    # `read_ipc` has no `glob` option
    return pl.scan_ipc(utf8_path(path), glob=False, hive_partitioning=False).collect()


def _polars_paths(paths: str | Path | Sequence[str | Path]) -> str | list[str]:
    if isinstance(paths, str | Path):
        return utf8_path(paths)
    return [utf8_path(path) for path in paths]


# ---- URIs


def sqlite_uri(path: Path, **parameters: str | int) -> str:
    """Return the URI by which SQLite opens a file, with URI parameters such as `mode="ro"`."""
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"{path.resolve().as_uri()}?{query}" if query else path.resolve().as_uri()


def sqlalchemy_uri(path: Path) -> str:
    """Return the URI by which SQLAlchemy opens an SQLite file."""
    return f"sqlite:///{sqlite_uri(path, uri='true')}"


def iceberg_location(path: Path) -> str:
    """Return the location of a local file or folder for Iceberg metadata, which is `file://` and the unchanged path.

    Nothing is percent-encoded: pyiceberg, Polars, DuckDB and Spark all read such a location without decoding it.
    """
    return f"{_FILE}{path}"


def parse_location(location: str) -> str | None:
    """Return the local path that an Iceberg location names; None for a location in an object store."""
    if location.startswith("/"):
        return location
    return location.removeprefix(_FILE) if location.startswith(_FILE) else None
