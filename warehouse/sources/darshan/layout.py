"""The structure of a Darshan log, checked without Darshan's library: what damage there is, and where.

A log is a header, the job record, the names of what was traced, and the modules' records, each compressed. The
library reads a log that is cut, or has a bit changed, without a word or with a wrong one, so this looks first:

- the regions that the header tells of follow each other in the library's order without a gap, from the header to
  the end of the file;
- each region decompresses wholly, and each of its streams ends with its checksum (zlib's Adler-32, bzip2's CRC);
- the modules and their versions exist, the job record is plausible, and the format is not older than the library
  version that the job record states.

What is in the records is looked at where the library has read them, in a process that may die of it: whether their
lengths add up to the region's, and their ranks and ids are those of the job and of the names (`reading`).

Format: darshan-util's `darshan-log-format.h` and `darshan-logutils.c`. The header alone has no checksum. What no check
of it can see:

- whether a module is partial (one bit each): one that is lost says that all is there, and only the share of the
  counted bytes that the module holds still tells; one that is set calls a whole module partial;
- one version of a module changed to another whose records are of the same size: MPI-IO 1 and 2 (read alike),
  DXT_MPIIO 1 and 2 (of 1, the offsets mean nothing), each two bits apart; and any version of a module that has a
  place and no records;
- format 3.20 changed to 3.21, since a log of 3.20 may have been converted: both are read alike.

The job record and the names have checksums like all else. A checksum of 32 bits takes one damaged stream in four
thousand million for sound.
"""

from __future__ import annotations

import bz2
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from iosig.warehouse.errors import InputRefused

_MAGIC = 6567223
_COMPRESSIONS = ("zlib", "bzip2", "none")
#: bytes of a log that are looked at together: every new stream copies what is left of them
_READ_BYTES = 1 << 15
#: decompressed bytes that are looked at together
_PIECE_BYTES = 1 << 18
_METADATA_BYTES = 1024
_JOB_RECORD_BYTES = 4096
_MOST_PROCESSES = 1 << 31
#: the year 2242: no clock of a run is set later
_LATEST_S = 1 << 33
_FETCH = "Fetch the log anew from where Darshan wrote it; if it is so there too, this trace is lost."


@dataclass(frozen=True, slots=True)
class Region:
    """One stored region of a log: the job record (`JOB`), the names (`NAMES`), or a module's records.

    `raw_bytes` is its length when decompressed, None if it cannot be; `fault` says in one sentence why the region
    is damaged, and is None if every check holds.
    """

    name: str
    version: int | None
    offset: int
    stored_bytes: int
    raw_bytes: int | None
    is_partial: bool
    fault: str | None


@dataclass(frozen=True, slots=True)
class Layout:
    """What a log's header says, and each of its regions, in the order in which they are stored."""

    version: str
    is_little_endian: bool
    compression: str
    regions: tuple[Region, ...]


#: the modules of the newest format, in its order, each with its newest version; before them is one without records
_VERSIONS = (
    {"POSIX": 4, "MPI-IO": 3, "H5F": 3, "H5D": 2, "PNETCDF_FILE": 3, "PNETCDF_VAR": 1, "BG/Q": 2, "LUSTRE": 2}
    | {"STDIO": 2, "DXT_POSIX": 2, "DXT_MPIIO": 3, "MDHIM": 1, "APXC": 1, "APMPI": 1, "HEATMAP": 1}
    | {"DFS": 1, "DAOS": 1}
)
_MODULES = ("NULL", *_VERSIONS)


@dataclass(frozen=True, slots=True)
class _Format:
    """What differs between the formats: the slots for modules, the modules in their order, the job's times."""

    slot_count: int
    modules: tuple[str, ...]
    #: the width of the flags, which the compression's byte is padded up to
    flags: str
    #: the numbers at the start of the job record
    job_numbers: int

    @property
    def header(self) -> str:
        """The struct of what follows the magic number."""
        return f"B{7 if self.flags == 'Q' else 3}s{self.flags}{2 + 2 * self.slot_count}Q{self.slot_count}I"


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in _MODULES if name not in names)


# Modules got their numbers anew when H5D (3.20) and PNETCDF_VAR (3.41) were put between older ones.
_OLD = _Format(16, _without("H5D", "PNETCDF_VAR", "DFS", "DAOS"), "I", 5)
_MIDDLE = _Format(16, _without("PNETCDF_VAR", "DFS", "DAOS"), "I", 5)
_NEW = _Format(64, _MODULES, "Q", 7)
_FORMATS = {"3.00": _OLD, "3.10": _OLD, "3.20": _MIDDLE, "3.21": _MIDDLE, "3.41": _NEW}
#: the first release of Darshan's runtime library that writes a format
_RELEASES = {"3.10": (3, 1, 0), "3.20": (3, 2, 0), "3.21": (3, 2, 1), "3.41": (3, 4, 1)}
_LIBRARY = re.compile(rb"(?:^|\n)lib_ver=(\d+)\.(\d+)\.(\d+)(-?)")


class _DamageError(Exception):
    """A region that is not as it was written; the text is its `fault`."""


@dataclass(frozen=True, slots=True)
class _Header:
    version: str
    order: str
    compression: str
    #: by module's number
    partial: int
    names: tuple[int, int]
    #: by module's number: offset and length, and version
    places: tuple[tuple[int, int], ...]
    versions: tuple[int, ...]
    bytes: int

    @property
    def format(self) -> _Format:
        return _FORMATS[self.version]


# ---- the whole


def examine(path: Path) -> Layout:
    """Check the structure of a log; raises InputRefused if the header, the job record or the names do not hold.

    Also if the file is no Darshan log, or of a format that is not known here. Reads the file once, in pieces.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        header = _header(file)
        places = _places(header, size)
        _check_job(header, places[0], file)
        regions = [_region(header, place, file) for place in places]
    if regions[1].fault is not None:
        raise _refused("list of names", regions[1].fault)
    return Layout(header.version, header.order == "<", header.compression, tuple(regions))


def _refused(part: str, what: str) -> InputRefused:
    return InputRefused(f"The Darshan log's {part} is damaged: {what}", _FETCH)


# ---- the header


def _header(file: IO[bytes]) -> _Header:
    file.seek(0)
    start = file.read(16)
    orders = [order for order in "<>" if start[8:] == struct.pack(f"{order}q", _MAGIC)]
    if not orders or not re.match(rb"\d\.\d\d\0{4}", start):
        raise InputRefused("This is no Darshan log, or its first bytes are damaged.", _FETCH)
    version = start[:4].decode()
    if version not in _FORMATS:
        remedy = "Logs of Darshan 2 need the tools of Darshan 2; of a later format, report it."
        raise InputRefused(f"The log has format {version}; known are {', '.join(_FORMATS)}.", remedy)
    rest = struct.Struct(orders[0] + _FORMATS[version].header)
    content = file.read(rest.size)
    if len(content) < rest.size:
        raise _refused("header", "the file ends within it.")
    compression, padding, partial, *numbers = rest.unpack(content)
    if compression >= len(_COMPRESSIONS) or any(padding):
        raise _refused("header", "its kind of compression does not exist.")
    if _COMPRESSIONS[compression] == "none":
        reason = "The log is not compressed: a run left it behind that did not end, and it has no checksums."
        raise InputRefused(reason, "Compress it with darshan-convert.")
    return _filled(version, orders[0], _COMPRESSIONS[compression], partial, numbers, 16 + rest.size)


def _filled(version: str, order: str, compression: str, partial: int, numbers: list[int], size: int) -> _Header:
    slots = _FORMATS[version].slot_count
    pairs = tuple(zip(numbers[: 2 + 2 * slots : 2], numbers[1 : 2 + 2 * slots : 2], strict=True))
    versions = tuple(numbers[2 + 2 * slots :])
    header = _Header(version, order, compression, partial, pairs[0], pairs[1:], versions, size)
    if partial >> slots:
        raise _refused("header", "it calls modules partial that it has no room for.")
    for number in range(slots):
        is_placed, is_partial = header.places[number][0] > 0, partial >> number & 1
        # Darshan sets and clears the two together.
        if versions[number] and not is_placed:
            raise _refused("header", f"it gives {_module_name(header, number)} a version and no place.")
        if is_partial and not is_placed:
            raise _refused("header", f"it calls {_module_name(header, number)} partial and gives it no place.")
    return header


@dataclass(slots=True)
class _Place:
    """Where a region lies; `number` is the module's, or -1."""

    name: str
    number: int
    offset: int
    stored_bytes: int
    stream_count: int = 0


def _places(header: _Header, size: int) -> list[_Place]:
    """Return the job's, the names' and the modules' places; they follow each other and end where the file does."""
    used = [(n, place) for n, place in enumerate(header.places) if any(place) or header.versions[n]]
    parts = [("NAMES", -1, header.names), *((_module_name(header, n), n, place) for n, place in used)]
    offsets = [offset for _, _, (offset, _) in parts if offset]
    if used and not header.names[0]:
        raise _refused("header", "it tells of modules and of no names.")
    position = offsets[0] if offsets else size
    found = [_Place("JOB", -1, header.bytes, position - header.bytes)]
    for name, number, (offset, length) in parts:
        is_absent = offset == length == 0
        if not is_absent and offset != position:
            raise _refused("header", f"by it, {name} begins at byte {offset}, and what is before ends at {position}.")
        found.append(_Place(name, number, offset, length))
        position += length
    if found[0].stored_bytes <= 0:
        raise _refused("header", "by it, there is no job record.")
    if position < size:
        raise _refused("header", f"it tells of {position} bytes, and the file has {size}.")
    return found


def _module_name(header: _Header, number: int) -> str:
    modules = header.format.modules
    return modules[number] if number < len(modules) else f"module {number}"


# ---- the job record


def _check_job(header: _Header, place: _Place, file: IO[bytes]) -> None:
    fixed = struct.Struct(f"{header.order}{header.format.job_numbers}q")
    raw = _job_bytes(header, place, file)
    if len(raw) <= fixed.size + _METADATA_BYTES:
        raise _refused("job record", f"it has {len(raw)} bytes.")
    numbers = fixed.unpack_from(raw)
    if len(numbers) == 5:
        _, start_s, end_s, process_count, _ = numbers
        fractions = [0, 0]
    else:
        _, start_s, started_ns, end_s, ended_ns, process_count, _ = numbers
        fractions = [started_ns, ended_ns]
    if not 0 <= start_s <= end_s < _LATEST_S or not all(0 <= part < 10**9 for part in fractions):
        raise _refused("job record", f"by it, the run began at {start_s} s and ended at {end_s} s.")
    if not 1 <= process_count <= _MOST_PROCESSES:
        raise _refused("job record", f"by it, the run had {process_count} processes.")
    _check_release(header.version, raw[fixed.size : fixed.size + _METADATA_BYTES])


def _check_release(version: str, metadata: bytes) -> None:
    # A log may be of a newer format than its library wrote, when it was converted, never of an older one; before
    # a release is out, its library writes the one or the other.
    stated = _LIBRARY.search(metadata.split(b"\0", 1)[0])
    if stated is None:
        return
    release = tuple(int(stated[part]) for part in (1, 2, 3))
    is_early = bool(stated[4])
    later = [one for name, one in _RELEASES.items() if name > version]
    if later and (release > min(later) or (release == min(later) and not is_early)):
        number = ".".join(map(str, release))
        raise _refused(
            "header", f"it says format {version}, which Darshan {number}, by the job record, does not write."
        )


def _job_bytes(header: _Header, place: _Place, file: IO[bytes]) -> bytes:
    content = b""
    try:
        for piece in _inflated(header, place, file):
            content += piece
            if len(content) > _JOB_RECORD_BYTES:
                raise _DamageError(f"it has more than {_JOB_RECORD_BYTES} bytes.")
    except _DamageError as damage:
        raise _refused("job record", str(damage)) from None
    # One process writes it. More streams are other regions, if the header has lost them.
    if place.stream_count != 1:
        raise _refused("job record", f"it has {place.stream_count} streams, where Darshan writes one.")
    return content


# ---- the regions


def _region(header: _Header, place: _Place, file: IO[bytes]) -> Region:
    is_module = place.number >= 0
    raw_bytes = fault = None
    size, last = 0, b"\0"
    try:
        for piece in _inflated(header, place, file):
            size, last = size + len(piece), piece[-1:]
        raw_bytes = size
        # Names had their lengths before them once, and end with a NUL since.
        if place.name == "NAMES" and last != b"\0" and header.version != "3.00":
            raise _DamageError("the last of them does not end.")
        if is_module:
            _check_version(header, place)
    except _DamageError as damage:
        fault = f"{place.name} is damaged: {damage}" if is_module else str(damage)
    version = header.versions[place.number] if is_module else None
    is_partial = is_module and bool(header.partial >> place.number & 1)
    return Region(place.name, version, place.offset, place.stored_bytes, raw_bytes, is_partial, fault)


def _check_version(header: _Header, place: _Place) -> None:
    version = header.versions[place.number]
    if place.number == 0 or place.number >= len(header.format.modules):
        raise _DamageError(f"format {header.version} has no such module.")
    if version == 0:
        raise _DamageError("it has records and no version.")
    if version > _VERSIONS[place.name]:
        raise _DamageError(f"it has version {version}, which does not exist.")


# ---- decompression


class _Stream(Protocol):
    """What inflates one stream: zlib's and bzip2's objects alike."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, most: int, /) -> bytes: ...


def _inflated(header: _Header, place: _Place, file: IO[bytes]) -> Iterator[bytes]:
    """Yield a region's content in pieces; raises _DamageError unless it consists of whole streams that check."""
    start: Callable[[], _Stream] = zlib.decompressobj if header.compression == "zlib" else bz2.BZ2Decompressor
    file.seek(place.offset)
    left, content, stream, has_more = place.stored_bytes, b"", None, False
    while left or content or has_more:
        if not content and not has_more:
            content = file.read(min(left, _READ_BYTES))
            if not content:
                raise _DamageError("the file ends within it.")
            left -= len(content)
        stream = stream or start()
        try:
            piece = stream.decompress(content, _PIECE_BYTES)
        except (zlib.error, OSError) as error:
            raise _DamageError(f"it cannot be decompressed ({error}).") from None
        has_more = len(piece) >= _PIECE_BYTES and not stream.eof
        content = stream.unused_data if stream.eof else getattr(stream, "unconsumed_tail", b"")
        if stream.eof:
            stream = None
            place.stream_count += 1
        if piece:
            yield piece
    if stream is not None:
        raise _DamageError("its last stream does not end.")
