"""Planted systems contain the planted pattern, are deterministic, and keep requests complete."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.studies.networks.planted import (
    PLANTED,
    Planted,
    SystemShape,
    draw_shape,
    generate_requests,
    generate_transfers,
    plant_network,
    plant_pattern,
)
from iosig.transforms.networks.patterns import classify_patterns

SHAPE = SystemShape(rank_count=64, io_node_count=8, target_count=4, requests_per_rank=12)


@pytest.mark.parametrize("pattern", PLANTED)
def test_planted_network_is_determined_by_the_seed(pattern: Planted) -> None:
    first, second = (plant_network(pattern, np.random.default_rng(5), 64, 8, 4, 12, window_count=4) for _ in range(2))
    assert first.counts.equals(second.counts)
    assert first.totals.equals(second.totals)
    assert not first.counts.equals(
        plant_network(pattern, np.random.default_rng(6), 64, 8, 4, 12, window_count=4).counts
    )
    assert [layer.name for layer in first.layers] == ["rank", "host", "target"]
    assert [layer.node_count for layer in first.layers] == [64, 8, 4]
    assert classify_patterns(first).height == 2 * 3 * 5


@pytest.mark.parametrize("pattern", PLANTED)
def test_requests_reach_the_targets_through_the_node_of_their_rank(pattern: Planted) -> None:
    system = plant_pattern(pattern, np.random.default_rng(3), SHAPE)
    transfers = list(generate_transfers(system, np.random.default_rng(4)))
    outer, inner = ([one for one in transfers if one.hop == hop] for hop in (0, 1))
    assert sum(len(one.source) for one in outer) == system.request_count.sum()
    for one in outer:
        np.testing.assert_array_equal(one.target, one.source // 8)
        assert (one.time_s > 0).all()
        assert (one.size_bytes > 0).all()
        assert ((one.at_s >= 0) & (one.at_s <= SHAPE.run_s)).all()
    # A stripe has at most a megabyte, and all stripes together have the bytes of the requests.
    assert max(one.size_bytes.max() for one in inner) <= 1 << 20
    assert sum(one.size_bytes.sum() for one in inner) == sum(one.size_bytes.sum() for one in outer)


@pytest.mark.parametrize("chunk", [1, 100, 1 << 17])
def test_request_numbers_continue_across_chunks(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iosig.studies.networks.planted._CHUNK_REQUESTS", chunk)
    system = plant_pattern("outlier", np.random.default_rng(8), SHAPE)
    pieces = list(generate_requests(system, np.random.default_rng(9)))
    request = np.concatenate([piece.request for piece in pieces])
    np.testing.assert_array_equal(request, np.arange(system.request_count.sum()))
    ranks = np.concatenate([piece.rank for piece in pieces])
    np.testing.assert_array_equal(np.bincount(ranks, minlength=64), system.request_count)


def test_drawn_shapes_range_from_16_to_8192_ranks() -> None:
    generator = np.random.default_rng(1)
    shapes = [draw_shape(generator, 1 << 17) for _ in range(300)]
    assert min(shape.rank_count for shape in shapes) == 16
    assert max(shape.rank_count for shape in shapes) == 8192
    assert all(3 <= shape.requests_per_rank <= 1000 for shape in shapes)
    assert all(shape.rank_count * shape.requests_per_rank <= 1 << 17 for shape in shapes)
    assert all(4 <= shape.io_node_count <= shape.rank_count for shape in shapes)


@pytest.mark.parametrize("seed", range(5))
def test_planted_causes_are_present(seed: int) -> None:
    generator = np.random.default_rng(seed)
    outlier = plant_pattern("outlier", generator, SHAPE)
    assert 1 <= outlier.is_cause.sum() <= 4
    assert outlier.level_octaves[outlier.is_cause].min() > outlier.level_octaves[~outlier.is_cause].max()
    striped = plant_pattern("striped", generator, SHAPE)
    assert 0 < striped.is_cause.sum() < 64
    assert striped.level_octaves[striped.is_cause].mean() - striped.level_octaves[~striped.is_cause].mean() > 0.5
    circular = plant_pattern("circular", generator, SHAPE)
    assert np.diff(circular.band_octaves).min(initial=9.0) >= 4 * circular.spread_octaves[0]
    assert not circular.is_cause.any()


def test_bottleneck_is_a_single_request_of_rank_0() -> None:
    system = plant_pattern("bottleneck", np.random.default_rng(2), SHAPE)
    (requests,) = generate_requests(system, np.random.default_rng(3))
    largest = int(np.argmax(requests.size_bytes))
    assert requests.rank[largest] == 0
    of_rank = np.bincount(requests.rank, requests.size_bytes)
    assert requests.size_bytes[largest] == system.huge_bytes > of_rank[1:].max()
