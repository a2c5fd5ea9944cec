"""Open plain or compressed inputs; compression and encoding are recognized by content, never by name."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import hashlib
import io
import lzma
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import polars as pl
import pyarrow as pa

from iosig.warehouse.engine_paths import utf8_path
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.protocol import HEAD_BYTES, PARQUET_MAGIC, Head

_CHUNK_BYTES = 1 << 20
_MAX_SHOWN_BYTES = 4000
#: minimum size of a repeated half of a file [B]; short ones may be equal by chance
_MIN_DOUBLED_BYTES = 64
#: decompressed size that is always allowed, in addition to the expansion limit [B]
_FREE_BYTES = 64 << 20
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
#: byte order marks at the start of text -> its encoding; UTF-32 is first, since its mark starts with that of UTF-16
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
}
#: byte that is not UTF-8, in place of an incomplete character at the end of a text
_NO_TEXT = b"\xff"


def compression(path: Path) -> str | None:
    """Return `gzip`, `bzip2`, `xz` or `zstd` by the file's first bytes; None if it is plain."""
    with path.open("rb") as file:
        start = file.read(6)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


class _Streams(io.RawIOBase):
    """Concatenated compressed streams, optionally padded with zeros.

    The readers of Python's bz2 and lzma mistake a damaged later stream for the end of the file.
    """

    def __init__(self, file: IO[bytes], decoder: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> None:
        self._file, self._new, self._decoder = file, decoder, decoder()

    def readable(self) -> bool:
        """Report the stream as readable, as `io.BufferedReader` requires."""
        return True

    def close(self) -> None:
        """Close the stream and the underlying file."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes; raise EOFError, OSError or LZMAError if the content is damaged."""
        content = b""
        while not content:
            packed = b""
            if self._decoder.eof:
                packed = self._next_stream()
                if not packed:
                    return 0
                self._decoder = self._new()
            elif self._decoder.needs_input and not (packed := self._file.read(_CHUNK_BYTES)):
                raise EOFError("the compressed content is truncated")
            content = self._decoder.decompress(packed, len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def _next_stream(self) -> bytes:
        start = self._decoder.unused_data.lstrip(b"\x00")
        while not start and (packed := self._file.read(_CHUNK_BYTES)):
            start = packed.lstrip(b"\x00")
        return start


class _BoundedStream(io.RawIOBase):
    """Decompressed content up to a limit, which stops decompression bombs."""

    def __init__(self, file: IO[bytes] | io.RawIOBase, packed_bytes: int) -> None:
        self._ratio = current_limits().max_expansion_factor
        # `readinto1` returns the content before damage; `readinto` would raise without it
        self._readinto: Callable[[Any], int] = file.readinto1 if isinstance(file, io.BufferedIOBase) else file.readinto  # type: ignore[union-attr]
        self._file, self._left = file, int(self._ratio * packed_bytes) + _FREE_BYTES

    def readable(self) -> bool:
        """Report the stream as readable, as `io.BufferedReader` requires."""
        return True

    def close(self) -> None:
        """Close the stream and the underlying file."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes; raise InputRefused if they exceed the size limit."""
        count = self._readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise InputRefused(
                (
                    f"The file decompresses to more than {self._ratio:g} times its size, which is "
                    "limits.max_expansion_factor."
                ),
                "If this is expected, decompress the file and land the result.",
            )
        return count


class _Utf8Stream(io.RawIOBase):
    """Text of another encoding as UTF-8; an incomplete last character becomes a byte that is not text."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder(encoding)("surrogatepass")
        self._text, self._is_end = b"", False

    def readable(self) -> bool:
        """Report the stream as readable, as `io.BufferedReader` requires."""
        return True

    def close(self) -> None:
        """Close the stream and the underlying file."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read UTF-8; raise ValueError if the content is not of the encoding."""
        while not self._text and not self._is_end:
            content = self._file.read(_CHUNK_BYTES)
            self._is_end = not content
            self._text = self._decoder.decode(content).encode("utf-8", "surrogatepass")
            if self._is_end and self._decoder.getstate()[0]:
                self._text = _NO_TEXT
        count = min(len(buffer), len(self._text))
        buffer[:count], self._text = self._text[:count], self._text[count:]
        return count


def open_decompressed(path: Path) -> IO[bytes]:
    """Open a plain or compressed file for reading its decompressed bytes.

    Text with a byte order mark is read as UTF-8 without the mark. Reading raises InputRefused beyond the expansion
    limit of the file's size plus 64 MiB.
    """
    file = cast(io.BufferedReader, _open_bytes(path))
    try:
        start = file.peek(len(codecs.BOM_UTF32_LE))
    except BaseException:
        file.close()
        raise
    mark = next((mark for mark in _MARKS if start.startswith(mark)), b"")
    # two stray bytes may look like the mark of UTF-16, in which every ASCII character has a zero byte
    if mark != codecs.BOM_UTF8 and b"\0" not in start:
        return file
    file.read(len(mark))
    if not mark or mark == codecs.BOM_UTF8:
        return file
    return io.BufferedReader(_Utf8Stream(file, _MARKS[mark]), _CHUNK_BYTES)


def _open_bytes(path: Path) -> IO[bytes]:
    kind = compression(path)
    if kind is None:
        return path.open("rb")
    return io.BufferedReader(_BoundedStream(_open_compressed(path, kind), path.stat().st_size), _CHUNK_BYTES)


def _open_compressed(path: Path, kind: str) -> IO[bytes] | io.RawIOBase:
    if kind == "gzip":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if kind == "bzip2":
        return _Streams(path.open("rb"), bz2.BZ2Decompressor)
    if kind == "xz":
        return _Streams(path.open("rb"), lzma.LZMADecompressor)
    # Arrow's stream, unlike zstandard's file, detects truncation.
    return io.BufferedReader(pa.input_stream(utf8_path(path), compression="zstd"))


#: exceptions that reading a damaged compressed file may raise
DAMAGE = (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error)
#: error numbers that the machine causes, not the file, such as no space or too many open files
_OF_MACHINE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)


def reraise_machine_error(error: BaseException) -> None:
    """Re-raise an error that the machine caused (disk full, too many open files), not the file."""
    if isinstance(error, OSError) and (error.errno in _OF_MACHINE or "temporary directory" in str(error)):
        raise error


@contextmanager
def refusing_damage(
    summary: str = "The file is damaged", remedy: str = "Fetch or compress it again."
) -> Iterator[None]:
    """Convert exceptions of a damaged file into InputRefused."""
    try:
        yield
    except DAMAGE as error:
        reraise_machine_error(error)
        raise InputRefused(f"{summary}: {error}.", remedy) from error


@contextmanager
def refusing_damage_after(line: Callable[[], int]) -> Iterator[None]:
    """Convert exceptions of a damaged file into an InputRefused that names the last line read."""
    try:
        yield
    except DAMAGE as error:
        reraise_machine_error(error)
        raise InputRefused(
            f"The file is damaged after line {line()}: {error}.",
            "Fetch or compress it again. No rows of it were landed.",
        ) from error


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """Yield the path itself, or a temporary decompressed copy, for readers that must seek."""
    if compression(path) is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="iosig-") as folder:
        copy = Path(folder) / "input"
        with refusing_damage(), open_decompressed(path) as packed, copy.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked, _CHUNK_BYTES)
        yield copy


def read_head(path: Path, columns: Mapping[str, str] | None = None) -> Head:
    """Read the decompressed start of a file; refuse an empty or damaged one."""
    with refusing_damage("The file cannot be read", "Fetch or decompress it again."), open_decompressed(path) as file:
        start = file.read(HEAD_BYTES)
    if not start:
        raise InputRefused("The file is empty.", "Check the export that made it.")
    return Head(path.name, start, columns or {}, path)


def refuse_doubled(path: Path) -> None:
    """Raise InputRefused for a file whose second half repeats the first, as when a file is appended to itself."""
    half, remainder = divmod(path.stat().st_size, 2)
    if remainder or half < _MIN_DOUBLED_BYTES:
        return
    with path.open("rb") as first, path.open("rb") as second:
        second.seek(half)
        while content := second.read(_CHUNK_BYTES):
            if first.read(len(content)) != content:
                return
    raise InputRefused("The file has the same content twice, one after the other.", "Land a single copy of it.")


def file_size(path: Path) -> int | None:
    """Return the size of a file [B]; None if the path is not a file or its status is unreadable."""
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else None
    return None


def content_hash(path: Path, names: Sequence[str] = ()) -> str:
    """Compute the SHA-256 (hex) of a file's bytes on disk or, for an empty file, of its name.

    For a folder, hash the name, size and bytes of each file in `names`, in this order. Raises InputRefused for an
    unreadable input.
    """
    if names:
        return _folder_hash(path, names)
    try:
        if not path.is_file():
            raise InputRefused("This is not a file.", "Pass the path of a file or folder.")
        size = path.stat().st_size
        if size == 0:
            return hashlib.sha256(path.name.encode("utf-8", "backslashreplace")).hexdigest()
        with path.open("rb") as file:
            if size < _CHUNK_BYTES:
                # allocating the buffer of `file_digest` takes longer than reading a small file
                digest = hashlib.sha256(file.read(_CHUNK_BYTES))
                for piece in iter(lambda: file.read(_CHUNK_BYTES), b""):
                    digest.update(piece)
                return digest.hexdigest()
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        reraise_machine_error(error)
        raise unreadable(error) from error


def unreadable(error: OSError) -> InputRefused:
    """Build the refusal of an input that the system does not let this process read."""
    remedy = (
        "Grant this user the permission to read it."
        if isinstance(error, PermissionError)
        else "Check its disk, then try again."
    )
    return InputRefused(f"It cannot be read: {error.strerror}.", remedy)


def _folder_hash(folder: Path, names: Sequence[str]) -> str:
    digest = hashlib.sha256()
    try:
        for name in sorted(names):
            with (folder / name).open("rb") as file:
                content = hashlib.file_digest(file, "sha256")
                digest.update(f"{len(name.encode())} {name} {file.tell()} ".encode())
            digest.update(content.digest())
    except OSError as error:
        reraise_machine_error(error)
        raise InputRefused(f"{error.filename} cannot be read: {error.strerror}.", "Check the folder.") from error
    return digest.hexdigest()


class CutLine(str):
    """The start of a line that exceeds the length limit."""

    __slots__ = ()


class OpenLine(str):
    """The last line of a text that does not end with a line end."""

    __slots__ = ()


def text_lines(path: Path) -> Iterator[tuple[int, str | None, str]]:
    """Yield (line number from 1, text, raw) for each line of a text file, plain or compressed; see `read_lines`.

    A damaged compressed file yields lines before the damage, then raises InputRefused.
    """
    number = 0
    with refusing_damage_after(lambda: number), open_decompressed(path) as file:
        for number, text, raw in read_lines(file):
            yield number, text, raw


def read_lines(file: IO[bytes], first_line: int = 1) -> Iterator[tuple[int, str | None, str]]:
    """Yield (line number, text, raw) for each line of an open file; text is None if it is not UTF-8.

    Line ends are CR LF or LF; a last line without one is an `OpenLine`. For a line beyond the length limit, raw is its
    start, a `CutLine`, and text is None. Raises InputRefused for a file that consists almost entirely of empty lines.
    """
    count, empty_count, max_line_bytes, max_empty = (
        0,
        0,
        current_limits().max_line_bytes,
        current_limits().max_refused_count,
    )
    while line := file.readline(max_line_bytes + 1):
        number, count = first_line + count, count + 1
        if line.isspace():
            empty_count += 1
            if empty_count > max(max_empty, count // 2):
                raise InputRefused(
                    f"More than {max_empty:,} lines are empty (limits.max_refused_count), and fewer have content.",
                    "Check that the file is a log of lines.",
                )
        if len(line) > max_line_bytes:
            yield number, None, CutLine(line[:_MAX_SHOWN_BYTES].decode("utf-8", "backslashreplace"))
            while line and not line.endswith(b"\n"):
                line = file.readline(max_line_bytes)
            continue
        stripped = line.rstrip(b"\r\n")
        try:
            text = stripped.decode("utf-8")
            text = text if line.endswith(b"\n") else OpenLine(text)
            yield number, None if "\x00" in text else text, text
        except UnicodeDecodeError:
            yield number, None, stripped.decode("utf-8", "backslashreplace")


#: size of a Parquet file's tail, which is the footer's length (32 bits, little endian) and the magic bytes
_PARQUET_TAIL_BYTES = 8
_MAX_FOOTER_BYTES = 1 << 24


def parquet_footer(path: Path) -> bytes:
    """Read the footer of a Parquet file, which contains its columns and metadata; empty if it has none."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        max_bytes = size - len(PARQUET_MAGIC) - _PARQUET_TAIL_BYTES
        if max_bytes < 0:
            return b""
        file.seek(size - _PARQUET_TAIL_BYTES)
        tail = file.read(_PARQUET_TAIL_BYTES)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != PARQUET_MAGIC or not 0 < length <= min(_MAX_FOOTER_BYTES, max_bytes):
            return b""
        file.seek(size - _PARQUET_TAIL_BYTES - length)
        return file.read(length)


@contextmanager
def refusing_parquet_damage(remedy: str = "Fetch or write the file again.") -> Iterator[None]:
    """Convert exceptions of damaged Parquet into InputRefused; ValueError comes from undecodable names."""
    try:
        yield
    # A panic of the reader is not an `Exception`, but it is caused by the file as well.
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        pa.ArrowException,
        OSError,
        ValueError,
    ) as error:
        reraise_machine_error(error)
        message = (str(error).splitlines() or ["damaged"])[0]
        raise InputRefused(f"The Parquet content cannot be read: {message}.", remedy) from error
