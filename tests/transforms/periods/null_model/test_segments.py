"""Segments: several periods of one signal with their extents, and none in memoryless parts."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.studies.periods import memoryless, noise
from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.periods.interface.detections import Detections, Segments, gather
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model import detection
from iosig.transforms.periods.null_model.params import NullModelParams
from iosig.transforms.periods.null_model.segments import find_segments
from tests.budget import examples
from tests.naive.periods.null_model import segments as naive

PLACE = np.arange(3000)


def square(period: float, width: float, shift: float = 0.0, place: np.ndarray = PLACE) -> np.ndarray:
    result: np.ndarray = ((place - shift) % period < width) * 1e9
    return result


def find_segments_of(
    *signals: np.ndarray, hz: float = 1.0, start_s: float = 0.0, params: NullModelParams | None = None
) -> tuple[Detections, Segments]:
    params = params or NullModelParams()
    rates, starts = np.full(len(signals), hz), np.full(len(signals), start_s)
    parts = [detection.detect(EvenSignals.from_samples(values, hz, start_s), params) for values in signals]
    result = gather(parts, [np.array([place]) for place in range(len(parts))])
    samples = Ragged(np.concatenate(signals), offsets_of([len(values) for values in signals]))
    return find_segments(result, samples, rates, starts, params)


def list_segments(result: Segments, signal: int = 0) -> list[tuple[float, float, float]]:
    single = result.select_signal(signal)
    return list(zip(single.start_s.tolist(), single.end_s.tolist(), (1 / single.frequency_hz).tolist(), strict=True))


def test_consecutive_periods_are_separate_segments() -> None:
    rates = np.select([PLACE < 800, PLACE < 1800], [square(20, 3), square(47, 5) / 2], 2 * square(110, 12))
    answer, result = find_segments_of(rates)
    periods = [period for _, _, period in list_segments(result)]
    assert periods == pytest.approx([20, 47, 110], rel=2e-3)
    for (start, end, _), (low, high) in zip(list_segments(result), [(0, 800), (800, 1800), (1800, 3000)], strict=True):
        assert low - 20 <= start < end <= high + 20
        assert end - start > 0.85 * (high - low)
    assert result.burst_width_s == pytest.approx([3, 5, 12])
    assert result.is_main.tolist() == [False, False, True]
    assert answer.period_s[0] == pytest.approx(110, rel=2e-3)


def test_detection_is_the_segment_with_the_largest_volume() -> None:
    # The first claim has the largest contiguous volume; the other segments have two thirds as much.
    rates = np.where(PLACE < 1000, 2.2 * square(20, 3), square(47, 8))
    first = detection.detect(EvenSignals.from_samples(rates, 1.0))
    answer, result = find_segments_of(rates)
    main = result.select_signal(0)
    at = int(main.volume_bytes.argmax())
    assert main.is_main.tolist() == [place == at for place in range(len(main.is_main))]
    assert answer.frequency_hz[0] == main.frequency_hz[at]
    assert answer.window_start_s[0] == main.start_s[at]
    assert answer.details_or_nan.window_bytes_ratio[0] == pytest.approx(main.volume_bytes[at] / rates.sum(), rel=1e-6)
    assert first.is_periodic[0]


def test_phases_refer_to_the_start_of_the_signal() -> None:
    rates = np.where(PLACE < 1500, square(20, 2), 3 * square(60, 6))
    clear = np.where(PLACE < 1500, 0.0, rates)
    for values in (rates, clear):
        answer, _ = find_segments_of(values, start_s=7.0)
        assert answer.period_s[0] == pytest.approx(60, rel=2e-3)
        listed_ = answer.candidates
        peak_s = -listed_.phase_rad[0] / (2 * np.pi * listed_.frequency_hz[0])
        # The cosine peaks in the middle of a burst, 3 samples after its first edge, at a multiple of 60.
        place = (peak_s - 3.0) % 60
        assert min(place, 60 - place) < 1.0


@pytest.mark.parametrize(
    ("slow", "fast", "main"),
    [(100 * square(150, 10), square(7, 2, 3), 150), (square(300, 30), square(20, 3), 20)],
)
def test_fast_rhythm_on_a_slow_rhythm_is_found(slow: np.ndarray, fast: np.ndarray, main: float) -> None:
    drawn = np.random.default_rng(0).standard_normal(len(PLACE))
    answer, result = find_segments_of(np.maximum(slow + fast + 1e7 * (drawn + 3), 0))
    assert answer.period_s[0] == pytest.approx(main, rel=5e-3)
    periods = sorted(period for _, _, period in list_segments(result))
    expected = sorted([7, 150] if main == 150 else [20, 300])
    assert all(min(abs(period / item - 1) for item in expected) < 0.01 for period in periods)
    assert {min(expected, key=lambda item: abs(period - item)) for period in periods} == set(expected)
    spans = [
        [(start, end) for start, end, period in list_segments(result) if abs(period / item - 1) < 0.01]
        for item in expected
    ]
    assert max(min(b, d) - max(a, c) for a, b in spans[0] for c, d in spans[1]) > 1000


def test_single_period_is_a_single_segment() -> None:
    drawn = np.random.default_rng(1).standard_normal((20, len(PLACE)))
    signals = [
        *np.maximum(square(40, 8) + 3e8 * (drawn + 3), 0),
        square(40, 8),
        1e9 * (1 + np.sin(PLACE / 7)),
        square(40, 25),
    ]
    answer, result = find_segments_of(*signals)
    assert result.counts.tolist() == [1] * len(signals)
    assert result.is_main.all()
    np.testing.assert_array_equal(result.frequency_hz, answer.frequency_hz)
    np.testing.assert_array_equal(result.false_alarm_probability, answer.false_alarm_probability)


def test_aperiodic_signals_have_no_segment() -> None:
    answer, result = find_segments_of(
        noise.draw_bursts(np.random.default_rng(2), 1, 900)[0], np.zeros(100), np.full(50, np.nan)
    )
    assert result.counts.tolist() == [0, 0, 0]
    assert answer.outcome.tolist() == ["aperiodic", "no_io", "no_data"]


def test_results_are_independent_of_units_and_clocks() -> None:
    rates = np.where(PLACE < 1500, square(20, 3), square(47, 5))
    plain = find_segments_of(rates)[1]
    other = find_segments_of(rates * 1e-3, hz=0.25, start_s=1e6)[1]
    np.testing.assert_allclose(other.start_s, 1e6 + 4 * plain.start_s)
    np.testing.assert_allclose(other.frequency_hz, plain.frequency_hz / 4)
    np.testing.assert_allclose(other.burst_width_s, plain.burst_width_s * 4)
    np.testing.assert_allclose(other.volume_bytes, plain.volume_bytes * 4e-3)
    np.testing.assert_allclose(other.false_alarm_probability, plain.false_alarm_probability)


def draw_mixed_signals(seed: int, count: int) -> list[np.ndarray]:
    """Signals of up to three parts, each a rhythm or memoryless bursts, with some samples unknown."""
    generator = np.random.default_rng(seed)
    signals = []
    for _ in range(count):
        parts = []
        for _ in range(int(generator.integers(1, 4))):
            length, period = int(generator.integers(300, 900)), float(generator.uniform(8, 60))
            rhythm = square(period, period * generator.uniform(0.1, 0.3), 0.0, np.arange(length))
            random = noise.draw_bursts(generator, 1, length)[0]
            parts.append((rhythm, rhythm, random, rhythm * 20 + random)[int(generator.integers(4))])
        values = np.concatenate(parts)
        values[generator.random(len(values)) < 0.05 * generator.integers(2)] = np.nan
        signals.append(values)
    return signals


def test_segments_match_naive_implementation() -> None:
    three = np.select([PLACE < 800, PLACE < 1800], [square(20, 3), square(47, 5) / 2], 2 * square(110, 12))
    signals = [three, *draw_mixed_signals(3, examples(60))]
    params = NullModelParams(window_levels=2)
    _, result = find_segments_of(*signals, hz=0.5, start_s=3.0, params=params)
    assert result.counts.max() > 2
    for place, values in enumerate(signals):
        expected = naive.find_segments(values, 0.5, 3.0, params, 4)
        single = result.select_signal(place)
        assert len(single.is_main) == len(expected)
        for name in ("start_s", "frequency_hz", "volume_bytes", "burst_width_s"):
            np.testing.assert_allclose(getattr(single, name), [getattr(item, name) for item in expected], rtol=1e-5)
        ours, theirs = (
            np.log(single.false_alarm_probability),
            np.log([item.false_alarm_probability for item in expected]),
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def count_memoryless_claims(generator: memoryless.Generator, draws: int, samples: int, seed: int) -> tuple[int, int]:
    """Count signals with a claim on a memoryless part that follows a rhythm, or lies within it."""
    drawn = np.random.default_rng(seed)
    period = drawn.uniform(20, 60, (draws, 1))
    rates, place = generator.draw(drawn, draws, samples), np.arange(1200)
    rhythm = (place % period < 0.2 * period) * np.nanmax(rates, axis=1, keepdims=True)
    after = np.concatenate([rhythm, rates], axis=1)
    on = (np.arange(samples) % period < 0.2 * period) * 4.0 * np.nanmax(rates, axis=1, keepdims=True) + rates
    wrong, right = 0, 0
    for values in (after, on):
        _, result = find_segments_of(*values)
        times = period[result.owner, 0] * result.frequency_hz
        times = np.maximum(times, 1 / times)
        is_own = np.abs(times / np.rint(times) - 1) < 0.1
        right += len(np.unique(result.owner[is_own]))
        wrong += len(np.unique(result.owner[~is_own]))
    return wrong, right


@pytest.mark.slow
@pytest.mark.long
def test_memoryless_part_next_to_a_rhythm_is_no_segment() -> None:
    counts = [count_memoryless_claims(item, 40, 600, 4) for item in list(memoryless.list_generators())[::6]]
    wrong, right = np.sum(counts, axis=0).tolist()
    assert right > 800
    assert wrong <= 0.01 * right
