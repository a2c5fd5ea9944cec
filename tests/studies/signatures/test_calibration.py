"""Calibration recovers the weights of expected correlation, and cross-validation excludes the predicted family."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.studies.signatures.calibration import cross_predict, fit_weights
from iosig.transforms.signatures.expected_correlation import FEATURES


def drawn(seed: int, count: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    evidence = rng.random((count, len(FEATURES)))
    return evidence, 0.2 + 0.6 * evidence[:, FEATURES.index("agreement")] + rng.normal(0, 0.02, count)


def test_fit_recovers_the_weights() -> None:
    found = fit_weights(*drawn(1))
    expected = np.zeros(1 + len(FEATURES))
    expected[0], expected[1 + FEATURES.index("agreement")] = 0.2, 0.6
    assert found == pytest.approx(expected, abs=0.02)


def test_positive_features_have_no_negative_weight() -> None:
    evidence, told = drawn(2)
    found = fit_weights(evidence, 1.0 - told)
    assert found[1 + FEATURES.index("agreement")] >= 0


def test_family_is_predicted_from_the_other_families() -> None:
    evidence, told = drawn(3)
    family = np.where(np.arange(len(told)) < 2000, "one", "other")
    odd = np.where(family == "one", told, 0.0)
    found = cross_predict(evidence, odd, family.tolist())
    assert found[family == "one"].max() < 0.1, "it knows of the other family only, where all is 0"
    assert np.abs(found[family == "other"] - told[family == "other"]).mean() < 0.05
    assert (cross_predict(evidence, told, ["one"] * len(told)) == 0).all()
