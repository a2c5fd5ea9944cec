"""The structure of a Darshan log, checked without Darshan's library: what damage there is, and where.

A log is a header, the job record, the names of what was traced, and the modules' records, each compressed. The
library reads a log that is cut, or has a bit changed, without a word or with a wrong one, so this looks first:

- the regions that the header tells of follow each other in the library's order without a gap, from the header to
  the end of the file;
- each region decompresses wholly, and each of its streams ends with its checksum (zlib's Adler-32, bzip2's CRC);
- the module versions exist in that format, the decompressed lengths are those of whole records, and the records'
  ranks and ids are those of the job and of the names;
- the job record is plausible, and the format is not older than the library version that the job record states.

Formats and record sizes: darshan-util's `darshan-log-format.h` with the headers that it includes,
`darshan-logutils.c` and its module files (sizes of old versions: `DARSHAN_POSIX_FILE_SIZE_1` and the like).

The header alone has no checksum. What no check of it can see:

- whether a module is partial (one bit each): one that is lost says that all is there, and only the share of the
  counted bytes that the module holds still tells; one that is set calls a whole module partial;
- one version of a module changed to another, where both occur in that format with records of the same size: MPI-IO 1
  and 2 (read alike), DXT_MPIIO 1 and 2 in formats 3.10 and 3.20 (of 1, the offsets mean nothing), each two bits
  apart; and any version of a module that has a place and no records;
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Protocol

import numpy as np
import numpy.typing as npt

from warehouse.errors import InputRefused

Ids = npt.NDArray[np.uint64]

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


@dataclass(frozen=True, slots=True)
class _Varying:
    """Records that start with a fixed part: the id, the rank, and counts from which the record's length follows."""

    fixed: str
    length: Callable[..., int]


def _dxt(segment_bytes: int) -> _Varying:
    return _Varying("Qq72xqq", lambda writes, reads: 104 + segment_bytes * (writes + reads))


_LUSTRE_1 = _Varying("Qq32xq", lambda stripes: 56 + 8 * stripes)
_LUSTRE_2 = _Varying("Qqqq", lambda components, stripes: 32 + 72 * components + 8 * stripes)
_HEATMAP = _Varying("Qq8xq16x", lambda bins: 48 + 16 * bins)

#: a record's bytes, or how they follow from it, or None: not looked into
_Form = int | _Varying | None

#: by module: its versions, as (version, form of the records, first and last format in which they occur)
_FORMS: dict[str, tuple[tuple[int, _Form, str, str], ...]] = {
    "POSIX": ((1, 680, "3.00", "3.10"), (2, 648, "3.00", "3.10"), (3, 664, "3.00", "3.10"), (4, 704, "3.10", "3.41")),
    "MPI-IO": ((1, 544, "3.00", "3.10"), (2, 544, "3.00", "3.10"), (3, 560, "3.10", "3.41")),
    "H5F": ((1, 40, "3.00", "3.20"), (2, 56, "3.00", "3.20"), (3, 80, "3.10", "3.41")),
    "H5D": ((1, 904, "3.20", "3.41"), (2, 912, "3.20", "3.41")),
    "PNETCDF_FILE": ((1, 48, "3.00", "3.21"), (2, 64, "3.00", "3.21"), (3, 152, "3.41", "3.41")),
    "PNETCDF_VAR": ((1, 1120, "3.41", "3.41"),),
    "BG/Q": ((1, 120, "3.00", "3.10"), (2, 112, "3.00", "3.41")),
    "LUSTRE": ((1, _LUSTRE_1, "3.00", "3.41"), (2, _LUSTRE_2, "3.41", "3.41")),
    "STDIO": ((1, 240, "3.00", "3.10"), (2, 248, "3.10", "3.41")),
    "DXT_POSIX": ((1, _dxt(32), "3.10", "3.41"), (2, _dxt(40), "3.41", "3.41")),
    "DXT_MPIIO": ((1, _dxt(32), "3.10", "3.20"), (2, _dxt(32), "3.10", "3.41"), (3, _dxt(40), "3.41", "3.41")),
    "MDHIM": ((1, None, "3.10", "3.41"),),
    "APXC": ((1, None, "3.20", "3.41"),),
    "APMPI": ((1, None, "3.20", "3.41"),),
    "HEATMAP": ((1, _HEATMAP, "3.20", "3.41"),),
    "DFS": ((1, 584, "3.41", "3.41"),),
    "DAOS": ((1, 696, "3.41", "3.41"),),
}
_MODULES = ("NULL", *_FORMS)
#: a module whose record tells of the machine and of no file: it has an id without a name
_NAMELESS = "BG/Q"


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


@dataclass(frozen=True, slots=True)
class _Log:
    """An open log: where its bytes come from, and what its records are checked against."""

    file: IO[bytes]
    header: _Header
    process_count: int = 0
    #: sorted
    ids: Ids | None = None


# ---- the whole


def examine(path: Path) -> Layout:
    """Check the structure of a log; raises InputRefused if the header, the job record or the names do not hold.

    Also if the file is no Darshan log, or of a format that is not known here. Reads the file once, in pieces.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        header = _header(file)
        job, names, *places = _places(header, size)
        log = _Log(file, header)
        process_count = _job(log, job)
        log = _Log(file, header, process_count, _names(log, names))
        regions = [_region(log, place) for place in places]
    fixed = [Region(p.name, None, p.offset, p.stored_bytes, p.raw_bytes, False, None) for p in (job, names)]
    return Layout(header.version, header.order == "<", header.compression, (*fixed, *regions))


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
    raw_bytes: int = 0
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


# ---- the job record and the names


def _job(log: _Log, place: _Place) -> int:
    """Check the job record, and return its number of processes."""
    header = log.header
    fixed = struct.Struct(f"{header.order}{header.format.job_numbers}q")
    raw = _job_bytes(log, place)
    if len(raw) <= fixed.size + _METADATA_BYTES:
        raise _refused("job record", f"it has {len(raw)} bytes.")
    numbers = fixed.unpack_from(raw)
    if len(numbers) == 5:
        _, started_s, ended_s, process_count, _ = numbers
        fractions = [0, 0]
    else:
        _, started_s, started_ns, ended_s, ended_ns, process_count, _ = numbers
        fractions = [started_ns, ended_ns]
    if not 0 <= started_s <= ended_s < _LATEST_S or not all(0 <= part < 10**9 for part in fractions):
        raise _refused("job record", f"by it, the run began at {started_s} s and ended at {ended_s} s.")
    if not 1 <= process_count <= _MOST_PROCESSES:
        raise _refused("job record", f"by it, the run had {process_count} processes.")
    _check_release(header.version, raw[fixed.size : fixed.size + _METADATA_BYTES])
    return int(process_count)


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


def _names(log: _Log, place: _Place) -> Ids:
    """Check the names' records, and return the ids that they name, sorted."""
    found: list[Ids] = []
    rest = b""
    split = _old_names if log.header.version == "3.00" else _terminated_names
    try:
        for piece in _inflated(log, place):
            ids, used = split(rest + piece, log.header.order)
            found.append(np.unique(ids))
            rest = (rest + piece)[used:]
            if len(rest) > _PIECE_BYTES:
                raise _DamageError("one of them does not end.")
            place.raw_bytes += len(piece)
    except _DamageError as damage:
        raise _refused("list of names", str(damage)) from None
    if rest:
        raise _refused("list of names", "the last of them does not end.")
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.uint64)


_NAME = re.compile(rb"(.{8})([^\0]*)\0", re.DOTALL)


def _terminated_names(content: bytes, order: str) -> tuple[Ids, int]:
    pairs = _NAME.findall(content)
    ids = np.frombuffer(b"".join([key for key, _ in pairs]), f"{order}u8")
    return ids.astype(np.uint64), 9 * len(pairs) + sum(len(name) for _, name in pairs)


def _old_names(content: bytes, order: str) -> tuple[Ids, int]:
    start = struct.Struct(f"{order}QI")
    ids: list[int] = []
    position = 0
    while position + start.size <= len(content):
        key, length = start.unpack_from(content, position)
        if position + start.size + length > len(content):
            break
        ids.append(key)
        position += start.size + length
    return np.array(ids, np.uint64), position


def _job_bytes(log: _Log, place: _Place) -> bytes:
    content = b""
    try:
        for piece in _inflated(log, place):
            content += piece
            if len(content) > _JOB_RECORD_BYTES:
                raise _DamageError(f"it has more than {_JOB_RECORD_BYTES} bytes.")
    except _DamageError as damage:
        raise _refused("job record", str(damage)) from None
    # One process writes it. More streams are other regions, if the header has lost them.
    if place.stream_count != 1:
        raise _refused("job record", f"it has {place.stream_count} streams, where Darshan writes one.")
    place.raw_bytes = len(content)
    return content


# ---- the modules


def _region(log: _Log, place: _Place) -> Region:
    version = log.header.versions[place.number]
    is_partial = bool(log.header.partial >> place.number & 1)
    raw_bytes: int | None = None
    fault: str | None = None
    try:
        check = _checker(log, place)
    except _DamageError as damage:
        fault, check = str(damage), _Unseen()
    try:
        for piece in _inflated(log, place):
            place.raw_bytes += len(piece)
            fault = fault or check.feed(piece)
        raw_bytes = place.raw_bytes
        fault = fault or check.end()
    except _DamageError as damage:
        fault = str(damage)
    told = f"{place.name} is damaged: {fault}" if fault else None
    return Region(place.name, version, place.offset, place.stored_bytes, raw_bytes, is_partial, told)


def _checker(log: _Log, place: _Place) -> _Checker:
    """Return what checks the module's records; raises _DamageError if its version cannot be."""
    version, format_version = log.header.versions[place.number], log.header.version
    if place.name not in log.header.format.modules or place.name == "NULL":
        raise _DamageError(f"format {format_version} has no such module.")
    if version == 0:
        raise _DamageError("it has records and no version.")
    for known, form, first, last in _FORMS[place.name]:
        if version == known and first <= format_version <= last:
            if form is None:
                return _Unseen()
            log = replace(log, ids=None) if place.name == _NAMELESS else log
            return _Fixed(log, form) if isinstance(form, int) else _Varied(log, form)
    raise _DamageError(f"it has version {version}, which does not occur in format {format_version}.")


class _Checker(Protocol):
    """What looks at a module's decompressed records piece by piece, and says what is wrong with them."""

    def feed(self, piece: bytes) -> str | None: ...

    def end(self) -> str | None: ...


class _Unseen:
    """Records that are not looked into."""

    def feed(self, piece: bytes) -> str | None:
        return None

    def end(self) -> str | None:
        return None


class _Fixed:
    """Records of the same length."""

    def __init__(self, log: _Log, record_bytes: int) -> None:
        self._log = log
        self._record_bytes = record_bytes
        self._rest = b""

    def feed(self, piece: bytes) -> str | None:
        content = self._rest + piece
        count, rest_bytes = divmod(len(content), self._record_bytes)
        self._rest = content[len(content) - rest_bytes :]
        words = np.frombuffer(content, f"{self._log.header.order}i8", count * self._record_bytes // 8)
        table = words.reshape(count, self._record_bytes // 8)
        return _strange(self._log, table[:, 0].astype(np.int64).view(np.uint64), table[:, 1])

    def end(self) -> str | None:
        return _UNFINISHED if self._rest else None


_UNFINISHED = "it does not consist of whole records."


class _Varied:
    """Records whose length follows from what they start with."""

    def __init__(self, log: _Log, form: _Varying) -> None:
        self._log = log
        self._length = form.length
        self._fixed = struct.Struct(log.header.order + form.fixed)
        self._rest = b""
        self._skipped = 0

    def feed(self, piece: bytes) -> str | None:
        content = self._rest + piece if self._rest else piece
        position, most = self._skipped, len(content) - self._fixed.size
        ids: list[int] = []
        ranks: list[int] = []
        while position <= most:
            key, rank, *counts = self._fixed.unpack_from(content, position)
            if min(counts) < 0:
                return f"one of its records has {min(counts)} entries."
            ids.append(key)
            ranks.append(rank)
            position += self._length(*counts)
        self._skipped = max(0, position - len(content))
        self._rest = content[position:]
        return _strange(self._log, np.array(ids, np.uint64), np.array(ranks, np.int64))

    def end(self) -> str | None:
        return _UNFINISHED if self._rest or self._skipped else None


def _strange(log: _Log, ids: Ids, ranks: npt.NDArray[np.int64]) -> str | None:
    if not len(ids):
        return None
    lowest, highest = int(ranks.min()), int(ranks.max())
    if lowest < -1 or highest >= log.process_count:
        rank = lowest if lowest < -1 else highest
        return f"one of its records is of rank {rank}, and the run had {log.process_count} processes."
    if log.ids is None:
        return None
    places = np.searchsorted(log.ids, ids)
    is_named = len(log.ids) > 0 and bool((log.ids[places.clip(max=len(log.ids) - 1)] == ids).all())
    return None if is_named else "one of its records is of a file that the names do not have."


# ---- decompression


class _Stream(Protocol):
    """What inflates one stream: zlib's and bzip2's objects alike."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, most: int, /) -> bytes: ...


def _inflated(log: _Log, place: _Place) -> Iterator[bytes]:
    """Yield a region's content in pieces; raises _DamageError unless it consists of whole streams that check."""
    pieces: list[bytes] = []
    size = 0
    for piece in _pieces(log, place):
        pieces.append(piece)
        size += len(piece)
        if size >= _PIECE_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)


def _pieces(log: _Log, place: _Place) -> Iterator[bytes]:
    start: Callable[[], _Stream] = zlib.decompressobj if log.header.compression == "zlib" else bz2.BZ2Decompressor
    log.file.seek(place.offset)
    left, content, stream, has_more = place.stored_bytes, b"", None, False
    while left or content or has_more:
        if not content and not has_more:
            content = log.file.read(min(left, _READ_BYTES))
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
