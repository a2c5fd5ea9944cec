"""Patterns with and without a period."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from iosig.transforms.unattributed_patterns.patterns import Pattern


def test_pattern_with_period_is_a_train() -> None:
    at = np.array([10.0, 20.0, 30.0])
    plain = Pattern(at, at + 2, np.ones(3), np.zeros(3), np.array([0.5, 0.5]), 1)
    assert not plain.is_train
    assert replace(plain, period=10.0, period_p_value=1e-3).is_train
