"""What a Darshan log holds, as arrays, read by Darshan's own library: runs in a child process, see `child`.

`log` yields blocks, each with a `head` (bytes of JSON: `kind`, `module` and what else is text), in this order:

- `job`: the job record, in the head;
- `names`: `ids`; the names, in the head;
- of every module, those with stripes first: blocks of its records (`records`, `stripes`, `heatmaps`, `segments`),
  then `module`: what befell it (`outcome`, `reason`, `record_count`).

Blocks of a module come before it is known that all of it can be read, as soon as there are enough; a fault that is
found after that refuses the log. A module that is found out before gives no block at all.
"""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.darshan import library as library
from iosig.warehouse.sources.files.child import Arrays, printed

#: segments of a block, and bytes of records of a block
BLOCK_SEGMENTS = 1 << 18
BLOCK_BYTES = 1 << 24
#: bytes of small blocks that are passed on together
_MOST_HELD_BYTES = 1 << 16
#: bytes of the records in the log, by module and version: what must add up to the module's length
STORED_BYTES = {
    "POSIX": {1: 680, 2: 648, 3: 664, 4: 704},
    "MPI-IO": {1: 544, 2: 544, 3: 560},
    "STDIO": {1: 240, 2: 248},
    "H5F": {1: 40, 2: 56, 3: 80},
    "H5D": {1: 904, 2: 912},
    "PNETCDF_FILE": {1: 48, 2: 64, 3: 152},
    "PNETCDF_VAR": {1: 1120},
    "BG/Q": {1: 120, 2: 112},
    "DFS": {1: 584},
    "DAOS": {1: 696},
}
#: versions of the modules whose records vary in length
VARYING = {"LUSTRE": (1, 2), "HEATMAP": (1,), "DXT_POSIX": (1,), "DXT_MPIIO": (1, 2)}
#: between the ids and the counters of these stands the id of their file
_WITH_FILE_ID = ("H5D", "PNETCDF_VAR")
_SEGMENT_BYTES = library.SEGMENT_BYTES
_DXT = library.DXT_RECORD
_LUSTRE = struct.Struct("=Qqqq")
_COMPONENT_COUNTERS = 7
_COMPONENT_BYTES = 8 * _COMPONENT_COUNTERS + 16
_LUSTRE_BYTES = 48
_HEATMAP = struct.Struct("=QqdqQQ")
#: a module whose record tells of the machine and of no file: it has an id without a name
_NAMELESS = "BG/Q"
#: the rest of the module's kinds tell nothing of I/O, and the library keeps what it knows of one log for the next
_NO_IO = "The library reads this module of one log only; it tells nothing of I/O."


@dataclass(frozen=True, slots=True)
class Part:
    """A module of a log as its header has it; `raw_bytes` is its length when decompressed."""

    module: str
    version: int
    raw_bytes: int
    is_partial: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """What records are checked against: how many processes the run had, and the ids that have names, sorted."""

    process_count: int
    ids: npt.NDArray[np.uint64]


@dataclass(slots=True)
class _Tally:
    """What was read of a module so far."""

    part: Part
    run: _Run
    record_count: int = 0
    #: bytes that the records so far take in the log
    stored_bytes: int = 0
    is_passed_on: bool = False
    fault: str | None = None
    note: str | None = None
    #: the tracer's own totals, where its records are no counters
    counts: dict[str, int] = field(default_factory=dict)


class _FaultError(Exception):
    """A record that cannot be as it says; the text is the reason."""


def log(path: str, parts: str) -> Iterator[Arrays]:
    """Read a log; `parts` is JSON: its modules, as the fields of `Part`."""
    with library.opened(path) as opened:
        job = library.job(opened)
        yield _headed("job", **{field.name: getattr(job, field.name) for field in fields(job)})
        ids, names = library.names(opened)
        said = library.first_error(printed())
        if said:
            raise InputRefused(f"The library cannot read the log: {said}.", "Fetch the log anew.")
        yield _headed("names", {"ids": ids}, names=names)
        numbers = library.module_numbers(opened)
    run = _Run(job.process_count, np.unique(ids))
    for part in sorted((Part(*told) for told in json.loads(parts)), key=lambda part: part.module != "LUSTRE"):
        tally = _Tally(part, run)
        known = len(printed())
        yield from _module(path, numbers, tally)
        yield _ended(tally, printed()[known:])


def log_in_few(path: str, parts: str) -> Iterator[list[Arrays]]:
    """Read a log as `log` does, and yield small blocks together."""
    held: list[Arrays] = []
    held_bytes = 0
    for block in log(path, parts):
        held.append(block)
        held_bytes += sum(array.nbytes for array in block.values())
        if held_bytes >= _MOST_HELD_BYTES:
            yield held
            held, held_bytes = [], 0
    if held:
        yield held


def _headed(kind: str, arrays: Arrays | None = None, **told: Any) -> Arrays:
    head = json.dumps({"kind": kind, **told}).encode()
    return {"head": np.frombuffer(head, np.uint8), **(arrays or {})}


# ---- one module


def _module(path: str, numbers: dict[str, int], tally: _Tally) -> Iterator[Arrays]:
    part = tally.part
    versions = STORED_BYTES.get(part.module) or VARYING.get(part.module, ())
    if part.module not in numbers or part.version not in versions:
        return
    with library.opened(path) as opened:
        addresses = library.records(opened, numbers[part.module])
        try:
            for block in _reader(part.module)(tally, addresses):
                # Held back until the next one is there, so that a short module is passed on whole or not at all.
                yield block
                tally.is_passed_on = True
        except EOFError:
            tally.fault = "The library meets an error within it."
        except _FaultError as fault:
            tally.fault = str(fault)


def _ended(tally: _Tally, said: str) -> Arrays:
    outcome, reason = _outcome(tally, said)
    if outcome in ("unreadable", "unsupported") and tally.is_passed_on:
        raise InputRefused(f"{tally.part.module} is damaged: {reason}", "Fetch the log anew.")
    is_read = outcome in ("sound", "partial")
    return _headed(
        "module",
        module=tally.part.module,
        version=tally.part.version,
        is_partial=tally.part.is_partial,
        outcome=outcome,
        reason=reason,
        record_count=tally.record_count if is_read else None,
        counts=tally.counts if is_read else {},
    )


def _outcome(tally: _Tally, said: str) -> tuple[str, str | None]:
    part = tally.part
    versions = STORED_BYTES.get(part.module) or VARYING.get(part.module)
    if versions is None:
        return "unsupported", _NO_IO
    if part.version not in versions:
        return "unsupported", f"Its version is {part.version}; the library reads {_listed(list(versions))}."
    if error := library.first_error(said):
        return "unreadable", f"The library says: {error}."
    if tally.fault:
        return "unreadable", tally.fault
    if not tally.record_count:
        return "unreadable", f"The library finds no record in its {part.raw_bytes} bytes."
    if not _adds_up(tally):
        return "unreadable", f"Its records take {tally.stored_bytes} bytes, and it has {part.raw_bytes}."
    if part.is_partial:
        return "partial", "Darshan had no room for all of it."
    if tally.note:
        return "partial", tally.note
    return "sound", None


def _check_records(tally: _Tally, ids: npt.NDArray[np.uint64], ranks: npt.NDArray[np.int64]) -> None:
    """Raise _FaultError where records are of no rank of the run, or of no file that has a name."""
    lowest, highest = int(ranks.min()), int(ranks.max())
    if lowest < -1 or highest >= tally.run.process_count:
        rank = lowest if lowest < -1 else highest
        raise _FaultError(f"One of its records is of rank {rank}, and the run had {tally.run.process_count} processes.")
    if tally.part.module != _NAMELESS and not _are_among(ids, tally.run.ids):
        raise _FaultError("One of its records is of a file that the names do not have.")


def _are_among(ids: npt.NDArray[np.uint64], known: npt.NDArray[np.uint64]) -> bool:
    """Return whether all ids are among those that are known, which are sorted; `np.isin` takes longer for few."""
    if not len(known):
        return not len(ids)
    places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return bool((known[places] == ids).all())


def _listed(versions: list[int]) -> str:
    return f"{versions[0]} to {versions[-1]}" if len(versions) > 1 else f"{versions[0]}"


def _adds_up(tally: _Tally) -> bool:
    part, stored = tally.part, tally.stored_bytes
    if part.module == "POSIX" and part.version == 1:
        # The library leaves out records that hold counters of stdio too.
        left_out = (part.raw_bytes - stored) / STORED_BYTES["POSIX"][1]
        if left_out > 0:
            tally.note = f"The library leaves out {left_out:g} records that count stdio as well."
        return left_out >= 0 and left_out.is_integer()
    if part.module == "LUSTRE" and part.version == 2:
        # Components that were never used are cut off.
        return stored <= part.raw_bytes
    if part.module == "HEATMAP":
        # The library gives all heat maps of a log as many bins, if one has one too many or too few.
        return abs(stored - part.raw_bytes) <= 16 * tally.record_count
    return stored == part.raw_bytes


def _reader(module: str) -> Any:
    if module in STORED_BYTES:
        return _counters
    return {"LUSTRE": _stripes, "HEATMAP": _heatmaps}.get(module, _segments)


# ---- counters


def _counters(tally: _Tally, addresses: Iterator[int]) -> Iterator[Arrays]:
    module = tally.part.module
    _, integer_count, real_count = library.COUNTERS[module]
    first = 24 if module in _WITH_FILE_ID else 16
    size = first + 8 * (integer_count + real_count)
    stored_bytes = STORED_BYTES[module][tally.part.version]
    whole = np.dtype(
        {
            "names": ["id", "rank", "integers", "reals"],
            "formats": ["<u8", "<i8", ("<i8", integer_count), ("<f8", real_count)],
            "offsets": [0, 8, first, first + 8 * integer_count],
            "itemsize": size,
        }
    )
    pieces: list[bytes] = []
    for at in addresses:
        if len(pieces) * size >= BLOCK_BYTES:
            yield _counter_block(tally, pieces, whole)
            pieces = []
        pieces.append(ctypes.string_at(at, size))
        tally.record_count += 1
        tally.stored_bytes += stored_bytes
    if pieces and _adds_up(tally):
        yield _counter_block(tally, pieces, whole)


def _counter_block(tally: _Tally, pieces: list[bytes], whole: np.dtype[Any]) -> Arrays:
    module, rows = tally.part.module, np.frombuffer(b"".join(pieces), whole)
    _check_records(tally, rows["id"], rows["rank"])
    arrays = {"ids": rows["id"], "ranks": rows["rank"], "integers": rows["integers"], "reals": rows["reals"]}
    return _records_head(module) | arrays


@cache
def _records_head(module: str) -> Arrays:
    integers, reals = library.counter_names(module)
    return _headed("records", module=module, integer_names=integers, real_names=reals)


# ---- stripes


def _stripes(tally: _Tally, addresses: Iterator[int]) -> Iterator[Arrays]:
    ids: list[int] = []
    ranks: list[int] = []
    counts: list[int] = []
    components: list[bytes] = []
    osts: list[bytes] = []
    for at in addresses:
        record_id, rank, component_count, stripe_count = _LUSTRE.unpack(ctypes.string_at(at, _LUSTRE.size))
        # The library makes one component of what a record of the first version tells.
        if tally.part.version > 1 or component_count != 1:
            _bounded(tally.part, _COMPONENT_BYTES * component_count, component_count)
        _bounded(tally.part, 8 * stripe_count, stripe_count)
        # Not by the record's own pointers: where unused components were cut off, they point to where it was before.
        for index in range(component_count):
            components.append(ctypes.string_at(at + _LUSTRE_BYTES + index * _COMPONENT_BYTES, 8 * _COMPONENT_COUNTERS))
        osts.append(ctypes.string_at(at + _LUSTRE_BYTES + component_count * _COMPONENT_BYTES, 8 * stripe_count))
        of_components = [struct.unpack_from("=q", one, 8)[0] for one in components[len(components) - component_count :]]
        if min(of_components, default=0) < 0 or sum(of_components) != stripe_count:
            raise _FaultError("One of its records has more stripes in its parts than in all, or fewer.")
        ids.append(record_id)
        ranks.append(rank)
        counts.append(component_count)
        tally.record_count += 1
        fixed = 56 if tally.part.version == 1 else _LUSTRE.size + _COMPONENT_BYTES * component_count
        tally.stored_bytes += fixed + 8 * stripe_count
    if ids and _adds_up(tally):
        arrays: Arrays = {
            "ids": np.array(ids, np.uint64),
            "component_counts": np.array(counts, np.int64),
            "components": np.frombuffer(b"".join(components), np.int64).reshape(-1, _COMPONENT_COUNTERS),
            "osts": np.frombuffer(b"".join(osts), np.int64),
        }
        _check_records(tally, arrays["ids"], np.array(ranks, np.int64))
        yield _headed("stripes", arrays, module=tally.part.module)


def _bounded(part: Part, size: int, *counts: int) -> None:
    if min(counts) < 0 or size > part.raw_bytes:
        raise _FaultError("One of its records tells of more than the module has room for.")


# ---- heat maps


def _heatmaps(tally: _Tally, addresses: Iterator[int]) -> Iterator[Arrays]:
    fixed: list[tuple[int, int, float, int]] = []
    written: list[bytes] = []
    read: list[bytes] = []
    pending = 0
    for at in addresses:
        if pending >= BLOCK_BYTES:
            yield _heatmap_block(tally, fixed, written, read)
            fixed, written, read, pending = [], [], [], 0
        record_id, rank, width_s, bin_count, written_at, read_at = _HEATMAP.unpack(ctypes.string_at(at, _HEATMAP.size))
        _bounded(tally.part, 16 * (bin_count - 1), bin_count)
        fixed.append((record_id, rank, width_s, bin_count))
        written.append(ctypes.string_at(written_at, 8 * bin_count))
        read.append(ctypes.string_at(read_at, 8 * bin_count))
        pending += 16 * bin_count
        tally.record_count += 1
        tally.stored_bytes += _HEATMAP.size + 16 * bin_count
    if fixed and _adds_up(tally):
        yield _heatmap_block(tally, fixed, written, read)


def _heatmap_block(
    tally: _Tally, fixed: list[tuple[int, int, float, int]], written: list[bytes], read: list[bytes]
) -> Arrays:
    ids, ranks, widths_s, bin_counts = zip(*fixed, strict=True)
    arrays: Arrays = {
        "ids": np.array(ids, np.uint64),
        "ranks": np.array(ranks, np.int64),
        "widths_s": np.array(widths_s, np.float64),
        "bin_counts": np.array(bin_counts, np.int64),
        "written": np.frombuffer(b"".join(written), np.int64),
        "read": np.frombuffer(b"".join(read), np.int64),
    }
    _check_records(tally, arrays["ids"], arrays["ranks"])
    return _headed("heatmaps", arrays, module="HEATMAP")


# ---- segments


@dataclass(slots=True)
class _Segments:
    """Segments on their way: each row of `pieces` tells of some that follow each other in `content`."""

    content: npt.NDArray[np.int64]
    count: int = 0
    #: (record id, rank, host, write segments, read segments)
    pieces: list[tuple[int, int, int, int, int]] = field(default_factory=list)

    def room(self) -> int:
        return len(self.content) - self.count

    def take(self, at: int, count: int) -> None:
        ctypes.memmove(self.content.ctypes.data + self.count * _SEGMENT_BYTES, at, count * _SEGMENT_BYTES)
        self.count += count


def _segments(tally: _Tally, addresses: Iterator[int]) -> Iterator[Arrays]:
    room = min(BLOCK_SEGMENTS, tally.part.raw_bytes // _SEGMENT_BYTES + 1)
    hosts: dict[bytes, int] = {}
    pending = _Segments(np.empty((room, 4), np.int64))
    written_count = read_count = 0
    for at in addresses:
        record_id, rank, _, host, writes, reads = _DXT.unpack(ctypes.string_at(at, _DXT.size))
        _bounded(tally.part, _SEGMENT_BYTES * (writes + reads), writes, reads)
        code = hosts.setdefault(host.partition(b"\0")[0], len(hosts))
        first = at + _DXT.size
        while writes + reads:
            if not pending.room():
                yield _segment_block(tally, pending, hosts)
                pending = _Segments(np.empty((room, 4), np.int64))
            some_writes = min(writes, pending.room())
            some_reads = min(reads, pending.room() - some_writes)
            pending.take(first, some_writes + some_reads)
            pending.pieces.append((record_id, rank, code, some_writes, some_reads))
            first += _SEGMENT_BYTES * (some_writes + some_reads)
            writes, reads = writes - some_writes, reads - some_reads
            written_count, read_count = written_count + some_writes, read_count + some_reads
            tally.stored_bytes += _SEGMENT_BYTES * (some_writes + some_reads)
        tally.record_count += 1
        tally.stored_bytes += _DXT.size
    tally.counts = {"write_count": written_count, "read_count": read_count}
    if pending.count and _adds_up(tally):
        yield _segment_block(tally, pending, hosts)


def _segment_block(tally: _Tally, pending: _Segments, hosts: dict[bytes, int]) -> Arrays:
    pieces = np.array([piece[1:] for piece in pending.pieces], np.int64)
    arrays: Arrays = {
        "ids": np.array([piece[0] for piece in pending.pieces], np.uint64),
        "ranks": pieces[:, 0],
        "host_codes": pieces[:, 1],
        "write_counts": pieces[:, 2],
        "read_counts": pieces[:, 3],
        "segments": pending.content[: pending.count],
    }
    _check_records(tally, arrays["ids"], arrays["ranks"])
    return _headed("segments", arrays, module=tally.part.module, hosts=[library.text(host) for host in hosts])
