"""Correlation of two samples of a run, on the coarser steps."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.sample_checks import RunSamples, correlate_samples, estimate_interference, measure_excess
from tests.budget import examples

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


def test_coarser_total_is_compared_on_its_own_steps() -> None:
    # a burst of one of four seconds, all traffic of the first coarse step, and half of that of the second
    own = sampled([0.0, 8.0, 0.0, 0.0, 4.0, 4.0], interval_s=1.0)
    every = sampled([2.0, 4.0], interval_s=4.0)
    # before the run's sample begins and after it ends, the run moves nothing
    assert estimate_interference(own, every) == pytest.approx([0.0] * 4 + [2.0] * 2)
    gap = sampled([2.0, NAN], interval_s=4.0)
    assert estimate_interference(own, gap) == pytest.approx([0.0] * 4 + [NAN] * 2, nan_ok=True)


# ---- own bytes above all bytes


def pieces(*runs: list[float]) -> Ragged:
    return Ragged(np.concatenate([np.zeros(0), *map(np.array, runs)]), offsets_of([len(run) for run in runs]))


@pytest.mark.parametrize(
    ("own", "total", "tolerance", "excess"),
    [
        ([0.0, 5.0, 0.0], [9.0, 5.0, 0.0], 0, 0.0),
        ([0.0, 5.0, 0.0], [9.0, 3.0, 9.0], 0, 2.0),
        # bytes that servers move up to one step earlier or later are no excess
        ([0.0, 5.0, 0.0], [0.0, 5.0, 0.0, 0.0, 0.0], 1, 0.0),
        ([0.0, 5.0, 0.0], [0.0, 0.0, 0.0, 5.0, 0.0], 1, 0.0),
        ([0.0, 5.0, 0.0], [5.0, 0.0, 0.0, 0.0, 5.0], 1, 5.0),
        # the same bytes do not count for two bursts
        ([5.0, 0.0, 5.0], [0.0, 0.0, 5.0, 0.0, 0.0], 1, 5.0),
        # small excesses of an interval add up
        ([2.0, 2.0, 2.0], [1.0, 1.0, 1.0], 0, 3.0),
        ([2.0, 2.0, 2.0], [1.0, 3.0, 1.0], 0, 1.0),
        # an unmeasured step may have moved all
        ([2.0, 2.0, 2.0], [1.0, NAN, 1.0], 0, 1.0),
    ],
)
def test_excess_is_largest_of_any_interval(own: list[float], total: list[float], tolerance: int, excess: float) -> None:
    result = measure_excess(pieces(own), pieces(total), np.array([tolerance]))
    assert result.excess_bytes.tolist() == [excess]


def test_compared_share_is_of_bytes_or_of_time() -> None:
    own = pieces([6.0, 2.0, 0.0], [0.0, 0.0], [])
    total = pieces([9.0, 9.0, NAN, 9.0, 9.0], [NAN, 9.0, 9.0, 9.0], [9.0, 9.0])
    result = measure_excess(own, total, np.array([1, 1, 1]))
    assert result.compared_ratio.tolist() == [0.0, 0.5, 0.0]
    assert measure_excess(own, pieces([9.0, 9.0, NAN], [9.0, 9.0], []), np.zeros(3, int)).compared_ratio.tolist() == [
        1.0,
        1.0,
        0.0,
    ]


@pytest.mark.parametrize("seed", range(examples(40)))
def test_excess_equals_that_of_all_intervals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts, tolerance = rng.integers(0, 12, 5), rng.integers(0, 4, 5)
    runs = [rng.integers(0, 9, count) * (rng.random(count) < 0.6) * 1.0 for count in counts]
    totals = [rng.integers(0, 9, count + 2 * steps) * 1.0 for count, steps in zip(counts, tolerance, strict=True)]
    for values in totals:
        values[rng.random(len(values)) < 0.1] = NAN
    result = measure_excess(pieces(*runs), pieces(*totals), tolerance)
    for run, (own, total, steps) in enumerate(zip(runs, totals, tolerance, strict=True)):
        excess, compared = 0.0, 0.0
        for first in range(len(own)):
            for last in range(first + 1, len(own) + 1):
                # NaN in the interval makes the comparison false
                if own[first:last].sum() - total[first : last + 2 * steps].sum() > excess:
                    excess = own[first:last].sum() - total[first : last + 2 * steps].sum()
            is_known = not np.isnan(total[first : first + 2 * steps + 1]).any()
            compared += is_known * (own[first] if own.sum() else 1.0)
        assert result.excess_bytes[run] == excess
        assert result.compared_ratio[run] == pytest.approx(compared / max(own.sum() or len(own), 1))
