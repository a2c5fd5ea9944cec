"""Timelines: when an application would reach each of its bursts alone, from when its runs did.

What others do delays a run and never speeds it up, so that of each span between two bursts a low quantile over the
runs is wanted; but where a burst begins is known only roughly, and errors in both directions add up over many low
quantiles of short spans. Hence quantile regression over spans of several lengths at once (Koenker and Bassett, 1978,
doi 10.2307/1913643), solved by iteratively reweighted least squares: the spans tie neighbouring bursts together, so
that each step solves a banded system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.signatures.averages import row_medians

#: lengths of spans, in bursts
SPANS = (1, 2, 4, 8, 16)
_ROUNDS = 15
#: further rounds go on only while each lowers the cost by this share of it: near a tie the weights turn slowly
_MOST_ROUNDS, _WORTH = 60, 0.001
#: deviations below this count alike: it keeps the weights finite [s]
_SMALLEST_S = 0.2
#: when no point moves by more, further rounds change nothing that counts [s]
_SETTLED_S = 0.02


@lru_cache(maxsize=1024)
def span_ends(point_count: int, spans: tuple[int, ...] = SPANS) -> tuple[Ints, Ints]:
    """Return where all spans over so many points begin and end, the shortest first, 0 being the start.

    They are asked for in every round of every application, and are not to be changed.
    """
    used = [span for span in spans if span <= point_count]
    begins = np.concatenate([np.arange(point_count + 1 - span) for span in used])
    ends = begins + np.repeat(used, [point_count + 1 - span for span in used])
    begins.flags.writeable = ends.flags.writeable = False
    return begins, ends


@dataclass(frozen=True, slots=True)
class Spans:
    """All spans (s) of one application, the shortest first: from a point to a later one, 0 being the start.

    at_first_s (points): where the search begins. level (s). lasted_s, weights (s, 1 + runs): how long each span took
    each run, and how much that counts; before the first run is a zero, from which sums begin.
    """

    at_first_s: Reals
    begins: Ints
    ends: Ints
    level: Reals
    lasted_s: Reals
    weights: Reals

    @classmethod
    def of(cls, reached_s: Reals, weights: Reals, level: Reals, spans: Sequence[int] = SPANS) -> Spans:
        """Return the spans of runs.

        reached_s (runs, points): when each run reached each point, in order, since its start. weights (runs): how much
        each run counts. level (s): the quantile of each span, in the order of `span_ends`. spans: how many points each
        goes over; those longer than the runs are left out.
        """
        run_count, count = reached_s.shape
        at_s = np.zeros((count + 1, 1 + run_count))
        at_s[1:, 1:] = reached_s.T
        begins, ends = span_ends(count, tuple(spans))
        lasted_s = at_s.take(ends, axis=0) - at_s.take(begins, axis=0)
        counted = np.zeros(lasted_s.shape)
        counted[:, 1:] = weights
        at_first_s = np.cumsum(row_medians(at_s[1:, 1:] - at_s[:-1, 1:])[:, 0])
        return cls(at_first_s, begins, ends, level, lasted_s, counted)


def timeline(spans: Spans) -> Reals:
    """Return when a run alone reaches each point (points) [s]; times do not fall."""
    at_s = spans.at_first_s
    for number in range(_MOST_ROUNDS):
        before_s, at_s = at_s, _step(spans, at_s)
        if np.abs(at_s - before_s).max() < _SETTLED_S:
            break
        if number >= _ROUNDS and _cost(spans, at_s) > (1.0 - _WORTH) * _cost(spans, before_s):
            break
    return np.maximum.accumulate(np.maximum(at_s, 0.0))


def _cost(spans: Spans, at_s: Reals) -> float:
    """Return how far the runs lie from such times: what quantile regression makes least."""
    rest, level = _rest(spans, at_s), spans.level[:, None]
    return float((np.maximum(level * rest, (level - 1.0) * rest) * spans.weights).sum())


def _rest(spans: Spans, at_s: Reals) -> Reals:
    """Return by how much longer than between such times each span took each run (s, 1 + runs)."""
    at = np.concatenate([[0.0], at_s])
    rest: Reals = spans.lasted_s - (at[spans.ends] - at[spans.begins])[:, None]
    return rest


def _step(spans: Spans, at_s: Reals) -> Reals:
    """Return the least-squares answer under the weights that the last one's deviations give (points)."""
    from scipy.linalg.lapack import dpbsv

    rest, level, count = _rest(spans, at_s), spans.level[:, None], len(at_s)
    slope = np.where(rest > 0, level, 1.0 - level) / np.maximum(np.abs(rest), _SMALLEST_S) * spans.weights
    pull, aim = (np.add.reduceat(part, [0], axis=1)[:, 0] for part in (slope, slope * spans.lasted_s))
    both = np.bincount(spans.ends, pull, count + 1) + np.bincount(spans.begins, pull, count + 1)
    right = np.bincount(spans.ends, aim, count + 1) - np.bincount(spans.begins, aim, count + 1)
    # column by column: as many places as the longest span has points, and the diagonal; the start is no unknown
    length = spans.ends - spans.begins
    band = np.zeros((count, int(length.max()) + 1))
    is_between = spans.begins > 0
    band[spans.ends[is_between] - 1, -1 - length[is_between]] = -pull[is_between]
    band[:, -1] = both[1:]
    return np.asarray(dpbsv(band.T, right[1:], overwrite_ab=True)[1])
