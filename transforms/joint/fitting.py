"""Fitting: what all applications do, at once, from the traffic that their runs made together.

Each run of an application does the same along its own way: where the application is at each moment is told by how long
the run took. Then the traffic is a sum of unknown curves, each read at the known places of its runs, and the curves
that come nearest to it in squares, none of them below nothing, are found together: whose a byte is, is settled by all
runs that were there. A site has no more bursts than it has, so a curve that says more than the traffic asks for pays
(the lasso: Tibshirani 1996, DOI 10.1111/j.2517-6161.1996.tb02080.x). The descent is FISTA (Beck & Teboulle 2009, DOI
10.1137/080716542). No answer that was found before is needed, so no error of it is taken for true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transforms.arrays import Bools, Ints, Reals, joined, offsets_of, places_of, rows_of
from transforms.attribution.explaining import room_of
from transforms.joint.shared import Known, Shared
from transforms.signatures import left_out
from transforms.signatures.robust_alignment import running_totals

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# All numbers here are ours, and were chosen on simulated sites of seeds 1 and 2.

#: a step counts half where so many units are moved; a unit is this share of what a byte sees moved in its own step
_UNIT_RATIO = 0.15
#: what a unit in a step of a curve costs, for one run: of n runs it costs the root of n times as much
_COST = 0.095
_DESCENT_STEPS, _POWER_STEPS = 100, 15
#: of all runs together no more steps are fitted: where there are more, steps are put together
_MOST_STEPS = 6_000_000
#: a run whose pace differs by more from that of most was stopped, or begun again
_MOST_APART = 0.15
#: a descent's step is safe by so much
_SAFE = 1.1


@dataclass(frozen=True, slots=True)
class Clocks:
    """Where in their applications r runs are: `lag` steps after its begin when the run starts, then `pace` a step.

    run (r): which of the runs there are.
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
    """What runs were given (k): the run, the step and the bytes of each row."""

    run: Ints
    step: Ints
    volume_bytes: Reals


@dataclass(frozen=True, slots=True)
class _Sum:
    """The traffic as a sum: its weight and volume in units (steps), 0 where not measured, and the runs that made it."""

    shared: Shared
    volume: Reals
    weights: Reals
    offsets: Ints

    def matrix(self, clocks: Clocks) -> csr_matrix:
        """Return how much of each step of the curves (columns) falls into each step of the traffic (rows)."""
        from scipy.sparse import csr_matrix  # its import takes long

        owner, step, left, right = _ways(self.shared, clocks)
        application = self.shared.application[clocks.run[owner]]
        count, begin = np.diff(self.offsets)[application], self.offsets[application]
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


def fitted(shared: Shared, known: Known, least_run_count: int) -> Given:
    """Return what each run was given, where the curves of all applications are found together.

    known: what is known of the applications; taken as it is where fewer runs than `least_run_count` took as long as
    most, and those without a signature have no part then.
    """
    duration, is_usual = _usual(shared)
    runs = np.bincount(shared.application[is_usual], minlength=shared.application_count)
    is_free = runs >= least_run_count
    told = [None if free else one for free, one in zip(is_free.tolist(), known.signatures, strict=True)]
    seconds = np.array([0.0 if one is None else one.duration_s for one in told])
    duration = np.where(is_free, duration, seconds / shared.interval_s)
    is_there = (duration > 0)[shared.application]
    factor = max(1, -(-int(np.ceil(shared.ended - shared.started)[is_there].sum()) // _MOST_STEPS))
    counts = np.ceil(duration / factor).astype(np.int64)
    problem, unit = _problem(shared, factor, offsets_of(counts))
    if not unit > 0:
        return Given(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    curves = [
        np.zeros(count) if one is None else _on_steps(one.bytes_per_s, count, shared.interval_s * factor) / unit
        for one, count in zip(told, counts.tolist(), strict=True)
    ]
    cost = np.repeat(np.where(is_free, _COST * np.sqrt(np.maximum(runs, 1)), np.inf), counts)
    clocks, found = _fitted(problem, np.concatenate([np.zeros(0), *curves]), cost, duration / factor, is_usual)
    return _given(shared, problem, clocks, found * unit, factor)


def _fitted(problem: _Sum, curves: Reals, cost: Reals, duration: Reals, is_usual: Bools) -> tuple[Clocks, Reals]:
    """Return the clocks of the runs that have a part, and the curves: of usual runs first, then of the others, too.

    A run of another duration than most was stopped, or is the rest of one that was: what fits better is taken, and
    nothing where neither fits.
    """
    shared = problem.shared
    lasted, whole = shared.ended - shared.started, duration[shared.application]
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
    owner, step, begin, end = _ways(problem.shared, clocks)
    part = _passed(problem, clocks, owner, curves, begin, end)
    nearer = problem.weights[step] * part * (2.0 * left[step] - part)
    found: Reals = np.bincount(owner, nearer, len(clocks.run)).astype(np.float64)
    return found


def _given(shared: Shared, problem: _Sum, clocks: Clocks, curves: Reals, factor: int) -> Given:
    """Return what runs were given in the steps of the traffic itself."""
    fine = Clocks(clocks.run, clocks.lag * factor, clocks.pace)
    owner, step, begin, end = _ways(shared, fine)
    part = _passed(problem, clocks, owner, curves, begin / factor, end / factor)
    return Given(clocks.run[owner], step, part)


def _passed(problem: _Sum, clocks: Clocks, owner: Ints, curves: Reals, begin: Reals, end: Reals) -> Reals:
    """Return what the curves have between two places of their applications each (k)."""
    application = problem.shared.application[clocks.run[owner]]
    first, count = problem.offsets[application], np.diff(problem.offsets)[application]
    total = running_totals(curves[None])[0]
    places = np.arange(len(total), dtype=np.float64)
    low, high = (np.interp(first + np.clip(at, 0.0, count), places, total) for at in (begin, end))
    found: Reals = np.maximum(high - low, 0.0)
    return found


def _ways(shared: Shared, clocks: Clocks) -> tuple[Ints, Ints, Reals, Reals]:
    """Return of each step of each run (k) which of the clocks is its own, the step, and from where to where it goes."""
    count = len(shared.volume_bytes)
    first = np.clip(np.floor(shared.started[clocks.run]), 0, count).astype(np.int64)
    after = np.clip(np.ceil(shared.ended[clocks.run]), first, count).astype(np.int64)
    owner = np.repeat(np.arange(len(clocks.run)), after - first)
    step = places_of(first, after - first)
    since = step - shared.started[clocks.run][owner]
    begin = np.maximum(since, 0.0) * clocks.pace[owner] + clocks.lag[owner]
    lasted = (shared.ended - shared.started)[clocks.run][owner]
    end = np.minimum(since + 1.0, lasted) * clocks.pace[owner] + clocks.lag[owner]
    return owner, step, begin, end


def _problem(shared: Shared, factor: int, offsets: Ints) -> tuple[_Sum, float]:
    """Return the traffic as a sum on steps that are so many times as long, and its unit [bytes]."""
    is_known = np.isfinite(shared.volume_bytes)
    first = np.arange(0, len(is_known), factor)
    room = np.where(is_known, room_of(shared.volume_bytes, shared.interval_s), 0.0)
    known = np.add.reduceat(is_known.astype(np.float64), first) if len(first) else np.zeros(0)
    moved = np.add.reduceat(room, first) if len(first) else np.zeros(0)
    # what was not measured of a step was as the rest of it
    moved = np.divide(moved * factor, known, out=np.zeros(len(known)), where=known > 0)
    total = float(moved.sum())
    unit = _UNIT_RATIO * float((moved * (moved / total)).sum()) if total > 0 else 0.0
    volume = moved / unit if unit > 0 else moved
    longer = Shared(
        volume,
        shared.interval_s * factor,
        shared.application,
        shared.application_count,
        shared.started / factor,
        shared.ended / factor,
        shared.is_sample,
    )
    return _Sum(longer, volume, (known > 0) / (1.0 + volume), offsets), unit


def _usual(shared: Shared) -> tuple[Reals, Bools]:
    """Return how many steps most runs of each application take (m), 0 without runs, and which runs do (n)."""
    lasted = shared.ended - shared.started
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
