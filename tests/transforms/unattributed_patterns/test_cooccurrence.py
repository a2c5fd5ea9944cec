"""Co-occurrence of patterns with runs: exposure, dependent appearances, p-values and outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from iosig.transforms.arrays import Reals
from iosig.transforms.unattributed_patterns.cooccurrence import (
    PresenceSpectra,
    Runs,
    _power_spectrum,
    _rotation_p_value,
    compute_cooccurrence,
    find_start_aligned,
)

COUNT, STEP_S = 10_000, 60.0


def runs(*rows: tuple[int, float, float]) -> Runs:
    application, started, ended = (np.array(column) for column in zip(*rows, strict=True))
    return Runs(application.astype(np.int64), started.astype(np.float64), ended.astype(np.float64))


def spread(count: int, seed: int = 1) -> Reals:
    return np.sort(np.random.default_rng(seed).uniform(0, COUNT - 20, count))


def test_pattern_in_every_run_of_an_application_is_attributed() -> None:
    at = spread(9)
    own = [(1, start - 20, start + 40) for start in at]
    other = [(0, start, start + 500) for start in spread(8, 2)]
    result = compute_cooccurrence((at, at + 5), runs(*own, *other), COUNT, STEP_S)
    assert (result.outcome, result.application) == ("attributed", 1)
    assert (result.covered_count, result.run_count, result.covering_run_count) == (9, 9, 9)
    assert result.p_value < 1e-5


def test_permanently_running_application_is_no_owner() -> None:
    at = spread(9)
    result = compute_cooccurrence((at, at + 5), runs((0, 0, COUNT)), COUNT, STEP_S)
    assert (result.outcome, result.application, result.covered_count, result.p_value) == ("unattributed", 0, 9, 1.0)
    assert compute_cooccurrence((at, at + 5), runs((0, -50, -10)), COUNT, STEP_S).outcome == "unattributed"
    no_runs = Runs(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    assert compute_cooccurrence((at, at + 5), no_runs, COUNT, STEP_S).application == -1


def test_train_within_one_run_counts_as_one_appearance() -> None:
    train = np.linspace(5000.0, 5290.0, 30)
    alone = compute_cooccurrence((train, train + 2), runs((0, 4990, 5300)), COUNT, STEP_S)
    # Independent of the number of bursts: small rotations keep the train in the run.
    assert 0.0005 < alone.p_value < 0.03
    others = [(number, 10.0, 20.0) for number in range(1, 40)]
    assert (
        compute_cooccurrence((train, train + 2), runs((0, 4990, 5300), *others), COUNT, STEP_S).outcome == "ambiguous"
    )


def test_p_value_of_independent_appearances_is_binomial_tail() -> None:
    rng = np.random.default_rng(4)
    starts = np.arange(0.0, COUNT, 100)
    centers = np.sort(rng.choice(COUNT, 40, replace=False)).astype(np.float64)
    # Exposure of 30 %, in intervals independent of the appearances.
    spectra = PresenceSpectra(Runs(np.zeros(len(starts), np.int64), starts, starts + 29), COUNT, 0.0)
    tail, exposure = _rotation_p_value(spectra.of_application(0), spectra.of_appearances(centers), 20, len(centers))
    assert exposure == pytest.approx(0.3, abs=0.01)
    assert np.log(tail) == pytest.approx(np.log(binom.sf(19, 40, 0.3)), rel=0.35)


@pytest.mark.parametrize("seed", range(5))
def test_pattern_is_not_attributed_to_random_runs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = spread(10, seed)
    starts = rng.uniform(0, COUNT, 200)
    rows = zip(rng.integers(0, 20, 200), starts, starts + rng.uniform(10, 200, 200), strict=True)
    assert compute_cooccurrence((at, at + 3), runs(*rows), COUNT, STEP_S).outcome == "unattributed"


def test_fixed_delay_after_run_start_names_the_application() -> None:
    rng = np.random.default_rng(4)
    begins = np.sort(rng.choice(np.arange(0, 100_000, 2500), 12, replace=False)).astype(np.float64)
    runs = Runs(np.arange(12) % 2, begins, begins + 1500)
    own = begins[::2] + 40.0
    appeared = np.sort(np.concatenate([own, rng.uniform(0, 100_000, 12)]))
    result = find_start_aligned(appeared, runs, 5.0)
    assert result is not None
    owner, is_aligned = result
    assert (owner.outcome, owner.application, owner.run_count) == ("attributed", 0, 6)
    assert set(own) <= set(appeared[is_aligned])
    assert owner.covered_count <= 7


@pytest.mark.parametrize("seed", range(20))
def test_random_delays_are_not_significant(seed: int) -> None:
    rng = np.random.default_rng(seed)
    begins = rng.uniform(0, 100_000, 60)
    runs = Runs(np.arange(60) % 8, begins, begins + rng.uniform(300, 3000, 60))
    assert find_start_aligned(rng.uniform(0, 100_000, 30), runs, 5.0) is None


@pytest.mark.parametrize("count", [2, 7, 8, 101])
def test_dot_product_of_spectra_is_variance_over_rotations(count: int) -> None:
    rng = np.random.default_rng(count)
    presence, signal = (rng.random(count) < 0.4).astype(np.float64), rng.poisson(0.3, count).astype(np.float64)
    rotations = [float(presence @ np.roll(signal, shift)) for shift in range(count)]
    assert _power_spectrum(presence) @ _power_spectrum(signal) == pytest.approx(np.var(rotations))
