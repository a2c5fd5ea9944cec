"""Advice: exact cases, properties, naive implementation, and invalid input."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.advice import (
    MAX_STEPS,
    AdviceParams,
    Choice,
    Method,
    Partition,
    RunningApplication,
    advise,
)
from iosig.transforms.demands import Demand, draw_standard_normal
from tests.budget import examples
from tests.naive import advice as naive

Reals = npt.NDArray[np.float64]

#: Parameters without uncertainty.
SURE = AdviceParams(step_s=1.0, max_delay_s=100.0, drift_ratio=0.0, start_error_s=0.0, sample_count=1, lag_rounds=0)
CAPACITY = 8.0


def square(period: int, busy: int, count: int, peak: float = 1.0) -> Demand:
    """A square wave that begins with its burst, in steps of a second."""
    return Demand(np.where(np.arange(count) % period < busy, peak, 0.0), 1.0)


def constant(rate: float, name: str = "any", capacity: float = CAPACITY) -> Partition:
    return Partition(name, capacity, rate)


# ---- closed forms


@pytest.mark.parametrize("busy", [1, 20, 50, 70, 100])
def test_equal_waves_contend_where_they_overlap(busy: int) -> None:
    running = RunningApplication("twin", square(100, busy, 2000), 0.0)
    asked = replace(SURE, delay_step_s=1.0, min_saving_ratio=1.0)
    advice = advise(square(100, busy, 1000), [Partition("one", 1.0, 0.0, (running,))], asked)
    delays = np.arange(101)
    overlap = np.maximum(busy - delays, 0) + np.maximum(busy - (100 - delays), 0)
    np.testing.assert_allclose(advice.contended_bytes[0], 10 * overlap, atol=1e-6)
    (now,), (best,) = advice.without_delay, advice.with_delay
    assert now.contended_bytes == pytest.approx(10 * busy)
    assert best.contended_bytes == pytest.approx(10 * max(0, 2 * busy - 100), abs=1e-6)
    assert now.own_contended_bytes == pytest.approx(5 * busy)
    assert now.stretch == pytest.approx(1 + busy / 100), "half the rate for all of each burst"
    assert now.met_load_ratio == pytest.approx(1.0)


def test_shortest_sufficient_delay_is_offered() -> None:
    running = RunningApplication("twin", square(100, 20, 2000), 0.0)
    asked = replace(SURE, delay_step_s=10.0, min_saving_ratio=1.0)
    (best,) = advise(square(100, 20, 1000), [Partition("one", 1.0, 0.0, (running,))], asked).with_delay
    assert (best.delay_s, best.contended_bytes, best.stretch) == (20.0, 0.0, 1.0)


def test_position_of_a_run_shifts_the_best_delay() -> None:
    running = RunningApplication("twin", square(100, 20, 2000), 510.0)
    (best,) = advise(square(100, 20, 500), [Partition("one", 1.0, 0.0, (running,))], SURE).with_delay
    assert (best.delay_s, best.contended_bytes) == (10.0, 0.0)


def test_finished_and_future_runs_demand_nothing() -> None:
    over, later = (
        RunningApplication("over", square(1, 1, 50, 100.0), 50.0),
        RunningApplication("later", square(1, 1, 50, 100.0), -500.0),
    )
    choice = advise(square(2, 1, 100), [Partition("one", 1.0, 0.0, (over, later))], SURE).without_delay[0]
    assert (choice.contended_bytes, choice.met_load_ratio) == (0.0, 0.0)


def test_delay_waits_for_a_run_to_end() -> None:
    ending = RunningApplication("ending", square(1, 1, 1000), 960.0)
    (best,) = advise(square(1, 1, 100), [Partition("one", 1.0, 0.0, (ending,))], SURE).with_delay
    assert (best.delay_s, best.contended_bytes) == (40.0, 0.0)


def test_background_continues_at_its_mean() -> None:
    demand = square(1, 1, 50, 6.0)
    assert advise(demand, [constant(2.0)], SURE).without_delay[0].contended_bytes == pytest.approx(0.0)
    assert advise(demand, [constant(4.0)], SURE).without_delay[0].contended_bytes == pytest.approx(2 * 50)
    known = Partition("any", CAPACITY, np.array([8.0] * 10 + [0.0] * 10))
    choice = advise(demand, [known], SURE).without_delay[0]
    assert choice.contended_bytes == pytest.approx(6 * 10 + 2 * 30), "full, empty, then 4 for 30 s"


def test_correlation_and_contention_rank_differently() -> None:
    # Bursts of 5 fit a capacity of 8 with a steady load of 3, but not with bursts of 8 at the same times.
    demand = square(10, 5, 100, 5.0)
    steady = constant(3.0, "steady")
    bursty = Partition(
        "bursty", CAPACITY, 0.0, (RunningApplication("other", Demand(np.tile([0, 0, 0, 0, 8.0] * 2, 50), 1.0), 0),)
    )
    asked: tuple[Method, Method] = ("correlation", "contention")
    first = [advise(demand, [steady, bursty], replace(SURE, method=method)).without_delay[0] for method in asked]
    assert [choice.partition for choice in first] == ["bursty", "steady"]
    assert first[1].contended_bytes == 0.0


def test_delay_cost_limits_the_delay() -> None:
    running = RunningApplication("twin", square(100, 20, 2000), 0.0)
    partition = Partition("one", 1.0, 0.0, (running,))
    delays = [
        advise(square(100, 20, 1000), [partition], replace(SURE, delay_cost_bytes_per_s=cost)).with_delay[0].delay_s
        for cost in (0.0, 9.0, 11.0)
    ]
    assert delays == [20.0, 20.0, 0.0], "each second saves 10 bytes of contention"


def test_tempo_scales_the_remaining_signature() -> None:
    slow = RunningApplication("slow", square(100, 20, 2000), 0.0, 0.0, tempo=0.5)
    advice = advise(square(200, 40, 1000), [Partition("one", 1.0, 0.0, (slow,))], SURE)
    np.testing.assert_allclose(advice.contended_bytes[0][:5], [100, 75, 50, 25, 0], atol=1e-6)


def test_running_applications_delay_each_other() -> None:
    twins = tuple(RunningApplication(name, square(100, 20, 100), 0.0) for name in "ab")
    loads = []
    for rounds in (0, 1, 30):
        asked = replace(SURE, lag_rounds=rounds)
        loads.append(advise(square(2, 1, 10), [Partition("one", 1.0, 0.0, twins)], asked).load_bytes_per_s[0])
    np.testing.assert_allclose(loads[0][:45], [2.0] * 20 + [0.0] * 25)
    np.testing.assert_allclose(loads[1][:45], [1.0] * 20 + [2.0] * 10 + [0.0] * 15)
    np.testing.assert_allclose(loads[2][:45], [1.0] * 40 + [0.0] * 5, atol=1e-6)


def test_demand_slightly_above_capacity_is_accurate() -> None:
    demand = Demand(np.tile([0.7, 1.0], 100), 1.0)
    choice = advise(demand, [constant(0.3, capacity=1.0)], replace(SURE, max_delay_s=0.0)).without_delay[0]
    assert choice.contended_bytes == pytest.approx(0.3 * 100, rel=0.03), "the lower half fits"


# ---- uncertainty


def test_position_error_smears_the_load() -> None:
    running = RunningApplication("twin", square(100, 20, 4000), 200.0)
    partition = Partition("one", 1.0, 0.0, (running,))
    asked = replace(SURE, sample_count=64, start_error_s=30.0)
    smeared = advise(square(100, 20, 1000), [partition], asked)
    sure = advise(square(100, 20, 1000), [partition], SURE)
    assert np.ptp(sure.contended_bytes) == pytest.approx(200)
    assert np.ptp(smeared.contended_bytes) < 100
    now = smeared.without_delay[0]
    assert now.low_contended_bytes <= now.contended_bytes <= now.high_contended_bytes
    assert now.high_contended_bytes - now.low_contended_bytes > 50
    seen = Partition("one", 1.0, 0.0, (replace(running, position_error_s=0.0),))
    again = advise(square(100, 20, 1000), [seen], asked)
    np.testing.assert_allclose(again.contended_bytes, sure.contended_bytes, atol=1e-6)


def test_drift_grows_with_elapsed_time() -> None:
    asked = replace(SURE, sample_count=64, drift_ratio=0.01)
    spans = []
    for elapsed in (0.0, 2000.0):
        running = RunningApplication("twin", square(100, 20, 9000), elapsed)
        spans.append(
            np.ptp(advise(square(100, 20, 300), [Partition("one", 1.0, 0.0, (running,))], asked).contended_bytes)
        )
    assert spans[0] > 1.3 * spans[1]


def test_samples_are_independent_of_partition_order() -> None:
    errors = draw_standard_normal(50, 3, 1)
    np.testing.assert_allclose(errors.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(errors.std(axis=0), 1.0, atol=0.05)
    assert draw_standard_normal(1, 2, 0).tolist() == [[0.0, 0.0]]
    few = [Partition(name, 3.0, 0.5, (RunningApplication(name, square(30, 9, 900), 7.0),)) for name in "abc"]
    demand, asked = square(40, 10, 400, 2.9), AdviceParams(step_s=1.0)
    assert advise(demand, few, asked).without_delay[0].partition == "a", "equal ones by name"
    alone = advise(demand, few[1:2], asked)
    np.testing.assert_array_equal(alone.contended_bytes[0], advise(demand, few[::-1], asked).contended_bytes[1])


# ---- properties

RATES = st.lists(st.sampled_from([0.0, 1.0, 3.0, 5.0, 9.0]), min_size=1, max_size=25)


@st.composite
def partitions(draw: st.DrawFn, name: str = "one") -> Partition:
    runs = draw(st.lists(st.tuples(RATES, st.sampled_from([0.5, 1.0, 3.0]), st.floats(-9, 40)), max_size=3))
    running = tuple(
        RunningApplication(f"{i}", Demand(np.array(rates), step), at) for i, (rates, step, at) in enumerate(runs)
    )
    return Partition(name, draw(st.sampled_from([2.0, 6.0, 11.0])), draw(st.sampled_from([0.0, 1.5])), running)


UNSURE = AdviceParams(
    step_s=1.0, max_delay_s=12.0, delay_step_s=3.0, drift_ratio=0.1, start_error_s=2.0, sample_count=4, lag_rounds=0
)


@settings(max_examples=examples(25), deadline=None)
@given(RATES, partitions())
def test_contended_bytes_are_bounded(rates: list[float], partition: Partition) -> None:
    demand = Demand(np.array(rates), 1.0)
    advice = advise(demand, [partition], UNSURE)
    volume = sum(rates)
    assert advice.contended_bytes.min() >= 0
    assert advice.contended_bytes.max() <= volume * (1 + 1e-6) + 1e-9
    for choice in (*advice.without_delay, *advice.with_delay):
        assert choice.own_contended_bytes + choice.others_contended_bytes == pytest.approx(choice.contended_bytes)
        assert min(choice.own_contended_bytes, choice.others_contended_bytes) >= 0
        assert choice.low_contended_bytes <= choice.contended_bytes <= choice.high_contended_bytes
        assert choice.stretch >= 1
        assert choice.met_load_ratio >= 0
    assert advice.with_delay[0].contended_bytes <= advice.without_delay[0].contended_bytes * (1 + 1e-9) + 1e-9


@settings(max_examples=examples(25), deadline=None)
@given(RATES, partitions())
def test_additional_load_never_helps_and_units_do_not_matter(rates: list[float], one: Partition) -> None:
    demand = Demand(np.array(rates), 1.0)
    result = advise(demand, [one], UNSURE)
    alone = advise(demand, [replace(one, background_bytes_per_s=0.0, running=())], UNSURE)
    assert np.all(alone.contended_bytes <= result.contended_bytes + 1e-6 * (1 + sum(rates)))
    large = advise(replace(demand, bytes_per_s=demand.bytes_per_s * 1e9), [_scaled(one, 1e9)], UNSURE)
    np.testing.assert_allclose(large.contended_bytes, result.contended_bytes * 1e9, rtol=1e-6, atol=1e3)
    assert [choice.delay_s for choice in large.with_delay] == [choice.delay_s for choice in result.with_delay]


def _scaled(partition: Partition, by: float) -> Partition:
    running = tuple(
        replace(each, demand=replace(each.demand, bytes_per_s=each.demand.bytes_per_s * by))
        for each in partition.running
    )
    background = float(np.asarray(partition.background_bytes_per_s)) * by
    return replace(
        partition,
        capacity_bytes_per_s=partition.capacity_bytes_per_s * by,
        background_bytes_per_s=background,
        running=running,
    )


@settings(max_examples=examples(30), deadline=None)
@given(RATES, partitions())
def test_expected_load_preserves_bytes(rates: list[float], partition: Partition) -> None:
    asked = replace(UNSURE, max_delay_s=2000.0, delay_step_s=2000.0, lag_rounds=1)
    late = replace(partition, running=tuple(replace(each, elapsed_s=-30.0) for each in partition.running))
    advice = advise(Demand(np.array(rates), 1.0), [late], asked)
    wanted = sum(float(each.demand.bytes_per_s.sum()) * each.demand.step_s for each in partition.running)
    wanted += float(np.asarray(partition.background_bytes_per_s)) * advice.load_bytes_per_s.shape[1]
    assert advice.load_bytes_per_s.sum() == pytest.approx(wanted)


# ---- the naive implementation


def lines(partition: Partition, params: AdviceParams, count: int) -> list[list[float]]:
    """Background demand by step, with a line per sampled phase."""
    errors = draw_standard_normal(params.sample_count, 2 * len(partition.running), params.seed + 1)
    result = []
    for row in errors:
        load = [float(np.asarray(partition.background_bytes_per_s))] * count
        for number, running in enumerate(partition.running):
            tempo = max(0.5, 1 + params.drift_ratio * row[2 * number + 1])
            place = running.elapsed_s * tempo + params.start_error_s * row[2 * number]
            rates = running.demand.bytes_per_s.tolist()
            one = naive.line(rates, running.demand.step_s, place, tempo, params.step_s, count)
            load = [a + b for a, b in zip(load, one, strict=True)]
        result.append(load)
    return result


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.sampled_from([0.0, 4.0]), min_size=1, max_size=20), partitions())
def test_exact_levels_match_naive_implementation(rates: list[float], partition: Partition) -> None:
    # The phase of the run is certain, so its rates equal the levels; the phases of other runs are uncertain.
    running = tuple(replace(each, tempo_error_ratio=0.1) for each in partition.running)
    params = replace(UNSURE, drift_ratio=0.0)
    partition = replace(partition, running=running)
    advice = advise(Demand(np.array(rates), 1.0), [partition], params)
    result = lines(partition, replace(params, drift_ratio=0.1), len(rates) + 12)
    capacity = partition.capacity_bytes_per_s
    for place, delay in enumerate(range(0, 13, 3)):
        expected = naive.mean([naive.contended(rates, line, capacity, delay, 1.0) for line in result])
        assert advice.contended_bytes[0, place] == pytest.approx(expected, abs=1e-6)
        if sum(rates):
            met = naive.mean([naive.met_load(rates, line, capacity, delay) for line in result])
            assert advice.met_load_ratios[0, place] == pytest.approx(met, abs=1e-9)
    now = advice.without_delay[0]
    assert now.own_contended_bytes == pytest.approx(
        naive.mean([naive.own_contended(rates, line, capacity, 0, 1.0) for line in result]), abs=1e-6
    )
    longer = naive.mean([naive.extra_s(rates, line, capacity, 0, 1.0) for line in result])
    assert now.stretch == pytest.approx(1 + longer / len(rates))


@settings(max_examples=examples(20), deadline=None)
@given(partitions())
def test_delayed_loads_match_naive_implementation(partition: Partition) -> None:
    advice = advise(Demand(np.ones(30), 1.0), [partition], replace(SURE, lag_rounds=1, max_delay_s=0.0))
    runs = [(each.demand.bytes_per_s.tolist(), each.demand.step_s, each.elapsed_s, 1.0) for each in partition.running]
    background = float(np.asarray(partition.background_bytes_per_s))
    expected = naive.late_load(runs, background, partition.capacity_bytes_per_s, 1.0, 30)
    np.testing.assert_allclose(advice.load_bytes_per_s[0], expected, atol=1e-6)


@settings(max_examples=examples(15), deadline=None)
@given(RATES, partitions())
def test_expectation_is_near_naive_implementation(rates: list[float], partition: Partition) -> None:
    params = replace(UNSURE, level_count=64)
    advice = advise(Demand(np.array(rates), 1.0), [partition], params)
    tempos = [max(0.5, 1 + params.drift_ratio * error) for error in draw_standard_normal(4, 1, params.seed)[:, 0]]
    count = int(np.ceil(len(rates) / min(tempos) - 1e-9))
    own = [naive.line(rates, 1.0, 0.0, tempo, 1.0, count) for tempo in tempos]
    capacity = partition.capacity_bytes_per_s
    for place, delay in ((0, 0), (4, 12)):
        pairs = product(own, lines(partition, params, count + 12))
        expected = naive.mean([naive.contended(mine, line, capacity, delay, 1.0) for mine, line in pairs])
        assert advice.contended_bytes[0, place] == pytest.approx(expected, rel=0.01, abs=0.01 * (1 + sum(rates)))


# ---- invalid input and extreme sizes


@pytest.mark.parametrize(
    "wrong",
    [
        {"step_s": 0.0}, {"max_delay_s": -1.0}, {"delay_step_s": 0.0}, {"drift_ratio": np.nan}, {"sample_count": 0},
        {"level_count": 0}, {"lag_rounds": -1}, {"min_saving_ratio": 0.0}, {"start_error_s": np.inf},
        {"method": "guess"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_invalid_params_raise(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        advise(square(2, 1, 9), [constant(0.0)], replace(SURE, **wrong))  # type: ignore[arg-type]


def test_invalid_demands_and_partitions_raise() -> None:
    fine = square(2, 1, 9)
    for demand in (
        Demand(np.array([]), 1.0),
        Demand(np.array([np.nan]), 1.0),
        Demand(np.array([-1.0]), 1.0),
        replace(fine, step_s=0.0),
    ):
        with pytest.raises(ValueError, match="demand"):
            advise(demand, [constant(0.0)], SURE)
        with pytest.raises(ValueError, match="demand"):
            advise(fine, [Partition("one", 1.0, 0.0, (RunningApplication("bad", demand, 0.0),))], SURE)
    with pytest.raises(ValueError, match="capacity"):
        advise(fine, [constant(0.0, capacity=0.0)], SURE)
    with pytest.raises(ValueError, match="background"):
        advise(fine, [constant(np.nan)], SURE)
    with pytest.raises(ValueError, match="position"):
        advise(fine, [Partition("one", 1.0, 0.0, (RunningApplication("bad", fine, np.nan),))], SURE)
    for few in ([], [constant(0.0), constant(1.0)]):
        with pytest.raises(ValueError, match="partition"):
            advise(fine, few, SURE)


def test_application_without_io_fits_anywhere() -> None:
    demand = Demand(np.zeros(20), 1.0)
    (choice,) = advise(demand, [constant(9.0)], AdviceParams()).with_delay
    assert choice == Choice("any", 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-9, 1e150])
@pytest.mark.filterwarnings("error")
def test_extreme_rates_do_not_overflow(scale: float) -> None:
    runs = (
        RunningApplication("none", Demand(np.zeros(50), 1.0), 0.0),
        RunningApplication("twin", square(10, 5, 50, scale), 0.0),
    )
    result = advise(square(10, 5, 50, scale), [Partition("one", 1.0, 0.0, runs), constant(0.0)], AdviceParams())
    assert np.all(np.isfinite(result.contended_bytes))
    assert result.with_delay[0].contended_bytes <= result.without_delay[0].contended_bytes


def test_long_signature_has_coarser_grid() -> None:
    demand = square(3600, 300, 2_600_000)
    advice = advise(demand, [constant(0.5, capacity=1.0)], AdviceParams(sample_count=2))
    assert advice.load_bytes_per_s.shape[1] <= MAX_STEPS + 1
    assert advice.step_s > 30
    np.testing.assert_allclose(advice.contended_bytes[0, 0] * 2, demand.bytes_per_s.sum(), rtol=0.2)
