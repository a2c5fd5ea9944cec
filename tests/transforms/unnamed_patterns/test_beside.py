"""Whose runs were there: an application's exposure, appearances that stand or fall together, and the verdict."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from iosig.transforms.arrays import Reals
from iosig.transforms.unnamed_patterns.beside import Presences, Runs, _chance, _spectrum, begun_with, beside

COUNT, STEP_S = 10_000, 60.0


def runs(*each: tuple[int, float, float]) -> Runs:
    application, started, ended = (np.array(column) for column in zip(*each, strict=True))
    return Runs(application.astype(np.int64), started.astype(np.float64), ended.astype(np.float64))


def spread(count: int, seed: int = 1) -> Reals:
    return np.sort(np.random.default_rng(seed).uniform(0, COUNT - 20, count))


def test_a_pattern_in_every_run_of_one_application_is_its() -> None:
    at = spread(9)
    own = [(1, start - 20, start + 40) for start in at]
    other = [(0, start, start + 500) for start in spread(8, 2)]
    found = beside((at, at + 5), runs(*own, *other), COUNT, STEP_S)
    assert (found.outcome, found.application) == ("named", 1)
    assert (found.seen_count, found.run_count, found.seen_run_count) == (9, 9, 9)
    assert found.chance < 1e-5


def test_an_application_that_is_always_there_is_no_answer() -> None:
    at = spread(9)
    found = beside((at, at + 5), runs((0, 0, COUNT)), COUNT, STEP_S)
    assert (found.outcome, found.application, found.seen_count, found.chance) == ("unnamed", 0, 9, 1.0)
    assert beside((at, at + 5), runs((0, -50, -10)), COUNT, STEP_S).outcome == "unnamed"
    nobody = Runs(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    assert beside((at, at + 5), nobody, COUNT, STEP_S).application == -1


def test_one_train_in_one_run_is_one_appearance() -> None:
    train = np.linspace(5000.0, 5290.0, 30)
    alone = beside((train, train + 2), runs((0, 4990, 5300)), COUNT, STEP_S)
    # however many bursts it has: turned by little it lies in the run, and once in 30 times one of them does
    assert 0.0005 < alone.chance < 0.03
    others = [(number, 10.0, 20.0) for number in range(1, 40)]
    assert beside((train, train + 2), runs((0, 4990, 5300), *others), COUNT, STEP_S).outcome == "unsure"


def test_independent_appearances_are_a_binomial_tail() -> None:
    rng = np.random.default_rng(4)
    starts = np.arange(0.0, COUNT, 100)
    middles = np.sort(rng.choice(COUNT, 40, replace=False)).astype(np.float64)
    # exposed for 30 % of the time, in pieces that appearances do not know of
    presences = Presences(Runs(np.zeros(len(starts), np.int64), starts, starts + 29), COUNT, 0.0)
    tail, exposure = _chance(presences.of(0), presences.shown(middles), 20, len(middles))
    assert exposure == pytest.approx(0.3, abs=0.01)
    assert np.log(tail) == pytest.approx(np.log(binom.sf(19, 40, 0.3)), rel=0.35)


@pytest.mark.parametrize("seed", range(5))
def test_by_chance_nobody_is_named(seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = spread(10, seed)
    starts = rng.uniform(0, COUNT, 200)
    each = zip(rng.integers(0, 20, 200), starts, starts + rng.uniform(10, 200, 200), strict=True)
    assert beside((at, at + 3), runs(*each), COUNT, STEP_S).outcome == "unnamed"


def test_what_comes_at_one_time_after_runs_begin_is_theirs() -> None:
    rng = np.random.default_rng(4)
    begins = np.sort(rng.choice(np.arange(0, 100_000, 2500), 12, replace=False)).astype(np.float64)
    runs = Runs(np.arange(12) % 2, begins, begins + 1500)
    own = begins[::2] + 40.0
    appeared = np.sort(np.concatenate([own, rng.uniform(0, 100_000, 12)]))
    found = begun_with(appeared, runs, 5.0)
    assert found is not None
    whose, is_own = found
    assert (whose.outcome, whose.application, whose.run_count) == ("named", 0, 6)
    assert set(own) <= set(appeared[is_own])
    assert whose.seen_count <= 7


@pytest.mark.parametrize("seed", range(20))
def test_chance_is_not_at_one_time_after_runs_begin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    begins = rng.uniform(0, 100_000, 60)
    runs = Runs(np.arange(60) % 8, begins, begins + rng.uniform(300, 3000, 60))
    assert begun_with(rng.uniform(0, 100_000, 30), runs, 5.0) is None


@pytest.mark.parametrize("count", [2, 7, 8, 101])
def test_a_spectrum_tells_how_turns_vary(count: int) -> None:
    rng = np.random.default_rng(count)
    one, other = (rng.random(count) < 0.4).astype(np.float64), rng.poisson(0.3, count).astype(np.float64)
    turns = [float(one @ np.roll(other, turn)) for turn in range(count)]
    assert _spectrum(one) @ _spectrum(other) == pytest.approx(np.var(turns))
