"""Conversion of networks to rows: the naive implementation, completeness, table types, and ambiguous names."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.networks.clock_skew import Skew
from iosig.transforms.networks.log_bins import NEGATIVE, ZERO
from iosig.transforms.networks.network import COUNTS, EDGES, TIMELINE, TOTALS, Layer, Network
from iosig.transforms.networks.rows import bottleneck_rows, edge_rows, pattern_rows, run_row
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.networks import NETWORK_BOTTLENECKS, NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_RUNS
from tests.budget import examples
from tests.naive.networks import rows as naive

NAMES = ("rank", "host", "target", "storage")
HOSTILE = '<img src=x>"\\\n€'
RUN_COLUMNS = {"trace_id", "ended_on", "source_file"}


def layer(name: str, count: int) -> Layer:
    return Layer(name, pl.Series([f"{name} {number}" for number in range(count)], dtype=pl.String))


def make_random_network(seed: int, hop_count: int, window_count: int) -> Network:
    """Random edges, windows and bins; some windows of an edge have no transfers or no known values."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 6, hop_count + 1)
    edges = pl.DataFrame(
        [
            (hop, source, target)
            for hop in range(hop_count)
            for source in range(sizes[hop])
            for target in range(sizes[hop + 1])
            if generator.random() < 0.7
        ],
        schema=EDGES,
        orient="row",
    )
    totals, counts = [], []
    for window in range(window_count):
        for edge in range(edges.height):
            if generator.random() < 0.5:
                continue
            read_bytes, written_bytes, time_s, max_transfer_time_s = generator.random(4) * 1e9
            totals.append((window, edge, 3, read_bytes, written_bytes, time_s, max_transfer_time_s))
            for metric in range(3):
                bins = generator.choice([NEGATIVE, ZERO, -80, 3, 4, 119], generator.integers(0, 4), replace=False)
                counts += [(window, edge, metric, int(k), int(generator.integers(1, 9))) for k in sorted(bins)]
    return Network(
        tuple(layer(name, int(size)) for name, size in zip(NAMES, sizes, strict=False)),
        ("service_time", "latency", "write_time")[:hop_count],
        np.linspace(-1.0, 7.0, window_count + 1),
        edges,
        pl.DataFrame(counts, schema=COUNTS, orient="row"),
        pl.DataFrame(totals, schema=TOTALS, orient="row"),
        TIMELINE.to_frame(),
    )


def cast_to_table(rows: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Add the columns of the run and cast the rows to the table, or fail."""
    own = {"trace_id": pl.lit("t"), "ended_on": pl.lit(None, pl.Date), "source_file": pl.lit("f")}
    result = frames.require(rows.with_columns(**own).select(table.column_names), table)
    assert result.select(table.key).is_unique().all()
    return result


# ---- edges


@given(seed=st.integers(0, 1 << 32), hop_count=st.integers(1, 3), window_count=st.integers(1, 5))
@settings(max_examples=examples(25), deadline=None)
def test_edge_rows_match_naive_implementation(seed: int, hop_count: int, window_count: int) -> None:
    network = make_random_network(seed, hop_count, window_count)
    rows = edge_rows(network)
    assert cast_to_table(rows, NETWORK_EDGES).drop(RUN_COLUMNS, strict=False).to_dicts() == naive.edge_rows(network)


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(10), deadline=None)
def test_edge_rows_contain_all_transfers(seed: int) -> None:
    network = make_random_network(seed, 2, 4)
    rows = edge_rows(network)
    assert rows.height == network.totals.height
    for number, metric in enumerate(("time", "size", "bandwidth")):
        counted = network.counts.filter(pl.col("metric") == number)["count"].sum()
        assert rows[f"{metric}_counts"].explode(empty_as_null=False).sum() == counted
    assert rows["read_bytes"].sum() == pytest.approx(network.totals["read_bytes"].sum(), abs=rows.height)


def test_network_without_edges_has_no_rows() -> None:
    empty = Network(
        (layer("rank", 0), layer("host", 0)),
        ("service_time",),
        np.array([0.0, 1.0]),
        EDGES.to_frame(),
        COUNTS.to_frame(),
        TOTALS.to_frame(),
        TIMELINE.to_frame(),
    )
    assert cast_to_table(edge_rows(empty), NETWORK_EDGES).is_empty()


def make_one_edge_network(
    *, labels: tuple[str, str] = ("0", "n1"), read_bytes: float = 0.0, windows: int = 1
) -> Network:
    """Two ranks, one host, and one edge that is used in the first window only."""
    return Network(
        (Layer("rank", pl.Series([labels[0], "1"])), Layer("host", pl.Series([labels[1]]))),
        ("service_time",),
        np.arange(windows + 1.0),
        pl.DataFrame([(0, 0, 0)], schema=EDGES, orient="row"),
        pl.DataFrame([(0, 0, 1, 40, 1)], schema=COUNTS, orient="row"),
        pl.DataFrame([(0, 0, 1, read_bytes, 0.0, 0.0, 0.0)], schema=TOTALS, orient="row"),
        TIMELINE.to_frame(),
    )


def test_edge_rows_keep_hostile_names() -> None:
    assert edge_rows(make_one_edge_network(labels=(HOSTILE, HOSTILE))).select("source_node", "target_node").row(0) == (
        HOSTILE,
        HOSTILE,
    )


@pytest.mark.parametrize(
    ("read_bytes", "expected_bytes"),
    [(0.5, 0), (1.5, 2), (2.0**53, 2**53), (2.0**80, 2**63 - 1024), (math.inf, 2**63 - 1024)],
)
def test_bytes_are_rounded_and_limited(read_bytes: float, expected_bytes: int) -> None:
    assert edge_rows(make_one_edge_network(read_bytes=read_bytes))["read_bytes"].to_list() == [expected_bytes]


def test_duplicate_labels_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"layer rank have the same label"):
        edge_rows(make_one_edge_network(labels=("1", "n1")))


def test_windows_out_of_order_are_rejected() -> None:
    network = make_one_edge_network(windows=2)
    network.window_edges_s[:] = [0.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="not in ascending order"):
        edge_rows(network)


# ---- patterns, bottlenecks, runs


def make_patterns(*changes: dict[str, object]) -> pl.DataFrame:
    schema = {
        "hop": pl.Int32,
        "metric": pl.String,
        "is_whole_run": pl.Boolean,
        "first_window": pl.Int32,
        "last_window": pl.Int32,
        "outcome": pl.String,
        "pattern": pl.String,
        "active_node_count": pl.Int64,
        "transfer_count": pl.Int64,
        **dict.fromkeys(("node_spread", "edge_spread", "band_ratio", "nodes_per_band", "outlier_score"), pl.Float64),
        "cause_nodes": pl.List(pl.String),
    }
    usual = {
        "hop": 0,
        "metric": "time",
        "is_whole_run": False,
        "first_window": 0,
        "last_window": 1,
        "outcome": "matched",
        "pattern": "circular",
        "active_node_count": 4,
        "transfer_count": 40,
        "node_spread": 0.1,
        "edge_spread": 0.2,
        "band_ratio": 0.0,
        "outlier_score": 1.0,
        "cause_nodes": [],
    }
    return pl.DataFrame([usual | change for change in changes], schema=schema, orient="row")


def test_pattern_rows_have_layer_names_and_times() -> None:
    network = make_random_network(1, 2, 4)
    result = make_patterns(
        {},
        {"hop": 1, "first_window": 3, "last_window": 4, "pattern": "outlier", "cause_nodes": ["host 1", HOSTILE]},
        {"is_whole_run": True, "last_window": 4, "outcome": "no_match", "pattern": None, "node_spread": math.nan},
        {"metric": "size", "band_ratio": math.inf, "cause_nodes": None},
    )
    rows = pattern_rows(network, result)
    cast_to_table(rows, NETWORK_PATTERNS)
    assert rows.select("source_layer", "target_layer", "window_start_s", "window_end_s").rows() == [
        ("rank", "host", -1.0, 1.0),
        ("host", "target", 5.0, 7.0),
        ("rank", "host", -1.0, 7.0),
        ("rank", "host", -1.0, 1.0),
    ]
    assert rows["node_spread"].to_list() == [0.1, 0.1, None, 0.1]
    assert rows["band_ratio"].to_list() == [0.0, 0.0, 0.0, None]
    assert [text and json.loads(text) for text in rows["cause_nodes"]] == [None, ["host 1", HOSTILE], None, None]
    assert cast_to_table(pattern_rows(network, result.clear()), NETWORK_PATTERNS).is_empty()


def test_bottleneck_rows_match_the_table() -> None:
    result = pl.DataFrame(
        {
            "share_ratio": [0.25],
            "metric": ["time"],
            "bottleneck": pl.Series([0], dtype=pl.Int32),
            "source_layer": ["rank"],
            "source_node": ["0"],
            "target_layer": ["target"],
            "target_node": ["OST 3"],
            "start_s": [1.5],
            "value": [8.0],
            "median_value": [0.5],
            "score": [9.0],
        }
    )
    rows = cast_to_table(bottleneck_rows(result), NETWORK_BOTTLENECKS).drop(RUN_COLUMNS, strict=False)
    assert rows.row(0) == ("time", 0, "rank", "0", "target", "OST 3", 1.5, 8.0, 0.5, 9.0, 0.25)


def test_run_row_describes_the_network() -> None:
    network = make_random_network(3, 3, 4)
    skew = Skew("corrected", np.zeros(4), 2, 0.001, None)
    row = run_row(
        "built",
        network=network,
        module="POSIX",
        request_count=12,
        covered_ratio=1.2,
        skew=skew,
        negative_time_count=0,
    )
    result = cast_to_table(row, NETWORK_RUNS).row(0, named=True)
    assert json.loads(result["layers"]) == list(NAMES)
    assert result["group_sizes"] == [1, 1, 1, 1]
    assert result["node_counts"] == [known.node_count for known in network.layers]
    assert (result["window_count"], result["window_s"]) == (4, 2.0)
    assert (result["skew_outcome"], result["skew_file_count"], result["skew_range_s"]) == ("corrected", 2, 0.001)
    assert result["skew_spread_s"] is None
    assert result["covered_ratio"] == 1.0, "requests that moved more than was counted cover all of it"


@pytest.mark.parametrize("covered_ratio", [None, math.nan])
def test_run_row_without_network_has_only_a_reason(covered_ratio: float | None) -> None:
    row = cast_to_table(run_row("refused", reason="Damaged.", covered_ratio=covered_ratio), NETWORK_RUNS)
    read_bytes = {name: value for name, value in row.row(0, named=True).items() if value is not None}
    assert read_bytes == {
        "trace_id": "t",
        "source_file": "f",
        "outcome": "refused",
        "reason": "Damaged.",
        "request_count": 0,
    }
