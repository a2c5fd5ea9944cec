"""Networks as rows: the slow twin's, complete, in the tables' form, and refused where two rows would be alike."""

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
OWN = {"trace_id", "ended_on", "source_file"}


def layer(name: str, count: int) -> Layer:
    return Layer(name, pl.Series([f"{name} {number}" for number in range(count)], dtype=pl.String))


def at_random(seed: int, hop_count: int, window_count: int) -> Network:
    """A network of any edges, windows and bins; some windows of an edge have no transfers, some no known values."""
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
            read_bytes, written_bytes, time_s, longest_s = generator.random(4) * 1e9
            totals.append((window, edge, 3, read_bytes, written_bytes, time_s, longest_s))
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


def held(rows: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return rows with the run's own columns, as the table wants them, or fail."""
    own = {"trace_id": pl.lit("t"), "ended_on": pl.lit(None, pl.Date), "source_file": pl.lit("f")}
    found = frames.require(rows.with_columns(**own).select(table.column_names), table)
    assert found.select(table.key).is_unique().all()
    return found


# ---- edges


@given(seed=st.integers(0, 1 << 32), hop_count=st.integers(1, 3), window_count=st.integers(1, 5))
@settings(max_examples=examples(25), deadline=None)
def test_edges_are_those_of_the_slow_twin(seed: int, hop_count: int, window_count: int) -> None:
    network = at_random(seed, hop_count, window_count)
    rows = edge_rows(network)
    assert held(rows, NETWORK_EDGES).drop(OWN, strict=False).to_dicts() == naive.edge_rows(network)


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(10), deadline=None)
def test_nothing_is_lost(seed: int) -> None:
    network = at_random(seed, 2, 4)
    rows = edge_rows(network)
    assert rows.height == network.totals.height
    for number, metric in enumerate(("time", "size", "bandwidth")):
        counted = network.counts.filter(pl.col("metric") == number)["count"].sum()
        assert rows[f"{metric}_counts"].explode(empty_as_null=False).sum() == counted
    assert rows["read_bytes"].sum() == pytest.approx(network.totals["read_bytes"].sum(), abs=rows.height)


def test_a_network_without_edges_has_no_rows() -> None:
    empty = Network(
        (layer("rank", 0), layer("host", 0)),
        ("service_time",),
        np.array([0.0, 1.0]),
        EDGES.to_frame(),
        COUNTS.to_frame(),
        TOTALS.to_frame(),
        TIMELINE.to_frame(),
    )
    assert held(edge_rows(empty), NETWORK_EDGES).is_empty()


def of_one_edge(*, labels: tuple[str, str] = ("0", "n1"), read_bytes: float = 0.0, windows: int = 1) -> Network:
    """A network of two ranks, one host and one edge, that is used in the first window only."""
    return Network(
        (Layer("rank", pl.Series([labels[0], "1"])), Layer("host", pl.Series([labels[1]]))),
        ("service_time",),
        np.arange(windows + 1.0),
        pl.DataFrame([(0, 0, 0)], schema=EDGES, orient="row"),
        pl.DataFrame([(0, 0, 1, 40, 1)], schema=COUNTS, orient="row"),
        pl.DataFrame([(0, 0, 1, read_bytes, 0.0, 0.0, 0.0)], schema=TOTALS, orient="row"),
        TIMELINE.to_frame(),
    )


def test_names_stay_as_they_are() -> None:
    assert edge_rows(of_one_edge(labels=(HOSTILE, HOSTILE))).select("source_node", "target_node").row(0) == (
        HOSTILE,
        HOSTILE,
    )


@pytest.mark.parametrize(
    ("told", "held_bytes"), [(0.5, 0), (1.5, 2), (2.0**53, 2**53), (2.0**80, 2**63 - 1024), (math.inf, 2**63 - 1024)]
)
def test_bytes_are_whole_and_fit(told: float, held_bytes: int) -> None:
    assert edge_rows(of_one_edge(read_bytes=told))["read_bytes"].to_list() == [held_bytes]


def test_nodes_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(ValueError, match=r"layer rank have the same label"):
        edge_rows(of_one_edge(labels=("1", "n1")))


def test_windows_that_cannot_be_told_apart_are_refused() -> None:
    network = of_one_edge(windows=2)
    network.window_edges_s[:] = [0.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="do not rise"):
        edge_rows(network)


# ---- patterns, bottlenecks, runs


def patterns_of(*changes: dict[str, object]) -> pl.DataFrame:
    schema = {
        "hop": pl.Int32,
        "metric": pl.String,
        "is_whole": pl.Boolean,
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
        "is_whole": False,
        "first_window": 0,
        "last_window": 1,
        "outcome": "named",
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


def test_patterns_have_names_and_times() -> None:
    network = at_random(1, 2, 4)
    found = patterns_of(
        {},
        {"hop": 1, "first_window": 3, "last_window": 4, "pattern": "outlier", "cause_nodes": ["host 1", HOSTILE]},
        {"is_whole": True, "last_window": 4, "outcome": "none_fits", "pattern": None, "node_spread": math.nan},
        {"metric": "size", "band_ratio": math.inf, "cause_nodes": None},
    )
    rows = pattern_rows(network, found)
    held(rows, NETWORK_PATTERNS)
    assert rows.select("source_layer", "target_layer", "window_began_s", "window_ceased_s").rows() == [
        ("rank", "host", -1.0, 1.0),
        ("host", "target", 5.0, 7.0),
        ("rank", "host", -1.0, 7.0),
        ("rank", "host", -1.0, 1.0),
    ]
    assert rows["node_spread"].to_list() == [0.1, 0.1, None, 0.1]
    assert rows["band_ratio"].to_list() == [0.0, 0.0, 0.0, None]
    assert [text and json.loads(text) for text in rows["cause_nodes"]] == [None, ["host 1", HOSTILE], None, None]
    assert held(pattern_rows(network, found.clear()), NETWORK_PATTERNS).is_empty()


def test_bottlenecks_are_rows_of_the_table() -> None:
    found = pl.DataFrame(
        {
            "share_ratio": [0.25],
            "metric": ["time"],
            "bottleneck": pl.Series([0], dtype=pl.Int32),
            "source_layer": ["rank"],
            "source_node": ["0"],
            "target_layer": ["target"],
            "target_node": ["OST 3"],
            "began_s": [1.5],
            "value": [8.0],
            "median_value": [0.5],
            "score": [9.0],
        }
    )
    rows = held(bottleneck_rows(found), NETWORK_BOTTLENECKS).drop(OWN, strict=False)
    assert rows.row(0) == ("time", 0, "rank", "0", "target", "OST 3", 1.5, 8.0, 0.5, 9.0, 0.25)


def test_a_run_says_what_its_network_is_made_of() -> None:
    network = at_random(3, 3, 4)
    skew = Skew("corrected", np.zeros(4), 2, 0.001, None)
    row = run_row(
        "made",
        network=network,
        module="POSIX",
        request_count=12,
        covered_ratio=1.2,
        skew=skew,
        negative_count=0,
    )
    found = held(row, NETWORK_RUNS).row(0, named=True)
    assert json.loads(found["layers"]) == list(NAMES)
    assert found["group_sizes"] == [1, 1, 1, 1]
    assert found["node_counts"] == [known.node_count for known in network.layers]
    assert (found["window_count"], found["window_s"]) == (4, 2.0)
    assert (found["skew_outcome"], found["skew_file_count"], found["skew_range_s"]) == ("corrected", 2, 0.001)
    assert found["skew_spread_s"] is None
    assert found["covered_ratio"] == 1.0, "requests that moved more than was counted cover all of it"


@pytest.mark.parametrize("covered_ratio", [None, math.nan])
def test_a_run_without_network_says_so(covered_ratio: float | None) -> None:
    row = held(run_row("refused", reason="Damaged.", covered_ratio=covered_ratio), NETWORK_RUNS)
    told = {name: value for name, value in row.row(0, named=True).items() if value is not None}
    assert told == {
        "trace_id": "t",
        "source_file": "f",
        "outcome": "refused",
        "reason": "Damaged.",
        "request_count": 0,
    }
