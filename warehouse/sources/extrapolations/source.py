"""Read records of `iosig extrapolate`, as JSON or within the extrapolated trace's file.

A record becomes a row, with or without a trace. The trace itself does not land.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import PARQUET_MAGIC, Batch, Head, Reading, Source

if TYPE_CHECKING:
    from iosig.warehouse.sources.extrapolations.record import Record

#: metadata key of the record in a compressed trace's file
METADATA_KEY = "extrapolation"
_JSON = re.compile(rb'"format"\s*:\s*"iosig-extrapolation"')
_BLANK = b" \t\r\n"


def sniff(head: Head) -> bool:
    """Recognize a record in JSON, or a file of a compressed trace."""
    if head.start.startswith(PARQUET_MAGIC):
        return head.path is not None and _has_compressed_trace(head.path)
    return head.start.lstrip(_BLANK).startswith(b"{") and _JSON.search(head.start) is not None


def _has_compressed_trace(path: Path) -> bool:
    from iosig.warehouse.sources.extrapolations import compressed_traces
    from iosig.warehouse.sources.files.opening import plain_file

    try:
        with plain_file(path) as plain:
            return compressed_traces.is_compressed_trace(plain)
    except InputRefused:
        return False


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read one record; raise InputRefused if it is damaged, or for a compressed trace that was not extrapolated."""
    from iosig.warehouse.sources.extrapolations import record as extrapolation_json

    yield batch(extrapolation_json.parse(_content(path)))


def batch(record: Record) -> Batch:
    """Convert a record to a batch of `extrapolation_records`."""
    import polars as pl

    from iosig.warehouse.contracts import frames
    from iosig.warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS

    table = EXTRAPOLATION_RECORDS
    return Batch(table, pl.DataFrame([record.row()], schema=frames.schema(table), orient="row"))


def _content(path: Path) -> bytes:
    """Read the record's bytes, up to the maximum size of a record."""
    from iosig.warehouse.sources.extrapolations.record import MAX_BYTES
    from iosig.warehouse.sources.files.opening import open_decompressed, refusing_damage

    with refusing_damage("The file cannot be read", "Fetch or decompress it again."), open_decompressed(path) as file:
        content = file.read(len(PARQUET_MAGIC))
        if content != PARQUET_MAGIC:
            return content + file.read(MAX_BYTES)
    return _read_trace_record(path)


def _read_trace_record(path: Path) -> bytes:
    from iosig.warehouse.sources.extrapolations import compressed_traces
    from iosig.warehouse.sources.files.opening import plain_file

    with plain_file(path) as plain:
        text = compressed_traces.read(plain)[1].get(METADATA_KEY)
    if text is None:
        raise InputRefused(
            "This trace was compressed, not extrapolated: it has no record of an extrapolation.",
            "Land the trace that it was made from.",
        )
    return text.encode("utf-8", "surrogatepass")


SOURCE = Source(
    name="extrapolations",
    doc="Record of an extrapolation, as `iosig extrapolate` makes it: the trace's own file, or JSON.",
    kind="extrapolations",
    sniff=sniff,
    read=read,
    precedence=10,
)
