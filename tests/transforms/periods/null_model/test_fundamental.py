"""Fundamentals are refined to fractions of a bin, and weak lines of few cycles can lower them."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.periods.null_model.comb import Combs
from iosig.transforms.periods.null_model.fundamental import refine_fundamental
from tests.transforms.white_signals import centerd, generator


def test_multiple_is_lowered_to_the_fundamental() -> None:
    place = np.arange(4000)
    signals = centerd((place % 100 < 3) + 0.1 * generator().standard_normal((4, 4000)))
    # 1 / 2 and 3 / 4: only every second or fourth line of such a comb is present.
    for times in (2, 3, 5, 7, 12, 0.5, 0.75):
        combs = Combs(np.zeros(4), np.full(4, times / 100), np.full(4, 8))
        np.testing.assert_allclose(1 / refine_fundamental(signals, combs), 100, rtol=2e-3)


@pytest.mark.parametrize(("cycles", "noise", "share"), [(5, 0.3, 0.9), (6, 0.3, 0.6), (6, 1.0, 0.5)])
def test_weak_lines_lower_a_comb_of_few_cycles(cycles: int, noise: float, share: float) -> None:
    place = np.arange(90 * cycles)
    signals = centerd((place % 90 < 14) + noise * generator().standard_normal((200, len(place))))
    combs = Combs(np.zeros(200), np.full(200, 2 / 90), np.full(200, 2))
    period = 1 / refine_fundamental(signals, combs)
    assert (np.abs(period / 90 - 1) < 0.1).mean() > share


def test_comb_without_lower_lines_keeps_its_frequency() -> None:
    place = np.arange(720)
    signals = centerd((place % 90 < 14) + 1.0 * generator().standard_normal((400, 720)))
    combs = Combs(np.zeros(400), np.full(400, 1 / 90), np.full(400, 4))
    period = 1 / refine_fundamental(signals, combs)
    assert (np.abs(period / 90 - 1) < 0.1).mean() > 0.95
