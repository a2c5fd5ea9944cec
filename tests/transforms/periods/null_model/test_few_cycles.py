"""Joint evidence: Fisher's combined p-value, used only for commensurate periods."""

from __future__ import annotations

import numpy as np

from iosig.transforms.periods.null_model import few_cycles
from iosig.transforms.periods.null_model.few_cycles import combine_evidence, compute_log_p_of_product

NAN = float("nan")


def test_product_of_uniform_p_values_has_its_p_value() -> None:
    drawn = np.log(np.random.default_rng(1).random((2, 200_000))).sum(axis=0)
    for level in (0.3, 0.05, 0.01):
        held = (compute_log_p_of_product(drawn) <= np.log(level)).mean()
        assert abs(held - level) < 4 * np.sqrt(level / 200_000), level


def test_two_nearly_significant_results_are_jointly_significant() -> None:
    result = combine_evidence(np.array([-4.0]), np.array([-4.0]), np.array([1.02]))
    assert result.log_p[0] < np.log(0.01)
    assert result.is_commensurate[0]
    assert not result.is_multiple[0]


def test_commensurate_periods_are_combined() -> None:
    result = combine_evidence(np.full(6, -3.0), np.full(6, -4.0), np.array([1.0, 2.1, 3.1, 0.5, 1.4, NAN]))
    assert result.is_commensurate.tolist() == [True, True, True, True, False, False]
    assert result.is_multiple.tolist() == [False, True, True, False, False, False]
    assert (result.log_p < 0).tolist() == result.is_commensurate.tolist()


def test_incommensurate_comb_must_be_more_significant() -> None:
    result = combine_evidence(np.array([-4.0, -3.0]), np.array([-3.0, -4.0]), np.array([1.4, 1.4]))
    assert (result.log_p < 0).tolist() == [True, False]


def test_both_results_must_be_nearly_significant() -> None:
    result = combine_evidence(np.array([-20.0, -0.5]), np.array([-0.5, -20.0]), np.array([1.0, 1.0]))
    assert not result.log_p.any()
    assert few_cycles.JOINT_TEST.max_log_p < -0.5
