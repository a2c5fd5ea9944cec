"""Label the points of a panel: as many names as fit, without covering another name or a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports.style import INK, NOTE_POINTS
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: distance between a point's edge and its name [pixels]
#: padding around a name [pixels]
_OFFSET_PX, _PADDING_PX = 4.0, 2.0
#: candidate label positions: the direction from the point, and the text alignment
_SIDES = (
    (1, 0, "left", "center"), (-1, 0, "right", "center"), (0, 1, "center", "bottom"), (0, -1, "center", "top"),
    (1, 1, "left", "bottom"), (-1, 1, "right", "bottom"), (1, -1, "left", "top"), (-1, -1, "right", "top"),
)  # fmt: skip


def name_points(axes: Axes, x: Reals, y: Reals, radii: Reals, names: Sequence[str]) -> list[str]:
    """Label the first k of n points, in order of importance, where space allows; return the names written.

    x, y (n): in data coordinates. radii (n): radius of each point [pixels]; names must not cover points. names (k).
    """
    written: list[str] = []
    places = axes.transData.transform(np.column_stack([x, y]))
    boxes = np.column_stack([places - radii[:, None], places + radii[:, None]])
    room = axes.get_window_extent()
    # Use figure fractions, since the pixels of an SVG differ from those used for measuring text.
    shares = axes.figure.transFigure.inverted()
    for (across, up), radius, name in zip(places[: len(names)], radii, names, strict=False):
        for right, above, side, line in _SIDES:
            reach = (radius + _OFFSET_PX) * (0.75 if right and above else 1.0)
            text = axes.annotate(
                name, tuple(shares.transform((across + right * reach, up + above * reach))), xycoords="figure fraction",
                ha=side, va=line, fontsize=NOTE_POINTS, color=INK, zorder=6,
            )  # fmt: skip
            box = text.get_window_extent().padded(_PADDING_PX)
            is_inside = room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1
            if is_inside and not _overlap(boxes, box.x0, box.y0, box.x1, box.y1):
                boxes = np.vstack([boxes, [box.x0, box.y0, box.x1, box.y1]])
                written.append(name)
                break
            text.remove()
    return written


def _overlap(boxes: Reals, left: float, bottom: float, right: float, top: float) -> bool:
    is_apart = (boxes[:, 0] >= right) | (boxes[:, 2] <= left) | (boxes[:, 1] >= top) | (boxes[:, 3] <= bottom)
    return not bool(is_apart.all())
