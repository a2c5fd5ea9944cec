"""Naive implementation of `iosig.transforms.periods.ftio`: sections II-B2 and II-C of the paper, one bin at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Relative tolerance of comparisons with thresholds.
NEARLY = 1.0 - 1e-12


def find_candidates(scores: Sequence[float], threshold: float = 3.0, tolerance: float = 0.8) -> list[int]:
    """Equation 3: bins of the candidates for the dominant frequency, from 1."""
    highest = max(scores)
    return [
        k
        for k, z in enumerate(scores, start=1)
        if z >= threshold * NEARLY and z >= tolerance * highest * NEARLY and highest > 0
    ]


def find_harmonics(bins: Sequence[int], minimum: int = 2) -> set[int]:
    """Candidates that are integer multiples of lower candidates with enough cycles."""
    return {high for high in bins for low in bins if minimum <= low < high and high % low == 0}


def compute_confidence(scores: Sequence[float], k: int, without: set[int], tolerance: float = 0.8) -> float:
    """c_k of section II-C; harmonic candidates are excluded from both sums."""
    highest = max(scores)
    counted = [(i, z) for i, z in enumerate(scores, start=1) if i not in without]
    outliers = math.fsum(z for _, z in counted if z >= 3.0 * NEARLY)
    near = math.fsum(z for _, z in counted if z >= tolerance * highest * NEARLY)
    return 0.5 * (scores[k - 1] / outliers + scores[k - 1] / near)


def find_dominant(scores: Sequence[float]) -> tuple[int, float] | None:
    """Bin and confidence of the dominant frequency, or None without a candidate of at least two cycles."""
    result = find_candidates(scores)
    dropped = find_harmonics(result)
    kept = [k for k in result if k not in dropped]
    if not 1 <= len(kept) <= 2:
        return None
    best = max(kept, key=lambda k: (scores[k - 1], -k))
    return (best, compute_confidence(scores, best, dropped)) if best >= 2 else None


def find_merged(
    scores: Sequence[float], own: dict[int, float], own_candidates: set[int], merge: str
) -> tuple[int, float] | None:
    """Bin and confidence of the dominant frequency by the Z-score and another method with scores of its outliers."""
    outliers = {k for k, z in enumerate(scores, start=1) if z >= 3.0 * NEARLY}
    by_score = set(find_candidates(scores))
    near = {k for k, z in enumerate(scores, start=1) if z >= 0.8 * max(scores) * NEARLY}
    merged = by_score & own_candidates if merge == "agreement" else by_score | (own_candidates & near)
    dropped = find_harmonics(sorted(merged))
    kept = merged - dropped
    if not 1 <= len(kept) <= 2:
        return None
    best = max(kept, key=lambda k: (scores[k - 1], -k))
    confidence = compute_confidence(scores, best, dropped) if best in outliers else 0.0
    return (best, (own.get(best, 0.0) + confidence) / 2) if best >= 2 else None


def find_noise(points: Sequence[tuple[float, float]], reach: float, count: int) -> list[bool]:
    """Whether each point is noise by the definition of DBSCAN."""
    near = [[math.dist(value, other) * NEARLY <= reach for other in points] for value in points]
    core = [sum(row) >= count for row in near]
    return [not any(is_near and is_core for is_near, is_core in zip(row, core, strict=True)) for row in near]
