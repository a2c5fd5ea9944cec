"""Runs injected into background traffic keep their bytes, and are slowed and polled as their family specifies."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import polars as pl
import pytest

from iosig.studies.signatures import families
from iosig.studies.signatures.families import (
    FAMILIES,
    FOREIGN_LEVELS,
    REAL,
    Contention,
    Drift,
    Family,
    Foreign,
    Program,
)
from iosig.studies.signatures.injected import FamilySetting, apply_program, draw_paces, plan_runs, sample_polls
from iosig.studies.signatures.methods import METHODS
from iosig.studies.signatures.scores import CHOSEN, append_best, score_signatures, summarize_runs
from iosig.studies.signatures.sites import STUDIED, derive_seed
from iosig.transforms.signatures.methods import DEFAULT_METHODS
from iosig.transforms.synthetic.workload import Application, Burst

ONE = Application("one", "ana", "prj101", 16, 400.0, (Burst(50, 50e9, 2.5e9), Burst(200, 100e9, 2.0e9)), 6)
STILL = Family("still", "gaps", 0.0, "fair", 3.0, "rests", "same", 2.0, 0.0)


def volumes(setting: FamilySetting, seed: int = 1) -> list[float]:
    one = setting.draw(seed).sets.get_set(0)
    return [float(rates.sum()) * one.interval_s for rates in one.rates]


# ---- the families


def test_families_cover_at_least_two_values_of_each_axis() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES) >= 8
    axes = ("drift", "drift_ratio", "contention", "foreign", "program", "interval_s", "jitter_ratio")
    assert all(len({getattr(family, axis) for family in FAMILIES}) >= 2 for axis in axes)
    for axis, kinds in (("drift", Drift), ("contention", Contention), ("program", Program)):
        assert {getattr(family, axis) for family in FAMILIES} == set(get_args(kinds))
    assert {family.foreign for family in (*FAMILIES, REAL)} == set(get_args(Foreign))
    for kind in get_args(Contention):
        assert len({one.contention_size for one in FAMILIES if one.contention == kind}) >= 2
    assert FOREIGN_LEVELS == {"calm": 0.2, "busy": 0.5, "stormy": 1.0}
    assert 0 < sum(family.has_known_time_scale for family in FAMILIES) < len(FAMILIES)
    assert families.MAX_KNOWN_DRIFT == 0.01


# ---- runs


@pytest.mark.parametrize("contention", get_args(Contention))
def test_injected_runs_keep_all_bytes(contention: Contention) -> None:
    family = replace(STILL, contention=contention, contention_size=1.0 + (contention == "fair"))
    drawn = volumes(FamilySetting(family, "stormy", (ONE,), is_alone_seen=True))
    assert drawn == pytest.approx([150e9] * 6, rel=1e-6)


def test_background_slows_runs_that_share_bandwidth_or_seeks() -> None:
    family = replace(STILL, contention_size=1.2)
    seen, alone = (
        FamilySetting(family, "stormy", (ONE,), is_alone_seen=is_alone).draw(1) for is_alone in (False, True)
    )
    assert seen.sets.duration_s.tolist() == alone.sets.duration_s.tolist()
    assert (seen.sets.duration_s > 401.0).any()
    # The total never exceeds the bandwidth.
    assert seen.sets.samples.values.max() < 6 * 2.5e9
    assert (seen.sets.samples.values >= alone.sets.samples.values - 1.0).all()
    slowed = replace(family, contention="seeks", contention_size=1.0)
    assert (FamilySetting(slowed, "stormy", (ONE,)).draw(1).sets.duration_s > 401.0).all()
    waiting = replace(family, contention="latency", contention_size=0.0)
    assert FamilySetting(waiting, "stormy", (ONE,)).draw(1).sets.duration_s.max() <= 401.0


def test_draws_are_deterministic_and_levels_change_only_the_background() -> None:
    first, again = (FamilySetting(FAMILIES[2], "busy", (ONE,)).draw(5).sets for _ in range(2))
    assert first.samples.values.tolist() == again.samples.values.tolist()
    calm, stormy = (FamilySetting(FAMILIES[3], level, (ONE,)).draw(5).sets for level in ("calm", "stormy"))
    assert calm.samples.values.mean() < stormy.samples.values.mean()
    assert calm.start_s.tolist() == stormy.start_s.tolist()


def test_level_is_mean_background_relative_to_the_peak() -> None:
    one = Application("idle", "ana", "prj101", 16, 2000.0, (Burst(5, 1e9, 2.5e9),), 30)
    for level, ratio in FOREIGN_LEVELS.items():
        values = FamilySetting(replace(STILL, foreign="never_rests"), level, (one,)).draw(2).sets.samples.values
        assert values.mean() == pytest.approx(ratio * 2.5e9, rel=0.05)


def test_real_traffic_is_scaled_to_the_level() -> None:
    real = np.random.default_rng(1).exponential(3.0, 4000)
    one = Application("idle", "ana", "prj101", 16, 500.0, (Burst(5, 1e9, 2.5e9),), 30)
    values = FamilySetting(REAL, "busy", (one,), real=real).draw(2).sets.samples.values
    assert values.mean() == pytest.approx(0.5 * 2.5e9, rel=0.05)


# ---- programs


def test_growing_volumes_are_part_of_the_truth() -> None:
    grown = apply_program(ONE, "growing")
    assert [burst.volume_bytes for burst in grown.bursts] == pytest.approx([30e9, 140e9])
    assert apply_program(ONE, "inputs") is ONE


def test_other_inputs_are_a_minority_with_different_waits() -> None:
    plan = plan_runs(replace(ONE, run_count=10), "inputs", np.random.default_rng(1))
    is_other = plan.volume_ratio[:, 0] < 1
    assert is_other.sum() == 3
    assert (plan.waits_s[~is_other] == ONE.waits_s).all()
    assert (plan.waits_s[is_other] != ONE.waits_s).all()


def test_stopped_runs_keep_the_first_part_and_restarts_the_last_part() -> None:
    plan = plan_runs(replace(ONE, run_count=400), "restarts", np.random.default_rng(1))
    kinds, counts = np.unique(plan.volume_ratio, axis=0, return_counts=True)
    assert kinds.tolist() == [[0, 1], [1, 0], [1, 1]]
    assert counts / 400 == pytest.approx([0.15, 0.1, 0.75], abs=0.05)
    is_again = plan.volume_ratio[:, 0] == 0
    assert (plan.waits_s[is_again, 0] == 0).all()
    assert (plan.waits_s[plan.volume_ratio[:, 1] == 0, 2] == 0).all()


def test_skipped_bursts_are_rare() -> None:
    plan = plan_runs(replace(ONE, run_count=1000), "skipping", np.random.default_rng(1))
    assert (plan.volume_ratio == 0).mean() == pytest.approx(0.08, abs=0.02)


def test_each_kind_of_drift_has_its_correlation() -> None:
    rng = np.random.default_rng(1)
    found = {kind: draw_paces(kind, 20, 3000, rng) for kind in get_args(Drift)}
    assert (np.ptp(found["scale"], axis=1) == 0).all()
    assert abs(np.corrcoef(found["gaps"][:, 3], found["gaps"][:, 4])[0, 1]) < 0.1
    assert np.corrcoef(found["walk"][:, 13], found["walk"][:, 14])[0, 1] > 0.9
    assert (found["load"] == 1).all()
    assert np.sqrt((found["walk"] ** 2).mean()) == pytest.approx(1.0, rel=0.1)


# ---- polls


def test_polls_count_each_byte_once_and_only_of_ended_runs() -> None:
    rates = np.ones((3, 500))
    one = sample_polls(rates, np.array([200.0, np.inf, 300.5]), 5.0, 0.2, np.random.default_rng(1))
    assert one.duration_s.tolist() == [170.0, 271.0]
    assert ((one.start_s <= 0) & (one.start_s > -5)).all()
    steps = np.diff(one.samples.offsets)
    ends = one.start_s + steps * 5.0
    assert ((ends >= one.duration_s) & (ends < one.duration_s + 5)).all()
    assert one.samples.values.std() > 0.1
    assert one.samples.values.mean() == pytest.approx(1.0, abs=0.02)


# ---- counted bytes


def likeness(setting: FamilySetting, number: int) -> float:
    """Return the mean correlation of a site's chosen signatures with the truth; a missing signature counts as 0."""
    drawn = setting.draw(derive_seed(5, number))
    judges = summarize_runs(drawn)
    answers = [
        score_signatures(drawn, one.name, one.extract(drawn.sets), judges)
        for one in METHODS
        if one.name in DEFAULT_METHODS
    ]
    chosen = append_best(pl.concat(answers)).filter(method=CHOSEN)
    return float(chosen["correlation"].fill_null(0.0).mean())  # type: ignore[arg-type]


def test_counted_samples_and_interference_add_up_to_shared_traffic() -> None:
    shared, own, counted = (
        FamilySetting(FAMILIES[0], "busy", (ONE,), **how).draw(3).sets
        for how in ({}, {"is_alone_seen": True}, {"is_counted": True})
    )
    assert own.interference is None
    assert counted.samples.values.tolist() == own.samples.values.tolist()
    assert counted.interference is not None
    assert counted.samples.values + counted.interference == pytest.approx(shared.samples.values)


@pytest.mark.slow
def test_counted_runs_without_drift_or_contention_yield_the_truth() -> None:
    calm = FamilySetting(replace(STILL, contention_size=1e9), "calm", STUDIED, is_counted=True)
    assert likeness(calm, 0) >= 0.99


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_counted_runs_are_at_least_as_good_as_shared_traffic(family: Family) -> None:
    counted, shared = (
        np.mean(
            [likeness(FamilySetting(family, level, is_counted=how), n) for level in FOREIGN_LEVELS for n in range(4)]
        )
        for how in (True, False)
    )
    assert counted >= shared
