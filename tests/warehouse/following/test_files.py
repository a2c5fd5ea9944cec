"""Test a followed file: growth, truncation, rotation, replacement, in a process or across several, and other paths."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.following.files import EDGE_BYTES, FollowedFile, Position
from tests.budget import examples

#: distinct content at every offset
TEXT = b"".join(b"%06d\n" % number for number in range(4000))


def all_of(followed: FollowedFile) -> list[tuple[str | None, bytes]]:
    """Read all new content, joined between events."""
    found: list[tuple[str | None, bytes]] = []
    while True:
        piece = followed.read()
        if piece is not None:
            assert piece.content
            if found and piece.event is None:
                found[-1] = (found[-1][0], found[-1][1] + piece.content)
            else:
                found.append((piece.event, piece.content))
        elif not followed.is_behind:
            return found


def again(followed: FollowedFile, most_bytes: int = 1 << 20) -> FollowedFile:
    """Return a follower that resumes at the position, as a new process would."""
    position = followed.position
    known = Position.from_dict(json.loads(json.dumps(position.to_dict()))) if position else None
    return FollowedFile(followed.path, known, most_bytes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace"


@pytest.fixture(params=[False, True], ids=["one_process", "two_processes"])
def restarted(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def followed_to(path: Path, content: bytes, restarted: bool) -> FollowedFile:
    path.write_bytes(content)
    followed = FollowedFile(path)
    assert all_of(followed) == [(None, content)]
    return again(followed) if restarted else followed


def test_appended_content_is_read_once_in_bounded_reads(path: Path) -> None:
    path.write_bytes(TEXT)
    followed = FollowedFile(path, max_read_bytes=1000)
    first = followed.read()
    assert first is not None
    assert (first.start, first.content, first.event, followed.is_behind) == (0, TEXT[:1000], None, True)
    assert all_of(followed) == [(None, TEXT[1000:])]
    assert (followed.read(), followed.is_behind) == (None, False)
    with path.open("ab") as file:
        file.write(b"more")
    assert all_of(followed) == [(None, b"more")]


def test_unchanged_file_is_not_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = followed_to(path, TEXT, False)
    monkeypatch.setattr(os, "open", None)
    assert followed.read() is None


def test_no_file_descriptor_is_kept(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    kept = [followed_to(path, TEXT, False) for _ in range(5)]
    assert len(kept) == 5
    assert (len(os.listdir("/proc/self/fd")) if before else 0) == before


def test_missing_file_has_no_new_content(path: Path, restarted: bool) -> None:
    followed = FollowedFile(path)
    assert followed.read() is None
    path.write_bytes(b"")
    assert followed.read() is None
    path.write_bytes(TEXT)
    assert all_of(followed) == [(None, TEXT)]
    followed = again(followed) if restarted else followed
    path.unlink()
    assert [followed.read(), followed.read(), followed.is_behind] == [None, None, False]
    assert FollowedFile(path / "below").read() is None


@pytest.mark.parametrize("size", [5, 3000, EDGE_BYTES, len(TEXT)])
def test_file_truncated_in_place_is_read_from_start(path: Path, restarted: bool, size: int) -> None:
    followed = followed_to(path, TEXT[:size], restarted)
    with path.open("r+b") as file:
        file.truncate()
        file.write(b"new" + TEXT)
    assert all_of(followed) == [("truncated", b"new" + TEXT)]


def test_file_truncated_to_fewer_bytes_is_read_from_start(path: Path, restarted: bool) -> None:
    followed = followed_to(path, TEXT, restarted)
    os.truncate(path, 700)
    assert all_of(followed) == [("truncated", TEXT[:700])]


def test_emptied_file_is_classified_once_it_has_content(path: Path, restarted: bool) -> None:
    followed = followed_to(path, TEXT, restarted)
    os.truncate(path, 0)
    assert all_of(followed) == all_of(followed) == []
    path.write_bytes(TEXT + b"goes on")
    assert all_of(followed) == [(None, b"goes on")]
    os.truncate(path, 0)
    assert all_of(followed) == []
    path.write_bytes(b"other")
    assert all_of(followed) == [("truncated", b"other")]


def test_longer_file_with_changed_end_counts_as_truncated(path: Path, restarted: bool) -> None:
    """First bytes and inode are equal and the size has grown; only the last bytes read have changed."""
    followed = followed_to(path, TEXT, restarted)
    changed = TEXT[:-10] + b"something else that is longer"
    with path.open("r+b") as file:
        file.write(changed)
    assert all_of(followed) == [("truncated", changed)]


def test_replaced_file_is_read_from_start(path: Path, tmp_path: Path, restarted: bool) -> None:
    followed = followed_to(path, TEXT, restarted)
    (tmp_path / "new").write_bytes(b"other" + TEXT)
    (tmp_path / "new").replace(path)
    assert all_of(followed) == [("replaced", b"other" + TEXT)]


@pytest.mark.parametrize("size", [1, 100, EDGE_BYTES + 1, len(TEXT)])
def test_rewritten_file_with_same_start_continues(path: Path, tmp_path: Path, restarted: bool, size: int) -> None:
    followed = followed_to(path, TEXT[:size], restarted)
    for content in (TEXT[:size], TEXT[:size] + b"more"):
        (tmp_path / "new").write_bytes(content)
        (tmp_path / "new").replace(path)
        assert all_of(followed) == ([(None, b"more")] if content.endswith(b"more") else [])


def test_rotated_file_is_read_to_its_end(path: Path, tmp_path: Path, restarted: bool) -> None:
    path.write_bytes(TEXT)
    followed = FollowedFile(path, max_read_bytes=1000)
    followed.read()
    followed = again(followed, 1000) if restarted else followed
    path.rename(tmp_path / "trace.1")
    path.write_bytes(b"next")
    assert all_of(followed) == [(None, TEXT[1000:]), ("rotated", b"next")]


def test_rotated_file_is_read_until_next_file_has_content(path: Path, tmp_path: Path, restarted: bool) -> None:
    followed = followed_to(path, TEXT, restarted)
    old = tmp_path / "trace.1"
    path.rename(old)
    for content in (b"late", b"later"):
        with old.open("ab") as file:
            file.write(content)
        assert all_of(followed) == [(None, content)]
        followed = again(followed) if restarted else followed
        path.touch()
    old = old.rename(tmp_path / "trace.2")
    with old.open("ab") as file:
        file.write(b"last")
    path.write_bytes(b"next")
    assert all_of(followed) == [(None, b"last"), ("rotated", b"next")]


def test_rotation_is_detected_despite_equal_first_bytes(path: Path, tmp_path: Path, restarted: bool) -> None:
    followed = followed_to(path, b"{", restarted)
    with path.open("ab") as file:
        file.write(b"old")
    path.rename(tmp_path / "trace.1")
    path.write_bytes(b"{new")
    assert all_of(followed) == [(None, b"old"), ("rotated", b"{new")]


def test_rewritten_file_with_backup_continues(path: Path, tmp_path: Path, restarted: bool) -> None:
    for size in (9, 5000):
        followed = followed_to(path, TEXT[:size], restarted)
        path.rename(tmp_path / "trace~")
        path.write_bytes(TEXT)
        assert all_of(followed) == [(None, TEXT[size:])]


def test_reused_inode_of_unrelated_file_is_not_a_rotation(path: Path, tmp_path: Path, restarted: bool) -> None:
    """A file system may reuse the inode of a deleted file for the next file."""
    followed = followed_to(path, TEXT[:9], restarted)
    path.rename(tmp_path / "other")
    (tmp_path / "other").write_bytes(b"something else")
    path.write_bytes(TEXT)
    assert all_of(followed) == [(None, TEXT[9:])]


def test_event_belongs_to_start_of_file(path: Path, tmp_path: Path) -> None:
    followed = followed_to(path, TEXT, False)
    path.rename(tmp_path / "trace.1")
    path.write_bytes(b"next")
    piece = followed.read()
    assert piece is not None
    assert (piece.position(0).event, piece.position(1).event) == ("rotated", None)
    later = FollowedFile(path, Position.from_dict(piece.position(0).to_dict()))
    assert all_of(later) == [("rotated", b"next")]


def test_offset_within_a_read_is_a_valid_position(path: Path) -> None:
    path.write_bytes(TEXT)
    followed = FollowedFile(path, max_read_bytes=6000)
    pieces = [piece for _ in range(4) if (piece := followed.read())]
    for piece in pieces:
        for offset in {piece.start, piece.start + 1, piece.start + 4097, piece.end}:
            position = Position.from_dict(json.loads(json.dumps(piece.position(offset).to_dict())))
            assert all_of(FollowedFile(path, position)) == [(None, TEXT[offset:])]
    with pytest.raises(ValueError, match="outside"):
        pieces[1].position(0)


def test_symlink_is_followed_to_its_target(path: Path, tmp_path: Path, restarted: bool) -> None:
    (tmp_path / "runs").mkdir()
    first, second = tmp_path / "runs" / "1", tmp_path / "runs" / "2"
    path.symlink_to(first)
    assert FollowedFile(path).read() is None
    followed = followed_to(path, TEXT, restarted)
    second.write_bytes(b"second")
    path.unlink()
    path.symlink_to(second)
    with first.open("ab") as file:
        file.write(b"rest")
    assert all_of(followed) == [(None, b"rest"), ("rotated", b"second")]


# ---- refused paths


def test_special_file_is_refused_without_blocking(path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket"))
    for name in ("pipe", "loop", "socket", ".", "/dev/zero"):
        followed = FollowedFile(tmp_path / name)
        for _ in range(2):
            with pytest.raises(InputRefused):
                followed.read()
    listening.close()
    followed = followed_to(path, TEXT, False)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputRefused, match="pipe"):
        followed.read()


def test_pipe_that_replaces_the_file_does_not_block(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = followed_to(path, TEXT, False)
    with path.open("ab") as file:
        file.write(b"more")
    seen = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda *_args, **_more: seen)
    assert followed.read() is None


def test_unreadable_file_is_refused_until_readable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(TEXT)
    followed = FollowedFile(path)

    def refused(*_args: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        with pytest.raises(InputRefused, match="Permission denied"):
            followed.read()
    assert all_of(followed) == [(None, TEXT)]


# ---- random sequences

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "truncate", "rotate", "replace", "rewrite", "remove"]), st.booleans()
    ),
    max_size=12,
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, most_bytes=st.sampled_from([3, 50, 1 << 20]))
def test_each_byte_is_read_once_for_any_sequence_of_changes(
    tmp_path: Path, steps: list[tuple[str, bool]], most_bytes: int
) -> None:
    """After each step all content is read, perhaps by another process; the result is the content of the step."""
    path = tmp_path / "trace"
    for old in tmp_path.iterdir():
        old.unlink()
    followed, content, has_read = FollowedFile(path, max_read_bytes=most_bytes), b"", False
    for number, (step, is_restarted) in enumerate(steps):
        new = b"%d %s\n" % (number, step.encode()) * 3
        event = None
        if step == "append" or not path.exists():
            is_fresh = not path.exists()
            event = "replaced" if is_fresh and has_read else None
            with path.open("ab") as file:
                file.write(new)
            content = new if is_fresh else content + new
        elif step == "rewrite":
            content += new
            (tmp_path / "new").write_bytes(content)
            (tmp_path / "new").replace(path)
        elif step == "remove":
            # The inode must not be reused, or the new file would pass for a truncated file.
            path.replace(tmp_path.parent / f"{tmp_path.name} {number}")
            assert all_of(followed) == []
            continue
        else:
            event = {"truncate": "truncated", "rotate": "rotated", "replace": "replaced"}[step]
            if step == "rotate":
                path.rename(tmp_path / f"trace.{number}")
            elif step == "replace":
                path.replace(tmp_path.parent / f"{tmp_path.name} {number}")
            else:
                os.truncate(path, 0)
            path.write_bytes(new)
            content = new
        assert all_of(followed) == [(event, new)]
        has_read = True
        followed = again(followed, most_bytes) if is_restarted else followed
