"""Correlation of two samples of a run, on the coarser steps."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.sample_checks import RunSamples, correlate_samples, estimate_interference

NAN = float("nan")


def sampled(*runs: list[float], start_s: float = 0.0, interval_s: float = 2.0) -> RunSamples:
    values = np.concatenate([np.zeros(0), *map(np.array, runs)])
    return RunSamples(
        Ragged(values, offsets_of([len(run) for run in runs])),
        np.full(len(runs), start_s),
        np.full(len(runs), interval_s),
    )


def test_equal_samples_correlate_and_constant_samples_are_nan() -> None:
    one = sampled([1.0, 5.0, 2.0], [1.0, 1.0], [3.0, 1.0])
    other = sampled([2.0, 10.0, 4.0], [1.0, 2.0], [1.0, 3.0])
    assert correlate_samples(one, other) == pytest.approx([1.0, NAN, -1.0], nan_ok=True)


def test_fine_steps_are_averaged_and_gaps_excluded() -> None:
    fine = sampled([1.0, 3.0, 4.0, 8.0, 0.0, 2.0, 9.0], start_s=2.0)
    coarse = sampled([7.0, 2.0, 6.0, 1.0, 7.0], start_s=-2.0, interval_s=4.0)
    # The first of five coarse steps begins before the fine sample, which covers only half of the last step.
    expected = np.corrcoef([2.0, 6.0, 1.0], [4.0, 12.0, 2.0])[0, 1]
    assert correlate_samples(coarse, fine) == pytest.approx([expected])
    assert correlate_samples(fine, coarse) == pytest.approx([expected])
    holed = sampled([1.0, 3.0, 4.0, 8.0, NAN, 2.0, 9.0], start_s=2.0)
    assert correlate_samples(holed, coarse) == pytest.approx([1.0])


def test_interference_is_total_minus_known_traffic() -> None:
    own = sampled([1.0, 3.0, 0.0], [2.0], interval_s=4.0)
    every = sampled([1.0, 5.0, 2.0, 2.0, 7.0, NAN], [3.0, 5.0])
    # In the second step, the run moved more than the total: clocks differ.
    assert estimate_interference(own, every) == pytest.approx([2.0, 0.0, NAN, 2.0], nan_ok=True)
    nothing_known = sampled([], [3.0, 5.0])
    assert estimate_interference(own, nothing_known) == pytest.approx([NAN] * 3 + [2.0], nan_ok=True)
