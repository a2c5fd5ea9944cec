"""Discrete Meyer wavelets: the smooth part of samples, from which bursts stand out.

IOSI (Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu), section 5.2:
the low-frequency component of a discrete Meyer (`dmey`) decomposition; level 2 "to better retain the bursty nature".

The filter bank is the one of PyWavelets, whose numbers this reproduces. It is written as products of matrices because
62 taps at each point are many: a block of outputs is one row of inputs times a small constant matrix.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Ints, Reals

#: the decomposition level of IOSI, section 5.2 and Figure 17
LEVEL = 2
#: taps of the filter (PyWavelets); what lies before a point's first one
_TAPS = 62
_LEAD = _TAPS - 2
#: outputs of a matrix product: more waste multiplications by zero, fewer do not fill the processor
_HALVED, _RESTORED = 16, 64
#: points that are worked on at once, so that they stay in the processor's cache
_CHUNK_POINTS = 1 << 15
#: multiplications in one product: for more OpenBLAS wakes threads, and on a busy machine waits for them, which takes
#: ten times as long as the product
_PRODUCT = 1 << 18


def approximation(values: npt.ArrayLike, level: int = LEVEL) -> Reals:
    """Return the low-frequency component of each row, at the samples' own resolution.

    It equals PyWavelets' `wavedec` and `waverec` with all details zero, in `symmetric` mode (its default: rows are
    mirrored at their ends), cut to the row's length.

    Parameters
    ----------
    values : shape (runs, points), any unit, finite
    level : how often the resolution is halved, 1 or more

    Returns
    -------
    Reals : shape (runs, points), in the values' unit; it may swing below zero beside bursts

    Raises
    ------
    ValueError : the values are not two-dimensional, or the level is below 1

    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or level < 1:
        raise ValueError("values are of the shape (runs, points), and a level is 1 or more")
    if not rows.size:
        return rows.copy()
    found = np.empty_like(rows, order="C")
    step = max(1, _CHUNK_POINTS // rows.shape[1])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for first in range(0, len(rows), step):
            chunk = slice(first, first + step)
            coarse = rows[chunk]
            for _ in range(level):
                coarse = _halved(coarse)
            found[chunk] = _restored(coarse, rows.shape[1], level)
    return found


def _halved(rows: Reals) -> Reals:
    """Return every second value of the low-pass filtered rows: (runs, points) to (runs, (points + 61) // 2)."""
    count = (rows.shape[1] + _TAPS - 1) // 2
    blocks = -(-count // _HALVED)
    # an output's window reaches over three pieces of the row: each piece is read once, and counts in three outputs
    pieces = _mirrored(rows, 2 * _HALVED * (blocks + 2) - _LEAD).reshape(-1, 2 * _HALVED)
    parts = _product(pieces, _halving()).reshape(len(rows), blocks + 2, -1)
    found = parts[:, :-2, :_HALVED] + parts[:, 1:-1, _HALVED : 2 * _HALVED]
    found += parts[:, 2:, 2 * _HALVED :]
    return found.reshape(len(rows), -1)[:, :count]


def _restored(coarse: Reals, points: int, level: int) -> Reals:
    """Return rows of so many points from their approximation coefficients, all levels in one step.

    What a level's reconstruction has beyond the row is never asked for by the next, so that the levels' filters
    can be applied as one. (Decomposition cannot be: each level is mirrored anew.)
    """
    matrix = _restoring(level)
    width, fine = matrix.shape
    blocks = -(-points // fine)
    step = fine >> level
    padded = np.zeros((len(coarse), step * (blocks - 1) + width))
    known = min(coarse.shape[1], padded.shape[1])
    padded[:, :known] = coarse[:, :known]
    windows = _windows(padded, step, width, blocks)
    return _product(windows, matrix).reshape(len(coarse), -1)[:, :points]


def _product(windows: Reals, matrix: Reals) -> Reals:
    """Return windows (n, width) times a matrix (width, m), in pieces that one processor does alone."""
    found = np.empty((len(windows), matrix.shape[1]))
    step = max(1, _PRODUCT // matrix.size)
    for first in range(0, len(windows), step):
        piece = slice(first, first + step)
        np.matmul(windows[piece], matrix, out=found[piece])
    return found


def _mirrored(rows: Reals, end: int) -> Reals:
    """Return the rows with what lies from `_LEAD` before them to an end, mirrored at their ends as often as needed."""
    points = rows.shape[1]
    kept = min(points, end)
    padded = np.empty((len(rows), _LEAD + end))
    padded[:, _LEAD : _LEAD + kept] = rows[:, :kept]
    padded[:, :_LEAD] = rows[:, _reflected(np.arange(-_LEAD, 0), points)]
    padded[:, _LEAD + kept :] = rows[:, _reflected(np.arange(kept, end), points)]
    return padded


def _reflected(place: Ints, points: int) -> Ints:
    """Return the places within a row that places outside mirror: ..., 1, 0, [0, 1, ..., n - 1], n - 1, n - 2, ..."""
    place = place % (2 * points)
    return np.minimum(place, 2 * points - 1 - place)


def _windows(rows: Reals, step: int, width: int, count: int) -> Reals:
    """Return pieces of each row, one below the other (runs x count, width): piece i begins at i steps."""
    strides = (rows.strides[0], step * rows.strides[1], rows.strides[1])
    pieces = np.lib.stride_tricks.as_strided(rows, (len(rows), count, width), strides, writeable=False)
    return pieces.reshape(-1, width)


@cache
def _halving() -> Reals:
    """Return what takes a window to `_HALVED` coefficients: output s is the sum of h[j] x[2 s + 1 - j] over j.

    The window's pieces lie side by side (2 `_HALVED`, 3 `_HALVED`): what each one adds to the output.
    """
    output, tap = np.mgrid[:_HALVED, :_TAPS]
    matrix = np.zeros((3 * 2 * _HALVED, _HALVED))
    matrix[2 * output + _LEAD + 1 - tap, output] = _meyer()[0]
    return np.concatenate(np.split(matrix, 3), axis=1)


@cache
def _restoring(level: int) -> Reals:
    """Return what takes a window of coefficients to points: point m is the sum of g[m + c - 2**level k] a[k] over k.

    g is the level's filters in one: each level's has 2**level times as many zeros between its taps.
    """
    ratio = 1 << level
    taps = np.ones(1)
    for place in range(level):
        spread = np.zeros(((_TAPS - 1) << place) + 1)
        spread[:: 1 << place] = _meyer()[1]
        taps = np.convolve(taps, spread)
    fine = max(_RESTORED, ratio)
    width = (fine >> level) + (_TAPS - 1) * (ratio - 1) // ratio
    coefficient, point = np.mgrid[:width, :fine]
    tap = point + _LEAD * (ratio - 1) - ratio * coefficient
    is_tap = (tap >= 0) & (tap < len(taps))
    return np.where(is_tap, taps[np.where(is_tap, tap, 0)], 0.0)


@cache
def _meyer() -> tuple[Reals, Reals]:
    """Return the low-pass filters of decomposition and of reconstruction (`_TAPS` each)."""
    import pywt

    wavelet = pywt.Wavelet("dmey")
    return np.array(wavelet.dec_lo), np.array(wavelet.rec_lo)
