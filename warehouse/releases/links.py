"""`latest/`: the current release as plain Parquet files, for readers that know of no releases.

A folder a table, in it `day=` folders where the table is kept by day. The files are links to the release's own: nothing
is copied. `latest` is switched in one step, and nothing that a pattern finds beside it holds another release.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from warehouse.contracts import Table, frames
from warehouse.placing import make_folder, moved_into_place, synced
from warehouse.releases.releases import Release, day_of, files_of, published
from warehouse.store.store import Store, write_parquet

#: no pattern finds what begins with a dot
_FOLDER = ".latest-"
_POINTER = "latest"
#: pandas fails at folders of no value as Hive names them, and passes over names that begin with an underscore
NO_DAY = "undated"
#: a table with such a column has it in its files: a folder's `day=` would be another one
_DAY = "day"


def link_latest(store: Store, release: Release) -> Path:
    """Have `latest/` be a release; return it. What it was before stays until the next time, for whoever reads it."""
    pointer, before, folder = store.root / _POINTER, _linked(store), store.root / _name(release)
    if before != folder.name:
        shutil.rmtree(folder, ignore_errors=True)
        with moved_into_place(folder) as made:
            write_linked(store, release, made)
        if pointer.is_dir() and not pointer.is_symlink():
            # the warehouse was copied by what follows links
            pointer.rename(store.root / f"{_FOLDER}copied")
        with moved_into_place(pointer) as temporary:
            temporary.symlink_to(folder.name, target_is_directory=True)
    for old in store.root.glob(f"{_FOLDER}*"):
        if old.name not in (folder.name, before):
            shutil.rmtree(old, ignore_errors=True)
    return pointer


def is_latest(store: Store, release: Release) -> bool:
    """Return whether `latest/` is a release."""
    return _linked(store) == _name(release)


def _linked(store: Store) -> str | None:
    pointer = store.root / _POINTER
    return os.readlink(pointer) if pointer.is_symlink() else None


def _name(release: Release) -> str:
    return f"{_FOLDER}{release.sequence}-{release.release_id}"


def write_linked(store: Store, release: Release, into: Path) -> None:
    """Make a folder of a release: a folder a table, its files linked where that can be, else copied."""
    files = files_of(store, release)
    for table in published():
        folder = into / table.name
        make_folder(folder)
        for path in files.get(table.name, []):
            target = folder / place_in(table, path)
            make_folder(target.parent)
            link_or_copy(path, target)
        if not files.get(table.name):
            write_parquet(frames.empty(table), table, folder / "empty.parquet")


def place_in(table: Table, path: Path) -> Path:
    """Return where a released file of a table lies in the table's folder."""
    if table.partition is None:
        return Path(path.name)
    day = day_of(path)
    value = day.isoformat() if day else NO_DAY
    return Path(value if _DAY in table.column_names else f"{_DAY}={value}", path.name)


def link_or_copy(path: Path, target: Path) -> None:
    """Have a file in a second place, without taking space where the file system can do that."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
        synced(target)
