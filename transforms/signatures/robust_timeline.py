"""Estimate the timeline of an application without interference, i.e. when it reaches each burst, from its runs.

Contention delays a run and never speeds it up, so that a low quantile over the runs estimates the time between two
bursts. The start of a burst, however, is known only roughly, and low quantiles of many short spans would accumulate the
errors. So a quantile regression (Koenker and Bassett, 1978, DOI 10.2307/1913643) over spans of several lengths is
solved by iterative reweighting. Spans connect nearby bursts, so each iteration solves a banded system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.signatures.averages import row_medians

#: lengths of spans, in bursts
SPAN_LENGTHS = (1, 2, 4, 8, 16)
#: number of iterations before the cost is checked, and maximum number of iterations
_MIN_ROUNDS, _MAX_ROUNDS = 15, 60
#: minimum relative decrease of the cost that justifies another iteration; near ties, the weights change slowly
_MIN_IMPROVEMENT = 0.001
#: minimum residual in the weights, which keeps them finite [s]
_MIN_RESIDUAL_S = 0.2
#: maximum change of a converged point [s]
_TOLERANCE_S = 0.02


@lru_cache(maxsize=1024)
def span_ends(point_count: int, lengths: tuple[int, ...] = SPAN_LENGTHS) -> tuple[Ints, Ints]:
    """List start and end points of all spans, the shortest spans first; point 0 is the start of the run.

    The arrays are cached, hence read-only.
    """
    used = [length for length in lengths if length <= point_count]
    begins = np.concatenate([np.arange(point_count + 1 - length) for length in used])
    ends = begins + np.repeat(used, [point_count + 1 - length for length in used])
    begins.flags.writeable = ends.flags.writeable = False
    return begins, ends


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans (s) of one application, each from a point to a later point, the shortest first; point 0 is the start.

    Attributes
    ----------
    initial_s : (points,)
        Initial guess of the solver [s].
    begins, ends : (s,)
        Points of each span.
    level : (s,)
        Quantile of each span.
    lasted_s, weights : (s, 1 + runs)
        Duration of each span in each run [s], and its weight. The first column is zero, as the start of sums.
    """

    initial_s: Reals
    begins: Ints
    ends: Ints
    level: Reals
    lasted_s: Reals
    weights: Reals

    @classmethod
    def from_runs(cls, reached_s: Reals, weights: Reals, level: Reals, lengths: Sequence[int] = SPAN_LENGTHS) -> Spans:
        """Create the spans of runs.

        Parameters
        ----------
        reached_s : (runs, points)
            Time at which each run reached each point, ascending, since its start [s].
        weights : (runs,)
            Weight of each run.
        level : (s,)
            Quantile of each span, in the order of `span_ends`.
        lengths
            Lengths of spans, in points; those longer than the run are dropped.
        """
        run_count, count = reached_s.shape
        at_s = np.zeros((count + 1, 1 + run_count))
        at_s[1:, 1:] = reached_s.T
        begins, ends = span_ends(count, tuple(lengths))
        lasted_s = at_s.take(ends, axis=0) - at_s.take(begins, axis=0)
        span_weights = np.zeros(lasted_s.shape)
        span_weights[:, 1:] = weights
        initial_s = np.cumsum(row_medians(at_s[1:, 1:] - at_s[:-1, 1:])[:, 0])
        return cls(initial_s, begins, ends, level, lasted_s, span_weights)


def estimate_timeline(spans: Spans) -> Reals:
    """Estimate when a run without interference reaches each point, by quantile regression.

    Parameters
    ----------
    spans
        The spans of all runs.

    Returns
    -------
    (points,)
        Times since the start of the run [s]; they do not decrease.
    """
    at_s = spans.initial_s
    for iteration in range(_MAX_ROUNDS):
        previous_s, at_s = at_s, _solve_least_squares(spans, at_s)
        if np.abs(at_s - previous_s).max() < _TOLERANCE_S:
            break
        if iteration >= _MIN_ROUNDS and _cost(spans, at_s) > (1.0 - _MIN_IMPROVEMENT) * _cost(spans, previous_s):
            break
    return np.maximum.accumulate(np.maximum(at_s, 0.0))


def _cost(spans: Spans, at_s: Reals) -> float:
    """Compute the weighted quantile loss, the objective of the regression."""
    residuals, level = _residuals(spans, at_s), spans.level[:, None]
    return float((np.maximum(level * residuals, (level - 1.0) * residuals) * spans.weights).sum())


def _residuals(spans: Spans, at_s: Reals) -> Reals:
    """Compute the duration of each span in each run minus that in the timeline (s, 1 + runs) [s]."""
    at = np.concatenate([[0.0], at_s])
    residuals: Reals = spans.lasted_s - (at[spans.ends] - at[spans.begins])[:, None]
    return residuals


def _solve_least_squares(spans: Spans, at_s: Reals) -> Reals:
    """Solve the quadratic problem with weights from the last residuals (points)."""
    from scipy.linalg.lapack import dpbsv

    residuals, level, count = _residuals(spans, at_s), spans.level[:, None], len(at_s)
    slope = np.where(residuals > 0, level, 1.0 - level) / np.maximum(np.abs(residuals), _MIN_RESIDUAL_S) * spans.weights
    weight, moment = (np.add.reduceat(part, [0], axis=1)[:, 0] for part in (slope, slope * spans.lasted_s))
    diagonal = np.bincount(spans.ends, weight, count + 1) + np.bincount(spans.begins, weight, count + 1)
    right = np.bincount(spans.ends, moment, count + 1) - np.bincount(spans.begins, moment, count + 1)
    # LAPACK's upper band storage, transposed, for the longest span plus the diagonal; the start is not an unknown
    length = spans.ends - spans.begins
    band = np.zeros((count, int(length.max()) + 1))
    is_between = spans.begins > 0
    band[spans.ends[is_between] - 1, -1 - length[is_between]] = -weight[is_between]
    band[:, -1] = diagonal[1:]
    return np.asarray(dpbsv(band.T, right[1:], overwrite_ab=True)[1])
