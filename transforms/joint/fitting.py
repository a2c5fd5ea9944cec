"""Fit the curves of all applications together to the traffic that their runs caused, by sparse regression.

A curve is the traffic of an application along its run. All runs of an application follow the same curve, each at its
own pace, which is inferred from the duration of the run. The traffic is then a sum of unknown curves, each read at the
known positions of its runs. Weighted least squares with non-negativity finds all curves together, so that every run
that was present takes part in attributing a byte. An L1 penalty (lasso: Tibshirani 1996,
DOI 10.1111/j.2517-6161.1996.tb02080.x) suppresses traffic that the data do not require. The solver is FISTA (Beck &
Teboulle 2009, DOI 10.1137/080716542). Previous signatures are not used, so that their errors do not propagate. Only
applications with too few runs keep their known signature, which is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, concatenate_rows, offsets_of, places_of, rows_of
from iosig.transforms.attribution.explanation import subtract_background
from iosig.transforms.joint.contention import RunSteps, estimate_contention_cost, relative_speed, sum_pieces
from iosig.transforms.joint.shared_traffic import KnownSignatures, SharedTraffic
from iosig.transforms.signatures import outliers
from iosig.transforms.signatures.robust_alignment import cumulative_sums

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

#: `_DESCENT_ROUNDS`: number of iterations of FISTA
#: `_POWER_ROUNDS`: number of iterations of the power method, which determines the step size of FISTA
_DESCENT_ROUNDS, _POWER_ROUNDS = 100, 15
#: factor on the estimated Lipschitz constant, since the power method underestimates it
_LIPSCHITZ_MARGIN = 1.1
#: maximum total number of steps of all runs; if runs have more, steps are combined
_MAX_STEPS = 6_000_000
#: maximum number of estimates of the contention cost
_MAX_CONTENTION_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class FittingParams:
    """Constants of the regression, chosen on simulated sites of seeds 1 to 6 (not the study's).

    Attributes
    ----------
    unit_ratio
        Unit of volume, relative to the volume-weighted mean volume of a step. A step with a volume of one unit has half
        the weight of an empty step.
    penalty
        L1 penalty per unit of volume in a step of the curve of one run. For n runs, it is multiplied by the square root
        of n.
    max_pace_deviation
        Maximum deviation of a complete run's pace from 1; other runs stopped early or were resumed.
    min_contention_cost
        Minimum contention cost; a lower cost counts as none.
    idle_ratio, active_ratio
        Rates at which a run is idle and fully active, relative to the application's burst rate; linear in between.
    """

    unit_ratio: float = 0.15
    penalty: float = 0.095
    max_pace_deviation: float = 0.15
    min_contention_cost: float = 0.02
    idle_ratio: float = 0.15
    active_ratio: float = 0.45


PARAMS = FittingParams()


@dataclass(frozen=True, slots=True)
class RunClocks:
    """Positions of r runs in their applications' curves.

    Attributes
    ----------
    run : (r,)
        Index of each run.
    offset : (r,)
        Position at the start of the run, in steps of the curve.
    pace : (r,)
        Steps of the curve per step of the run, on the clock of the run without contention.
    """

    run: Ints
    offset: Reals
    pace: Reals

    def select(self, is_selected: Bools) -> RunClocks:
        """Select the clocks of the marked runs (r)."""
        return rows_of(self, is_selected)

    def append(self, following: RunClocks) -> RunClocks:
        """Concatenate the clocks of two disjoint sets of runs."""
        return concatenate_rows([self, following])


@dataclass(frozen=True, slots=True)
class FittedTraffic:
    """Traffic attributed to runs, as k rows.

    Attributes
    ----------
    run, step : (k,)
        Index of the run, and of the traffic's step.
    volume_bytes : (k,)
        Bytes of the run in the step.
    active_ratio : (k,)
        Fraction of the row's time in which the run was active.
    contention_cost
        Slowdown of a run by each other active run, see `contention`.
    """

    run: Ints
    step: Ints
    volume_bytes: Reals
    active_ratio: Reals
    contention_cost: float


@dataclass(frozen=True, slots=True)
class _Problem:
    """Regression problem: the traffic as a sum of curves.

    Attributes
    ----------
    volume, weights : (steps,)
        Volume in units, and weight of each step of the traffic; 0 where not measured.
    steps
        Steps of the n runs, on clocks without contention.
    application : (n,)
        Application of each run.
    offsets : (m + 1,)
        First step of each application's curve in the concatenated curves.
    """

    volume: Reals
    weights: Reals
    steps: RunSteps
    application: Ints
    offsets: Ints

    def make_matrix(self, clocks: RunClocks) -> csr_matrix:
        """Create the design matrix: the part of each curve step (column) that falls into each traffic step (row)."""
        from scipy.sparse import csr_matrix  # slow import

        owner, row, left, right = _read_positions(self.steps, clocks)
        application = self.application[clocks.run[owner]]
        step, count, begin = self.steps.step[row], np.diff(self.offsets)[application], self.offsets[application]
        rows, columns, shares = [], [], []
        low = np.floor(left).astype(np.int64)
        for place in range(int(np.ceil(clocks.pace.max(initial=0.0))) + 1):
            column = low + place
            share = np.minimum(right, column + 1.0) - np.maximum(left, column)
            is_inside = (share > 0) & (column >= 0) & (column < count)
            rows.append(step[is_inside].astype(np.int32))
            columns.append((begin + column)[is_inside].astype(np.int32))
            shares.append(share[is_inside].astype(np.float32))
        parts = np.concatenate(shares), (np.concatenate(rows), np.concatenate(columns))
        return csr_matrix(parts, shape=(len(self.volume), int(self.offsets[-1])), dtype=np.float64)

    def solve(self, clocks: RunClocks, curves: Reals, penalty: Reals) -> Reals:
        """Minimize the penalized squared error over non-negative curves (concatenated) by FISTA.

        Curves with an infinite penalty are fixed.
        """
        matrix = self.make_matrix(clocks)
        transposed = matrix.T
        is_free = np.isfinite(penalty)
        penalty = np.where(is_free, penalty, 0.0)
        # the power method estimates the Lipschitz constant of the gradient
        vector = is_free.astype(np.float64)
        lipschitz = 0.0
        for _ in range(_POWER_ROUNDS):
            vector = transposed @ (self.weights * (matrix @ vector)) * is_free
            lipschitz = float(np.sqrt(vector @ vector))
            if not lipschitz > 0:
                return curves
            vector /= lipschitz
        solution, extrapolated, momentum = curves, curves, 1.0
        for _ in range(_DESCENT_ROUNDS):
            gradient = transposed @ (self.weights * (matrix @ extrapolated - self.volume)) + penalty
            next_solution = np.where(
                is_free, np.maximum(extrapolated - gradient / (_LIPSCHITZ_MARGIN * lipschitz), 0.0), curves
            )
            next_momentum = (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
            extrapolated = next_solution + (momentum - 1.0) / next_momentum * (next_solution - solution)
            solution, momentum = next_solution, next_momentum
        return solution


@dataclass(frozen=True, slots=True)
class _Site:
    """The traffic of a file system on possibly combined steps, and the steps of its runs.

    Attributes
    ----------
    shared
        Traffic in units, 0 where not measured, and its runs.
    factor
        Number of original steps per step.
    unit
        Unit of volume [bytes].
    weights : (steps,)
        Weight of each step in the regression.
    steps
        Steps of the runs, on the clock of the traffic.
    """

    shared: SharedTraffic
    factor: int
    unit: float
    weights: Reals
    steps: RunSteps


@dataclass(frozen=True, slots=True)
class _Fit:
    """Curves of all applications, and clocks of the runs in the fit; is_typical (n): whether durations are typical."""

    problem: _Problem
    clocks: RunClocks
    curves: Reals
    is_typical: Bools


def fit_traffic(shared: SharedTraffic, known_signatures: KnownSignatures, min_run_count: int) -> FittedTraffic:
    """Attribute the traffic of a file system to its runs by fitting the curves of all applications.

    Parameters
    ----------
    shared
        The traffic and the runs.
    known_signatures
        Signatures so far. An application with fewer than `min_run_count` runs of typical duration keeps its known
        signature. If it has none, it is not part of the fit.
    min_run_count
        Minimum number of runs of typical duration for fitting an application's curve.

    Returns
    -------
    FittedTraffic

    Notes
    -----
    The fit shows when runs are active, and thus determines the contention cost. The cost changes the clocks of the
    runs, so the fit is repeated.
    """
    site = _prepare_site(shared, known_signatures)
    if not site.unit > 0:
        return FittedTraffic(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 0.0)
    speed, cost = np.ones(len(site.steps.run)), 0.0
    fit = fit_without_contention = _fit_curves(site, site.steps, known_signatures, min_run_count)
    for _ in range(_MAX_CONTENTION_ROUNDS):
        active_count, active = _find_activity(site, fit)
        application = np.where(fit.is_typical, site.shared.application, -1)
        duration_s = site.steps.duration * site.shared.interval_s
        active_s = active * site.shared.interval_s
        cost = estimate_contention_cost(duration_s, application, site.steps.offsets, active_count, active_s)
        if cost < PARAMS.min_contention_cost:
            return _attribute(shared, site, np.ones(len(speed)), fit_without_contention, 0.0)
        length = site.steps.length
        active_ratio = np.divide(active, length, out=np.zeros(len(active)), where=length > 0)
        speed = relative_speed(active_count, active_ratio, cost)
        fit = _fit_curves(site, site.steps.scale_time(speed), known_signatures, min_run_count)
    return _attribute(shared, site, speed, fit, cost)


def _fit_curves(site: _Site, steps: RunSteps, known_signatures: KnownSignatures, min_run_count: int) -> _Fit:
    """Fit the curves of all applications to the traffic; `steps` sets the clocks of the runs."""
    shared = site.shared
    duration, is_typical = _typical_durations(shared, steps.duration)
    run_counts = np.bincount(shared.application[is_typical], minlength=shared.application_count)
    is_free = run_counts >= min_run_count
    fixed = [
        None if is_curve_free else signature
        for is_curve_free, signature in zip(is_free.tolist(), known_signatures.signatures, strict=True)
    ]
    fixed_s = np.array([0.0 if signature is None else signature.duration_s for signature in fixed])
    duration = np.where(is_free, duration, fixed_s / shared.interval_s)
    counts = np.ceil(duration).astype(np.int64)
    problem = _Problem(shared.volume_bytes, site.weights, steps, shared.application, offsets_of(counts))
    curves = [
        np.zeros(count)
        if signature is None
        else _sum_steps(signature.bytes_per_s, count, shared.interval_s) / site.unit
        for signature, count in zip(fixed, counts.tolist(), strict=True)
    ]
    penalty = np.where(is_free, PARAMS.penalty * np.sqrt(np.maximum(run_counts, 1)), np.inf)
    start = np.concatenate([np.zeros(0), *curves])
    clocks, solution = _solve_in_two_passes(problem, start, np.repeat(penalty, counts), duration, is_typical)
    return _Fit(problem, clocks, solution, is_typical)


def _solve_in_two_passes(
    problem: _Problem, curves: Reals, penalty: Reals, duration: Reals, is_typical: Bools
) -> tuple[RunClocks, Reals]:
    """Fit the curves to the complete runs first, then add the partial runs; return the clocks and the curves.

    A partial run was stopped early, or is the remainder of a stopped run. It gets the better of both positions, or is
    left out if neither improves the fit.
    """
    run_duration, full = problem.steps.duration, duration[problem.application]
    clocks = RunClocks(np.arange(len(full)), np.zeros(len(full)), full / np.maximum(run_duration, 1e-9))
    is_complete = is_typical & (np.abs(clocks.pace - 1.0) < PARAMS.max_pace_deviation)
    used, partial = clocks.select(is_complete & (full > 0)), clocks.select(~is_complete & (full > 0))
    solution = problem.solve(used, curves, penalty)
    if not len(partial.run):
        return used, solution
    residual = problem.volume - problem.make_matrix(used) @ solution
    from_start = RunClocks(partial.run, partial.offset, np.ones(len(partial.run)))
    to_end = RunClocks(partial.run, (full - run_duration)[partial.run], from_start.pace)
    gains = [_fit_gain(problem, candidate, solution, residual) for candidate in (from_start, to_end)]
    for candidate, is_better in ((from_start, gains[0] >= gains[1]), (to_end, gains[1] > gains[0])):
        used = used.append(candidate.select(is_better & (np.maximum(*gains) > 0)))
    return used, problem.solve(used, curves, penalty)


def _fit_gain(problem: _Problem, clocks: RunClocks, curves: Reals, residual: Reals) -> Reals:
    """Compute the decrease of the squared error due to adding each run (r) to the fit on its own."""
    owner, row, begin, end = _read_positions(problem.steps, clocks)
    step, part = problem.steps.step[row], _integrate_curves(problem, clocks, owner, curves, begin, end)
    decrease = problem.weights[step] * part * (2.0 * residual[step] - part)
    gains: Reals = np.bincount(owner, decrease, len(clocks.run)).astype(np.float64)
    return gains


# ---- activity


def _find_activity(site: _Site, fit: _Fit) -> tuple[Reals, Reals]:
    """Return, per step of each run, the number of other active runs and the run's own active time in steps (k)."""
    owner, row, begin, end = _read_positions(fit.problem.steps, fit.clocks)
    steps = site.steps
    active = np.zeros(len(steps.run))
    active[row] = _active_ratio(fit, owner, begin, end) * steps.length[row]
    total = np.bincount(steps.step, active, len(site.weights))
    return np.maximum(total[steps.step] - active, 0.0), active


def _active_ratio(fit: _Fit, owner: Ints, begin: Reals, end: Reals) -> Reals:
    """Compute the fraction of the path between two positions in which each run is active (k).

    The thresholds ignore noise between bursts, and traffic that misplaced runs smear into these pauses.
    """
    ratio = fit.curves / np.repeat(_burst_rates(fit), np.diff(fit.problem.offsets))
    active = np.clip((ratio - PARAMS.idle_ratio) / (PARAMS.active_ratio - PARAMS.idle_ratio), 0.0, 1.0)
    length = end - begin
    active_length = _integrate_curves(fit.problem, fit.clocks, owner, active, begin, end)
    share: Reals = np.divide(active_length, length, out=np.zeros(len(length)), where=length > 0)
    return share


def _burst_rates(fit: _Fit) -> Reals:
    """Compute the typical burst rate of each application (m); infinite if the application moves nothing.

    It is the mean rate, weighted by the third power of the rate. With a lower power, smeared traffic would reduce it.
    """
    offsets = fit.problem.offsets
    cubes, fourths = sum_pieces(fit.curves**3, offsets), sum_pieces(fit.curves**4, offsets)
    rates: Reals = np.divide(fourths, cubes, out=np.full(len(cubes), np.inf), where=cubes > 0)
    return rates


# ---- attribution


def _attribute(shared: SharedTraffic, site: _Site, speed: Reals, fit: _Fit, cost: float) -> FittedTraffic:
    """Attribute volumes to runs, in the original steps of the traffic."""
    fine = RunSteps.from_traffic(shared)
    # original steps that were combined have the same speed
    coarse = fine.step // site.factor - site.steps.step[site.steps.offsets[fine.run]] + site.steps.offsets[fine.run]
    owner, row, begin, end = _read_positions(fine.scale_time(speed[coarse]), fit.clocks, site.factor)
    part = _integrate_curves(fit.problem, fit.clocks, owner, fit.curves, begin, end)
    active_ratio = _active_ratio(fit, owner, begin, end)
    return FittedTraffic(fine.run[row], fine.step[row], part * site.unit, active_ratio, cost)


def _integrate_curves(
    problem: _Problem, clocks: RunClocks, owner: Ints, curves: Reals, begin: Reals, end: Reals
) -> Reals:
    """Integrate each run's curve between two positions (k)."""
    application = problem.application[clocks.run[owner]]
    first, count = problem.offsets[application], np.diff(problem.offsets)[application]
    total = cumulative_sums(curves[None])[0]
    places = np.arange(len(total), dtype=np.float64)
    low, high = (np.interp(first + np.clip(at, 0.0, count), places, total) for at in (begin, end))
    integrals: Reals = np.maximum(high - low, 0.0)
    return integrals


def _read_positions(steps: RunSteps, clocks: RunClocks, factor: int = 1) -> tuple[Ints, Ints, Reals, Reals]:
    """Return, per step of each clock's run (k): clock, row of the step, and the step's start and end in the curve.

    factor: number of `steps` per step of the clocks.
    """
    counts = np.diff(steps.offsets)[clocks.run]
    owner = np.repeat(np.arange(len(clocks.run)), counts)
    row = places_of(steps.offsets[clocks.run], counts)
    pace, offset = clocks.pace[owner] / factor, clocks.offset[owner]
    return owner, row, steps.begin[row] * pace + offset, steps.end[row] * pace + offset


# ---- preparation


def _prepare_site(shared: SharedTraffic, known_signatures: KnownSignatures) -> _Site:
    """Combine steps if the runs have too many, scale volumes to units, and compute the weights of steps."""
    duration, _ = _typical_durations(shared, shared.ended - shared.started)
    has_signature = np.array([signature is not None for signature in known_signatures.signatures], dtype=np.bool_)
    is_fitted = ((duration > 0) | has_signature)[shared.application]
    factor = max(1, -(-int(np.ceil(shared.ended - shared.started)[is_fitted].sum()) // _MAX_STEPS))
    is_known = np.isfinite(shared.volume_bytes)
    first = np.arange(0, len(is_known), factor)
    foreground = np.where(is_known, subtract_background(shared.volume_bytes, shared.interval_s), 0.0)
    known_count = np.add.reduceat(is_known.astype(np.float64), first) if len(first) else np.zeros(0)
    volume_bytes = np.add.reduceat(foreground, first) if len(first) else np.zeros(0)
    # the unmeasured part of a step is assumed to have the same rate as the measured part
    volume_bytes = np.divide(volume_bytes * factor, known_count, out=np.zeros(len(first)), where=known_count > 0)
    total = float(volume_bytes.sum())
    unit = PARAMS.unit_ratio * float((volume_bytes * (volume_bytes / total)).sum()) if total > 0 else 0.0
    volume = volume_bytes / unit if unit > 0 else volume_bytes
    coarse = replace(
        shared,
        volume_bytes=volume,
        interval_s=shared.interval_s * factor,
        started=shared.started / factor,
        ended=shared.ended / factor,
    )
    return _Site(coarse, factor, unit, (known_count > 0) / (1.0 + volume), RunSteps.from_traffic(coarse))


def _typical_durations(shared: SharedTraffic, run_duration: Reals) -> tuple[Reals, Bools]:
    """Return each application's typical duration in steps (m), 0 without runs, and whether runs are typical (n)."""
    order = np.argsort(shared.application, kind="stable")
    offsets = offsets_of(np.bincount(shared.application, minlength=shared.application_count))
    is_typical = np.zeros(len(order), dtype=np.bool_)
    is_typical[order] = outliers.select_typical_runs(run_duration[order] * shared.interval_s, offsets)
    duration = np.zeros(shared.application_count)
    for application in np.unique(shared.application).tolist():
        runs = order[offsets[application] : offsets[application + 1]]
        if is_typical[runs].any():
            duration[application] = np.median(run_duration[runs[is_typical[runs]]])
    return duration, is_typical


def _sum_steps(bytes_per_s: Reals, step_count: int, step_s: float) -> Reals:
    """Compute the volume in each step of a curve given per second."""
    total = cumulative_sums(bytes_per_s[None])[0]
    at = np.minimum(np.arange(step_count + 1) * step_s, len(bytes_per_s))
    volumes: Reals = np.diff(np.interp(at, np.arange(len(total)), total))
    return volumes
