"""Combine the p-values of the comb test and of the test of smoothed phases, for signals with few cycles.

A comb consists of spectral lines at the multiples of one frequency (`comb`). Smoothed phases are phases of running
means (`smoothed`). The comb test requires no phases, and the test of smoothed phases requires no fixed rhythm.

Noise rarely makes both tests nearly significant at once, but a rhythm does. So the combined p-value may be significant
although neither test is significant alone. One period must be a whole multiple of the other, because a comb may be a
multiple of the true frequency, and smoothing may merge several bursts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Reals


@dataclass(frozen=True, slots=True)
class JointTestParams:
    """Parameters of the joint test (ours, not from a paper).

    They were tuned on 89 memoryless generators (4 lengths, 300 draws, seeds 31 and 32; `iosig study periods --part
    memoryless`) and on simulated rhythms (seeds 101 to 104). On an unused seed (777), the false-alarm rate is 0.28 % on
    average, and 8 cycles in noise are found in 79 % of cases rather than in 67 %.

    Attributes
    ----------
    comb_log_p_correction : float
        Term added to the log p-value of combs with few cycles in whole signals. The comb test's p-value is 4.5 times
        too large there: the tried sums have bins in common, and the bound allows for broad maxima.
    max_log_p : float
        Maximum of both log p-values for combs and smoothed phases to be combined.
    trials : float
        Effective number of tests.
    max_ratio_error : float
        Relative error up to which one period counts as a multiple of the other.
    """

    comb_log_p_correction: float = -1.5
    max_log_p: float = -1.0
    trials: float = 0.25
    max_ratio_error: float = 0.1


JOINT_TEST = JointTestParams()
_LOG_TRIALS = float(np.log(JOINT_TEST.trials))


@dataclass(frozen=True, slots=True)
class JointEvidence:
    """Joint evidence of combs and smoothed phases (k).

    Attributes
    ----------
    log_p : (k,)
        Combined log p-value. 0 if one of the two is not nearly significant, or if the periods are incommensurate and
        the comb is less significant than the smoothed phases.
    is_commensurate : (k,)
        Whether one period is a whole multiple of the other.
    is_multiple : (k,)
        Whether the smoothed period spans several cycles of the comb.
    """

    log_p: Reals
    is_commensurate: Bools
    is_multiple: Bools


def combine_evidence(comb_log_p: Reals, smoothed_log_p: Reals, cycle_ratio: Reals) -> JointEvidence:
    """Combine the p-values of combs and of smoothed phases.

    Parameters
    ----------
    comb_log_p, smoothed_log_p : (k,)
        Log p-values.
    cycle_ratio : (k,)
        Period of the smoothed phases in cycles of the comb; NaN where either is unknown.

    Returns
    -------
    JointEvidence
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(cycle_ratio, 1.0 / cycle_ratio)
        is_whole = np.abs(ratio / np.round(ratio) - 1.0) <= JOINT_TEST.max_ratio_error
    is_commensurate = is_whole & (smoothed_log_p <= JOINT_TEST.max_log_p)
    is_tested = (
        (comb_log_p <= JOINT_TEST.max_log_p)
        & (smoothed_log_p <= JOINT_TEST.max_log_p)
        & (is_commensurate | (comb_log_p <= smoothed_log_p))
    )
    log_p = np.where(is_tested, compute_log_p_of_product(comb_log_p + smoothed_log_p) + _LOG_TRIALS, 0.0)
    return JointEvidence(log_p, is_commensurate, is_commensurate & (cycle_ratio > 1.0 + JOINT_TEST.max_ratio_error))


def compute_log_p_of_product(log_product: Reals) -> Reals:
    """Compute the log p-value of the product of two independent p-values (Fisher's method for two tests).

    Parameters
    ----------
    log_product : (k,)
        Logarithm of the product.

    Returns
    -------
    (k,)
        For a product p, the logarithm of ``p (1 - log p)``.

    References
    ----------
    R. A. Fisher, "Statistical Methods for Research Workers", 4th ed., 1932, section 21.1
    """
    log_p: Reals = log_product + np.log1p(-log_product)
    return log_p
