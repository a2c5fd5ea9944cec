"""A power cut at any write of a run: what was not on disk is gone or torn, and the next run ends all the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from iosig.flows import nightly
from iosig.settings.model import Settings
from iosig.warehouse.releases import publishing, releases
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release, published
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store.store import Store
from tests.nights import pass_every_check


class PowerCut(BaseException):
    """What no handler of ours catches."""


@dataclass
class Disk:
    """What is on disk for good: files as they were when they were synced, folders with the names that they had then."""

    files: dict[int, tuple[int, int]] = field(default_factory=dict)
    folders: dict[int, set[str]] = field(default_factory=dict)
    sync_count: int = 0

    def hold(self, path: Path) -> None:
        """Take a file or folder to be on disk as it is now."""
        status = path.stat()
        if path.is_dir():
            self.folders[status.st_ino] = set(os.listdir(path))
        else:
            self.files[status.st_ino] = (status.st_size, status.st_mtime_ns)

    def hold_all(self, root: Path) -> None:
        """Take all that lies in a folder to be on disk."""
        for path in (root, *root.rglob("*")):
            if not path.is_symlink():
                self.hold(path)

    def left(self, root: Path, into: Path) -> None:
        """Copy what is left after a cut: names that were not synced are absent, files are torn."""
        into.mkdir()
        names = self.folders.get(root.stat().st_ino, set())
        for path in root.iterdir():
            if path.name not in names and not _is_sqlites(path):
                continue
            if path.is_symlink():
                (into / path.name).symlink_to(os.readlink(path))
            elif path.is_dir():
                self.left(path, into / path.name)
            else:
                self._leave(path, into / path.name)

    def _leave(self, path: Path, target: Path) -> None:
        status = path.stat()
        is_whole = self.files.get(status.st_ino) == (status.st_size, status.st_mtime_ns) or _is_sqlites(path)
        content = path.read_bytes()
        target.write_bytes(content if is_whole else content[: len(content) // 2])


def _is_sqlites(path: Path) -> bool:
    """Return whether SQLite looks after a file itself, beneath what can be seen here."""
    return ".sqlite" in path.name


@contextmanager
def cut_at(monkeypatch: pytest.MonkeyPatch, disk: Disk, count: int | None) -> Iterator[None]:
    """Cut the power in place of a sync, counted from 0; never if None."""
    fsync = os.fsync

    def counted(descriptor: int) -> None:
        if count is not None and disk.sync_count >= count:
            raise PowerCut
        disk.sync_count += 1
        fsync(descriptor)
        disk.hold(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", counted)
        yield


def run(store: Store) -> Release:
    return nightly.run_inline(store, Settings(), lambda *_: None)


def contents(store: Store) -> dict[str, Any]:
    """Every row of every table of the current release, in an order of its own."""
    with opened(store, releases.find(store, None)) as connection:
        return {
            table.name: sorted(map(str, connection.sql(f'select t from "{table.name}" as t').fetchall()))
            for table in published()
        }


@pytest.fixture(scope="module")
def undisturbed(landed_site: Store, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """What an undisturbed run releases, and how often it syncs."""
    store = Store(tmp_path_factory.mktemp("undisturbed") / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    disk = Disk()
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_every_check(monkeypatch)
        with cut_at(monkeypatch, disk, None):
            run(store)
    return contents(store), disk.sync_count


def assert_ends_the_same(
    landed: Store, folder: Path, count: int, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = Store(folder / "before"), Store(folder / "after")
    shutil.copytree(landed.root, before.root)
    disk = Disk()
    disk.hold_all(before.root)
    with cut_at(monkeypatch, disk, count), pytest.raises(PowerCut):
        run(before)
    disk.left(before.root, after.root)
    current = releases.current(after)
    if current is not None:
        assert contents(after) == expected, "all of the new release or none"
    else:
        run(after)
    publishing.complete(after)
    assert contents(after) == expected
    assert verify(after, is_all=True) == []
    assert len(releases.history(after)) == 1


#: of all syncs: so many parts, at whose ends the power is cut
PARTS = [pytest.param(2, marks=pytest.mark.slow), pytest.param(120, marks=pytest.mark.long)]


@pytest.mark.parametrize("part_count", PARTS)
@pytest.mark.usefixtures("quick_checks")
def test_the_next_run_ends_as_if_nothing_had_been(
    part_count: int,
    landed_site: Store,
    undisturbed: tuple[dict[str, Any], int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected, sync_count = undisturbed
    assert sync_count > 300
    counts = sorted({(2 * part + 1) * sync_count // (2 * part_count) for part in range(part_count)})
    for count in counts:
        folder = tmp_path / str(count)
        folder.mkdir()
        assert_ends_the_same(landed_site, folder, count, expected, monkeypatch)
        shutil.rmtree(folder)
