"""Period search runs every method, requires two cycles, and measures periodicity within the window."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.studies.periods import noise
from iosig.transforms.arrays import Ragged
from iosig.transforms.periods import autoperiod, ftio, periodicity
from iosig.transforms.periods.interface.detections import Candidates, Detections
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model import detection
from iosig.transforms.periods.search import METHODS, PeriodParams, compute_similarity, find_periods, refine_confidence
from iosig.transforms.throughput.requests import Requests, step_function


def square(count: int, period: int = 20, width: int = 3) -> np.ndarray:
    return np.where(np.arange(count) % period < width, 1e9, 0.0)


def make_ragged(*signals: np.ndarray) -> Ragged:
    offsets = np.concatenate([[0], np.cumsum([len(values) for values in signals])]).astype(np.int64)
    return Ragged(np.concatenate(signals), offsets)


def find_periods_of(*signals: np.ndarray, hz: float = 1.0, **changes: object) -> dict[str, np.ndarray]:
    count = len(signals)
    params = replace(PeriodParams(), **changes)  # type: ignore[arg-type]
    result = find_periods(make_ragged(*signals), np.full(count, hz), np.zeros(count), params)
    return {answer.method: answer.detections.period_s for answer in result}


def test_results_keep_the_order_of_signals() -> None:
    signals = [square(400), square(300, 30), square(0), square(400, 25), np.zeros(300), square(7)]
    result = find_periods(make_ragged(*signals), np.ones(6), np.zeros(6))
    assert [answer.method for answer in result] == list(METHODS)
    for answer in result:
        assert answer.detections.period_s[[0, 1, 3]] == pytest.approx([20, 30, 25], rel=1e-3), answer.method
        assert not answer.detections.is_periodic[[2, 4, 5]].any()
        assert answer.detections.outcome[[2, 4]].tolist() == ["no_data", "no_io"]
        assert answer.periodicity.sigma_vol[[0, 1, 3]] == pytest.approx(0.0, abs=0.2), answer.method


def test_each_method_equals_its_module() -> None:
    generator = np.random.default_rng(3)
    values = np.concatenate([noise.draw_bursts(generator, 20, 500), np.tile(square(500, 50, 10), (4, 1))])
    group = EvenSignals(values, np.ones(24), np.zeros(24))
    result = {
        answer.method: answer.detections for answer in find_periods(make_ragged(*values), np.ones(24), np.zeros(24))
    }
    alone = {
        "null_tested": detection.detect(group),
        "dft": ftio.detect(group),
        "autoperiod": autoperiod.detect_even(group),
    }
    for method, answer in alone.items():
        assert result[method].frequency_hz == pytest.approx(answer.frequency_hz, nan_ok=True)
    assert result["merged"].frequency_hz == pytest.approx(result["dft"].frequency_hz, nan_ok=True)


def test_only_requested_methods_run() -> None:
    assert set(find_periods_of(square(400), methods=("merged",))) == {"merged"}
    assert set(find_periods_of(square(400), methods=())) == set()


def test_mostly_missing_signals_are_rejected() -> None:
    values = square(400)
    values[np.random.default_rng(0).permutation(400)[:240]] = np.nan
    result = find_periods(make_ragged(values, square(400)), np.ones(2), np.zeros(2))
    for answer in result:
        assert answer.detections.outcome.tolist() == ["too_many_gaps", "periodic"], answer.method


@pytest.mark.parametrize("count", [45, 61, 79])
def test_periods_with_fewer_than_two_cycles_are_rejected(count: int) -> None:
    values = square(count, count // 2 + 4, 6)
    for method, period_s in find_periods_of(values).items():
        assert not period_s[0] > count / 2, method


def test_refined_confidence_is_nan_unless_periodic() -> None:
    result = find_periods(make_ragged(square(400), np.ones(400)), np.ones(2), np.zeros(2))
    for answer in result:
        is_given = np.isfinite(answer.refined_confidence)
        assert is_given.tolist() == ([True, False] if answer.method == "merged" else [False, False])


def test_periodicity_uses_exact_steps_if_given() -> None:
    start_s = 20.0 * np.arange(30)
    requests = Requests.from_arrays(start_s, start_s + 0.3, np.full(30, 6e6))
    values = np.where(np.arange(600) % 20 == 0, 6e6, 0.0)
    (on_samples,) = find_periods(make_ragged(values), np.ones(1), np.zeros(1), PeriodParams(methods=("dft",)))
    (exactly,) = find_periods(
        make_ragged(values), np.ones(1), np.zeros(1), PeriodParams(methods=("dft",)), step_function(requests)
    )
    assert on_samples.periodicity.r_io[0] == pytest.approx(0.05, rel=0.05), "a step of a second blurs a burst of 0.3 s"
    assert exactly.periodicity.r_io[0] == pytest.approx(0.015, rel=0.05)
    assert exactly.periodicity.bytes_per_period[0] == pytest.approx(6e6, rel=0.05)


def test_periodicity_is_measured_within_the_window() -> None:
    values = np.concatenate([np.zeros(300), square(400), np.zeros(500)])
    (result,) = find_periods(make_ragged(values), np.ones(1), np.zeros(1), PeriodParams(methods=("null_tested",)))
    (window,) = zip(result.detections.window_start_s, result.detections.window_end_s, strict=True)
    assert 290 <= window[0] <= 310
    assert 670 <= window[1] <= 710
    whole = periodicity.characterize_samples(make_ragged(values), np.ones(1), np.full(1, 0.05))
    assert result.periodicity.r_io[0] > 2 * whole.r_io[0]


def test_results_are_independent_of_the_batch() -> None:
    generator = np.random.default_rng(5)
    signals = [*noise.draw_ar1(generator, 3, 256, 0.5), square(256), *noise.draw_white(generator, 3, 300)]
    together = find_periods_of(*signals)
    for place, values in enumerate(signals):
        for method, period_s in find_periods_of(values).items():
            assert period_s[0] == pytest.approx(together[method][place], nan_ok=True)


NAN = float("nan")


def candidates(*periods_s: list[float]) -> Candidates:
    """Candidates of several signals, given their periods."""
    flat = np.array([period for row in periods_s for period in row])
    none = np.full(len(flat), NAN)
    return Candidates(1.0 / flat, none, none, none, np.cumsum([0, *(len(row) for row in periods_s)]))


def make_detections(period_s: list[float], confidence: list[float], result: Candidates | None = None) -> Detections:
    """Detections of a method; NaN where a signal has no period."""
    period, none = np.array(period_s), np.full(len(period_s), NAN)
    outcome = np.where(np.isnan(period), "aperiodic", "periodic")
    return Detections(
        outcome, 1.0 / period, np.array(confidence), none, none, none, result or Candidates.empty(len(period_s))
    )


def test_refined_confidence_matches_the_example_of_the_paper() -> None:
    """Section II-C: 111.67 s at 62.5 %, five candidates of 104.8 s at 99.58 %, give 97.6 % and 86.5 %."""
    deviation = (1 - 0.9958) * 104.8
    five = 104.8 + deviation * np.sqrt(5 / 4) * np.array([1, 1, -1, -1, 0])
    other = make_detections([104.8], [0.9958], candidates(five.tolist()))
    assert compute_similarity(np.array([111.67]), other.candidates)[0] == pytest.approx(0.976, abs=0.0005)
    assert refine_confidence(make_detections([111.67], [0.625]), other)[0] == pytest.approx(0.865, abs=0.0005)


def test_refined_confidence_of_a_single_candidate_matches_the_paper() -> None:
    """Section III-B a: 25.73 s at 55 % with a single peak at 25.6 s gives 84.9 %."""
    result = refine_confidence(make_detections([25.73], [0.55]), make_detections([25.6], [1.0], candidates([25.6])))
    assert result[0] == pytest.approx(0.849, abs=0.0005)


def test_refined_confidence_uses_nan_or_half_where_a_method_has_no_period() -> None:
    transform = make_detections([10.0, NAN, NAN, 10.0], [0.6, NAN, NAN, 0.9])
    other = make_detections([NAN, 10.0, NAN, 10.0], [NAN, 1.0, NAN, 0.6], candidates([], [10.0], [], [10.0, 10.0]))
    np.testing.assert_allclose(refine_confidence(transform, other), [0.2, NAN, NAN, 2.5 / 3])


@pytest.mark.parametrize(("other_s", "refined"), [(10.0, 2.8 / 3), (10.5, 0.93), (11.5, 0.8 / 3), (20.0, 0.8 / 3)])
def test_refined_confidence_falls_if_the_methods_disagree(other_s: float, refined: float) -> None:
    """Frequencies agree within the transform's resolution: 1/10 and 1/110 Hz in a window of 110 s."""
    transform = replace(make_detections([10.0], [0.8]), window_start_s=np.array([5.0]), window_end_s=np.array([115.0]))
    other = make_detections([other_s], [1.0], candidates([other_s] * 11))
    assert refine_confidence(transform, other)[0] == pytest.approx(refined, abs=0.01)


def test_confident_autocorrelation_of_twice_the_period_lowers_the_confidence() -> None:
    """In a window of 12.5 periods, the transform finds half of the period, and the autocorrelation the period."""
    values = np.concatenate([np.zeros(3), square(122, 10, 2)])
    params = PeriodParams(methods=("dft", "autocorrelation", "merged"))
    by_method = {one.method: one for one in find_periods(make_ragged(values), np.ones(1), np.zeros(1), params)}
    assert by_method["dft"].detections.period_s[0] == pytest.approx(5.0)
    assert by_method["autocorrelation"].detections.period_s[0] == pytest.approx(10.0)
    merged = by_method["merged"]
    assert merged.detections.period_s[0] == pytest.approx(5.0)
    assert merged.refined_confidence[0] < merged.detections.confidence[0]


@given(st.floats(1e-300, 1e300), st.lists(st.floats(1e-300, 1e300), max_size=6))
def test_similarity_is_between_zero_and_one(period: float, others: list[float]) -> None:
    (result,) = compute_similarity(np.array([period]), candidates(others))
    assert np.isnan(result) if not others else 0 <= result <= 1


@given(st.lists(st.floats(1, 100), min_size=1, max_size=6), st.floats(1, 100), st.integers(-900, 900))
def test_similarity_is_one_minus_the_coefficient_of_variation(
    others: list[float], period: float, exponent: int
) -> None:
    (result,) = compute_similarity(np.array([period]), candidates(others))
    both = np.array([*others, period])
    assert result == pytest.approx(np.clip(1 - both.std() / both.mean(), 0, 1), abs=1e-9)
    unit = 2.0**exponent
    (scaled,) = compute_similarity(np.array([period * unit]), candidates([other * unit for other in others]))
    assert scaled == pytest.approx(result, abs=1e-12)
