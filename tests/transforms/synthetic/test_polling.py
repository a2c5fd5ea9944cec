"""How traffic is polled: no byte lost in the split, and faults that are what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.budget import examples
from transforms.synthetic.polling import Faults, arrivals, perfect, split

NONE = Faults(lost_ratio=0, late_ratio=0, repeated_ratio=0, block_s=0, controller_outage_s=(0, 0), outage_s=(0, 0))
DAY = 8640
STEP = 10.0


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=80), st.integers(1, 12), st.integers(0, 5))
def test_controllers_count_every_byte_once(volumes: list[float], count: int, seed: int) -> None:
    total = np.array(volumes)
    found = split(total, count, 2.0, np.random.default_rng(seed))
    assert found.shape == (len(volumes), count)
    assert (found >= 0).all()
    assert (found == np.floor(found)).all(), "counters count whole bytes"
    # at no time is a controller's counter a whole byte away from the truth
    lag = np.cumsum(total) - np.cumsum(found.sum(axis=1))
    assert (lag >= -1e-3 * count).all()
    assert (lag <= count + 1e-3).all()


def test_controllers_share_unevenly_but_alike_over_time() -> None:
    found = split(np.full(5000, 8e9), 8, 2.0, np.random.default_rng(3))
    variation = found.std(axis=1) / found.mean(axis=1)
    assert 0.2 < np.median(variation) < 1.0
    shares = found.sum(axis=0) / found.sum()
    assert (abs(shares - 1 / 8) < 0.08).all()


def test_without_faults_polls_come_complete_and_in_order() -> None:
    found, ideal = arrivals(DAY, 3, STEP, NONE, np.random.default_rng(1)), perfect(DAY, 3)
    np.testing.assert_array_equal(found.tick, ideal.tick)
    np.testing.assert_array_equal(found.controller, ideal.controller)
    assert ideal.tick[:4].tolist() == [0, 0, 0, 1]


def test_an_odd_day_has_an_outage_of_all_and_an_even_one_of_a_controller() -> None:
    faults = replace(NONE, controller_outage_s=(2000, 2000), outage_s=(300, 300))
    found = arrivals(2 * DAY, 3, STEP, faults, np.random.default_rng(1))
    counts = np.bincount(found.tick, minlength=2 * DAY)
    assert (np.flatnonzero(counts == 2) < DAY).all()
    assert (counts == 2).sum() == 200
    silent = np.flatnonzero(counts == 0)
    assert (silent >= DAY).all()
    assert len(silent) == 30
    assert silent.max() - silent.min() == 29, "it is one piece"


def test_lost_and_repeated_polls_are_as_many_as_asked_for() -> None:
    lost = arrivals(DAY, 4, STEP, replace(NONE, lost_ratio=0.1), np.random.default_rng(1))
    assert len(lost.tick) / (4 * DAY) == pytest.approx(0.9, abs=0.01)
    twice = arrivals(DAY, 4, STEP, replace(NONE, repeated_ratio=0.1), np.random.default_rng(1))
    places, times = np.unique(twice.tick * 4 + twice.controller, return_counts=True)
    assert len(places) == 4 * DAY
    assert (times == 2).mean() == pytest.approx(0.1, abs=0.01)


def test_late_polls_arrive_after_later_ones_but_within_their_time() -> None:
    late = arrivals(DAY, 4, STEP, replace(NONE, late_ratio=0.01, late_s=100.0), np.random.default_rng(1))
    assert len(late.tick) == 4 * DAY
    behind = np.maximum.accumulate(late.tick) - late.tick
    assert 0.005 < (behind > 0).mean() < 0.015
    assert behind.max() <= 10


def test_a_block_is_held_back_and_comes_at_once() -> None:
    held = arrivals(DAY, 2, STEP, replace(NONE, block_s=400.0), np.random.default_rng(1))
    behind = np.maximum.accumulate(held.tick) - held.tick
    rows = np.flatnonzero(behind > 0)
    assert len(rows) in (39, 40)
    assert np.unique(held.controller[rows]).size == 1
    assert rows.max() - rows.min() < 42


def test_faults_can_be_scaled_and_have_an_upper_end() -> None:
    assert Faults().scaled(1.0) == Faults()
    double, huge = Faults().scaled(2.0), Faults().scaled(1e9)
    assert double.outage_s == (120.0, 600.0)
    assert huge.lost_ratio == 1.0
    assert huge.outage_s == (21600.0, 21600.0)
    assert arrivals(DAY, 2, STEP, huge, np.random.default_rng(1)).tick.size == 0


def test_a_site_shorter_than_a_day_has_its_polls() -> None:
    found = arrivals(100, 2, STEP, Faults(), np.random.default_rng(1))
    assert 0 < len(found.tick) <= 210
    assert found.tick.max() < 100
