"""Matching of patterns between windows: by common appearances, else by volume and duration; one to one."""

from __future__ import annotations

import numpy as np

from iosig.transforms.unattributed_patterns.matching import PatternSummary, match_patterns


def summary(first: float, count: int, volume: float = 1e10, every: float = 1800.0) -> PatternSummary:
    return PatternSummary(np.linspace(first, first + every * (count - 1), count), volume, 60.0)


def test_patterns_match_after_the_window_moved() -> None:
    previous = [summary(0, 100), summary(500, 100, 3e10)]
    current = [summary(500 + 48 * 1800, 100, 3.3e10), summary(48 * 1800, 100), summary(77, 40, 5e11)]
    assert match_patterns(current, previous) == [1, 0, -1]
    assert match_patterns([], previous) == []
    assert match_patterns(current, []) == [-1, -1, -1]


def test_similar_patterns_without_common_appearances_do_not_match() -> None:
    assert match_patterns([summary(900, 50)], [summary(0, 50)]) == [-1]


def test_volume_decides_where_times_do_not_overlap() -> None:
    later = 500 * 1800.0
    assert match_patterns([summary(later, 10, 1.05e10), summary(later + 60, 10, 2e10)], [summary(0, 10)]) == [0, -1]


def test_each_pattern_matches_at_most_once() -> None:
    assert match_patterns([summary(0, 10), summary(10, 20)], [summary(0, 20)]) == [-1, 0]
