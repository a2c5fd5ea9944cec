"""Test the bytes that each function of DFTracer's events moved, and the effect of each call on its file."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from iosig.warehouse.sources.dftracer import calls
from iosig.warehouse.sources.dftracer.lines import CELLS
from iosig.warehouse.sources.rows.delimited import LINE
from tests.dftracer_traces import EPOCH_US

POSIX, STDIO = "POSIX", "STDIO"


def row(name: str, cat: str = POSIX, **told: Any) -> dict[str, Any]:
    own = {"id": "1", "name": name, "cat": cat, "pid": "1", "tid": "1", "ts": str(EPOCH_US), "dur": "1", "ph": "X"}
    return own | {name: str(value) for name, value in told.items()} | {LINE: 1}


def typed(*rows: dict[str, Any]) -> pl.DataFrame:
    found = calls.parse_cells(pl.DataFrame(list(rows), schema=CELLS))
    assert found.refused.is_empty()
    return found.rows


@pytest.mark.parametrize(
    ("name", "cat", "told", "moved"),
    [
        ("write", POSIX, {"ret": 5, "count": 9}, 5),
        ("readv", POSIX, {"ret": -1, "count": 9}, 0),
        ("pwrite64", POSIX, {}, None),
        ("fread", STDIO, {"ret": 3, "size": 8, "count": 4}, 24),
        ("fread", STDIO, {"ret": 1 << 40, "size": 1 << 40}, None),
        ("fgets", STDIO, {"read_chars": 7}, 7),
        ("fgets", STDIO, {}, 0),
        ("fputs", STDIO, {"ret": 1, "written_chars": 7}, 7),
        ("fputs", STDIO, {"ret": -1, "written_chars": 7}, 0),
        ("fgetc", STDIO, {"ret": 65}, 1),
        ("fgetc", STDIO, {"ret": -1}, 0),
        ("putw", STDIO, {"ret": 0}, 4),
        ("sendfile", POSIX, {"ret": 12, "count": 20}, 12),
        ("read", "reader", {"size": 12}, 12),
    ],
)
def test_moved_bytes_follow_function_and_arguments(
    name: str, cat: str, told: dict[str, int], moved: int | None
) -> None:
    rows = typed(row(name, cat, **told)).with_columns(host=pl.lit("node1"))
    assert rows["operation"].item() in ("read", "write")
    assert rows.select(calls.request_bytes()).item() == moved


@pytest.mark.parametrize(
    ("name", "cat", "told", "reason"),
    [
        ("write", POSIX, {"count": 9}, "but not the bytes moved"),
        ("read", POSIX, {"file_hash": 9}, "but not the bytes moved"),
        ("fwrite", STDIO, {"ret": 3, "count": 4}, "but not the bytes moved"),
        ("getc", STDIO, {"host": "node1"}, "but not the bytes moved"),
        ("close", POSIX, {"ret": "1.5"}, "not a number"),
    ],
)
def test_call_without_return_value_is_refused(name: str, cat: str, told: dict[str, Any], reason: str) -> None:
    found = calls.parse_cells(pl.DataFrame([row(name, cat, **told)], schema=CELLS))
    assert found.rows.is_empty()
    assert reason in found.refused["reason"].item()


def test_bytes_are_unknown_without_metadata() -> None:
    rows = typed(row("fgets", STDIO)).with_columns(host_key=pl.lit(None, pl.String))
    assert rows.select(calls.request_bytes()).item() is None


@pytest.mark.parametrize(
    ("name", "cat", "operation"),
    [
        ("fopen64", STDIO, "open"),
        ("MPI_File_open", "MPIIO", "open"),
        ("__fxstat64", POSIX, "stat"),
        ("fdatasync", POSIX, "sync"),
        ("unlink", POSIX, "other"),
        ("execve", POSIX, None),
        ("MPI_File_write_at_all", "MPIIO", None),
        ("MPI_Barrier", "MPI", None),
        ("open", "reader", None),
        ("read", "reader", None),
    ],
)
def test_effect_of_call_on_file_follows_its_function(name: str, cat: str, operation: str | None) -> None:
    assert typed(row(name, cat))["operation"].item() == operation


def test_service_counters_are_not_calls() -> None:
    assert typed(row("cpu", "sys", ph="C"), row("cpu", "sys", ph="2")).is_empty()
