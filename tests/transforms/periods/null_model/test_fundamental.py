"""Combs are told at their lowest line, to a part of a bin; of few cycles weak lines tell the lowest, too."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.periods.null_model.comb import Combs
from iosig.transforms.periods.null_model.fundamental import refine_fundamental
from tests.transforms.white_signals import centred, generator


def test_a_line_that_is_a_multiple_is_lowered_to_its_fundamental() -> None:
    place = np.arange(4000)
    signals = centred((place % 100 < 3) + 0.1 * generator().standard_normal((4, 4000)))
    # 1 / 2 and 3 / 4: of the lines of such a comb only every second or fourth one is there
    for times in (2, 3, 5, 7, 12, 0.5, 0.75):
        told = Combs(np.zeros(4), np.full(4, times / 100), np.full(4, 8))
        np.testing.assert_allclose(1 / refine_fundamental(signals, told), 100, rtol=2e-3)


@pytest.mark.parametrize(("cycles", "noise", "share"), [(5, 0.3, 0.9), (6, 0.3, 0.6), (6, 1.0, 0.5)])
def test_weak_lines_of_few_cycles_lower_a_comb(cycles: int, noise: float, share: float) -> None:
    place = np.arange(90 * cycles)
    signals = centred((place % 90 < 14) + noise * generator().standard_normal((200, len(place))))
    told = Combs(np.zeros(200), np.full(200, 2 / 90), np.full(200, 2))
    period = 1 / refine_fundamental(signals, told)
    assert (np.abs(period / 90 - 1) < 0.1).mean() > share


def test_what_has_no_lower_lines_stays() -> None:
    place = np.arange(720)
    signals = centred((place % 90 < 14) + 1.0 * generator().standard_normal((400, 720)))
    told = Combs(np.zeros(400), np.full(400, 1 / 90), np.full(400, 4))
    period = 1 / refine_fundamental(signals, told)
    assert (np.abs(period / 90 - 1) < 0.1).mean() > 0.95
