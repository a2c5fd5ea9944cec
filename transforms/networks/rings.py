"""Where a network's nodes and edges are drawn: concentric rings of ring segments, and ways between them.

Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13), section IV, IV.B
and Figure 3: one ring per layer, the layer with the most nodes outermost, the innermost one a circle of sectors.
Segments of a ring are equally wide, as in the paper: what a node did is told by its edges. The outermost nodes stand
in the order of their numbers, clockwise from the top. The rings inside are ordered so that few edges cross; the
innermost one only if that saves many crossings, else its nodes stand by number, "in the order detected".

Angles are radians, 0 at the top, clockwise; the outermost ring's outer radius is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.networks.network import Network

_TURN = 2 * np.pi
#: the thickness of the outermost ring, of those within, which have names on them, and of all of these at most
_OUTER_RING, _RING, _MOST_RINGS = 0.035, 0.05, 0.3
#: each gap between two rings is so much of the one outside it: the longest edges are outside
_GAP_RATIO = 0.72
#: what is left free between two segments, and how long these must be for it, along the ring
_SEAM, _LEAST_SEGMENT = 0.004, 0.016
#: a mean direction that is shorter than this tells nothing: the neighbours are all around
_LEAST_RESULTANT = 1e-6


#: the share of all crossings that must go if the innermost nodes are not to stand by number (ours)
_INNER_GAIN = 0.25
#: how often the rings are gone through
_MOST_SWEEP_COUNT = 12
#: edges that are looked at in all, over and over: bounds the time
_MOST_VISIT_COUNT = 2_000_000


@dataclass(frozen=True, slots=True)
class Ring:
    """A layer's ring: its radii, its nodes (n) clockwise from the top, and by node number the angles of their segments.

    0 <= begins < 2 pi, begins < ends <= begins + 2 pi. A circle of sectors has the inner radius 0.
    """

    inner_radius: float
    outer_radius: float
    order: Ints
    begins: Reals
    ends: Reals

    @property
    def middles(self) -> Reals:
        """The angles of the segments' middles, by node number."""
        middles: Reals = (self.begins + self.ends) / 2
        return middles


@dataclass(frozen=True, slots=True)
class RadialLayout:
    """The rings of a network's layers, outermost first."""

    rings: tuple[Ring, ...]


# ---- ways of edges


def shortest_ends(began_angle: Reals, ceased_angle: Reals) -> Reals:
    """Return end angles (edges), turned by whole turns so that each edge goes the shortest way round.

    As section IV.B: no difference reaches pi or is less than -pi. The second case is printed there as "+ 2 pi, if
    (end - start) < pi", which would turn every forward edge once more; it must read "< -pi".
    """
    turned: Reals = ceased_angle - _TURN * np.floor((ceased_angle - began_angle) / _TURN + 0.5)
    return turned


def edge_angles(outer: Ring, inner: Ring, source: Ints, target: Ints) -> tuple[Reals, Reals]:
    """Return where edges (n) begin on the outer ring and end on the inner one: at the middles of the segments.

    A node that is its ring alone is met straight ahead: it is all around, and edges to one point of it would be drawn
    for half a turn.
    """
    began, ceased = outer.middles[source], inner.middles[target]
    if len(inner.order) == 1:
        return began, began.copy()
    return (ceased.copy(), ceased) if len(outer.order) == 1 else (began, ceased)


# ---- layout


def layout(network: Network) -> RadialLayout:
    """Return where the nodes of a network's layers are drawn, which must be two or more."""
    if len(network.layers) < 2:
        raise ValueError("a network has at least two layers")
    counts = [layer.node_count for layer in network.layers]
    edges = tuple(
        (part["source"].to_numpy().astype(np.int64), part["target"].to_numpy().astype(np.int64))
        for part in (network.edges.filter(network.edges["hop"] == hop) for hop in range(network.hop_count))
    )
    placed = _fewest_crossings(counts, edges)
    return RadialLayout(tuple(_ring(one, *radii) for one, radii in zip(placed, _radii(len(counts)), strict=True)))


def _radii(count: int) -> list[tuple[float, float]]:
    """Return inner and outer radii of so many rings: the gaps share what the rings leave, the outer ones more of it."""
    thick = np.minimum([_OUTER_RING] + [_RING] * (count - 2), _MOST_RINGS / (count - 1))
    circle = 0.08 + 0.14 / (count - 1)
    shares = _GAP_RATIO ** np.arange(count - 1)
    gaps = (1.0 - circle - thick.sum()) * shares / shares.sum()
    outer = 1.0 - np.concatenate([[0.0], np.cumsum(gaps + thick)[:-1]])
    return [*zip((outer - thick).tolist(), outer.tolist(), strict=True), (0.0, circle)]


def _ring(placed: _Placed, inner_radius: float, outer_radius: float) -> Ring:
    count = placed.node_count
    width = _TURN / max(count, 1)
    # a seam that would be finer than the eye is none
    seam = _SEAM / outer_radius if count > 1 and width * outer_radius >= _LEAST_SEGMENT else 0.0
    middles = placed.angles
    begins = np.mod(middles - (width - seam) / 2, _TURN)
    # the remainder of a tiny negative angle is a whole turn
    begins[begins >= _TURN] = 0.0
    return Ring(inner_radius, outer_radius, np.argsort(begins, kind="stable"), begins, begins + (width - seam))


# ---- the order of nodes


@dataclass(frozen=True, slots=True)
class _Placed:
    """A ring's nodes: each one's place clockwise (0 to n - 1), and the angle where the first one's segment begins."""

    places: Ints
    began_angle: float = 0.0

    @classmethod
    def of(cls, ring: Ring) -> _Placed:
        places = np.empty(len(ring.order), dtype=np.int64)
        places[ring.order] = np.arange(len(ring.order))
        first = float(ring.middles[ring.order[0]]) - np.pi / len(ring.order) if len(ring.order) else 0.0
        return cls(places, first)

    @classmethod
    def by_angle(cls, angles: Reals) -> _Placed:
        places = np.empty(len(angles), dtype=np.int64)
        places[np.argsort(np.mod(angles, _TURN), kind="stable")] = np.arange(len(angles))
        return cls(places)

    @property
    def node_count(self) -> int:
        return len(self.places)

    @property
    def angles(self) -> Reals:
        """The middles of the nodes' segments, within one turn from where the first one begins."""
        angles = self.began_angle + (self.places.astype(np.float64) + 0.5) * (_TURN / max(self.node_count, 1))
        return angles.astype(np.float64, copy=False)


_Edges = tuple[tuple[Ints, Ints], ...]
_Rings = tuple[_Placed, ...]


def _fewest_crossings(counts: list[int], edges: _Edges) -> _Rings:
    """Return the rings' orders with the fewest crossings found; the innermost one by number if that costs little."""
    # by the nodes outside that talk to them (section IV.B), then better where that is possible
    begun = _Search(tuple(_Placed(np.arange(count)) for count in counts), edges)
    fixed, free = (_swept(begun, range(1, len(counts) - is_kept)) for is_kept in (1, 0))
    return (free if free.cost[0] < (1.0 - _INNER_GAIN) * fixed.cost[0] else fixed).rings


@dataclass(frozen=True, slots=True)
class _Search:
    """The rings as they are now, and what they cost: crossings, then the edges' length around the circle."""

    rings: _Rings
    edges: _Edges

    @property
    def cost(self) -> tuple[int, float]:
        return self.cost_at([hop for hop in range(len(self.edges)) if self._can_cross(hop)])

    def _can_cross(self, hop: int) -> bool:
        # edges to a node that is its ring alone go straight ahead
        return min(ring.node_count for ring in self.rings[hop : hop + 2]) > 1

    def cost_at(self, hops: list[int]) -> tuple[int, float]:
        crossings, length = 0, 0.0
        for hop in hops:
            outer, inner = self.rings[hop : hop + 2]
            source, target = self.edges[hop]
            crossings += _crossings(outer, inner, source, target)
            began = outer.angles[source]
            length += float(np.abs(shortest_ends(began, inner.angles[target]) - began).sum())
        return crossings, length

    def hops_of(self, layer: int) -> list[int]:
        """Return the hops on either side of a layer in which edges can cross."""
        return [hop for hop in (layer - 1, layer) if 0 <= hop < len(self.edges) and self._can_cross(hop)]

    def with_ring(self, layer: int, placed: _Placed) -> _Search:
        return replace(self, rings=(*self.rings[:layer], placed, *self.rings[layer + 1 :]))

    def neighbours(self, layer: int, hops: list[int]) -> tuple[Ints, Reals]:
        """Return for each edge of a layer its node there and the angle of the node at its other end."""
        nodes, angles = [], []
        for hop in hops:
            source, target = self.edges[hop]
            is_source = hop == layer
            nodes.append(source if is_source else target)
            angles.append(self.rings[hop + is_source].angles[target if is_source else source])
        return np.concatenate(nodes), np.concatenate(angles)


def _swept(begun: _Search, layers: range) -> _Search:
    """Order rings anew by their neighbours, over and over, as long as edges cross less or become shorter."""
    found = begun
    edge_count = sum(len(source) for source, _ in begun.edges)
    visits_left = _MOST_VISIT_COUNT
    for _ in range(_MOST_SWEEP_COUNT):
        is_better = False
        for layer in layers:
            hops = found.hops_of(layer)
            best = found.cost_at(hops)
            visits_left -= edge_count
            for tried in _proposals(found, layer, hops):
                visits_left -= edge_count
                cost = tried.cost_at(hops)
                if cost[0] < best[0] or (cost[0] == best[0] and cost[1] < best[1] * (1 - 1e-9)):
                    found, best, is_better = tried, cost, True
        if not is_better or visits_left < 0:
            break
    return found


def _proposals(now: _Search, layer: int, hops: list[int]) -> Iterator[_Search]:
    """Yield the ring ordered by the mean and by the median of its neighbours outside, inside, and of both."""
    here = now.rings[layer].angles
    for chosen in [[hop] for hop in hops] + ([hops] if len(hops) > 1 else []):
        nodes, angles = now.neighbours(layer, chosen)
        means = _mean_angles(nodes, angles, here)
        for wanted in (means, means + _median_offsets(nodes, angles - means[nodes], len(here))):
            yield _rotated(now.with_ring(layer, _Placed.by_angle(wanted)), layer, hops)


def _mean_angles(nodes: Ints, angles: Reals, otherwise: Reals) -> Reals:
    """Return the mean direction of each node's neighbours; where they are all around, or there are none, its own."""
    count = len(otherwise)
    across, along = (np.bincount(nodes, weights=part, minlength=count) for part in (np.sin(angles), np.cos(angles)))
    resultants = np.hypot(across, along) / np.maximum(np.bincount(nodes, minlength=count), 1)
    return np.where(resultants > _LEAST_RESULTANT, np.arctan2(across, along), otherwise)


def _median_offsets(nodes: Ints, offsets: Reals, count: int) -> Reals:
    """Return the median of each node's offsets, the shortest way round; 0 where it has none."""
    turned = shortest_ends(np.zeros(len(offsets)), offsets)
    order = np.lexsort((turned, nodes))
    members = np.bincount(nodes, minlength=count)
    firsts = np.cumsum(members) - members
    lower, upper = firsts + (members - 1) // 2, firsts + members // 2
    medians = np.zeros(count)
    is_any = members > 0
    medians[is_any] = (turned[order[lower[is_any]]] + turned[order[upper[is_any]]]) / 2
    return medians


def _rotated(tried: _Search, layer: int, hops: list[int]) -> _Search:
    """Turn a ring so that its edges are short, twice: first to their mean direction, then to the median."""
    placed = tried.rings[layer]
    nodes, angles = tried.neighbours(layer, hops)
    offsets = angles - placed.angles[nodes]
    zeros = np.zeros(len(nodes), dtype=np.int64)
    mean = _mean_angles(zeros, offsets, np.zeros(1))
    turn = float((mean + _median_offsets(zeros, offsets - mean[0], 1))[0])
    # the first node is the one that begins at the top or next to it, clockwise
    width = _TURN / max(placed.node_count, 1)
    steps = int(np.floor(turn / width))
    places = np.mod(placed.places + steps, max(placed.node_count, 1))
    return tried.with_ring(layer, _Placed(places, turn - steps * width))


# ---- crossings


def _crossings(outer: _Placed, inner: _Placed, source: Ints, target: Ints) -> int:
    """Return how many pairs of edges between two rings cross, exactly, in O(edges log nodes).

    The rings are unrolled: an edge goes from its place outside to its place inside plus a whole number of turns. Two
    edges that differ by less than a turn at either end cross once if they are in one order outside and in the other
    one inside, either as they are or with one of them moved on by a turn.
    """
    if len(source) < 2:
        return 0
    began = outer.places[source]
    angles = inner.angles[target]
    turns = np.rint((shortest_ends(outer.angles[source], angles) - angles) / _TURN).astype(np.int64)
    ceased = inner.places[target] + turns * inner.node_count
    moved_on = np.searchsorted(np.sort(ceased), ceased + inner.node_count, side="right")
    return _inversions(ceased[np.lexsort((ceased, began))]) + int((len(ceased) - moved_on).sum())


def _inversions(values: Ints) -> int:
    """Return how many pairs of whole numbers (n) stand in falling order, bit by bit from the highest.

    Two numbers are told apart by the highest bit in which they differ: where those before it are alike, each 1 that
    stands before a 0 is one inversion.
    """
    rest = values - values.min()
    # short numbers are sorted by counting, in linear time
    rest = rest.astype(np.uint16 if rest.max() < 1 << 16 else np.int64)
    total = 0
    for bit in reversed(range(int(rest.max()).bit_length())):
        is_one = ((rest >> bit) & 1).astype(np.int64)
        ones = np.cumsum(is_one)
        group = rest >> (bit + 1)
        firsts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        before = np.repeat(ones[firsts] - is_one[firsts], np.diff(firsts, append=len(rest)))
        total += int(((ones - before) * (1 - is_one)).sum())
        rest = rest[np.argsort(rest >> bit, kind="stable")]
    return total
