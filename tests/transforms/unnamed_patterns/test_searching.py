"""The search: what kinds consist of, and what is set aside with them."""

from __future__ import annotations

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.unnamed_patterns.beside import Presences, Runs
from iosig.transforms.unnamed_patterns.patterns import PatternParams
from iosig.transforms.unnamed_patterns.searching import Search
from tests.transforms.unnamed_patterns.test_finding import COUNT, NOBODY, STEP_S, put, traffic


def search(left: Reals, runs: Runs = NOBODY, whole: Reals | None = None) -> Search:
    params = PatternParams()
    presences = Presences(runs, COUNT, params.beside.slack_s / STEP_S)
    return Search.of(left if whole is None else whole, left, STEP_S, presences, params)


def test_a_kind_is_a_train_what_is_surely_an_applications_and_the_rest() -> None:
    due = np.arange(90, COUNT - 100, 180)
    # an application that begins with such a burst, and what comes as it likes
    started = np.arange(500.0, COUNT - 600, 2000.0)
    rest = np.sort(np.random.default_rng(5).choice(np.arange(1040, COUNT - 100, 360), 8, replace=False)) + 75
    left = traffic()
    for at in (due, started + 3, rest):
        put(left, at, 3000.0, 6)
    runs = Runs(np.zeros(len(started), np.int64), started, started + 400)
    one = search(left, runs)
    kind = next(each for each in one.parts()[0] if each.trains)
    (train, members), (whose, own) = kind.trains[0], kind.own[0]
    assert abs(train.period - 180) < 0.5
    assert np.isin(one.bursts.first[members], due).mean() > 0.95
    assert (whose.outcome, whose.application) == ("named", 0)
    assert set(one.bursts.first[own]) <= set((started + 3).astype(int))
    assert np.isin(one.bursts.first[kind.rest], rest).mean() > 0.7


def test_what_a_subtraction_left_is_of_no_kind() -> None:
    whole = traffic()
    at = np.sort(np.random.default_rng(6).choice(np.arange(100, COUNT - 100, 250), 12, replace=False))
    put(whole, at, 6000.0, 6)
    left = whole.copy()
    put(left, at, -3000.0, 6)
    one = search(left, whole=whole)
    is_one = np.isin(one.bursts.first, at)
    assert (one.taken()[is_one] > 0.9).all()
    assert not one.parts()[1][is_one].any()


def test_bursts_of_one_appearance_have_no_period() -> None:
    """All that come with each other within what lies between two of them are one."""
    left = np.random.default_rng(2).lognormal(0.0, 0.3, 2000)
    for start in (400, 440, 480, 520, 560):
        left[start : start + 4] += 500.0
    one = search(left)
    found = one.pattern([np.arange(len(one.bursts))], 60.0)
    assert (len(found.started), found.is_train) == (1, False)
