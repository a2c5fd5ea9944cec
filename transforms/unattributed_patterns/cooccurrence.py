"""Measure the co-occurrence of a pattern with the runs of logged applications, by a p-value under random rotation.

The null hypothesis is that the appearances are rotated relative to the job log by a random time. Rotation determines
the exposure of an application, i.e. the fraction of time covered by its runs, and the variance of the fraction of
covered appearances. The variance yields the effective number of independent appearances (design effect: Kish, Survey
Sampling, 1965, section 8.2), since the appearances of one train are covered together or not at all. The p-value is a
binomial tail with that number, multiplied by the number of tested applications.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from iosig.transforms.arrays import Bools, Ints, Reals


@dataclass(frozen=True, slots=True)
class CooccurrenceParams:
    """Thresholds for attributing a pattern to a logged application; they are conventional and not tuned."""

    #: tolerance of a run's start and end [s], since job logs are inexact, and caches flush after a run
    slack_s: float = 60.0
    #: minimum fraction of appearances within an application's runs for it to be a candidate
    min_coverage_ratio: float = 0.2
    #: coverage from which an application is a possible owner if its uncorrected p-value is below `max_single_p`
    high_coverage_ratio: float = 0.75
    #: maximum corrected p-value of the outcome `attributed`
    max_named_p: float = 0.01
    #: maximum corrected p-value of the outcome `ambiguous`
    max_unsure_p: float = 0.05
    #: maximum uncorrected p-value of an application with high coverage that may be the owner
    max_single_p: float = 0.5
    #: number of applications that may produce the pattern together
    joint_count: int = 3
    #: minimum joint coverage of `joint_count` applications that may be the owners together
    joint_coverage_ratio: float = 0.9
    #: maximum exposure of a joint owner, since an application that runs most of the time covers every pattern
    max_joint_exposure: float = 0.75


@dataclass(frozen=True, slots=True)
class Runs:
    """Logged runs (n) in a time window: index of the application, and start and end in steps of the window."""

    application: Ints
    started: Reals
    ended: Reals


@dataclass(frozen=True, slots=True)
class Cooccurrence:
    """The application with the runs that coincide best with a pattern.

    Attributes
    ----------
    outcome : str
        `attributed` (it is the application's pattern), `ambiguous`, or `unattributed` (no logged application's).
    application : int
        Index of the application; -1 if none covers enough appearances.
    covered_count : int
        Number of appearances within one of its runs.
    run_count, covering_run_count : int
        Number of its runs in the window, and of those with an appearance.
    p_value : float
        Probability of equal or better coverage by chance, corrected for the number of applications.

    """

    outcome: str
    application: int
    covered_count: int
    run_count: int
    covering_run_count: int
    p_value: float


_NO_CANDIDATE = Cooccurrence("unattributed", -1, 0, 0, 0, float("nan"))


def compute_cooccurrence(
    appearances: tuple[Reals, Reals],
    runs: Runs,
    step_count: int,
    interval_s: float,
    params: CooccurrenceParams | None = None,
    *,
    is_train: bool = False,
    spectra: PresenceSpectra | None = None,
) -> Cooccurrence:
    """Find the application with the runs that most improbably cover the appearances of a pattern by chance.

    Parameters
    ----------
    appearances : (Reals, Reals), shape (k,) each
        Start and end of each appearance, in steps.
    runs : Runs
        All logged runs of the window.
    step_count : int
        Length of the window in steps.
    interval_s : float
        Length of a step [s].
    params : CooccurrenceParams, optional
        Thresholds.
    is_train : bool
        Whether all appearances certainly have one origin. Otherwise they may come from several applications that move
        equal volumes.
    spectra : PresenceSpectra, optional
        Cached spectra of these runs, for repeated calls.

    Returns
    -------
    Cooccurrence
        The best application and the outcome.

    Notes
    -----
    The p-value is valid asymptotically for many independent appearances. A single train within a single run counts as
    about one.

    """
    params = params or CooccurrenceParams()
    started, ended = appearances
    slack = params.slack_s / interval_s
    is_in, is_covered = find_coverage(appearances, runs, slack)
    application_count = len(is_covered)
    covered_count = is_covered.sum(axis=1)
    candidates = np.flatnonzero(covered_count >= params.min_coverage_ratio * max(len(started), 1))
    if not len(candidates):
        return _NO_CANDIDATE
    spectra = spectra or PresenceSpectra(runs, step_count, slack)
    appearance_spectrum = spectra.of_appearances((started + ended) / 2)
    results = [
        _rotation_p_value(
            spectra.of_application(application), appearance_spectrum, int(covered_count[application]), len(started)
        )
        for application in candidates.tolist()
    ]
    p_values, exposures = np.array(results).T
    best = int(candidates[np.lexsort((-covered_count[candidates], p_values))[0]])
    is_best = runs.application == best
    min_p = float(p_values.min())
    corrected_p = min(1.0, min_p * application_count)
    has_high_coverage = np.array(
        [covered_count[application] >= params.high_coverage_ratio * len(started) for application in candidates]
    )
    may_own = corrected_p < params.max_unsure_p or bool((has_high_coverage & (p_values < params.max_single_p)).any())
    joint_candidates = is_covered[candidates[exposures <= params.max_joint_exposure]]
    may_own |= not is_train and _joint_coverage(joint_candidates, params.joint_count) >= params.joint_coverage_ratio
    outcome = "attributed" if corrected_p < params.max_named_p else "ambiguous" if may_own else "unattributed"
    return Cooccurrence(
        outcome,
        best,
        int(covered_count[best]),
        int(is_best.sum()),
        int(is_in[is_best].any(axis=1).sum()),
        corrected_p,
    )


def find_coverage(appearances: tuple[Reals, Reals], runs: Runs, slack: float) -> tuple[Bools, Bools]:
    """Determine which runs, and which applications, cover each appearance.

    Parameters
    ----------
    appearances : (Reals, Reals), shape (k,) each
        Start and end of each appearance, in steps.
    runs : Runs
        n runs of m applications.
    slack : float
        Tolerance of a run's start and end, in steps.

    Returns
    -------
    (Bools, Bools), shapes (n, k) and (m, k)
        Coverage by run and by application.

    """
    started, ended = appearances
    is_in: Bools = (runs.started[:, None] <= started + slack) & (runs.ended[:, None] >= ended - slack)
    is_covered = np.zeros((int(runs.application.max(initial=-1)) + 1, len(started)), np.bool_)
    run, appearance = np.nonzero(is_in)
    is_covered[runs.application[run], appearance] = True
    return is_in, is_covered


def find_start_aligned(
    started: Reals, runs: Runs, interval_s: float, params: CooccurrenceParams | None = None
) -> tuple[Cooccurrence, Bools] | None:
    """Find the application with an appearance at a fixed delay after the start of its runs.

    Parameters
    ----------
    started : Reals, shape (k,)
        Start of each appearance, in steps.
    runs : Runs
        All logged runs.
    interval_s : float
        Length of a step [s].
    params : CooccurrenceParams, optional
        Thresholds; only `slack_s` and `max_named_p` are used.

    Returns
    -------
    (Cooccurrence, Bools of shape (k,)) or None
        The most significant application and its appearances; None if none is significant.

    Notes
    -----
    By chance, an appearance lies anywhere within a run. The p-value is a binomial tail of the number of runs with an
    appearance in one short range of delays, corrected for the delays and applications tested.

    """
    params = params or CooccurrenceParams()
    slack = params.slack_s / interval_s
    run, appearance = np.nonzero((runs.started[:, None] <= started) & (runs.ended[:, None] >= started))
    best: tuple[float, int, Reals] | None = None
    applications = np.unique(runs.application[run])
    for application in applications.tolist():
        is_own = runs.application[run] == application
        delay = started[appearance[is_own]] - runs.started[run[is_own]]
        p_value, delay_low = _delay_p_value(delay, run[is_own], runs.ended - runs.started, slack)
        if p_value * len(applications) < (best[0] if best else params.max_named_p):
            is_aligned = (delay >= delay_low) & (delay <= delay_low + slack)
            best = p_value * len(applications), application, np.unique(appearance[is_own][is_aligned])
    if best is None:
        return None
    p_value, application, aligned = best
    is_aligned = np.zeros(len(started), np.bool_)
    is_aligned[aligned] = True
    run_count = int((runs.application == application).sum())
    return Cooccurrence("attributed", application, len(aligned), run_count, len(aligned), p_value), is_aligned


#: minimum number of runs with an appearance at one delay
_MIN_ALIGNED_RUNS = 3


def _delay_p_value(delay: Reals, run: Ints, run_duration: Reals, window: float) -> tuple[float, float]:
    """Find the window of delays with appearances of the most runs; return its p-value and lower bound."""
    order = np.argsort(delay, kind="stable")
    delay, run = delay[order], run[order]
    after = np.searchsorted(delay, delay + window, side="right")
    low = int((after - np.arange(len(delay))).argmax())
    count, runs = len(np.unique(run[low : after[low]])), np.unique(run)
    if count < _MIN_ALIGNED_RUNS:
        return 1.0, 0.0
    # in a run shorter than the window, an appearance lies in the window with certainty
    chance = np.minimum(window / np.maximum(run_duration[runs], 1e-9), 1.0) * np.bincount(run)[runs]
    mean_chance = float(np.minimum(chance, 1.0).mean())
    tail = betainc(count, len(runs) - count + 1.0, mean_chance) if mean_chance < 1.0 else 1.0
    return float(tail) / max(window / float(run_duration[runs].max()), 1e-9), float(delay[low])


def _joint_coverage(is_covered: Bools, application_count: int) -> float:
    """Fraction of appearances covered by a greedy choice of applications (rows of `is_covered`)."""
    is_uncovered = np.ones(is_covered.shape[1], np.bool_)
    for _ in range(min(application_count, len(is_covered))):
        is_uncovered &= ~is_covered[int((is_covered & is_uncovered).sum(axis=1).argmax())]
    return 1.0 - float(is_uncovered.mean())


#: maximum number of bins of the window, and thus of tested rotations
_MAX_BINS = 1 << 15


class PresenceSpectra:
    """Cached power spectra of the presence of each application in a window, for the variance under rotation.

    Parameters
    ----------
    runs : Runs
        All logged runs of the window.
    step_count : int
        Length of the window in steps.
    slack : float
        Extension of each run at both ends, in steps.

    """

    def __init__(self, runs: Runs, step_count: int, slack: float) -> None:
        """Choose the bins; spectra are computed on first use."""
        self.runs, self._slack = runs, slack
        self._bin_count = min(_MAX_BINS, max(step_count, 1))
        self._bins_per_step = self._bin_count / max(step_count, 1)
        self._cache: dict[int, tuple[float, Reals]] = {}

    def of_application(self, application: int) -> tuple[float, Reals]:
        """Exposure of an application (fraction of time covered by its runs), and its spectrum."""
        if application not in self._cache:
            is_own = self.runs.application == application
            first, last = self.runs.started[is_own] - self._slack, self.runs.ended[is_own] + self._slack + 1
            begin, end = (
                (steps * self._bins_per_step).astype(np.int64).clip(0, self._bin_count) for steps in (first, last)
            )
            count = self._bin_count + 1
            edges = np.bincount(begin, minlength=count) - np.bincount(end, minlength=count)
            is_present = (np.cumsum(edges)[:-1] > 0).astype(np.float64)
            self._cache[application] = float(is_present.mean()), _power_spectrum(is_present)
        return self._cache[application]

    def of_appearances(self, centers: Reals) -> Reals:
        """Spectrum of appearances with the given centers, in steps."""
        bins = (centers * self._bins_per_step).astype(np.int64).clip(0, self._bin_count - 1)
        return _power_spectrum(np.bincount(bins, minlength=self._bin_count) / len(centers))


def _power_spectrum(values: Reals) -> Reals:
    """Power at positive frequencies, scaled so that the dot product of two spectra is a variance.

    It is the variance of the signals' circular cross-correlation over all rotations (Parseval's theorem).
    """
    power: Reals = np.abs(np.fft.rfft(values)[1:]) ** 2 / len(values)
    # every frequency except the Nyquist frequency of an even length also stands for its negative
    power[: (len(values) - 1) // 2] *= np.sqrt(2.0)
    return power


def _rotation_p_value(
    presence: tuple[float, Reals], appearance_spectrum: Reals, covered_count: int, occurrence_count: int
) -> tuple[float, float]:
    """Compute the p-value of a number of covered appearances under random rotation, and the exposure."""
    exposure, spectrum = presence
    if exposure >= 1.0 - 1e-12:
        return 1.0, exposure
    variance = float(spectrum @ appearance_spectrum)
    effective_count = min(exposure * (1.0 - exposure) / max(variance, 1e-12), float(occurrence_count))
    ratio = covered_count / occurrence_count
    tail = betainc(max(ratio * effective_count, 1e-9), (1.0 - ratio) * effective_count + 1.0, exposure)
    return float(tail), exposure
