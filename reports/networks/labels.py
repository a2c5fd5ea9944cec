"""Place node names on their rings: as many as fit, without overlap, and never upside down.

Names outside the outermost ring are horizontal, or radial if there are many. On inner rings they follow their segment,
or cross it if the segment is too short. If not all names fit, only every second, fifth, tenth ... node is labeled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.reports.networks.texts import distinct
from iosig.reports.style import DOTS_PER_INCH, GRAY, INK
from iosig.reports.texts import plain
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.networks.network import Layer
from iosig.transforms.networks.rings import Ring

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_TURN = 2 * np.pi
_OUTER_POINTS = 9.0
#: font sizes of names on inner rings [points], in the order in which they are tried
#: font size of names on large segments [points]
#: minimum length of a large segment [pixels]
_INNER_POINTS, _LARGE_POINTS, _LARGE_MIN_SEGMENT = (7.0, 6.0), 9.0, 120
_MAX_NAME_CHARS = 18
#: distance between two names [pixels]
#: distance between a ring and its names [pixels]
#: length of a tick [pixels]
_NAME_GAP, _RING_GAP, _TICK = 9, 11, 6
#: minimum radius of the circle [pixels]
#: maximum number of horizontal names
#: maximum number of radial names
_MIN_RADIUS, _MAX_HORIZONTAL, _MAX_RADIAL = 560.0, 48, 160
#: only this number of names, the longest ones, are rendered to measure their width
_MAX_MEASURED_NAMES = 64
#: radial position of a name in the innermost disc, as a fraction of the disc's radius
_SECTOR_SHARE = 0.62


@dataclass(frozen=True, slots=True)
class OuterLabels:
    """Names around the outermost ring: nodes, texts, whether they are horizontal, and the required space in pixels."""

    nodes: Ints
    texts: Sequence[str]
    is_level: bool
    room: float


def outer_labels(layer: Layer) -> OuterLabels:
    """Choose and format the names around the outermost ring, and measure the space that they need."""
    count = layer.node_count
    if not count:
        return OuterLabels(np.empty(0, dtype=np.int64), [], True, 0.0)
    texts = (_first_members(layer) if layer.group_size > 1 else layer.labels).to_list()
    if max(map(len, texts)) > _MAX_NAME_CHARS:
        # Truncation could remove the characters that distinguish two names, so the distinguishing part is kept.
        texts = distinct(texts)
    high = _line(_OUTER_POINTS)
    around = _TURN * _MIN_RADIUS
    wide = _widest(texts, _OUTER_POINTS)
    is_number = all(text.isascii() and text.isdecimal() for text in texts[:_MAX_MEASURED_NAMES])
    if not is_number and (count > _MAX_HORIZONTAL or around / count < wide + _NAME_GAP):
        step = _step(count, around, high + 2, _MAX_RADIAL)
        is_level = False
    else:
        step = _step(count, around, wide + _NAME_GAP, _MAX_HORIZONTAL)
        is_level = True
    nodes = _select_label_positions(count, step)
    return OuterLabels(nodes, [_shown(texts[node]) for node in nodes.tolist()], is_level, wide + _RING_GAP + 4)


def draw_outer(axes: Axes, labels: OuterLabels, ring: Ring, radius: float) -> None:
    """Write names around the outermost ring; radius: of the whole circle, in pixels."""
    from matplotlib.collections import LineCollection

    angles = ring.middles[labels.nodes]
    directions = np.column_stack([np.sin(angles), np.cos(angles)])
    ticks = np.stack([directions * (ring.outer_radius + 1 / radius), directions * (1 + _TICK / radius)], axis=1)
    axes.add_collection(LineCollection(list(ticks), colors=GRAY, linewidths=0.7), autolim=False)
    for text, angle, (x, y) in zip(labels.texts, angles.tolist(), directions.tolist(), strict=True):
        if labels.is_level:
            reach = 1 + _RING_GAP / radius
            sides = (
                ("left" if x > 0.12 else "right" if x < -0.12 else "center"),
                ("center" if abs(y) < 0.9 else "bottom" if y > 0 else "top"),
            )
            axes.text(x * reach, y * reach, text, fontsize=_OUTER_POINTS, color=INK, ha=sides[0], va=sides[1])
        else:
            _across(axes, text, angle, 1 + _RING_GAP / radius, _OUTER_POINTS, INK, is_outward=True)


def draw_inner(axes: Axes, layer: Layer, ring: Ring, radius: float, colors: Sequence[str]) -> None:
    """Write names on the segments of an inner ring in each node's color, where they fit."""
    count = layer.node_count
    if not count:
        return
    if count < 2 and ring.inner_radius == 0:
        for text in layer.labels.to_list():
            axes.text(0, 0, _shown(text), fontsize=_LARGE_POINTS, color=colors[0], ha="center", va="center")
        return
    reach = ring.outer_radius * _SECTOR_SHARE if ring.inner_radius == 0 else (ring.outer_radius + ring.inner_radius) / 2
    around = _TURN * reach * radius
    thick = 2 * (ring.outer_radius - reach) * radius
    points = _INNER_POINTS if around / max(count, 1) < _LARGE_MIN_SEGMENT else (_LARGE_POINTS,)
    full = (_first_members(layer) if layer.group_size > 1 else layer.labels).to_list()
    for texts, size in product((full, distinct(full)), points):
        wide, high = _widest(texts, size), _line(size)
        if wide + 6 <= around / count and high <= thick:
            _along(axes, texts, ring.middles, reach, size, colors)
            return
        if wide <= thick:
            for node in ring.order[_select_label_positions(count, _step(count, around, high + 1, count))].tolist():
                _across(axes, _shown(texts[node]), float(ring.middles[node]), reach, size, colors[node])
            return


def _along(axes: Axes, texts: Sequence[str], angles: Reals, reach: float, points: float, colors: Sequence[str]) -> None:
    for text, angle, color in zip(texts, angles.tolist(), colors, strict=True):
        degrees = -np.degrees(angle) % 360
        # Turn text that would be upside down.
        degrees = degrees + 180 if 90 < degrees < 270 else degrees
        _draw_rotated_text(axes, _shown(text), angle, reach, points, color, degrees, "center")


def _across(
    axes: Axes, text: str, angle: float, reach: float, points: float, color: str, *, is_outward: bool = False
) -> None:
    is_right = np.sin(angle) >= 0
    degrees = 90 - np.degrees(angle) + (0 if is_right else 180)
    side = "center" if not is_outward else "left" if is_right else "right"
    _draw_rotated_text(axes, text, angle, reach, points, color, degrees, side)


def _draw_rotated_text(
    axes: Axes, text: str, angle: float, reach: float, points: float, color: str, degrees: float, side: str
) -> None:
    axes.text(
        reach * np.sin(angle), reach * np.cos(angle), text,
        fontsize=points, color=color, ha=side, va="center_baseline" if side == "center" else "center",
        rotation=degrees, rotation_mode="anchor",
    )  # fmt: skip


# ---- space for names


def _shown(label: str) -> str:
    return plain(label, _MAX_NAME_CHARS)


def _first_members(layer: Layer) -> pl.Series:
    """Return the first member of each group, from labels such as `0-63` or `a to b`; other labels are unchanged."""
    label = pl.col("label")
    first = pl.coalesce(label.str.extract(r"^(\d+)-\d+$"), label.str.extract(r"(?s)^(.+?) to .+$"), label)
    return layer.labels.alias("label").to_frame().select(first).to_series()


def _step(count: int, around: float, room: float, max_count: int) -> int:
    """Return the stride between named nodes: a power of two for multiples of 64 nodes, else 1, 2, 5, 10 ...."""
    is_binary = count >= 64 and count % 64 == 0
    steps: list[int] = (
        [2**power for power in range(40)] if is_binary else [s * 10**p for p in range(12) for s in (1, 2, 5)]
    )
    return next(
        step for step in steps if step >= count or (count / step <= max_count and around * step / count >= room)
    )


def _select_label_positions(count: int, step: int) -> Ints:
    """Return the positions of named nodes, dropping the last one if it is too close to the first."""
    places = np.arange(0, count, step)
    return places[:-1] if step > 1 and len(places) > 1 and count - places[-1] < step else places


def _line(points: float) -> float:
    return points * DOTS_PER_INCH / 72


def _widest(labels: Sequence[str], points: float) -> float:
    """Return the width in pixels of the widest displayed name."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont("DejaVu Sans"))
    font.set_size(points, DOTS_PER_INCH)
    widths = [0.0]
    for label in sorted(set(labels), key=lambda label: (-len(label), label))[:_MAX_MEASURED_NAMES]:
        font.set_text(_shown(label), 0.0)
        widths.append(font.get_width_height()[0] / 64)
    return max(widths)
