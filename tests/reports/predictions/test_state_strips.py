"""Shared parts of pictures over time: a clock for any span, drawable times, and strips that keep long states."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iosig.reports import panels
from iosig.reports.predictions import state_strips
from iosig.reports.predictions.state_strips import RunClock, mask_implausible_times, state_color


def test_strip_of_many_states_keeps_the_longest_state_per_column() -> None:
    names = ["period_1", "gap"] * 5000
    edges = np.concatenate([[0.0], np.cumsum(np.tile([0.9, 0.1], 5000))])
    owners, columns = state_strips._in_columns(edges, names)
    assert set(owners) == {"period_1"}
    assert len(columns) == len(owners) + 1 == panels.PIXEL_COLUMNS + 1


def test_clock_and_state_colors_are_consistent() -> None:
    late = RunClock.for_span(1.6e9, 1.6e9 + 7200, has_utc_clock=True)
    assert late.label == "time after 2020-09-13 12:26:40 UTC [min]"
    assert late.at(1.6e9 + 600).tolist() == 10.0
    assert RunClock.for_span(1.0, 8.0).label == "time [s]"
    assert state_color("period_1") != state_color("period_2") != state_color("gap")
    assert state_color("period_x") == state_color("aperiodic")


@pytest.mark.parametrize("span", [5e-324, 1e-300, 1e-15, 1e15])
@pytest.mark.parametrize("first", [0.0, 40 * 5e-324, 1.0, -1e15])
def test_any_span_has_a_clock(span: float, first: float) -> None:
    clock = RunClock.for_span(first, first + span)
    assert np.isfinite(clock.at([first, first + span])).all()
    assert clock.label.startswith("time ")


def test_times_beyond_the_clock_range_are_nan() -> None:
    found = mask_implausible_times([1e16, -math.inf, math.nan, 5e-324, -1e-16, 1e-15, -8.0, 1e15])
    assert found.tolist() == pytest.approx([math.nan] * 3 + [0.0, 0.0, 1e-15, -8.0, 1e15], abs=0, nan_ok=True)
