"""The curves of all applications are fitted to the traffic of their runs at once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from iosig.transforms.arrays import Reals
from iosig.transforms.joint import fitting
from iosig.transforms.joint.fitting import fit_traffic
from iosig.transforms.joint.shared_traffic import KnownSignatures, SharedTraffic
from tests.joint_sites import BUSY, CALM, DENSE, SPARSE, STEP_S, Drawn, drawn, known_of

LEAST = 5
NOTHING = known_of(None, None)
ALL = known_of(None, None, None, None)


@cache
def site() -> Drawn:
    return drawn((CALM, BUSY, SPARSE, DENSE), 8, 8000)


def by_run(shared: SharedTraffic, known: KnownSignatures, least: int = LEAST) -> Reals:
    """Return what each run is given in each step (runs, steps)."""
    given = fit_traffic(shared, known, least)
    shape = len(shared.application), len(shared.volume_bytes)
    found = np.bincount(given.run * shape[1] + given.step, given.volume_bytes, shape[0] * shape[1])
    return found.astype(np.float64).reshape(shape)


def moved(one: Drawn) -> Reals:
    """Return what each sample moved itself (runs, steps)."""
    found = np.zeros((len(one.shared.application), len(one.shared.volume_bytes)))
    for run, first, after, begin in zip(
        one.shared.sample_runs, *one.shared.sample_windows(), one.own.offsets[:-1], strict=True
    ):
        found[run, first:after] = one.own.values[begin : begin + after - first]
    return found


def test_volumes_match_the_truth_of_each_run() -> None:
    found, truth = by_run(site().shared, ALL), moved(site())
    assert np.abs(found - truth).sum() < 0.15 * truth.sum()
    assert (found >= 0).all()


def test_no_volume_outside_of_runs() -> None:
    shared = site().shared
    given = fit_traffic(shared, ALL, LEAST)
    assert (given.step + 1 > shared.expected_start[given.run]).all()
    assert (given.step < shared.expected_end[given.run]).all()


def test_activity_matches_bursts_despite_misplaced_runs() -> None:
    shared, truth = site().shared, moved(site())
    moved_by = np.random.default_rng(2).uniform(-3.0, 3.0, len(shared.started))
    given = fit_traffic(replace(shared, started=shared.started + moved_by), ALL, LEAST)
    place = given.run * truth.shape[1] + given.step
    work = np.bincount(place, given.active_ratio, truth.size).reshape(truth.shape)
    assert np.abs(work - (truth > 0)).sum() < 0.12 * (truth > 0).sum()


def test_result_is_scale_invariant() -> None:
    shared = site().shared
    large = replace(shared, volume_bytes=shared.volume_bytes * 1e9)
    assert by_run(large, ALL) == pytest.approx(1e9 * by_run(shared, ALL), rel=1e-6, abs=1e3)


def test_stopped_and_resumed_runs_are_placed() -> None:
    one = drawn((CALM, BUSY), 7, 7000)
    shared, truth = one.shared, moved(one)
    # the first run of the first application was stopped in its middle; the last one is the rest of such a run
    runs = np.flatnonzero(shared.application == 0)
    started, ended = shared.started.copy(), shared.ended.copy()
    stop, begin = round(started[runs[0]] + 170), round(started[runs[-1]] + 100)
    lost = truth[runs[0]].copy()
    lost[:stop] = 0.0
    lost[:begin] += truth[runs[-1]][:begin]
    ended[runs[0]], started[runs[-1]] = stop, begin
    changed = replace(shared, started=started, ended=ended, volume_bytes=shared.volume_bytes - lost)
    found = by_run(changed, NOTHING)
    for run, span in ((runs[0], slice(0, stop)), (runs[-1], slice(begin, None))):
        own = truth[run][span]
        assert np.abs(found[run][span] - own).sum() < 0.25 * own.sum()


def test_applications_with_few_runs_use_known_signatures() -> None:
    one = drawn((CALM, BUSY), 6, 6000)
    shared, truth = one.shared, moved(one)
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
    told, untold = (by_run(few, known)[is_busy] for known in (known_of(None, BUSY), NOTHING))
    own = truth[is_left][is_busy]
    assert np.abs(told - own).sum() < 0.1 * own.sum()
    assert not untold.any()


def test_gaps_are_filled_from_the_fitted_curves() -> None:
    shared, truth = site().shared, moved(site())
    volume = shared.volume_bytes.copy()
    volume[1000:1200] = np.nan
    found = by_run(replace(shared, volume_bytes=volume), ALL)
    assert np.abs(found - truth).sum() < 0.15 * truth.sum()


def test_zero_traffic_is_not_attributed() -> None:
    shared = site().shared
    for value in (0.0, np.nan):
        given = fit_traffic(replace(shared, volume_bytes=np.full(len(shared.volume_bytes), value)), ALL, LEAST)
        assert not len(given.step)


def test_steps_are_combined_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    shared, truth = site().shared, moved(site())
    monkeypatch.setattr(fitting, "_MAX_STEPS", int(truth.shape[0] * 580 / STEP_S / 2.5))
    found = by_run(shared, ALL)
    # steps of three: no finer than that
    wide = len(shared.volume_bytes) // 3 * 3
    apart = np.abs((found - truth)[:, :wide].reshape(len(found), -1, 3).sum(axis=2))
    assert apart.sum() < 0.25 * truth.sum()


def test_result_is_deterministic() -> None:
    one, again = (fit_traffic(site().shared, ALL, LEAST) for _ in range(2))
    assert one.volume_bytes.tobytes() == again.volume_bytes.tobytes()
