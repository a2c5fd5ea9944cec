"""Write report folders: one per release, updated in place, without rewriting unchanged files.

A release folder is self-contained and can be copied to a web server. Files that are equal in another release's report
are hard links to it and take no space.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from iosig.answers.report.existing import MANIFEST, Page, PageCache, write_manifest
from iosig.reports.site.packing import Content
from iosig.warehouse.errors import UsageError
from iosig.warehouse.placing import atomic_write, link_or_copy, make_folder
from iosig.warehouse.store.store import Store, hold_lock

#: marker file of a report folder: folders without it are never cleared
MARK = ".iosig-report"
#: lock file of the process that writes to the folder
_LOCK = ".iosig-lock"
LATEST = "latest"
#: content of the marker file, by whether users are hidden
_MARKS = {
    False: "This folder is kept by `iosig report`.\n",
    True: "This folder is kept by `iosig report`, which hides users.\n",
}


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """Summary of a written report: first page, file and byte counts, and removed releases."""

    page: Path
    file_count: int
    byte_count: int
    new_count: int
    removed_release_ids: tuple[str, ...]


def require_own(folder: Path) -> None:
    """Raise UsageError if a folder contains anything but a report."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: pass a folder for the report.")
    lock_names = (_LOCK, f"{_LOCK}.json")
    has_other_files = any(path.name not in lock_names for path in folder.iterdir()) if folder.is_dir() else False
    if has_other_files and not (folder / MARK).is_file():
        raise UsageError(f"{folder} has other content than a report: pass a new or empty folder.")


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lock a folder; raises UsageError, naming the holder, if another process writes a report to it."""
    require_own(folder)
    with hold_lock(Store(folder), _LOCK, "report", "Wait for it, or pass --output with another folder."):
        yield


def begin(folder: Path, *, is_hiding: bool) -> tuple[str, ...]:
    """Write the marker file, and return the releases with removed pages.

    All pages are removed when users become hidden, since the pages name users.
    """
    make_folder(folder)
    mark, text = folder / MARK, _MARKS[is_hiding]
    existing = mark.read_text(encoding="utf-8") if mark.is_file() else text
    removed = remove_all_but(folder, ()) if is_hiding and existing != text else ()
    mark.write_text(text, encoding="utf-8")
    return removed


def open_cache(folder: Path, release_id: str) -> PageCache:
    """Open a cache with the existing pages of a release, and of the other release that was written last."""
    make_folder(folder)
    other_folder = _newest(folder, release_id)
    return PageCache.in_folders([folder / release_id, *([other_folder] if other_folder else [])])


def write(folder: Path, release_id: str, pages: Iterable[Page]) -> tuple[int, int, int]:
    """Make a release folder contain exactly these files; return file count, bytes, and the number of new files.

    Unchanged files stay, and files equal to those of another release are linked. Each file is written atomically.
    """
    make_folder(folder)
    release_folder, other_folder = folder / release_id, _newest(folder, release_id)
    paths, fingerprints, size, new = set[str](), dict[str, tuple[str, str]](), 0, 0
    for page in pages:
        paths.add(page.path)
        size += page.byte_count
        if page.existing is None:
            new += _write_or_link(
                release_folder / page.path, page.data, other_folder / page.path if other_folder else None
            )
        elif page.existing != release_folder / page.path:
            _write_atomically(release_folder / page.path, partial(link_or_copy, page.existing))
        if page.fingerprint:
            fingerprints[page.path] = page.fingerprint, page.digest
    write_manifest(release_folder, fingerprints)
    for path in [path for path in release_folder.rglob("*") if path.is_file()]:
        if path.relative_to(release_folder).as_posix() not in paths | {MANIFEST}:
            path.unlink()
    return len(paths), size, new


def _newest(folder: Path, release_id: str) -> Path | None:
    """Return the folder of the other release that was written last; None without one."""
    candidates = [path for path in folders(folder) if path.name != release_id]
    return max(candidates, key=lambda path: path.stat().st_mtime, default=None)


def _write_or_link(path: Path, data: bytes, twin: Path | None) -> bool:
    """Write, link or keep a file; returns whether it was written."""
    if _holds(path, data):
        return False
    if twin is not None and _holds(twin, data):
        _write_atomically(path, partial(link_or_copy, twin))
        return False
    _write_atomically(path, lambda temporary: temporary.write_bytes(data))
    return True


def _write_atomically(path: Path, fill: Callable[[Path], object]) -> None:
    """Write a file atomically, through a temporary file and a rename."""
    make_folder(path.parent)
    # No fsync: the next report rebuilds files lost in a power failure.
    temporary = path.with_name(f".{uuid.uuid4().hex[:8]}.tmp")
    try:
        fill(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def folders(folder: Path) -> list[Path]:
    """List the release folders of a report, without `latest`."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and path.name != LATEST)


def set_latest(folder: Path, release_id: str) -> None:
    """Point `latest/` to a release folder: atomically with a symbolic link, or as a copy if links are unsupported."""
    latest, temporary = folder / LATEST, folder / f".{LATEST}.{uuid.uuid4().hex[:8]}.tmp"
    if latest.is_symlink() and os.readlink(latest) == release_id:
        return
    try:
        temporary.symlink_to(release_id, target_is_directory=True)
    except OSError:
        shutil.copytree(folder / release_id, temporary)
    if latest.is_dir() and not latest.is_symlink():
        shutil.rmtree(latest)
    os.replace(temporary, latest)


def remove_all_but(folder: Path, kept_ids: Sequence[str]) -> tuple[str, ...]:
    """Remove the folders of expired releases, and return their ids."""
    removed = [path for path in folders(folder) if path.name not in kept_ids and (path / "index.html").is_file()]
    for path in removed:
        # rename first, so that readers never see a partial folder
        temporary = path.with_name(f".{path.name}.tmp")
        with suppress(OSError):
            os.replace(path, temporary)
            shutil.rmtree(temporary, ignore_errors=True)
    return tuple(path.name for path in removed)


def write_shared(folder: Path, content: Content) -> None:
    """Write a file next to the release folders, if its content changed."""
    path = folder / content.path
    if not _holds(path, content.data):
        with atomic_write(path.absolute()) as temporary:
            temporary.write_bytes(content.data)
