"""Aggregation of transfers: the naive implementation, chunks, order, windows, and invalid input."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.transforms.networks import counting as edge_counts
from iosig.transforms.networks.counting import EdgeCounter, merge_windows, window_edges
from iosig.transforms.networks.log_bins import NEGATIVE, ZERO
from iosig.transforms.networks.network import COUNTS, EDGES, TIMELINE, TOTALS, Layer, Network, Transfers
from tests.budget import examples
from tests.naive.networks import counting as naive

NAN, INF = float("nan"), float("inf")
#: Chunk sizes and merge thresholds that make a few transfers take each code path.
CHUNKINGS = {
    "one chunk": {},
    "single transfers": {"_CHUNK": 1, "_MIN_MERGE_ROWS": 1},
    "small chunks": {"_CHUNK": 7, "_MIN_MERGE_ROWS": 30},
    "one merge": {"_CHUNK": 5},
}


@pytest.fixture(params=list(CHUNKINGS))
def chunking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in CHUNKINGS[request.param].items():
        monkeypatch.setattr(edge_counts, name, value)
    return str(request.param)


def make_layers(*counts: int) -> tuple[Layer, ...]:
    names = ("rank", "host", "target")
    return tuple(
        Layer(name, pl.int_range(count, eager=True).cast(pl.String)) for name, count in zip(names, counts, strict=False)
    )


def make_transfers(rows: Sequence[naive.Transfer]) -> Transfers:
    """Transfers of one hop as columns."""
    kinds = (np.int64, np.int64, *[np.float64] * 4, np.bool_)
    columns = zip(*(row[1:] for row in rows), strict=True)
    return Transfers(rows[0][0], *(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))  # type: ignore[arg-type]


def make_counter(edges_s: Sequence[float] | np.ndarray, *counts: int) -> EdgeCounter:
    return EdgeCounter(make_layers(*counts), ("service_time",) * (len(counts) - 1), np.asarray(edges_s, dtype=float))


def count_network(rows: Sequence[naive.Transfer], edges_s: Sequence[float], chunk: int = 1000) -> Network:
    """Count transfers of both hops in chunks."""
    counting = make_counter(edges_s, 5, 4, 3)
    for begin in range(0, len(rows), chunk):
        for hop in (0, 1):
            if piece := [row for row in rows[begin : begin + chunk] if row[0] == hop]:
                counting.add(make_transfers(piece))
    return counting.result()


def assert_same(result: Network, expected: Network) -> None:
    np.testing.assert_array_equal(result.window_edges_s, expected.window_edges_s)
    for name in ("edges", "counts", "totals", "timeline"):
        ours, theirs = getattr(result, name), getattr(expected, name)
        assert ours.schema == theirs.schema
        assert ours.equals(theirs), name


# ---- the naive implementation

_EDGES_S = (0.0, 2.0, 4.0, 6.0, 8.0)
#: Their sums are exact in any order.
_TIMES = st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 1024.0, 2.0**-20, -0.5, -(2.0**-30), NAN, INF, -INF])
_SIZES = st.sampled_from([0.0, 1.0, 4096.0, 1048576.0, 2.0**40, 3.0, NAN, -1.0])
_INSTANTS = st.integers(-4, 40).map(lambda quarter: quarter / 4) | st.sampled_from([NAN, INF, -INF])
_ROW = st.tuples(
    st.integers(0, 1), st.integers(0, 3), st.integers(0, 2), _INSTANTS, _TIMES, _SIZES, _TIMES, st.booleans()
)


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(_ROW, max_size=60), chunk=st.integers(1, 70))
def test_network_matches_naive_implementation(chunking: str, rows: list[naive.Transfer], chunk: int) -> None:
    result, expected = count_network(rows, _EDGES_S, chunk), naive.counted(rows, _EDGES_S)
    assert result.edges.rows() == expected.edges
    assert result.counts.rows() == expected.count_rows()
    assert result.totals.rows() == expected.total_rows()
    assert result.timeline.rows() == expected.timeline_rows()
    schemas = [frame.schema for frame in (result.edges, result.counts, result.totals, result.timeline)]
    assert schemas == [EDGES, COUNTS, TOTALS, TIMELINE]


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(values=st.lists(st.floats(), min_size=1, max_size=40))
def test_bins_of_any_floats_match_naive_implementation(chunking: str, values: list[float]) -> None:
    rows = [(0, number % 3, 0, 1.0, value, NAN, NAN, False) for number, value in enumerate(values)]
    with np.errstate(over="ignore"):
        result = count_network(rows, _EDGES_S, 9)
    assert result.counts.rows() == naive.counted(rows, _EDGES_S).count_rows()


# ---- chunks, orders, windows


def random_rows(count: int, seed: int = 0) -> list[naive.Transfer]:
    rng = np.random.default_rng(seed)
    time = np.round(rng.lognormal(-3, 2, count), 4)
    size = np.floor(2.0 ** rng.integers(0, 24, count))
    columns = (
        rng.integers(0, 2, count),
        rng.integers(0, 4, count),
        rng.integers(0, 3, count),
        rng.random(count) * 8,
        np.floor(time * 1024) / 1024,
        size,
        np.floor(size / 3),
        rng.random(count) < 0.5,
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_chunks_and_order_do_not_matter(chunking: str) -> None:
    rows = random_rows(300)
    expected = count_network(sorted(rows, key=lambda row: row[3]), _EDGES_S)
    for chunk in (37, 400):
        assert_same(count_network(rows, _EDGES_S, chunk), expected)
        assert_same(count_network(rows[::-1], _EDGES_S, chunk), expected)


def test_bins_count_every_known_value(chunking: str) -> None:
    result = count_network(random_rows(300), _EDGES_S)
    counts = result.counts.group_by("metric").agg(pl.col("count").sum()).sort("metric")
    assert counts.rows() == [(0, 300), (1, 300), (2, 300)]
    assert result.totals["transfer_count"].sum() == 300


@pytest.mark.parametrize(("first", "last"), [(0, 1), (1, 3), (0, 4), (3, 4)])
def test_range_of_windows_is_the_sum_of_its_windows(first: int, last: int) -> None:
    rows = random_rows(300)
    whole = count_network(rows, _EDGES_S)
    part = count_network([row for row in rows if _EDGES_S[first] <= row[3] < _EDGES_S[last]], _EDGES_S)

    def select_named_edges(result: Network) -> pl.DataFrame:
        edges = result.edges.with_row_index("edge").cast({"edge": pl.Int32})
        inside = result.counts.filter(pl.col("window").is_between(first, last, closed="left"))
        return inside.join(edges, on="edge", how="left").drop("edge")

    assert select_named_edges(whole).equals(select_named_edges(part))


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_merged_windows_equal_coarser_windows(factor: int) -> None:
    rows = random_rows(300)
    assert_same(merge_windows(count_network(rows, _EDGES_S), factor), count_network(rows, _EDGES_S[::factor]))


@pytest.mark.parametrize("factor", [3, 5])
def test_last_merged_window_may_contain_fewer_windows(factor: int) -> None:
    rows, window_count = random_rows(300), -(-4 // factor)
    edges_s = [2.0 * factor * window for window in range(window_count + 1)]
    assert_same(merge_windows(count_network(rows, _EDGES_S), factor), count_network(rows, edges_s))


def test_merge_factor_zero_is_rejected() -> None:
    with pytest.raises(ValueError, match="factor must be positive"):
        merge_windows(count_network([], _EDGES_S), 0)


def test_results_do_not_change_the_counter() -> None:
    rows = [row for row in random_rows(200) if row[0] == 0]
    counting = make_counter(_EDGES_S, 5, 4, 3)
    counting.add(make_transfers(rows[:50]))
    assert_same(counting.result(), count_network(rows[:50], _EDGES_S))
    assert_same(counting.result(), count_network(rows[:50], _EDGES_S))
    counting.add(make_transfers(rows[50:]))
    assert_same(counting.result(), count_network(rows, _EDGES_S))


def test_added_arrays_may_change_afterwards() -> None:
    rows = [row for row in random_rows(100) if row[0] == 0]
    counting, given_rows = make_counter(_EDGES_S, 5, 4, 3), make_transfers(rows)
    counting.add(given_rows)
    given_rows.time_s[:] = 1e9
    given_rows.source[:] = 0
    assert_same(counting.result(), count_network(rows, _EDGES_S))


# ---- unusual values


def test_network_without_transfers_is_empty() -> None:
    result = count_network([], _EDGES_S)
    assert [len(frame) for frame in (result.edges, result.counts, result.totals, result.timeline)] == [0] * 4
    assert [result.edges.schema, result.counts.schema, result.totals.schema] == [EDGES, COUNTS, TOTALS]


def test_transfers_with_unknown_values_make_an_edge() -> None:
    result = count_network([(0, 1, 2, 3.0, NAN, NAN, INF, True)], _EDGES_S)
    assert result.edges.rows() == [(0, 1, 2)]
    assert result.totals.rows() == [(1, 0, 1, 0.0, 0.0, 0.0, 0.0)]
    assert (len(result.counts), len(result.timeline)) == (0, 0)


def test_negative_times_change_the_minimum_but_not_sums() -> None:
    result = count_network([(0, 0, 0, 0.1, value, NAN, NAN, True) for value in (-0.5, 0.0, 2.0)], _EDGES_S)
    assert result.timeline.rows() == [(0, 0, 0, 2, 2.0, -0.5, 2.0)]
    assert result.counts["bin"].to_list() == [NEGATIVE, ZERO, 4]
    assert result.totals.row(0)[2:] == (3, 0.0, 0.0, 2.0, 2.0)


def test_byte_sums_are_exact() -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 1 << 34, 300_000)
    n, is_read = len(sizes), rng.random(len(sizes)) < 0.5
    counting = make_counter(_EDGES_S, 2, 1)
    counting.add(
        Transfers(0, np.zeros(n, int), np.zeros(n, int), np.zeros(n), np.ones(n), sizes * 1.0, np.ones(n), is_read)
    )
    row = counting.result().totals.row(0, named=True)
    expected = int(sizes[is_read].sum()), int(sizes[~is_read].sum())
    assert (row["read_bytes"], row["written_bytes"]) == expected


def test_times_at_window_edges_belong_to_the_later_window() -> None:
    edges_s = window_edges(0.1, 0.7, 7)
    before = np.nextafter(edges_s, -1)
    instants = np.random.default_rng(0).permutation(np.concatenate([edges_s, before]))
    rows = [(0, 0, 0, at, 1.0, 1.0, 1.0, True) for at in instants.tolist()]
    expected = [naive.place(at, edges_s.tolist()) for at in instants.tolist()]
    for order in (rows, sorted(rows, key=lambda row: row[3])):
        result = count_network(order, edges_s.tolist()).totals
        assert result["transfer_count"].to_list() == np.bincount(expected).tolist()


# ---- windows


@pytest.mark.parametrize(
    ("start_s", "end_s", "expected"),
    [
        (0.0, 8.0, (0.0, 8.0)),
        (-1.0, 1.0, (-1.0, 1.0)),
        (5.0, 5.0, (5.0, 6.0)),
        (5.0, 4.0, (5.0, 6.0)),
        (NAN, NAN, (0.0, 1.0)),
        (3.0, NAN, (3.0, 4.0)),
        (NAN, 3.0, (3.0, 4.0)),
        (2.0, INF, (2.0, 3.0)),
        (1e300, 1e300, None),
        (1.7e9, 1.7e9 + 1e-6, (1.7e9, 1.7e9 + 1)),
        (0.0, 5e-324, (0.0, 1.0)),
    ],
)
def test_window_edges_ascend_for_any_interval(
    start_s: float, end_s: float, expected: tuple[float, float] | None
) -> None:
    edges_s = window_edges(start_s, end_s, 4)
    assert (np.diff(edges_s) > 0).all()
    assert expected in (None, (edges_s[0], edges_s[-1]))
    make_counter(edges_s, 1, 1)


def test_zero_windows_are_rejected() -> None:
    np.testing.assert_array_equal(window_edges(0.0, 3.0, 1), [0.0, 3.0])
    with pytest.raises(ValueError, match="window_count must be positive"):
        window_edges(0.0, 1.0, 0)


@pytest.mark.parametrize("edges_s", [[0.0], [0.0, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0], [0.0, NAN], [-INF, 0.0]])
def test_unequal_windows_are_rejected(edges_s: list[float]) -> None:
    with pytest.raises(ValueError, match="equal lengths and ascend"):
        make_counter(edges_s, 2, 2)


# ---- invalid input


@pytest.mark.parametrize(("source", "target"), [(5, 0), (-1, 0), (0, 4), (0, -1)])
def test_unknown_nodes_are_rejected(source: int, target: int) -> None:
    with pytest.raises(ValueError, match="must be between 0 and"):
        count_network([(0, source, target, 0.0, 1.0, 1.0, 1.0, True)], _EDGES_S)


@pytest.mark.parametrize("hop", [-1, 2])
def test_unknown_hops_are_rejected(hop: int) -> None:
    with pytest.raises(ValueError, match="hop must be between 0 and 1"):
        make_counter(_EDGES_S, 5, 4, 3).add(make_transfers([(hop, 0, 0, 0.0, 1.0, 1.0, 1.0, True)]))


def test_columns_of_different_lengths_are_rejected() -> None:
    one, two = np.zeros(1), np.zeros(2)
    with pytest.raises(ValueError, match="equal lengths"):
        make_counter(_EDGES_S, 2, 2).add(Transfers(0, one.astype(int), one.astype(int), two, one, one, one, one > 0))


def peak_bytes(count: int, chunk_count: int, *nodes: int, window_count: int = 8) -> int:
    """Peak of traced memory while one chunk of random transfers is added repeatedly."""
    rng = np.random.default_rng(1)
    source, target = rng.integers(0, nodes[0], count), rng.integers(0, nodes[1], count)
    values, is_read = rng.lognormal(0, 1, (3, count)), np.zeros(count, bool)
    tracemalloc.start()
    try:
        counting = make_counter(window_edges(0, 64, window_count), *nodes)
        for _ in range(chunk_count):
            counting.add(Transfers(0, source, target, rng.random(count) * 64, *values, is_read))
        counting.result()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_CHUNK", "_MIN_MERGE_ROWS"):
        monkeypatch.setattr(edge_counts, name, 1 << 13)
    few, many = (peak_bytes(1 << 13, chunks, 4, 2) for chunks in (4, 24))
    assert many < 1.2 * few


def test_memory_does_not_grow_with_unused_ranks() -> None:
    # A dense table would have 10**12 edges x 64 windows.
    assert peak_bytes(1 << 17, 1, 1_000_000, 1_000_000, window_count=64) < 150e6
