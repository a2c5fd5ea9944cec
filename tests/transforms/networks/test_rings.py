"""The radial layout: rings and their order, edges, and crossings against the naive implementation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.networks import rings
from iosig.transforms.networks.network import COUNTS, EDGES, TIMELINE, TOTALS, Layer, Network
from iosig.transforms.networks.rings import RadialLayout, Ring, compute_layout, edge_angles, unwrap_end_angles
from tests.budget import examples
from tests.naive.networks import rings as naive

TURN = 2 * np.pi
Pairs = Sequence[tuple[int, int]]


def crossing_count(network: Network, make_layout: RadialLayout) -> int:
    """Number of crossing pairs of edges in a layout."""
    total = 0
    for hop, (outer, inner) in enumerate(zip(make_layout.rings[:-1], make_layout.rings[1:], strict=True)):
        part = network.edges.filter(network.edges["hop"] == hop)
        total += rings._count_crossings(
            rings._NodeOrder.from_ring(outer),
            rings._NodeOrder.from_ring(inner),
            part["source"].to_numpy(),
            part["target"].to_numpy(),
        )
    return total


def network(counts: Sequence[int], *hops: Pairs) -> Network:
    rows = [(hop, source, target) for hop, pairs in enumerate(hops) for source, target in sorted(set(pairs))]
    layers = tuple(
        Layer(f"layer{number}", pl.Series([str(node) for node in range(count)], dtype=pl.String))
        for number, count in enumerate(counts)
    )
    counts_frame, totals, timeline = (pl.DataFrame(schema=schema) for schema in (COUNTS, TOTALS, TIMELINE))
    edges = pl.DataFrame(rows, schema=EDGES, orient="row")
    return Network(
        layers, ("latency",) * (len(counts) - 1), np.linspace(0.0, 8.0, 9), edges, counts_frame, totals, timeline
    )


def make_layout(*orders: Sequence[int], shift: Sequence[float] = ()) -> RadialLayout:
    """Layout with these orders; the first node of each ring begins `shift` segments after the top."""
    rings = []
    for number, order in enumerate(orders):
        count = len(order)
        begins = np.empty(count)
        begins[list(order)] = (np.arange(count) + (shift[number] if shift else 0.0)) * TURN / count
        rings.append(Ring(0.1, 1.0 - number / 10, np.array(order), begins, begins + TURN / count))
    return RadialLayout(tuple(rings))


@st.composite
def networks(draw: st.DrawFn, max_layers: int = 4) -> Network:
    counts = draw(st.lists(st.integers(1, 7), min_size=2, max_size=max_layers))
    hops = [
        draw(st.lists(st.tuples(st.integers(0, outer - 1), st.integers(0, inner - 1)), max_size=14))
        for outer, inner in pairwise(counts)
    ]
    return network(counts, *hops)


def is_same_angle(angle: float, other: float) -> bool:
    return bool(abs(np.mod(angle - other + np.pi, TURN) - np.pi) < 1e-9)


# ---- rings


@settings(max_examples=examples(25), deadline=None)
@given(networks())
def test_rings_are_complete_and_nested(network_: Network) -> None:
    rings = compute_layout(network_).rings
    assert rings[0].outer_radius == 1.0
    assert rings[-1].inner_radius == 0.0
    for layer, ring in zip(network_.layers, rings, strict=True):
        assert sorted(ring.order.tolist()) == list(range(layer.node_count))
        begins, ends = ring.begins[ring.order], ring.ends[ring.order]
        assert ((begins >= 0) & (begins < TURN)).all()
        assert (np.diff(begins) > 0).all()
        assert (ends > begins).all()
        # Segments do not overlap, and neither do the last and the first segment.
        assert (np.append(begins[1:], begins[0] + TURN) >= ends - 1e-9).all()
        assert np.ptp(ends - begins) < 1e-9
    for outer, inner in pairwise(rings):
        assert outer.inner_radius > inner.outer_radius


@pytest.mark.parametrize("count", [2, 3, 4, 5, 9, 40])
def test_outer_gaps_are_larger_for_any_number_of_layers(count: int) -> None:
    rings = compute_layout(network([2] * count)).rings
    gaps = np.array([outer.inner_radius - inner.outer_radius for outer, inner in pairwise(rings)])
    assert (gaps > 0).all()
    assert (np.diff(gaps) < 0).all()
    assert rings[-1].outer_radius > 0.05


@pytest.mark.parametrize(("count", "has_seams"), [(1, False), (4, True), (300, True), (8192, False)])
def test_seams_separate_only_long_segments(count: int, has_seams: bool) -> None:
    ring = compute_layout(network([count, 1])).rings[0]
    assert bool((ring.ends - ring.begins < TURN / count * (1 - 1e-9)).all()) == has_seams


def test_ranks_are_ordered_clockwise_from_the_top() -> None:
    ring = compute_layout(network([4, 2], [(3, 0), (0, 1)])).rings[0]
    assert ring.order.tolist() == [0, 1, 2, 3]
    assert ring.middles == pytest.approx(TURN * (np.arange(4) + 0.5) / 4)


def test_single_node_spans_the_ring() -> None:
    ring = compute_layout(network([1, 1], [(0, 0)])).rings[1]
    assert ring.ends - ring.begins == pytest.approx([TURN])


def test_layers_without_nodes_have_empty_rings() -> None:
    rings = compute_layout(network([0, 0, 0])).rings
    assert [len(ring.order) for ring in rings] == [0, 0, 0]
    assert all(len(ring.middles) == 0 for ring in rings)


def test_single_layer_is_rejected() -> None:
    with pytest.raises(ValueError, match="two or more layers"):
        compute_layout(network([3]))


# ---- order


def tree(rank_count: int, hosts: np.ndarray, target_count: int) -> Network:
    """Blocks of ranks on hosts in this order; every host uses all targets."""
    host_count = len(hosts)
    ranks = [(rank, int(hosts[rank * host_count // rank_count])) for rank in range(rank_count)]
    return network([rank_count, host_count, target_count], ranks, [
        (host, target) for host in range(host_count) for target in range(target_count)
    ])  # fmt: skip


def test_hosts_are_near_their_ranks() -> None:
    hosts = np.random.default_rng(5).permutation(16)
    angle = tree(128, hosts, 4)
    result = compute_layout(angle)
    assert crossing_count(network([128, 16], [(s, t) for h, s, t in angle.edges.iter_rows() if h == 0]),
                       RadialLayout(result.rings[:2])) == 0  # fmt: skip
    for block, host in enumerate(hosts.tolist()):
        assert is_same_angle(result.rings[1].middles[host], TURN * (block + 0.5) / 16)


def test_innermost_nodes_keep_their_order() -> None:
    result = compute_layout(tree(64, np.arange(8)[::-1], 5))
    assert result.rings[2].order.tolist() == [0, 1, 2, 3, 4]
    assert result.rings[2].begins[0] < 0.1


def test_innermost_nodes_move_if_this_saves_many_crossings(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = np.random.default_rng(2).permutation(10)
    angle = network([40, 10], [(rank, int(targets[rank // 4])) for rank in range(40)])
    assert crossing_count(angle, compute_layout(angle)) == 0
    monkeypatch.setattr(rings, "PARAMS", replace(rings.PARAMS, min_inner_gain_ratio=1.0))
    kept = compute_layout(angle)
    assert kept.rings[1].order.tolist() == list(range(10))
    assert crossing_count(angle, kept) > 0


def test_blocks_may_extend_across_the_top() -> None:
    """The host of ranks 60 to 3 is at the top, not at the mean of their numbers."""
    ranks = [(rank, ((rank + 4) % 64) // 8) for rank in range(64)]
    angle = network([64, 8, 1], ranks, [(host, 0) for host in range(8)])
    result = compute_layout(angle)
    assert is_same_angle(result.rings[1].middles[0], 0.0)
    assert crossing_count(angle, result) == 0


@settings(max_examples=examples(25), deadline=None)
@given(networks())
def test_layout_has_no_more_crossings_than_numerical_order(network_: Network) -> None:
    by_number = make_layout(*(range(layer.node_count) for layer in network_.layers))
    assert crossing_count(network_, compute_layout(network_)) <= crossing_count(network_, by_number)


def test_layout_is_deterministic() -> None:
    generator = np.random.default_rng(8)
    angle = network([50, 9, 4], [(s, int(generator.integers(9))) for s in range(50)],
                  [(s, t) for s in range(9) for t in range(4) if generator.random() < 0.5])  # fmt: skip
    for first, second in zip(compute_layout(angle).rings, compute_layout(angle).rings, strict=True):
        assert first.begins.tobytes() == second.begins.tobytes()


# ---- crossings


@settings(max_examples=examples(80), deadline=None)
@given(
    st.permutations(range(6)),
    st.permutations(range(5)),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=20, unique=True),
    st.sampled_from([0.0, 0.25, 0.375]),
)
def test_crossings_match_naive_implementation(outer: list[int], inner: list[int], pairs: Pairs, shift: float) -> None:
    # Shifted so that no edge spans exactly half a turn, which is ambiguous.
    given_layout = make_layout(outer, inner, shift=(0.0, shift))
    at_outer = [Fraction(2 * outer.index(node) + 1, 12) for node in range(6)]
    at_inner = [Fraction(2 * inner.index(node) + 1, 10) + Fraction(shift) / 5 for node in range(5)]
    if any(abs(at_inner[target] - at_outer[source]) % 1 == Fraction(1, 2) for source, target in pairs):
        return
    assert crossing_count(network([6, 5], pairs), given_layout) == naive.crossings(at_outer, at_inner, list(pairs))


def test_parallel_edges_do_not_cross() -> None:
    # Each edge advances by one segment; then two are swapped.
    assert crossing_count(network([3, 3], [(s, (s + 1) % 3) for s in range(3)]), make_layout(range(3), range(3))) == 0
    assert crossing_count(network([4, 4], [(0, 1), (1, 0)]), make_layout(range(4), range(4))) == 1


def test_crossings_of_many_edges_are_counted() -> None:
    """Blocks of k edges, swapped with the adjacent block: k * k crossings for each pair of blocks."""
    ranks = [(rank, (rank // 16) ^ 1) for rank in range(8192)]
    assert crossing_count(network([8192, 512], ranks), make_layout(range(8192), range(512))) == 256 * 16 * 16


# ---- edges


def test_forward_edges_are_not_unwrapped() -> None:
    """The second case as printed in the paper, without the minus sign, would add a turn."""
    assert unwrap_end_angles(np.array([0.0, 0.0]), np.array([0.5, 3.0])).tolist() == [0.5, 3.0]


def test_edge_of_half_a_turn_goes_counterclockwise() -> None:
    assert unwrap_end_angles(np.zeros(1), np.full(1, np.pi)) == pytest.approx([-np.pi])
    assert unwrap_end_angles(np.full(1, np.pi), np.zeros(1)) == pytest.approx([0.0])


def test_edges_to_a_single_node_are_radial() -> None:
    rings = compute_layout(network([4, 1], [(rank, 0) for rank in range(4)])).rings
    ranks, zeros = np.arange(4), np.zeros(4, dtype=np.int64)
    began, ceased = edge_angles(rings[0], rings[1], ranks, zeros)
    assert began.tolist() == ceased.tolist() == rings[0].middles.tolist()
    rings = compute_layout(network([1, 4], [(0, target) for target in range(4)])).rings
    began, ceased = edge_angles(rings[0], rings[1], zeros, ranks)
    assert began.tolist() == ceased.tolist() == rings[1].middles.tolist()
