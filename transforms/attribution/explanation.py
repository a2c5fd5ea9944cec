"""Explain a file system's traffic by the signatures of the runs that were active.

Each run takes the bytes that its bursts find in the traffic (see `placement`). Runs with high and well-known bursts
come first. Contention takes no bytes from a burst. A signature with many missing bursts therefore does not describe its
runs, and these runs get nothing. The other runs are then placed again, each in the traffic that all others leave.
Together, the runs never get more than was measured. Finally, ambiguous bursts lose their bytes, which no other run
gets. A burst is ambiguous if its application fits badly, or if the traffic just before and after it is as high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, concatenate_pieces, offsets_of, places_of
from iosig.transforms.attribution.placement import (
    Placement,
    PlacementParams,
    TakenBytes,
    batch_disjoint,
    place_bursts,
    take_bytes,
)
from iosig.transforms.attribution.runs import Runs, WindowedRuns


@dataclass(frozen=True, slots=True)
class ExplainParams:
    """Parameters of the explanation, chosen on simulated stormy sites (seeds 1 to 4).

    docs/decisions/0030-attribution-withholds.md lists the fractions of attributed and of wrong bytes on held-out sites.
    """

    placement: PlacementParams = field(default_factory=PlacementParams)
    #: number of times that each run is placed
    round_count: int = 2
    #: length of the intervals in which the background is constant [s]
    background_s: float = 7200.0
    #: quantile of the traffic in such an interval that is the background
    background_quantile: float = 0.05
    #: minimum fraction of a signature's bursts that are found, in all runs together (seeds 1 and 2)
    min_found_ratio: float = 0.7
    #: number of found bursts that the fraction includes as a prior, since few bursts carry little information
    prior_found_count: float = 8.0
    #: maximum ambiguity of an attributed burst; ambiguity is the mean placement cost of the application's bursts, plus
    #: `flank_weight` times the mean traffic around the burst in multiples of its peak (at most 2); the limit 1.25
    #: reduced wrong bytes from 13.6 to 10.6 %, and explained bytes from 67.9 to 63.7 %
    max_ambiguity: float = 1.25
    #: weight of the traffic around a burst in its ambiguity
    flank_weight: float = 0.8
    #: minimum time before and after a burst that counts as its surroundings [s]; for a longer burst, its own length
    min_flank_s: float = 30.0


@dataclass(frozen=True, slots=True)
class BurstPlacements:
    """m placed bursts, sorted by run and burst.

    Attributes
    ----------
    run, burst : Ints, shape (m,)
        The run, and the index of the burst within the run.
    step : Ints, shape (m,)
        Step at which the burst was placed.
    started, ended : Reals, shape (m,)
        Start and end of the traffic that the burst takes, in steps.
    filled_ratio : Reals, shape (m,)
        Fraction of the burst's volume that the traffic contains; 0 if its application's signature was rejected.
    is_attributed : Bools, shape (m,)
        Whether the run gets these bytes; false if they are too few or ambiguous.

    """

    run: Ints
    burst: Ints
    step: Ints
    started: Reals
    ended: Reals
    filled_ratio: Reals
    is_attributed: Bools


@dataclass(frozen=True, slots=True)
class Explanation:
    """Attributed bytes of n runs as k rows, sorted by run and step.

    Attributes
    ----------
    run, step : Ints, shape (k,)
        Run and step of each row.
    volume_bytes : Reals, shape (k,)
        Bytes of the run in the step.
    confidence : Reals, shape (n,)
        Confidence in each run's bytes, 0 to 1: expected correlation of its signature, reduced by placement costs.
    foreground_bytes : Reals, shape (steps,)
        Traffic without background; 0 where nothing was measured.
    placements : BurstPlacements
        Placed bursts of all runs.

    """

    run: Ints
    step: Ints
    volume_bytes: Reals
    confidence: Reals
    foreground_bytes: Reals
    placements: BurstPlacements


def explain_traffic(
    traffic_bytes: Reals, runs: Runs, interval_s: float, params: ExplainParams | None = None
) -> Explanation:
    """Attribute the traffic of one file system and direction to runs.

    Parameters
    ----------
    traffic_bytes : Reals, shape (steps,)
        Bytes in each step; NaN where nothing was measured.
    runs : Runs
        Runs with the bursts of their signatures.
    interval_s : float
        Length of a step [s].
    params : ExplainParams, optional
        Parameters of the explanation.

    Returns
    -------
    Explanation
        Bytes attributed to each run, and the placement of its bursts.

    """
    (explanation,) = explain_traffics([(traffic_bytes, runs)], interval_s, params)
    return explanation


def explain_traffics(
    traffics: Sequence[tuple[Reals, Runs]], interval_s: float, params: ExplainParams | None = None
) -> list[Explanation]:
    """Attribute the traffic of several file systems or directions on one time grid, in batches for speed.

    Parameters
    ----------
    traffics : sequence of (Reals, Runs)
        Traffic and runs of each, as for `explain_traffic`; they are independent of each other.
    interval_s : float
        Length of a step [s].
    params : ExplainParams, optional
        Parameters.

    Returns
    -------
    list of Explanation
        Equal to the results of `explain_traffic`, bit for bit.

    """
    params = params or ExplainParams()
    allocations = [_Allocation.create(traffic_bytes, runs, interval_s, params) for traffic_bytes, runs in traffics]
    orders = [allocation.placement_order() for allocation in allocations]
    for number in range(params.round_count):
        _place_all(allocations, orders, interval_s, params.placement)
        if not number:
            orders = [
                allocation.reject_signatures(order) for allocation, order in zip(allocations, orders, strict=True)
            ]
    for allocation in allocations:
        allocation.reject_ambiguous()
    return [allocation.to_explanation() for allocation in allocations]


def _place_all(
    allocations: Sequence[_Allocation], orders: Sequence[Ints], interval_s: float, params: PlacementParams
) -> None:
    """Place the runs of several allocations in order, each in the traffic that all its other runs leave."""
    batches = [
        batch_disjoint(allocation.first, allocation.after, order)
        for allocation, order in zip(allocations, orders, strict=True)
    ]
    for batch in zip_longest(*batches, fillvalue=np.zeros(0, np.int64)):
        items = list(zip(allocations, batch, strict=True))
        windowed = concatenate_pieces([allocation.to_windows(runs) for allocation, runs in items])
        available = concatenate_pieces([allocation.available(runs) for allocation, runs in items])
        placement = place_bursts(windowed, available, interval_s, params)
        taken_bytes = take_bytes(windowed, placement, available, params)
        edges = offsets_of([len(runs) for runs in batch])
        for (allocation, runs), first, last in zip(items, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            bursts = slice(windowed.offsets[first], windowed.offsets[last])
            steps = slice(available.offsets[first], available.offsets[last])
            allocation.set_placement(runs, placement.select(slice(first, last), bursts))
            allocation.set_taken(runs, taken_bytes.select(bursts, steps), available.values[steps])


@dataclass(frozen=True, slots=True)
class _Allocation:
    """Mutable division of the traffic of one file system and direction among its runs.

    Attributes
    ----------
    is_measured : Bools, shape (steps,)
        Whether the step was measured.
    foreground, remaining : Reals, shape (steps,)
        Traffic without background, and its part that no run has taken.
    first, after : Ints, shape (n,)
        Window of each run: its first step, and the step after its last.
    offsets : Ints, shape (n + 1,)
        Run i has the values offsets[i] to offsets[i + 1] of `taken`.
    taken : Reals
        Bytes that each run has taken in each step of its window, run by run.
    placement : Placement
        Placement of all bursts; the cost of a run that has no bytes is infinite.
    burst_started, burst_ended, filled_ratio, is_attributed : shape (m,)
        Per burst, as in `TakenBytes`.

    """

    runs: Runs
    interval_s: float
    params: ExplainParams
    is_measured: Bools
    foreground: Reals
    first: Ints
    after: Ints
    remaining: Reals
    offsets: Ints
    taken: Reals
    placement: Placement
    burst_started: Reals
    burst_ended: Reals
    filled_ratio: Reals
    is_attributed: Bools

    @classmethod
    def create(cls, traffic_bytes: Reals, runs: Runs, interval_s: float, params: ExplainParams) -> _Allocation:
        """Create an allocation in which no burst is placed."""
        foreground = subtract_background(traffic_bytes, interval_s, params)
        first, after = runs.windows(len(foreground))
        offsets, count = offsets_of(after - first), len(runs.burst_start)
        placement, taken_bytes = Placement.empty(count, np.full(len(runs), np.inf)), np.zeros(int(offsets[-1]))
        started, ended, filled_ratio = np.zeros((3, count))
        traffic_fields = np.isfinite(traffic_bytes), foreground, first, after, foreground.copy()
        burst_fields = placement, started, ended, filled_ratio, np.zeros(count, np.bool_)
        return cls(runs, interval_s, params, *traffic_fields, offsets, taken_bytes, *burst_fields)

    def placement_order(self) -> Ints:
        """Return the order in which runs are placed; later runs cannot take what earlier ones took."""
        order = self.runs.rank_by_distinctness()
        return order[self.after[order] > self.first[order]]

    def to_windows(self, runs: Ints) -> WindowedRuns:
        """Return the selected runs, with their bursts relative to their windows."""
        return self.runs.to_windows(runs, self.first[runs])

    def available(self, runs: Ints) -> Ragged:
        """Return the bytes in the windows of the selected runs that no other run has taken."""
        values = self.remaining[self._steps(runs)] + self.taken[self._places(runs)]
        return Ragged(values, offsets_of(self.after[runs] - self.first[runs]))

    def set_placement(self, runs: Ints, placement: Placement) -> None:
        """Store the placement of the selected runs' bursts."""
        bursts = self.runs.places_in(runs)
        for name in ("is_done", "step", "max_steps"):
            getattr(self.placement, name)[bursts] = getattr(placement, name)
        self.placement.cost[runs] = placement.cost

    def set_taken(self, runs: Ints, taken_bytes: TakenBytes, available: Reals | None = None) -> None:
        """Store the bytes of the selected runs; recompute the remaining traffic only if `available` is given."""
        bursts = self.runs.places_in(runs)
        self.taken[self._places(runs)] = taken_bytes.volume_bytes
        self.burst_started[bursts], self.burst_ended[bursts] = taken_bytes.started, taken_bytes.ended
        self.filled_ratio[bursts], self.is_attributed[bursts] = taken_bytes.filled_ratio, taken_bytes.is_attributed
        if available is not None:
            self.remaining[self._steps(runs)] = available - taken_bytes.volume_bytes

    def _steps(self, runs: Ints) -> Ints:
        """Return the steps of the selected runs' windows, run by run."""
        return places_of(self.first[runs], self.after[runs] - self.first[runs])

    def _places(self, runs: Ints) -> Ints:
        """Return the indices in `taken` of the selected runs' windows, run by run."""
        return places_of(self.offsets[:-1][runs], self.after[runs] - self.first[runs])

    def placements(self) -> BurstPlacements:
        """Return the placed bursts, in steps of the traffic."""
        bursts = np.flatnonzero(self.placement.is_done)
        run = self.runs.owner[bursts]
        first = self.first[run]
        return BurstPlacements(
            run,
            bursts - self.runs.offsets[run],
            self.placement.step[bursts] + first,
            self.burst_started[bursts] + first,
            self.burst_ended[bursts] + first,
            self.filled_ratio[bursts],
            self.is_attributed[bursts],
        )

    def reject_signatures(self, order: Ints) -> Ints:
        """Withdraw all runs of a signature that has many missing bursts, and return the order of the others.

        Bursts at unmeasured times do not count.
        """
        placements, runs = self.placements(), self.runs
        is_observed = self._is_observed(placements)
        application = runs.application[placements.run[is_observed]]
        is_found = placements.filled_ratio[is_observed] >= self.params.placement.min_filled_ratio
        count, prior = int(runs.application.max(initial=-1)) + 1, self.params.prior_found_count
        found_count, burst_count = np.bincount(application, is_found, count), np.bincount(application, None, count)
        found_ratio = (found_count + prior) / (burst_count + prior)
        is_supported = found_ratio[runs.application[order]] >= self.params.min_found_ratio
        self._withdraw(order[~is_supported])
        return order[is_supported]

    def _is_observed(self, placements: BurstPlacements) -> Bools:
        """Return whether all steps of each burst were measured (m)."""
        duration = self.runs.burst_duration[self.runs.offsets[placements.run] + placements.burst]
        total, steps = np.concatenate([[0.0], np.cumsum(self.is_measured)]), np.arange(len(self.is_measured) + 1)
        measured = np.interp(placements.step + duration, steps, total) - np.interp(placements.step, steps, total)
        is_observed: Bools = measured > duration - 1e-6
        return is_observed

    def _withdraw(self, runs: Ints) -> None:
        """Return the bytes of runs to the traffic, because it does not contain their bursts."""
        for run in runs.tolist():
            piece = slice(self.offsets[run], self.offsets[run + 1])
            self.remaining[self.first[run] : self.after[run]] += self.taken[piece]
            self.taken[piece] = 0.0
        bursts = self.runs.places_in(runs)
        self.filled_ratio[bursts], self.is_attributed[bursts], self.placement.cost[runs] = 0.0, False, np.inf

    def reject_ambiguous(self) -> None:
        """Remove the bytes of ambiguous bursts from their runs without reassigning them."""
        placements = self.placements()
        is_attributed = np.zeros(len(self.is_attributed), np.bool_)
        is_unambiguous = placements.is_attributed & (self._ambiguity(placements) <= self.params.max_ambiguity)
        is_attributed[self.placement.is_done] = is_unambiguous
        runs = np.unique(placements.run[placements.is_attributed & ~is_unambiguous])
        bursts, placement = self.runs.places_in(runs), self.placement
        selected = Placement(
            placement.is_done[bursts], placement.step[bursts], placement.max_steps[bursts], placement.cost[runs]
        )
        # `remaining` stays unchanged, so that no other run gets these bytes
        windowed, available = self.to_windows(runs), self.available(runs)
        self.set_taken(runs, take_bytes(windowed, selected, available, self.params.placement, is_attributed[bursts]))

    def _ambiguity(self, placements: BurstPlacements) -> Reals:
        """Compute the ambiguity of bursts (m): mean cost of the application's bursts, plus weighted traffic nearby."""
        runs, params = self.runs, self.params
        bursts, application = runs.offsets[placements.run] + placements.burst, runs.application[placements.run]
        # the cost of a run carries no information if the run is partly unmeasured or was rejected
        has_cost = np.isfinite(self.placement.cost)
        has_cost[placements.run[~self._is_observed(placements)]] = False
        count = np.bincount(application, has_cost[placements.run]) + params.prior_found_count
        cost = np.where(has_cost, self.placement.cost, 0.0)
        mean_cost = np.bincount(application, cost[placements.run]) / count
        flank = np.maximum(runs.burst_duration[bursts], params.min_flank_s / self.interval_s)
        total, steps = np.concatenate([[0.0], np.cumsum(self.foreground)]), np.arange(len(self.foreground) + 1)
        started, ended = placements.started, placements.ended
        before = np.interp(started, steps, total) - np.interp(started - flank, steps, total)
        after = np.interp(ended + flank, steps, total) - np.interp(ended, steps, total)
        relative_height = (before + after) / (2 * flank * runs.peak_bytes[bursts])
        ambiguity: Reals = mean_cost[application] + params.flank_weight * np.minimum(relative_height, 2.0)
        return ambiguity

    def to_explanation(self) -> Explanation:
        """Convert to the public result, with the bytes of all runs as sparse rows."""
        counts = self.after - self.first
        run, step = np.repeat(np.arange(len(counts)), counts), places_of(self.first, counts)
        has_bytes = self.taken > 0
        confidence = self.runs.expected_correlation * np.exp(-self.placement.cost)
        return Explanation(
            run[has_bytes], step[has_bytes], self.taken[has_bytes], confidence, self.foreground, self.placements()
        )


def subtract_background(traffic_bytes: Reals, interval_s: float, params: ExplainParams | None = None) -> Reals:
    """Subtract the background: a low quantile of the traffic in each of consecutive long intervals.

    Parameters
    ----------
    traffic_bytes : Reals, shape (steps,)
        Bytes in each step; NaN where nothing was measured.
    interval_s : float
        Length of a step [s].
    params : ExplainParams, optional
        Length of the intervals, and the quantile.

    Returns
    -------
    Reals, shape (steps,)
        Non-negative foreground; 0 where nothing was measured.

    """
    params = params or ExplainParams()
    count = max(1, round(params.background_s / interval_s))
    foreground = np.zeros(len(traffic_bytes))
    for start in range(0, len(foreground), count):
        interval = traffic_bytes[start : start + count]
        finite = interval[np.isfinite(interval)]
        level = np.quantile(finite, params.background_quantile) if finite.size else 0.0
        foreground[start : start + count] = np.maximum(np.nan_to_num(interval - level), 0.0)
    return foreground


def range_factors(confidence: Reals) -> tuple[Reals, Reals]:
    """Compute the bounds of the 80 % interval of a run's bytes, as multiples of the attributed bytes.

    Parameters
    ----------
    confidence : Reals, shape (n,)
        Confidence in each run's bytes, 0 to 1.

    Returns
    -------
    (Reals, Reals), shape (n,) each
        Factors of the lower and upper bound.

    Notes
    -----
    The interval is valid for sums over 15 min or more. It was calibrated on simulated sites (seeds 11 to 13), with
    half, once, three and six times the usual background traffic. The signatures were extracted from the same traffic.

    """
    uncertainty = 1.0 - confidence
    return 0.9 - 0.1 * uncertainty, 1.0 + 1.1 * uncertainty**1.4
