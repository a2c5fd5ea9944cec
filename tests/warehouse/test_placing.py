"""Placing: a file or a folder is there whole or not at all."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from iosig.warehouse.placing import SyncedStream, make_read_only, moved_into_place, scratch, sweep_temporaries


class Killed(BaseException):
    """What no handler of ours catches."""


def lying_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_only_in_a_scratch_folder_nobody_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []
    monkeypatch.setattr(os, "fsync", waited.append)

    def write(name: str) -> None:
        with moved_into_place(tmp_path / name) as temporary:
            temporary.write_text(name)
        with SyncedStream(tmp_path / f"{name}.stream", "xb") as file:
            file.write(b"all")

    with scratch():
        write("a")
    assert not waited
    assert ((tmp_path / "a").read_text(), (tmp_path / "a.stream").read_bytes()) == ("a", b"all")
    write("b")
    assert len(waited) == 4


def test_a_file_appears_when_it_is_whole_and_in_folders_that_were_not_there(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "file"
    with moved_into_place(target) as temporary:
        temporary.write_text("half")
        assert not target.exists()
        assert temporary.parent == target.parent
    assert target.read_text() == "half"
    assert lying_in(tmp_path) == ["new", "new/deep", "new/deep/file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Killed])
def test_after_an_error_the_old_file_is_intact_and_nothing_else_is_left(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    def interrupted() -> None:
        with moved_into_place(target) as temporary:
            temporary.write_text("new")
            raise error

    with pytest.raises(error):
        interrupted()
    assert target.read_text() == "old"
    assert lying_in(tmp_path) == ["file"]


def test_a_folder_appears_with_all_that_is_in_it_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "folder"

    def interrupted() -> None:
        with moved_into_place(target) as temporary:
            (temporary / "deep").mkdir(parents=True)
            (temporary / "deep" / "file").write_text("x")
            raise Killed

    with pytest.raises(Killed):
        interrupted()
    assert lying_in(tmp_path) == []
    with moved_into_place(target) as temporary:
        (temporary / "deep").mkdir(parents=True)
        (temporary / "deep" / "file").write_text("x")
    assert lying_in(tmp_path) == ["folder", "folder/deep", "folder/deep/file"]


def test_a_folder_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").write_text("old")

    def replaced() -> None:
        with moved_into_place(target) as temporary:
            temporary.mkdir()
            (temporary / "new").write_text("new")

    with pytest.raises(OSError, match="not empty"):
        replaced()
    assert lying_in(tmp_path) == ["folder", "folder/old"]


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with moved_into_place(target) as first, moved_into_place(target) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert target.read_text() == "first", "the one that ends last"
    assert lying_in(tmp_path) == ["file"]


def test_a_writer_that_wrote_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), moved_into_place(tmp_path / "file"):
        pass
    assert lying_in(tmp_path) == []


def test_what_killed_writers_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".file.0a.tmp").touch()
    (tmp_path / ".folder.0b.tmp" / "deep").mkdir(parents=True)
    (tmp_path / "kept.tmp").touch()
    (tmp_path / ".kept").touch()
    sweep_temporaries(tmp_path)
    assert lying_in(tmp_path) == [".kept", "kept.tmp"]


@pytest.mark.parametrize(("mode", "left"), [(0o644, 0o444), (0o600, 0o400), (0o664, 0o444), (0o444, 0o444)])
def test_read_only_gives_nobody_a_right(tmp_path: Path, mode: int, left: int) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    make_read_only(path)
    assert path.stat().st_mode & 0o777 == left


@pytest.fixture
def little_room() -> Iterator[None]:
    """Let no file grow beyond 100 bytes: what is beyond is written in part first, as on a disk that gets full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("little_room")
def test_a_stream_never_writes_a_part_in_silence(tmp_path: Path) -> None:
    with SyncedStream(tmp_path / "whole", "xb") as file:
        assert file.write(b"x" * 100) == 100
    with pytest.raises(OSError, match="File too large") as told, SyncedStream(tmp_path / "part", "xb") as file:
        file.write(b"x" * 101)
    assert (told.value.errno, told.value.filename) == (errno.EFBIG, str(tmp_path / "part"))


@pytest.mark.usefixtures("little_room")
def test_a_place_is_named_that_is_full(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File too large") as told, moved_into_place(tmp_path / "file") as temporary:
        temporary.write_bytes(b"x" * 101)
    assert told.value.filename == str(tmp_path / "file")
    assert lying_in(tmp_path) == []
