"""Small inputs that take excessive memory or time when read whole, by name; each function writes its file."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import struct
import tarfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import h5py
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

_MB = 1 << 20
Bomb = Callable[[Path], None]
_SACCT = "JobID|User|JobName|Partition|NNodes|Start|End|State\n"
_POLLS = "polled_at,controller,read_bytes_per_s,write_bytes_per_s\n"


def _packed(path: Path, opened: Callable[..., object], pieces: Iterable[bytes]) -> None:
    with opened(path, "wb") as file:  # type: ignore[attr-defined]
        for piece in pieces:
            file.write(piece)


def _of(piece: bytes, mb: int, before: bytes = b"", after: bytes = b"") -> Iterable[bytes]:
    """Yield `mb` megabytes of a repeated piece, between a prefix and a suffix."""
    yield before
    block = piece * (_MB // len(piece))
    for _ in range(mb):
        yield block
    yield after


def _gzip(piece: bytes, mb: int, before: bytes = b"", after: bytes = b"") -> Bomb:
    return lambda path: _packed(path, gzip.open, _of(piece, mb, before, after))


def _plain(piece: bytes, mb: int, before: bytes = b"", after: bytes = b"") -> Bomb:
    return lambda path: _packed(path, open, _of(piece, mb, before, after))


def _within_gzip(path: Path) -> None:
    inner = io.BytesIO()
    with gzip.open(inner, "wb") as file:
        for piece in _of(b"\0", 2000):
            file.write(piece)
    path.write_bytes(gzip.compress(inner.getvalue()))


def _keys(path: Path) -> None:
    with gzip.open(path, "wt") as file:
        file.write('{"jobs": [{')
        for number in range(0, 10_000_000, 1000):
            file.write(",".join(f'"k{number + each}": 1' for each in range(1000)) + ",")
        file.write('"x": 1}]}')


def _tar_of_nothing(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for number in range(200_000):
            archive.addfile(tarfile.TarInfo(f"trace/{number}.mt"))


def _tar_of_a_claim(path: Path) -> None:
    member = tarfile.TarInfo("recorder-trace/recorder.mt")
    member.size = 1 << 40
    path.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + b"\0" * 4096)


def _parquet_of_one_value(path: Path) -> None:
    schema = pa.schema([("polled_at", pa.timestamp("us", "UTC")), ("controller", pa.string()),
                        ("read_bytes_per_s", pa.float64()), ("write_bytes_per_s", pa.float64())])  # fmt: skip
    count = 1_000_000
    batch = pa.table([pa.array(np.full(count, 10**15), pa.timestamp("us", "UTC")), pa.array(["c"] * count),
                      pa.array(np.zeros(count)), pa.array(np.zeros(count))], schema=schema)  # fmt: skip
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for _ in range(30):
            writer.write_table(batch)


def _parquet_of_a_cell(path: Path) -> None:
    text = "x" * (400 * _MB)
    frame = pl.DataFrame(
        {"polled_at": [text], "controller": ["c"], "read_bytes_per_s": [1.0], "write_bytes_per_s": [1.0]}
    )
    frame.write_parquet(path, compression="zstd")


def _hdf5_of_claims(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name in ("OSTReadGroup/OSTBulkReadDataSet", "OSTWriteGroup/OSTBulkWriteDataSet"):
            file.create_dataset(name, shape=(1_000_000, 1_000_000), dtype="f8", chunks=(1000, 1000))
        file.create_dataset("FSStepsGroup/FSStepsDataSet", shape=(1 << 40,), dtype="i4", chunks=(1000,))


def _sqlite_of_views(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            create view OST_DATA as with recursive n(i) as (select 1 union all select i + 1 from n)
                select i as OST_ID, i as TS_ID, i as READ_BYTES, i as WRITE_BYTES from n;
            create view TIMESTAMP_INFO as select * from OST_DATA;
            """
        )


def _sqlite_of_a_cell(path: Path) -> None:
    from tests.warehouse.sources.lmt_tables import TABLES

    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        connection.execute("insert into OST_INFO values (1, 7, zeroblob(900000000), 'h')")
        connection.execute("insert into OSS_INFO values (7, 1, 'h')")
        connection.execute("insert into FILESYSTEM_INFO values (1, 'scratch')")
        connection.execute("insert into TIMESTAMP_INFO values (1, '2026-01-01 00:00:00')")
        connection.execute("insert into OST_DATA values (1, 1, 5, 5, 0)")
        connection.commit()


def _tmio(document: object) -> Bomb:
    return lambda path: path.write_bytes(json.dumps(document).encode() + b"\n") and None


def _flush(key: str) -> bytes:
    return b'{"write_sync": {"bandwidth": {"' + key.encode() + b'": ['


def _columns(path: Path) -> None:
    path.write_text("time_s," + ",".join(f"c{number}" for number in range(2_000_000)) + "\n")


def _layers(path: Path) -> None:
    head = "event_kind,layer,node,rank,request_id,start_s,end_s,event_bytes\n"
    with path.open("w") as file:
        file.write(head)
        for number in range(1_000_000):
            file.write(f"request,layer{number},n{number},0,{number},0,1,5\n")


#: inputs that failed in the past come first
BOMBS: dict[str, tuple[Bomb, *tuple[str, ...]]] = {
    "a line of 2 GB, gzip": (_gzip(b"a", 2000), "--format", "sacct"),
    "sacct --json with a name of 2 GB, gzip": (
        _gzip(b"a", 2000, b'{"jobs": [{"job_id": 1, "name": "', b'"}]}'),
        "--format",
        "sacct-json",
    ),
    "a line of 100 MB": (_plain(b"a|", 100, _SACCT.encode()),),
    "zeros, bzip2": ((lambda path: _packed(path, bz2.open, _of(b"\0", 2000))), "--format", "swf"),
    "empty lines, xz": ((lambda path: _packed(path, lzma.open, _of(b"\n", 1000, _SACCT.encode()))),),
    "a line of 4 GB, zstd": (
        (lambda path: _packed(path, zstandard.open, _of(b"a", 4000, _SACCT.encode()))),
        "--format",
        "pbs",
    ),
    "gzip within gzip": (_within_gzip, "--format", "sacct"),
    "JSON, 100 million lists deep, gzip": (_gzip(b"[", 100, b'{"jobs": '), "--format", "sacct-json"),
    "JSON, a record of ten million names, gzip": (_keys, "--format", "sacct-json"),
    "JSON, a number of 100 million digits, gzip": (_gzip(b"9", 100, b'{"jobs": [', b"]}"), "--format", "sacct-json"),
    "JSON, escapes, gzip": (
        _gzip(b"\\u0000\\u0001\\u0002\\uD800", 200, b'{"jobs": [{"name": "', b'"}]}'),
        "--format",
        "sacct-json",
    ),
    "JSON in UTF-32, gzip": (
        _gzip("[".encode("utf-32-le"), 400, '{"jobs": ['.encode("utf-32-le")),
        "--format",
        "sacct-json",
    ),
    "JSON, empty records, gzip": (_gzip(b"{},", 300, b'{"jobs": [', b"{}]}"), "--format", "sacct-json"),
    "a header of two million columns": (_columns, "--format", "series"),
    "polls, one quote that never ends": (_plain(b"a,b\n", 200, _POLLS.encode() + b'"'),),
    "polls, all refused, gzip": (_gzip(b"x,y,z,w\n", 400, _POLLS.encode()),),
    "jobs, all refused, gzip": (_gzip(b"a|b|c|d|e|f|g|h\n", 400, _SACCT.encode()),),
    "a tar of 200,000 empty members": (_tar_of_nothing, "--format", "recorder"),
    "a tar that claims a terabyte": (_tar_of_a_claim,),
    "Parquet, 30 million times one poll": (_parquet_of_one_value,),
    "Parquet, a cell of 400 MB": (_parquet_of_a_cell,),
    "HDF5 that claims a million targets": (_hdf5_of_claims,),
    "SQLite, views without end": (_sqlite_of_views,),
    "SQLite, a name of 900 MB": (_sqlite_of_a_cell,),
    "TMIO, a flush of 400 MB, gzip": (_gzip(b"1.0,", 400, _flush("b_rank_avr")), "--format", "tmio"),
    "TMIO in MessagePack that claims 4 billion items": (
        (lambda path: path.write_bytes(b"\xdc\x00\x03" + struct.pack(">BI", 0xDD, 0xFFFFFFFF) * 3) and None),
        "--format",
        "tmio",
    ),
    "TMIO in MessagePack, nested": ((lambda path: path.write_bytes(b"\x91" * (50 * _MB)) and None), "--format", "tmio"),
    "request events of a million layers": (_layers, "--format", "request-events"),
    "a log of comments, gzip": (_gzip(b"; nothing\n", 400, b"; UnixStartTime: 1\n"), "--format", "swf"),
}
