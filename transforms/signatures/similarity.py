"""How alike two signatures are: correlation, volume, and bursts missed and false.

The yardsticks of IOSI (Liu et al., FAST'14), section 6.3 and Figure 16. Curves are rates per second from the run's
start; the shorter of two is followed by zeros. NaN is no answer: it says that a curve has nothing to compare.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.signature import Signature

#: bursts that do not overlap may be one if their peaks are not further apart (ours: a burst of two polls may lie a poll
#: and a bit beside the other)
TOLERANCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Difference:
    """What has changed from one signature of an application to the next.

    cross_correlation, correlation, volume_ratio (new to old): see the functions of these names. gone, come: bursts of
    the old one that the new one has not, and the other way round.
    """

    cross_correlation: float
    correlation: float
    volume_ratio: float
    gone: Bursts
    come: Bursts


def cross_correlation(found: Reals, truth: Reals) -> float:
    """Return the normalized cross-correlation, the largest over all lags, 0 to 1 for rates.

    max over lags l of sum(found[t + l] truth[t]) / sqrt(sum(found^2) sum(truth^2)): Yoo & Han, "Fast Normalized
    Cross-Correlation", DOI 10.1007/s00034-009-9130-7, on rates as they are, means not subtracted. NaN where a curve is
    empty, constant or not measured throughout.
    """
    if not (_has_shape(found) and _has_shape(truth)):
        return float("nan")
    from scipy.fft import irfft, next_fast_len, rfft  # its import takes long

    first, second = (_unit(one) for one in _padded(found, truth))
    count = len(first)
    size = next_fast_len(2 * count - 1, real=True)
    products = irfft(rfft(first, size) * np.conj(rfft(second, size)), size)
    most = max(products[:count].max(), products[size - count + 1 :].max())
    return float(np.clip(most, -1.0, 1.0))


def correlation(found: Reals, truth: Reals) -> float:
    """Return Pearson's correlation coefficient of two curves as they lie in time, -1 to 1.

    NaN where a curve is empty, constant or not measured throughout.
    """
    if not (_has_shape(found) and _has_shape(truth)):
        return float("nan")
    first, second = _padded(found, truth)
    first, second = _unit(first - first.mean()), _unit(second - second.mean())
    return float(np.clip(first @ second, -1.0, 1.0))


def volume_ratio(found: Reals, truth: Reals) -> float:
    """Return the found volume as a multiple of the true one; NaN where either is empty or the truth is nothing."""
    if not len(found) or not len(truth):
        return float("nan")
    highest = np.abs(truth).max()
    if not (np.isfinite(found).all() and np.isfinite(highest) and highest > 0):
        return float("nan")
    with np.errstate(over="ignore"):
        total = (truth / highest).sum()
        return float((found / highest).sum() / total) if total else float("nan")


def pairs(found: Bursts, truth: Bursts) -> tuple[Ints, Ints]:
    """Match bursts one to one; return the places of each pair in found and in truth, in order of time.

    Two bursts may be one if they share time or if their peaks are not more than the tolerance apart. As many are
    matched as can be, and of all such ways that with the smallest sum of distances between peaks.
    """
    if not len(found) or not len(truth):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    from scipy.optimize import linear_sum_assignment  # its import takes long

    may_match, distance = _candidates(found, truth)
    scale = max(float(distance.max(initial=0.0, where=may_match)), 1e-300)
    most = min(may_match.shape)
    # one more pair is worth more than all distances together
    cost = np.where(may_match, np.minimum(distance / scale, 1.0), 2.0 * most + 2.0)
    rows, columns = linear_sum_assignment(cost)
    is_pair = may_match[rows, columns]
    return rows[is_pair].astype(np.int64), columns[is_pair].astype(np.int64)


def burst_errors(found: Bursts, truth: Bursts) -> tuple[int, int]:
    """Return how many true bursts were missed, and how many found ones are false; see `pairs`."""
    count = len(pairs(found, truth)[0])
    return len(truth) - count, len(found) - count


def pair_in_order(found: Bursts, truth: Bursts, slowdown_ratio: float) -> tuple[Ints, Ints]:
    """Match bursts in order and in gaps; return the places of each pair in found and in truth.

    A pair's starts may differ by the tolerance plus `slowdown_ratio` of the time since the run's start, and the gaps to
    the pair before by the tolerance plus that ratio of the gap: runs that others slow down keep their rhythm, not their
    seconds. As many bursts are matched as can be, and of all such ways that with the smallest differences of gaps.
    """
    if not len(found) or not len(truth):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # the run's start is the pair before the first one
    at, true_at = (np.concatenate([[0.0], bursts.started_s]) for bursts in (found, truth))
    score = np.full((len(at), len(true_at)), -np.inf)
    score[0, 0] = 0.0
    before = np.zeros((*score.shape, 2), dtype=np.int64)
    least = 1.0 / (2 * len(at))
    for row, column in np.argwhere(np.abs(at[:, None] - true_at) <= TOLERANCE_S + slowdown_ratio * true_at):
        if not (row and column):
            continue
        gaps = true_at[column] - true_at[:column]
        off = np.abs((at[row] - at[:row, None]) - gaps) / (TOLERANCE_S + slowdown_ratio * gaps)
        # one more pair is worth more than all differences together
        ways = np.where(off <= 1.0, score[:row, :column] + 1.0 - least * np.minimum(off, 1.0), -np.inf)
        best = np.unravel_index(int(ways.argmax()), ways.shape)
        score[row, column], before[row, column] = ways[best], best
    places = []
    row, column = np.unravel_index(int(score.argmax()), score.shape)
    while row and column:
        places.append((row - 1, column - 1))
        row, column = before[row, column]
    matched = np.array(places[::-1], dtype=np.int64).reshape(-1, 2)
    return matched[:, 0], matched[:, 1]


def difference(old: Signature, new: Signature) -> Difference:
    """Return what has changed from an old signature to a new one; figures are NaN where one of them is none."""
    in_new, in_old = pairs(new.bursts, old.bursts)
    return Difference(
        cross_correlation=cross_correlation(new.bytes_per_s, old.bytes_per_s),
        correlation=correlation(new.bytes_per_s, old.bytes_per_s),
        volume_ratio=volume_ratio(new.bytes_per_s, old.bytes_per_s),
        gone=_without(old.bursts, in_old),
        come=_without(new.bursts, in_new),
    )


# ---- inside


def _has_shape(curve: Reals) -> bool:
    """Whether a curve is measured throughout, and not the same all the time."""
    return bool(len(curve) > 1 and np.isfinite(curve).all() and curve.min() < curve.max())


def _padded(first: Reals, second: Reals) -> tuple[Reals, Reals]:
    """Return two curves at one length, each as shares of its largest value: squares stay in range."""
    count = max(len(first), len(second))
    both = [np.pad(one / np.abs(one).max(), (0, count - len(one))) for one in (first, second)]
    return both[0], both[1]


def _unit(curve: Reals) -> Reals:
    found: Reals = curve / np.sqrt(curve @ curve)
    return found


def _candidates(found: Bursts, truth: Bursts) -> tuple[Bools, Reals]:
    """Return which bursts may be one, and how far apart their peaks are [s] (found, truth)."""
    distance = np.abs(found.peaked_s[:, None] - truth.peaked_s)
    shared = np.minimum(found.ended_s[:, None], truth.ended_s) - np.maximum(found.started_s[:, None], truth.started_s)
    return (shared > 0) | (distance <= TOLERANCE_S), distance


def _without(bursts: Bursts, places: Ints) -> Bursts:
    is_left = np.ones(len(bursts), dtype=np.bool_)
    is_left[places] = False
    return bursts.kept(is_left)
