"""Write the Darshan log of a simulated run, as Darshan's runtime library would at the end of the run.

Format 3.21 (darshan-util's `darshan-log-format.h`): a header, the job record, the names and the records of the POSIX
module, each compressed by zlib.
"""

from __future__ import annotations

import struct
import zlib
from datetime import datetime
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from iosig.transforms.synthetic.site import Site
from iosig.warehouse.sources.darshan.library import counter_names

_HEADER = struct.Struct("<8sqB3sI34Q16I")
_MAGIC, _SLOTS, _POSIX, _POSIX_VERSION = 6567223, 16, 1, 4
#: the runtime library that writes this format
_METADATA = b"lib_ver=3.2.1\n"
_METADATA_BYTES = 1024
_MOUNTS = b"lustre\t/scratch"
_UID = 4711
#: request size of each process in a shared file, as in IOR's hard mode; few requests begin at a block boundary
REQUEST_BYTES = 47_008
_BLOCK_BYTES = 1 << 20


def write_trace(site: Site, job_id: str, into: Path) -> Path:
    """Write the Darshan log of a simulated run, with one shared file for each write burst. Returns its path."""
    job = site.jobs.row(by_predicate=pl.col("job_id") == job_id, named=True)
    write_bursts = site.bursts.filter(job_id=job_id, direction="write").sort("started_at")
    paths = [f"/scratch/{job['user']}/{job['job_name']}/checkpoint.{number:04d}" for number in write_bursts["burst"]]
    ids = [zlib.crc32(path.encode()) + (1 << 32) for path in paths]
    records = b"".join(
        _record(number, job, burst) for number, burst in zip(ids, write_bursts.iter_rows(named=True), strict=True)
    )
    names = b"".join(struct.pack("<Q", number) + path.encode() + b"\0" for number, path in zip(ids, paths, strict=True))
    into.mkdir(parents=True, exist_ok=True)
    started: datetime = job["started_at"]
    path = into / f"{job['user']}_{job['job_name']}_id{job_id}_{started.month}-{started.day}-0-1_1.darshan"
    path.write_bytes(_log(_job_record(job), names, records))
    return path


def _log(job: bytes, names: bytes, records: bytes) -> bytes:
    parts = [zlib.compress(region) for region in (job, names, records)]
    offsets = _HEADER.size + np.cumsum([0, *(len(part) for part in parts)])
    places = [0] * (2 + 2 * _SLOTS)
    places[0:2] = int(offsets[1]), len(parts[1])
    places[2 + 2 * _POSIX : 4 + 2 * _POSIX] = int(offsets[2]), len(parts[2])
    versions = [0] * _SLOTS
    versions[_POSIX] = _POSIX_VERSION
    return _HEADER.pack(b"3.21", _MAGIC, 0, b"", 0, *places, *versions) + b"".join(parts)


def _job_record(job: dict[str, Any]) -> bytes:
    started, ended = (int(job[edge].timestamp()) for edge in ("started_at", "ended_at"))
    numbers = struct.pack("<5q", _UID, started, ended, job["task_count"], int(job["job_id"]))
    command = f"/apps/bin/{job['job_name']} -a POSIX -t {REQUEST_BYTES}\n".encode()
    return numbers + _METADATA.ljust(_METADATA_BYTES, b"\0") + command + _MOUNTS


def _record(number: int, job: dict[str, Any], burst: dict[str, Any]) -> bytes:
    """Return the record of a file that all processes share (rank -1): counters, and times since the start."""
    began, ceased = ((burst[f"{edge}_at"] - job["started_at"]).total_seconds() for edge in ("started", "ended"))
    process_count = job["task_count"]
    written_bytes = int(burst["volume_bytes"])
    requests = -(-written_bytes // REQUEST_BYTES)
    counters = {
        "OPENS": process_count,
        "WRITES": requests,
        "SEEKS": requests,
        "BYTES_WRITTEN": written_bytes,
        "MAX_BYTE_WRITTEN": written_bytes - 1,
        "SEQ_WRITES": requests - process_count,
        "FILE_NOT_ALIGNED": requests - requests * gcd(REQUEST_BYTES, _BLOCK_BYTES) // _BLOCK_BYTES,
        "FILE_ALIGNMENT": _BLOCK_BYTES,
        "MEM_ALIGNMENT": 8,
        "SIZE_WRITE_10K_100K": requests,
        "ACCESS1_ACCESS": REQUEST_BYTES,
        "ACCESS1_COUNT": requests,
        "SLOWEST_RANK": process_count - 1,
        "FASTEST_RANK_BYTES": written_bytes // process_count,
        "SLOWEST_RANK_BYTES": written_bytes // process_count,
    }
    duration_s = ceased - began
    times = {
        "OPEN_START_TIMESTAMP": began,
        "OPEN_END_TIMESTAMP": began,
        "WRITE_START_TIMESTAMP": began,
        "WRITE_END_TIMESTAMP": ceased,
        "CLOSE_START_TIMESTAMP": ceased,
        "CLOSE_END_TIMESTAMP": ceased,
        "WRITE_TIME": duration_s * process_count,
        "META_TIME": 0.01 * process_count,
        "MAX_WRITE_TIME": min(1.0, duration_s),
        "FASTEST_RANK_TIME": duration_s,
        "SLOWEST_RANK_TIME": duration_s,
    }
    integers, reals = counter_names("POSIX")
    return (
        struct.pack("<Qq", number, -1)
        + struct.pack(f"<{len(integers)}q", *(counters.get(name.removeprefix("POSIX_"), 0) for name in integers))
        + struct.pack(f"<{len(reals)}d", *(times.get(name.removeprefix("POSIX_F_"), 0.0) for name in reals))
    )
