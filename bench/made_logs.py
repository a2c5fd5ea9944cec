"""Small Darshan logs in any number: one real log, each time with another job, other times and other counts.

A log of format 3.10 is a header, the job record, the names and the modules' records, each compressed (darshan-util's
`darshan-log-format.h`): what is changed is compressed anew, and the header tells the new places.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

#: the real log that they are made of: 4 ranks, 16 segments of DXT in each of two layers
BASE = "mpi-io-test-ppc64-3.1.3.darshan"
_VERSION = b"3.10"
_SLOTS = 16
_HEADER = f"8sqB3sI{2 + 2 * _SLOTS}Q{_SLOTS}I"
_POSIX = 1
#: id and rank of a record, then its counters
_RECORD_HEAD_BYTES = 16
#: the counters of POSIX version 3 that say how many bytes were read and written
_BYTES_READ, _BYTES_WRITTEN = 9, 10
#: runs are this long apart
_APART_S = 40


@dataclass(frozen=True, slots=True)
class Log:
    """A log's parts: the fixed start of its header, module by module its version, and all regions decompressed."""

    order: str
    start: tuple[bytes, int, int, bytes, int]
    versions: tuple[int, ...]
    job: bytes
    names: bytes
    modules: dict[int, bytes]

    @classmethod
    def of(cls, path: Path) -> Log:
        """Read a log of format 3.10; raises ValueError for any other."""
        content = path.read_bytes()
        order = "<" if content[8:16] == struct.pack("<q", 6567223) else ">"
        head = struct.Struct(order + _HEADER)
        if not content.startswith(_VERSION):
            raise ValueError(f"{path.name} has another format than {_VERSION.decode()}.")
        fields = head.unpack_from(content)
        places = list(zip(fields[5 : 5 + 2 + 2 * _SLOTS : 2], fields[6 : 5 + 2 + 2 * _SLOTS : 2], strict=True))
        (names_at, names_bytes), modules = places[0], places[1:]
        return cls(
            order,
            fields[:5],
            fields[5 + 2 + 2 * _SLOTS :],
            _decompressed(content[head.size : names_at]),
            _decompressed(content[names_at : names_at + names_bytes]),
            {slot: _decompressed(content[at : at + size]) for slot, (at, size) in enumerate(modules) if size},
        )

    def made(self, number: int) -> bytes:
        """Return the log of another run: job 1 + `number`, later by as many times 40 s, with other bytes moved."""
        user, started, ended, process_count, _ = struct.unpack_from(f"{self.order}5q", self.job)
        shift = _APART_S * number
        job = struct.pack(f"{self.order}5q", user, started + shift, ended + shift, process_count, 1 + number)
        modules = self.modules | {_POSIX: self._moved(self.modules[_POSIX], number)}
        return self._written(job + self.job[len(job) :], modules)

    def _moved(self, posix: bytes, number: int) -> bytes:
        """Return POSIX records of which the first has read and written more bytes."""
        changed = bytearray(posix)
        for counter in (_BYTES_READ, _BYTES_WRITTEN):
            at = _RECORD_HEAD_BYTES + 8 * counter
            (before,) = struct.unpack_from(f"{self.order}q", changed, at)
            struct.pack_into(f"{self.order}q", changed, at, before + number)
        return bytes(changed)

    def _written(self, job: bytes, modules: dict[int, bytes]) -> bytes:
        head = struct.Struct(self.order + _HEADER)
        at, parts = head.size, []
        places = {}
        for slot, raw in ((None, job), (-1, self.names), *sorted(modules.items())):
            parts.append(zlib.compress(raw))
            places[slot] = at, len(parts[-1])
            at += len(parts[-1])
        pairs = [number for slot in range(-1, _SLOTS) for number in places.get(slot, (0, 0))]
        return head.pack(*self.start, *pairs, *self.versions) + b"".join(parts)


def _decompressed(content: bytes) -> bytes:
    """Return what a region holds, in however many streams."""
    found = []
    while content:
        stream = zlib.decompressobj()
        found.append(stream.decompress(content) + stream.flush())
        content = stream.unused_data
    return b"".join(found)


def write(base: Path, folder: Path, count: int) -> None:
    """Write so many logs, each of another content, from a log of format 3.10 that has POSIX records."""
    folder.mkdir(parents=True)
    log = Log.of(base)
    for number in range(count):
        (folder / f"made_id{1 + number}.darshan").write_bytes(log.made(number))
