"""Change points: naive implementations, detection and false-alarm rates at any scale, and resumption."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.predictions import change_points
from iosig.transforms.predictions.change_points import (
    DETECTOR_NAMES,
    REPLACED_DETECTORS,
    Change,
    ClippedCusum,
    Cusum,
    Detector,
    create_detector,
)
from tests.budget import examples
from tests.naive.predictions import change_points as naive

FREQUENCIES_HZ = (0.005, 0.05, 0.5, 5.0)
RUNS = 100
FLOOR, PRIOR, LEAST, MOST = 0.1, 10, 5, 32
NAN = float("nan")


def changes(one: Detector, periods_s: Iterable[float | None]) -> list[Change]:
    return [change for change in map(one.add, periods_s) if change is not None]


def run(
    seed: Sequence[int], hz: float, noise: float, factor: float = 1.0, at: int = 20, count: int = 40
) -> list[float]:
    """Predicted periods with log-normal noise; from `at` on the period is `factor` times as long."""
    periods = np.exp(noise * np.random.default_rng(seed).standard_normal(count)) / hz
    periods[at:] *= factor
    return [float(period) for period in periods]


# ---- rates


def hits(name: str, hz: Sequence[float], noise: float, factor: float) -> int:
    """Number of runs with a detection within the first three predictions of the new period."""
    result = 0
    for seed in range(RUNS):
        periods = run([int(factor), seed, int(1000 * hz[0])], hz[seed % len(hz)], noise, factor, count=23)
        result += any(change.found_index >= 20 for change in changes(create_detector(name), periods))
    return result


def false_alarms(name: str, hz: Sequence[float], noise: float, runs: int = RUNS) -> int:
    """Number of false alarms in runs of 40 predictions without a change."""
    draw_values = (run([7, seed, int(1000 * hz[0])], hz[seed % len(hz)], noise) for seed in range(runs))
    return sum(bool(changes(create_detector(name), periods)) for periods in draw_values)


@pytest.mark.parametrize("noise", [0.05, 0.1])
@pytest.mark.parametrize("hz", FREQUENCIES_HZ)
def test_default_detects_doubling_and_halving_within_three_predictions(hz: float, noise: float) -> None:
    assert hits("clipped_cusum", [hz], noise, 2.0) >= 95
    assert hits("clipped_cusum", [hz], noise, 0.5) >= 95
    assert false_alarms("clipped_cusum", [hz], noise) <= 5


@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_published_cusum_detects_doubling_and_halving(noise: float) -> None:
    assert hits("cusum", FREQUENCIES_HZ, noise, 2.0) >= 95
    assert hits("cusum", FREQUENCIES_HZ, noise, 0.5) >= 95
    assert false_alarms("cusum", FREQUENCIES_HZ, noise) <= 5


def test_published_cusum_is_more_sensitive_and_less_robust() -> None:
    fifths = dict.fromkeys(DETECTOR_NAMES, 0)
    outliers = dict.fromkeys(DETECTOR_NAMES, 0)
    for seed in range(RUNS):
        small, steady = run([8, seed], 0.05, 0.1, 1.2, count=60), run([9, seed], 0.05, 0.1, count=60)
        missed = np.random.default_rng([10, seed]).random(60) < 0.05
        doubled = [period * (1 + is_missed) for period, is_missed in zip(steady, missed.tolist(), strict=True)]
        for name in DETECTOR_NAMES:
            fifths[name] += any(change.found_index >= 20 for change in changes(create_detector(name), small))
            outliers[name] += bool(changes(create_detector(name), doubled))
    assert fifths["cusum"] >= 90 > 75 >= fifths["clipped_cusum"]
    assert outliers["cusum"] >= 40 > 20 >= outliers["clipped_cusum"]


# ---- scale


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_detection_is_scale_free_and_symmetric(name: str) -> None:
    periods = run([3], 1.0, 0.1, 4.0, at=15)
    plain = changes(create_detector(name), periods)
    assert plain
    for scale in (2.0**-20, 2.0**8):
        scaled = changes(create_detector(name), [period * scale for period in periods])
        assert [one.index for one in scaled] == [one.index for one in plain]
        assert [one.before_period_s for one in scaled] == pytest.approx([one.before_period_s * scale for one in plain])
    inverse = changes(create_detector(name), [1 / period for period in periods])
    assert [one.found_index for one in inverse] == [one.found_index for one in plain]
    assert [one.octaves for one in inverse] == pytest.approx([-one.octaves for one in plain])


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_noise_free_change_is_exact(name: str) -> None:
    one = create_detector(name)
    (result,) = changes(one, [8.0] * 12 + [16.0] * 12)
    assert result.index == 12
    assert result.found_index <= 14
    assert (result.before_period_s, result.after_period_s, result.octaves) == (8.0, 16.0, 1.0)
    assert result.noise_octaves == pytest.approx(FLOOR)


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_successive_changes_are_detected(name: str) -> None:
    result = changes(create_detector(name), [10.0] * 10 + [20.0] * 10 + [5.0] * 10)
    assert [one.index for one in result] == [10, 20]
    assert [one.octaves for one in result] == pytest.approx([1.0, -2.0])


class QuickCusum(Cusum):
    threshold = 8.0


class SlowCusum(Cusum):
    allowance, threshold = 0.1, 50.0


def test_single_outlier_is_no_change_by_default() -> None:
    for stray in (20.0, 5.0, 1e300):
        assert not changes(create_detector(), [10.0] * 10 + [stray] + [10.0] * 10 + [stray] + [10.0] * 10)
        assert changes(QuickCusum(), [10.0] * 20 + [stray])[0].index == 20


def test_noise_has_a_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = [10.0] * 10 + [10.5] * 10
    assert not changes(Cusum(), steady)
    monkeypatch.setattr(change_points, "_MIN_NOISE_OCTAVES", 0.005)
    assert [one.index for one in changes(Cusum(), steady)] == [10]


def test_extreme_periods_are_accepted() -> None:
    for name in DETECTOR_NAMES:
        result = changes(create_detector(name), [5e-324] * 40 + [math.nextafter(math.inf, 0)] * 40)
        assert result
        assert all(math.isfinite(one.octaves) for one in result)


# ---- naive implementations

octaves = st.lists(st.tuples(st.integers(3, 14), st.integers(-3, 3)), min_size=1, max_size=4).flatmap(
    lambda parts: st.tuples(st.just(parts), st.integers(0, 2**20))
)


def draw_values(segments: tuple[list[tuple[int, int]], int]) -> list[float]:
    parts, seed = segments
    levels = np.concatenate([np.full(count, level / 2) for count, level in parts])
    return [float(value) for value in levels + 0.12 * np.random.default_rng(seed).standard_normal(len(levels))]


def first(one: Detector, values: Sequence[float]) -> tuple[int, int] | None:
    result = changes(one, [2.0**value for value in values])
    return (result[0].index, result[0].found_index) if result else None


@settings(max_examples=examples(25), deadline=None)
@given(octaves)
def test_cusum_matches_naive_implementation(segments: tuple[list[tuple[int, int]], int]) -> None:
    values = draw_values(segments)
    assert first(Cusum(), values) == naive.cusum(values, 0.5, 10, math.inf, FLOOR, PRIOR, LEAST, MOST)


@settings(max_examples=examples(25), deadline=None)
@given(octaves)
def test_clipped_cusum_matches_naive_implementation(segments: tuple[list[tuple[int, int]], int]) -> None:
    values = draw_values(segments)
    expected = naive.cusum(values, 1, 6, 4, FLOOR, PRIOR, LEAST, MOST)
    if expected:
        since, last = expected
        level, _ = naive.level_and_noise(values[: min(last, MOST)], FLOOR, PRIOR)
        expected = naive.likeliest(values, level, since, last), last
    assert first(ClippedCusum(), values) == expected


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_state_after_change_derives_from_values_since(name: str) -> None:
    values = [10.0 * 1.02 ** (place % 3) for place in range(10)] + [20.0, 20.3, 19.8, 20.1]
    one = create_detector(name)
    (result,) = changes(one, values)
    fresh = create_detector(name)
    assert not changes(fresh, values[result.index : result.found_index + 1])
    rest = [20.0, 19.9, 20.2, 41.0, 40.0, 40.5, 39.5]
    again, expected = changes(one, rest), changes(fresh, [*values[result.found_index + 1 :], *rest])
    assert expected
    assert [change.index - result.index for change in again] == [change.index for change in expected]


# ---- missing and invalid predictions


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_missing_predictions_are_only_counted(name: str) -> None:
    periods = run([5], 0.05, 0.05, 2.0, at=10)
    plain, gappy = create_detector(name), create_detector(name)
    expected = changes(plain, periods)
    result = changes(gappy, [value for period in periods for value in (None, NAN, period)])
    assert [one.index for one in result] == [3 * one.index + 2 for one in expected]
    assert [one.after_period_s for one in result] == [one.after_period_s for one in expected]
    assert (gappy.seen_count, gappy.missing_count, plain.missing_count) == (120, 80, 0)


@pytest.mark.parametrize("period", [0.0, -1.0, math.inf, -math.inf])
def test_invalid_period_raises_and_does_not_count(period: float) -> None:
    one = create_detector()
    with pytest.raises(ValueError, match="positive and finite"):
        one.add(period)
    assert one.seen_count == 0


def test_default_is_first_and_unknown_names_raise() -> None:
    assert create_detector().name == DETECTOR_NAMES[0] == "clipped_cusum"
    with pytest.raises(ValueError, match="unknown detector"):
        create_detector("adwin2")
    for name, replacement in REPLACED_DETECTORS.items():
        with pytest.raises(ValueError, match=f"{name} was removed; use {replacement}"):
            create_detector(name)


# ---- states


@settings(max_examples=examples(20), deadline=None)
@given(octaves, st.sampled_from(DETECTOR_NAMES), st.integers(0, 50))
def test_detector_resumes_from_state(segments: tuple[list[tuple[int, int]], int], name: str, killed_at: int) -> None:
    periods = [2.0**value for value in draw_values(segments)]
    whole, before = create_detector(name), create_detector(name)
    expected = changes(whole, periods)
    result = changes(before, periods[:killed_at])
    after = Detector.from_dict(json.loads(json.dumps(before.to_dict(), allow_nan=False)))
    result += changes(after, periods[killed_at:])
    assert result == expected
    assert after.to_dict() == whole.to_dict()


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_memory_is_bounded(name: str) -> None:
    one = create_detector(name)
    periods = run([6], 0.05, 0.05, count=700)
    changes(one, periods[:300])
    early = len(json.dumps(one.to_dict()))
    changes(one, periods[300:])
    assert len(json.dumps(one.to_dict())) < 1.5 * early + 1000


def test_slow_shift_is_detected_with_bounded_memory() -> None:
    one = SlowCusum()
    result = changes(one, [10.0] * 40 + [10.3] * 300)
    assert result
    assert result[0].index == 40
    assert result[0].found_index > 40 + MOST
    assert len(one.to_dict()["reference"]) <= MOST
