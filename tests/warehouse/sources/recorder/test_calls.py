from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.recorder import calls as recorder_calls
from iosig.warehouse.sources.recorder.calls import MAX_DURATION_S, Rank, Run, build_calls, read_run, refuse_bad_times
from iosig.warehouse.sources.rows import traced


def rank_of(rank: int, times: list[tuple[float, float]]) -> Rank:
    columns = {
        "level": 0,
        "module": "POSIX",
        "function": "write",
        "arguments": "f %p 8",
        "start_s": pl.Series([began for began, _ in times], dtype=pl.Float64),
        "end_s": pl.Series([ceased for _, ceased in times], dtype=pl.Float64),
    }
    return Rank(build_calls(rank, columns))


@pytest.mark.parametrize(
    ("times", "kept"),
    [
        ([], []),
        ([(0, 1), (0.5, 0.6), (0.6, 0.6)], [0, 1, 2]),
        ([(1, 2), (0.5, 3), (2, 3)], [0, 2]),
        ([(1, 0.5), (0.7, 0.8)], [1]),
        ([(-1, 0), (0, 0)], [1]),
        ([(0, MAX_DURATION_S * 2), (1, 2)], [1]),
        ([(MAX_DURATION_S * 2, MAX_DURATION_S * 2), (1, 2)], [1]),
        ([(float("nan"), 1), (0, float("inf")), (0, 1)], [2]),
    ],
)
def test_calls_with_impossible_times_are_refused(times: list[tuple[float, float]], kept: list[int]) -> None:
    found = refuse_bad_times(rank_of(2, times), 2)
    assert found.calls["call"].to_list() == kept
    assert [line - 1 for line in found.refused["line"]] == [index for index in range(len(times)) if index not in kept]
    assert all(reason.startswith("Rank 2: The call") for reason in found.refused["reason"])


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1, 9), st.floats(-1, 9)), max_size=30))
def test_accepted_calls_are_sorted_and_none_is_lost(times: list[tuple[float, float]]) -> None:
    found = refuse_bad_times(rank_of(0, times), 0)
    assert found.calls["start_s"].is_sorted()
    assert (found.calls["end_s"] >= found.calls["start_s"]).all()
    assert found.calls.height + found.refused.height == len(times)


def run_of(ranks: dict[int, list[tuple[float, float]] | InputRefused], process_count: int) -> Run:
    def decode(rank: int) -> Rank:
        found = ranks[rank]
        if isinstance(found, InputRefused):
            raise found
        return rank_of(rank, found)

    return Run("2.5.0", process_count, datetime(2026, 1, 1, 23, 59, 50, tzinfo=UTC), 1e-7, sorted(ranks), decode)


def rows(run: Run) -> dict[str, pl.DataFrame]:
    found: dict[str, list[pl.DataFrame]] = {}
    for batch in read_run(run):
        found.setdefault(batch.table.name, []).append(batch.rows)
    return {name: pl.concat(parts) for name, parts in found.items()}


def test_small_ranks_are_merged_into_batches_and_large_ones_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "BATCH_ROWS", 10)
    sizes = (4, 3, 2, 5, 35, 1)
    run = run_of({rank: [(1.0, 2.0)] * size for rank, size in enumerate(sizes)}, 6)
    batches = [batch.rows for batch in read_run(run) if batch.table.name == "trace_calls"]
    assert [batch.height for batch in batches] == [10, 4, 10, 10, 10, 5, 1]
    assert pl.concat(batches)["rank"].to_list() == [rank for rank, size in enumerate(sizes) for _ in range(size)]


def test_requests_are_numbered_across_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "BATCH_ROWS", 2)
    found = rows(run_of({rank: [(1.0, 2.0)] * 3 for rank in range(4)}, 4))
    assert found["trace_requests"]["request"].to_list() == list(range(12))
    assert found["trace_requests"]["rank"].to_list() == [rank for rank in range(4) for _ in range(3)]
    assert found["trace_files"]["path"].to_list() == ["f"]


def test_day_is_end_of_run() -> None:
    found = rows(run_of({0: [(1.0, 12.0)], 1: []}, 2))
    for table in ("traces", "trace_modules", "trace_files", "trace_records"):
        assert found[table]["ended_on"].to_list() == [datetime(2026, 1, 2).date()], table
    assert found["traces"]["duration_s"].item() == 12.0


def test_trace_without_calls_is_valid() -> None:
    assert set(rows(run_of({0: []}, 1))) == {"traces"}


def test_unreadable_ranks_are_skipped_unless_all_are_unreadable() -> None:
    fault = InputRefused("It is gone.", "Find it.")
    found = rows(run_of({0: fault, 1: [(0, 1)], 2: fault, 3: fault, 5: [(0, 1)]}, 4))
    assert found["rejects"].height == 4
    assert found["trace_modules"]["reason"].item() == "Skipped as unreadable: ranks 0, 2 to 3, 5."
    with pytest.raises(InputRefused, match="It is gone"):
        rows(run_of({0: fault, 1: fault}, 2))


def test_long_list_of_ranks_is_truncated() -> None:
    said = recorder_calls._describe_missing(run_of({rank: [] for rank in range(0, 100, 2)}, 100))
    assert said.startswith("Ranks 1, 3, 5")
    assert said.endswith("and more")
