"""Read a growing file incrementally, even if it is truncated, rotated or replaced.

A file is identified by its device and inode, its first bytes, and the bytes just before the read position (at most 4
KiB each). A digest of all content would require reading the file again whenever a writer replaces it with a new copy.
The last 4 KiB contain times to the microsecond, so they match another run's file only if it is a copy.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iosig.warehouse.errors import InputRefused

#: maximum size of one read [B]
MAX_READ_BYTES = 4 << 20
#: size of the content samples that identify a file: at its start and before the read position [B]
EDGE_BYTES = 4096
#: open without blocking, since opening a FIFO or reading a terminal could block
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: errors if the file is absent, or if a network file system replaced it between two calls
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_EVENTS = ("replaced", "rotated", "truncated")
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Edge:
    """Size and digest (BLAKE2b, hex) of a content sample that identifies a file."""

    size: int
    digest: str

    @classmethod
    def from_content(cls, content: bytes) -> Edge:
        """Compute the size and digest of a content sample."""
        return cls(len(content), hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest())

    def matches(self, content: bytes) -> bool:
        """Return whether the content has this size and digest."""
        return self == Edge.from_content(content)


@dataclass(frozen=True, slots=True)
class Position:
    """Read position in a followed file, and what identifies the file.

    head: the file's first bytes before `offset`. window: the bytes just before `offset`. event: the event of the input
    at this position (such as `truncated`), if no data was returned since.
    """

    device: int
    inode: int
    offset: int
    head: Edge
    window: Edge
    event: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the position as JSON-compatible values."""
        return {
            "device": self.device,
            "inode": self.inode,
            "offset": self.offset,
            "head": [self.head.size, self.head.digest],
            "window": [self.window.size, self.window.digest],
            "event": self.event,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Position:
        """Restore a position from the values of `to_dict`."""
        return cls(**{**values, "head": Edge(*values["head"]), "window": Edge(*values["window"])})


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Non-empty bytes of a followed file from `start` on, and the event (such as `truncated`) that preceded them.

    head: the file's first bytes, at most 4 KiB, including this piece's. before: the bytes just before the piece.
    """

    device: int
    inode: int
    start: int
    content: bytes
    event: str | None
    head: bytes
    before: bytes

    @property
    def end(self) -> int:
        """Offset of the byte after the piece."""
        return self.start + len(self.content)

    def position(self, offset: int) -> Position:
        """Return the position at an offset within the piece, or at its start or end; only the start has the event."""
        if not self.start <= offset <= self.end:
            raise ValueError("the offset is outside the piece")
        used = offset - self.start
        window = self.content[max(used - EDGE_BYTES, 0) : used]
        window = self.before[len(self.before) - min(EDGE_BYTES - len(window), len(self.before)) :] + window
        event = None if used else self.event
        return Position(
            self.device, self.inode, offset, Edge.from_content(self.head[:offset]), Edge.from_content(window), event
        )


class FollowedFile:
    """A followed file; each read returns the bytes that were appended since the previous one.

    The file is open only during a read, so thousands can be followed at once. A read without new data costs one system
    call. The class handles these events between two reads, in one process or across processes:

    - growth: the new bytes are returned;
    - truncation (the content read before is gone): the file is read from its start;
    - replacement by a copy with the same content before the position (a writer that replaces the file atomically):
      reading continues at the position;
    - rotation (renamed within its folder, perhaps with a new file in its place): the old file is read to its end, then
      the new one from its start once it has content, because its writer has then finished the old one. After several
      rotations between two reads, only the first and the last file are found;
    - replacement by an unrelated file: the new file is read from its start;
    - absence, or an empty file: no new data. An emptied file is examined once it has content.
    """

    def __init__(self, path: Path, position: Position | None = None, max_read_bytes: int = MAX_READ_BYTES) -> None:
        self.path = path
        #: whether more data is already available
        self.is_behind = False
        self._at = position
        self._max_read_bytes = max_read_bytes
        #: signature of the file when it was read to its end
        self._exhausted: tuple[int, int, int, int] | None = None
        #: current path of the renamed file
        self._renamed: Path | None = None
        self._is_lost = False

    @property
    def position(self) -> Position | None:
        """Position up to which all data was returned; None before the first data."""
        return self._at

    def read(self) -> Piece | None:
        """Return new data, at most `max_read_bytes`, or None; never blocks.

        Raises InputRefused, at every call, if the path is not a regular file or not readable.
        """
        self.is_behind = False
        status = _stat_regular_file(self.path)
        if status is not None and _signature(status) == self._exhausted:
            return None
        position = self._at
        if position is None:
            return self._read_from_start(None) if status is not None and status.st_size else None
        if status is not None and _is_same_file(status, position):
            self._renamed, self._is_lost = None, False
            return self._read_in_place(position)
        return self._read_elsewhere(position, status)

    def _read_in_place(self, position: Position) -> Piece | None:
        with _open_briefly(self.path) as (file, status):
            if status is None or not _is_same_file(status, position):
                self.is_behind = True
                return None
            piece = self._read_after(file, status, position)
            if piece is not None:
                return self._advance(piece, status)
        if status.st_size:
            return self._read_from_start("truncated")
        # An emptied file that is rewritten may contain the earlier content again.
        self._exhausted = _signature(status)
        return None

    def _read_elsewhere(self, position: Position, status: os.stat_result | None) -> Piece | None:
        """Continue reading after the path was removed or renamed, or now names another file.

        A file with the same content up to `position`, such as a copy, is read on from there. Otherwise, the rest of the
        renamed file is read first, and then the new file from its start.
        """
        has_other = status is not None and status.st_size > 0
        if has_other and position.offset and not self._starts_differently(position):
            with _open_briefly(self.path) as (file, new_status):
                piece = new_status and self._read_after(
                    file, new_status, replace(position, device=new_status.st_dev, inode=new_status.st_ino)
                )
                if new_status is not None and piece is not None:
                    return self._advance(piece, new_status)
        remainder = self._read_rest_after_rename(position, has_other)
        if remainder is not None and remainder.content:
            self.is_behind = True
            return self._advance(remainder, None)
        return self._read_from_start("replaced" if remainder is None else "rotated") if has_other else None

    def _starts_differently(self, position: Position) -> bool:
        """Return whether the file was renamed, and the file in its place starts with other bytes.

        This needs checking only if the part read so far (half a line, say) is too short to identify the file.
        """
        if position.offset >= EDGE_BYTES:
            return False
        self._renamed = self._find_by_inode(position)
        if self._renamed is None:
            return False
        with (
            suppress(InputRefused),
            _open_briefly(self._renamed) as (old, old_status),
            _open_briefly(self.path) as (new, new_status),
        ):
            old_head = os.pread(old, EDGE_BYTES, 0) if old_status is not None else b""
            # An unrelated file may have reused the inode of a deleted one.
            if new_status is not None and position.head.matches(old_head[: position.head.size]):
                return not os.pread(new, EDGE_BYTES, 0).startswith(old_head)
        return False

    def _read_rest_after_rename(self, position: Position, has_other: bool) -> Piece | None:
        """Read the rest of the renamed file, perhaps nothing; None if it is not found.

        If no other file took its place, the folder is searched only once: the rename preceded the first miss.
        """
        piece = self._read_from_new_path(position)
        if piece is None and (has_other or not self._is_lost):
            self._renamed = self._find_by_inode(position)
            piece = self._read_from_new_path(position)
            self._is_lost = piece is None
        return piece

    def _read_from_new_path(self, position: Position) -> Piece | None:
        if self._renamed is None:
            return None
        # Data that cannot be read under the new name is lost, and the event reports the loss.
        with suppress(InputRefused), _open_briefly(self._renamed) as (file, status):
            if status is not None and _is_same_file(status, position):
                return self._read_after(file, status, position)
        return None

    def _find_by_inode(self, position: Position) -> Path | None:
        folders = {self.path.absolute().parent, Path(os.path.realpath(self.path)).parent}
        for folder in sorted(folders):
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(OSError):
                        if _is_same_file(entry.stat(follow_symlinks=False), position):
                            return Path(entry.path)
        return None

    def _read_after(self, file: int, status: os.stat_result, position: Position) -> Piece | None:
        """Read the data after a position, perhaps nothing; None if the content before it has changed.

        The check comes last: if the content still matches after the read, the data belong to the same file.
        """
        if status.st_size < position.offset or not stat.S_ISREG(status.st_mode):
            return None
        content = os.pread(file, min(self._max_read_bytes, status.st_size - position.offset), position.offset)
        head = os.pread(file, EDGE_BYTES, 0)
        window = os.pread(file, position.window.size, position.offset - position.window.size)
        if not (position.head.matches(head[: position.head.size]) and position.window.matches(window)):
            return None
        head = head[: position.offset + len(content)]
        return Piece(position.device, position.inode, position.offset, content, position.event, head, window)

    def _advance(self, piece: Piece, status: os.stat_result | None) -> Piece | None:
        """Advance the position past a piece; status: that of the current file, None for a piece of a renamed one."""
        self._at = piece.position(piece.end)
        self._exhausted = None
        if status is not None:
            self._renamed, self._is_lost = None, False
            self.is_behind = piece.end < status.st_size
            # Content is empty if the file was truncated since, or if only its time stamp changed.
            self._exhausted = None if self.is_behind else _signature(status)
        return piece if piece.content else None

    def _read_from_start(self, event: str | None) -> Piece | None:
        """Read the current file from its start."""
        with _open_briefly(self.path) as (file, status):
            if status is None or not status.st_size:
                return None
            empty = Edge.from_content(b"")
            piece = self._read_after(file, status, Position(status.st_dev, status.st_ino, 0, empty, empty, event))
            return self._advance(piece, status) if piece and piece.content else None


def _stat_regular_file(path: Path) -> os.stat_result | None:
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise _unreadable(error) from error
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "not a regular file")
        raise InputRefused(f"This is {kind}, not a file that can be followed.", "Follow a file that is written to.")
    return status


@contextmanager
def _open_briefly(path: Path) -> Iterator[tuple[int, os.stat_result | None]]:
    """Open a file for one read; yield None instead of its status if it is gone or not a regular file."""
    try:
        file = os.open(path, _FLAGS)
    except OSError as error:
        # Each read checks the type of the path; a socket cannot be opened at all.
        if error.errno in (*_ABSENT, errno.ENXIO):
            yield -1, None
            return
        raise _unreadable(error) from error
    try:
        status = os.fstat(file)
        yield file, status if stat.S_ISREG(status.st_mode) else None
    except OSError as error:
        raise _unreadable(error) from error
    finally:
        os.close(file)


def _unreadable(error: OSError) -> InputRefused:
    return InputRefused(f"The file cannot be read: {error.strerror}.", "Check the path and its permissions.")


def _is_same_file(status: os.stat_result, position: Position) -> bool:
    return (status.st_dev, status.st_ino) == (position.device, position.inode)


def _signature(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
