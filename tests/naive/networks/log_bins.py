"""Naive implementation of `iosig.transforms.networks.log_bins`: value by value, from mantissa and exponent."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

NEGATIVE, ZERO, UNKNOWN = -32768, -32767, -32766


def threshold(quarter: int) -> float:
    """2**(quarter/4), correctly rounded."""
    with localcontext() as context:
        context.prec = 50
        return float(Decimal(2) ** (Decimal(quarter) / 4))


THRESHOLDS = [threshold(quarter) for quarter in range(4)]


def bin_number(value: float) -> int:
    """Bin of a value: whole octaves, plus the number of quarter-octave thresholds that the value reaches."""
    if math.isnan(value) or math.isinf(value):
        return UNKNOWN
    if value < 0:
        return NEGATIVE
    if value == 0:
        return ZERO
    mantissa, exponent = math.frexp(value)
    reached = sum(2 * mantissa >= start for start in THRESHOLDS)
    return 4 * (exponent - 1) + reached - 1
