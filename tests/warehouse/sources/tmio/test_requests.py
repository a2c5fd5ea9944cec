"""Test that requests of TMIO's flushes equal a naive implementation, for any number of flushes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.sources.rows import traced
from iosig.warehouse.sources.tmio import requests
from tests.budget import examples
from tests.naive.sources.tmio import source as naive
from tests.warehouse.sources.batch_reading import tables_of

NUMBERS = st.one_of(st.integers(-3, 9), st.floats(-1e3, 1e12), st.sampled_from([float("nan"), float("inf"), 0.0]))
TIMES = st.one_of(st.integers(0, 9), st.floats(0, 10), st.just(float("nan")))


def written(path: Path, flushes: list[list[tuple[float, float, float]]]) -> None:
    lines = []
    for phases in flushes:
        rates, starts, ends = (list(column) for column in zip(*phases, strict=True)) if phases else ([], [], [])
        lines.append(
            json.dumps({"write_sync": {"bandwidth": {"b_rank_avr": rates, "t_rank_s": starts, "t_rank_e": ends}}})
        )
    path.write_text("\n".join(lines))


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.tuples(NUMBERS, TIMES, TIMES), max_size=8), min_size=1, max_size=4))
def test_requests_match_naive_implementation(tmp_path: Path, flushes: list[list[tuple[float, float, float]]]) -> None:
    path = tmp_path / "trace"
    written(path, flushes)
    found = tables_of(requests.read(path))
    distinct = {np.asarray(flush, dtype=np.float64).tobytes(): flush for flush in flushes}
    repeated = sum(map(bool, flushes)) - sum(map(bool, distinct.values()))
    good, refused = naive.requests(phase for flush in distinct.values() for phase in flush)
    refused += repeated
    rows = found["trace_requests"].select("start_s", "end_s", "request_bytes").rows() if good else []
    assert rows == good
    assert (found["rejects"].height if refused else 0) == refused
    assert found["trace_modules"]["record_count"].to_list() == [len(good)]
    assert found["trace_modules"]["outcome"].to_list() == ["partial" if refused else "sound"]


def test_large_trace_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "BATCH_ROWS", 100)
    path = tmp_path / "trace"
    written(path, [[(1.0, at, at + 1) for at in range(70 * flush, 70 * flush + 70)] for flush in range(7)])
    sizes = [batch.rows.height for batch in requests.read(path) if batch.table.name == "trace_requests"]
    assert sum(sizes) == 490
    assert max(sizes) <= 100
    assert tables_of(requests.read(path))["trace_requests"]["request"].to_list() == list(range(490))
