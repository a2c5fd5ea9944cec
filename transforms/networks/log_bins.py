"""Logarithmic bins of values, four to an octave, found from the bits of the numbers.

Bin k holds 2**(k/4) <= v < 2**((k+1)/4), so that a bin number needs no range to be known beforehand: bins of streams,
time windows and edges can be summed as they are. An octave is a factor of two. Sigovan et al. (IPDPS'13, section
IV.A) bin the values on an edge; their colour is by logarithm, and so are our bins, since service times span six
orders of magnitude.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Reals

Bins = npt.NDArray[np.int16]

BINS_PER_OCTAVE = 4
#: bins of what has no logarithm; values of unknown size are in no bin at all
NEGATIVE = -32768
ZERO = -32767
UNKNOWN = -32766
#: the bins of the smallest and of the largest float
LOWEST = -1074 * BINS_PER_OCTAVE
HIGHEST = 1023 * BINS_PER_OCTAVE + 3

#: 2**(0/4) to 2**(3/4), correctly rounded: where an octave's bins begin
_STARTS = np.array([1.0, *map(float.fromhex, ("0x1.306fe0a31b715p+0", "0x1.6a09e667f3bcdp+0", "0x1.ae89f995ad3adp+0"))])
_MANTISSA_BITS = np.uint64(52)
_MANTISSA = np.uint64((1 << 52) - 1)
_START_BITS = _STARTS.view(np.uint64) & _MANTISSA
#: a code is a float's sign and exponent with the quarter of its octave
_NEGATIVE_CODES = 4 << 11
_LOWEST_NORMAL = -1022 * BINS_PER_OCTAVE
#: lifts subnormal numbers among the normal ones without rounding
_LIFT_OCTAVES = 64
#: values worked on at a time: fit the cache
_CHUNK = 1 << 14


def _bins_of_codes() -> Bins:
    positive = np.arange(_NEGATIVE_CODES) + (_LOWEST_NORMAL - 4)
    positive[:4] = ZERO
    positive[-4:] = UNKNOWN
    negative = np.full(_NEGATIVE_CODES, NEGATIVE)
    negative[-4:] = UNKNOWN
    return np.concatenate([positive, negative]).astype(np.int16)


_BIN_OF_CODE = _bins_of_codes()


def bin_numbers(values: Reals) -> Bins:
    """Return each value's bin number (n): NEGATIVE, ZERO, k, or UNKNOWN for NaN and the infinities."""
    found = np.empty(len(values), np.int16)
    for begin in range(0, len(values), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        found[part] = _bins(np.ascontiguousarray(values[part], dtype=np.float64))
    return found


def _bins(values: Reals) -> Bins:
    bits = values.view(np.uint64)
    found = (bits >> _MANTISSA_BITS).astype(np.uint16) << np.uint16(2)
    mantissas = bits & _MANTISSA
    for start in _START_BITS[1:]:
        found += (mantissas >= start).view(np.uint8)
    bins: Bins = _BIN_OF_CODE[found]
    # only zeros and subnormal numbers have an exponent of zero
    places = np.flatnonzero((found & np.uint16(_NEGATIVE_CODES - 1)) < 4)
    if len(places):
        bins[places] = _small_bins(values[places])
    return bins


def _small_bins(values: Reals) -> Bins:
    found = np.where(values < 0, NEGATIVE, ZERO).astype(np.int16)
    is_subnormal = values > 0
    if is_subnormal.any():
        lifted = _bins(np.ldexp(values[is_subnormal], _LIFT_OCTAVES))
        found[is_subnormal] = lifted - np.int16(_LIFT_OCTAVES * BINS_PER_OCTAVE)
    return found


def lower_values(bins: npt.NDArray[np.integer]) -> Reals:
    """Return the least value of each bin (n), 2**(k/4): 0 for ZERO, NaN for NEGATIVE and UNKNOWN."""
    numbers = np.asarray(bins, dtype=np.int64)
    values = np.ldexp(_STARTS[numbers & 3], np.clip(numbers >> 2, -1100, 1024))
    values = np.where(numbers == ZERO, 0.0, values)
    return np.where((numbers == NEGATIVE) | (numbers == UNKNOWN), np.nan, values)
