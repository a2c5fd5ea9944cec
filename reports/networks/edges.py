"""Rasterize the edges between rings: each edge is a one-dimensional heat map along its length.

A position on an edge encodes a value (Sigovan et al., IPDPS'13, sections IV.A and IV.B). Position and radius both vary
linearly from one end to the other, so all edges of a hop have the same value at the same radius. Where edges overlap,
their colors therefore refer to the same value. Color wins over gray, and more transfers win over fewer. An outlier at
the circle's rim has a radius that few edges share, so it is never hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.networks.rings import unwrap_end_angles

Codes = npt.NDArray[np.uint16]
Bytes = npt.NDArray[np.uint8]

#: supersampling factor: each output pixel is the mean of _FINE x _FINE fine pixels
_FINE = 2
#: number of curve points computed in one batch
#: maximum number of curve points of all edges; with more edges, each edge has fewer points
_CHUNK_POINTS, _MAX_POINTS = 1 << 18, 40_000_000
#: points per fine pixel along an edge
_DENSITY = 1.2
#: codes per hop: one for gray, the others for colors
_HOP_CODES = 257


@dataclass(frozen=True, slots=True)
class HopEdges:
    """Edges (n) of one hop: the angles of their ends, and the radii of both rings in layout units.

    levels (n, slots): color index (256, 3), or -1 for no value; slots ascend with the value, from the inner to the
    outer end. width: line width in pixels.
    """

    began_angles: Reals
    ceased_angles: Reals
    began_radius: float
    ceased_radius: float
    levels: npt.NDArray[np.int16]
    colors: Bytes
    width: float

    @property
    def lengths(self) -> Reals:
        """Approximate edge lengths in layout units, slightly overestimated."""
        turns = np.abs(unwrap_end_angles(self.began_angles, self.ceased_angles) - self.began_angles)
        across = turns * (self.began_radius + self.ceased_radius) / 2
        return np.hypot(across, self.began_radius - self.ceased_radius)


def edge_image(hops: Sequence[HopEdges], radius: int, gray: Bytes) -> Bytes:
    """Return an RGBA image (2 radius, 2 radius, 4) of all hops' edges, transparent elsewhere; radius: in pixels."""
    side = 2 * radius * _FINE
    # A border of one pixel catches points just outside the image.
    codes = np.zeros((side + 2, side + 2), dtype=np.uint16)
    share = min(1.0, _MAX_POINTS / max(sum(_point_count(hop, radius) for hop in hops), 1))
    for number, hop in enumerate(hops):
        _draw(codes, hop, radius, share, 1 + number * _HOP_CODES)
    colors = np.zeros((1 + _HOP_CODES * len(hops), 4), dtype=np.uint8)
    for number, hop in enumerate(hops):
        first = 1 + number * _HOP_CODES
        colors[first : first + _HOP_CODES] = np.column_stack(
            [np.concatenate([gray[None], hop.colors]), np.full(_HOP_CODES, 255)]
        )
    # A line is one pixel wide or more, and has no gaps.
    wide = np.maximum(codes[1:], codes[:-1])
    return _downsample(np.maximum(wide[:, 1:], wide[:, :-1])[:side, :side], colors)


def _downsample(codes: Codes, colors: Bytes) -> Bytes:
    """Downsample fine pixels to RGBA by averaging.

    Opacity is the square root of the coverage, because a line between two pixels would otherwise look too pale.
    """
    side = codes.shape[0] // _FINE
    parts = [codes[row::_FINE, column::_FINE] for row in range(_FINE) for column in range(_FINE)]
    # Most pixels are transparent, so only the others are processed.
    places = np.flatnonzero(np.bitwise_or.reduce(parts))
    total = np.zeros((len(places), 4), dtype=np.uint16)
    for part in parts:
        total += colors[part.reshape(-1)[places]]
    covered = total[:, 3] // 255
    opacities = np.rint(255 * np.sqrt(np.arange(len(parts) + 1) / len(parts))).astype(np.uint8)
    image = np.zeros((side * side, 4), dtype=np.uint8)
    image[places, :3] = total[:, :3] // covered[:, None]
    image[places, 3] = opacities[covered]
    return image.reshape(side, side, 4)


def _lanes(hop: HopEdges) -> Reals:
    """Return the perpendicular offsets of the parallel strokes that form one edge, in fine pixels."""
    count = max(1, round(hop.width * _FINE) - 1)
    return np.arange(count, dtype=np.float64) - (count - 1) / 2


def _point_count(hop: HopEdges, radius: int) -> float:
    return float(hop.lengths.sum()) * radius * _FINE * _DENSITY * len(_lanes(hop))


def _draw(codes: Codes, hop: HopEdges, radius: int, share: float, first: int) -> None:
    slot_count = hop.levels.shape[1]
    of_slots = (hop.levels + (1 + first)).astype(np.uint16)
    counts = np.ceil(hop.lengths * (radius * _FINE * _DENSITY * share)).astype(np.int64)
    # Each slot has a point, whatever the number of edges.
    counts = np.maximum(counts, 2 * slot_count)
    flat = codes.reshape(-1)
    for part in _chunks(counts):
        edge = np.repeat(np.arange(part.start, part.stop), counts[part])
        along = np.arange(len(edge)) - np.repeat(np.cumsum(counts[part]) - counts[part], counts[part]) + 0.5
        along /= counts[edge]
        # The outer end has the highest value.
        slot = slot_count - 1 - (along * slot_count).astype(np.int64)
        code = of_slots[edge, slot]
        for place in _places(hop, edge, along, radius, codes.shape[1]):
            np.maximum.at(flat, place, code)


def _chunks(counts: Ints) -> Iterator[slice]:
    """Yield slices of complete edges with about _CHUNK_POINTS points each."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        previous_end = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, previous_end + _CHUNK_POINTS, side="right")))
        yield slice(start, stop)
        start = stop


def _places(hop: HopEdges, edge: Ints, along: Reals, radius: int, stride: int) -> Iterator[Ints]:
    """Yield, for each parallel stroke of the edges, the fine pixels of the points on that stroke."""
    scale = radius * _FINE
    turns = unwrap_end_angles(hop.began_angles, hop.ceased_angles) - hop.began_angles
    turn = turns[edge]
    inward = (hop.ceased_radius - hop.began_radius) * scale
    angle = hop.began_angles[edge] + turn * along
    reach = hop.began_radius * scale + inward * along
    sine, cosine = np.sin(angle), np.cos(angle)
    across, down = scale + reach * sine, scale - reach * cosine
    lanes = _lanes(hop)
    if len(lanes) > 1:
        # Unit vector along the edge; its normal is (-by_y, by_x).
        by_x, by_y = inward * sine + reach * turn * cosine, reach * turn * sine - inward * cosine
        length = np.hypot(by_x, by_y)
        by_x, by_y = by_x / length, by_y / length
    for lane in lanes:
        shifted = (across - by_y * lane, down + by_x * lane) if len(lanes) > 1 else (across, down)
        # Shift by half a pixel, because each point fills this pixel and the next one.
        column, row = (np.clip(np.floor(part + 0.5).astype(np.int64), 0, stride - 1) for part in shifted)
        yield row * stride + column
