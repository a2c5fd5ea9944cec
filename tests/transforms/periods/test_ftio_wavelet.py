"""The reproduction of FTIO 0.0.9's wavelet mode equals FTIO's results and a naive loop."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.periods import ftio_wavelet
from iosig.transforms.periods.ftio_0_0_9 import CompatibleParams
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.throughput.requests import Steps
from tests.budget import examples
from tests.naive.periods import ftio_wavelet as naive

#: Period, burst, repetitions, and the pause before all bursts repeat at half the rate; samples per second; the
#: frequency and ranges that ftio-hpc 0.0.9 (`ftio_wavelet_disc`) reported, or None where it failed.
GIVEN = [
    (12.0, 2.0, 12, 0.0, 1.0, 0.08270676691729323, [(0.0, 121.0)]),
    (12.0, 2.0, 12, 0.0, 4.0, 0.08224299065420561, [(0.0, 121.75)]),
    (15.0, 3.0, 10, 100.0, 1.0, 0.0026666666666666666, []),
    (15.0, 3.0, 10, 100.0, 4.0, 0.0665335994677312, [(0.0, 137.75), (223.75, 360.75)]),
    (3.0, 1.0, 30, 0.0, 1.0, None, []),
    (31.0, 10.0, 9, 0.0, 1.0, 0.4163424124513619, []),
    (31.0, 10.0, 9, 0.0, 4.0, 0.027158098933074686, [(0.0, 221.0)]),
]


def bursts(period: float, burst: float, count: int, pause: float) -> Steps:
    starts = period * np.arange(count)
    times = np.stack([starts, starts + burst], axis=1).ravel()
    rates = np.tile([1e9, 0.0], count)
    if pause:
        times, rates = np.append(times, times + times[-1] + pause), np.append(rates, rates / 2)
    none = np.zeros(0)
    return Steps(times, rates, np.array([0, len(times)]), none, none, np.zeros(2, dtype=np.int64))


@pytest.mark.parametrize(("period", "burst", "count", "pause", "hz", "frequency", "ranges"), GIVEN)
def test_ranges_equal_ftio(
    period: float,
    burst: float,
    count: int,
    pause: float,
    hz: float,
    frequency: float | None,
    ranges: list[tuple[float, float]],
) -> None:
    detections, segments = ftio_wavelet.detect(bursts(period, burst, count, pause), CompatibleParams(sampling_hz=hz))
    expected = np.nan if frequency is None else frequency
    assert detections.frequency_hz[0] == pytest.approx(expected, rel=1e-6, nan_ok=True)
    told = list(zip(segments.start_s.tolist(), segments.end_s.tolist(), strict=True))
    assert told == [pytest.approx(item, abs=1e-6) for item in ranges]
    assert segments.is_main.sum() == bool(ranges)
    if ranges:
        assert segments.is_main[0], "the first half moves more"


def test_sampled_signals_are_not_resampled() -> None:
    values = np.where(np.arange(400) % 20 < 4, 1e9, 0.0)
    values[7] = np.nan
    group = EvenSignals(np.stack([values, np.zeros(400)]), np.ones(2), np.array([5.0, 0.0]))
    _, segments = ftio_wavelet.detect_in_samples(group)
    assert segments.counts.tolist() == [1, 0]
    assert segments.start_s[0] >= 5.0
    assert segments.volume_bytes[0] <= 80e9
    _, segments = ftio_wavelet.detect_in_samples(EvenSignals(np.zeros((1, 0)), np.ones(1), np.zeros(1)))
    assert segments.counts.tolist() == [0]


def test_wavelet_mode_matches_naive_implementation() -> None:
    generator = np.random.default_rng(0)
    for _ in range(examples(30)):
        count, size = int(generator.integers(20, 300)), int(generator.integers(2, 19))
        single, two = generator.random((2, count))
        two[5:40] = 0.5
        level = int(generator.integers(1, 6))
        left = ftio_wavelet.approximate(two, level)
        np.testing.assert_allclose(left, naive.approximate(two.tolist(), level), rtol=1e-12)
        correlation = ftio_wavelet.correlate_sliding(single, two, size)
        np.testing.assert_allclose(correlation, naive.correlate_sliding(single, two, size), atol=1e-9)
        times, least_s = np.arange(len(correlation)) / 4, float(generator.uniform(0, 3))
        result = ftio_wavelet.find_ranges(times, correlation, least_s)
        assert list(map(tuple, result.tolist())) == naive.find_ranges(times.tolist(), correlation.tolist(), least_s)
