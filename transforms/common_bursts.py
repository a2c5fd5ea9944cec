"""Common bursts: where so many runs are busy at once that others alone would hardly make them so.

The foreign traffic of each run is as it is in the whole set outside of the bursts that are known: a rate v is reached
there with probability g(v). That so many of n runs reach v at one time has, without a common burst, the binomial tail
as its probability; the least of these over the order statistics of the runs tells whether a time is in a common burst.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CommonBurstParams:
    """What counts as a common burst; all are ours, and were chosen on simulated sites.

    false_alarm_level: of a time of level_span_s seconds; it falls with the power level_power of the signatures'
    length, since a longer one has more times at which others may meet. edge_ratio: a burst goes as far as the curve
    exceeds this share of its upper quartile. dip_s: shorter pauses do not divide a burst. least_s: shorter ones are
    none. least_volume_ratio: nor are those of less than this share of the median burst's volume.
    """

    false_alarm_level: float = 0.004
    level_span_s: float = 1000.0
    level_power: float = 1.5
    edge_ratio: float = 0.25
    dip_s: float = 4.0
    least_s: float = 2.0
    least_volume_ratio: float = 0.03


def chance(rates: Reals, is_foreign: Bools) -> Reals:
    """Return how probable it is that foreign traffic alone makes so many runs so busy at each time.

    Parameters
    ----------
    rates : shape (runs, times), in bytes per second, the runs aligned
    is_foreign : shape (times,), where there is no known burst: there the rates tell what foreign traffic is like

    Returns
    -------
    Reals : shape (times,), the least binomial tail over the upper half of the runs' order statistics

    """
    from scipy.special import bdtrc

    run_count, count = rates.shape
    ordered = np.sort(rates.T, axis=1).T
    foreign = np.sort((rates[:, is_foreign] if is_foreign.sum() * 20 > count else rates).ravel())
    least = np.ones(count)
    for place in range(max(1, run_count // 2)):
        reached = 1.0 - np.searchsorted(foreign, ordered[place], side="left") / len(foreign)
        tail = bdtrc(run_count - place - 1, run_count, np.clip(reached, 1.0 / len(foreign), 1.0))
        least = np.minimum(least, tail)
    return least


def common_bursts(
    curve: Reals, chances: Reals, step_s: float, params: CommonBurstParams | None = None
) -> tuple[Ints, Ints]:
    """Return the common bursts of a curve.

    Parameters
    ----------
    curve : shape (times,), in bytes per second: what the runs have in common
    chances : shape (times,), as `chance` gives them
    step_s : from one time to the next

    Returns
    -------
    Ints, Ints : the first time of each burst, and the one after its last

    """
    chosen = params or CommonBurstParams()
    span = len(curve) * step_s
    level = chosen.false_alarm_level * (chosen.level_span_s / span) ** chosen.level_power
    first, last = _stretches(chances < min(level, chosen.false_alarm_level * 4))
    first, last = _joined(first, last, chosen.dip_s / step_s)
    is_long = last - first >= chosen.least_s / step_s
    first, last = _grown(curve, first[is_long], last[is_long], chosen.edge_ratio)
    first, last = _joined(first, last, chosen.dip_s / step_s)
    total = np.concatenate([[0.0], np.cumsum(curve)])
    volume = total[last] - total[first]
    if not len(volume):
        return first, last
    is_large = (volume > chosen.least_volume_ratio * np.median(volume)) & (last - first >= chosen.least_s / step_s)
    return first[is_large], last[is_large]


def _stretches(is_in: Bools) -> tuple[Ints, Ints]:
    """Return where stretches of true values begin, and where they are over."""
    turns = np.diff(np.concatenate([[False], is_in, [False]]).astype(np.int8))
    return np.flatnonzero(turns == 1), np.flatnonzero(turns == -1)


def _joined(first: Ints, last: Ints, most_apart: float) -> tuple[Ints, Ints]:
    """Join stretches that are hardly apart, or that overlap."""
    reach = np.maximum.accumulate(last) if len(last) else last
    is_new = np.concatenate([np.ones(min(1, len(first)), dtype=np.bool_), first[1:] - reach[:-1] > most_apart])
    is_end = np.concatenate([is_new[1:], np.ones(min(1, len(first)), dtype=np.bool_)])
    return first[is_new], reach[is_end]


def _grown(curve: Reals, first: Ints, last: Ints, edge_ratio: float) -> tuple[Ints, Ints]:
    """Return stretches as long as the curve exceeds a share of each one's upper quartile around it."""
    ends: list[tuple[int, int]] = []
    for begin, end, least in zip(first, last, edge_ratio * upper_quartiles(curve, first, last), strict=True):
        is_in = curve > least
        inside = np.flatnonzero(is_in[begin:end])
        if least <= 0 or not len(inside):
            continue
        before, after = is_in[: begin + inside[0]][::-1].argmin(), is_in[begin + inside[-1] :].argmin()
        start, stop = begin + inside[0], begin + inside[-1]
        # argmin of true values alone is 0: there the stretch reaches the curve's own end
        ends.append((start - before if not is_in[:start].all() else 0, stop + after if after else len(curve)))
    places = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def upper_quartiles(curve: Reals, first: Ints, last: Ints) -> Reals:
    """Return the upper quartile of a curve (times) within each of some stretches (n) of one time or more."""
    counts = last - first
    begins = np.cumsum(counts) - counts
    place = np.arange(int(counts.sum())) + np.repeat(first - begins, counts)
    owner = np.repeat(np.arange(len(counts)), counts)
    values = curve[place]
    ordered = values[np.lexsort((values, owner))]
    at = begins + 0.75 * (counts - 1)
    low = at.astype(np.int64)
    high = np.minimum(low + 1, begins + counts - 1)
    quartiles: Reals = ordered[low] + (at - low) * (ordered[high] - ordered[low])
    return quartiles
