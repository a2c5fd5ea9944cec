"""Check the structure of a Darshan log without Darshan's library, to find and locate damage.

A log is a header, the job record, the names of traced files, and the modules' records, each compressed. The library
reads a truncated or corrupted log silently or with a misleading error, so these checks come first:

- the regions in the header are contiguous in the library's order, from the header to the end of the file;
- each region decompresses completely, and each of its streams ends with its checksum (zlib's Adler-32, bzip2's CRC);
- the modules and their versions exist, the job record is plausible, and the format is not older than the library
  version in the job record.

The module `reading` checks the records themselves, after the library has read them in a process that may crash. Their
lengths must add up to the region's length, and their ranks and ids must be those in the job record and in the names.

Format: darshan-util's `darshan-log-format.h` and `darshan-logutils.c`. Only the header has no checksum. These changes
in the header cannot be detected:

- a change of the bit that marks a module as partial: a cleared bit marks a partial module as complete, which only the
  fraction of the counted bytes that the module contains reveals; a set bit marks a complete module as partial;
- a change of a module's version to another one with records of the same size: MPI-IO 1 and 2 (read identically) or
  DXT_MPIIO 1 and 2 (offsets in version 1 are meaningless), which differ in two bits; and any version of a module that
  has a place but no records;
- a change of format 3.20 to 3.21, since a log of 3.20 may have been converted; both are read identically.

The job record and the names have checksums like the modules. A 32-bit checksum accepts one damaged stream in four
billion.
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
#: size of one read [B]; small, because each new stream copies the unused rest of a read
_READ_BYTES = 1 << 15
#: maximum size of a decompressed piece [B]
_PIECE_BYTES = 1 << 18
_METADATA_BYTES = 1024
_JOB_RECORD_BYTES = 4096
_MAX_PROCESSES = 1 << 31
#: latest plausible time of a run: the year 2242 [s since 1970]
_LATEST_S = 1 << 33
_FETCH = "Fetch the log again from where Darshan wrote it; if that file is damaged too, this trace is lost."


@dataclass(frozen=True, slots=True)
class Region:
    """One stored region in a log: the job record (`JOB`), the names (`NAMES`), or a module's records.

    `raw_bytes` is the decompressed length, None if the region cannot be decompressed. `fault` explains in one sentence
    why the region is damaged; None if it is intact.
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
    """Header fields of a log, and its regions in stored order."""

    version: str
    is_little_endian: bool
    compression: str
    regions: tuple[Region, ...]


#: newest version of each module in the newest format, in the format's order; module 0 has no records
_VERSIONS = (
    {"POSIX": 4, "MPI-IO": 3, "H5F": 3, "H5D": 2, "PNETCDF_FILE": 3, "PNETCDF_VAR": 1, "BG/Q": 2, "LUSTRE": 2}
    | {"STDIO": 2, "DXT_POSIX": 2, "DXT_MPIIO": 3, "MDHIM": 1, "APXC": 1, "APMPI": 1, "HEATMAP": 1}
    | {"DFS": 1, "DAOS": 1}
)
_MODULES = ("NULL", *_VERSIONS)


@dataclass(frozen=True, slots=True)
class _Format:
    """Properties of a format version: module slots, modules in order, and job time fields."""

    slot_count: int
    modules: tuple[str, ...]
    #: struct code of the flags; the compression byte is padded to this width
    flags: str
    #: number of integers at the start of the job record
    job_numbers: int

    @property
    def header(self) -> str:
        """Struct format of the header after the magic number."""
        return f"B{7 if self.flags == 'Q' else 3}s{self.flags}{2 + 2 * self.slot_count}Q{self.slot_count}I"


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in _MODULES if name not in names)


# Modules were renumbered when H5D (3.20) and PNETCDF_VAR (3.41) were inserted between older modules.
_OLD = _Format(16, _without("H5D", "PNETCDF_VAR", "DFS", "DAOS"), "I", 5)
_MIDDLE = _Format(16, _without("PNETCDF_VAR", "DFS", "DAOS"), "I", 5)
_NEW = _Format(64, _MODULES, "Q", 7)
_FORMATS = {"3.00": _OLD, "3.10": _OLD, "3.20": _MIDDLE, "3.21": _MIDDLE, "3.41": _NEW}
#: format -> first release of Darshan's runtime library that writes it
_RELEASES = {"3.10": (3, 1, 0), "3.20": (3, 2, 0), "3.21": (3, 2, 1), "3.41": (3, 4, 1)}
_LIBRARY = re.compile(rb"(?:^|\n)lib_ver=(\d+)\.(\d+)\.(\d+)(-?)")


class _DamageError(Exception):
    """Raised for a damaged region; the message is the region's `fault`."""


@dataclass(frozen=True, slots=True)
class _Header:
    version: str
    order: str
    compression: str
    #: bit mask by module number
    partial: int
    names: tuple[int, int]
    #: offset and length of each module's region, and version of each module, by module number
    places: tuple[tuple[int, int], ...]
    versions: tuple[int, ...]
    bytes: int

    @property
    def format(self) -> _Format:
        return _FORMATS[self.version]


# ---- entry point


def examine(path: Path) -> Layout:
    """Check the structure of a log in one pass over the file.

    Raises InputRefused if the header, the job record or the names are damaged, if the file is not a Darshan log, or
    for an unknown format.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        header = _header(file)
        places = _places(header, size)
        _check_job(header, places[0], file)
        regions = [_region(header, place, file) for place in places]
    if regions[1].fault is not None:
        raise _build_refusal("list of names", regions[1].fault)
    return Layout(header.version, header.order == "<", header.compression, tuple(regions))


def _build_refusal(part: str, fault: str) -> InputRefused:
    return InputRefused(f"The Darshan log's {part} is damaged: {fault}", _FETCH)


# ---- the header


def _header(file: IO[bytes]) -> _Header:
    file.seek(0)
    start = file.read(16)
    orders = [order for order in "<>" if start[8:] == struct.pack(f"{order}q", _MAGIC)]
    if not orders or not re.match(rb"\d\.\d\d\0{4}", start):
        raise InputRefused("This is not a Darshan log, or its first bytes are damaged.", _FETCH)
    version = start[:4].decode()
    if version not in _FORMATS:
        remedy = "Report logs of a later format."
        if version.startswith(("1", "2")):
            remedy = "Darshan 3 cannot convert it. Print its counters with the darshan-parser of Darshan 2."
        raise InputRefused(f"The log has format {version}; known are {', '.join(_FORMATS)}.", remedy)
    layout = struct.Struct(orders[0] + _FORMATS[version].header)
    content = file.read(layout.size)
    if len(content) < layout.size:
        raise _build_refusal("header", "the file ends within it.")
    compression, padding, partial, *numbers = layout.unpack(content)
    if compression >= len(_COMPRESSIONS) or any(padding):
        raise _build_refusal("header", "its kind of compression does not exist.")
    if _COMPRESSIONS[compression] == "none":
        reason = "The log is not compressed: its run did not end, and it has no checksums."
        raise InputRefused(reason, "Compress it with darshan-convert.")
    return _build_header(version, orders[0], _COMPRESSIONS[compression], partial, numbers, 16 + layout.size)


def _build_header(version: str, order: str, compression: str, partial: int, numbers: list[int], size: int) -> _Header:
    slots = _FORMATS[version].slot_count
    pairs = tuple(zip(numbers[: 2 + 2 * slots : 2], numbers[1 : 2 + 2 * slots : 2], strict=True))
    versions = tuple(numbers[2 + 2 * slots :])
    header = _Header(version, order, compression, partial, pairs[0], pairs[1:], versions, size)
    if partial >> slots:
        raise _build_refusal("header", "it calls modules partial that it has no room for.")
    for number in range(slots):
        is_placed, is_partial = header.places[number][0] > 0, partial >> number & 1
        # Darshan sets and clears version and place together.
        if versions[number] and not is_placed:
            raise _build_refusal("header", f"it gives {_module_name(header, number)} a version and no place.")
        if is_partial and not is_placed:
            raise _build_refusal("header", f"it calls {_module_name(header, number)} partial and gives it no place.")
    return header


@dataclass(slots=True)
class _Place:
    """Location of a region; `number` is the module's, or -1."""

    name: str
    number: int
    offset: int
    stored_bytes: int
    stream_count: int = 0


def _places(header: _Header, size: int) -> list[_Place]:
    """Return the places of job, names and modules, which must be contiguous up to the end of the file."""
    used = [(n, place) for n, place in enumerate(header.places) if any(place) or header.versions[n]]
    parts = [("NAMES", -1, header.names), *((_module_name(header, n), n, place) for n, place in used)]
    offsets = [offset for _, _, (offset, _) in parts if offset]
    if used and not header.names[0]:
        raise _build_refusal("header", "it has modules but no names.")
    position = offsets[0] if offsets else size
    places = [_Place("JOB", -1, header.bytes, position - header.bytes)]
    for name, number, (offset, length) in parts:
        is_absent = offset == length == 0
        if not is_absent and offset != position:
            raise _build_refusal(
                "header", f"{name} begins at byte {offset}, but the previous region ends at {position}."
            )
        places.append(_Place(name, number, offset, length))
        position += length
    if places[0].stored_bytes <= 0:
        raise _build_refusal("header", "it has no job record.")
    if position < size:
        raise _build_refusal("header", f"its regions end at byte {position}, but the file has {size} bytes.")
    return places


def _module_name(header: _Header, number: int) -> str:
    modules = header.format.modules
    return modules[number] if number < len(modules) else f"module {number}"


# ---- the job record


def _check_job(header: _Header, place: _Place, file: IO[bytes]) -> None:
    fixed = struct.Struct(f"{header.order}{header.format.job_numbers}q")
    raw = _job_bytes(header, place, file)
    if len(raw) <= fixed.size + _METADATA_BYTES:
        raise _build_refusal("job record", f"it has {len(raw)} bytes.")
    numbers = fixed.unpack_from(raw)
    if len(numbers) == 5:
        _, start_s, end_s, process_count, _ = numbers
        fractions = [0, 0]
    else:
        _, start_s, started_ns, end_s, ended_ns, process_count, _ = numbers
        fractions = [started_ns, ended_ns]
    if not 0 <= start_s <= end_s < _LATEST_S or not all(0 <= part < 10**9 for part in fractions):
        raise _build_refusal("job record", f"the run began at {start_s} s and ended at {end_s} s.")
    if not 1 <= process_count <= _MAX_PROCESSES:
        raise _build_refusal("job record", f"the run had {process_count} processes.")
    _check_release(header.version, raw[fixed.size : fixed.size + _METADATA_BYTES])


def _check_release(version: str, metadata: bytes) -> None:
    # A converted log may have a newer format than its library wrote, but never an older one. A library's prereleases
    # write either format.
    stated = _LIBRARY.search(metadata.split(b"\0", 1)[0])
    if stated is None:
        return
    release = tuple(int(stated[part]) for part in (1, 2, 3))
    is_early = bool(stated[4])
    later = [first for name, first in _RELEASES.items() if name > version]
    if later and (release > min(later) or (release == min(later) and not is_early)):
        number = ".".join(map(str, release))
        raise _build_refusal(
            "header", f"it has format {version}, which Darshan {number}, the version in the job record, does not write."
        )


def _job_bytes(header: _Header, place: _Place, file: IO[bytes]) -> bytes:
    content = b""
    try:
        for piece in _decompress(header, place, file):
            content += piece
            if len(content) > _JOB_RECORD_BYTES:
                raise _DamageError(f"it has more than {_JOB_RECORD_BYTES} bytes.")
    except _DamageError as damage:
        raise _build_refusal("job record", str(damage)) from None
    # A single process writes the job record, so further streams belong to regions that a damaged header omits.
    if place.stream_count != 1:
        raise _build_refusal("job record", f"it has {place.stream_count} streams, where Darshan writes one.")
    return content


# ---- the regions


def _region(header: _Header, place: _Place, file: IO[bytes]) -> Region:
    is_module = place.number >= 0
    raw_bytes = fault = None
    size, last = 0, b"\0"
    try:
        for piece in _decompress(header, place, file):
            size, last = size + len(piece), piece[-1:]
        raw_bytes = size
        # Format 3.00 stores names with their lengths; later ones end with a NUL.
        if place.name == "NAMES" and last != b"\0" and header.version != "3.00":
            raise _DamageError("the last name does not end.")
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
    """Common interface of zlib's and bzip2's decompressors."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _decompress(header: _Header, place: _Place, file: IO[bytes]) -> Iterator[bytes]:
    """Yield a region's content in pieces; raises _DamageError unless it consists of complete, valid streams."""
    start: Callable[[], _Stream] = zlib.decompressobj if header.compression == "zlib" else bz2.BZ2Decompressor
    file.seek(place.offset)
    remaining_bytes, content, stream, has_more = place.stored_bytes, b"", None, False
    while remaining_bytes or content or has_more:
        if not content and not has_more:
            content = file.read(min(remaining_bytes, _READ_BYTES))
            if not content:
                raise _DamageError("the file ends within it.")
            remaining_bytes -= len(content)
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
