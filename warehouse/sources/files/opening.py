"""Opening inputs: plain or compressed, recognized by content, never by name."""

from __future__ import annotations

import bz2
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
from iosig.warehouse.sources.files.limits import in_force
from iosig.warehouse.sources.protocol import HEAD_BYTES, PARQUET_MAGIC, Head

_CHUNK_BYTES = 1 << 20
_SHOWN_BYTES = 4000
#: what is compressed may hold so much more than the limit says
_FREE_BYTES = 64 << 20
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def compression(path: Path) -> str | None:
    """Return `gzip`, `bzip2`, `xz` or `zstd` by the file's first bytes; None if it is plain."""
    with path.open("rb") as file:
        start = file.read(6)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


class _Streams(io.RawIOBase):
    """Compressed streams one after the other, perhaps padded with zeros.

    The readers of bz2 and lzma take a damaged later stream for the end of the file.
    """

    def __init__(self, file: IO[bytes], decoder: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> None:
        self._file, self._new, self._decoder = file, decoder, decoder()

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file as well."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes; raise EOFError, OSError or LZMAError where the content is damaged."""
        content = b""
        while not content:
            packed = b""
            if self._decoder.eof:
                packed = self._next_stream()
                if not packed:
                    return 0
                self._decoder = self._new()
            elif self._decoder.needs_input and not (packed := self._file.read(_CHUNK_BYTES)):
                raise EOFError("the compressed content breaks off")
            content = self._decoder.decompress(packed, len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def _next_stream(self) -> bytes:
        start = self._decoder.unused_data.lstrip(b"\x00")
        while not start and (packed := self._file.read(_CHUNK_BYTES)):
            start = packed.lstrip(b"\x00")
        return start


class _Bounded(io.RawIOBase):
    """What a compressed file holds, up to a bound: a small one may hold more than anybody can read."""

    def __init__(self, file: IO[bytes] | io.RawIOBase, packed_bytes: int) -> None:
        self._ratio = in_force().max_expansion_factor
        # what comes before damage is given: no more is asked for than is there
        self._into: Callable[[Any], int] = file.readinto1 if isinstance(file, io.BufferedIOBase) else file.readinto  # type: ignore[union-attr]
        self._file, self._left = file, int(self._ratio * packed_bytes) + _FREE_BYTES

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file as well."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes; raise InputRefused beyond the bound."""
        count = self._into(buffer)
        self._left -= count
        if self._left < 0:
            raise InputRefused(
                f"The file holds more than {self._ratio:g} times its size, which is limits.max_expansion_factor.",
                "If that is meant, unpack it and land it.",
            )
        return count


def open_bytes(path: Path) -> IO[bytes]:
    """Open a plain or compressed file for reading its decompressed bytes.

    Raises InputRefused, while it is read, where it holds more than the limit of its size, and 64 MiB.
    """
    kind = compression(path)
    if kind is None:
        return path.open("rb")
    return io.BufferedReader(_Bounded(_decompressed(path, kind), path.stat().st_size), _CHUNK_BYTES)


def _decompressed(path: Path, kind: str) -> IO[bytes] | io.RawIOBase:
    if kind == "gzip":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if kind == "bzip2":
        return _Streams(path.open("rb"), bz2.BZ2Decompressor)
    if kind == "xz":
        return _Streams(path.open("rb"), lzma.LZMADecompressor)
    # Arrow's stream, unlike zstandard's file, tells a cut file from a whole one.
    return io.BufferedReader(pa.input_stream(utf8_path(path), compression="zstd"))


#: what a damaged compressed file raises while it is read
DAMAGE = (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error)
#: what is no fault of any file that is read: there is no room, or no more files may be open
_OF_MACHINE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)


def raise_of_machine(error: BaseException) -> None:
    """Raise again what the machine is at fault for, not the file that was read."""
    if isinstance(error, OSError) and (error.errno in _OF_MACHINE or "temporary directory" in str(error)):
        raise error


@contextmanager
def refusing_damage(said: str = "The file is damaged", remedy: str = "Fetch or compress it anew.") -> Iterator[None]:
    """Turn what a damaged file raises while it is read into InputRefused."""
    try:
        yield
    except DAMAGE as error:
        raise_of_machine(error)
        raise InputRefused(f"{said}: {error}.", remedy) from error


@contextmanager
def refusing_damage_after(line: Callable[[], int]) -> Iterator[None]:
    """Turn what a damaged file raises into the refusal of a file of which so many lines were read by then."""
    try:
        yield
    except DAMAGE as error:
        raise_of_machine(error)
        raise InputRefused(
            f"The file is damaged after line {line()}: {error}.",
            "Fetch or compress it anew; nothing of it was landed.",
        ) from error


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """Give the path itself, or that of a decompressed copy that vanishes at the end; refuse a damaged one.

    For readers that must seek.
    """
    if compression(path) is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="iosig-") as folder:
        copy = Path(folder) / "input"
        with refusing_damage(), open_bytes(path) as packed, copy.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked, _CHUNK_BYTES)
        yield copy


def read_head(path: Path, columns: Mapping[str, str] | None = None) -> Head:
    """Read the start of a file, decompressed; refuse what is empty or damaged."""
    with refusing_damage("The file cannot be read", "Fetch or decompress it anew."), open_bytes(path) as file:
        start = file.read(HEAD_BYTES)
    if not start:
        raise InputRefused("The file is empty.", "Check the export that made it.")
    return Head(path.name, start, columns or {}, path)


def file_size(path: Path) -> int | None:
    """Return how many bytes a file has; None of what is no file, or cannot be looked at: its reader says why."""
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else None
    return None


def content_hash(path: Path, names: Sequence[str] = ()) -> str:
    """Return the SHA-256 of a file's bytes as they lie on disk, in hex; of its name, if it holds none.

    Of a folder, the files of these names count: the names, sizes and bytes, in the order of the names. Raises
    InputRefused for what cannot be read.
    """
    if names:
        return _folder_hash(path, names)
    try:
        if not path.is_file():
            raise InputRefused("This is no file.", "Give the path of a file, or of a folder of files.")
        size = path.stat().st_size
        if size == 0:
            return hashlib.sha256(path.name.encode("utf-8", "backslashreplace")).hexdigest()
        with path.open("rb") as file:
            if size < _CHUNK_BYTES:
                # the room for a piece of a large file takes longer to make than a small one to read
                digest = hashlib.sha256(file.read(_CHUNK_BYTES))
                for piece in iter(lambda: file.read(_CHUNK_BYTES), b""):
                    digest.update(piece)
                return digest.hexdigest()
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise_of_machine(error)
        raise unreadable(error) from error


def unreadable(error: OSError) -> InputRefused:
    """Return the refusal of an input that the system does not let one read."""
    remedy = (
        "Give this user the right to read it."
        if isinstance(error, PermissionError)
        else "Look after its disk, then again."
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
        raise_of_machine(error)
        raise InputRefused(f"{error.filename} cannot be read: {error.strerror}.", "Check the folder.") from error
    return digest.hexdigest()


class CutLine(str):
    """The start of a line that is too long to be one."""

    __slots__ = ()


def text_lines(path: Path) -> Iterator[tuple[int, str | None, str]]:
    """Yield (line number from 1, text, raw) for each line of a text file, plain or compressed; see `lines_of`.

    A damaged compressed file yields lines before the damage, then raises InputRefused.
    """
    number = 0
    with refusing_damage_after(lambda: number), open_bytes(path) as file:
        for number, text, raw in lines_of(file):
            yield number, text, raw


def lines_of(file: IO[bytes], first_line: int = 1) -> Iterator[tuple[int, str | None, str]]:
    """Yield (line number, text, raw) for each line of an open file; text is None if it is not UTF-8.

    Line ends are CR LF or LF. Of a line that is longer than the limit raw is the start, a `CutLine`, and text is None.
    Raises InputRefused for a file of hardly anything but empty lines.
    """
    count, empty_count, longest, most = 0, 0, in_force().max_line_bytes, in_force().max_refused_count
    while line := file.readline(longest + 1):
        number, count = first_line + count, count + 1
        if line.isspace():
            empty_count += 1
            if empty_count > max(most, count // 2):
                raise InputRefused(
                    f"More than {most:,} of its lines are empty (limits.max_refused_count), and fewer are not.",
                    "Check that the file is a log of lines.",
                )
        if len(line) > longest:
            yield number, None, CutLine(line[:_SHOWN_BYTES].decode("utf-8", "backslashreplace"))
            while line and not line.endswith(b"\n"):
                line = file.readline(longest)
            continue
        stripped = line.rstrip(b"\r\n")
        if number == 1:
            stripped = stripped.removeprefix(b"\xef\xbb\xbf")
        try:
            text = stripped.decode("utf-8")
            yield number, None if "\x00" in text else text, text
        except UnicodeDecodeError:
            yield number, None, stripped.decode("utf-8", "backslashreplace")


#: the end of a Parquet file: the length of the footer before it (32 bits, little endian), and the mark
_PARQUET_TAIL_BYTES = 8
_MOST_FOOTER_BYTES = 1 << 24


def parquet_footer(path: Path) -> bytes:
    """Return the bytes of a Parquet file's footer, in which its columns and metadata stand; nothing if it has none."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        most = size - len(PARQUET_MAGIC) - _PARQUET_TAIL_BYTES
        if most < 0:
            return b""
        file.seek(size - _PARQUET_TAIL_BYTES)
        tail = file.read(_PARQUET_TAIL_BYTES)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != PARQUET_MAGIC or not 0 < length <= min(_MOST_FOOTER_BYTES, most):
            return b""
        file.seek(size - _PARQUET_TAIL_BYTES - length)
        return file.read(length)


@contextmanager
def refusing_parquet_damage(remedy: str = "Fetch or write the file anew.") -> Iterator[None]:
    """Turn what Polars and PyArrow say of damaged Parquet into InputRefused: of names that are no text, ValueError."""
    try:
        yield
    # A panic of the reader is no `Exception`, but it is as much the file's doing.
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        pa.ArrowException,
        OSError,
        ValueError,
    ) as error:
        raise_of_machine(error)
        said = (str(error).splitlines() or ["damaged"])[0]
        raise InputRefused(f"The Parquet content cannot be read: {said}.", remedy) from error
