"""What numbers in evaluations, parameters and rows may be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from transforms.predictions.numbers import LARGEST, finite_or_none, is_count, is_finite


@pytest.mark.parametrize("value", [0, -1, 2.5, LARGEST, -LARGEST], ids=str)
def test_numbers_are_finite(value: float) -> None:
    assert is_finite(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, True, None, "1", [1]], ids=lambda value: str(value)[:9])
def test_anything_else_is_not(value: object) -> None:
    assert not is_finite(value)


@pytest.mark.parametrize(("value", "expected"), [(0, True), (2**70, True), (-1, False), (1.0, False), (True, False)])
def test_counts(value: object, expected: bool) -> None:
    assert is_count(value) is expected


def test_what_is_not_finite_is_none() -> None:
    assert [finite_or_none(each) for each in (math.nan, math.inf, np.float64(1.5))] == [None, None, 1.5]
    assert type(finite_or_none(np.float64(1.5))) is float
