"""Dataclasses of networks: derived values and validation."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from iosig.transforms.networks.network import (
    COUNTS,
    EDGES,
    METRICS,
    TIME_KINDS,
    TIMELINE,
    TOTALS,
    Layer,
    Network,
    NetworkParams,
    TimeKind,
)


def layer(name: str, *labels: str, group_size: int = 1, member_count: int = -1) -> Layer:
    return Layer(name, pl.Series(list(labels), dtype=pl.String), group_size, member_count)


def network(*layers: Layer, time_kinds: tuple[TimeKind, ...]) -> Network:
    frames = (EDGES.to_frame(), COUNTS.to_frame(), TOTALS.to_frame(), TIMELINE.to_frame())
    return Network(layers, time_kinds, np.linspace(0.0, 8.0, 5), *frames)


def test_node_counts_as_one_member_unless_grouped() -> None:
    plain, grouped = layer("rank", "0", "1", "2"), layer("rank", "0-127", "128-255", group_size=128, member_count=250)
    assert (plain.node_count, plain.member_count, plain.group_size) == (3, 3, 1)
    assert (grouped.node_count, grouped.member_count) == (2, 250)


def test_window_and_hop_counts_follow_from_the_network() -> None:
    found = network(layer("rank", "0"), layer("host", "a"), layer("target", "0"), time_kinds=("latency", "write_time"))
    assert (found.window_count, found.hop_count) == (4, 2)


def test_missing_time_kinds_are_rejected() -> None:
    with pytest.raises(ValueError, match="2 layers have 1 hops, not 2"):
        network(layer("rank", "0"), layer("host", "a"), time_kinds=("latency", "latency"))


def test_dataclasses_are_frozen() -> None:
    found = network(layer("rank", "0"), layer("host", "a"), time_kinds=("service_time",))
    for form, name in ((found, "edges"), (found.layers[0], "name"), (NetworkParams(), "window_count")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(form, name, None)


def test_metric_and_time_kind_names_are_stable() -> None:
    assert METRICS == ("time", "size", "bandwidth")
    assert TIME_KINDS == ("service_time", "latency", "write_time")
    assert COUNTS.names() == ["window", "edge", "metric", "bin", "count"]
