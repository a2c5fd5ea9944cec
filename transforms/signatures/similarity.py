"""Compare two signatures: compute correlation, volume ratio, and missed and false bursts.

The metrics are those of IOSI (Liu et al., FAST'14), section 6.3 and Figure 16. Curves are rates in each second since
the start of the run; the shorter of two curves is padded with zeros. NaN means that a curve cannot be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.signature import Signature

#: maximum distance between the peaks of matching bursts that do not overlap [s] (ours): a burst of two polls of 2 s may
#: appear slightly more than one poll away
TOLERANCE_S = 5.0


@dataclass(frozen=True, slots=True)
class SignatureChange:
    """Difference between two signatures of an application.

    Attributes
    ----------
    cross_correlation, correlation, volume_ratio
        Results of the functions of these names; the volume ratio is that of the new signature to the old one.
    removed, added : Bursts
        Bursts of the old signature without a match in the new one, and vice versa.
    """

    cross_correlation: float
    correlation: float
    volume_ratio: float
    removed: Bursts
    added: Bursts


def cross_correlation(estimate: Reals, reference: Reals) -> float:
    """Compute the maximum of the normalized cross-correlation over all lags; 0 to 1 for rates.

    Parameters
    ----------
    estimate, reference : (seconds,)
        Rates in any unit; the lengths may differ.

    Returns
    -------
    float
        NaN if a curve is empty, constant, or has unmeasured points.

    Notes
    -----
    It is the maximum over lags l of sum(x[t + l] y[t]) / sqrt(sum(x^2) sum(y^2)): Yoo & Han, "Fast Normalized
    Cross-Correlation", DOI 10.1007/s00034-009-9130-7. Means are not subtracted.
    """
    if not (_is_comparable(estimate) and _is_comparable(reference)):
        return float("nan")
    from scipy.fft import irfft, next_fast_len, rfft  # slow import

    first, second = (_normalize(curve) for curve in _pad(estimate, reference))
    count = len(first)
    size = next_fast_len(2 * count - 1, real=True)
    products = irfft(rfft(first, size) * np.conj(rfft(second, size)), size)
    maximum = max(products[:count].max(), products[size - count + 1 :].max())
    return float(np.clip(maximum, -1.0, 1.0))


def correlation(estimate: Reals, reference: Reals) -> float:
    """Compute Pearson's correlation coefficient of two curves at lag 0.

    Parameters
    ----------
    estimate, reference : (seconds,)
        Rates in any unit; the lengths may differ.

    Returns
    -------
    float
        From -1 to 1; NaN if a curve is empty, constant, or has unmeasured points.
    """
    if not (_is_comparable(estimate) and _is_comparable(reference)):
        return float("nan")
    first, second = _pad(estimate, reference)
    first, second = _normalize(first - first.mean()), _normalize(second - second.mean())
    return float(np.clip(first @ second, -1.0, 1.0))


def volume_ratio(estimate: Reals, reference: Reals) -> float:
    """Compute the volume of a curve relative to that of a reference.

    Parameters
    ----------
    estimate, reference : (seconds,)
        Rates in the same unit.

    Returns
    -------
    float
        NaN if either curve is empty or has unmeasured points, or the reference is zero.
    """
    if not len(estimate) or not len(reference):
        return float("nan")
    highest = np.abs(reference).max()
    if not (np.isfinite(estimate).all() and np.isfinite(highest) and highest > 0):
        return float("nan")
    with np.errstate(over="ignore"):
        total = (reference / highest).sum()
        return float((estimate / highest).sum() / total) if total else float("nan")


def match_bursts(estimate: Bursts, reference: Bursts) -> tuple[Ints, Ints]:
    """Match bursts one to one by position in time.

    Two bursts can match if they overlap, or if the distance of their peaks does not exceed `TOLERANCE_S`. The
    assignment has the maximum number of pairs and, subject to that, the smallest total distance between peaks.

    Returns
    -------
    estimate_index, reference_index : (pairs,)
        Matched pairs, in chronological order.
    """
    if not len(estimate) or not len(reference):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    from scipy.optimize import linear_sum_assignment  # slow import

    can_match, distance = _find_candidate_pairs(estimate, reference)
    scale = max(float(distance.max(initial=0.0, where=can_match)), 1e-300)
    max_pairs = min(can_match.shape)
    # one more pair outweighs the sum of all distances
    cost = np.where(can_match, np.minimum(distance / scale, 1.0), 2.0 * max_pairs + 2.0)
    rows, columns = linear_sum_assignment(cost)
    is_pair = can_match[rows, columns]
    return rows[is_pair].astype(np.int64), columns[is_pair].astype(np.int64)


def count_burst_errors(estimate: Bursts, reference: Bursts) -> tuple[int, int]:
    """Count missed and false bursts; see `match_bursts`.

    Parameters
    ----------
    estimate, reference
        Bursts of two curves.

    Returns
    -------
    missed, false : int
        Unmatched bursts of the reference and of the estimate.
    """
    count = len(match_bursts(estimate, reference)[0])
    return len(reference) - count, len(estimate) - count


def match_bursts_in_order(estimate: Bursts, reference: Bursts, slowdown_ratio: float) -> tuple[Ints, Ints]:
    """Match bursts by order and gaps, since contention changes their positions but preserves their rhythm.

    The starts of a pair may differ by `TOLERANCE_S` plus `slowdown_ratio` of the time since the start of the run; gaps
    to the previous pair by the tolerance plus that ratio of the gap. The matching has the maximum number of pairs and,
    subject to that, the smallest relative differences of gaps.

    Returns
    -------
    estimate_index, reference_index : (pairs,)
        Matched pairs, in chronological order.
    """
    if not len(estimate) or not len(reference):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # the start of the run acts as the pair before the first
    at_s, reference_s = (np.concatenate([[0.0], bursts.start_s]) for bursts in (estimate, reference))
    score = np.full((len(at_s), len(reference_s)), -np.inf)
    score[0, 0] = 0.0
    previous = np.zeros((*score.shape, 2), dtype=np.int64)
    gap_weight = 1.0 / (2 * len(at_s))
    for row, column in np.argwhere(np.abs(at_s[:, None] - reference_s) <= TOLERANCE_S + slowdown_ratio * reference_s):
        if not (row and column):
            continue
        gaps = reference_s[column] - reference_s[:column]
        error = np.abs((at_s[row] - at_s[:row, None]) - gaps) / (TOLERANCE_S + slowdown_ratio * gaps)
        # one more pair outweighs the sum of all differences
        scores = np.where(error <= 1.0, score[:row, :column] + 1.0 - gap_weight * np.minimum(error, 1.0), -np.inf)
        best = np.unravel_index(int(scores.argmax()), scores.shape)
        score[row, column], previous[row, column] = scores[best], best
    pairs = []
    row, column = np.unravel_index(int(score.argmax()), score.shape)
    while row and column:
        pairs.append((row - 1, column - 1))
        row, column = previous[row, column]
    matched = np.array(pairs[::-1], dtype=np.int64).reshape(-1, 2)
    return matched[:, 0], matched[:, 1]


def compare_signatures(old: Signature, new: Signature) -> SignatureChange:
    """Compute the similarity of a new signature to an old one, and the changes of its bursts.

    Parameters
    ----------
    old, new
        Signatures of the same application.

    Returns
    -------
    SignatureChange
        Correlations and ratios are NaN if either signature is missing.
    """
    in_new, in_old = match_bursts(new.bursts, old.bursts)
    return SignatureChange(
        cross_correlation=cross_correlation(new.bytes_per_s, old.bytes_per_s),
        correlation=correlation(new.bytes_per_s, old.bytes_per_s),
        volume_ratio=volume_ratio(new.bytes_per_s, old.bytes_per_s),
        removed=_drop_bursts(old.bursts, in_old),
        added=_drop_bursts(new.bursts, in_new),
    )


def _is_comparable(curve: Reals) -> bool:
    """Whether a curve is fully measured and not constant."""
    return bool(len(curve) > 1 and np.isfinite(curve).all() and curve.min() < curve.max())


def _pad(first: Reals, second: Reals) -> tuple[Reals, Reals]:
    """Pad two curves to one length, and divide each by its maximum, so that squares remain in range."""
    count = max(len(first), len(second))
    padded = [np.pad(curve / np.abs(curve).max(), (0, count - len(curve))) for curve in (first, second)]
    return padded[0], padded[1]


def _normalize(curve: Reals) -> Reals:
    unit: Reals = curve / np.sqrt(curve @ curve)
    return unit


def _find_candidate_pairs(estimate: Bursts, reference: Bursts) -> tuple[Bools, Reals]:
    """Mark the pairs of bursts that can match (estimate, reference), with the distance of their peaks [s]."""
    distance = np.abs(estimate.peak_s[:, None] - reference.peak_s)
    end_s = np.minimum(estimate.end_s[:, None], reference.end_s)
    overlap_s = end_s - np.maximum(estimate.start_s[:, None], reference.start_s)
    return (overlap_s > 0) | (distance <= TOLERANCE_S), distance


def _drop_bursts(bursts: Bursts, indices: Ints) -> Bursts:
    is_left = np.ones(len(bursts), dtype=np.bool_)
    is_left[indices] = False
    return bursts.select(is_left)
