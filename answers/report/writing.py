"""Reports as folders: one a release, in which nothing is written that is there already.

A release's folder is whole by itself: it can be copied to a web server, or into a mail. What is the same as in the
report of another release is linked to it and takes no space.
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

from iosig.answers.report.existing import MANIFEST, Known, Page, keep
from iosig.reports.site.packing import Content
from iosig.warehouse.errors import UsageError
from iosig.warehouse.placing import link_or_copy, make_folder, moved_into_place
from iosig.warehouse.store.store import Store, held_alone

#: says that a folder is a report, so that no other one is ever cleared
MARK = ".iosig-report"
#: of one who writes into it; beside it stands who that is
_LOCK = ".iosig-lock"
LATEST = "latest"
#: what the mark says, by whether users are hidden
_MARKS = {
    False: "This folder is kept by `iosig report`.\n",
    True: "This folder is kept by `iosig report`, which hides users.\n",
}


@dataclass(frozen=True, slots=True)
class Written:
    """What a report came to: where it begins, its files and bytes, and how many of them were new."""

    page: Path
    file_count: int
    byte_count: int
    new_count: int
    removed_release_ids: tuple[str, ...]


def require_own(folder: Path) -> None:
    """Raise UsageError where a folder holds something that is no report."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: give a folder for the report.")
    held = (_LOCK, f"{_LOCK}.json")
    others = any(path.name not in held for path in folder.iterdir()) if folder.is_dir() else False
    if others and not (folder / MARK).is_file():
        raise UsageError(f"{folder} holds other things than a report: give a folder that is new, or empty.")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one report at a time; UsageError with who holds it where another one is written."""
    require_own(folder)
    with held_alone(Store(folder), _LOCK, "report", "Wait for it, or write this one --output another folder."):
        yield


def begin(folder: Path, *, is_hiding: bool) -> tuple[str, ...]:
    """Mark a folder as a report whose users are hidden or not; return the releases whose pages are removed for it.

    Where users are hidden that were not before, pages that name them go.
    """
    make_folder(folder)
    mark, said = folder / MARK, _MARKS[is_hiding]
    known = mark.read_text(encoding="utf-8") if mark.is_file() else said
    gone = remove_all_but(folder, ()) if is_hiding and known != said else ()
    mark.write_text(said, encoding="utf-8")
    return gone


def known_in(folder: Path, release_id: str) -> Known:
    """Return the pages that there are of a release, and of the other one that was written last."""
    make_folder(folder)
    other = _newest(folder, release_id)
    return Known.in_folders([folder / release_id, *([other] if other else [])])


def write(folder: Path, release_id: str, pages: Iterable[Page]) -> tuple[int, int, int]:
    """Have a release's folder hold these files and no others; return how many there are, their bytes, and the new.

    A file that is as it should be stays; one that another release's report has is linked. Each comes whole or not.
    """
    make_folder(folder)
    own, other = folder / release_id, _newest(folder, release_id)
    there, made_of, size, new = set[str](), dict[str, tuple[str, str]](), 0, 0
    for page in pages:
        there.add(page.path)
        size += page.byte_count
        if page.lies is None:
            new += _placed(own / page.path, page.data, other / page.path if other else None)
        elif page.lies != own / page.path:
            _put(own / page.path, partial(link_or_copy, page.lies))
        if page.fingerprint:
            made_of[page.path] = page.fingerprint, page.digest
    keep(own, made_of)
    for path in [path for path in own.rglob("*") if path.is_file()]:
        if path.relative_to(own).as_posix() not in there | {MANIFEST}:
            path.unlink()
    return len(there), size, new


def _newest(folder: Path, release_id: str) -> Path | None:
    """Return the report of another release, the last one that was written."""
    others = [path for path in folders(folder) if path.name != release_id]
    return max(others, key=lambda path: path.stat().st_mtime, default=None)


def _placed(path: Path, data: bytes, twin: Path | None) -> bool:
    """Have a file hold some bytes; return whether they are new."""
    if _holds(path, data):
        return False
    if twin is not None and _holds(twin, data):
        _put(path, partial(link_or_copy, twin))
        return False
    _put(path, lambda temporary: temporary.write_bytes(data))
    return True


def _put(path: Path, fill: Callable[[Path], object]) -> None:
    """Have a file come into its place whole."""
    make_folder(path.parent)
    # A power cut may cost what the next report makes anew: nothing waits for the disk here.
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
    """Return the folders of releases in a report."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and path.name != LATEST)


def show(folder: Path, release_id: str) -> None:
    """Have `latest/` be a release's folder: in one step where the file system has links, else as a copy."""
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


def remove_all_but(folder: Path, kept: Sequence[str]) -> tuple[str, ...]:
    """Remove the folders of releases that are not kept any more; return which."""
    gone = [path for path in folders(folder) if path.name not in kept and (path / "index.html").is_file()]
    for path in gone:
        # first out of sight, so that nobody opens a half
        leaving = path.with_name(f".{path.name}.tmp")
        with suppress(OSError):
            os.replace(path, leaving)
            shutil.rmtree(leaving, ignore_errors=True)
    return tuple(path.name for path in gone)


def put(folder: Path, content: Content) -> None:
    """Write a file beside the releases' folders, if it is not there as it is."""
    path = folder / content.path
    if not _holds(path, content.data):
        with moved_into_place(path.absolute()) as temporary:
            temporary.write_bytes(content.data)
