"""AUTOPERIOD's analysis: resampling of uneven samples, periodograms and autocorrelations."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.periods.autoperiod import find_periods
from iosig.transforms.periods.autoperiod_analysis import Analysis, analyze, resample
from iosig.transforms.periods.autoperiod_periodogram import estimate_steps_s
from tests.transforms.periods.test_autoperiod import at_instants

NAN = float("nan")


def test_resampling_keeps_even_samples_and_gaps() -> None:
    times = np.array([0.0, 10.0, 20.0, 30.0, 60.0, 70.0, 80.0])
    values = np.arange(7.0) * 1.5
    samples = at_instants(times, values)
    result, counts = resample(samples, estimate_steps_s(samples))
    np.testing.assert_array_equal(result, [[0, 1.5, 3, 4.5, NAN, NAN, 6, 7.5, 9]])
    assert counts.tolist() == [8]


def test_resampling_interpolates_linearly() -> None:
    times = np.array([0.0, 9.0, 20.0, 31.0, 40.0])
    samples = at_instants(times, 2 * times)
    result, _ = resample(samples, estimate_steps_s(samples))
    np.testing.assert_allclose(result, [[0, 20, 40, 60, 80]])


def test_analysis_arrays_have_the_shapes_that_plots_need() -> None:
    result: Analysis = analyze(at_instants(np.arange(200.0), np.where(np.arange(200) % 10 < 2, 1e9, 0.0)))
    assert result.powers.shape == (1, result.counts[0])
    assert result.correlation[0, :11].argmax() == 0
    assert result.correlation[0, 10] == pytest.approx(1)
    assert find_periods(result).period_s.tolist() == [10]
