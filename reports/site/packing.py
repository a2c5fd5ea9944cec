"""Encode numbers and text as files that a page can load without a server: base64 gzip in a classic script.

Browsers do not let a page opened from a file fetch data, but they do load scripts next to it. The page decompresses
them with `DecompressionStream`.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from typing import Any

import polars as pl

#: compression level; level 6 would take twice the time for 5 % smaller files
_LEVEL = 4


@dataclass(frozen=True, slots=True)
class Content:
    """File of the report with its bytes, and its path relative to the release's folder."""

    path: str
    data: bytes


def pack_document(name: str, document: Any) -> Content:
    """Encode a document as a script that a page loads by name; equal documents give equal bytes."""
    text = document if isinstance(document, str) else json.dumps(document, allow_nan=False, separators=(",", ":"))
    body = base64.b64encode(gzip.compress(text.encode(), _LEVEL, mtime=0)).decode()
    return Content(f"data/{name}.js", f"iosigData({json.dumps(name)},{json.dumps(body)});\n".encode())


def unpack_document(data: bytes) -> Any:
    """Decode the document of a file from `pack_document`."""
    _, _, call = data.decode().partition("(")
    _, body = json.loads(f"[{call.rstrip().removesuffix(');')}]")
    return json.loads(gzip.decompress(base64.b64decode(body)))


def columns(frame: pl.DataFrame) -> dict[str, list[Any]]:
    """Return a frame as one list per column, the form that pages read."""
    return lean(frame).to_dict(as_series=False)


def lean(frame: pl.DataFrame) -> pl.DataFrame:
    """Prepare a frame for a page: timestamps as seconds since 1970, days as text, reals with five digits."""
    instants = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.Datetime)]
    days = [name for name, dtype in frame.schema.items() if dtype == pl.Date]
    reals = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    return frame.with_columns(
        *(pl.col(name).dt.epoch("us") / 1e6 for name in instants),
        pl.col(days).dt.strftime("%Y-%m-%d"),
        pl.col(reals).round_sig_figs(5),
    )


def file_hash(name: str) -> str:
    """Return the file name for data about a subject: 64-bit FNV-1a of its UTF-8 name.

    The page computes the same hash. Subjects with equal hashes share a file, keyed by name.
    """
    digest = 0xCBF29CE484222325
    for byte in name.encode("utf-8", "surrogatepass"):
        digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{digest:016x}"
