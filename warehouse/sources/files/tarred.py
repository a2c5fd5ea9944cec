"""Tar archives, read as a stream: nothing is unpacked to paths, and no header can ask for more than it may.

`tarfile` would follow what extended headers claim into as much memory as they like, so only its parser of plain
headers is used here.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from iosig.warehouse.errors import InputRefused

_BLOCK_BYTES = tarfile.BLOCKSIZE
_PIECE_BYTES = 1 << 20
#: of a header that only names things
_MOST_HEADER_BYTES = 1 << 20
_REMEDY = "Pack the folder anew, with plain tar and no options."
_NAMING = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME)
_SKIPPED = (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK)
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of an archive: its name as it stands there, its size, whether it is a plain file."""

    name: str
    size: int
    is_regular: bool


class TarStream:
    """The entries of an archive in their order; `pieces` gives the content of the one that came last."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = 0
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        """Yield each entry that is no mere header; raise InputRefused where the archive is damaged."""
        told: dict[str, str] = {}
        while (found := self._header()) is not None:
            if found.type in _NAMING:
                told |= _naming(found, b"".join(self._small(found)))
            elif found.type not in _SKIPPED:
                name, size = told.get("path", found.name), _size(told.get("size"), found.size)
                told = {}
                self._expect(size if found.type in _REGULAR else 0)
                yield Member(name, size, found.type in _REGULAR)
            else:
                self._expect(found.size)
            for _ in self.pieces():
                pass

    def start(self, size: int) -> bytes:
        """Return the first bytes of the present entry's content, as many of these as it has."""
        found = self._exactly(min(self._left, size))
        self._left -= len(found)
        return found

    def pieces(self) -> Iterator[bytes]:
        """Yield what is left of the present entry's content."""
        while self._left:
            piece = self._exactly(min(self._left, _PIECE_BYTES))
            self._left -= len(piece)
            yield piece
        self._exactly(self._padding)
        self._padding = 0

    def _expect(self, size: int) -> None:
        self._left, self._padding = size, -size % _BLOCK_BYTES

    def _small(self, found: tarfile.TarInfo) -> Iterator[bytes]:
        if found.size > _MOST_HEADER_BYTES:
            raise InputRefused("A header of the archive is larger than any name can be.", _REMEDY)
        self._expect(found.size)
        return self.pieces()

    def _header(self) -> tarfile.TarInfo | None:
        block = self._exactly(_BLOCK_BYTES)
        if not any(block):
            return None
        try:
            found = tarfile.TarInfo.frombuf(block, "utf-8", "backslashreplace")
        except (tarfile.TarError, ValueError) as error:
            raise InputRefused(f"The archive is damaged: {error}.", "Fetch or pack it anew.") from error
        if found.size < 0 or found.type == tarfile.GNUTYPE_SPARSE:
            raise InputRefused("The archive has files with holes, or of a negative size.", _REMEDY)
        return found

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._file.read(size)
            if not part:
                raise InputRefused("The archive breaks off.", "Fetch or pack it anew.")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _naming(found: tarfile.TarInfo, content: bytes) -> dict[str, str]:
    """Return what a header says of the entry behind it: its `path`, its `size`."""
    if found.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": content.rstrip(b"\x00").decode("utf-8", "backslashreplace")}
    told: dict[str, str] = {}
    while content:
        length, _, _ = content.partition(b" ")
        if not length.isdigit() or not len(length) < int(length[:9]) <= len(content):
            raise InputRefused("A header of the archive is damaged.", "Fetch or pack it anew.")
        record, content = content[len(length) + 1 : int(length)], content[int(length) :]
        key, _, value = record.rstrip(b"\n").decode("utf-8", "backslashreplace").partition("=")
        if key.startswith("GNU.sparse"):
            raise InputRefused("The archive has files with holes.", _REMEDY)
        told[key] = value
    return told


def _size(told: str | None, otherwise: int) -> int:
    if told is None:
        return otherwise
    if not (told.isascii() and told.isdigit() and len(told) < 19):
        raise InputRefused("A header of the archive is damaged.", "Fetch or pack it anew.")
    return int(told)


def is_tar(start: bytes) -> bool:
    """Return whether content that starts so is a tar archive."""
    return start[257:262] == b"ustar"
