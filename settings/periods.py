"""Define the settings of period detection."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from iosig.settings.values import Section

PeriodMethod = Literal["null_tested", "dft", "autocorrelation", "merged", "autoperiod"]
OutlierMethod = Literal["z_score", "dbscan", "isolation_forest", "local_outlier_factor", "find_peaks"]


class PeriodSettings(Section):
    """Detection of periods; the default thresholds of FTIO's methods are from its paper (IPDPS'24, section II)."""

    methods: list[PeriodMethod] = Field(
        ["null_tested", "dft", "autocorrelation", "merged", "autoperiod"],
        description="published methods for traces and series; null_tested is the default",
    )
    server_methods: list[PeriodMethod] = Field(
        ["null_tested"], description="published methods for runs with bytes counted by servers"
    )
    window_levels: int = Field(
        6, ge=0, le=12, description="null_tested: number of times that the signal is halved to find temporary periods"
    )
    max_missing_ratio: float = Field(
        0.5, ge=0, le=1, description="maximum fraction of gaps; a signal with more is not analyzed"
    )
    sampling: Literal["instants", "bins"] = Field(
        "instants",
        description="dft, autocorrelation, merged: samples of traced requests: rates at instants, as in FTIO's paper, "
        "or mean rates of steps (bins)",
    )
    false_alarm_level: float = Field(
        0.01,
        gt=0,
        lt=1,
        description="null_tested: false-alarm probability under the noise model, below which a period is reported",
    )
    outliers: OutlierMethod = Field(
        "z_score",
        description="dft, merged: test that finds outlying frequencies in the spectrum; FTIO's paper names all five "
        "(section II-B2), and uses the Z-score",
    )
    outlier_merge: Literal["none", "agreement", "union"] = Field(
        "none",
        description="dft, merged: merge of another test of outliers with the Z-score: that test alone (none), "
        "frequencies that are outliers for both (agreement), or for either (union); the paper has no rule for a merge",
    )
    z_score: float = Field(3.0, gt=0, description="dft: minimum Z-score of a candidate frequency")
    tolerance: float = Field(
        0.8, gt=0, le=1, description="dft: minimum Z-score of a candidate, relative to the highest Z-score"
    )
    autocorrelation_height: float = Field(0.15, ge=0, le=1, description="autocorrelation: minimum height of a peak")
    autoperiod_sampling: Literal["intervals", "bins"] = Field(
        "intervals",
        description="autoperiod: samples of series and polls: the intervals as measured, at uneven times, for which "
        "PEARC'18 chose the Lomb-Scargle periodogram (section 4.2), or mean rates of even steps (bins)",
    )
    autoperiod_significance: Literal["exponential", "monte_carlo", "permutation_test"] = Field(
        "exponential",
        description="autoperiod: threshold of a peak of the periodogram: PEARC'18's estimate (exponential), or that "
        "of 100 random permutations of the samples: the rank of SDM'05 (monte_carlo), which white noise exceeds in "
        "2 of 101 cases, or the rank for which 1 - confidence is the limit (permutation_test, ours)",
    )
    autoperiod_confidence: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="autoperiod: confidence required of a peak of the periodogram; if not given, the published one: "
        "0.9 for exponential (SUPReMM), 0.99 for the others (SDM'05)",
    )
