"""Online prediction: strategies, changes, tentative periods, batching, and resumption."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.predictions.predictor import (
    STRATEGIES,
    Answer,
    Due,
    OnlineParams,
    Predictor,
    evaluate,
    finite_or_none,
)
from iosig.transforms.throughput.requests import Requests
from tests.naive.predictions import predictor as naive
from tests.online_runs import add_phase, changing, hacc_like, plant_phases, predicted


def steady(count: int = 12, period_s: float = 8.0):
    onsets = 2.0 + period_s * np.arange(count)
    return plant_phases(onsets, np.full(count, 0.25 * period_s), np.random.default_rng(7))


# ---- predicted periods


@pytest.mark.slow
def test_ended_periodicity_is_rejected():
    rng = np.random.default_rng(5)
    claims = []
    for _ in range(4):
        gaps = np.concatenate([20 * (1 + 0.02 * rng.standard_normal(15)), 3 + rng.exponential(17, 10)])
        onsets = 6.0 + np.concatenate([[0.0], np.cumsum(gaps)])
        _, evaluations = predicted(plant_phases(onsets, np.full(len(onsets), 3.0), rng))
        assert all(each.answer.outcome == "periodic" for each in evaluations[6:15])
        claims.append(sum(each.answer.outcome == "periodic" for each in evaluations[16:24]))
    assert np.mean(claims) <= 2


@pytest.mark.parametrize(("even_count", "outcome"), [(8, "aperiodic"), (7, "periodic")])
def test_tolerance_derives_from_earlier_gaps(even_count: int, outcome: str):
    onsets = np.cumsum([0.0, *[20.0] * even_count, *[25.0] * 4])
    predictor = Predictor(OnlineParams())
    predictor.observed = list(pairwise(onsets.tolist()))
    answer = Answer(0.0, 300.0, 1.0, 300, "null_tested", "periodic", 0.05, 0.85, 1e-6)
    assert predictor.reject_unsupported_period(answer).outcome == outcome


def test_single_late_phase_is_tolerated():
    gaps = np.full(20, 20.0)
    gaps[12] = 26.0
    onsets = 6.0 + np.concatenate([[0.0], np.cumsum(gaps)])
    _, evaluations = predicted(plant_phases(onsets, np.full(len(onsets), 3.0), np.random.default_rng(5)))
    assert all(each.answer.period_s is not None for each in evaluations[6:])


def test_hit_record_survives_restart():
    predictor, evaluations = predicted(steady())
    assert evaluations[-1].hit_probability is not None
    assert evaluations[0].hit_probability is None
    again = Predictor.from_state(predictor.params, *predictor.to_state())
    assert again.hits == predictor.hits
    older, content = predictor.to_state()
    del older["hits"]
    assert Predictor.from_state(predictor.params, older, content).hits.count == 0


@pytest.mark.parametrize("strategy", ["all", "adaptive"])
def test_hacc_like_run_is_predicted_after_third_phase(strategy):
    errors = []
    for seed in range(2):
        run = hacc_like(seed)
        _, evaluations = predicted(run, OnlineParams(strategy=strategy))
        periods = [each.answer.period_s for each in evaluations[3:]]
        assert all(period is not None for period in periods)
        typical = run.gaps_s[1:].mean()
        errors += [abs(period - typical) / typical for period in periods]
    assert np.mean(errors) < 0.05


@pytest.mark.parametrize("seed", [0, 1])
def test_published_method_predicts_as_in_the_paper(seed):
    """FTIO, section III-B: "the average obtained period is 8.66 s"; the 8th prediction is of 8 s (71.1 - 3 * 8 s).

    The window begins with the first phase, which is late; from the 5th prediction on it has three periods.
    """
    run = hacc_like(seed)
    _, evaluations = predicted(run, OnlineParams(method="dft", strategy="periods"))
    periods = [each.answer.period_s for each in evaluations]
    assert evaluations[3].answer.window_start_s == pytest.approx(run.onset_s[0], abs=0.05)
    assert np.mean(periods[1:]) == pytest.approx(8.66, rel=0.05)
    assert periods[7:] == pytest.approx([8.0] * 3, rel=0.02)


@pytest.mark.parametrize("period_s", [200.0, 0.2])
@pytest.mark.parametrize("ratio", [2.0, 0.5])
def test_period_change_is_detected_within_three_periods(period_s, ratio):
    run = changing(3, period_s, ratio)
    _, evaluations = predicted(run)
    changed = [number for number, each in enumerate(evaluations) if each.change]
    assert len(changed) == 1
    assert 21 <= changed[0] <= 23
    change = evaluations[changed[0]]
    assert change.change_s == pytest.approx(run.onset_s[20], abs=0.05 * period_s)
    assert change.change.octaves == pytest.approx(math.log2(ratio), abs=0.3)
    assert change.answer.window_start_s >= change.change_s
    assert evaluations[-1].answer.period_s == pytest.approx(ratio * period_s, rel=0.05)
    assert evaluations[-1].transition is None
    causes = [each.transition.cause for each in evaluations if each.transition]
    assert causes == ["first_found", "change_point_up" if ratio > 1 else "change_point_down"]


def test_constant_period_gives_no_change():
    assert not any(each.change for each in predicted(changing(5, 10.0, 1.0))[1])


def test_tentative_period_needs_agreeing_gaps():
    run = changing(1, 10.0, 1.0, counts=(4, 0), jitter=0.02)
    assert [each.answer.outcome for each in predicted(run)[1]][:3] == ["aperiodic", "aperiodic", "tentative"]
    third = predicted(run)[1][2]
    assert third.answer.method == "phases"
    assert third.answer.period_s == pytest.approx(run.gaps_s[:2].mean(), rel=0.01)
    assert 0.9 < third.answer.confidence <= 1
    never = predicted(run, OnlineParams(agreeing_gap_count=0))[1]
    assert never[2].answer.outcome == "aperiodic"
    # Two of six gaps agree, as may happen by chance.
    chance = plant_phases(np.array([1.0, 4.0, 30.0, 47.0, 50.5, 61.0, 71.5]), np.full(7, 1.0), np.random.default_rng(1))
    assert predicted(chance)[1][-1].answer.outcome == "aperiodic"
    uneven = plant_phases(np.array([1.0, 4.0, 30.0]), np.full(3, 1.0), np.random.default_rng(1))
    assert predicted(uneven)[1][-1].answer.outcome == "aperiodic"


def test_bytes_count_once_and_next_burst_is_predicted():
    run = steady()
    _, evaluations = predicted(run)
    last = evaluations[-1]
    assert last.volume_bytes == run.start_s.size * 1e7
    assert last.request_count == run.start_s.size
    assert last.phase_count == run.phase_count
    assert last.last_phase_start_s == pytest.approx(run.onset_s[-1], abs=0.05)
    assert last.burst.start_s == pytest.approx(run.onset_s[-1] + 8.0, abs=0.2)
    assert last.burst.volume_bytes == pytest.approx(16e7, rel=0.02)
    assert 0 < last.probability <= 1
    assert last.periods.shortest_s <= last.answer.period_s <= last.periods.longest_s


def test_next_burst_uses_phases_since_change():
    run = changing(6, 10.0, 2.0, counts=(15, 12), jitter=0.02)
    _, evaluations = predicted(run)
    at = next(number for number, each in enumerate(evaluations) if each.change)
    foreseen = np.array([each.burst.start_s for each in evaluations[at:-1]])
    assert np.abs(foreseen - run.onset_s[at + 1 :]).max() < 2.0


# ---- windows


def test_window_follows_strategy():
    run = steady()
    whole = predicted(run, OnlineParams(strategy="all"))[1][-1].answer
    assert whole.window_start_s == 0
    assert whole.window_end_s == pytest.approx(run.end_s.max(), abs=0.05)
    fixed = predicted(run, OnlineParams(strategy="fixed", window_s=30.0))[1][-1].answer
    assert fixed.window_end_s - fixed.window_start_s == pytest.approx(30.0, abs=0.1)
    assert predicted(run)[1][-1].answer.window_start_s == 0


def test_window_of_periods_shrinks_after_k_hits():
    """FTIO, section III-B: "we only kept the data between 23.1 s (47.4 - 3 * 8.1 = 23.1 s) and 47.4 s"."""
    run = steady()
    _, evaluations = predicted(run, OnlineParams(method="dft", strategy="periods"))
    is_found = [each.answer.outcome == "periodic" for each in evaluations]
    third = int(np.flatnonzero(np.cumsum(is_found) == 3)[0])
    answer = evaluations[third].answer
    assert answer.window_start_s == run.start_s.min()
    expected = run.end_s[third].max() - 3 * answer.period_s
    begins = [each.answer.window_start_s for each in evaluations[third + 1 : third + 4]]
    assert begins == pytest.approx([expected] * 3, abs=0.05)


@pytest.mark.parametrize("method", ["null_tested", "dft", "autocorrelation", "merged", "autoperiod"])
def test_answer_matches_full_recomputation(method):
    run = changing(2, 3.0, 1.5, counts=(6, 4))
    params = OnlineParams(method=method, strategy="all", most_samples=256, agreeing_gap_count=0)
    _, evaluations = predicted(run, params)
    for phase, each in enumerate(evaluations):
        began, ceased = run.start_s[: phase + 1].ravel(), run.end_s[: phase + 1].ravel()
        is_ftio = method in ("dft", "autocorrelation", "merged")
        origin_s = began.min() if is_ftio else 0.0
        start_s, hz, count = naive.grid(origin_s, ceased.max(), params.finest_s, params.most_samples)
        if is_ftio:
            start_s, count = naive.io_time(began, ceased, np.full(len(began), 1e7), start_s, hz, count)
        answer = each.answer
        assert (answer.window_start_s, answer.sampling_hz, answer.sample_count) == (start_s, hz, count)
        outcome, period = naive.answer(began, ceased, np.full(len(began), 1e7), start_s, hz, count, method)
        assert answer.outcome == outcome
        assert answer.period_s == (None if period is None else pytest.approx(period, rel=1e-6))


def test_epoch_clock_starts_at_first_request():
    run = steady()
    shifted = plant_phases(run.onset_s + 1.7e9, np.full(12, 2.0), np.random.default_rng(7))
    answer = predicted(shifted)[1][-1].answer
    assert answer.window_start_s == pytest.approx(shifted.start_s.min(), abs=0.05)
    assert answer.period_s == pytest.approx(8.0, rel=0.02)


# ---- batches, states


def _key(each):
    return (each.number, each.answer, each.probability, each.volume_bytes, each.state, str(each.burst), each.change_s)


def test_batch_matches_single_evaluations():
    runs = [changing(seed, 3.0 + seed, 0.5, counts=(6, 4)) for seed in range(3)]
    alone = [[_key(each) for each in predicted(run)[1]] for run in runs]
    predictors = [Predictor() for _ in runs]
    together: list[list] = [[] for _ in runs]
    for phase in range(10):
        for predictor, run in zip(predictors, runs, strict=True):
            add_phase(predictor, run, phase)
        due = [Due(each, float(run.end_s[phase].max())) for each, run in zip(predictors, runs, strict=True)]
        for place, each in enumerate(evaluate(due)):
            together[place].append(_key(each))
    assert together == alone
    assert evaluate([]) == []


@settings(max_examples=4, deadline=None)
@given(st.sampled_from(STRATEGIES), st.integers(0, 1000), st.sampled_from(["null_tested", "dft"]))
def test_predictor_resumes_from_state(strategy, seed, method):
    params = OnlineParams(method=method, strategy=strategy, window_s=40.0 if strategy == "fixed" else None)
    run = changing(seed, 5.0, 2.0, counts=(6, 5))
    expected = [_key(each) for each in predicted(run, params)[1]]
    predictor, evaluations = Predictor(params), []
    for phase in range(run.phase_count):
        add_phase(predictor, run, phase)
        evaluations += [_key(each) for each in evaluate([Due(predictor, float(run.end_s[phase].max()))])]
        plain, content = predictor.to_state()
        predictor = Predictor.from_state(params, json.loads(json.dumps(plain)), content)
    assert evaluations == expected


# ---- restarts, gaps and ends of a run


def test_restart_resets_all_but_evaluation_count():
    run = steady()
    predictor, evaluations = predicted(run)
    predictor.restart()
    add_phase(predictor, run, 0)
    (first,) = evaluate([Due(predictor, float(run.end_s[0].max()))])
    assert first.number == evaluations[-1].number + 1
    assert first.answer.outcome == "aperiodic"
    assert first.volume_bytes == 16e7


def test_start_window_keeps_only_byte_totals():
    run = steady()
    predictor, _ = predicted(run)
    later = plant_phases(run.onset_s + 1e6, np.full(12, 2.0), np.random.default_rng(1))
    predictor.start_window(float(later.start_s.min()))
    add_phase(predictor, later, 0)
    (evaluations,) = evaluate([Due(predictor, float(later.end_s[0].max()), "gap")])
    assert evaluations.answer.window_start_s >= later.start_s.min()
    assert evaluations.volume_bytes == 13 * 16e7
    assert evaluations.state == "gap"


def test_predicted_periods_reveal_changes_without_phases():
    run = changing(4, 10.0, 2.0, counts=(30, 40))
    params = OnlineParams(observed="predictions", strategy="adaptive")
    _, evaluations = predicted(run, params)
    assert not any(each.answer.outcome == "tentative" for each in evaluations)
    changed = [number for number, each in enumerate(evaluations) if each.change]
    assert changed
    assert changed[0] > 30
    assert evaluations[-1].answer.period_s == pytest.approx(20.0, rel=0.05)


def test_end_is_the_last_state():
    predictor, _ = predicted(steady())
    (evaluations,) = evaluate([Due(predictor, 120.0, "end")])
    assert (evaluations.state, evaluations.transition.cause) == ("end", "end")


def test_unmeasured_polls_are_unknown():
    predictor = Predictor(OnlineParams(finest_s=2.0, observed="predictions"))
    edges = 2.0 * np.arange(200)
    is_io = (np.arange(200) % 20) < 4
    known = np.ones(200, dtype=bool)
    known[90:110] = False
    requests = Requests.from_arrays(edges[known], edges[known] + 2.0, np.where(is_io, 1e9, 1e6)[known])
    predictor.add(requests, np.stack([edges[known], edges[known] + 2.0], axis=1))
    (evaluations,) = evaluate([Due(predictor, 400.0)])
    assert evaluations.answer.sampling_hz == 0.5
    assert np.isnan(predictor.window(400.0).bytes_per_s).sum() == 20
    assert evaluations.answer.period_s == pytest.approx(40.0, rel=0.02)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "ftio"},
        {"strategy": "none"},
        {"observed": "phases"},
        {"strategy": "fixed"},
        {"window_s": 3.0},
        {"strategy": "fixed", "window_s": math.inf},
    ],
)
def test_invalid_parameters_raise(wrong):
    with pytest.raises(ValueError, match=r"."):
        OnlineParams(**wrong)


def test_non_finite_numbers_become_none():
    assert [finite_or_none(each) for each in (math.nan, math.inf, np.float64(1.5))] == [None, None, 1.5]
    assert type(finite_or_none(np.float64(1.5))) is float
