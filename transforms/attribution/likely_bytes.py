"""Likely bytes of runs: divide the unexplained traffic among the active runs by expectation maximization.

In the model, every active run moves bytes at its own Poisson rate, which is shrunk toward the rate of its application's
other runs. One more source stands for unlogged traffic. Expectation maximization alternates between two estimates: the
expected bytes of each source in each step, and the rates (Dempster, Laird and Rubin, J. R. Stat. Soc. B 39, 1977; for
sums of Poisson variables: Shepp and Vardi, IEEE Trans. Med. Imaging 1, 1982, doi:10.1109/TMI.1982.4307558). The model
assumes that all runs of an application move most of their bytes in the same phases after their start. The phases of a
run are estimated from the application's other runs. Bytes that signatures explain count in part toward rates and
phases. The result ranks suspects; it does not measure how many bytes each run moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, places_of
from iosig.transforms.attribution.runs import RunBytes

#: length of a step [s]; it separates one-minute runs, and shorter steps add no information
STEP_S = 10.0


@dataclass(frozen=True, slots=True)
class LikelyBytesParams:
    """Parameters of the estimation, chosen on simulated sites (seeds 1 and 2) and a real day with steps of `STEP_S`."""

    #: number of iterations of expectation maximization
    round_count: int = 30
    #: constant part of the weight of the application's rate in the rate of a run, in steps
    shrinkage_steps: float = 6.0
    #: further part of that weight, relative to the run's own number of steps
    shrinkage_ratio: float = 0.6
    #: length of a phase, in steps
    phase_steps: int = 3
    #: weight of each adjacent phase when a phase is smoothed
    neighbor_ratio: float = 0.7
    #: weight of the run's mean rate in the estimate of a phase, in steps
    prior_steps: float = 12.0
    #: number of the first iteration that estimates phases, from 0
    first_phase_round: int = 5
    #: weight of explained bytes in the rate of a run; chosen on other simulated sites (seeds 60 to 65, stormy)
    explained_ratio: float = 0.15
    #: weight of explained bytes in the phases of the application; chosen on the same sites
    explained_phase_ratio: float = 0.5


def spread_evenly(run: Ints, block: Ints, volume_bytes: Reals, block_of_step: Ints) -> RunBytes:
    """Spread the bytes of blocks evenly over their steps.

    Parameters
    ----------
    run, block : Ints, shape (k,)
        Run and block of each row.
    volume_bytes : Reals, shape (k,)
        Bytes of the run in the block.
    block_of_step : Ints, shape (steps,)
        Block of each step, ascending.

    Returns
    -------
    RunBytes
        Bytes by run and step; blocks without steps are left out.

    """
    first, after = (np.searchsorted(block_of_step, block, side=side) for side in ("left", "right"))
    counts = after - first
    row = np.repeat(np.arange(len(counts)), counts)
    return RunBytes(run[row], places_of(first, counts), (volume_bytes / np.maximum(counts, 1))[row])


def estimate_likely_bytes(
    residual_bytes: Reals,
    started: Reals,
    ended: Reals,
    application: Ints,
    params: LikelyBytesParams | None = None,
    explained: RunBytes | None = None,
) -> RunBytes:
    """Divide the residual traffic among the active runs.

    Parameters
    ----------
    residual_bytes : Reals, shape (steps,)
        Unexplained bytes in each step; NaN where nothing was measured.
    started, ended : Reals, shape (n,)
        Start and end of each run, in steps.
    application : Ints, shape (n,)
        Index of each run's application.
    params : LikelyBytesParams, optional
        Parameters of the estimation.
    explained : RunBytes, optional
        Traffic that is already explained; `residual_bytes` does not contain it.

    Returns
    -------
    RunBytes
        Expected bytes of each run in each of its steps.

    """
    params = params or LikelyBytesParams()
    residual = np.nan_to_num(residual_bytes)
    first = np.clip(np.floor(started), 0, len(residual)).astype(np.int64)
    counts = np.clip(np.ceil(ended), first, len(residual)).astype(np.int64) - first
    step, run = places_of(first, counts), np.repeat(np.arange(len(first)), counts)
    # the fraction of each step that was measured and in which the run was active
    presence = np.isfinite(residual_bytes)[step] * (np.minimum(step + 1, ended[run]) - np.maximum(step, started[run]))
    exposure = np.maximum(np.bincount(run, presence, len(first)), 1e-9)
    application_exposure = np.maximum(np.bincount(application, exposure), 1e-9)
    mean = float(residual.mean()) if len(residual) else 0.0
    rate, unlogged_rate = np.full(len(first), max(mean, 1e-9)), max(mean, 1e-9)
    phases = _Phases.from_steps(run, (step - started[run]) / params.phase_steps, application)
    factor, shrinkage = np.ones(len(phases.run)), params.shrinkage_steps + params.shrinkage_ratio * exposure
    explained_bytes = _scatter_explained(explained, first, counts)
    known_bytes = np.bincount(run, explained_bytes, len(first))
    application_known = np.bincount(application, known_bytes, len(application_exposure)) / application_exposure
    known_rate = (known_bytes + shrinkage * application_known[application]) / (exposure + shrinkage)
    for number in range(params.round_count):
        weighted_presence = factor[phases.number] * presence
        scale = _residual_ratio(residual, rate[run] * weighted_presence, step, unlogged_rate)
        moved_bytes = rate[run] * weighted_presence * scale[step]
        total = np.bincount(run, moved_bytes + params.explained_ratio * explained_bytes, len(first))
        application_rate = np.bincount(application, total, len(application_exposure)) / application_exposure
        weighted_exposure = np.maximum(np.bincount(run, weighted_presence, len(first)), 1e-9)
        rate = (total + shrinkage * application_rate[application]) / (weighted_exposure + shrinkage)
        if number >= params.first_phase_round:
            total_rate = rate + (params.explained_phase_ratio - params.explained_ratio) * known_rate
            factor = phases.factors(
                moved_bytes + params.explained_phase_ratio * explained_bytes, presence, total_rate, params
            )
        unlogged_rate *= float(scale.mean())
    expected = rate[run] * factor[phases.number] * presence
    return RunBytes(run, step, expected * _residual_ratio(residual, expected, step, unlogged_rate)[step])


@dataclass(frozen=True, slots=True)
class _Phases:
    """p phases of runs, sorted by run and time since the start of the run.

    Attributes
    ----------
    run : Ints, shape (p,)
        Run of each phase.
    application_phase : Ints, shape (p,)
        Index of the corresponding phase of the application.
    number : Ints, shape (rows,)
        Index of the phase of each row (run and step).
    is_next, is_next_of_application : Bools
        Whether the next phase follows immediately in time, for the phases of runs and of applications.

    """

    run: Ints
    application_phase: Ints
    number: Ints
    is_next: Bools
    is_next_of_application: Bools

    @classmethod
    def from_steps(cls, run: Ints, elapsed_phases: Reals, application: Ints) -> _Phases:
        """Group rows by run and by the number of phases completed before them."""
        phase: Ints = np.maximum(elapsed_phases, 0.0).astype(np.int64)
        # two unused numbers after the last phase, so that phases of different runs are never adjacent
        stride = int(phase.max(initial=0)) + 2
        keys, number = np.unique(run * stride + phase, return_inverse=True)
        application_keys, application_phase = np.unique(
            application[keys // stride] * stride + keys % stride, return_inverse=True
        )
        return cls(keys // stride, application_phase, number, np.diff(keys) == 1, np.diff(application_keys) == 1)

    def factors(self, moved_bytes: Reals, presence: Reals, rate: Reals, params: LikelyBytesParams) -> Reals:
        """Compute the rate of the application's other runs in each phase, relative to their mean rate.

        The run's own bytes are left out. Otherwise, a run that is active alone would claim all traffic of that time.
        """
        count = len(self.run)
        total = np.bincount(self.number, moved_bytes, count)
        expected = np.bincount(self.number, presence, count) * rate[self.run]
        other_total, other_expected = (
            self._sum_other_runs(values.astype(np.float64), params.neighbor_ratio) for values in (total, expected)
        )
        prior = params.prior_steps * rate[self.run]
        factors: Reals = (other_total + prior) / np.maximum(other_expected + prior, 1e-300)
        return factors

    def _sum_other_runs(self, values: Reals, neighbor_ratio: float) -> Reals:
        """Sum each phase and its weighted neighbors over the application's other runs."""
        sums = np.bincount(self.application_phase, values).astype(np.float64)
        run_sums = _add_neighbors(values, self.is_next, neighbor_ratio)
        smoothed = _add_neighbors(sums, self.is_next_of_application, neighbor_ratio)
        other_sums: Reals = np.maximum(smoothed[self.application_phase] - run_sums, 0.0)
        return other_sums


def _scatter_explained(explained: RunBytes | None, first: Ints, counts: Ints) -> Reals:
    """Return the explained bytes of each row; run i has counts[i] rows, for the steps from first[i] on."""
    if explained is None:
        return np.zeros(int(counts.sum()))
    offset = explained.step - first[explained.run]
    is_in = (offset >= 0) & (offset < counts[explained.run])
    row = (offsets_of(counts)[explained.run] + offset)[is_in]
    values: Reals = np.bincount(row, explained.volume_bytes[is_in], int(counts.sum())).astype(np.float64)
    return values


def _add_neighbors(values: Reals, is_next: Bools, ratio: float) -> Reals:
    """Add to each value its adjacent values, multiplied by the ratio; `is_next` marks adjacent values."""
    sums = values.copy()
    sums[:-1] += ratio * values[1:] * is_next
    sums[1:] += ratio * values[:-1] * is_next
    return sums


def _residual_ratio(residual: Reals, expected: Reals, step: Ints, unlogged_rate: float) -> Reals:
    """Divide the residual of each step by the expected bytes of all sources together."""
    ratio: Reals = residual / np.maximum(np.bincount(step, expected, len(residual)) + unlogged_rate, 1e-300)
    return ratio
