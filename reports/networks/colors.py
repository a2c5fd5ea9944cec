"""Define the color maps of a network's edges: one map per pair of layers, from few transfers to many.

Sigovan et al. (IPDPS'13), section IV.A: separate maps for the two levels of edges, blue, green, yellow outside and
violet, red, orange inside; luminance rises with the count; gray where there are no transfers. Two more maps serve
deeper networks, then the sequence repeats: maps of neighboring hops always differ.

Luminance (CIELAB's L*) rises in equal steps, so the order of counts survives color vision deficiencies and printing in
gray. It rises on light backgrounds too, as in the paper: rare values matter most, and they are the darkest there;
frequent values have a light, saturated color. On dark backgrounds all colors are lighter.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Reals

Bytes = npt.NDArray[np.uint8]

STEP_COUNT = 256
#: lightness L* of few and of many transfers, and hue angles [degrees] and chromas at equal steps in between (CIELAB)
_Map = tuple[tuple[float, float], tuple[tuple[float, float], ...]]
_LIGHT: tuple[_Map, ...] = (
    # blue, green, yellow
    ((30.0, 86.0), ((285.0, 50.0), (240.0, 33.0), (170.0, 38.0), (128.0, 56.0), (98.0, 74.0))),
    # violet, red, orange
    ((22.0, 74.0), ((312.0, 42.0), (350.0, 48.0), (26.0, 58.0), (46.0, 66.0), (64.0, 66.0))),
    # dark blue-gray, sky, pale blue
    ((36.0, 90.0), ((255.0, 24.0), (248.0, 30.0), (242.0, 32.0), (236.0, 27.0), (230.0, 20.0))),
    # brown, rose, pink
    ((20.0, 73.0), ((42.0, 26.0), (16.0, 38.0), (0.0, 46.0), (345.0, 42.0), (335.0, 34.0))),
)
#: lightness that a dark background adds to the colors of few and of many transfers
_LIGHTER = (16.0, 6.0)
_GRAYS = {False: 216, True: 58}
# sRGB (IEC 61966-2-1) to CIE XYZ under D65
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = _TO_XYZ.sum(axis=1)
_CUT = 6 / 29


def colors(hop: int, *, is_dark: bool) -> Bytes:
    """Return a hop's colors (256, 3), for counts on a log scale from few to many."""
    return _map(hop % len(_LIGHT), is_dark).copy()


def unused_color(*, is_dark: bool) -> Bytes:
    """Return the gray (3) for positions on an edge without values."""
    return np.full(3, _GRAYS[is_dark], dtype=np.uint8)


def convert_to_lab(srgb: npt.ArrayLike) -> Reals:
    """Return CIELAB's L*, a*, b* (…, 3) of sRGB colors from 0 to 255 (…, 3)."""
    parts = np.asarray(srgb, dtype=np.float64) / 255.0
    linear = np.where(parts <= 0.04045, parts / 12.92, ((np.maximum(parts, 0.0) + 0.055) / 1.055) ** 2.4)
    ratios = linear @ _TO_XYZ.T / _WHITE
    roots = np.where(ratios > _CUT**3, np.cbrt(ratios), ratios / (3 * _CUT**2) + 4 / 29)
    x, y, z = np.moveaxis(roots, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


@cache
def _map(number: int, is_dark: bool) -> Bytes:
    (few, many), stops = _LIGHT[number]
    steps = np.linspace(0.0, 1.0, STEP_COUNT)
    lightness = few + is_dark * _LIGHTER[0] + (many + is_dark * _LIGHTER[1] - few - is_dark * _LIGHTER[0]) * steps
    hues, chromas = np.array(stops).T
    # Interpolate in the plane of a* and b*, so that no unwanted hue occurs in between.
    planes = chromas * np.exp(1j * np.radians(hues))
    places = np.linspace(0.0, 1.0, len(stops))
    plane = np.interp(steps, places, planes.real) + 1j * np.interp(steps, places, planes.imag)
    return _round_colors(_within_gamut(lightness, plane), lightness)


def _within_gamut(lightness: Reals, plane: npt.NDArray[np.complex128]) -> Reals:
    """Return sRGB colors (n, 3) from 0 to 255 with the maximum chroma that fits the gamut at this lightness."""
    low, high = np.zeros(len(plane)), np.ones(len(plane))
    for _ in range(24):
        middle = (low + high) / 2
        is_shown = ((srgb := _convert_to_srgb(lightness, plane * middle)) >= 0).all(axis=1) & (srgb <= 255).all(axis=1)
        low, high = np.where(is_shown, middle, low), np.where(is_shown, high, middle)
    return np.clip(_convert_to_srgb(lightness, plane * low), 0, 255)


def _convert_to_srgb(lightness: Reals, plane: npt.NDArray[np.complex128]) -> Reals:
    y = (lightness + 16) / 116
    roots = np.stack([y + plane.real / 500, y, y - plane.imag / 200], axis=-1)
    ratios = np.where(roots > _CUT, roots**3, 3 * _CUT**2 * (roots - 4 / 29))
    linear = (ratios * _WHITE) @ np.linalg.inv(_TO_XYZ).T
    srgb: Reals = 255 * np.where(
        linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 0) ** (1 / 2.4) - 0.055
    )
    return srgb


def _round_colors(srgb: Reals, lightness: Reals) -> Bytes:
    """Round colors to integers, choosing the neighbor closest in lightness to keep lightness monotonic."""
    offsets = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    tried = np.clip(np.rint(srgb)[:, None, :] + offsets, 0, 255)
    misses = np.abs(convert_to_lab(tried)[..., 0] - lightness[:, None])
    best = np.argmin(misses, axis=1)
    return np.asarray(tried[np.arange(len(srgb)), best], dtype=np.uint8)
