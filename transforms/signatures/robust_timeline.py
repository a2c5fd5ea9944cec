"""Timelines: when an application would reach each of its bursts alone, from when its runs did.

What others do delays a run and never speeds it up, so that of each span between two bursts a low quantile over the
runs is wanted; but where a burst begins is known only roughly, and errors in both directions add up over many low
quantiles of short spans. Hence quantile regression over spans of several lengths at once (Koenker and Bassett, 1978,
doi 10.2307/1913643), solved by iteratively reweighted least squares: the spans tie neighbouring bursts together, so
that each step solves a banded system. The spans of many applications go through each step together: those of one are
few numbers, and most of the time would go to the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, owners, places_within
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


def timelines(applications: Sequence[Spans]) -> list[Reals]:
    """Return when a run alone of each application reaches each point (points) [s]; they do not fall."""
    found = [one.at_first_s for one in applications]
    left = list(range(len(applications)))
    number = 0
    while left:
        problem = _Problem.of([applications[place] for place in left])
        at_s, is_over = np.concatenate([found[place] for place in left]), np.zeros(len(left), dtype=np.bool_)
        while not is_over.any():
            before_s, at_s = at_s, problem.step(at_s)
            is_over = problem.are_over(before_s, at_s, number)
            number += 1
        for place, own_s in zip(left, np.split(at_s, problem.offsets[1:-1]), strict=True):
            found[place] = own_s
        left = [place for place, is_done in zip(left, is_over.tolist(), strict=True) if not is_done]
    return [np.maximum.accumulate(np.maximum(own_s, 0.0)) for own_s in found]


@dataclass(frozen=True, slots=True)
class _Problem:
    """The points (p) and spans (s) of some applications, and what the spans lasted (e), each as one list.

    offsets: where each one's points begin. is_point: which of all starts and points are no start; begins and ends (s)
    are places in that list. first (s), own: where in e each span begins, and each application. span, level, lasted_s,
    weights (e). diagonal (p), beside (s): where they stand in the banded matrices (`bands`: where each begins), which
    lie column by column; spans from a start, which is no unknown, come behind all of them.
    """

    offsets: Ints
    is_point: Bools
    begins: Ints
    ends: Ints
    first: Ints
    own: Ints
    span: Ints
    level: Reals
    lasted_s: Reals
    weights: Reals
    diagonal: Ints
    beside: Ints
    bands: Ints

    @classmethod
    def of(cls, applications: Sequence[Spans]) -> _Problem:
        """Return the spans of applications as one list."""
        counts = np.array([len(one.at_first_s) for one in applications])
        span_counts = np.array([len(one.begins) for one in applications])
        # a column has as many places as the longest span has points, and the diagonal's
        heights = np.array([one.ends[-1] - one.begins[-1] for one in applications]) + 1
        starts, bands = offsets_of(counts + 1), offsets_of(counts * heights)
        deviations = offsets_of(np.repeat([one.lasted_s.shape[1] for one in applications], span_counts))
        span = owners(deviations)
        begins, ends, level = (
            np.concatenate(columns)
            for columns in zip(*((one.begins, one.ends, one.level) for one in applications), strict=True)
        )
        of_span, of_point = owners(offsets_of(span_counts)), owners(offsets_of(counts))
        is_point = np.ones(starts[-1], dtype=np.bool_)
        is_point[starts[:-1]] = False
        beside = bands[of_span] + ends * heights[of_span] - 1 - (ends - begins)
        return cls(
            offsets=offsets_of(counts),
            is_point=is_point,
            begins=begins + starts[of_span],
            ends=ends + starts[of_span],
            first=deviations[:-1],
            own=deviations[offsets_of(span_counts)[:-1]],
            span=span,
            level=level[span],
            lasted_s=np.concatenate([one.lasted_s.ravel() for one in applications]),
            weights=np.concatenate([one.weights.ravel() for one in applications]),
            diagonal=bands[of_point] + (places_within(counts) + 1) * heights[of_point] - 1,
            beside=np.where(begins > 0, beside, bands[-1]),
            bands=bands,
        )

    def are_over(self, before_s: Reals, at_s: Reals, number: int) -> Bools:
        """Return for which applications further rounds after that of a number would change nothing that counts."""
        is_over: Bools = np.maximum.reduceat(np.abs(at_s - before_s), self.offsets[:-1]) < _SETTLED_S
        if number >= _ROUNDS:
            is_over |= self._costs(at_s) > (1.0 - _WORTH) * self._costs(before_s)
        return is_over | (number + 1 >= _MOST_ROUNDS)

    def _costs(self, at_s: Reals) -> Reals:
        """Return how far the runs lie from such times: what quantile regression makes least (applications)."""
        rest = self._rest(at_s)
        found: Reals = np.add.reduceat(
            np.maximum(self.level * rest, (self.level - 1.0) * rest) * self.weights, self.own
        )
        return found

    def _rest(self, at_s: Reals) -> Reals:
        """Return by how much longer than between such times each span took each run (e)."""
        at = np.zeros(len(self.is_point))
        at[self.is_point] = at_s
        return self.lasted_s - (at.take(self.ends) - at.take(self.begins)).take(self.span)

    def step(self, at_s: Reals) -> Reals:
        """Return the least-squares answer under the weights that the last one's deviations give (p)."""
        from scipy.linalg.lapack import dpbsv

        rest, count = self._rest(at_s), len(self.is_point)
        slope = np.where(rest > 0, self.level, 1.0 - self.level) / np.maximum(np.abs(rest), _SMALLEST_S) * self.weights
        pull, aim = np.add.reduceat(slope, self.first), np.add.reduceat(slope * self.lasted_s, self.first)
        both = np.bincount(self.ends, pull, count) + np.bincount(self.begins, pull, count)
        right = (np.bincount(self.ends, aim, count) - np.bincount(self.begins, aim, count))[self.is_point]
        band = np.zeros(self.bands[-1] + 1)
        band[self.beside] = -pull
        band[self.diagonal] = both[self.is_point]
        found = np.empty(len(right))
        edges = zip(pairwise(self.offsets.tolist()), pairwise(self.bands.tolist()), strict=True)
        for (begin, end), (first, last) in edges:
            matrix = band[first:last].reshape(end - begin, -1).T
            found[begin:end] = dpbsv(matrix, right[begin:end], overwrite_ab=True)[1]
        return found
