"""Jobs on a shared file system: simple cases, invariants, a time-stepped implementation, and FTIO's Figure 17."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.studies.scheduling import simulation
from iosig.studies.scheduling.simulation import (
    UNKNOWN_SET,
    Clairvoyant,
    Fair,
    Job,
    MeanGap,
    Outcome,
    Policy,
    Set10,
    WithError,
    build_job_mix,
    compute_fair_shares,
    compute_ideal_periods,
    compute_set_number,
    draw_figure_17,
    draw_mixed_jobs,
    simulate,
    summarize_outcome,
)
from iosig.transforms.synthetic import contention
from tests.budget import examples
from tests.naive.scheduling import simulation as naive

NAN = math.nan


def job(*phases: tuple[float, float], at: float = 0.0, most: float = math.inf, nodes: float = 1.0) -> Job:
    return Job([compute for compute, _ in phases], [volume for _, volume in phases], at, most, nodes)


def outcome(jobs: list[Job], bandwidth: float, policy: Policy | None = None) -> Outcome:
    return simulate(build_job_mix(jobs), bandwidth, policy or Fair())


def set10(*periods: float) -> Set10:
    return Set10(Clairvoyant(periods))


POLICIES: dict[str, Callable[[int], Policy]] = {
    "fair": lambda count: Fair(),
    "clairvoyant": lambda count: Set10(Clairvoyant([10.0 ** (1 + i % 3) for i in range(count)])),
    "one_set": lambda count: Set10(Clairvoyant([50.0] * count)),
    "unknown": lambda count: Set10(Clairvoyant([NAN] * count)),
    "online": lambda count: Set10(MeanGap()),
    "error": lambda count: Set10(WithError(MeanGap(), np.random.default_rng(7))),
}
every_policy = pytest.mark.parametrize("name", list(POLICIES))


# ---- simple cases


def test_two_simultaneous_jobs_share_equally() -> None:
    found = outcome([job((1, 100)), job((1, 100))], 10)
    assert found.end_s.tolist() == [21, 21]
    assert found.io_slowdown.tolist() == [2, 2]
    assert found.stretch.tolist() == pytest.approx([21 / 11, 21 / 11])


def test_unused_share_goes_to_other_jobs() -> None:
    found = outcome([job((0, 20), most=2), job((0, 80)), job((0, 40))], 10)
    assert found.end_s.tolist() == [10, 14, 10]
    assert found.used_bytes_per_s.tolist() == [10, 10, 0]


def test_later_job_takes_half() -> None:
    found = outcome([job((0, 100)), job((5, 20))], 10)
    assert found.io_start_s.tolist() == [0, 5]
    assert found.io_end_s.tolist() == [12, 9]


def test_jobs_of_a_set_are_served_first_come_first_served() -> None:
    found = outcome([job((2, 100)), job((1, 100)), job((3, 100))], 10, set10(20, 25, 30))
    assert found.served_s.tolist() == [11, 1, 21]
    assert found.io_end_s.tolist() == [21, 11, 31]
    assert found.set_number.tolist() == [1, 1, 1]


def test_simultaneous_jobs_of_a_set_are_served_by_number() -> None:
    assert outcome([job((1, 10)), job((1, 10))], 10, set10(20, 20)).io_end_s.tolist() == [2, 3]


def test_sets_share_by_priority() -> None:
    found = outcome([job((0, 101)), job((0, 1000))], 1, set10(10, 1000))
    assert found.set_number.tolist() == [1, 3]
    assert found.io_end_s.tolist() == pytest.approx([101 * 1.01, 1101])


def test_unused_share_of_a_set_goes_to_other_sets() -> None:
    found = outcome([job((0, 30), most=3), job((0, 70))], 10, set10(10, 1000))
    assert found.io_end_s.tolist() == pytest.approx([10, 10])


def test_unknown_periods_form_the_lowest_set() -> None:
    found = outcome([job((0, 100)), job((0, 100)), job((0, 100))], 11, set10(100, NAN, NAN))
    assert found.set_number.tolist() == [2, UNKNOWN_SET, UNKNOWN_SET]
    assert found.io_end_s.tolist() == pytest.approx([10, 10 + 90 / 11, 20 + 80 / 11])


def test_unknown_periods_get_all_bandwidth_if_no_period_is_known() -> None:
    assert outcome([job((0, 100))], 10, set10(NAN)).end_s.tolist() == [10]


def test_sets_with_extreme_periods_are_not_starved() -> None:
    found = outcome([job((0, 10)), job((0, 10)), job((1, 10))], 1, set10(1e-300, 1e300, NAN))
    assert found.io_end_s.tolist() == pytest.approx([10, 21, 30])


def test_period_is_queried_only_for_phases_with_io() -> None:
    heard: list[float] = []

    class Deaf(MeanGap):
        def period_s(self, job: int, now_s: float) -> float | None:
            heard.append(now_s)
            return None

    found = outcome([job((2, 0), (0, 0), (0, 10), (0, 10), (3, 0)), Job([], [], 4), job((0, 0))], 10, Set10(Deaf()))
    assert found.end_s.tolist() == [7, 4, 0]
    assert found.io_end_s.tolist() == [2, 2, 3, 4, 7, 0]
    assert heard == [2, 3]
    assert found.stretch.tolist()[0] == 1
    assert np.isnan(found.stretch[1:]).all()
    assert np.isnan(found.set_number).tolist() == [True, True, False, False, True, True]


def test_empty_input_has_no_outcome() -> None:
    found = outcome([], 1)
    assert found.end_s.size == found.io_end_s.size == 0
    assert math.isnan(summarize_outcome(found).stretch)
    assert math.isnan(summarize_outcome(found).utilization)


def test_measures_match_hand_computed_values() -> None:
    found = outcome([job((10, 100), nodes=3), job((10, 100)), job((5, 0), nodes=5)], 10)
    assert found.stretch.tolist() == [1.5, 1.5, 1]
    assert summarize_outcome(found).stretch == pytest.approx(1.5 ** (2 / 3))
    assert summarize_outcome(found).io_slowdown == pytest.approx(2)
    assert summarize_outcome(found).utilization == pytest.approx((30 + 10 + 25) / (90 + 30 + 25))


# ---- sources of periods


@pytest.mark.parametrize(
    ("period", "expected"),
    [(19.2, 1), (384, 3), (1, 0), (0.02, -2), (3.1, 0), (3.2, 1), (31, 1), (32, 2), (None, math.inf)],
)
def test_sets_are_orders_of_magnitude(period: float | None, expected: float) -> None:
    assert compute_set_number(period) == expected


def test_mean_gap_averages_intervals_between_starts() -> None:
    source = MeanGap()
    answers = []
    for began in (0.0, 10.0, 40.0):
        answers.append(source.period_s(3, began))
        source.record_phase(3, began, began + 1, 5)
    answers.append(source.period_s(3, 50))
    assert source.period_s(2, 50) is None
    assert answers == [None, None, 10, 20]


def test_error_is_drawn_for_each_answer() -> None:
    source = WithError(Clairvoyant([100.0, NAN]), np.random.default_rng(1))
    answers = [source.period_s(0, 0) for _ in range(200)]
    assert set(answers) == {50.0, 150.0}
    assert 60 < answers.count(50.0) < 140
    assert source.period_s(1, 0) is None


def test_source_receives_ends_before_queries_at_starts() -> None:
    told: list[tuple[str, int, float]] = []

    class Listener(MeanGap):
        def period_s(self, job: int, now_s: float) -> float | None:
            told.append(("asked", job, now_s))
            return super().period_s(job, now_s)

        def record_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
            told.append((f"{io_start_s:g}+{volume_bytes:g}", job, io_end_s))
            super().record_phase(job, io_start_s, io_end_s, volume_bytes)

    found = outcome([job((3, 10)), job((1, 20), (1, 20), (1, 20))], 10, Set10(Listener()))
    assert told[:5] == [("asked", 1, 1), ("1+20", 1, 3), ("asked", 0, 3), ("3+10", 0, 4), ("asked", 1, 4)]
    assert found.set_number.tolist() == [math.inf, math.inf, math.inf, 0]


# ---- invariants


amounts = st.tuples(st.floats(0, 30), st.floats(0, 40))
drawn_jobs = st.lists(
    st.builds(
        lambda phases, at, most, nodes: job(*phases, at=at, most=most, nodes=nodes),
        st.lists(amounts, max_size=5),
        st.floats(-5, 30),
        st.sampled_from([0.25, 1.0, 2.0, math.inf]),
        st.integers(1, 9),
    ),
    max_size=6,
)


@pytest.mark.slow
@every_policy
@settings(max_examples=examples(25), deadline=None)
@given(jobs=drawn_jobs)
def test_bandwidth_volume_and_exclusive_sets_are_respected(name: str, jobs: list[Job]) -> None:
    bandwidth = 2.0
    found = outcome(jobs, bandwidth, POLICIES[name](len(jobs)))
    volume = sum(float(np.sum(one.io_bytes)) for one in jobs)
    moved = float(found.used_bytes_per_s[:-1] @ np.diff(found.used_at_s)) if found.used_at_s.size else 0.0
    assert moved == pytest.approx(volume, rel=1e-9, abs=1e-9)
    assert np.all(found.used_bytes_per_s <= bandwidth * (1 + 1e-12))
    assert np.all((found.io_start_s <= found.served_s) & (found.served_s <= found.io_end_s))
    assert np.nanmin(found.stretch, initial=1.0) >= 1 - 1e-9
    assert found.end_s - found.start_s == pytest.approx(found.compute_s + found.io_s, abs=1e-9)
    again = outcome(jobs, bandwidth, POLICIES[name](len(jobs)))
    assert all(np.array_equal(getattr(found, f.name), getattr(again, f.name), equal_nan=True) for f in fields(found))
    for number in set(found.set_number[~np.isnan(found.set_number)].tolist()):
        inside = np.flatnonzero(found.set_number == number)
        spans = sorted(zip(found.served_s[inside].tolist(), found.io_end_s[inside].tolist(), strict=True))
        assert all(ceased <= served for (_, ceased), (served, _) in pairwise(spans))


@every_policy
@settings(max_examples=examples(25), deadline=None)
@given(phases=st.lists(amounts, min_size=1, max_size=20), at=st.floats(-1e6, 1e6), most=st.floats(0.01, 100))
def test_single_job_is_not_slowed(name: str, phases: list[tuple[float, float]], at: float, most: float) -> None:
    found = outcome([job((1, 1), *phases, at=at, most=most)], 3.0, POLICIES[name](1))
    assert found.stretch.tolist() == [1.0]
    assert found.io_slowdown.tolist() == [1.0]


@every_policy
def test_jobs_that_never_overlap_are_not_slowed(name: str) -> None:
    found = outcome([job((0.1, 0.7), (9.3, 0.7), at=i) for i in range(4)], 1.0, POLICIES[name](4))
    assert found.stretch.tolist() == [1.0] * 4


@settings(max_examples=examples(20), deadline=None)
@given(phases=st.lists(amounts, min_size=1, max_size=5), count=st.integers(1, 6), other=drawn_jobs)
def test_equal_jobs_end_simultaneously(phases: list[tuple[float, float]], count: int, other: list[Job]) -> None:
    found = outcome([*other, *[job(*phases)] * count], 2.0)
    assert len(set(found.end_s[-count:].tolist())) == 1


def test_fair_sharing_is_independent_of_job_order() -> None:
    mix = draw_mixed_jobs(np.random.default_rng(4), 8, duration_s=500)
    jobs = [
        Job(mix.compute_s[a:b], mix.io_bytes[a:b], mix.start_s[i], 4e8)
        for i, (a, b) in enumerate(pairwise(mix.offsets.tolist()))
    ]
    there, back = outcome(jobs, 1e9), outcome(jobs[::-1], 1e9)
    assert there.end_s == pytest.approx(back.end_s[::-1])


# ---- other implementations


@pytest.mark.parametrize("name", ["fair", "clairvoyant", "one_set", "unknown", "some"])
@pytest.mark.parametrize("seed", [1, 2])
def test_simulation_matches_time_stepped_implementation(name: str, seed: int) -> None:
    rng, step_s = np.random.default_rng(seed), 0.004
    jobs = [
        job(*zip(rng.uniform(0.5, 4, 3), rng.uniform(1, 6, 3), strict=True), at=rng.uniform(0, 3), most=most)
        for most in (2.0, 0.5, 1.0, 9.0)
    ]
    periods = {"fair": [], "clairvoyant": [10.0, 100, 10, 1000], "one_set": [9.0] * 4, "unknown": [NAN] * 4}
    known = periods.get(name, [10.0, NAN, 100, NAN])
    found = outcome(jobs, 2.0, Set10(Clairvoyant(known)) if known else Fair())
    slow = [
        naive.Job(one.start_s, one.max_bytes_per_s, list(zip(one.compute_s, one.io_bytes, strict=True))) for one in jobs
    ]
    for one, period in zip(slow, known, strict=False):
        one.period_s = None if math.isnan(period) else period
    expected = [span for spans in naive.simulate(slow, 2.0, step_s, set10=bool(known)) for span in spans]
    # Late by at most a step at each start and end of a phase.
    late_s = 2 * len(expected) * step_s
    assert found.io_start_s == pytest.approx([began for began, _ in expected], abs=late_s)
    assert found.io_end_s == pytest.approx([ceased for _, ceased in expected], abs=late_s)


@settings(max_examples=examples(50), deadline=None)
@given(
    drawn=st.lists(st.tuples(st.sampled_from([1.0, 0.1, 0.01, 1e-4]), st.floats(0.01, 20)), min_size=1, max_size=8),
    total=st.floats(0.1, 50),
)
def test_fair_shares_match_naive_implementation(drawn: list[tuple[float, float]], total: float) -> None:
    weights, most = (np.array(column) for column in zip(*drawn, strict=True))
    found = compute_fair_shares(weights, most, total)
    assert found == pytest.approx(naive.filled(weights.tolist(), most.tolist(), total), rel=1e-6, abs=1e-9)
    assert found.sum() == pytest.approx(min(total, most.sum()))


def test_fair_sharing_matches_the_contention_model() -> None:
    mix = replace(draw_figure_17(np.random.default_rng(3), cycles=2), max_bytes_per_s=np.linspace(1e8, 1e9, 16))
    found = simulate(mix, 1e9, Fair())
    chains = contention.Chains(
        mix.start_s,
        mix.offsets,
        mix.compute_s,
        mix.io_bytes,
        mix.max_bytes_per_s[mix.job_of_phase],
        np.ones(mix.io_bytes.size),
        np.zeros(mix.io_bytes.size, dtype=np.int64),
    )
    shared = contention.simulate_sharing(chains, contention.SharedBandwidth(1e9), 1e4)
    assert found.io_end_s == pytest.approx(shared.end_s, abs=1e-3)


# ---- workloads


def test_figure_17_workload_equals_the_paper() -> None:
    mix = draw_figure_17(np.random.default_rng(1))
    periods = compute_ideal_periods(mix, 1e9)
    assert periods[0] == pytest.approx(19.2, rel=0.01)
    assert periods[1:] == pytest.approx([384.0] * 15, rel=0.04)
    assert np.diff(mix.offsets).tolist() == [200] + [10] * 15
    io_s = np.bincount(mix.job_of_phase, mix.io_bytes) / 1e9
    assert io_s == pytest.approx([240.0] * 16)
    assert len(set(mix.start_s.tolist())) == 16


@pytest.mark.parametrize("seed", [0, 1])
def test_set10_saves_as_much_as_figure_17_reports(seed: int) -> None:
    mix = draw_figure_17(np.random.default_rng(seed))
    fair = summarize_outcome(simulate(mix, 1e9, Fair()))
    clairvoyant = summarize_outcome(simulate(mix, 1e9, Set10(Clairvoyant(compute_ideal_periods(mix, 1e9)))))
    online = summarize_outcome(simulate(mix, 1e9, Set10(MeanGap())))
    assert online.io_slowdown < 0.6 * fair.io_slowdown
    assert online.stretch < 1.05 * clairvoyant.stretch
    assert online.stretch < 0.95 * fair.stretch
    assert online.utilization > 1.05 * fair.utilization


def test_ideal_periods_count_only_io_phases() -> None:
    mix = build_job_mix([job((1, 4), (5, 0), (5, 2)), job((1, 1)), job((0, 1), (3, 1), (5, 1), most=1)])
    assert compute_ideal_periods(mix, 2.0) == pytest.approx([12, NAN, 5], nan_ok=True)


def test_mixed_jobs_have_the_specified_distribution() -> None:
    mix = draw_mixed_jobs(np.random.default_rng(2), 300)
    periods = compute_ideal_periods(mix, 1e9)
    assert 8 < periods.min() < 14
    assert 7000 < periods.max() < 11000
    wanted = np.bincount(mix.job_of_phase, mix.io_bytes) / 1e9
    assert (wanted / np.diff(mix.offsets) / periods).sum() == pytest.approx(1.0, rel=0.08)
    assert set(mix.node_count.tolist()) == {2.0**power for power in range(9)}
    runs_s = periods * np.diff(mix.offsets)
    assert 6000 < runs_s.min() < runs_s.max() < 21_000
    assert np.diff(mix.offsets).min() == 2


def test_workloads_are_determined_by_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    one, same, other = (draw_figure_17(np.random.default_rng(seed), cycles=2) for seed in (1, 1, 2))
    assert np.array_equal(one.compute_s, same.compute_s)
    assert not np.array_equal(one.compute_s, other.compute_s)
    monkeypatch.setattr(simulation, "_JITTER_RATIO", 0.0)
    monkeypatch.setattr(simulation, "_OFFSET_RATIO", 0.0)
    still = draw_figure_17(np.random.default_rng(1), cycles=2)
    assert compute_ideal_periods(still, 1e9) == pytest.approx([19.2] + [384.0] * 15)
    assert not still.start_s.any()
