"""Naive implementation of `iosig.transforms.periods.ftio_spectra`: the discrete Fourier transform, term by term."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence


def fill_gaps(samples: Sequence[float]) -> list[float]:
    """Samples with missing values replaced by the mean."""
    known = [value for value in samples if math.isfinite(value)]
    mean = math.fsum(known) / len(known) if known else 0.0
    return [value if math.isfinite(value) else mean for value in samples]


def compute_coefficients(samples: Sequence[float]) -> list[complex]:
    """X_k for k from 1 to floor(N / 2)."""
    count = len(samples)
    result = []
    for k in range(1, count // 2 + 1):
        terms = [value * cmath.exp(-2j * math.pi * (k * n % count) / count) for n, value in enumerate(samples)]
        result.append(complex(math.fsum(term.real for term in terms), math.fsum(term.imag for term in terms)))
    return result


def compute_power(samples: Sequence[float]) -> list[float]:
    """Power of each bin."""
    return [abs(value) ** 2 / len(samples) for value in compute_coefficients(samples)]


def compute_z_scores(powers: Sequence[float]) -> list[float]:
    """Equation 2, with the population standard deviation; zeros if the deviation is a rounding error."""
    mean = math.fsum(powers) / len(powers)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in powers) / len(powers))
    return [(value - mean) / spread if spread > 1e-12 * mean else 0.0 for value in powers]


def reconstruct(samples: Sequence[float], time: float) -> float:
    """Equation 1 at a time given in samples."""
    count = len(samples)
    total = math.fsum(samples) / count
    for k, value in enumerate(compute_coefficients(samples), start=1):
        halves = 1 if 2 * k == count else 2
        total += halves * abs(value) / count * math.cos(2 * math.pi * k * time / count + cmath.phase(value))
    return total
