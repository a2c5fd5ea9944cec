"""The curves of all applications are fitted jointly to the traffic of their runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from iosig.transforms.arrays import Reals
from iosig.transforms.joint import fitting
from iosig.transforms.joint.fitting import fit_traffic
from iosig.transforms.joint.shared_traffic import KnownSignatures, SharedTraffic
from tests.joint_sites import BUSY, CALM, DENSE, SPARSE, STEP_S, Drawn, make_known_signatures, simulate_site

LEAST = 5
NOTHING = make_known_signatures(None, None)
ALL = make_known_signatures(None, None, None, None)


@cache
def site() -> Drawn:
    return simulate_site((CALM, BUSY, SPARSE, DENSE), 8, 8000)


def fit_by_run(shared: SharedTraffic, known: KnownSignatures, least: int = LEAST) -> Reals:
    """Fit the traffic; return the volume of each run in each step (runs, steps)."""
    given = fit_traffic(shared, known, least)
    shape = len(shared.application), len(shared.volume_bytes)
    result = np.bincount(given.run * shape[1] + given.step, given.volume_bytes, shape[0] * shape[1])
    return result.astype(np.float64).reshape(shape)


def true_volumes(one: Drawn) -> Reals:
    """True volume of each sample in each step (runs, steps)."""
    result = np.zeros((len(one.shared.application), len(one.shared.volume_bytes)))
    for run, first, after, begin in zip(
        one.shared.sample_runs, *one.shared.sample_windows(), one.own.offsets[:-1], strict=True
    ):
        result[run, first:after] = one.own.values[begin : begin + after - first]
    return result


def test_volumes_match_the_truth_of_each_run() -> None:
    result, truth = fit_by_run(site().shared, ALL), true_volumes(site())
    assert np.abs(result - truth).sum() < 0.15 * truth.sum()
    assert (result >= 0).all()


def test_fit_attributes_no_volume_outside_of_runs() -> None:
    shared = site().shared
    given = fit_traffic(shared, ALL, LEAST)
    assert (given.step + 1 > shared.start_estimate[given.run]).all()
    assert (given.step < shared.end_estimate[given.run]).all()


def test_activity_matches_bursts_despite_misplaced_runs() -> None:
    shared, truth = site().shared, true_volumes(site())
    moved_by = np.random.default_rng(2).uniform(-3.0, 3.0, len(shared.started))
    given = fit_traffic(replace(shared, started=shared.started + moved_by), ALL, LEAST)
    place = given.run * truth.shape[1] + given.step
    work = np.bincount(place, given.active_ratio, truth.size).reshape(truth.shape)
    assert np.abs(work - (truth > 0)).sum() < 0.12 * (truth > 0).sum()


def test_fit_is_scale_invariant() -> None:
    shared = site().shared
    large = replace(shared, volume_bytes=shared.volume_bytes * 1e9)
    assert fit_by_run(large, ALL) == pytest.approx(1e9 * fit_by_run(shared, ALL), rel=1e-6, abs=1e3)


def test_stopped_and_resumed_runs_are_placed() -> None:
    one = simulate_site((CALM, BUSY), 7, 7000)
    shared, truth = one.shared, true_volumes(one)
    # The first run of the first application stopped halfway; the last run is the remainder of a stopped run.
    runs = np.flatnonzero(shared.application == 0)
    started, ended = shared.started.copy(), shared.ended.copy()
    stop, begin = round(started[runs[0]] + 170), round(started[runs[-1]] + 100)
    lost = truth[runs[0]].copy()
    lost[:stop] = 0.0
    lost[:begin] += truth[runs[-1]][:begin]
    ended[runs[0]], started[runs[-1]] = stop, begin
    changed = replace(shared, started=started, ended=ended, volume_bytes=shared.volume_bytes - lost)
    result = fit_by_run(changed, NOTHING)
    for run, span in ((runs[0], slice(0, stop)), (runs[-1], slice(begin, None))):
        own = truth[run][span]
        assert np.abs(result[run][span] - own).sum() < 0.25 * own.sum()


def test_applications_with_few_runs_use_known_signatures() -> None:
    one = simulate_site((CALM, BUSY), 6, 6000)
    shared, truth = one.shared, true_volumes(one)
    is_left = (shared.application == 0) | (np.cumsum(shared.application == 1) <= 2)
    few = replace(
        shared,
        application=shared.application[is_left],
        started=shared.started[is_left],
        ended=shared.ended[is_left],
        is_sample=shared.is_sample[is_left],
        volume_bytes=truth[is_left].sum(axis=0),
    )
    is_busy = few.application == 1
    known_volume, unknown_volume = (
        fit_by_run(few, known)[is_busy] for known in (make_known_signatures(None, BUSY), NOTHING)
    )
    own = truth[is_left][is_busy]
    assert np.abs(known_volume - own).sum() < 0.1 * own.sum()
    assert not unknown_volume.any()


def test_gaps_are_filled_from_the_fitted_curves() -> None:
    shared, truth = site().shared, true_volumes(site())
    volume = shared.volume_bytes.copy()
    volume[1000:1200] = np.nan
    result = fit_by_run(replace(shared, volume_bytes=volume), ALL)
    assert np.abs(result - truth).sum() < 0.15 * truth.sum()


def test_zero_traffic_is_not_attributed() -> None:
    shared = site().shared
    for value in (0.0, np.nan):
        given = fit_traffic(replace(shared, volume_bytes=np.full(len(shared.volume_bytes), value)), ALL, LEAST)
        assert not len(given.step)


def test_steps_are_combined_above_the_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    shared, truth = site().shared, true_volumes(site())
    monkeypatch.setattr(fitting, "_MAX_STEPS", int(truth.shape[0] * 580 / STEP_S / 2.5))
    result = fit_by_run(shared, ALL)
    # combined steps of three
    wide = len(shared.volume_bytes) // 3 * 3
    apart = np.abs((result - truth)[:, :wide].reshape(len(result), -1, 3).sum(axis=2))
    assert apart.sum() < 0.25 * truth.sum()


def test_fit_is_deterministic() -> None:
    one, again = (fit_traffic(site().shared, ALL, LEAST) for _ in range(2))
    assert one.volume_bytes.tobytes() == again.volume_bytes.tobytes()
