"""Define the parameters of the null-model method: the user's settings, and the constants of the search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchParams:
    """Constants of the search (ours), tuned on simulated signals (`iosig study periods`).

    Attributes
    ----------
    test_count : int
        Number of tests (gap and comb) that share the significance level equally.
    max_gap_p : float
        P-value up to which phases alone count as regular.
    log_p_margin : float
        Tolerance of log p-values that are compared with a limit.
    max_period_error : float
        Relative error up to which one period counts as a multiple of another.
    max_short_phase_samples : float
        Maximum length of phases that may be noise.
    max_gap_ratio : float
        Maximum gap inside a phase, as a fraction of a cycle.
    max_comb_cv : float
        Coefficient of variation of onset intervals up to which a comb is visible.
    max_drift_cycles : float
        Maximum drift between phases and comb that are in step, in cycles.
    min_cycle_ratio : float
        Minimum number of phases per cycle of the comb for the phases to be its cause.
    min_samples : int
        Minimum number of measured samples.
    max_missing_ratio : float
        Maximum fraction of unmeasured samples between the first and the last activity.
    min_window_samples : int
        Minimum length of a window.
    whole_weight : float
        Fraction of the significance level for whole signals if windows are searched.
    settled_probability, settled_volume_ratio : float
        Maximum p-value, and minimum fraction of the volume, of a result that ends the search of windows. Significant
        windows with a smaller fraction of the largest window's volume are dropped.
    min_cycle_volume_ratio, max_counted_cycles : float
        Minimum fraction of the whole volume per cycle, and maximum number of cycles to count for that.
    min_regularity : float
        Minimum correlation of the signal with its mean cycle; below it, a rhythm may exist, but moves hardly any bytes.
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
        89 memoryless generators are called periodic (5 lengths, 400 draws, seed 777).
    window_levels : int
        Number of halvings of windows in the search for a temporary period; with 0, only whole signals are tested.
    """

    false_alarm_probability: float = 0.01
    window_levels: int = 6
