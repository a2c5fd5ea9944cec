"""Changes of the period: the published recursions by their twins, detection rates at any scale, states that resume."""

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
    detector,
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
    """Of 100 runs, those in which a change is found in the three predictions from the change on."""
    found = 0
    for seed in range(RUNS):
        periods = run([int(factor), seed, int(1000 * hz[0])], hz[seed % len(hz)], noise, factor, count=23)
        found += any(change.found_index >= 20 for change in changes(detector(name), periods))
    return found


def false_alarms(name: str, hz: Sequence[float], noise: float, runs: int = RUNS) -> int:
    """Of runs of 40 predictions without a change, those in which any is found."""
    drawn = (run([7, seed, int(1000 * hz[0])], hz[seed % len(hz)], noise) for seed in range(runs))
    return sum(bool(changes(detector(name), periods)) for periods in drawn)


@pytest.mark.parametrize("noise", [0.05, 0.1])
@pytest.mark.parametrize("hz", FREQUENCIES_HZ)
def test_the_default_finds_doubling_and_halving_within_three_predictions(hz: float, noise: float) -> None:
    assert hits("clipped_cusum", [hz], noise, 2.0) >= 95
    assert hits("clipped_cusum", [hz], noise, 0.5) >= 95
    assert false_alarms("clipped_cusum", [hz], noise) <= 5


@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_so_does_the_published_sum(noise: float) -> None:
    assert hits("cusum", FREQUENCIES_HZ, noise, 2.0) >= 95
    assert hits("cusum", FREQUENCIES_HZ, noise, 0.5) >= 95
    assert false_alarms("cusum", FREQUENCIES_HZ, noise) <= 5


def test_the_published_sum_finds_more_of_the_small_changes_and_takes_outliers_for_changes() -> None:
    fifths = dict.fromkeys(DETECTOR_NAMES, 0)
    outliers = dict.fromkeys(DETECTOR_NAMES, 0)
    for seed in range(RUNS):
        small, steady = run([8, seed], 0.05, 0.1, 1.2, count=60), run([9, seed], 0.05, 0.1, count=60)
        missed = np.random.default_rng([10, seed]).random(60) < 0.05
        doubled = [period * (1 + is_missed) for period, is_missed in zip(steady, missed.tolist(), strict=True)]
        for name in DETECTOR_NAMES:
            fifths[name] += any(change.found_index >= 20 for change in changes(detector(name), small))
            outliers[name] += bool(changes(detector(name), doubled))
    assert fifths["cusum"] >= 90 > 75 >= fifths["clipped_cusum"]
    assert outliers["cusum"] >= 40 > 20 >= outliers["clipped_cusum"]


# ---- scale


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_scale_and_sign_do_not_matter(name: str) -> None:
    periods = run([3], 1.0, 0.1, 4.0, at=15)
    plain = changes(detector(name), periods)
    assert plain
    for scale in (2.0**-20, 2.0**8):
        scaled = changes(detector(name), [period * scale for period in periods])
        assert [one.index for one in scaled] == [one.index for one in plain]
        assert [one.before_period_s for one in scaled] == pytest.approx([one.before_period_s * scale for one in plain])
    inverse = changes(detector(name), [1 / period for period in periods])
    assert [one.found_index for one in inverse] == [one.found_index for one in plain]
    assert [one.octaves for one in inverse] == pytest.approx([-one.octaves for one in plain])


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_without_noise_the_change_point_and_both_periods_are_exact(name: str) -> None:
    one = detector(name)
    (found,) = changes(one, [8.0] * 12 + [16.0] * 12)
    assert found.index == 12
    assert found.found_index <= 14
    assert (found.before_period_s, found.after_period_s, found.octaves) == (8.0, 16.0, 1.0)
    assert found.noise_octaves == pytest.approx(FLOOR)


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_changes_follow_one_another(name: str) -> None:
    found = changes(detector(name), [10.0] * 10 + [20.0] * 10 + [5.0] * 10)
    assert [one.index for one in found] == [10, 20]
    assert [one.octaves for one in found] == pytest.approx([1.0, -2.0])


class QuickCusum(Cusum):
    threshold = 8.0


class SlowCusum(Cusum):
    allowance, threshold = 0.1, 50.0


def test_one_period_that_is_far_off_is_no_change_to_the_default() -> None:
    for stray in (20.0, 5.0, 1e300):
        assert not changes(detector(), [10.0] * 10 + [stray] + [10.0] * 10 + [stray] + [10.0] * 10)
        assert changes(QuickCusum(), [10.0] * 20 + [stray])[0].index == 20


def test_a_noise_below_the_floor_counts_as_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = [10.0] * 10 + [10.5] * 10
    assert not changes(Cusum(), steady)
    monkeypatch.setattr(change_points, "_FLOOR_OCTAVES", 0.005)
    assert [one.index for one in changes(Cusum(), steady)] == [10]


def test_the_extreme_periods_are_periods() -> None:
    for name in DETECTOR_NAMES:
        found = changes(detector(name), [5e-324] * 40 + [math.nextafter(math.inf, 0)] * 40)
        assert found
        assert all(math.isfinite(one.octaves) for one in found)


# ---- twins

octaves = st.lists(st.tuples(st.integers(3, 14), st.integers(-3, 3)), min_size=1, max_size=4).flatmap(
    lambda parts: st.tuples(st.just(parts), st.integers(0, 2**20))
)


def drawn(told: tuple[list[tuple[int, int]], int]) -> list[float]:
    parts, seed = told
    levels = np.concatenate([np.full(count, level / 2) for count, level in parts])
    return [float(value) for value in levels + 0.12 * np.random.default_rng(seed).standard_normal(len(levels))]


def first(one: Detector, values: Sequence[float]) -> tuple[int, int] | None:
    found = changes(one, [2.0**value for value in values])
    return (found[0].index, found[0].found_index) if found else None


@settings(max_examples=examples(25), deadline=None)
@given(octaves)
def test_cusum_equals_its_twin(told: tuple[list[tuple[int, int]], int]) -> None:
    values = drawn(told)
    assert first(Cusum(), values) == naive.cusum(values, 0.5, 10, math.inf, FLOOR, PRIOR, LEAST, MOST)


@settings(max_examples=examples(25), deadline=None)
@given(octaves)
def test_clipped_cusum_equals_its_twin(told: tuple[list[tuple[int, int]], int]) -> None:
    values = drawn(told)
    expected = naive.cusum(values, 1, 6, 4, FLOOR, PRIOR, LEAST, MOST)
    if expected:
        since, last = expected
        level, _ = naive.level_and_noise(values[: min(last, MOST)], FLOOR, PRIOR)
        expected = naive.likeliest(values, level, since, last), last
    assert first(ClippedCusum(), values) == expected


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_after_a_change_the_state_is_that_of_the_values_since(name: str) -> None:
    values = [10.0 * 1.02 ** (place % 3) for place in range(10)] + [20.0, 20.3, 19.8, 20.1]
    one = detector(name)
    (found,) = changes(one, values)
    fresh = detector(name)
    assert not changes(fresh, values[found.index : found.found_index + 1])
    rest = [20.0, 19.9, 20.2, 41.0, 40.0, 40.5, 39.5]
    again, expected = changes(one, rest), changes(fresh, [*values[found.found_index + 1 :], *rest])
    assert expected
    assert [change.index - found.index for change in again] == [change.index for change in expected]


# ---- missing, refused


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_missing_predictions_count_and_change_nothing_else(name: str) -> None:
    periods = run([5], 0.05, 0.05, 2.0, at=10)
    plain, gappy = detector(name), detector(name)
    expected = changes(plain, periods)
    found = changes(gappy, [value for period in periods for value in (None, NAN, period)])
    assert [one.index for one in found] == [3 * one.index + 2 for one in expected]
    assert [one.after_period_s for one in found] == [one.after_period_s for one in expected]
    assert (gappy.seen_count, gappy.missing_count, plain.missing_count) == (120, 80, 0)


@pytest.mark.parametrize("period", [0.0, -1.0, math.inf, -math.inf])
def test_what_is_no_period_is_refused_and_not_counted(period: float) -> None:
    one = detector()
    with pytest.raises(ValueError, match="positive and finite"):
        one.add(period)
    assert one.seen_count == 0


def test_the_default_is_named_first_and_others_are_refused() -> None:
    assert detector().name == DETECTOR_NAMES[0] == "clipped_cusum"
    with pytest.raises(ValueError, match="no detector"):
        detector("adwin2")
    for name, replacement in REPLACED_DETECTORS.items():
        with pytest.raises(ValueError, match=f"{name} was removed: use {replacement}"):
            detector(name)


# ---- states


@settings(max_examples=examples(20), deadline=None)
@given(octaves, st.sampled_from(DETECTOR_NAMES), st.integers(0, 50))
def test_a_killed_process_resumes(told: tuple[list[tuple[int, int]], int], name: str, killed_at: int) -> None:
    periods = [2.0**value for value in drawn(told)]
    whole, before = detector(name), detector(name)
    expected = changes(whole, periods)
    found = changes(before, periods[:killed_at])
    after = Detector.from_dict(json.loads(json.dumps(before.to_dict(), allow_nan=False)))
    found += changes(after, periods[killed_at:])
    assert found == expected
    assert after.to_dict() == whole.to_dict()


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_memory_is_bounded(name: str) -> None:
    one = detector(name)
    periods = run([6], 0.05, 0.05, count=700)
    changes(one, periods[:300])
    early = len(json.dumps(one.to_dict()))
    changes(one, periods[300:])
    assert len(json.dumps(one.to_dict())) < 1.5 * early + 1000


def test_a_long_slow_shift_is_kept_within_bounds_and_found_in_time() -> None:
    one = SlowCusum()
    found = changes(one, [10.0] * 40 + [10.3] * 300)
    assert found
    assert found[0].index == 40
    assert found[0].found_index > 40 + MOST
    assert len(one.to_dict()["reference"]) <= MOST
