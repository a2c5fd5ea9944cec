"""Draw a phase automaton: its states, the transitions between them, and below these the sequence of states over time.

`iosig.transforms.predictions.automaton` defines the automaton. Periodic states lie on a line by their period, on a
logarithmic scale, and are moved apart where they would touch. Transitions to a longer period run above the line,
transitions to a shorter one below it. The states `start`, `aperiodic`, `gap` and `end` lie at the bottom. Lengths in
the layout are in inches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from iosig.reports import panels
from iosig.reports.panels import Picture
from iosig.reports.predictions.state_strips import (
    BOLD_LETTER,
    LABEL_POINTS,
    NAME_CHARACTERS,
    RunClock,
    draw_strip,
    ink_on,
    sort_states,
    state_color,
    state_number,
    text_inches,
)
from iosig.reports.style import BLUE, GRAY, GREEN, GROUND, INK, ORANGE, PURPLE, SOFT, VERMILION
from iosig.reports.texts import duration_text, format_count, plain
from iosig.transforms.arrays import Reals
from iosig.transforms.predictions.automaton import OTHER_STATES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Box = tuple[float, float, float, float]

_WIDTH_IN, _SIDE_IN, _TOP_IN, _FOOT_IN = 11.0, 0.3, 1.45, 0.65
_STRIP_IN, _CAUSES_IN, _BETWEEN_IN = 0.34, 0.62, 0.1
_MAX_RADIUS_IN, _MIN_RADIUS_IN = 0.42, 0.13
#: minimum distance between states with horizontal labels; closer states have vertical labels
#: height of a horizontal label
#: height of a vertical label
_FLAT_IN, _FLAT_LABEL_IN, _UPRIGHT_LABEL_IN = 1.05, 0.38, 1.3
#: distance between a circle and its label
#: number of points on the curve of an edge
_PAD_IN, _CURVE_POINTS = 0.12, 60
#: candidate label positions along an edge, the preferred one first
_LABEL_PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)
_NAME_POINTS = 9.0
#: number of edges above which all are drawn pale, and only the most frequent ones have labels
#: number of transitions above which only colors show the causes
_MAX_LABELED_EDGES, _MAX_CAUSES = 60, 40
#: color of each cause, and the label of its group in the legend
_CAUSES = {
    "first_found": (GREEN, "found"),
    "found_again": (GREEN, "found"),
    "change_point_up": (VERMILION, "change point"),
    "change_point_down": (VERMILION, "change point"),
    "shift_up": (BLUE, "shift"),
    "shift_down": (BLUE, "shift"),
    "period_lost": (PURPLE, "lost or none"),
    "none_found": (PURPLE, "lost or none"),
    "gap": (ORANGE, "gap"),
    "end": (INK, "end"),
}


# ---- the picture


def draw(graph: Mapping[str, Any], title: str) -> Picture:
    """Return the picture of `PhaseAutomaton.graph()`."""
    layout = _Layout.from_graph(graph)
    return Picture(layout.size_in, lambda figure: _compose(figure, graph, layout, title))


def _compose(figure: Figure, graph: Mapping[str, Any], layout: _Layout, title: str) -> None:
    height = figure.get_figheight()
    panels.headings(figure, _verdict(graph), [plain(title) or "Phase automaton"], INK)
    bottom = layout.size_in[1] - _TOP_IN - layout.height_in
    wide = layout.width_in / _WIDTH_IN
    axes = figure.add_axes((_SIDE_IN / _WIDTH_IN, bottom / height, wide, layout.height_in / height))
    axes.set_axis_off()
    axes.set(xlim=(0, layout.width_in), ylim=(layout.lowest_in, layout.lowest_in + layout.height_in))
    if not layout.nodes:
        panels.say(axes, "no evaluations yet")
        return
    unwritten = _draw_edges(axes, graph, layout)
    _draw_nodes(axes, layout)
    _draw_legend(figure, graph, unwritten)
    strip = figure.add_axes((_SIDE_IN / _WIDTH_IN, _FOOT_IN / height, wide, _STRIP_IN / height))
    _draw_sequence(strip, graph)


def _verdict(graph: Mapping[str, Any]) -> str:
    """Summarize the automaton in one line."""
    nodes = {node["name"]: node for node in graph["nodes"]}
    if not nodes:
        return "no states"
    current = nodes[graph["current"]]
    period = f" ({duration_text(current['period_s'])})" if current["period_s"] else ""
    since = duration_text(current["last_s"] - current["entered_s"])
    now = f"Now {plain(current['name'], NAME_CHARACTERS)}{period}, for {since}"
    parts = [
        "The run is over" if current["name"] == "end" else now,
        format_count(sum(node["period_s"] is not None for node in nodes.values()), "periodic state"),
        format_count(sum(edge["count"] for edge in graph["edges"]), "transition"),
    ]
    if graph.get("unconfirmed_change_count"):
        parts.append(f"{format_count(graph['unconfirmed_change_count'], 'change')} not confirmed")
    if graph.get("forgotten_state_count"):
        parts.append(f"{format_count(graph['forgotten_state_count'], 'state')} forgotten")
    return "  ·  ".join(parts)


# ---- layout


@dataclass(frozen=True, slots=True)
class _Node:
    """A drawn state of the automaton: its circle, and its horizontal or vertical label below."""

    name: str
    x: float
    y: float
    radius: float
    lines: tuple[str, str]
    is_current: bool
    is_upright: bool = False

    @property
    def bottom(self) -> float:
        """Lower end of the label, in inches."""
        return self.y - self.radius - _PAD_IN - (_UPRIGHT_LABEL_IN if self.is_upright else _FLAT_LABEL_IN)

    @property
    def boxes(self) -> list[Box]:
        """Bounding boxes of circle and label, which no other text may overlap."""
        if self.is_upright:
            half = 0.6 * LABEL_POINTS / 72
        else:
            half = max(text_inches(self.lines[0], 8.5, is_bold=True), text_inches(self.lines[1], LABEL_POINTS)) / 2
        x, y, radius = self.x, self.y, self.radius
        return [(x - radius, y - radius, x + radius, y + radius), (x - half, self.bottom, x + half, y - radius)]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Layout of the figure in inches: nodes by name, and edge curves (points, 2) in the graph's order."""

    nodes: dict[str, _Node]
    curves: list[Reals]
    lowest_in: float
    height_in: float

    @property
    def width_in(self) -> float:
        """Width of the panel in inches, including the labels."""
        return _WIDTH_IN - 2 * _SIDE_IN

    @property
    def size_in(self) -> tuple[float, float]:
        """Width and height of the figure in inches."""
        below = _BETWEEN_IN + _CAUSES_IN + _STRIP_IN + _FOOT_IN if self.nodes else _FOOT_IN
        return _WIDTH_IN, _TOP_IN + self.height_in + below

    @classmethod
    def from_graph(cls, graph: Mapping[str, Any]) -> _Layout:
        nodes = _place_states(graph, _WIDTH_IN - 2 * _SIDE_IN)
        if not nodes:
            return cls({}, [], 0.0, 1.0)
        curves = list(_curves(graph["edges"], nodes))
        points = np.concatenate([*curves, *([[node.x, node.y + node.radius], [node.x, node.bottom]] for node in nodes)])
        low, high = float(points[:, 1].min()) - 0.25, float(points[:, 1].max()) + 0.25
        return cls({node.name: node for node in nodes}, curves, low, high - low)


def _place_states(graph: Mapping[str, Any], wide: float) -> list[_Node]:
    """Place periodic states on a line and all other states below them."""
    periodic = sorted((node for node in graph["nodes"] if node["period_s"]), key=lambda node: float(node["period_s"]))
    other_nodes = sorted((node for node in graph["nodes"] if not node["period_s"]), key=_order)
    total = math.fsum(node["duration_s"] for node in graph["nodes"]) or 1.0
    margin = 0.6
    gap = min(1.35, (wide - 2 * margin) / max(len(periodic) - 1, 1))
    upright = gap < _FLAT_IN
    largest = min(_MAX_RADIUS_IN, 0.44 * gap)
    x = _spread(np.log([float(node["period_s"]) for node in periodic]), gap, margin, wide - margin)
    nodes = [
        _node(node, float(place), 0.0, node["duration_s"] / total, largest, graph["current"], is_upright=upright)
        for node, place in zip(periodic, x, strict=True)
    ]
    depth = _depths(graph["edges"], {node.name: node.x for node in nodes})
    lower = (
        min((node.bottom for node in nodes), default=0.0) - max(depth + 0.75, 1.2) - _MAX_RADIUS_IN if nodes else 0.0
    )
    for place, node in enumerate(other_nodes):
        at = wide * (place + 0.5) / len(other_nodes)
        nodes.append(_node(node, at, lower, node["duration_s"] / total, _MAX_RADIUS_IN, graph["current"]))
    return nodes


def _node(
    node: Mapping[str, Any], x: float, y: float, share: float, largest: float, current: str, *, is_upright: bool = False
) -> _Node:
    radius = min(largest, max(min(_MIN_RADIUS_IN, largest), largest * math.sqrt(max(share, 0.0))))
    head = duration_text(node["period_s"]) if node["period_s"] else plain(node["name"], NAME_CHARACTERS)
    foot = f"{f'{share:.1%}' if not 0 < share < 0.001 else '<0.1%'}, {format_count(node['visit_count'], 'visit')}"
    return _Node(node["name"], x, y, radius, (head, foot), node["name"] == current, is_upright)


def _order(node: Mapping[str, Any]) -> tuple[int, str]:
    is_other = node["name"] in OTHER_STATES
    return (OTHER_STATES.index(node["name"]) if is_other else len(OTHER_STATES)), str(node["name"])


def _spread(places: Reals, gap: float, low: float, high: float) -> Reals:
    """Move ascending places (n) between low and high as little as possible, so that neighbors are a gap apart."""
    from scipy.optimize import isotonic_regression

    count = len(places)
    if count < 2:
        return np.full(count, (low + high) / 2)
    span = float(places[-1] - places[0])
    relative = (places - places[0]) / span if span > 0 else np.linspace(0, 1, count)
    # Shorten the line for few states with similar periods, because far ends would suggest a large difference.
    used = min(high - low, max(gap * (count - 1), 2.2 * span))
    start = (low + high - used) / 2
    steps = gap * np.arange(count)
    spaced = isotonic_regression(start + used * relative - steps).x
    positions: Reals = np.clip(spaced, low, max(low, high - steps[-1])) + steps
    return positions


def _depths(edges: Iterable[Mapping[str, Any]], x: Mapping[str, float]) -> float:
    """Return how far below the labels the arcs to shorter periods reach."""
    pairs = [(x[edge["source"]], x[edge["target"]]) for edge in edges if edge["source"] in x and edge["target"] in x]
    return max((_height(source - target, 0) for source, target in pairs if target < source), default=0.0)


def _height(distance: float, rank: int) -> float:
    return (1 + 0.3 * rank) * min(1.7, max(0.35, 0.25 * abs(distance)))


def _curves(edges: Sequence[Mapping[str, Any]], nodes: Iterable[_Node]) -> Iterator[Reals]:
    """Yield each edge's curve from its source's rim to its target's; parallel edges are offset from each other."""
    nodes_by_name = {node.name: node for node in nodes}
    ranks: dict[tuple[str, str], int] = {}
    for edge in edges:
        source, target = nodes_by_name[edge["source"]], nodes_by_name[edge["target"]]
        rank = ranks[source.name, target.name] = ranks.get((source.name, target.name), -1) + 1
        yield _curve(source, target, rank)


def _curve(source: _Node, target: _Node, rank: int) -> Reals:
    shift = min(0.07, 0.4 * min(source.radius, target.radius))
    if source.y == target.y:
        is_above = target.x > source.x and source.name not in OTHER_STATES
        side = 1.0 if is_above else -1.0
        first, last = (
            np.array([node.x, node.y + node.radius if is_above else node.bottom]) for node in (source, target)
        )
        # Further out than the edges that lead down to the other states.
        toward = 2 * np.sign(target.x - source.x) * shift
        first[0], last[0] = first[0] + toward, last[0] - toward
        bend = np.array([0.0, side * 4 / 3 * _height(target.x - source.x, rank)])
        along = np.array([0.18 * (last[0] - first[0]), 0.0])
        return _bezier(first, first + bend + along, last + bend - along, last)
    is_down = target.y < source.y
    upper, lower = (source, target) if is_down else (target, source)
    # Separate downward edges from upward ones.
    offset = (shift if is_down else -shift) * (1 + rank)
    top, end = np.array([upper.x + offset, upper.bottom]), np.array([lower.x + offset, lower.y + lower.radius])
    bend = np.array([0.0, 0.5 * (top[1] - end[1])])
    curve = _bezier(top, top - bend, end + bend, end)
    return curve if is_down else curve[::-1]


def _bezier(*points: Reals) -> Reals:
    at = np.linspace(0, 1, _CURVE_POINTS)[:, None]
    weights = ((1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at**2 * (1 - at), at**3)
    curve: Reals = np.sum([weight * point for weight, point in zip(weights, points, strict=True)], axis=0)
    return curve


# ---- graph


def _draw_edges(axes: Axes, graph: Mapping[str, Any], layout: _Layout) -> int:
    """Draw the transitions, and their causes where they fit; return the number of causes omitted."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    edges = graph["edges"]
    max_log_count = math.log(max([10, *(edge["count"] for edge in edges)]))
    boxes = [box for node in layout.nodes.values() for box in node.boxes]
    is_crowd = len(edges) > _MAX_LABELED_EDGES
    for edge, curve in zip(edges, layout.curves, strict=True):
        color, width = _color(edge), 1.0 + 2.6 * math.log(max(edge["count"], 1)) / max_log_count
        style: dict[str, Any] = {"fc": color, "ec": color, "lw": width, "fill": False}
        style |= {"alpha": 0.4 if is_crowd else 0.85, "arrowstyle": "-|>,head_length=3.6,head_width=1.8"}
        axes.add_patch(FancyArrowPatch(path=Curve(curve), mutation_scale=1.0, **style))
    labeled = sorted(range(len(edges)), key=lambda place: -edges[place]["count"])[
        : _MAX_LABELED_EDGES // 2 if is_crowd else None
    ]
    return len(edges) - sum(_write_edge(axes, edges[place], layout.curves[place], boxes) for place in labeled)


def _write_edge(axes: Axes, edge: Mapping[str, Any], curve: Reals, boxes: list[Box]) -> bool:
    """Label an edge with its cause and count if a position without overlap exists; return whether it does."""
    text = f"{plain(edge['cause'], NAME_CHARACTERS)} \u00d7{edge['count']:,}"
    half, high = text_inches(text, LABEL_POINTS) / 2, 0.6 * LABEL_POINTS / 72
    placed = np.array(boxes)
    for share in _LABEL_PLACES:
        x, y = curve[round(share * (len(curve) - 1))]
        x = min(max(x, half), _WIDTH_IN - 2 * _SIDE_IN - half)
        box = (x - half, y - high, x + half, y + high)
        is_apart = (placed[:, 0] > box[2]) | (placed[:, 2] < box[0]) | (placed[:, 1] > box[3]) | (placed[:, 3] < box[1])
        if is_apart.all():
            boxes.append(box)
            axes.text(
                x, y, text, ha="center", va="center", fontsize=LABEL_POINTS, color=_color(edge), zorder=4,
                bbox={"pad": 0.6, "lw": 0, "fc": GROUND, "alpha": 0.85},
            )  # fmt: skip
            return True
    return False


def _color(edge: Mapping[str, Any]) -> str:
    return _CAUSES.get(edge["cause"], (GRAY, ""))[0]


def _draw_nodes(axes: Axes, layout: _Layout) -> None:
    for node in layout.nodes.values():
        _draw_circle(axes, node)
        top = node.y - node.radius - _PAD_IN
        style: dict[str, Any] = {"ha": "center", "va": "top", "zorder": 6, "color": INK}
        pad = {"pad": 0.8, "lw": 0, "fc": GROUND, "alpha": 0.9}
        if node.is_upright:
            text = "  ".join(node.lines)
            axes.text(node.x, top, text, rotation=90, fontsize=LABEL_POINTS, bbox=pad, **style)
        else:
            axes.text(node.x, top, node.lines[0], fontsize=8.5, fontweight="bold", bbox=pad, **style)
            axes.text(node.x, top - 0.19, node.lines[1], fontsize=LABEL_POINTS, bbox=pad, **style)


def _draw_circle(axes: Axes, node: _Node) -> None:
    from matplotlib.patches import Circle

    is_other = node.name in OTHER_STATES
    axes.add_patch(
        Circle(
            (node.x, node.y), node.radius, fc=state_color(node.name), ec=INK, lw=1.1 if is_other else 0.8, zorder=5,
            ls="--" if node.name == "gap" else "-",
        )
    )  # fmt: skip
    if node.name == "end":
        axes.add_patch(Circle((node.x, node.y), 0.72 * node.radius, fc="none", ec=GROUND, lw=1.0, zorder=5))
    if node.is_current:
        axes.add_patch(Circle((node.x, node.y), node.radius + 0.055, fc="none", ec=VERMILION, lw=2.2, zorder=5))
    if number := state_number(node.name):
        points = min(_NAME_POINTS, 1.5 * node.radius * 72 / (BOLD_LETTER * max(len(number), 2)))
        axes.text(
            node.x, node.y, number, ha="center", va="center_baseline", fontsize=points, fontweight="bold",
            color=ink_on(node.name), zorder=6,
        )  # fmt: skip


def _draw_legend(figure: Figure, graph: Mapping[str, Any], unwritten: int) -> None:
    """Draw a legend of the causes that occur, with notes on omitted labels."""
    groups = {words: color for color, words in _CAUSES.values() if words in _groups(graph)}
    lines = [panels.line(words, color=color, lw=2) for words, color in groups.items()]
    lines.append(panels.line("current state", ls="", marker="o", ms=8, mfc="none", mec=VERMILION, mew=2))
    panels.draw_legend(
        figure, lines, (0.02, 1.05), loc="lower left", ncols=len(lines), handlelength=1.6, columnspacing=1.4,
        borderpad=0,
    )  # fmt: skip
    notes = ["area: share of time", "left to right: longer periods"]
    if unwritten:
        notes.append(f"{format_count(unwritten, 'arrow')} without a label")
    figure.text(0.98, 1 - 1.0 / figure.get_figheight(), "  ·  ".join(notes), ha="right", fontsize=8.5, color=SOFT)


def _groups(graph: Mapping[str, Any]) -> set[str]:
    return {_CAUSES[edge["cause"]][1] for edge in graph["edges"] if edge["cause"] in _CAUSES}


# ---- sequence of states


def _draw_sequence(axes: Axes, graph: Mapping[str, Any]) -> None:
    """Draw a strip of the states over time, and above it the cause of each transition."""
    sequence = sort_states(graph)
    edges = np.array(sequence.edges_s)
    if edges[-1] <= edges[0]:
        edges = edges[0] + np.linspace(0, 1, len(edges))
    clock = RunClock.for_span(float(edges[0]), float(edges[-1]))
    axes.set_xlim(*clock.at(edges[[0, -1]]).tolist())
    draw_strip(axes, sequence.names, edges, clock, sequence.texts)
    axes.set_xlabel(clock.label)
    axes.ticklabel_format(axis="x", useOffset=False)
    _draw_causes(axes, sequence.causes, clock)


def _draw_causes(axes: Axes, causes: Sequence[tuple[float, str]], clock: RunClock) -> None:
    """Mark transitions above the strip in their cause's color, and write the causes of a few, in three rows."""
    low, high = axes.get_xlim()
    wide = _WIDTH_IN - 2 * _SIDE_IN
    free, blend = [-1.0, -1.0, -1.0], axes.get_xaxis_transform()
    for time, cause in causes:
        color, x = _CAUSES.get(cause, (GRAY, ""))[0], float(clock.at(time))
        text, inches = plain(cause, NAME_CHARACTERS), (x - low) / (high - low) * wide
        needed = text_inches(text, LABEL_POINTS) + 0.06
        start = inches - needed if inches + needed > wide else inches
        row = next((row for row, until in enumerate(free) if until <= start), None)
        is_told = row is not None and len(causes) <= _MAX_CAUSES
        top = 1.3 + 0.5 * row if is_told and row is not None else 1.12
        axes.plot([x, x], [1.0, top], color=color, lw=0.9, transform=blend, clip_on=False)
        if is_told and row is not None:
            free[row] = start + needed
            axes.text(
                x, top, f" {text} ", transform=blend, fontsize=LABEL_POINTS, color=color, va="center", clip_on=False,
                ha="left" if start == inches else "right", bbox={"pad": 0.2, "lw": 0, "fc": GROUND, "alpha": 0.8},
            )  # fmt: skip
