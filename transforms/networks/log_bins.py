"""Assign values to logarithmic histogram bins, four per octave (factor of two), by the bits of floating-point numbers.

Bin k contains 2**(k/4) <= v < 2**((k+1)/4). Bin numbers do not depend on the range of the data, so histograms of
streams, time windows and edges can be added. Sigovan et al. (IPDPS'13, section IV.A) bin the values of an edge and
color them by logarithm. Here, the bins themselves are logarithmic, since service times span six orders of magnitude.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Reals

Bins = npt.NDArray[np.int16]

BINS_PER_OCTAVE = 4
#: special bins for values without a logarithm; UNKNOWN values are not counted
NEGATIVE = -32768
ZERO = -32767
UNKNOWN = -32766
#: `LOWEST`, `HIGHEST`: bins of the smallest and of the largest positive float
LOWEST = -1074 * BINS_PER_OCTAVE
HIGHEST = 1023 * BINS_PER_OCTAVE + 3

#: lower edges of the bins in an octave: 2**(0/4) to 2**(3/4), correctly rounded
_STARTS = np.array([1.0, *map(float.fromhex, ("0x1.306fe0a31b715p+0", "0x1.6a09e667f3bcdp+0", "0x1.ae89f995ad3adp+0"))])
_MANTISSA_BITS = np.uint64(52)
_MANTISSA = np.uint64((1 << 52) - 1)
_START_BITS = _STARTS.view(np.uint64) & _MANTISSA
#: number of codes of positive floats; a code consists of the sign, the exponent, and the bin within the octave
_POSITIVE_CODE_COUNT = 4 << 11
_LOWEST_NORMAL = -1022 * BINS_PER_OCTAVE
#: number of octaves by which subnormal numbers are scaled, which makes them normal without rounding
_LIFT_OCTAVES = 64
#: number of values per chunk; a chunk fits into the processor's cache
_CHUNK = 1 << 14


def _make_code_table() -> Bins:
    positive = np.arange(_POSITIVE_CODE_COUNT) + (_LOWEST_NORMAL - 4)
    positive[:4] = ZERO
    positive[-4:] = UNKNOWN
    negative = np.full(_POSITIVE_CODE_COUNT, NEGATIVE)
    negative[-4:] = UNKNOWN
    return np.concatenate([positive, negative]).astype(np.int16)


_BIN_OF_CODE = _make_code_table()


def bin_numbers(values: Reals) -> Bins:
    """Assign values to logarithmic bins.

    Parameters
    ----------
    values : (n,)
        Values of any sign and unit.

    Returns
    -------
    (n,)
        Bin number k, NEGATIVE, ZERO, or UNKNOWN for NaN and infinities.
    """
    numbers = np.empty(len(values), np.int16)
    for begin in range(0, len(values), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        numbers[part] = _bin_chunk(np.ascontiguousarray(values[part], dtype=np.float64))
    return numbers


def _bin_chunk(values: Reals) -> Bins:
    bits = values.view(np.uint64)
    codes = (bits >> _MANTISSA_BITS).astype(np.uint16) << np.uint16(2)
    mantissas = bits & _MANTISSA
    for start in _START_BITS[1:]:
        codes += (mantissas >= start).view(np.uint8)
    bins: Bins = _BIN_OF_CODE[codes]
    # only zeros and subnormal numbers have an exponent of zero
    small = np.flatnonzero((codes & np.uint16(_POSITIVE_CODE_COUNT - 1)) < 4)
    if len(small):
        bins[small] = _bin_small(values[small])
    return bins


def _bin_small(values: Reals) -> Bins:
    """Assign zeros and subnormal numbers of both signs to bins."""
    bins = np.where(values < 0, NEGATIVE, ZERO).astype(np.int16)
    is_subnormal = values > 0
    if is_subnormal.any():
        scaled = _bin_chunk(np.ldexp(values[is_subnormal], _LIFT_OCTAVES))
        bins[is_subnormal] = scaled - np.int16(_LIFT_OCTAVES * BINS_PER_OCTAVE)
    return bins


def lower_edges(bins: npt.NDArray[np.integer]) -> Reals:
    """Return the lower edges of bins, 2**(k/4).

    Parameters
    ----------
    bins : (n,)
        Bin numbers.

    Returns
    -------
    (n,)
        Lower edge of each bin; 0 for ZERO, NaN for NEGATIVE and UNKNOWN.
    """
    numbers = np.asarray(bins, dtype=np.int64)
    values = np.ldexp(_STARTS[numbers & 3], np.clip(numbers >> 2, -1100, 1024))
    values = np.where(numbers == ZERO, 0.0, values)
    return np.where((numbers == NEGATIVE) | (numbers == UNKNOWN), np.nan, values)
