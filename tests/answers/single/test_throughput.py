"""Throughput is split by rank, host, file and storage target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.answers.single import throughput
from iosig.answers.single.throughput import By, split_throughput
from iosig.transforms.throughput.signals import SignalParams
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_REQUESTS
from iosig.warehouse.errors import UsageError
from iosig.warehouse.sources.rows.traced import build_batch
from iosig.warehouse.store.store import write_parquet

MB = 1_000_000.0
PARAMS = SignalParams(min_step_count=1)
FILES = build_batch(
    TRACE_FILES,
    {
        "file_number": [1, 2],
        "path": ["/striped", "/plain"],
        "stripe_bytes": [1_000_000, None],
        "osts": pl.Series([[7, 9], None], dtype=pl.List(pl.Int64)),
    },
).rows
#: two requests of a striped file, the first across two stripes; one of a plain file; one within another, one empty
REQUESTS: list[dict[str, Any]] = [
    {"rank": 0, "host": "n1", "file_number": 1, "offset_bytes": 500_000, "request_bytes": MB, "start_s": 0.0},
    {"rank": 1, "host": "n1", "file_number": 1, "offset_bytes": 2_000_000, "request_bytes": MB / 2, "start_s": 2.0},
    {"rank": 1, "host": "n2", "file_number": 2, "offset_bytes": 0, "request_bytes": 3 * MB, "start_s": 4.0},
    {"rank": 1, "host": "n2", "file_number": 2, "request_bytes": 9 * MB, "start_s": 4.0, "is_nested": True},
    {"rank": 5, "host": "n5", "file_number": None, "request_bytes": None, "start_s": 4.0},
]


@pytest.fixture
def requests(tmp_path: Path) -> list[pl.LazyFrame]:
    """The requests in two files; each takes 2 s."""
    whole = [
        {"module": "POSIX", "direction": "write", "is_nested": False, "is_async": False, "request": number}
        | request
        | {"end_s": request["start_s"] + 2.0}
        for number, request in enumerate(REQUESTS)
    ]
    paths = []
    for number, part in enumerate((whole[:1], whole[1:])):
        frame = pl.DataFrame(part, infer_schema_length=None)
        batch = build_batch(TRACE_REQUESTS, {name: frame[name] for name in frame.columns})
        paths.append(write_parquet(batch.rows, batch.table, tmp_path / f"{number}.parquet"))
    return [pl.scan_parquet(path) for path in paths]


def volumes(found: pl.DataFrame, by: By) -> dict[Any, float]:
    moved = found.group_by(by).agg((pl.col("bytes_per_s") * pl.col("interval_s")).sum().alias("bytes"))
    return dict(zip(moved[by], moved["bytes"], strict=True))


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("rank", {0: MB, 1: 3.5 * MB}),
        ("host", {"n1": 1.5 * MB, "n2": 3 * MB}),
        ("file", {"/striped": 1.5 * MB, "/plain": 3 * MB}),
        ("ost", {7: MB, 9: MB / 2, None: 3 * MB}),
    ],
)
def test_bytes_are_split_by_the_chosen_dimension(
    requests: list[pl.LazyFrame], by: By, expected: dict[Any, float]
) -> None:
    assert volumes(split_throughput(requests, FILES, 6.0, by, PARAMS), by) == pytest.approx(expected)


def test_stripes_of_a_request_are_moved_sequentially(requests: list[pl.LazyFrame]) -> None:
    found = split_throughput(requests[:1], FILES, 2.0, "ost", PARAMS).sort("ost", "time_s")
    assert found.select("ost", "time_s", "bytes_per_s").rows() == [
        (7, 1.0, MB / 2),
        (7, 2.0, 0.0),
        (9, 1.0, 0.0),
        (9, 2.0, MB / 2),
    ]


def test_no_requests_yield_no_throughput(requests: list[pl.LazyFrame]) -> None:
    assert split_throughput([], FILES, 6.0, "rank", PARAMS).is_empty()


def test_oversized_result_is_refused(requests: list[pl.LazyFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "_MAX_STEPS", 11)
    assert split_throughput(requests[:1], FILES, 6.0, "rank", PARAMS).height == 6
    with pytest.raises(UsageError, match=r"2 signals of 6 steps do not fit.*interval_s"):
        split_throughput(requests, FILES, 6.0, "rank", PARAMS)
