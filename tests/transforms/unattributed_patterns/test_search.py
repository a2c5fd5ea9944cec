"""Pattern search: partition of clusters by owner, and artifacts of subtraction."""

from __future__ import annotations

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.unattributed_patterns.cooccurrence import PresenceSpectra, Runs
from iosig.transforms.unattributed_patterns.patterns import PatternParams
from iosig.transforms.unattributed_patterns.search import PatternSearch
from tests.transforms.unattributed_patterns.test_finding import COUNT, NO_RUNS, STEP_S, put, traffic


def make_search(left: Reals, runs: Runs = NO_RUNS, whole: Reals | None = None) -> PatternSearch:
    params = PatternParams()
    spectra = PresenceSpectra(runs, COUNT, params.cooccurrence.slack_s / STEP_S)
    return PatternSearch.create(left if whole is None else whole, left, STEP_S, spectra, params)


def test_cluster_is_split_into_train_owned_bursts_and_rest() -> None:
    due = np.arange(90, COUNT - 100, 180)
    # An application with such a burst at the start of each run, and irregular bursts.
    started = np.arange(500.0, COUNT - 600, 2000.0)
    rest = np.sort(np.random.default_rng(5).choice(np.arange(1040, COUNT - 100, 360), 8, replace=False)) + 75
    left = traffic()
    for at in (due, started + 3, rest):
        put(left, at, 3000.0, 6)
    runs = Runs(np.zeros(len(started), np.int64), started, started + 400)
    search = make_search(left, runs)
    part = next(part for part in search.split_clusters()[0] if part.trains)
    (train, members), (owner, owned) = part.trains[0], part.owned[0]
    assert abs(train.period - 180) < 0.5
    assert np.isin(search.bursts.first[members], due).mean() > 0.95
    assert (owner.outcome, owner.application) == ("attributed", 0)
    assert set(search.bursts.first[owned]) <= set((started + 3).astype(int))
    assert np.isin(search.bursts.first[part.rest], rest).mean() > 0.7


def test_subtraction_artifacts_are_in_no_cluster() -> None:
    whole = traffic()
    at = np.sort(np.random.default_rng(6).choice(np.arange(100, COUNT - 100, 250), 12, replace=False))
    put(whole, at, 6000.0, 6)
    left = whole.copy()
    put(left, at, -3000.0, 6)
    search = make_search(left, whole=whole)
    is_artifact = np.isin(search.bursts.first, at)
    assert (search.compute_subtraction_ratio()[is_artifact] > 0.9).all()
    assert not search.split_clusters()[1][is_artifact].any()


def test_bursts_of_one_appearance_have_no_period() -> None:
    """Bursts closer than the maximum lag form one appearance."""
    left = np.random.default_rng(2).lognormal(0.0, 0.3, 2000)
    for start in (400, 440, 480, 520, 560):
        left[start : start + 4] += 500.0
    search = make_search(left)
    pattern = search.build_pattern([np.arange(len(search.bursts))], 60.0)
    assert (len(pattern.started), pattern.is_train) == (1, False)
