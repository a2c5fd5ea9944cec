"""Following a file: what was appended to it since it was last read, whatever happened to it in between.

A file is known by its device and inode, by its first bytes, and by the last ones before the place up to which it was
read (at most 4 KiB each). A digest of all that was read would have to be compared by reading all of it again whenever
a writer puts a new copy in the file's place; the last 4 KiB hold times to the microsecond, and stand at the same place
of another run's file only if it is a copy.
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

#: what is read at once
MOST_BYTES = 4 << 20
#: first bytes, and last ones before the place reached, by which a file is known again
EDGE_BYTES = 4096
#: nothing of these can block: of a FIFO it would be the opening, of a terminal the reading
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
#: a file that is not there, or that a network file system has replaced between two calls
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
    """Some bytes of a file that tell it from others: how many they are, and their digest (BLAKE2b, hex)."""

    size: int
    digest: str

    @classmethod
    def of(cls, content: bytes) -> Edge:
        """Return the edge that these bytes are."""
        return cls(len(content), hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest())

    def fits(self, content: bytes) -> bool:
        """Return whether these are the bytes."""
        return self == Edge.of(content)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a followed file, and how to know the file again.

    head: the file's first bytes before `offset`. window: the last ones before it. event: what happened to the input
    at this place, if nothing was handed over since.
    """

    device: int
    inode: int
    offset: int
    head: Edge
    window: Edge
    event: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, which JSON can hold."""
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
        """Return the position that `to_dict` wrote."""
        return cls(**{**values, "head": Edge(*values["head"]), "window": Edge(*values["window"])})


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Bytes of a followed file, never none: from `start` on, and what happened to the input before them.

    head: the file's first bytes, at most 4 KiB, this piece's included. before: the last bytes before the piece.
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
        """The place after the piece."""
        return self.start + len(self.content)

    def position(self, offset: int) -> Position:
        """Return the position of a place within the piece, or at its start or end; an event stays with the start."""
        if not self.start <= offset <= self.end:
            raise ValueError("the place lies outside the piece")
        used = offset - self.start
        window = self.content[max(used - EDGE_BYTES, 0) : used]
        window = self.before[len(self.before) - min(EDGE_BYTES - len(window), len(self.before)) :] + window
        event = None if used else self.event
        return Position(self.device, self.inode, offset, Edge.of(self.head[:offset]), Edge.of(window), event)


class FollowedFile:
    """A file of which each reading hands over what is new; it is open only while it is read.

    A thousand files are followed at once: none is held open, and where nothing is new a reading costs one system call.
    What may have happened to the file between two readings, within one process or over two:

    - it grew: the new bytes are handed over;
    - it was truncated, so that what was read before is not there any more: it is read from its start;
    - another file is in its place, which holds at the same place what was read before (a writer that writes the file
      anew and puts it in place): it is read on from there;
    - it was renamed within its folder, and perhaps another file took its place: the old one is read to its end, and
      as soon as the other one has any content that one, from its start. (Whoever writes the other one is done with
      the old one.) Of several rotations between two readings only the first and the last file are found;
    - it is gone and another one is in its place: that one is read from its start;
    - it is not there, or it is empty: nothing is new. An emptied file is judged once it has content.
    """

    def __init__(self, path: Path, position: Position | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        #: whether there is more to be read at once
        self.is_behind = False
        self._at = position
        self._most_bytes = most_bytes
        #: the file as it was when nothing of it was left to be read
        self._exhausted: tuple[int, int, int, int] | None = None
        #: where the file is that was renamed
        self._renamed: Path | None = None
        self._is_lost = False

    @property
    def position(self) -> Position | None:
        """The place up to which all was handed over; None before there was anything."""
        return self._at

    def read(self) -> Piece | None:
        """Return what is new, at most `most_bytes`; None where nothing is. Never blocks.

        Raises InputRefused where the path is no regular file, or may not be read: then and whenever it is asked.
        """
        self.is_behind = False
        found = _looked_at(self.path)
        if found is not None and _signature(found) == self._exhausted:
            return None
        at = self._at
        if at is None:
            return self._begun(None) if found is not None and found.st_size else None
        if found is not None and _is_of(found, at):
            self._renamed, self._is_lost = None, False
            return self._read_in_place(at)
        return self._read_elsewhere(at, found)

    def _read_in_place(self, at: Position) -> Piece | None:
        with _opened(self.path) as (file, found):
            if found is None or not _is_of(found, at):
                self.is_behind = True
                return None
            taken = self._taken(file, found, at)
            if taken is not None:
                return self._handed(taken, found)
        if found.st_size:
            return self._begun("truncated")
        # An emptied file that is written anew may yet hold what was read of it.
        self._exhausted = _signature(found)
        return None

    def _read_elsewhere(self, at: Position, found: os.stat_result | None) -> Piece | None:
        """Read on where the path is gone, or another file is in its place."""
        has_other = found is not None and found.st_size > 0
        if has_other and at.offset and not self._has_begun_otherwise(at):
            with _opened(self.path) as (file, other):
                taken = other and self._taken(file, other, replace(at, device=other.st_dev, inode=other.st_ino))
                if other is not None and taken is not None:
                    return self._handed(taken, other)
        left = self._left_of_renamed(at, has_other)
        if left is not None and left.content:
            self.is_behind = True
            return self._handed(left, None)
        return self._begun("replaced" if left is None else "rotated") if has_other else None

    def _has_begun_otherwise(self, at: Position) -> bool:
        """Return whether the file is there by another name, and the one in its place begins with other bytes.

        That is asked only where less was read than tells a file from others: half a line, say.
        """
        if at.offset >= EDGE_BYTES:
            return False
        self._renamed = self._found_renamed(at)
        if self._renamed is None:
            return False
        with suppress(InputRefused), _opened(self._renamed) as (old, there), _opened(self.path) as (new, other):
            begun = os.pread(old, EDGE_BYTES, 0) if there is not None else b""
            # An unrelated file may have got the inode of one that is gone.
            if other is not None and at.head.fits(begun[: at.head.size]):
                return not os.pread(new, EDGE_BYTES, 0).startswith(begun)
        return False

    def _left_of_renamed(self, at: Position, has_other: bool) -> Piece | None:
        """Return what is left of the file under another name in its folder, perhaps nothing; None if it is not there.

        Where no other file took its place it is looked for once: it was renamed before it was missed.
        """
        left = self._taken_as_renamed(at)
        if left is None and (has_other or not self._is_lost):
            self._renamed = self._found_renamed(at)
            left = self._taken_as_renamed(at)
            self._is_lost = left is None
        return left

    def _taken_as_renamed(self, at: Position) -> Piece | None:
        if self._renamed is None:
            return None
        # What cannot be read any more under its new name is lost, and the event says so.
        with suppress(InputRefused), _opened(self._renamed) as (file, found):
            if found is not None and _is_of(found, at):
                return self._taken(file, found, at)
        return None

    def _found_renamed(self, at: Position) -> Path | None:
        folders = {self.path.absolute().parent, Path(os.path.realpath(self.path)).parent}
        for folder in sorted(folders):
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(OSError):
                        if _is_of(entry.stat(follow_symlinks=False), at):
                            return Path(entry.path)
        return None

    def _taken(self, file: int, found: os.stat_result, at: Position) -> Piece | None:
        """Return what follows a position, perhaps nothing; None if what was before it is not there any more.

        That is looked at last: content that was read before it was seen to be there is of the same file.
        """
        if found.st_size < at.offset or not stat.S_ISREG(found.st_mode):
            return None
        content = os.pread(file, min(self._most_bytes, found.st_size - at.offset), at.offset)
        head = os.pread(file, EDGE_BYTES, 0)
        window = os.pread(file, at.window.size, at.offset - at.window.size)
        if not (at.head.fits(head[: at.head.size]) and at.window.fits(window)):
            return None
        head = head[: at.offset + len(content)]
        return Piece(at.device, at.inode, at.offset, content, at.event, head, window)

    def _handed(self, piece: Piece, found: os.stat_result | None) -> Piece | None:
        """Hand over what was taken, of the file in its place (`found`) or of one that was renamed."""
        self._at = piece.position(piece.end)
        self._exhausted = None
        if found is not None:
            self._renamed, self._is_lost = None, False
            self.is_behind = piece.end < found.st_size
            # Without content the file was truncated meanwhile, or has another time stamp only.
            self._exhausted = None if self.is_behind else _signature(found)
        return piece if piece.content else None

    def _begun(self, event: str | None) -> Piece | None:
        """Read the file that is there now from its start."""
        with _opened(self.path) as (file, found):
            if found is None or not found.st_size:
                return None
            nothing = Edge.of(b"")
            taken = self._taken(file, found, Position(found.st_dev, found.st_ino, 0, nothing, nothing, event))
            return self._handed(taken, found) if taken and taken.content else None


def _looked_at(path: Path) -> os.stat_result | None:
    try:
        found = os.stat(path)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise _unreadable(error) from error
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "something else")
        raise InputRefused(f"This is {kind}, and no file that can be followed.", "Follow a file that is written to.")
    return found


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, os.stat_result | None]]:
    """Open a file for a moment; without any where it is gone, or no regular file any more."""
    try:
        file = os.open(path, _FLAGS)
    except OSError as error:
        # Whether the path is one of a file is looked at with each reading; a socket cannot be opened at all.
        if error.errno in (*_ABSENT, errno.ENXIO):
            yield -1, None
            return
        raise _unreadable(error) from error
    try:
        found = os.fstat(file)
        yield file, found if stat.S_ISREG(found.st_mode) else None
    except OSError as error:
        raise _unreadable(error) from error
    finally:
        os.close(file)


def _unreadable(error: OSError) -> InputRefused:
    return InputRefused(f"The file cannot be read: {error.strerror}.", "Check the path, and who may read it.")


def _is_of(found: os.stat_result, at: Position) -> bool:
    return (found.st_dev, found.st_ino) == (at.device, at.inode)


def _signature(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
