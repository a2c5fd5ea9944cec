"""Pattern classification: planted patterns, counterexamples, and statistics against the naive implementation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.studies.networks.planted import PLANTED, PlantedSystem, draw_shape, generate_requests, plant_pattern
from iosig.transforms.arrays import Reals
from iosig.transforms.networks import patterns as module
from iosig.transforms.networks.batches import NetworkBatch
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.network import METRICS, Layer, Network, Transfers
from iosig.transforms.networks.node_statistics import (
    Nodes,
    count_cells,
    find_main_targets,
    make_nodes,
    summarize_nodes,
)
from iosig.transforms.networks.patterns import PATTERN_ROWS, Pattern, classify_patterns
from tests.budget import examples
from tests.naive.networks import patterns as naive

SEEDS = range(20)
PATTERNS: tuple[Pattern, ...] = module.PATTERNS


def network(octaves: Reals, window_count: int = 1, per_node: int = 16, labels: list[str] | None = None) -> Network:
    """Network with equal numbers of transfers per node, spread over the windows; octaves: (nodes, transfers)."""
    nodes, count = octaves.shape
    source = np.repeat(np.arange(nodes), count)
    at_s = np.tile((np.arange(count) + 0.5) / count, nodes)
    values = 2.0 ** octaves.ravel()
    layers = (
        Layer("rank", pl.Series("label", labels or [str(node) for node in range(nodes)])),
        Layer("host", pl.Series("label", [f"h{node}" for node in range(-(-nodes // per_node))])),
    )
    counter = EdgeCounter(layers, ("service_time",), window_edges(0.0, 1.0, window_count))
    unknown = np.full(len(source), np.nan)
    counter.add(
        Transfers(0, source, source // per_node, at_s, values, unknown, unknown, np.zeros(len(source), dtype=bool))
    )
    return counter.result()


def whole(network_: Network) -> dict[str, object]:
    return (
        classify_patterns(network_)
        .filter(pl.col("hop") == 0, pl.col("metric") == "time", "is_whole_run")
        .row(0, named=True)
    )


def quiet(nodes: int, count: int, seed: int = 0) -> Reals:
    return np.random.default_rng(seed).normal(-8.0, 0.2, (nodes, count))


# ---- planted patterns


def network_of_times(system: PlantedSystem, generator: np.random.Generator) -> Network:
    """Outer hop of a planted system."""
    layers = (
        Layer("rank", pl.Series("label", [str(rank) for rank in range(system.shape.rank_count)])),
        Layer("host", pl.Series("label", [str(node) for node in range(system.shape.io_node_count)])),
    )
    counter = EdgeCounter(layers, ("latency",), window_edges(0.0, system.shape.run_s, 1))
    for part in generate_requests(system, generator):
        unknown = np.full(len(part.rank), np.nan)
        node = system.io_node[part.rank]
        counter.add(
            Transfers(0, part.rank, node, part.at_s, part.time_s, unknown, unknown, np.zeros(len(node), dtype=bool))
        )
    return counter.result()


@pytest.fixture(scope="module")
def classified_patterns() -> pl.DataFrame:
    """Planted and classified pattern of 20 systems each, with the numbers of all and of true causes."""
    rows = []
    for pattern in PATTERNS:
        for seed in SEEDS:
            generator = np.random.default_rng([seed, PLANTED.index(pattern)])
            system = plant_pattern(pattern, generator, draw_shape(generator, 1 << 15))
            row = whole(network_of_times(system, generator))
            causes = np.array(row["cause_nodes"], dtype=np.int64)
            rows.append((pattern, row["pattern"] or row["outcome"], len(causes), int(system.is_cause[causes].sum())))
    return pl.DataFrame(rows, schema=["planted", "classified", "cause_count", "true_cause_count"], orient="row")


@pytest.mark.long
def test_95_percent_of_planted_patterns_are_classified(classified_patterns: pl.DataFrame) -> None:
    wrong = classified_patterns.filter(pl.col("planted") != pl.col("classified"))
    assert len(classified_patterns) == 80
    assert len(wrong) <= 4, wrong


@pytest.mark.slow
def test_causes_of_planted_patterns_are_listed(classified_patterns: pl.DataFrame) -> None:
    right = classified_patterns.filter(pl.col("planted") == pl.col("classified"))
    assert right.filter(planted="circular")["cause_count"].sum() == 0
    for pattern in ("outlier", "striped"):
        cause_count, true_count = (
            right.filter(planted=pattern).select(pl.col("cause_count", "true_cause_count").sum()).row(0)
        )
        assert true_count >= 0.9 * cause_count > 0
    assert right.filter(planted="noisy")["cause_count"].is_between(10, 20).all()


# ---- decisions


def test_one_or_two_narrow_bands_of_values_are_circular() -> None:
    row = whole(network(quiet(32, 20)))
    assert (row["outcome"], row["pattern"], row["cause_nodes"]) == ("matched", "circular", [])
    assert (row["active_node_count"], row["transfer_count"]) == (32, 640)
    assert row["edge_spread"] == pytest.approx(0.2, abs=0.1)
    two = quiet(32, 20)
    two[:, ::2] += 4.0
    assert whole(network(two))["pattern"] == "circular"


@pytest.mark.parametrize("count", [1, 4, 50])
def test_bands_of_nodes_are_striped(count: int) -> None:
    octaves = quiet(64, count)
    octaves[np.arange(64) // 8 % 2 == 1] += 2.0
    row = whole(network(octaves, per_node=8))
    assert (row["pattern"], row["nodes_per_band"]) == ("striped", 16.0)
    assert row["band_ratio"] == pytest.approx(0.95, abs=0.06)
    assert {int(str(node)) // 8 % 2 for node in row["cause_nodes"]} == {1}  # type: ignore[attr-defined]
    assert len(row["cause_nodes"]) == 20  # type: ignore[arg-type]


def test_alternating_levels_are_striped_regardless_of_targets() -> None:
    octaves = quiet(64, 10)
    octaves[::2] += 2.0
    row = whole(network(octaves, per_node=64))
    assert (row["pattern"], row["nodes_per_band"]) == ("striped", 2.0)


def test_shuffled_levels_are_not_striped() -> None:
    random = np.random.default_rng(3)
    octaves = quiet(64, 10) + 2.0 * (np.arange(64) // 8 % 2)[:, None]
    classified = [whole(network(octaves[random.permutation(64)], per_node=8))["pattern"] for _ in range(10)]
    assert classified == ["noisy"] * 10


def test_linear_trend_has_no_bands() -> None:
    assert whole(network(quiet(64, 10) + np.linspace(0, 2, 64)[:, None]))["pattern"] != "striped"


def test_few_slow_nodes_are_outliers_strongest_first() -> None:
    octaves = quiet(64, 10)
    octaves[[7, 40]] += [[2.0], [3.0]]
    row = whole(network(octaves))
    assert (row["pattern"], row["cause_nodes"]) == ("outlier", ["40", "7"])
    assert float(str(row["outlier_score"])) > 5.0


def test_single_slow_request_is_not_an_outlier() -> None:
    octaves = quiet(256, 3)
    octaves[::50, 1] += 6.0
    assert whole(network(octaves))["pattern"] == "circular"


def test_wide_values_are_noisy_with_widest_nodes_first() -> None:
    octaves = np.random.default_rng(4).normal(-8.0, 1.5, (32, 40))
    octaves[5] *= 3.0
    row = whole(network(octaves - octaves.mean(axis=1, keepdims=True)))
    assert row["pattern"] == "noisy"
    assert row["cause_nodes"][0] == "5"  # type: ignore[index]


def test_ambiguous_values_have_no_pattern() -> None:
    octaves = quiet(64, 30) + np.random.default_rng(5).normal(0, 0.5, 64)[:, None]
    row = whole(network(octaves))
    assert (row["outcome"], row["pattern"], row["cause_nodes"]) == ("no_match", None, [])


def test_too_few_nodes_or_transfers_have_an_outcome() -> None:
    row = whole(network(quiet(7, 30)))
    assert (row["outcome"], row["node_spread"], row["cause_nodes"]) == ("too_few_nodes", None, [])
    assert whole(network(quiet(8, 2)))["outcome"] == "too_few_transfers"
    assert whole(network(quiet(8, 3)))["outcome"] == "matched"


def test_empty_networks_and_unknown_values_have_no_active_nodes() -> None:
    layers = (Layer("rank", pl.Series("label", ["0"])), Layer("host", pl.Series("label", ["a"])))
    rows = classify_patterns(EdgeCounter(layers, ("latency",), window_edges(0.0, 1.0, 2)).result())
    assert rows.schema == PATTERN_ROWS
    assert rows["outcome"].unique().to_list() == ["too_few_nodes"]
    assert rows.select("metric", "is_whole_run", "first_window", "last_window").rows()[:3] == [
        ("time", True, 0, 2), ("time", False, 0, 1), ("time", False, 1, 2),
    ]  # fmt: skip
    sizes = classify_patterns(network(quiet(32, 20))).filter(pl.col("metric") != "time")
    assert sizes["active_node_count"].to_list() == [0] * 4


def test_zero_and_negative_values_count_in_the_lowest_bin() -> None:
    octaves = quiet(32, 20)
    octaves[:, 0] = -np.inf
    network_ = network(octaves)
    row = whole(network_)
    assert row["transfer_count"] == 640
    assert row["pattern"] == "circular"
    only = network(np.full((32, 3), -np.inf))
    assert whole(only)["outcome"] == "too_few_nodes"


def test_idle_nodes_are_ignored() -> None:
    octaves = quiet(128, 10)
    octaves[np.arange(128) // 8 % 2 == 1] += 2.0
    network_ = network(octaves, per_node=8)
    is_kept = pl.col("source") % 4 != 3
    edges = network_.edges.with_row_index("edge")
    kept = edges.filter(is_kept)["edge"].cast(pl.Int32).implode()
    idle = replace(
        network_,
        counts=network_.counts.filter(pl.col("edge").is_in(kept)),
        totals=network_.totals.filter(pl.col("edge").is_in(kept)),
    )
    row = whole(idle)
    assert (row["pattern"], row["active_node_count"]) == ("striped", 96)


def test_causes_keep_group_labels() -> None:
    octaves = quiet(16, 20)
    octaves[3] += 4.0
    labels = [f"{64 * node}-{64 * node + 63}" for node in range(16)]
    assert whole(network(octaves, labels=labels))["cause_nodes"] == ["192-255"]


def test_windows_are_classified_separately() -> None:
    octaves = quiet(64, 20)
    octaves[np.arange(64) // 8 % 2 == 1, 10:] += 2.0
    octaves[9, :10] += 4.0
    rows = classify_patterns(network(octaves, window_count=2, per_node=8)).filter(metric="time", is_whole_run=False)
    assert rows["pattern"].to_list() == ["outlier", "striped"]
    assert rows.select("first_window", "last_window").rows() == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("threshold", "value", "outcome"),
    [
        ("min_node_count", 33, "too_few_nodes"),
        ("min_transfer_count", 641, "too_few_transfers"),
        ("max_circular_octaves", 0.1, "no_match"),
    ],
)
def test_thresholds_change_the_outcome(
    monkeypatch: pytest.MonkeyPatch, threshold: str, value: float, outcome: str
) -> None:
    monkeypatch.setattr(module, "PARAMS", replace(module.PARAMS, **{threshold: value}))
    assert whole(network(quiet(32, 20)))["outcome"] == outcome


# ---- the statistics


def first_hop_nodes(network_: Network, span: int) -> Nodes:
    """Nodes of the first hop in a span, by the metric time."""
    networks = NetworkBatch.from_network(network_)
    return make_nodes(count_cells(networks, METRICS.index("time")), span, find_main_targets(networks))


def test_serial_correlations_have_the_moments_of_shuffled_rings() -> None:
    levels = np.random.default_rng(2).normal(0, 1, 24)
    levels -= levels.mean()
    highest = max(naive.serial_product(levels.tolist(), lag) for lag in range(1, 12))
    ratio, p_value, _ = module._fit_periodic_bands(levels)
    assert ratio == pytest.approx(highest / float(levels @ levels))
    shuffled = np.array(naive.shuffled_products(levels.tolist(), 3, 4000, seed=1))
    beyond = float((shuffled >= highest).mean())
    # Corrected for eleven lags.
    assert p_value == pytest.approx(min(1.0, 11 * beyond), abs=0.12)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(0, 50), min_size=12, max_size=40))
def test_band_shares_match_naive_implementation(values: list[int]) -> None:
    levels = np.array(values, dtype=float) - np.mean(values)
    bands = np.arange(len(values)) // 4
    ratio, p_value, fit = module._fit_target_bands(levels, bands)
    if float(levels @ levels) < 1e-9:
        assert (ratio, p_value) == (0.0, 1.0)
        return
    expected = naive.share_of_bands(levels.tolist(), bands.tolist())
    assert ratio == pytest.approx(max(expected, 0.0), abs=1e-6)
    assert 0.0 <= p_value <= 1.0
    assert len(np.unique(fit)) <= bands[-1] + 1


@pytest.mark.parametrize("nodes", [8, 16, 64])
def test_random_nodes_have_few_false_positives(nodes: int) -> None:
    random = np.random.default_rng(nodes)
    classified = {"striped": 0, "outlier": 0}
    for _ in range(150):
        octaves = random.normal(0, 1, nodes)[:, None] + random.normal(0, 0.5, (nodes, 10))
        values = np.floor(4 * octaves).astype(np.int64) + 1000 * np.arange(nodes)[:, None]
        cells, counts = np.unique(values, return_counts=True)
        place = (cells + 500) // 1000
        network_ = summarize_nodes(np.arange(nodes), np.arange(nodes) // 4, place, cells - 1000 * place, counts)
        view = module._make_view(network_)
        classified["striped"] += view.bands.is_clear
        classified["outlier"] += bool(len(view.outliers))
    assert classified["striped"] <= 2
    assert classified["outlier"] <= 5


def test_dense_bands_match_naive_implementation() -> None:
    octaves = np.concatenate([quiet(32, 200), quiet(32, 200) + 5.0], axis=1)
    network_ = network(octaves)
    nodes = first_hop_nodes(network_, 0)
    dense = module._find_dense_bands(nodes)
    assert len(dense) == 2
    np.testing.assert_allclose(dense.mean(axis=1) / 4.0, [-8.0, -3.0], atol=0.3)
    is_dense = [any(low <= place < high for low, high in dense.tolist()) for place in range(-60, 20)]
    assert naive.widest_run(is_dense) == np.diff(dense).max()


# ---- real measurements


def test_windows_of_a_real_run_show_its_hosts(shared_data: Path) -> None:
    import iosig.estimates.networks.builder as flow
    from iosig.answers.single.one_input import TraceInput, open_input
    from iosig.settings.model import Settings
    from iosig.streams.landing import ReadOptions
    from iosig.transforms.networks.network import NetworkParams

    (path,) = (shared_data / "darshan").glob("jlbez_IO_test5*.darshan")
    with open_input(path, Settings(), ReadOptions()) as trace:
        assert isinstance(trace, TraceInput)
        network_ = flow.build_trace_network(trace.landed, flow.Query(), NetworkParams(), None)
    rows = network_.patterns.filter(hop=0, metric="time")
    # 32 hosts of six ranks each, all of which wait in the same windows
    assert (
        rows.filter(~pl.col("is_whole_run"))["pattern"].value_counts().filter(pattern="striped")["count"].item() >= 50
    )
    assert network_.patterns.filter(hop=0, metric="size", is_whole_run=True)["pattern"].item() == "circular"
