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

import numpy as np

from transforms.arrays import Ints, Reals
from transforms.signatures.averages import row_medians

#: lengths of spans, in bursts
SPANS = (1, 2, 4, 8, 16)
_ROUNDS = 15
#: further rounds go on only while each lowers the cost by this share of it: near a tie the weights turn slowly
_MOST_ROUNDS, _WORTH = 60, 0.001
#: deviations below this count alike: it keeps the weights finite [s]
_SMALLEST_S = 0.2
#: when no point moves by more, further rounds change nothing that counts [s]
_SETTLED_S = 0.02


def timeline(reached_s: Reals, weights: Reals, levels: Sequence[Reals], spans: Sequence[int] = SPANS) -> Reals:
    """Return when a run alone reaches each point.

    Parameters
    ----------
    reached_s : shape (runs, points), when each run reached each point, in order, since its start
    weights : shape (runs,), how much each run counts
    levels : one array for each span, shape (points + 1 - span,): the quantile of each span of so many points, of which
        the first begins at the runs' start
    spans : how many points each span goes over; those longer than the runs are left out

    Returns
    -------
    Reals : shape (points,), in seconds since the start, not falling

    """
    used = [(span, level) for span, level in zip(spans, levels, strict=True) if span <= reached_s.shape[1]]
    problem = _Spans.of(reached_s, weights, used)
    found = np.cumsum(row_medians(np.diff(reached_s, axis=1, prepend=0.0).T)[:, 0])
    for number in range(_MOST_ROUNDS):
        before, found = found, problem.step(found)
        if np.abs(found - before).max() < _SETTLED_S:
            break
        if number >= _ROUNDS and problem.cost(found) > (1.0 - _WORTH) * problem.cost(before):
            break
    return np.maximum.accumulate(np.maximum(found, 0.0))


@dataclass(frozen=True, slots=True)
class _Spans:
    """All spans (s) of all lengths, the shortest first: from a point to a later one, 0 being the start.

    lasted_s (runs, s); level (s); weights (runs, 1).
    """

    begins: Ints
    ends: Ints
    lasted_s: Reals
    level: Reals
    weights: Reals
    lengths: list[tuple[int, slice]]

    @classmethod
    def of(cls, reached_s: Reals, weights: Reals, used: Sequence[tuple[int, Reals]]) -> _Spans:
        """Return the spans of runs that reach so many points."""
        padded = np.concatenate([np.zeros((len(reached_s), 1)), reached_s], axis=1)
        count = reached_s.shape[1]
        begins = np.concatenate([np.arange(count + 1 - span) for span, _ in used])
        ends = np.concatenate([np.arange(span, count + 1) for span, _ in used])
        edges = np.cumsum([0, *(count + 1 - span for span, _ in used)]).tolist()
        lengths = [(span, slice(edges[i], edges[i + 1])) for i, (span, _) in enumerate(used)]
        level = np.concatenate([level for _, level in used])
        return cls(begins, ends, padded[:, ends] - padded[:, begins], level, weights[:, None], lengths)

    def cost(self, found: Reals) -> float:
        """Return how far the runs lie from such times: what quantile regression makes least."""
        at = np.concatenate([[0.0], found])
        rest = self.lasted_s - (at[self.ends] - at[self.begins])
        return float((np.maximum(self.level * rest, (self.level - 1.0) * rest) * self.weights).sum())

    def step(self, found: Reals) -> Reals:
        """Return the least-squares answer under the weights that the last one's deviations give."""
        from scipy.linalg.lapack import dpbsv

        count = len(found)
        at = np.zeros(count + 1)
        at[1:] = found
        rest = self.lasted_s - (at.take(self.ends) - at.take(self.begins))
        slope = np.where(rest > 0, self.level, 1.0 - self.level) / np.maximum(np.abs(rest), _SMALLEST_S) * self.weights
        pull, aim = slope.sum(axis=0), (slope * self.lasted_s).sum(axis=0)
        # The start is no unknown.
        both = np.bincount(self.ends, pull, count + 1) + np.bincount(self.begins, pull, count + 1)
        right = np.bincount(self.ends, aim, count + 1) - np.bincount(self.begins, aim, count + 1)
        width = self.lengths[-1][0]
        band = np.zeros((width + 1, count))
        band[width] = both[1:]
        for span, places in self.lengths:
            band[width - span, span:] = -pull[places][1:]
        answer: Reals = dpbsv(band, right[1:], overwrite_ab=True)[1]
        return answer
