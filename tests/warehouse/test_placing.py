"""Test atomic writes of files and folders."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from iosig.warehouse.placing import SyncedStream, atomic_write, make_read_only, scratch, sweep_temporaries


class Killed(BaseException):
    """An exception that no handler of iosig catches."""


def lying_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_only_a_scratch_folder_skips_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []
    monkeypatch.setattr(os, "fsync", waited.append)

    def write(name: str) -> None:
        with atomic_write(tmp_path / name) as temporary:
            temporary.write_text(name)
        with SyncedStream(tmp_path / f"{name}.stream", "xb") as file:
            file.write(b"all")

    with scratch():
        write("a")
    assert not waited
    assert ((tmp_path / "a").read_text(), (tmp_path / "a.stream").read_bytes()) == ("a", b"all")
    write("b")
    assert len(waited) == 4


def test_file_appears_atomically_and_folders_are_created(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "file"
    with atomic_write(target) as temporary:
        temporary.write_text("half")
        assert not target.exists()
        assert temporary.parent == target.parent
    assert target.read_text() == "half"
    assert lying_in(tmp_path) == ["new", "new/deep", "new/deep/file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Killed])
def test_failed_write_keeps_old_file_and_leaves_no_temporary(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    def interrupted() -> None:
        with atomic_write(target) as temporary:
            temporary.write_text("new")
            raise error

    with pytest.raises(error):
        interrupted()
    assert target.read_text() == "old"
    assert lying_in(tmp_path) == ["file"]


def test_folder_appears_atomically(tmp_path: Path) -> None:
    target = tmp_path / "folder"

    def interrupted() -> None:
        with atomic_write(target) as temporary:
            (temporary / "deep").mkdir(parents=True)
            (temporary / "deep" / "file").write_text("x")
            raise Killed

    with pytest.raises(Killed):
        interrupted()
    assert lying_in(tmp_path) == []
    with atomic_write(target) as temporary:
        (temporary / "deep").mkdir(parents=True)
        (temporary / "deep" / "file").write_text("x")
    assert lying_in(tmp_path) == ["folder", "folder/deep", "folder/deep/file"]


def test_existing_folder_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").write_text("old")

    def replaced() -> None:
        with atomic_write(target) as temporary:
            temporary.mkdir()
            (temporary / "new").write_text("new")

    with pytest.raises(OSError, match="not empty"):
        replaced()
    assert lying_in(tmp_path) == ["folder", "folder/old"]


def test_concurrent_writers_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with atomic_write(target) as first, atomic_write(target) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert target.read_text() == "first", "the one that ends last"
    assert lying_in(tmp_path) == ["file"]


def test_writer_that_wrote_nothing_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "file"):
        pass
    assert lying_in(tmp_path) == []


def test_only_temporaries_of_killed_writers_are_swept(tmp_path: Path) -> None:
    (tmp_path / ".file.0a.tmp").touch()
    (tmp_path / ".folder.0b.tmp" / "deep").mkdir(parents=True)
    (tmp_path / "kept.tmp").touch()
    (tmp_path / ".kept").touch()
    sweep_temporaries(tmp_path)
    assert lying_in(tmp_path) == [".kept", "kept.tmp"]


@pytest.mark.parametrize(("mode", "left"), [(0o644, 0o444), (0o600, 0o400), (0o664, 0o444), (0o444, 0o444)])
def test_make_read_only_adds_no_permissions(tmp_path: Path, mode: int, left: int) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    make_read_only(path)
    assert path.stat().st_mode & 0o777 == left


@pytest.fixture
def little_room() -> Iterator[None]:
    """Limit file sizes to 100 bytes; a write beyond the limit is partial, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("little_room")
def test_partial_write_raises_an_error(tmp_path: Path) -> None:
    with SyncedStream(tmp_path / "whole", "xb") as file:
        assert file.write(b"x" * 100) == 100
    with pytest.raises(OSError, match="File too large") as told, SyncedStream(tmp_path / "part", "xb") as file:
        file.write(b"x" * 101)
    assert (told.value.errno, told.value.filename) == (errno.EFBIG, str(tmp_path / "part"))


@pytest.mark.usefixtures("little_room")
def test_error_of_full_disk_names_the_target(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File too large") as told, atomic_write(tmp_path / "file") as temporary:
        temporary.write_bytes(b"x" * 101)
    assert told.value.filename == str(tmp_path / "file")
    assert lying_in(tmp_path) == []
