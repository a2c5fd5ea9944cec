"""Parameters of the null-model method: the user's settings, and the constants of the search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchParams:
    """Constants of the search (ours), set on simulated signals (`iosig study periods`).

    Attributes
    ----------
    test_count : int
        Gap and comb test share the significance level equally.
    max_gap_p : float
        P-value up to which phases are regular by themselves.
    log_p_margin : float
        Tolerance of log p-values that are compared with a limit.
    max_period_error : float
        Relative error up to which one period counts as a multiple of another.
    max_short_phase_samples : float
        Phases of at most this length may be noise.
    max_gap_ratio : float
        Gaps up to this fraction of a cycle are inside a phase.
    max_comb_cv : float
        Coefficient of variation of onset intervals up to which a comb is visible.
    max_drift_cycles : float
        Phases and comb are in step if they drift apart by at most this many cycles.
    min_cycle_ratio : float
        Phases produce the comb if their number is at least this fraction of the comb's cycles.
    min_samples : int
        Minimum number of measured samples.
    max_missing_ratio : float
        Maximum fraction of unmeasured samples between the first and the last activity.
    min_window_samples : int
        Minimum length of a window.
    whole_weight : float
        Fraction of the significance level for whole signals if windows are searched.
    settled_probability, settled_volume_ratio : float
        Windows are not searched further once a result is this significant and covers this fraction of the volume. Of
        several significant windows, those with less than this fraction of the largest volume are dropped.
    min_cycle_volume_ratio, max_counted_cycles : float
        A cycle moves at least this fraction of the whole volume, counted up to this many cycles.
    min_regularity : float
        Minimum correlation of the signal with its mean cycle; below it a rhythm may exist, but moves next to nothing.
    """

    test_count: int = 2
    max_gap_p: float = 0.01
    log_p_margin: float = 1e-3
    max_period_error: float = 0.1
    max_short_phase_samples: float = 2.0
    max_gap_ratio: float = 0.25
    max_comb_cv: float = 0.1
    max_drift_cycles: float = 0.15
    min_cycle_ratio: float = 0.8
    min_samples: int = 16
    max_missing_ratio: float = 0.5
    min_window_samples: int = 32
    whole_weight: float = 0.8
    settled_probability: float = 1e-6
    settled_volume_ratio: float = 0.5
    min_cycle_volume_ratio: float = 1e-6
    max_counted_cycles: float = 1e5
    min_regularity: float = 0.1


SEARCH = SearchParams()


@dataclass(frozen=True, slots=True)
class NullModelParams:
    """User settings of the method.

    Attributes
    ----------
    false_alarm_probability : float
        Significance level: probability that a memoryless signal is called periodic. At 0.01, 0.28 % of the signals of
        89 memoryless generators are (5 lengths, 400 draws, seed 777).
    window_levels : int
        Number of times that windows are halved in the search for a temporary period; 0 tests whole signals only.
    """

    false_alarm_probability: float = 0.01
    window_levels: int = 6
