"""Networks of request events: latencies per hop, clock skew, devices, and outlier requests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iosig.answers.single.networks import NetworkInput, read_network
from iosig.estimates.networks import events as event_networks
from iosig.estimates.networks.builder import Query
from iosig.settings.model import Settings
from iosig.transforms.networks.network import NetworkParams
from iosig.warehouse.errors import InputRefused, UsageError
from tests.request_event_files import Plan, planted, write

PLAN = Plan(rank_count=16, io_node_count=4, storage_node_count=2, requests_per_rank=8)


def network_of_file(path: Path, asked: Query | None = None) -> NetworkInput:
    return read_network(path, Settings.model_construct(), asked or Query(), NetworkParams(window_count=8))


def times_of(found: NetworkInput) -> dict[int, float]:
    """Return the mean time of each hop."""
    hops = found.network.edges.with_row_index("edge").cast({"edge": pl.Int32})
    sums = found.network.totals.join(hops, on="edge").group_by("hop")
    means = sums.agg(pl.col("transfer_time_s").sum() / pl.col("transfer_count").sum())
    return dict(means.iter_rows())


def test_each_hop_has_its_latency(tmp_path: Path) -> None:
    write(tmp_path / "events.csv", PLAN)
    found = network_of_file(tmp_path / "events.csv")
    assert [(layer.name, layer.node_count) for layer in found.network.layers] == [
        ("rank", 16),
        ("io_node", 4),
        ("storage", 2),
        ("device", 2),
    ]
    assert found.network.time_kinds == ("latency", "latency", "write_time")
    assert found.made.request_count == 16 * 8
    assert times_of(found) == pytest.approx(
        {0: PLAN.first_latency_s, 1: PLAN.inner_latency_s, 2: PLAN.write_time_s}, rel=0.02
    )


def test_bytes_are_equal_at_every_hop(tmp_path: Path) -> None:
    write(tmp_path / "events.parquet", PLAN)
    found = network_of_file(tmp_path / "events.parquet")
    hops = found.network.edges.with_row_index("edge").cast({"edge": pl.Int32})
    sums = found.network.totals.join(hops, on="edge").group_by("hop").agg(pl.col("written_bytes").sum())
    assert set(sums["written_bytes"]) == {16 * 8 * float(PLAN.request_bytes)}


def test_clock_skew_is_corrected_before_latencies(tmp_path: Path) -> None:
    """A skew of 50 ms would hide latencies of 2 ms; the remaining error is the spread of the opens."""
    plan = Plan(rank_count=16, io_node_count=4, storage_node_count=2, requests_per_rank=8, skew_s=0.05)
    write(tmp_path / "events.csv", plan)
    found = network_of_file(tmp_path / "events.csv")
    assert found.made.skew is not None
    assert found.made.skew.offset_s is not None
    assert found.made.skew.offset_s == pytest.approx(planted(plan).offset_s, abs=0.005)
    assert found.made.negative_time_count == 0
    assert times_of(found)[0] == pytest.approx(plan.first_latency_s, rel=0.2)
    assert any("up to 5" in note for note in found.made.notes)


def shift_ranks(plan: Plan, offset_s: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pl.DataFrame:
    """Return the events of a plan with the ranks' clocks ahead of all others by known times."""
    events = planted(plan).events
    shift_s = pl.Series(offset_s).gather(events["rank"])
    is_outer = pl.col("layer_number") == 0
    return events.with_columns(
        pl.when(is_outer).then(pl.col(name) + shift_s).otherwise(name) for name in ("start_s", "end_s")
    ).sort("start_s")


@pytest.mark.parametrize("ahead_count", [0, 5, 8, 11, 16])
def test_clocks_20_ms_apart_leave_no_hop_negative(tmp_path: Path, ahead_count: int) -> None:
    """If most ranks are 20 ms ahead, the median rank is too, and all latencies of 2 ms would be negative."""
    plan = Plan(rank_count=16, io_node_count=4, storage_node_count=2, requests_per_rank=8, latency_jitter_s=0.002)
    events = shift_ranks(plan, np.where(np.arange(16) < ahead_count, 0.02, -0.02))
    events.write_parquet(tmp_path / "events.parquet")
    causal = network_of_file(tmp_path / "events.parquet")
    assert causal.made.negative_time_count == 0
    params = NetworkParams(clock_center="median")
    median = read_network(tmp_path / "events.parquet", Settings(), Query(), params)
    assert median.made.negative_time_count == (16 * 8 if ahead_count > 8 else 0)
    is_moved = ahead_count > 8
    assert any("common clock was moved" in note for note in causal.made.notes) == is_moved
    if is_moved:
        # the remaining error is the shortest latency, and what the opens differ by
        assert times_of(causal)[0] == pytest.approx(0.001, abs=0.0006)


def test_negative_latencies_are_counted_and_noted(tmp_path: Path) -> None:
    """Without collective opens, the clock skew cannot be estimated."""
    plan = Plan(rank_count=16, io_node_count=4, storage_node_count=2, requests_per_rank=8, skew_s=0.05)
    events = planted(plan).events.filter(pl.col("event") != "open")
    events.write_csv(tmp_path / "events.csv")
    found = network_of_file(tmp_path / "events.csv")
    assert found.made.skew is not None
    assert found.made.skew.outcome == "no_collective_open"
    assert found.made.negative_time_count > 0
    assert any("are negative" in note for note in found.made.notes)


def test_slow_storage_node_is_found(tmp_path: Path) -> None:
    write(tmp_path / "events.csv", Plan(16, 4, 4, 8, slow_storage_node=2))
    assert network_of_file(tmp_path / "events.csv").nodes("device")["node"][0] == "2"


def test_chunk_size_does_not_change_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "events.csv", PLAN)
    whole = network_of_file(tmp_path / "events.csv").network
    monkeypatch.setattr(event_networks, "_CHUNK_ROWS", 100)
    parts = network_of_file(tmp_path / "events.csv").network
    for name in ("edges", "counts", "totals", "timeline"):
        assert getattr(whole, name).equals(getattr(parts, name)), name


def test_huge_request_is_a_bottleneck_with_its_nodes(tmp_path: Path) -> None:
    events = planted(PLAN).events
    first = events.filter(pl.col("event") == "request", pl.col("rank") == 3)["request_id"][0]
    is_it = (pl.col("rank") == 3) & (pl.col("request_id") == first) & (pl.col("event") == "request")
    huge = events.with_columns(pl.when(is_it).then(4e12).otherwise("bytes").alias("bytes"))
    huge.write_csv(tmp_path / "events.csv")
    found = network_of_file(tmp_path / "events.csv").made.bottlenecks.filter(pl.col("metric") == "size")
    (row,) = found.iter_rows(named=True)
    assert (row["source_layer"], row["source_node"], row["target_layer"]) == ("rank", "3", "io_node")
    assert row["value"] == 4e12
    taken = events.filter(pl.col("layer") == "io_node", pl.col("rank") == 3, pl.col("request_id") == first)
    assert row["target_node"] == taken["node"][0]


def test_layers_of_an_event_trace_cannot_be_chosen(tmp_path: Path) -> None:
    write(tmp_path / "events.csv", PLAN)
    with pytest.raises(UsageError, match="its own layers"):
        network_of_file(tmp_path / "events.csv", Query(("rank", "host")))


def test_single_layer_is_refused(tmp_path: Path) -> None:
    planted(PLAN).events.filter(pl.col("layer") == "application").write_csv(tmp_path / "events.csv")
    with pytest.raises(InputRefused, match="only one layer"):
        network_of_file(tmp_path / "events.csv")
