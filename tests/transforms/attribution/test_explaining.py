"""Explaining: several runs at once, what is not known, and that nobody gets what was not there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals, offsets_of
from iosig.transforms.attribution.explaining import Explained, ExplainParams, explain, explain_each, ranges
from iosig.transforms.attribution.runs import Runs
from tests.budget import examples

STILL = ExplainParams(background_quantile=0.0)


def runs_of(*runs: tuple[float, float, list[tuple[float, float]]]) -> Runs:
    """Return runs (start, end, bursts); a burst begins after so many steps, and takes five at its peak."""
    bursts = [burst for _, _, own in runs for burst in own]
    started, ended = (np.array([run[place] for run in runs]) for place in (0, 1))
    offsets = offsets_of([len(own) for *_, own in runs])
    begun, peak = (np.array([burst[place] for burst in bursts]) for place in (0, 1))
    lasting = np.full(len(bursts), 5.0)
    of = np.ones(len(runs)), np.arange(len(runs))
    return Runs(started, ended, ended - started, *of, offsets, begun, lasting, lasting * peak, peak)


def traffic_of(count: int, *bursts: tuple[int, float]) -> Reals:
    traffic = np.zeros(count)
    for first, volume in bursts:
        traffic[first : first + 5] += volume
    return traffic


def volumes(found: Explained, count: int) -> list[float]:
    totals: list[float] = np.bincount(found.run, found.volume_bytes, count).tolist()
    return totals


def test_each_run_gets_its_own() -> None:
    runs = runs_of((10, 200, [(20, 8), (100, 8)]), (0, 150, [(60, 3)]))
    traffic = traffic_of(300, (30, 8), (110, 8), (60, 3), (250, 9))
    found = explain(traffic, runs, 2.0, STILL)
    assert volumes(found, 2) == pytest.approx([80, 15])
    assert found.step[found.run == 1].tolist() == [60, 61, 62, 63, 64]
    assert (found.certainty > 0.9).all()


def test_runs_at_one_time_share_what_is_there() -> None:
    runs = runs_of((0, 100, [(20, 8)]), (0, 100, [(20, 2)]))
    found = explain(traffic_of(120, (20, 10)), runs, 2.0, STILL)
    assert volumes(found, 2) == pytest.approx([40, 10], rel=0.25)
    assert found.volume_bytes.sum() <= 50


def test_what_flows_all_the_time_is_nobodys_burst() -> None:
    traffic = traffic_of(300, (30, 8)) + 5.0
    found = explain(traffic, runs_of((10, 200, [(20, 8), (100, 8)])), 2.0)
    assert found.room_bytes.sum() == pytest.approx(40)
    assert volumes(found, 1) == pytest.approx([40])


def test_a_signature_whose_bursts_are_not_there_explains_nothing() -> None:
    """Of 20 bursts of one application 8 are there: the other one's, of whom all are, and whose these are in the end."""
    false = [(20.0, 8.0), (60.0, 8.0), (100.0, 8.0), (140.0, 8.0)]
    starts = range(0, 1000, 200)
    there = [*(start + at for start in starts[:4] for at in (20, 100)), *range(1000, 2500, 50)]
    own = [(float(at), 8.0) for at in there]
    runs = runs_of(*((start, start + 200, false) for start in starts), (0, 2600, own))
    runs = replace(runs, application=np.array([0] * 5 + [1]))
    traffic = traffic_of(2600, *((at, 8.0) for at in there))
    found = explain(traffic, runs, 2.0, STILL)
    assert volumes(found, 6) == pytest.approx([0, 0, 0, 0, 0, 38 * 40])
    assert not found.certainty[:5].any()
    assert not found.placements.filled[found.placements.run < 5].any()
    believed = explain(traffic, runs, 2.0, replace(STILL, least_found=0.0, most_doubt=np.inf))
    assert sum(volumes(believed, 6)[:5]) > 200


def test_bursts_where_nothing_was_polled_say_nothing_of_a_signature() -> None:
    runs = runs_of(*((start, start + 100, [(20, 8)]) for start in range(0, 2000, 100)))
    runs = replace(runs, application=np.zeros(20, np.int64))
    traffic = traffic_of(2000, *((start + 20, 8) for start in range(0, 2000, 100)))
    traffic[500:] = np.nan
    assert volumes(explain(traffic, runs, 2.0, STILL), 20) == pytest.approx([40] * 5 + [0] * 15)
    # polled, and not there
    assert not len(explain(np.nan_to_num(traffic), runs, 2.0, STILL).run)


def test_a_doubtful_burst_has_nothing_and_nobody_else_has_it() -> None:
    """Before the last burst of one application and after it as much flows as in it; what it found stays nobody's."""
    starts = range(0, 4000, 200)
    runs = runs_of(*((start, start + 200, [(20, 8), (100, 8)]) for start in starts), (3800, 4000, [(100, 7)]))
    runs = replace(runs, application=np.array([0] * 20 + [1]))
    traffic = traffic_of(4000, *((start + at + 12, 8) for start in starts for at in (20, 100)))
    traffic[3900:3950] = 8
    found = explain(traffic, runs, 2.0, replace(STILL, most_doubt=0.5))
    doubtful = ~found.placements.is_given
    assert found.placements.run[doubtful].tolist() == [19]
    assert (found.placements.filled[doubtful] > 0.9).all(), "there is what it says: it may be anybody's"
    assert volumes(found, 21) == pytest.approx([80] * 19 + [40, 35])
    believed = explain(traffic, runs, 2.0, replace(STILL, most_doubt=np.inf))
    assert volumes(believed, 21) == pytest.approx([80] * 20 + [35])


def test_few_bursts_that_fit_badly_are_no_doubt() -> None:
    runs = runs_of(*((start, start + 200, [(20, 8)]) for start in range(0, 4000, 200)))
    traffic = traffic_of(4000, *((start + 32, 8) for start in range(0, 4000, 200)))
    of = np.zeros(20, np.int64)
    params = replace(STILL, most_doubt=0.05)
    assert not len(explain(traffic, replace(runs, application=of), 2.0, params).run)
    few = explain(traffic, replace(runs, application=np.arange(20)), 2.0, params)
    assert volumes(few, 20) == pytest.approx([40] * 20)


def test_what_was_not_measured_is_nobodys() -> None:
    traffic = traffic_of(300, (30, 8))
    traffic[:200] = np.nan
    found = explain(traffic, runs_of((10, 200, [(20, 8)])), 2.0)
    assert not len(found.run)
    assert explain(np.zeros(0), runs_of((10, 200, [(20, 8)])), 2.0).room_bytes.size == 0
    assert not len(explain(np.ones(9), runs_of(), 2.0).run)


def test_runs_reach_beyond_what_is_known_of() -> None:
    traffic = traffic_of(100, (10, 8), (90, 8))
    found = explain(traffic, runs_of((-50, 60, [(60, 8)]), (80, 160, [(10, 8), (70, 8)])), 2.0, STILL)
    assert volumes(found, 2) == pytest.approx([40, 40])


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_together_they_never_have_more_than_there_is(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    traffic = rng.exponential(5.0, 200) * (rng.random(200) < 0.4)
    starts = rng.uniform(-20, 150, count)
    bursts = [[(float(at), float(rng.uniform(1, 20))) for at in np.sort(rng.uniform(0, 80, 3))] for _ in range(count)]
    runs = runs_of(*((float(at), float(at) + 90, own) for at, own in zip(starts, bursts, strict=True)))
    found = explain(traffic, runs, 2.0)
    together = np.bincount(found.step, found.volume_bytes, 200)
    assert (together <= found.room_bytes * (1 + 1e-9) + 1e-9).all()
    assert (np.array(volumes(found, count)) <= [sum(5 * peak for _, peak in own) + 1e-6 for own in bursts]).all()
    first, after = runs.windows(200)
    assert ((found.step >= first[found.run]) & (found.step < after[found.run])).all()


def test_ranges_hold_what_was_found_and_widen_with_doubt() -> None:
    low, high = ranges(np.linspace(0.0, 1.0, 11))
    assert (low < 1).all()
    assert (np.diff(low) > 0).all()
    assert (np.diff(high) < 0).all()
    assert high[-1] == 1


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 4))
def test_traffics_side_by_side_are_explained_as_each_alone(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    traffics = []
    for _ in range(count):
        runs = runs_of(
            *(
                (start, start + rng.uniform(30, 200), [(rng.uniform(0, 150), rng.uniform(1, 9)) for _ in range(bursts)])
                for start, bursts in zip(rng.uniform(0, 200, 6), rng.integers(0, 4, 6), strict=True)
            )
        )
        traffics.append((rng.exponential(4.0, 300) * (rng.random(300) < 0.5), runs))
    for found, own in zip(explain_each(traffics, 2.0), traffics, strict=True):
        alone = explain(*own, 2.0)
        for name in ("run", "step", "volume_bytes", "certainty", "room_bytes"):
            assert getattr(found, name).tolist() == getattr(alone, name).tolist()
