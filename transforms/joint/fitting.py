"""Fitting: what all applications do, at once, from the traffic that their runs made together.

Each run of an application does the same along its own way: where the application is at each moment is told by how long
the run took. Then the traffic is a sum of unknown curves, each read at the known places of its runs, and the curves
that come nearest to it in squares, none of them below nothing, are found together: whose a byte is, is settled by all
runs that were there. A site has no more bursts than it has, so a curve that says more than the traffic asks for pays
(the lasso: Tibshirani 1996, DOI 10.1111/j.2517-6161.1996.tb02080.x). The descent is FISTA (Beck & Teboulle 2009, DOI
10.1137/080716542). No answer that was found before is needed, so no error of it is taken for true.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, joined, offsets_of, places_of, rows_of
from iosig.transforms.attribution.explaining import room_of
from iosig.transforms.joint.shared import Known, Shared
from iosig.transforms.joint.slowing import Steps, share_alone, sums, usual_cost
from iosig.transforms.signatures import left_out
from iosig.transforms.signatures.robust_alignment import running_totals

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# All numbers here are ours, and were chosen on simulated sites of seeds 1 to 6, other ones than the study's.

#: a step counts half where so many units are moved; a unit is this share of what a byte sees moved in its own step
_UNIT_RATIO = 0.15
#: what a unit in a step of a curve costs, for one run: of n runs it costs the root of n times as much
_COST = 0.095
_DESCENT_STEPS, _POWER_STEPS = 100, 15
#: of all runs together no more steps are fitted: where there are more, steps are put together
_MOST_STEPS = 6_000_000
#: a run whose pace differs by more from that of most was stopped, or begun again
_MOST_APART = 0.15
#: what runs cost each other is asked so often, and is nothing if it is less than this share of their pace
_SLOWING_ROUNDS, _LEAST_COST = 5, 0.02
#: below this share of an application's height a run is not at work, above that one it is wholly
_AT_WORK = 0.15, 0.45
#: a descent's step is safe by so much
_SAFE = 1.1


@dataclass(frozen=True, slots=True)
class Clocks:
    """Where in their applications r runs are: `lag` steps after its begin when the run starts, then `pace` a step.

    run (r): which of the runs there are. A step is as long as it is for a run that nobody slows.
    """

    run: Ints
    lag: Reals
    pace: Reals

    def kept(self, is_kept: Bools) -> Clocks:
        """Return those that are marked (r)."""
        return rows_of(self, is_kept)

    def also(self, more: Clocks) -> Clocks:
        """Return these and others."""
        return joined([self, more])


@dataclass(frozen=True, slots=True)
class Given:
    """What runs were given (k): the run, the step and the bytes of each row.

    work_ratio (k): the share of the step in which the run was at work. cost: what each other run at work costs a run;
    see `slowing`.
    """

    run: Ints
    step: Ints
    volume_bytes: Reals
    work_ratio: Reals
    cost: float


@dataclass(frozen=True, slots=True)
class _Sum:
    """The traffic as a sum: its weight and volume in units (steps), 0 where not measured, and the runs that made it.

    steps: of the n runs, by the clocks of runs that nobody slows. application (n): whose run each is. offsets (m + 1):
    where the curve of each application begins among all of them.
    """

    volume: Reals
    weights: Reals
    steps: Steps
    application: Ints
    offsets: Ints

    def matrix(self, clocks: Clocks) -> csr_matrix:
        """Return how much of each step of the curves (columns) falls into each step of the traffic (rows)."""
        from scipy.sparse import csr_matrix  # its import takes long

        owner, row, left, right = _ways(self.steps, clocks)
        application = self.application[clocks.run[owner]]
        step, count, begin = self.steps.step[row], np.diff(self.offsets)[application], self.offsets[application]
        rows, columns, shares = [], [], []
        low = np.floor(left).astype(np.int64)
        for place in range(int(np.ceil(clocks.pace.max(initial=0.0))) + 1):
            here = low + place
            share = np.minimum(right, here + 1.0) - np.maximum(left, here)
            is_there = (share > 0) & (here >= 0) & (here < count)
            rows.append(step[is_there].astype(np.int32))
            columns.append((begin + here)[is_there].astype(np.int32))
            shares.append(share[is_there].astype(np.float32))
        parts = np.concatenate(shares), (np.concatenate(rows), np.concatenate(columns))
        return csr_matrix(parts, shape=(len(self.volume), int(self.offsets[-1])), dtype=np.float64)

    def descended(self, clocks: Clocks, curves: Reals, cost: Reals) -> Reals:
        """Return the curves (steps of all) that come nearest with these clocks; cost: infinite where one is known."""
        terms = self.matrix(clocks)
        back = terms.T
        is_free = np.isfinite(cost)
        cost = np.where(is_free, cost, 0.0)
        way = is_free.astype(np.float64)
        size = 0.0
        for _ in range(_POWER_STEPS):
            way = back @ (self.weights * (terms @ way)) * is_free
            size = float(np.sqrt(way @ way))
            if not size > 0:
                return curves
            way /= size
        found, ahead, speed = curves, curves, 1.0
        for _ in range(_DESCENT_STEPS):
            slope = back @ (self.weights * (terms @ ahead - self.volume)) + cost
            following = np.where(is_free, np.maximum(ahead - slope / (_SAFE * size), 0.0), curves)
            faster = (1.0 + np.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
            ahead = following + (speed - 1.0) / faster * (following - found)
            found, speed = following, faster
        return found


@dataclass(frozen=True, slots=True)
class _Site:
    """What is fitted: a file system's traffic on steps that may be put together, and its runs by the wall's clock.

    shared: as it was, but on steps that are so many times as long (factor); its volume in units [bytes], 0 where not
    measured. weights (steps). steps: of its runs.
    """

    shared: Shared
    factor: int
    unit: float
    weights: Reals
    steps: Steps


@dataclass(frozen=True, slots=True)
class _Fit:
    """Curves of all applications, and the clocks of the runs that have a part. is_usual (n): which took as long."""

    problem: _Sum
    clocks: Clocks
    curves: Reals
    is_usual: Bools


def fitted(shared: Shared, known: Known, least_run_count: int) -> Given:
    """Return what each run was given, where the curves of all applications are found together.

    known: what is known of the applications; taken as it is where fewer runs than `least_run_count` took as long as
    most, and those without a signature have no part then. What runs at work cost each other is told by what comes of
    it, and all is fitted anew by the clocks that follow.
    """
    site = _site(shared, known)
    if not site.unit > 0:
        return Given(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 0.0)
    share, cost = np.ones(len(site.steps.run)), 0.0
    found = unslowed = _together(site, site.steps, known, least_run_count)
    for _ in range(_SLOWING_ROUNDS):
        others, work = _at_work(site, found)
        asked = np.where(found.is_usual, site.shared.application, -1)
        lasted_s = site.steps.duration * site.shared.interval_s
        cost = usual_cost(lasted_s, asked, site.steps.offsets, others, work * site.shared.interval_s)
        if cost < _LEAST_COST:
            return _given(shared, site, np.ones(len(share)), unslowed, 0.0)
        lasted = site.steps.lasted
        share = share_alone(others, np.divide(work, lasted, out=np.zeros(len(work)), where=lasted > 0), cost)
        found = _together(site, site.steps.slowed(share), known, least_run_count)
    return _given(shared, site, share, found, cost)


def _together(site: _Site, steps: Steps, known: Known, least_run_count: int) -> _Fit:
    """Return the curves that come nearest to the traffic by clocks that stand still while runs are slowed."""
    shared = site.shared
    duration, is_usual = _usual(shared, steps.duration)
    runs = np.bincount(shared.application[is_usual], minlength=shared.application_count)
    is_free = runs >= least_run_count
    told = [None if free else one for free, one in zip(is_free.tolist(), known.signatures, strict=True)]
    seconds = np.array([0.0 if one is None else one.duration_s for one in told])
    duration = np.where(is_free, duration, seconds / shared.interval_s)
    counts = np.ceil(duration).astype(np.int64)
    problem = _Sum(shared.volume_bytes, site.weights, steps, shared.application, offsets_of(counts))
    curves = [
        np.zeros(count) if one is None else _on_steps(one.bytes_per_s, count, shared.interval_s) / site.unit
        for one, count in zip(told, counts.tolist(), strict=True)
    ]
    cost = np.repeat(np.where(is_free, _COST * np.sqrt(np.maximum(runs, 1)), np.inf), counts)
    clocks, found = _descended(problem, np.concatenate([np.zeros(0), *curves]), cost, duration, is_usual)
    return _Fit(problem, clocks, found, is_usual)


def _descended(problem: _Sum, curves: Reals, cost: Reals, duration: Reals, is_usual: Bools) -> tuple[Clocks, Reals]:
    """Return the clocks of the runs that have a part, and the curves: of usual runs first, then of the others, too.

    A run of another duration than most was stopped, or is the rest of one that was: what fits better is taken, and
    nothing where neither fits.
    """
    lasted, whole = problem.steps.duration, duration[problem.application]
    clocks = Clocks(np.arange(len(whole)), np.zeros(len(whole)), whole / np.maximum(lasted, 1e-9))
    is_usual = is_usual & (np.abs(clocks.pace - 1.0) < _MOST_APART)
    usual, others = clocks.kept(is_usual & (whole > 0)), clocks.kept(~is_usual & (whole > 0))
    found = problem.descended(usual, curves, cost)
    if not len(others.run):
        return usual, found
    left = problem.volume - problem.matrix(usual) @ found
    from_start = Clocks(others.run, others.lag, np.ones(len(others.run)))
    to_end = Clocks(others.run, (whole - lasted)[others.run], from_start.pace)
    gains = [_gain(problem, one, found, left) for one in (from_start, to_end)]
    for one, is_better in ((from_start, gains[0] >= gains[1]), (to_end, gains[1] > gains[0])):
        usual = usual.also(one.kept(is_better & (np.maximum(*gains) > 0)))
    return usual, problem.descended(usual, curves, cost)


def _gain(problem: _Sum, clocks: Clocks, curves: Reals, left: Reals) -> Reals:
    """Return by how much nearer to the traffic the curves come if each run has a part, too (r)."""
    owner, row, begin, end = _ways(problem.steps, clocks)
    step, part = problem.steps.step[row], _passed(problem, clocks, owner, curves, begin, end)
    nearer = problem.weights[step] * part * (2.0 * left[step] - part)
    found: Reals = np.bincount(owner, nearer, len(clocks.run)).astype(np.float64)
    return found


def _at_work(site: _Site, found: _Fit) -> tuple[Reals, Reals]:
    """Return how many others were at work in each step of each run, and for how much of it the run itself (k)."""
    owner, row, begin, end = _ways(found.problem.steps, found.clocks)
    steps = site.steps
    work = np.zeros(len(steps.run))
    work[row] = _work_ratio(found, owner, begin, end) * steps.lasted[row]
    every = np.bincount(steps.step, work, len(site.weights))
    return np.maximum(every[steps.step] - work, 0.0), work


def _work_ratio(fit: _Fit, owner: Ints, begin: Reals, end: Reals) -> Reals:
    """Return for how much of the way between two places of its application each run is at work (k).

    A run is at work or not: between bursts a curve has what runs that are misplaced smear there, and some noise.
    """
    idle, busy = _AT_WORK
    ratio = fit.curves / np.repeat(_heights(fit), np.diff(fit.problem.offsets))
    work = np.clip((ratio - idle) / (busy - idle), 0.0, 1.0)
    way = end - begin
    passed = _passed(fit.problem, fit.clocks, owner, work, begin, end)
    found: Reals = np.divide(passed, way, out=np.zeros(len(way)), where=way > 0)
    return found


def _heights(fit: _Fit) -> Reals:
    """Return the rate at which each application moves its bytes, infinite where it moves none.

    The mean in which a step counts by the third power of its rate: where it counts less, what is smeared lowers it.
    """
    offsets = fit.problem.offsets
    total, higher = sums(fit.curves**3, offsets), sums(fit.curves**4, offsets)
    found: Reals = np.divide(higher, total, out=np.full(len(total), np.inf), where=total > 0)
    return found


def _given(shared: Shared, site: _Site, share: Reals, found: _Fit, cost: float) -> Given:
    """Return what runs were given in the steps of the traffic itself."""
    fine = Steps.of(shared)
    # steps that were put together are slowed alike
    among = fine.step // site.factor - site.steps.step[site.steps.offsets[fine.run]] + site.steps.offsets[fine.run]
    owner, row, begin, end = _ways(fine.slowed(share[among]), found.clocks, site.factor)
    part = _passed(found.problem, found.clocks, owner, found.curves, begin, end)
    work_ratio = _work_ratio(found, owner, begin, end)
    return Given(fine.run[row], fine.step[row], part * site.unit, work_ratio, cost)


def _passed(problem: _Sum, clocks: Clocks, owner: Ints, curves: Reals, begin: Reals, end: Reals) -> Reals:
    """Return what the curves have between two places of their applications each (k)."""
    application = problem.application[clocks.run[owner]]
    first, count = problem.offsets[application], np.diff(problem.offsets)[application]
    total = running_totals(curves[None])[0]
    places = np.arange(len(total), dtype=np.float64)
    low, high = (np.interp(first + np.clip(at, 0.0, count), places, total) for at in (begin, end))
    found: Reals = np.maximum(high - low, 0.0)
    return found


def _ways(steps: Steps, clocks: Clocks, factor: int = 1) -> tuple[Ints, Ints, Reals, Reals]:
    """Return of each step of each run (k) which of the clocks is its own, its row, and from where to where it goes.

    factor: so many of the steps are one of the clocks'.
    """
    counts = np.diff(steps.offsets)[clocks.run]
    owner = np.repeat(np.arange(len(clocks.run)), counts)
    row = places_of(steps.offsets[clocks.run], counts)
    pace, lag = clocks.pace[owner] / factor, clocks.lag[owner]
    return owner, row, steps.begin[row] * pace + lag, steps.end[row] * pace + lag


def _site(shared: Shared, known: Known) -> _Site:
    """Return what is fitted, on steps that are as long as their number asks for."""
    duration, _ = _usual(shared, shared.ended - shared.started)
    is_known = np.array([one is not None for one in known.signatures], dtype=np.bool_)
    is_there = ((duration > 0) | is_known)[shared.application]
    factor = max(1, -(-int(np.ceil(shared.ended - shared.started)[is_there].sum()) // _MOST_STEPS))
    is_known = np.isfinite(shared.volume_bytes)
    first = np.arange(0, len(is_known), factor)
    room = np.where(is_known, room_of(shared.volume_bytes, shared.interval_s), 0.0)
    known_count = np.add.reduceat(is_known.astype(np.float64), first) if len(first) else np.zeros(0)
    moved = np.add.reduceat(room, first) if len(first) else np.zeros(0)
    # what was not measured of a step was as the rest of it
    moved = np.divide(moved * factor, known_count, out=np.zeros(len(first)), where=known_count > 0)
    total = float(moved.sum())
    unit = _UNIT_RATIO * float((moved * (moved / total)).sum()) if total > 0 else 0.0
    volume = moved / unit if unit > 0 else moved
    longer = replace(
        shared,
        volume_bytes=volume,
        interval_s=shared.interval_s * factor,
        started=shared.started / factor,
        ended=shared.ended / factor,
    )
    return _Site(longer, factor, unit, (known_count > 0) / (1.0 + volume), Steps.of(longer))


def _usual(shared: Shared, lasted: Reals) -> tuple[Reals, Bools]:
    """Return how many steps most runs of each application take (m), 0 without runs, and which runs do (n)."""
    order = np.argsort(shared.application, kind="stable")
    offsets = offsets_of(np.bincount(shared.application, minlength=shared.application_count))
    is_usual = np.zeros(len(order), dtype=np.bool_)
    is_usual[order] = left_out.are_usual(lasted[order] * shared.interval_s, offsets)
    duration = np.zeros(shared.application_count)
    for application in np.unique(shared.application).tolist():
        own = order[offsets[application] : offsets[application + 1]]
        if is_usual[own].any():
            duration[application] = np.median(lasted[own[is_usual[own]]])
    return duration, is_usual


def _on_steps(bytes_per_s: Reals, count: int, step_s: float) -> Reals:
    """Return what a curve of seconds moves in each of so many steps."""
    total = running_totals(bytes_per_s[None])[0]
    at = np.minimum(np.arange(count + 1) * step_s, len(bytes_per_s))
    found: Reals = np.diff(np.interp(at, np.arange(len(total)), total))
    return found
