"""The naive twin of `iosig.transforms.signatures.iosi_wavelets`: the filter bank's sums, point by point."""

from __future__ import annotations

from collections.abc import Sequence

import pywt

_DMEY = pywt.Wavelet("dmey")
LOW, BACK = list(_DMEY.dec_lo), list(_DMEY.rec_lo)


def mirrored(row: Sequence[float], place: int) -> float:
    """The value at any place of a row that is reflected at its ends, the end points doubled."""
    while not 0 <= place < len(row):
        place = -1 - place if place < 0 else 2 * len(row) - 1 - place
    return row[place]


def halved(row: Sequence[float]) -> list[float]:
    """Every second value of the low-pass filtered row."""
    count = (len(row) + len(LOW) - 1) // 2
    return [sum(tap * mirrored(row, 2 * k + 1 - j) for j, tap in enumerate(LOW)) for k in range(count)]


def doubled(coarse: Sequence[float], points: int) -> list[float]:
    """The row whose coefficients these are: zeros between them, then the reconstruction filter."""
    found = [0.0] * (2 * len(coarse) + len(BACK))
    for k, coefficient in enumerate(coarse):
        for j, tap in enumerate(BACK):
            found[2 * k + j] += coefficient * tap
    return found[len(BACK) - 2 :][:points]


def approximation(row: Sequence[float], level: int) -> list[float]:
    """The low-frequency component of one row."""
    if level == 0:
        return list(row)
    return doubled(approximation(halved(row), level - 1), len(row))
