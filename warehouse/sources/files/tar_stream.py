"""Read tar archives as a stream, without unpacking files to paths, and with limited header sizes.

`tarfile` would read extended headers of any declared size into memory, so only its parser of plain headers is used.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from iosig.warehouse.errors import InputRefused

_BLOCK_BYTES = tarfile.BLOCKSIZE
_PIECE_BYTES = 1 << 20
#: maximum size of a header that contains names [B]
_MAX_HEADER_BYTES = 1 << 20
_REMEDY = "Create the archive again with plain tar and no options."
_NAME_HEADER_TYPES = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME)
_SKIPPED_HEADER_TYPES = (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK)
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)


@dataclass(frozen=True, slots=True)
class Member:
    """An archive entry with its recorded name, size, and whether it is a regular file."""

    name: str
    size: int
    is_regular: bool


class TarStream:
    """Iterates over the entries of an archive; `pieces` yields the content of the current entry."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = 0
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        """Yield each entry that is not a metadata header; raise InputRefused if the archive is damaged."""
        attributes: dict[str, str] = {}
        while (header := self._header()) is not None:
            if header.type in _NAME_HEADER_TYPES:
                attributes |= _parse_attributes(header, b"".join(self._read_small(header)))
            elif header.type not in _SKIPPED_HEADER_TYPES:
                name, size = attributes.get("path", header.name), _parse_size(attributes.get("size"), header.size)
                attributes = {}
                self._expect(size if header.type in _REGULAR else 0)
                yield Member(name, size, header.type in _REGULAR)
            else:
                self._expect(header.size)
            for _ in self.pieces():
                pass

    def start(self, size: int) -> bytes:
        """Return up to `size` first bytes of the current entry's content."""
        content = self._read_exactly(min(self._left, size))
        self._left -= len(content)
        return content

    def pieces(self) -> Iterator[bytes]:
        """Yield the rest of the current entry's content."""
        while self._left:
            piece = self._read_exactly(min(self._left, _PIECE_BYTES))
            self._left -= len(piece)
            yield piece
        self._read_exactly(self._padding)
        self._padding = 0

    def _expect(self, size: int) -> None:
        self._left, self._padding = size, -size % _BLOCK_BYTES

    def _read_small(self, header: tarfile.TarInfo) -> Iterator[bytes]:
        if header.size > _MAX_HEADER_BYTES:
            raise InputRefused("A header of the archive exceeds the maximum length of a name.", _REMEDY)
        self._expect(header.size)
        return self.pieces()

    def _header(self) -> tarfile.TarInfo | None:
        block = self._read_exactly(_BLOCK_BYTES)
        if not any(block):
            return None
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "backslashreplace")
        except (tarfile.TarError, ValueError) as error:
            raise InputRefused(f"The archive is damaged: {error}.", "Fetch or create it again.") from error
        if header.size < 0 or header.type == tarfile.GNUTYPE_SPARSE:
            raise InputRefused("The archive has sparse files or negative sizes.", _REMEDY)
        return header

    def _read_exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._file.read(size)
            if not part:
                raise InputRefused("The archive is truncated.", "Fetch or create it again.")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _parse_attributes(header: tarfile.TarInfo, content: bytes) -> dict[str, str]:
    """Parse the attributes of the next entry from an extended header: its `path`, its `size`."""
    if header.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": content.rstrip(b"\x00").decode("utf-8", "backslashreplace")}
    attributes: dict[str, str] = {}
    while content:
        length, _, _ = content.partition(b" ")
        if not length.isdigit() or not len(length) < int(length[:9]) <= len(content):
            raise InputRefused("A header of the archive is damaged.", "Fetch or create it again.")
        record, content = content[len(length) + 1 : int(length)], content[int(length) :]
        key, _, value = record.rstrip(b"\n").decode("utf-8", "backslashreplace").partition("=")
        if key.startswith("GNU.sparse"):
            raise InputRefused("The archive has sparse files.", _REMEDY)
        attributes[key] = value
    return attributes


def _parse_size(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputRefused("A header of the archive is damaged.", "Fetch or create it again.")
    return int(text)


def is_tar(start: bytes) -> bool:
    """Recognize a tar archive by its magic number."""
    return start[257:262] == b"ustar"
