"""Draw a network: rings of nodes, edges as heat maps between them, a legend, and the values over time below.

Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13): Figures 3 to 5 for
the rings, edges and colors, Figure 2 for the timeline, Figure 12 for the red circles. In an SVG, edges are a
pixel image; rings and text are vector graphics.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from iosig.reports import panels, style
from iosig.reports.networks.colors import colors, unused_color
from iosig.reports.networks.edges import HopEdges, edge_image
from iosig.reports.networks.labels import draw_inner, draw_outer, outer_labels
from iosig.reports.networks.legend import Legend, pixel_axes
from iosig.reports.networks.matrix import draw_matrices, matrices_high
from iosig.reports.networks.scales import Scale, find_max_counts, fit_scale, slot_counts
from iosig.reports.networks.texts import node_name, pattern_causes, quantity, ratio_text, slow_finding
from iosig.reports.networks.timeline import MAX_HOPS, draw_timelines
from iosig.reports.networks.view import SLOW_RATIO, NetworkView
from iosig.reports.style import GRAY, GROUND, INK, ORANGE, PALE, SOFT, VERMILION
from iosig.reports.texts import base_name, duration_text, format_count, plain, plural
from iosig.transforms.arrays import Bools, Ints
from iosig.transforms.networks.rings import Ring, edge_angles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: total width [pixels]
#: side of the square with the circle and its names [pixels]
#: left margin [pixels]
_WIDTH, _DISC, _LEFT = 1960, 1464, 30
_TOP, _NOTE_LINE, _BELOW, _FOOT = 104, 24, 34, 66
_TIMELINE, _BETWEEN, _TIMELINE_LEFT = 118, 34, 110
_MIN_HEIGHT = 520
_LEGEND_LEFT, _LEGEND_WIDTH = 1530, 420
_MAX_NOTE_LINES, _NOTE_LINE_CHARS = 3, 215
#: minimum width of a line [pixels]
#: maximum width of a line [pixels]
#: maximum fraction of a hop's area that lines fill
_MIN_LINE_WIDTH, _MAX_LINE_WIDTH, _LINE_SHARE = 1.0, 5.0, 0.7
#: maximum number of slow nodes labeled on their rings
#: distance between a ring and these labels, in layout units
_MAX_NAMED_SLOW, _SLOW_LABEL_DISTANCE = 5, 0.07
_ACTIVE, _IDLE = SOFT, PALE
#: maximum length of an arc that merges segments without gaps [rad]
#: angle between two vertices of an arc [rad]
_MAX_ARC, _ARC_STEP = 0.2, 0.02


@dataclass(frozen=True, slots=True)
class FigureData:
    """Data behind the figure: the metric's scale, the counts of each edge, and the edges in use.

    counts (edges, slots). hops: for each hop, the indices of the edges with traffic in the selected windows.
    max_counts: for each hop, the count with the strongest color, which is the maximum of the view and its peers.
    """

    scale: Scale
    counts: Ints
    hops: list[Ints]
    max_counts: list[int]

    @classmethod
    def from_view(cls, view: NetworkView) -> FigureData:
        """Count the transfers of a view on the scale that it shares with its peers."""
        network = view.network
        first, stop = view.window_range
        is_selected = pl.col("window").is_between(first, stop, closed="left") & (pl.col("transfer_count") > 0)
        is_used = np.zeros(len(network.edges), dtype=bool)
        is_used[network.totals.filter(is_selected)["edge"].to_numpy()] = True
        of_hop = network.edges["hop"].to_numpy()
        scale = fit_scale(network, view.metric, peers=[peer.network for peer in view.peers])
        hops = [np.flatnonzero(is_used & (of_hop == hop)) for hop in range(network.hop_count)]
        counts = slot_counts(network, scale, view.windows)
        max_counts = [find_max_counts(network, counts)] + [
            find_max_counts(peer.network, slot_counts(peer.network, scale, peer.windows)) for peer in view.peers
        ]
        return cls(scale, counts, hops, list(map(max, zip(*max_counts, strict=True))))

    @property
    def hop_counts(self) -> list[Ints]:
        """Counts of the used edges (edges, slots) of each hop."""
        return [self.counts[edges] for edges in self.hops]


# ---- layout


def _size(view: NetworkView) -> tuple[float, float]:
    return _WIDTH / style.DOTS_PER_INCH, (_timeline_top(view) + _timelines_high(view) + _FOOT) / style.DOTS_PER_INCH


def _disc_top(view: NetworkView) -> int:
    return _TOP + _NOTE_LINE * len(_notes(view))


def _disc_high(view: NetworkView) -> int:
    """Return the height of the rings or matrices in pixels; the legend fits next to them."""
    return max(matrices_high(view, _DISC), _MIN_HEIGHT) if view.is_small else _DISC


def _timeline_top(view: NetworkView) -> int:
    return _disc_top(view) + _disc_high(view) + _BELOW


def _timelines_high(view: NetworkView) -> int:
    count = min(view.network.hop_count, MAX_HOPS)
    return count * (_TIMELINE + _BETWEEN) - _BETWEEN


def _notes(view: NetworkView) -> list[str]:
    """Wrap the notes, limited to the maximum number of lines."""
    lines = textwrap.wrap(" ".join(plain(note) for note in view.notes), _NOTE_LINE_CHARS)
    return lines if len(lines) <= _MAX_NOTE_LINES else [*lines[: _MAX_NOTE_LINES - 1], f"{lines[2][:-1]}…"]


@panels.picture(_size)
def draw(figure: Figure, view: NetworkView) -> None:
    """Draw rings (matrices for a small network), the legend to their right and the timelines below."""
    data = FigureData.from_view(view)
    _headings(figure, view, data)
    if view.is_small:
        draw_matrices(figure, view, _LEFT, _disc_top(view), _DISC)
    else:
        draw_disc(pixel_axes(figure, _LEFT, _disc_top(view), _DISC, _DISC), view, _DISC, data)
    Legend(figure, _LEGEND_LEFT, _disc_top(view) + 8, _LEGEND_WIDTH).draw(
        view, data.scale, data.hop_counts, [len(edges) for edges in data.hops]
    )
    top = _timeline_top(view)
    shown = [
        pixel_axes(figure, _TIMELINE_LEFT, top + hop * (_TIMELINE + _BETWEEN), _WIDTH - _TIMELINE_LEFT - 30, _TIMELINE)
        for hop in range(min(view.network.hop_count, MAX_HOPS))
    ]
    draw_timelines(shown, view)


def _headings(figure: Figure, view: NetworkView, data: FigureData) -> None:
    """Write the title lines: the slow nodes, the selection shown, and the notes on data quality."""
    high = figure.get_figheight() * style.DOTS_PER_INCH
    left = _LEFT / _WIDTH
    finding, name = slow_finding(view.slow), base_name(plain(view.title))
    color = VERMILION if any(nodes.slow_count for nodes in view.slow) else INK
    heading = figure.text(left, 1 - 46 / high, "", fontsize=14, fontweight="bold", color=color)
    panels.fit(figure, heading, finding or name)
    subject = f"{name}  \u00b7  {_subject(view)}" if finding else _subject(view)
    panels.fit(figure, figure.text(left, 1 - 82 / high, "", fontsize=10.5, color=SOFT), subject)
    for number, line in enumerate(_notes(view)):
        y = 1 - (110 + _NOTE_LINE * number) / high
        panels.fit(figure, figure.text(left, y, "", fontsize=9, color=SOFT), line)


def _subject(view: NetworkView) -> str:
    """Describe the displayed metric, nodes and time range in one line."""
    label = quantity(view.network, view.metric)
    rings = "" if view.is_small else "; rings from outside in"
    return f"{label[:1].upper()}{label[1:]} between {describe_extent(view)}{rings}"


def describe_extent(view: NetworkView) -> str:
    """Describe the nodes of each layer and the displayed time range."""
    network = view.network
    layers = ", ".join(
        format_count(layer.member_count, plain(layer.name, 24))
        + (f" in {layer.node_count:,} groups" if layer.group_size > 1 else "")
        for layer in network.layers
    )
    first, stop = view.window_range
    edges = network.window_edges_s
    began, ceased = (duration_text(float(edges[place])) for place in (first, stop))
    when = "the whole run" if (first, stop) == (0, network.window_count) else f"{began} to {ceased} of the run"
    return f"{layers}; {when}"


# ---- the circle


def draw_disc(axes: Axes, view: NetworkView, side: int, data: FigureData | None = None) -> None:
    """Draw rings, edges, names and marks into square axes with sides of `side` pixels."""
    data = data or FigureData.from_view(view)
    labels = outer_labels(view.network.layers[0])
    radius = int(side / 2 - max(labels.room, 12))
    axes.set_axis_off()
    limit = side / 2 / radius
    image = edge_image(
        [_hop_edges(view, data, hop, radius) for hop in range(view.network.hop_count)],
        radius,
        unused_color(is_dark=style.in_force().is_dark),
    )
    axes.imshow(image, extent=(-1, 1, -1, 1), interpolation="none", zorder=1)
    for number, (layer, ring) in enumerate(zip(view.network.layers, view.layout.rings, strict=True)):
        is_active = _active(view, data, number)
        _draw_ring(axes, ring, is_active)
        if number == 0:
            draw_outer(axes, labels, ring, radius)
        else:
            draw_inner(axes, layer, ring, radius, [GROUND if active else INK for active in is_active.tolist()])
    _mark_causes(axes, view)
    _circle_bottlenecks(axes, view)
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    _name_slowest(axes, view)
    _say_nothing(axes, view, data)
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")


def _hop_edges(view: NetworkView, data: FigureData, hop: int, radius: int) -> HopEdges:
    """Prepare a hop's used edges for drawing, with log-scaled levels relative to the hop's maximum count."""
    rows = data.hops[hop]
    ends = view.network.edges[rows] if len(rows) else view.network.edges.clear()
    outer, inner = view.layout.rings[hop : hop + 2]
    counts = data.counts[rows]
    if not counts.shape[1]:
        counts = np.zeros((len(rows), 1), dtype=np.int64)
    max_count = max(data.max_counts[hop], 2)
    levels = np.where(counts > 0, np.rint(255 * np.log(np.maximum(counts, 1)) / np.log(max_count)), -1).astype(np.int16)
    began, ceased = edge_angles(outer, inner, ends["source"].to_numpy(), ends["target"].to_numpy())
    thin = HopEdges(
        began,
        ceased,
        outer.inner_radius,
        inner.outer_radius,
        levels,
        colors(hop, is_dark=style.in_force().is_dark),
        _MIN_LINE_WIDTH,
    )
    area = np.pi * (outer.inner_radius**2 - inner.outer_radius**2) * radius
    width = _LINE_SHARE * area / max(float(thin.lengths.sum()), 1e-9)
    return replace(thin, width=float(np.clip(width, _MIN_LINE_WIDTH, _MAX_LINE_WIDTH)))


def _active(view: NetworkView, data: FigureData, layer: int) -> Bools:
    """Return a mask of a layer's nodes that have a used edge."""
    is_active = np.zeros(view.network.layers[layer].node_count, dtype=bool)
    for hop, end in ((layer, "source"), (layer - 1, "target")):
        if 0 <= hop < view.network.hop_count:
            is_active[view.network.edges[end].to_numpy()[data.hops[hop]]] = True
    return is_active


def _draw_ring(axes: Axes, ring: Ring, is_active: Bools) -> None:
    """Draw a ring's segments, dark where active; adjacent segments without gaps are merged."""
    from matplotlib.collections import PolyCollection

    count = len(ring.order)
    if not count:
        return
    width = 2 * np.pi / count
    begins, ends = ring.begins[ring.order], ring.ends[ring.order]
    has_seams = bool((ends - begins).max() < width * (1 - 1e-6))
    block = 1 if has_seams else max(1, int(_MAX_ARC / width))
    state = is_active[ring.order]
    is_first = np.concatenate([[True], state[1:] != state[:-1]]) | (np.arange(count) % block == 0)
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], count) - 1
    began = begins[first]
    length = begins[last] - began + (ends - begins)[last]
    corners = max(2, int(np.ceil(float(length.max()) / _ARC_STEP)) + 1)
    angles = began[:, None] + length[:, None] * np.linspace(0, 1, corners)
    directions = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    places = np.concatenate([directions * ring.outer_radius, directions[:, ::-1] * ring.inner_radius], axis=1)
    shades = [_ACTIVE if active else _IDLE for active in state[first].tolist()]
    # Without an outline, the background would show between adjacent arcs.
    edges, line = ("none", 0.0) if has_seams or count == 1 else (shades, 0.4)
    axes.add_collection(PolyCollection(list(places), facecolors=shades, edgecolors=edges, linewidths=line, zorder=2))


def _mark_causes(axes: Axes, view: NetworkView) -> None:
    """Draw a dot at each node that causes a pattern of the whole run."""
    causes = pattern_causes(view.network, view.patterns, view.metric)
    for layer, ring, names in zip(view.network.layers, view.layout.rings, causes, strict=False):
        _mark(axes, ring, layer.labels.is_in(names), ms=5.5, mfc=ORANGE, mec=GROUND, mew=0.7)


def _mark(axes: Axes, ring: Ring, is_marked: pl.Series, **style: Any) -> None:
    angles = ring.middles[np.flatnonzero(is_marked.to_numpy())]
    # Inside the outermost ring; otherwise on the rim, next to the names.
    reach = (ring.inner_radius + 1) / 2 if ring.outer_radius == 1 else ring.outer_radius
    axes.plot(reach * np.sin(angles), reach * np.cos(angles), "o", zorder=4, **style)


def _circle_bottlenecks(axes: Axes, view: NetworkView) -> None:
    """Draw a red circle at each node that issued an outlier request, as in Figure 12."""
    if not {"metric", "source_layer", "source_node"} <= set(view.bottlenecks.columns):
        return
    rows = view.bottlenecks.filter(pl.col("metric") == view.metric)
    for layer, ring in zip(view.network.layers, view.layout.rings, strict=True):
        names = rows.filter(pl.col("source_layer") == layer.name)["source_node"]
        _mark(axes, ring, layer.labels.is_in(names.unique().to_list()), ms=13, mfc="none", mec=VERMILION, mew=1.8)


def _name_slowest(axes: Axes, view: NetworkView) -> None:
    """Label the slowest nodes with their slowdown, omitting labels that would overlap each other."""
    candidates = [
        (place, -ratio, nodes.layer, label)
        for nodes in view.slow
        for place, (ratio, label) in enumerate(zip(nodes.ratios, nodes.labels, strict=True))
        if ratio >= SLOW_RATIO
    ]
    layers = {layer.name: number for number, layer in enumerate(view.network.layers)}
    boxes: list[Any] = []
    # The slowest node of each layer comes first.
    for _, less, name, label in sorted(candidates)[:_MAX_NAMED_SLOW]:
        number, ratio = layers[name], -less
        ring, labels = view.layout.rings[number], view.network.layers[number].labels
        angle = float(ring.middles[labels.to_list().index(label)])
        # Place labels inside the ring, over edges, because names of outermost nodes are outside.
        reach = (
            ring.inner_radius - _SLOW_LABEL_DISTANCE
            if ring.inner_radius > _SLOW_LABEL_DISTANCE
            else ring.outer_radius + _SLOW_LABEL_DISTANCE
        )
        x, y = reach * np.sin(angle), reach * np.cos(angle)
        rim = ring.inner_radius if reach < ring.inner_radius else ring.outer_radius
        text = axes.annotate(
            f"{node_name(name, label)} \u00d7 {ratio_text(ratio)}", (rim * np.sin(angle), rim * np.cos(angle)), (x, y),
            ha="left" if x < 0 else "right", va="center", fontsize=9, fontweight="bold", color=VERMILION, zorder=6,
            arrowprops={"arrowstyle": "-", "color": VERMILION, "lw": 1.0},
            bbox={"fc": GROUND, "ec": VERMILION, "lw": 0.6, "alpha": 0.92, "boxstyle": "round,pad=0.25"},
        )  # fmt: skip
        box = text.get_window_extent()
        if any(box.overlaps(placed) for placed in boxes):
            text.remove()
        else:
            boxes.append(box)


def _say_nothing(axes: Axes, view: NetworkView, data: FigureData) -> None:
    """Explain in a sentence why the figure is empty, if it is."""
    metric_text = quantity(view.network, view.metric)
    used = sum(len(edges) for edges in data.hops)
    if not len(view.network.edges):
        names = " and ".join(plain(plural(layer.name), 24) for layer in view.network.layers)
        message = f"No transfers between {names}."
    elif not used:
        message = "No transfers in the selected time."
    elif not data.scale.slot_count:
        message = f"The {metric_text} of all transfers is unknown."
    elif not sum(int(data.counts[edges].sum()) for edges in data.hops):
        message = f"The {metric_text} of all transfers in the selected time is unknown."
    else:
        return
    box = {"facecolor": GROUND, "edgecolor": GRAY, "boxstyle": "round,pad=0.6"}
    axes.text(0, 0.62, message, ha="center", va="center", fontsize=13, color=INK, bbox=box, zorder=5)
