"""Data as scripts: unpacking restores the data, and equal data give equal bytes."""

from __future__ import annotations

import base64
import gzip
import json
import re
from datetime import UTC, datetime

import polars as pl

from iosig.reports.site.packing import Content, columns, file_hash, pack_document


def unpacked(content: Content) -> object:
    """Return the data that a page reads from a file."""
    found = re.fullmatch(r'iosigData\("([^"]+)","([A-Za-z0-9+/=]+)"\);\n', content.data.decode())
    assert found
    assert content.path == f"data/{found[1]}.js"
    return json.loads(gzip.decompress(base64.b64decode(found[2])))


def test_packing_round_trip_is_exact_and_deterministic() -> None:
    document = {"a": [1, None, "</script><img src=x onerror=alert(1)>"]}
    assert unpacked(pack_document("one", document)) == document
    assert pack_document("one", document) == pack_document("one", document)


def test_frames_are_columns_with_seconds_and_five_digits() -> None:
    frame = pl.DataFrame({"at": [datetime(1970, 1, 1, 0, 1, tzinfo=UTC), None], "x": [1.23456789, None]})
    assert columns(frame) == {"at": [60.0, None], "x": [1.2346, None]}


def test_hashes_are_fnv_1a() -> None:
    # Test values of Fowler, Noll and Vo.
    assert file_hash("") == "cbf29ce484222325"
    assert file_hash("a") == "af63dc4c8601ec8c"
    assert file_hash("foobar") == "85944171f73967e8"
