"""Polls of controllers: exact shares of bytes, and the faults of their arrival."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.synthetic.polls import Faults, arrive_in_order, simulate_arrivals, split_polls
from tests.budget import examples

NO_FAULTS = Faults(lost_ratio=0, late_ratio=0, repeated_ratio=0, block_s=0, controller_outage_s=(0, 0), outage_s=(0, 0))
DAY = 8640
STEP = 10.0


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=80), st.integers(1, 12), st.integers(0, 5))
def test_controllers_count_every_byte_once(volumes: list[float], count: int, seed: int) -> None:
    total = np.array(volumes)
    polls = split_polls(total, count, 2.0, np.random.default_rng(seed))
    assert polls.shape == (len(volumes), count)
    assert (polls >= 0).all()
    assert (polls == np.floor(polls)).all(), "counters count whole bytes"
    # The error of a controller's counter is always below one byte.
    lag = np.cumsum(total) - np.cumsum(polls.sum(axis=1))
    assert (lag >= -1e-3 * count).all()
    assert (lag <= count + 1e-3).all()


def test_shares_vary_but_have_equal_means() -> None:
    polls = split_polls(np.full(5000, 8e9), 8, 2.0, np.random.default_rng(3))
    variation = polls.std(axis=1) / polls.mean(axis=1)
    assert 0.2 < np.median(variation) < 1.0
    shares = polls.sum(axis=0) / polls.sum()
    assert (abs(shares - 1 / 8) < 0.08).all()


def test_polls_without_faults_are_complete_and_in_order() -> None:
    polls, ideal = simulate_arrivals(DAY, 3, STEP, NO_FAULTS, np.random.default_rng(1)), arrive_in_order(DAY, 3)
    np.testing.assert_array_equal(polls.tick, ideal.tick)
    np.testing.assert_array_equal(polls.controller, ideal.controller)
    assert ideal.tick[:4].tolist() == [0, 0, 0, 1]


def test_outages_alternate_between_all_and_one_controller() -> None:
    faults = replace(NO_FAULTS, controller_outage_s=(2000, 2000), outage_s=(300, 300))
    polls = simulate_arrivals(2 * DAY, 3, STEP, faults, np.random.default_rng(1))
    counts = np.bincount(polls.tick, minlength=2 * DAY)
    assert (np.flatnonzero(counts == 2) < DAY).all()
    assert (counts == 2).sum() == 200
    silent = np.flatnonzero(counts == 0)
    assert (silent >= DAY).all()
    assert len(silent) == 30
    assert silent.max() - silent.min() == 29, "it is one piece"


def test_lost_and_repeated_polls_have_the_requested_shares() -> None:
    lost = simulate_arrivals(DAY, 4, STEP, replace(NO_FAULTS, lost_ratio=0.1), np.random.default_rng(1))
    assert len(lost.tick) / (4 * DAY) == pytest.approx(0.9, abs=0.01)
    twice = simulate_arrivals(DAY, 4, STEP, replace(NO_FAULTS, repeated_ratio=0.1), np.random.default_rng(1))
    places, times = np.unique(twice.tick * 4 + twice.controller, return_counts=True)
    assert len(places) == 4 * DAY
    assert (times == 2).mean() == pytest.approx(0.1, abs=0.01)


def test_late_polls_have_a_bounded_delay() -> None:
    late = simulate_arrivals(DAY, 4, STEP, replace(NO_FAULTS, late_ratio=0.01, late_s=100.0), np.random.default_rng(1))
    assert len(late.tick) == 4 * DAY
    delay_ticks = np.maximum.accumulate(late.tick) - late.tick
    assert 0.005 < (delay_ticks > 0).mean() < 0.015
    assert delay_ticks.max() <= 10


def test_blocks_arrive_together() -> None:
    delayed = simulate_arrivals(DAY, 2, STEP, replace(NO_FAULTS, block_s=400.0), np.random.default_rng(1))
    delay_ticks = np.maximum.accumulate(delayed.tick) - delayed.tick
    rows = np.flatnonzero(delay_ticks > 0)
    assert len(rows) in (39, 40)
    assert np.unique(delayed.controller[rows]).size == 1
    assert rows.max() - rows.min() < 42


def test_scaled_faults_are_limited() -> None:
    assert Faults().scale(1.0) == Faults()
    doubled, huge = Faults().scale(2.0), Faults().scale(1e9)
    assert doubled.outage_s == (120.0, 600.0)
    assert huge.lost_ratio == 1.0
    assert huge.outage_s == (21600.0, 21600.0)
    assert simulate_arrivals(DAY, 2, STEP, huge, np.random.default_rng(1)).tick.size == 0


def test_site_shorter_than_a_day_has_polls() -> None:
    polls = simulate_arrivals(100, 2, STEP, Faults(), np.random.default_rng(1))
    assert 0 < len(polls.tick) <= 210
    assert polls.tick.max() < 100
