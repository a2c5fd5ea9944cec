"""Read a Darshan log into arrays with Darshan's own library, in a child process, see `child`.

`read_log` yields blocks, each with a `head` (bytes of JSON: `kind`, `module` and other text), in this order:

- `job`: the job record, in the head;
- `names`: `ids`; the names, in the head;
- for every module, those with stripes first: blocks of its records (`records`, `stripes`, `heatmaps`, `segments`),
  then `module`: its result (`outcome`, `reason`, `record_count`).

Large modules yield blocks before they are read completely; an error found afterwards refuses the whole log. A module
with an error before its first block yields no blocks.
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
from iosig.warehouse.sources.files.child import Arrays, read_printed_text

#: maximum number of segments per block
BLOCK_SEGMENTS = 1 << 18
#: maximum size of the records in a block [B]
BLOCK_BYTES = 1 << 24
#: maximum total size of small blocks that are sent together [B]
_MAX_PENDING_BYTES = 1 << 16
#: module -> record size in the log by version [B]; the records must sum to the module's length
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
#: versions of the modules with records of variable length
VARYING = {"LUSTRE": (1, 2), "HEATMAP": (1,), "DXT_POSIX": (1,), "DXT_MPIIO": (1, 2)}
#: modules with the id of the file between record ids and counters
_WITH_FILE_ID = ("H5D", "PNETCDF_VAR")
_SEGMENT_BYTES = library.SEGMENT_BYTES
_DXT = library.DXT_RECORD
_LUSTRE = struct.Struct("=Qqqq")
_COMPONENT_COUNTERS = 7
_COMPONENT_BYTES = 8 * _COMPONENT_COUNTERS + 16
_LUSTRE_BYTES = 48
_HEATMAP = struct.Struct("=QqdqQQ")
#: module with a machine record instead of file records, so its id has no name
_NAMELESS = "BG/Q"
#: reason for skipping modules without I/O: the library keeps their state from one log to the next
_NO_IO = "The module has no I/O data, and the library can read it for one log only."


@dataclass(frozen=True, slots=True)
class Part:
    """A module of a log according to its header; `raw_bytes` is its decompressed length."""

    module: str
    version: int
    raw_bytes: int
    is_partial: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """Reference values for checking records: number of processes, and sorted ids that have names."""

    process_count: int
    ids: npt.NDArray[np.uint64]


@dataclass(slots=True)
class _Tally:
    """Progress of reading a module."""

    part: Part
    run: _Run
    record_count: int = 0
    #: total size of the records read so far, as stored in the log [B]
    stored_bytes: int = 0
    has_yielded: bool = False
    fault: str | None = None
    note: str | None = None
    #: totals of modules with records that are not counters
    counts: dict[str, int] = field(default_factory=dict)


class _FaultError(Exception):
    """Raised for an implausible record; the message is the reason."""


def read_log(path: str, parts: str) -> Iterator[Arrays]:
    """Read a log; `parts` is a JSON list of its modules, with the fields of `Part`."""
    with library.open_log(path) as opened:
        job = library.read_job(opened)
        yield _build_block("job", **{field.name: getattr(job, field.name) for field in fields(job)})
        ids, names = library.read_names(opened)
        error = library.find_first_error(read_printed_text())
        if error:
            raise InputRefused(f"The library cannot read the log: {error}.", "Fetch the log again.")
        yield _build_block("names", {"ids": ids}, names=names)
        numbers = library.module_numbers(opened)
    run = _Run(job.process_count, np.unique(ids))
    for part in sorted((Part(*values) for values in json.loads(parts)), key=lambda part: part.module != "LUSTRE"):
        tally = _Tally(part, run)
        printed_chars = len(read_printed_text())
        yield from _module(path, numbers, tally)
        yield _build_module_block(tally, read_printed_text()[printed_chars:])


def read_log_batched(path: str, parts: str) -> Iterator[list[Arrays]]:
    """Read a log like `read_log`, and yield small blocks in lists."""
    pending: list[Arrays] = []
    pending_bytes = 0
    for block in read_log(path, parts):
        pending.append(block)
        pending_bytes += sum(array.nbytes for array in block.values())
        if pending_bytes >= _MAX_PENDING_BYTES:
            yield pending
            pending, pending_bytes = [], 0
    if pending:
        yield pending


def _build_block(kind: str, arrays: Arrays | None = None, **fields_: Any) -> Arrays:
    head = json.dumps({"kind": kind, **fields_}).encode()
    return {"head": np.frombuffer(head, np.uint8), **(arrays or {})}


# ---- one module


def _module(path: str, numbers: dict[str, int], tally: _Tally) -> Iterator[Arrays]:
    part = tally.part
    versions = STORED_BYTES.get(part.module) or VARYING.get(part.module, ())
    if part.module not in numbers or part.version not in versions:
        return
    with library.open_log(path) as opened:
        addresses = library.iterate_records(opened, numbers[part.module])
        try:
            for block in _reader(part.module)(tally, addresses):
                # The flag is set only when the next block is requested, so that a short module is sent whole or not at
                # all.
                yield block
                tally.has_yielded = True
        except EOFError:
            tally.fault = "The library reports an error within it."
        except _FaultError as fault:
            tally.fault = str(fault)


def _build_module_block(tally: _Tally, output: str) -> Arrays:
    outcome, reason = _outcome(tally, output)
    if outcome in ("unreadable", "unsupported") and tally.has_yielded:
        raise InputRefused(f"{tally.part.module} is damaged: {reason}", "Fetch the log again.")
    is_read = outcome in ("sound", "partial")
    return _build_block(
        "module",
        module=tally.part.module,
        version=tally.part.version,
        is_partial=tally.part.is_partial,
        outcome=outcome,
        reason=reason,
        record_count=tally.record_count if is_read else None,
        counts=tally.counts if is_read else {},
    )


def _outcome(tally: _Tally, output: str) -> tuple[str, str | None]:
    part = tally.part
    versions = STORED_BYTES.get(part.module) or VARYING.get(part.module)
    if versions is None:
        return "unsupported", _NO_IO
    if part.version not in versions:
        return "unsupported", f"Its version is {part.version}; the library reads {_format_versions(list(versions))}."
    if error := library.find_first_error(output):
        return "unreadable", f"Error of the library: {error}."
    if tally.fault:
        return "unreadable", tally.fault
    if not tally.record_count:
        return "unreadable", f"The library found no record in its {part.raw_bytes} bytes."
    if not _adds_up(tally):
        return "unreadable", f"Its records take {tally.stored_bytes} bytes, but it has {part.raw_bytes}."
    if part.is_partial:
        return "partial", "Darshan ran out of memory for it."
    if tally.note:
        return "partial", tally.note
    return "sound", None


def _check_records(tally: _Tally, ids: npt.NDArray[np.uint64], ranks: npt.NDArray[np.int64]) -> None:
    """Raise _FaultError for records with unknown ranks, or of files without a name."""
    lowest, highest = int(ranks.min()), int(ranks.max())
    if lowest < -1 or highest >= tally.run.process_count:
        rank = lowest if lowest < -1 else highest
        raise _FaultError(f"One of its records is of rank {rank}, but the run had {tally.run.process_count} processes.")
    if tally.part.module != _NAMELESS and not _contains_all(ids, tally.run.ids):
        raise _FaultError("One of its records is of a file without a name.")


def _contains_all(ids: npt.NDArray[np.uint64], sorted_ids: npt.NDArray[np.uint64]) -> bool:
    """Test whether all ids are in `sorted_ids`; for few ids, this is faster than `np.isin`."""
    if not len(sorted_ids):
        return not len(ids)
    places = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return bool((sorted_ids[places] == ids).all())


def _format_versions(versions: list[int]) -> str:
    return f"{versions[0]} to {versions[-1]}" if len(versions) > 1 else f"{versions[0]}"


def _adds_up(tally: _Tally) -> bool:
    part, stored = tally.part, tally.stored_bytes
    if part.module == "POSIX" and part.version == 1:
        # The library skips records that include counters of stdio.
        skipped_count = (part.raw_bytes - stored) / STORED_BYTES["POSIX"][1]
        if skipped_count > 0:
            tally.note = f"The library skips {skipped_count:g} records that count stdio as well."
        return skipped_count >= 0 and skipped_count.is_integer()
    if part.module == "LUSTRE" and part.version == 2:
        # The library drops unused components.
        return stored <= part.raw_bytes
    if part.module == "HEATMAP":
        # The library gives all heat maps in a log the same number of bins, although they may differ by one.
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
    dtype = np.dtype(
        {
            "names": ["id", "rank", "integers", "reals"],
            "formats": ["<u8", "<i8", ("<i8", integer_count), ("<f8", real_count)],
            "offsets": [0, 8, first, first + 8 * integer_count],
            "itemsize": size,
        }
    )
    pieces: list[bytes] = []
    for address in addresses:
        if len(pieces) * size >= BLOCK_BYTES:
            yield _counter_block(tally, pieces, dtype)
            pieces = []
        pieces.append(ctypes.string_at(address, size))
        tally.record_count += 1
        tally.stored_bytes += stored_bytes
    if pieces and _adds_up(tally):
        yield _counter_block(tally, pieces, dtype)


def _counter_block(tally: _Tally, pieces: list[bytes], dtype: np.dtype[Any]) -> Arrays:
    module, rows = tally.part.module, np.frombuffer(b"".join(pieces), dtype)
    _check_records(tally, rows["id"], rows["rank"])
    arrays = {"ids": rows["id"], "ranks": rows["rank"], "integers": rows["integers"], "reals": rows["reals"]}
    return _records_head(module) | arrays


@cache
def _records_head(module: str) -> Arrays:
    integers, reals = library.counter_names(module)
    return _build_block("records", module=module, integer_names=integers, real_names=reals)


# ---- stripes


def _stripes(tally: _Tally, addresses: Iterator[int]) -> Iterator[Arrays]:
    ids: list[int] = []
    ranks: list[int] = []
    counts: list[int] = []
    components: list[bytes] = []
    osts: list[bytes] = []
    for address in addresses:
        record_id, rank, component_count, stripe_count = _LUSTRE.unpack(ctypes.string_at(address, _LUSTRE.size))
        # The library converts a record of the first version to one component.
        if tally.part.version > 1 or component_count != 1:
            _require_plausible_size(tally.part, _COMPONENT_BYTES * component_count, component_count)
        _require_plausible_size(tally.part, 8 * stripe_count, stripe_count)
        # The record's own pointers are invalid if unused components were dropped.
        for index in range(component_count):
            components.append(
                ctypes.string_at(address + _LUSTRE_BYTES + index * _COMPONENT_BYTES, 8 * _COMPONENT_COUNTERS)
            )
        osts.append(ctypes.string_at(address + _LUSTRE_BYTES + component_count * _COMPONENT_BYTES, 8 * stripe_count))
        stripe_counts = [
            struct.unpack_from("=q", component, 8)[0] for component in components[len(components) - component_count :]
        ]
        if min(stripe_counts, default=0) < 0 or sum(stripe_counts) != stripe_count:
            raise _FaultError("The stripes of a record's components do not sum to its total.")
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
        yield _build_block("stripes", arrays, module=tally.part.module)


def _require_plausible_size(part: Part, size: int, *counts: int) -> None:
    if min(counts) < 0 or size > part.raw_bytes:
        raise _FaultError("One of its records is larger than the module.")


# ---- heat maps


def _heatmaps(tally: _Tally, addresses: Iterator[int]) -> Iterator[Arrays]:
    fixed: list[tuple[int, int, float, int]] = []
    written: list[bytes] = []
    read: list[bytes] = []
    pending = 0
    for address in addresses:
        if pending >= BLOCK_BYTES:
            yield _heatmap_block(tally, fixed, written, read)
            fixed, written, read, pending = [], [], [], 0
        record_id, rank, width_s, bin_count, written_at, read_at = _HEATMAP.unpack(
            ctypes.string_at(address, _HEATMAP.size)
        )
        _require_plausible_size(tally.part, 16 * (bin_count - 1), bin_count)
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
    return _build_block("heatmaps", arrays, module="HEATMAP")


# ---- segments


@dataclass(slots=True)
class _Segments:
    """Buffer of segments, in which each row of `pieces` describes consecutive segments in `content`."""

    content: npt.NDArray[np.int64]
    count: int = 0
    #: (record id, rank, host, write segments, read segments)
    pieces: list[tuple[int, int, int, int, int]] = field(default_factory=list)

    def free_count(self) -> int:
        return len(self.content) - self.count

    def append(self, address: int, count: int) -> None:
        ctypes.memmove(self.content.ctypes.data + self.count * _SEGMENT_BYTES, address, count * _SEGMENT_BYTES)
        self.count += count


def _segments(tally: _Tally, addresses: Iterator[int]) -> Iterator[Arrays]:
    free_count = min(BLOCK_SEGMENTS, tally.part.raw_bytes // _SEGMENT_BYTES + 1)
    hosts: dict[bytes, int] = {}
    pending = _Segments(np.empty((free_count, 4), np.int64))
    written_count = read_count = 0
    for address in addresses:
        record_id, rank, _, host, writes, reads = _DXT.unpack(ctypes.string_at(address, _DXT.size))
        _require_plausible_size(tally.part, _SEGMENT_BYTES * (writes + reads), writes, reads)
        code = hosts.setdefault(host.partition(b"\0")[0], len(hosts))
        first = address + _DXT.size
        while writes + reads:
            if not pending.free_count():
                yield _segment_block(tally, pending, hosts)
                pending = _Segments(np.empty((free_count, 4), np.int64))
            some_writes = min(writes, pending.free_count())
            some_reads = min(reads, pending.free_count() - some_writes)
            pending.append(first, some_writes + some_reads)
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
    return _build_block("segments", arrays, module=tally.part.module, hosts=[library.text(host) for host in hosts])
