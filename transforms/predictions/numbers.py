"""What numbers in evaluations, parameters and rows may be."""

from __future__ import annotations

import math
from typing import Any

#: numbers beyond it are infinite
LARGEST = (2.0 - 2.0**-52) * 2.0**1023


def is_finite(value: Any) -> bool:
    """Return whether a value is a number that a float can hold; truth values are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number of at least 0, however large."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def finite_or_none(value: float) -> float | None:
    """Return a number as a plain float; None, which tables and JSON can hold, for NaN and infinity."""
    return float(value) if math.isfinite(value) else None
