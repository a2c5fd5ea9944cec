"""Compute the radial layout of a network: concentric rings of node segments, ordered so that few edges cross.

The layout follows Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13),
section IV, IV.B and Figure 3. Each layer is a ring. The layer with the most nodes is outermost; the innermost layer is
a circle of sectors. The segments of a ring have equal widths, as in the paper. The outermost nodes are in numerical
order, clockwise from the top. The inner rings are ordered to reduce crossings. The innermost ring is reordered only if
this saves many crossings; otherwise its nodes are in numerical order, "in the order detected".

Angles are in radians, clockwise from 0 at the top. The outer radius of the outermost ring is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.networks.network import Network

_TURN = 2 * np.pi
#: length below which a mean resultant vector has no direction, since the neighbors are spread evenly around the ring
_MIN_RESULTANT = 1e-6


@dataclass(frozen=True, slots=True)
class LayoutParams:
    """Proportions of the rings, relative to the radius of the picture, and limits of the search for an order.

    Attributes
    ----------
    outer_ring_width, ring_width
        Width of the outermost ring, and width of each inner ring, which contains labels.
    max_total_ring_width
        Maximum total width of all rings.
    gap_ratio
        Width of a gap between rings, relative to the next gap outward. Gaps widen outward, since the longest edges are
        there.
    seam_width, min_segment_length
        Space between two segments, and minimum length of segments that are separated by such a space, along the ring.
    min_inner_gain_ratio
        Minimum fraction of crossings that a reordering of the innermost ring must save.
    max_sweep_count
        Maximum number of passes over the rings.
    max_visit_count
        Maximum number of edge evaluations, to limit the run time.
    """

    outer_ring_width: float = 0.035
    ring_width: float = 0.05
    max_total_ring_width: float = 0.3
    gap_ratio: float = 0.72
    seam_width: float = 0.004
    min_segment_length: float = 0.016
    min_inner_gain_ratio: float = 0.25
    max_sweep_count: int = 12
    max_visit_count: int = 2_000_000


PARAMS = LayoutParams()


@dataclass(frozen=True, slots=True)
class Ring:
    """Ring of a layer with n nodes.

    Attributes
    ----------
    inner_radius, outer_radius
        Radii of the ring; a circle of sectors has an inner radius of 0.
    order : (n,)
        Nodes clockwise from the top.
    begins, ends : (n,)
        Start and end angle of each segment, by node number: 0 <= begins < 2 pi, begins < ends <= begins + 2 pi.
    """

    inner_radius: float
    outer_radius: float
    order: Ints
    begins: Reals
    ends: Reals

    @property
    def middles(self) -> Reals:
        """Return the central angle of each segment, by node number."""
        middles: Reals = (self.begins + self.ends) / 2
        return middles


@dataclass(frozen=True, slots=True)
class RadialLayout:
    """Rings of a network's layers, from outermost to innermost."""

    rings: tuple[Ring, ...]


# ---- edges


def unwrap_end_angles(start_angle: Reals, end_angle: Reals) -> Reals:
    """Unwrap end angles so that each edge takes the shorter way around the ring.

    Parameters
    ----------
    start_angle, end_angle : (edges,)
        Angles of each edge at the outer ring and at the inner ring.

    Returns
    -------
    (edges,)
        End angles plus a multiple of 2 pi, so that the difference from the start angle is in [-pi, pi).

    Notes
    -----
    See section IV.B. The paper prints the second case as "+ 2 pi, if (end - start) < pi", which would add a turn to
    every forward edge. It must read "< -pi".
    """
    unwrapped: Reals = end_angle - _TURN * np.floor((end_angle - start_angle) / _TURN + 0.5)
    return unwrapped


def edge_angles(outer: Ring, inner: Ring, source: Ints, target: Ints) -> tuple[Reals, Reals]:
    """Return the angles at which edges start on the outer ring and end on the inner ring: the centers of segments.

    Parameters
    ----------
    outer, inner
        Rings of two adjacent layers.
    source, target : (n,)
        Node numbers of each edge.

    Returns
    -------
    tuple[Reals, Reals]
        Start and end angles. Edges to a node that is alone on its ring are radial. Otherwise, they would all lead to
        the same point, and wind around up to half the circle.
    """
    start, end = outer.middles[source], inner.middles[target]
    if len(inner.order) == 1:
        return start, start.copy()
    return (end.copy(), end) if len(outer.order) == 1 else (start, end)


# ---- layout


def compute_layout(network: Network) -> RadialLayout:
    """Arrange the nodes of a network on rings with few edge crossings.

    Parameters
    ----------
    network
        Network of two or more layers.

    Returns
    -------
    RadialLayout
        One ring per layer.

    Raises
    ------
    ValueError
        If the network has a single layer.

    References
    ----------
    Sigovan et al., IPDPS'13, section IV.B. The sweeps that further improve the order are our own.
    """
    if len(network.layers) < 2:
        raise ValueError("a network needs two or more layers")
    counts = [layer.node_count for layer in network.layers]
    edges = tuple(
        (part["source"].to_numpy().astype(np.int64), part["target"].to_numpy().astype(np.int64))
        for part in (network.edges.filter(network.edges["hop"] == hop) for hop in range(network.hop_count))
    )
    orders = _minimize_crossings(counts, edges)
    return RadialLayout(
        tuple(_make_ring(order, *radii) for order, radii in zip(orders, _compute_radii(len(counts)), strict=True))
    )


def _compute_radii(count: int) -> list[tuple[float, float]]:
    """Compute the inner and outer radii of `count` rings; the gaps fill the remaining space and widen outward."""
    widths = [PARAMS.outer_ring_width] + [PARAMS.ring_width] * (count - 2)
    width = np.minimum(widths, PARAMS.max_total_ring_width / (count - 1))
    circle_radius = 0.08 + 0.14 / (count - 1)
    shares = PARAMS.gap_ratio ** np.arange(count - 1)
    gaps = (1.0 - circle_radius - width.sum()) * shares / shares.sum()
    outer_radii = 1.0 - np.concatenate([[0.0], np.cumsum(gaps + width)[:-1]])
    return [*zip((outer_radii - width).tolist(), outer_radii.tolist(), strict=True), (0.0, circle_radius)]


def _make_ring(order: _NodeOrder, inner_radius: float, outer_radius: float) -> Ring:
    count = order.node_count
    width = _TURN / max(count, 1)
    # seams of short segments would be invisible
    has_seam = count > 1 and width * outer_radius >= PARAMS.min_segment_length
    seam = PARAMS.seam_width / outer_radius if has_seam else 0.0
    middles = order.angles
    begins = np.mod(middles - (width - seam) / 2, _TURN)
    # the remainder of a tiny negative angle rounds to a full turn
    begins[begins >= _TURN] = 0.0
    return Ring(inner_radius, outer_radius, np.argsort(begins, kind="stable"), begins, begins + (width - seam))


# ---- the order of nodes


@dataclass(frozen=True, slots=True)
class _NodeOrder:
    """Positions of a ring's nodes clockwise (0 to n - 1), and the angle where the first segment begins."""

    positions: Ints
    start_angle: float = 0.0

    @classmethod
    def from_ring(cls, ring: Ring) -> _NodeOrder:
        positions = np.empty(len(ring.order), dtype=np.int64)
        positions[ring.order] = np.arange(len(ring.order))
        first = float(ring.middles[ring.order[0]]) - np.pi / len(ring.order) if len(ring.order) else 0.0
        return cls(positions, first)

    @classmethod
    def by_angle(cls, angles: Reals) -> _NodeOrder:
        positions = np.empty(len(angles), dtype=np.int64)
        positions[np.argsort(np.mod(angles, _TURN), kind="stable")] = np.arange(len(angles))
        return cls(positions)

    @property
    def node_count(self) -> int:
        return len(self.positions)

    @property
    def angles(self) -> Reals:
        """Return the central angles of the segments, within one turn from the start of the first segment."""
        angles = self.start_angle + (self.positions.astype(np.float64) + 0.5) * (_TURN / max(self.node_count, 1))
        return angles.astype(np.float64, copy=False)


_Edges = tuple[tuple[Ints, Ints], ...]
_Rings = tuple[_NodeOrder, ...]


def _minimize_crossings(counts: list[int], edges: _Edges) -> _Rings:
    """Search for orders with few crossings; keep the innermost ring's order unless a change saves many crossings."""
    start = _Search(tuple(_NodeOrder(np.arange(count)) for count in counts), edges)
    fixed, free = (_sweep(start, range(1, len(counts) - is_fixed)) for is_fixed in (1, 0))
    return (free if free.cost[0] < (1.0 - PARAMS.min_inner_gain_ratio) * fixed.cost[0] else fixed).rings


@dataclass(frozen=True, slots=True)
class _Search:
    """State of the rings during the search; its cost is the number of crossings, then the total edge length."""

    rings: _Rings
    edges: _Edges

    @property
    def cost(self) -> tuple[int, float]:
        return self.cost_at([hop for hop in range(len(self.edges)) if self._can_cross(hop)])

    def _can_cross(self, hop: int) -> bool:
        # edges to a node that is alone on its ring are radial
        return min(ring.node_count for ring in self.rings[hop : hop + 2]) > 1

    def cost_at(self, hops: list[int]) -> tuple[int, float]:
        crossings, length = 0, 0.0
        for hop in hops:
            outer, inner = self.rings[hop : hop + 2]
            source, target = self.edges[hop]
            crossings += _count_crossings(outer, inner, source, target)
            start = outer.angles[source]
            length += float(np.abs(unwrap_end_angles(start, inner.angles[target]) - start).sum())
        return crossings, length

    def adjacent_hops(self, layer: int) -> list[int]:
        """Return the hops adjacent to a layer in which edges can cross."""
        return [hop for hop in (layer - 1, layer) if 0 <= hop < len(self.edges) and self._can_cross(hop)]

    def with_ring(self, layer: int, order: _NodeOrder) -> _Search:
        return replace(self, rings=(*self.rings[:layer], order, *self.rings[layer + 1 :]))

    def neighbor_angles(self, layer: int, hops: list[int]) -> tuple[Ints, Reals]:
        """Return, for each edge of a layer, the node in this layer and the angle of the node at the other end."""
        nodes, angles = [], []
        for hop in hops:
            source, target = self.edges[hop]
            is_source = hop == layer
            nodes.append(source if is_source else target)
            angles.append(self.rings[hop + is_source].angles[target if is_source else source])
        return np.concatenate(nodes), np.concatenate(angles)


def _sweep(start: _Search, layers: range) -> _Search:
    """Reorder the layers by their neighbors, repeatedly, until neither crossings nor edge lengths decrease."""
    best = start
    edge_count = sum(len(source) for source, _ in start.edges)
    visits_left = PARAMS.max_visit_count
    for _ in range(PARAMS.max_sweep_count):
        is_better = False
        for layer in layers:
            hops = best.adjacent_hops(layer)
            best_cost = best.cost_at(hops)
            visits_left -= edge_count
            for candidate in _propose_orders(best, layer, hops):
                visits_left -= edge_count
                cost = candidate.cost_at(hops)
                if cost[0] < best_cost[0] or (cost[0] == best_cost[0] and cost[1] < best_cost[1] * (1 - 1e-9)):
                    best, best_cost, is_better = candidate, cost, True
        if not is_better or visits_left < 0:
            break
    return best


def _propose_orders(state: _Search, layer: int, hops: list[int]) -> Iterator[_Search]:
    """Yield states with a layer ordered by the mean or median angle of its outer, inner, or all neighbors."""
    current = state.rings[layer].angles
    for selected_hops in [[hop] for hop in hops] + ([hops] if len(hops) > 1 else []):
        nodes, angles = state.neighbor_angles(layer, selected_hops)
        means = _mean_angles(nodes, angles, current)
        for target in (means, means + _median_offsets(nodes, angles - means[nodes], len(current))):
            yield _rotate_ring(state.with_ring(layer, _NodeOrder.by_angle(target)), layer, hops)


def _mean_angles(nodes: Ints, angles: Reals, current: Reals) -> Reals:
    """Compute the circular mean of each node's neighbor angles; the current angle if the mean has no direction."""
    count = len(current)
    sines, cosines = (np.bincount(nodes, weights=part, minlength=count) for part in (np.sin(angles), np.cos(angles)))
    resultants = np.hypot(sines, cosines) / np.maximum(np.bincount(nodes, minlength=count), 1)
    return np.where(resultants > _MIN_RESULTANT, np.arctan2(sines, cosines), current)


def _median_offsets(nodes: Ints, offsets: Reals, count: int) -> Reals:
    """Compute the median of each node's angular offsets, wrapped to [-pi, pi); 0 for nodes without offsets."""
    wrapped = unwrap_end_angles(np.zeros(len(offsets)), offsets)
    order = np.lexsort((wrapped, nodes))
    members = np.bincount(nodes, minlength=count)
    firsts = np.cumsum(members) - members
    lower, upper = firsts + (members - 1) // 2, firsts + members // 2
    medians = np.zeros(count)
    is_any = members > 0
    medians[is_any] = (wrapped[order[lower[is_any]]] + wrapped[order[upper[is_any]]]) / 2
    return medians


def _rotate_ring(state: _Search, layer: int, hops: list[int]) -> _Search:
    """Rotate a ring to shorten its edges: by their mean offset, then by the median of the remaining offsets."""
    order = state.rings[layer]
    nodes, angles = state.neighbor_angles(layer, hops)
    offsets = angles - order.angles[nodes]
    zeros = np.zeros(len(nodes), dtype=np.int64)
    mean = _mean_angles(zeros, offsets, np.zeros(1))
    rotation = float((mean + _median_offsets(zeros, offsets - mean[0], 1))[0])
    # renumber positions so that the first segment is the first one clockwise from the top
    width = _TURN / max(order.node_count, 1)
    steps = int(np.floor(rotation / width))
    positions = np.mod(order.positions + steps, max(order.node_count, 1))
    return state.with_ring(layer, _NodeOrder(positions, rotation - steps * width))


# ---- crossings


def _count_crossings(outer: _NodeOrder, inner: _NodeOrder, source: Ints, target: Ints) -> int:
    """Count the pairs of edges that cross between two rings, exactly, in O(edges log nodes).

    The rings are unrolled: an edge goes from its outer position to its inner position plus a whole number of turns. Two
    edges with positions that differ by less than a turn at both ends cross once if their order differs between the
    ends. This includes edges in which the order differs after shifting one edge by a turn.
    """
    if len(source) < 2:
        return 0
    start = outer.positions[source]
    angles = inner.angles[target]
    turn_counts = np.rint((unwrap_end_angles(outer.angles[source], angles) - angles) / _TURN).astype(np.int64)
    end = inner.positions[target] + turn_counts * inner.node_count
    shifted = np.searchsorted(np.sort(end), end + inner.node_count, side="right")
    return _count_inversions(end[np.lexsort((end, start))]) + int((len(end) - shifted).sum())


def _count_inversions(values: Ints) -> int:
    """Count the inversions in a sequence of integers (n), bit by bit from the highest.

    The highest differing bit determines the order of two numbers. In a group of numbers with equal higher bits, each 1
    before a 0 is an inversion.
    """
    remaining = values - values.min()
    # NumPy sorts 16-bit integers by radix, in linear time
    remaining = remaining.astype(np.uint16 if remaining.max() < 1 << 16 else np.int64)
    total = 0
    for bit in reversed(range(int(remaining.max()).bit_length())):
        is_one = ((remaining >> bit) & 1).astype(np.int64)
        ones = np.cumsum(is_one)
        group = remaining >> (bit + 1)
        firsts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        before = np.repeat(ones[firsts] - is_one[firsts], np.diff(firsts, append=len(remaining)))
        total += int(((ones - before) * (1 - is_one)).sum())
        remaining = remaining[np.argsort(remaining >> bit, kind="stable")]
    return total
