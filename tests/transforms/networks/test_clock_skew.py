"""Clock skew: planted offsets are recovered, independent opens give none, and naive results match."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.networks.clock_skew import (
    OPENS,
    Skew,
    center_skew,
    correct_events,
    correct_times,
    estimate_skew,
    merge_opens,
    select_opens,
)
from iosig.warehouse.contracts.traces import TRACE_RECORDS, TRACES
from iosig.warehouse.sources.darshan import source
from iosig.warehouse.sources.protocol import Reading
from tests import request_event_files
from tests.naive.networks import clock_skew as naive
from tests.transforms.request_lists import BOUNDED

Row = tuple[int, int, int | None, float | None]


def make_opens(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=OPENS, orient="row")


def collective_opens(ends: list[list[float]], count: int = 1) -> list[Row]:
    return [(file, rank, count, end) for file, of_ranks in enumerate(ends) for rank, end in enumerate(of_ranks)]


# ---- estimation


def test_offsets_are_estimated_from_one_file() -> None:
    skew = estimate_skew(make_opens(collective_opens([[10.0, 10.5, 9.75]])), 3)
    assert skew.outcome == "corrected"
    assert skew.offset_s is not None
    assert skew.offset_s.tolist() == [0.0, 0.5, -0.25]
    assert (skew.file_count, skew.range_s, skew.spread_s) == (1, 0.75, None)


def test_offset_is_the_median_over_files_with_a_spread() -> None:
    skew = estimate_skew(make_opens(collective_opens([[0.0, 1.0, 2.0], [5.0, 6.0, 7.0], [9.0, 10.0, 19.0]])), 3)
    assert skew.offset_s is not None
    assert skew.offset_s.tolist() == [-1.0, 0.0, 1.0]
    assert (skew.file_count, skew.range_s, skew.spread_s) == (3, 2.0, 0.0)


def test_clock_drift_increases_the_spread() -> None:
    steady = estimate_skew(make_opens(collective_opens([[t, t + 0.01, t + 0.02] for t in (0.0, 100.0, 200.0)])), 3)
    drifting = estimate_skew(make_opens(collective_opens([[t, t * 1.001, t * 0.999] for t in (0.0, 100.0, 200.0)])), 3)
    assert steady.spread_s == pytest.approx(0.0, abs=1e-12)
    assert drifting.spread_s == pytest.approx(1.4826 * 0.1, rel=1e-3)


@pytest.mark.parametrize(
    ("rows", "process_count", "outcome"),
    [
        (collective_opens([[1.0]]), 1, "one_rank"),
        ([], 0, "one_rank"),
        ([], 4, "no_collective_open"),
        (collective_opens([[1.0, 2.0]], count=0), 2, "no_collective_open"),
        ([(0, 0, None, 1.0), (0, 1, None, 2.0)], 2, "no_collective_open"),
        (collective_opens([[1.0, 2.0]]), 3, "no_collective_open"),
        ([(0, 0, 1, 1.0), (0, 1, 2, 2.0)], 2, "no_collective_open"),
        ([(0, 0, 1, 1.0), (1, 1, 1, 2.0)], 2, "no_collective_open"),
        ([(0, 0, 1, 1.0), (0, 2, 1, 2.0)], 2, "no_collective_open"),
        ([(0, 0, 1, 1.0), (0, 0, 1, 2.0)], 2, "no_collective_open"),
        ([(0, -1, 8, 1.0)], 8, "no_times"),
        ([(0, 0, 1, None), (0, 1, 1, 2.0)], 2, "no_times"),
        ([(0, 0, 1, float("nan")), (0, 1, 1, 2.0)], 2, "no_times"),
        (collective_opens([[1.0, 2.0]]), 1 << 62, "no_collective_open"),
    ],
)
def test_unusable_opens_give_an_outcome_without_offsets(rows: list[Row], process_count: int, outcome: str) -> None:
    assert estimate_skew(make_opens(rows), process_count) == Skew(outcome)  # type: ignore[arg-type]


@BOUNDED
@given(
    rank_count=st.sampled_from([16, 64, 1024, 4096]),
    skew_s=st.floats(0.01, 0.05),
    jitter_s=st.floats(1e-4, 5e-4),
    file_count=st.integers(1, 5),
    seed=st.integers(0, 1 << 30),
)
def test_planted_skew_is_recovered(rank_count: int, skew_s: float, jitter_s: float, file_count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    planted = chance.uniform(0, skew_s, rank_count)
    planted[:2] = 0.0, skew_s
    ends = np.arange(file_count)[:, None] * 7.0 + planted + chance.uniform(0, jitter_s, (file_count, rank_count))
    rows = {
        "file": np.repeat(np.arange(file_count), rank_count),
        "rank": np.tile(np.arange(rank_count), file_count),
        "collective_open_count": np.full(rank_count * file_count, 2),
        "open_end_s": ends.ravel(),
    }
    skew = estimate_skew(pl.DataFrame(rows, schema=OPENS).sample(fraction=1.0, shuffle=True, seed=seed), rank_count)
    assert skew.offset_s is not None
    assert skew.range_s == pytest.approx(skew_s, rel=0.1)
    assert np.abs(skew.offset_s - (planted - np.median(planted))).max() <= 0.1 * skew_s
    # The error bound depends on the jitter, not on the skew.
    assert np.abs(skew.offset_s - (planted - np.median(planted))).max() <= 2 * jitter_s


@BOUNDED
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(-1, 3),
            st.sampled_from([None, 0, 1, 1, 1, 2]),
            st.sampled_from([None, float("nan"), 0.0, 0.5, 1.25, 3.0, 7.5]),
        ),
        max_size=8,
    ),
    st.lists(st.lists(st.integers(0, 64).map(lambda n: n / 8), min_size=3, max_size=3), max_size=4),
    st.integers(0, 4),
)
def test_skew_matches_naive_implementation(rows: list[Row], whole: list[list[float]], process_count: int) -> None:
    rows = rows + [(file + 10, rank, count, end) for file, rank, count, end in collective_opens(whole)]
    outcome, offset, file_count, spread = naive.estimate_skew(rows, process_count)
    skew = estimate_skew(make_opens(rows), process_count)
    assert (skew.outcome, skew.file_count) == (outcome, file_count)
    assert (skew.offset_s is None) == (offset is None)
    if offset is not None and skew.offset_s is not None:
        assert skew.offset_s.tolist() == pytest.approx(offset)
        assert skew.spread_s == (None if spread is None else pytest.approx(spread))


def test_order_of_rows_does_not_matter() -> None:
    rows = collective_opens([[0.0, 0.5, 2.0], [1.0, 1.25, 3.0]])
    first, second = estimate_skew(make_opens(rows), 3), estimate_skew(make_opens(rows[::-1]), 3)
    assert first.offset_s is not None
    assert second.offset_s is not None
    assert first.offset_s.tolist() == second.offset_s.tolist()


# ---- common clock


@BOUNDED
@given(
    forward_s=st.lists(st.floats(-0.05, 0.05), min_size=1, max_size=8),
    backward_s=st.lists(st.floats(-0.05, 0.05), min_size=1, max_size=8),
)
def test_common_clock_is_causal_and_moves_least(forward_s: list[float], backward_s: list[float]) -> None:
    forward, backward = min(forward_s), min(backward_s)
    skew = center_skew(Skew("corrected", np.zeros(3), 1, 0.0), forward, backward, 1e-12)
    assert forward + skew.shift_s >= 0
    if forward + backward >= 0:
        assert backward - skew.shift_s >= -1e-9
    candidates = [0.0, -forward, backward]
    causal = [
        shift for shift in candidates if forward + shift >= 0 and (backward - shift >= 0 or forward + backward < 0)
    ]
    assert abs(skew.shift_s) == pytest.approx(min(map(abs, causal)), abs=1e-9)
    assert skew.offset_s is not None
    assert skew.offset_s.tolist() == [skew.shift_s] * 3


def test_common_clock_without_matches_or_offsets_is_unchanged() -> None:
    skew = Skew("corrected", np.zeros(2), 1, 0.0)
    assert center_skew(skew, np.inf, np.inf) is skew
    assert center_skew(Skew("no_times"), -1.0, 1.0) == Skew("no_times")


# ---- correction


def test_corrected_times_subtract_the_offset_of_each_rank() -> None:
    skew = Skew("corrected", np.array([0.0, 0.5, -0.25]), 1, 0.75)
    at_s = correct_times(np.array([1.0, 1.5, 0.75, 4.0, 4.0]), np.array([0, 1, 2, -1, 3]), skew)
    assert at_s.tolist() == [1.0, 1.0, 1.0, 4.0, 4.0]


def test_times_without_offsets_are_unchanged() -> None:
    at_s = np.array([1.0, 2.0])
    assert correct_times(at_s, np.array([0, 1]), Skew("no_times")).tolist() == [1.0, 2.0]


def test_only_the_outermost_layer_is_corrected() -> None:
    events = pl.DataFrame(
        {"layer_number": [0, 1, 0], "rank": [1, 1, 9], "start_s": [1.5, 2.0, 3.0], "end_s": [2.5, 3.0, 4.0]}
    )
    skew = correct_events(events, Skew("corrected", np.array([0.0, 0.5]), 1, 0.5), 0)
    assert skew["start_s"].to_list() == [1.0, 2.0, 3.0]
    assert skew["end_s"].to_list() == [2.0, 3.0, 4.0]
    assert correct_events(events, Skew("no_times"), 0) is events


# ---- opens among request events


def test_only_collective_opens_are_selected() -> None:
    events = pl.DataFrame(
        [
            (1, "open", True, 7, 0, 2.0),
            (1, "open", True, 7, 0, 9.0),
            (1, "open", False, 7, 1, 3.0),
            (1, "request", True, 7, 1, 3.0),
            (1, "open", True, None, 1, 3.0),
            (2, "open", True, 7, 1, 3.0),
        ],
        schema=["layer_number", "event_kind", "is_collective", "file_number", "rank", "end_s"],
        orient="row",
    )
    assert select_opens(events).rows() == [(7, 0, 2, 9.0)]
    assert select_opens(events, 2).rows() == [(7, 1, 1, 3.0)]


def test_merged_opens_of_chunks_equal_opens_of_all_events() -> None:
    events = request_event_files.landed(request_event_files.planted(request_event_files.Plan(rank_count=8)))
    parts = [select_opens(piece, 0) for piece in events.iter_slices(7)]
    assert merge_opens(parts).equals(select_opens(events))
    assert merge_opens([]).schema == OPENS


def test_skew_of_request_events_is_recovered() -> None:
    plan = request_event_files.Plan(rank_count=64, skew_s=0.05, file_count=3)
    planted = request_event_files.planted(plan)
    skew = estimate_skew(select_opens(request_event_files.landed(planted)), plan.rank_count)
    assert skew.offset_s is not None
    assert skew.file_count == 3
    assert np.abs(skew.offset_s - planted.offset_s).max() < 0.1 * plan.skew_s


# ---- real logs


def _estimate_skew_of_log(path: Path) -> Skew:
    batches = list(source.read(path, Reading()))
    (process_count,) = (batch.rows["process_count"].item() for batch in batches if batch.table == TRACES)
    records = pl.concat(batch.rows for batch in batches if batch.table == TRACE_RECORDS)
    names = {"file": "file_number"} | {name: name for name in OPENS.names() if name != "file"}
    return estimate_skew(records.filter(pl.col("module") == "MPIIO").select(**names), process_count)


@pytest.mark.parametrize(
    ("pattern", "file_count", "range_s"),
    [("*jeanbez_8_*", 1, 0.44e-3), ("*jlbez_IO_test5*", 5, 0.24e-3)],
)
def test_real_collective_opens_have_a_known_skew(
    shared_data: Path, pattern: str, file_count: int, range_s: float
) -> None:
    (path,) = (shared_data / "darshan").rglob(f"{pattern}.darshan")
    skew = _estimate_skew_of_log(path)
    assert (skew.outcome, skew.file_count) == ("corrected", file_count)
    assert skew.range_s == pytest.approx(range_s, rel=0.02)


def test_real_independent_opens_give_no_offsets(shared_data: Path) -> None:
    (path,) = (shared_data / "darshan").rglob("*treddy_mpi-io-test*.darshan")
    assert _estimate_skew_of_log(path) == Skew("no_collective_open")
