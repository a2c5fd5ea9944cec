"""Recognized patterns: the same appearances, or the same looks where times do not overlap; none is two."""

from __future__ import annotations

import numpy as np

from iosig.transforms.unnamed_patterns.recognized import Known, recognized


def known(first: float, count: int, volume: float = 1e10, every: float = 1800.0) -> Known:
    return Known(np.linspace(first, first + every * (count - 1), count), volume, 60.0)


def test_a_window_that_moved_on_has_the_same_patterns() -> None:
    before = [known(0, 100), known(500, 100, 3e10)]
    now = [known(500 + 48 * 1800, 100, 3.3e10), known(48 * 1800, 100), known(77, 40, 5e11)]
    assert recognized(now, before) == [1, 0, -1]
    assert recognized([], before) == []
    assert recognized(now, []) == [-1, -1, -1]


def test_what_did_not_appear_together_is_another_one_however_alike() -> None:
    assert recognized([known(900, 50)], [known(0, 50)]) == [-1]


def test_after_a_pause_looks_decide() -> None:
    later = 500 * 1800.0
    assert recognized([known(later, 10, 1.05e10), known(later + 60, 10, 2e10)], [known(0, 10)]) == [0, -1]


def test_one_of_before_is_one_of_now() -> None:
    assert recognized([known(0, 10), known(10, 20)], [known(0, 20)]) == [-1, 0]
