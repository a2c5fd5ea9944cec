from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.recorder.parquet import convert_rows
from tests.naive.recorder_traces import TICKS_PER_S, USER, Call
from tests.warehouse.sources.trace_landing import calls_of, expected, made_up, put, tables_of

KINDS = {"POSIX": 0, "MPIIO": 1, "MPI": 2, "HDF5": 3, "FTRACE": 4}


def table(rank: int, calls: list[Call], *, repeated: bool = False) -> pa.Table:
    """Return the export of a rank; with `repeated`, columns are single-element lists, as most exports declare."""
    rows = expected(rank, calls)
    texts = [list(call.arguments)[:10] + [""] * max(0, 10 - len(call.arguments)) for call in calls]
    numbers: dict[str, Any] = {
        "index": pa.array(range(len(rows)), pa.int32()),
        "rank": pa.array([rank] * len(rows), pa.int32()),
        "thread_id": pa.array([0] * len(rows), pa.int32()),
        "cat": pa.array([KINDS[row[3]] for row in rows], pa.int32()),
        "tstart": pa.array(np.float32([call.began / TICKS_PER_S for call in calls])),
        "tend": pa.array(np.float32([call.ceased / TICKS_PER_S for call in calls])),
        "level": pa.array([call.level for call in calls], pa.int32()),
        "arg_count": pa.array([len(call.arguments) for call in calls], pa.int32()),
    }
    if repeated:
        numbers = {name: pa.array([[value] for value in column.to_pylist()]) for name, column in numbers.items()}
    names = {"func_id": pa.array([row[4] for row in rows], pa.string())}
    arguments = {f"args_{n + 1}": pa.array([text[n] for text in texts], pa.string()) for n in range(10)}
    return pa.table(numbers | names | arguments)


def packed(found: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(found, out)
    return out.getvalue()


@pytest.mark.parametrize("repeated", [False, True])
def test_export_equals_trace_with_single_precision_times(tmp_path: Path, repeated: bool) -> None:
    ranks = [calls for calls in made_up(4, seed=4) if calls]
    files = {f"{rank}.parquet": packed(table(rank, calls, repeated=repeated)) for rank, calls in enumerate(ranks)}
    found = calls_of(put(tmp_path, files))
    wanted = [row for rank, calls in enumerate(ranks) for row in expected(rank, calls)]
    assert [row[:6] for row in found] == [row[:6] for row in wanted]
    assert [row[6:] for row in found] == [
        (float(np.float32(began)), float(np.float32(end))) for *_, began, end in wanted
    ]


def test_time_resolution_of_export_is_reported(tmp_path: Path) -> None:
    calls = [Call(2, 0, ("f", "%p", "8"), 0, 1), Call(2, 0, ("f", "%p", "8"), 10_000_000_000, 10_000_000_000)]
    found = tables_of(put(tmp_path, {"0.parquet": packed(table(0, calls))}))
    trace = found["traces"].row(0, named=True)
    assert trace["time_resolution_s"] == float(np.spacing(np.float32(1000)))
    assert trace["tracer_version"] is trace["started_at"] is None
    module = found["trace_modules"].row(0, named=True)
    assert module["outcome"] == "sound"
    assert "single precision" in module["reason"]


def test_arguments_beyond_the_tenth_are_reported_missing(tmp_path: Path) -> None:
    calls = [Call(5, 0, tuple("abcdefghijkl"), 0, 1), Call(5, 0, tuple("abcdefghij"), 1, 1)]
    found = tables_of(put(tmp_path, {"0.parquet": packed(table(0, calls))}))
    assert found["trace_calls"]["arguments"].to_list() == ["a b c d e f g h i j"] * 2
    assert "Of 1 calls" in found["trace_modules"]["reason"].item()


def test_functions_of_the_program_have_no_arguments(tmp_path: Path) -> None:
    calls = [Call(USER, 0, ("0x7f", "solve"), 0, 1)]
    assert calls_of(put(tmp_path, {"0.parquet": packed(table(0, calls))}))[0][3:6] == ("FTRACE", "solve", "")


GOOD = table(0, [Call(2, 0, ("f", "%p", "8"), tick, tick) for tick in range(3)])


def with_column(name: str, values: list[object]) -> pa.Table:
    return GOOD.set_column(GOOD.schema.get_field_index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0.parquet|cannot be read"),
        (b"PAR1junkPAR1", "cannot be read"),
        (packed(GOOD)[:-20], "cannot be read"),
        (packed(GOOD.drop_columns(["tend"])), "no column tend"),
        (packed(with_column("rank", [0, 1, 0])), "a single rank"),
        (packed(with_column("index", [0, 2, 1])), "a single rank"),
        (packed(with_column("cat", [0, 9, 0])), "an invalid type"),
        (packed(with_column("level", [0, -1, 0])), "an invalid type"),
        (packed(with_column("arg_count", [0, -1, 0])), "an invalid type"),
        (packed(with_column("tstart", [0.0, None, 0.0])), "lacks values"),
        (packed(with_column("level", [[0], [1, 2], []])), "lacks values"),
        (packed(with_column("func_id", [1, 2, 3])), "values of another type"),
        (packed(with_column("arg_count", [1.0, 2.0, 3.0])), "values of another type"),
        (packed(with_column("func_id", [[1], [2], [3]])), "values of another type"),
        (packed(with_column("tstart", ["a", "b", "c"])), "values of another type"),
    ],
)
def test_invalid_export_skips_its_rank(tmp_path: Path, content: bytes, said: str) -> None:
    found = tables_of(put(tmp_path, {"0.parquet": content, "1.parquet": packed(table(1, made_up(1, 3)[0]))}))
    assert found["trace_calls"]["rank"].unique().to_list() == [1]
    assert found["trace_modules"]["outcome"].unique().to_list() == ["partial"]
    assert found["rejects"]["reason"].str.contains(said).any()


def test_damage_raises_only_input_refused(tmp_path: Path) -> None:
    content = packed(GOOD)
    rng = np.random.default_rng(3)
    for _ in range(150):
        damaged = bytearray(content)
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        try:
            calls_of(put(tmp_path, {"0.parquet": bytes(damaged)}))
        except InputRefused:
            continue


def test_non_finite_times_are_refused_by_row(tmp_path: Path) -> None:
    damaged = with_column("tend", [0.0, float("nan"), float("inf")])
    found = tables_of(put(tmp_path, {"0.parquet": packed(damaged)}))
    assert found["trace_calls"]["call"].to_list() == [0]
    assert found["rejects"]["line"].to_list() == [2, 3]


def test_file_order_breaks_ties_between_equal_times() -> None:
    rows = pl.DataFrame(pl.from_arrow(GOOD)).with_columns(tstart=pl.lit(5.0), tend=pl.lit(5.0))
    assert convert_rows(0, rows).calls["call"].to_list() == [0, 1, 2]
