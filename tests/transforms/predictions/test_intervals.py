"""Frequency intervals (FTIO, section II-D), DBSCAN against scikit-learn, and prediction of the next burst."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.predictions.intervals import (
    HitRecord,
    IntervalParams,
    NextBurstParams,
    PeriodRange,
    PredictionHistory,
    cluster_dbscan,
    merge_frequencies,
    predict_next_burst,
)
from tests.budget import examples
from tests.naive.predictions import intervals as naive

NAN = math.nan
#: Exact in binary, so that ties at exactly eps are ties in every implementation.
grid = st.integers(0, 60).map(lambda number: number / 8)
points = st.lists(st.tuples(grid, st.integers(1, 12).map(lambda number: number / 8)), max_size=40)
evaluations = st.lists(st.tuples(st.none() | st.floats(1e-4, 2.0), st.floats(5.0, 5000.0)), min_size=1, max_size=30)


# ---- DBSCAN


@given(st.lists(grid, min_size=1, max_size=50), st.integers(1, 16), st.integers(1, 5))
@settings(max_examples=examples(25), deadline=None)
def test_constant_eps_matches_scikit_learn(position: list[float], eighths: int, min_samples: int) -> None:
    from sklearn.cluster import DBSCAN

    eps = eighths / 8
    oracle = DBSCAN(eps=eps, min_samples=min_samples).fit_predict(np.array(position)[:, None])
    result = cluster_dbscan(np.array(position), np.full(len(position), eps), min_samples)
    assert result.tolist() == oracle.tolist()


@given(points.filter(bool), st.integers(1, 5))
@settings(max_examples=examples(25), deadline=None)
def test_eps_per_point_matches_scikit_learn(pairs: list[tuple[float, float]], min_samples: int) -> None:
    from sklearn.cluster import DBSCAN

    position, eps = np.array(pairs).T
    is_apart = 2 * np.abs(position[:, None] - position) > eps[:, None] + eps
    oracle = DBSCAN(eps=0.5, min_samples=min_samples, metric="precomputed").fit_predict(is_apart.astype(float))
    assert cluster_dbscan(position, eps, min_samples).tolist() == oracle.tolist()


@given(points, st.integers(1, 5))
@settings(max_examples=examples(25), deadline=None)
def test_clusters_match_naive_implementation(pairs: list[tuple[float, float]], min_samples: int) -> None:
    position, eps = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    result = cluster_dbscan(np.array(position, dtype=float), np.array(eps, dtype=float), min_samples)
    assert result.tolist() == naive.dbscan(position, eps, min_samples)


def test_border_point_joins_first_cluster() -> None:
    left, right, border = [0.0, 0.1, 0.2], [2.0, 2.1, 2.2], [1.1]
    eps = np.full(7, 0.9)
    # With min_samples of three, including the point itself, the point is a core point and joins both clusters.
    assert cluster_dbscan(np.array(left + right + border), eps, 3).tolist() == [0] * 7
    # With min_samples of four, the point is a border point of both clusters.
    wider = np.array([0.0, 0.1, 0.15, 0.2, 2.0, 2.05, 2.1, 2.2, 1.1])
    assert cluster_dbscan(wider, np.full(9, 0.9), 4).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 0]
    turned = cluster_dbscan(np.concatenate([wider[4:8], wider[:4], wider[8:]]), np.full(9, 0.9), 4)
    assert turned.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 0]


# ---- intervals


def test_two_behaviors_give_two_intervals() -> None:
    history = PredictionHistory()
    for frequency in (0.100, 0.102, None, 0.098, 0.200, 0.201, 0.199, None):
        result = history.add(frequency, 100.0)
    assert result.low_hz.tolist() == [0.098, 0.199]
    assert result.median_hz.tolist() == pytest.approx([0.100, 0.200])
    assert result.high_hz.tolist() == [0.102, 0.201]
    assert result.evaluation_count.tolist() == [3, 3]
    assert result.probability.tolist() == [3 / 8, 3 / 8]
    assert result.label.tolist() == [0, 0, -1, 0, 1, 1, 1, -1]
    assert result.current is None
    result = history.add(0.2, 100.0)
    assert result.current == 1
    periods = result.periods(1)
    assert (periods.shortest_s, periods.typical_s, periods.longest_s) == pytest.approx((1 / 0.201, 5.0, 1 / 0.199))


@pytest.mark.parametrize("scale", [1e-6, 0.005, 1.0, 1000.0])
def test_only_adjacent_bins_merge(scale: float) -> None:
    window = 17.0 / scale
    near = merge_frequencies(np.array([7, 8]) / window, np.full(2, window))
    assert near.label.tolist() == [0, 0]
    assert merge_frequencies(np.array([7, 9]) / window, np.full(2, window)).label.tolist() == [-1, -1]


def test_short_window_does_not_merge_separate_intervals() -> None:
    # The resolution of the short window, 0.1 Hz, would join the four other frequencies.
    frequency = np.array([0.5, 0.100, 0.101, 0.130, 0.131])
    result = merge_frequencies(frequency, np.array([10.0, 500, 500, 500, 500]))
    assert result.label.tolist() == [-1, 0, 0, 1, 1]


def test_single_frequency_needs_min_samples_of_one() -> None:
    assert merge_frequencies(np.array([0.1]), np.array([50.0])).current is None
    result = merge_frequencies(np.array([0.1]), np.array([50.0]), IntervalParams(min_samples=1))
    assert (result.current, result.probability.tolist()) == (0, [1.0])


@given(evaluations, st.integers(1, 4), st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=examples(25), deadline=None)
def test_intervals_match_naive_implementation(
    given_ones: list[tuple[float | None, float]], min_samples: int, ratio: float
) -> None:
    frequency = np.array([NAN if each is None else each for each, _ in given_ones])
    windows = np.array([window for _, window in given_ones])
    result = merge_frequencies(frequency, windows, IntervalParams(min_samples=min_samples, resolution_ratio=ratio))
    columns = (result.low_hz, result.median_hz, result.high_hz, result.evaluation_count, result.probability)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    expected = naive.intervals(given_ones, min_samples, ratio)
    assert [row[3] for row in rows] == [row[3] for row in expected]
    np.testing.assert_allclose(np.array(rows).reshape(-1, 5), np.array(expected).reshape(-1, 5), rtol=1e-12)
    assert result.probability.sum() <= 1 + 1e-12
    for number in range(len(rows)):
        members = frequency[result.label == number]
        assert (members.min(), members.max(), len(members)) == (rows[number][0], rows[number][2], rows[number][3])


# ---- history


@given(evaluations, st.integers(1, 8))
@settings(max_examples=examples(30), deadline=None)
def test_history_keeps_last_evaluations_and_resumes(given_ones: list[tuple[float | None, float]], kept: int) -> None:
    params = IntervalParams(history_count=kept)
    history = PredictionHistory(params)
    for number, (frequency, window) in enumerate(given_ones):
        if number == len(given_ones) // 2:
            history = PredictionHistory.from_dict(json.loads(json.dumps(history.to_dict())))
        result = history.add(frequency, window)
    assert len(history) == min(kept, len(given_ones))
    last = given_ones[-kept:]
    again = merge_frequencies(
        np.array([NAN if f is None else f for f, _ in last]), np.array([w for _, w in last]), params
    )
    assert result.label.tolist() == again.label.tolist()
    assert result.low_hz.tolist() == again.low_hz.tolist()
    assert result.probability.tolist() == again.probability.tolist()


def test_empty_history_has_no_intervals() -> None:
    result = PredictionHistory().intervals()
    assert (result.current, len(result.low_hz), len(result.label)) == (None, 0, 0)


@pytest.mark.parametrize(
    ("frequency", "window"),
    [
        (0.0, 1.0),
        (-1.0, 1.0),
        (NAN, 1.0),
        (math.inf, 1.0),
        (5e-324, 1.0),
        (0.1, 0.0),
        (0.1, NAN),
        (0.1, -5.0),
        (None, math.inf),
        (0.1, 5e-324),
    ],
)
def test_invalid_evaluation_raises_and_is_not_kept(frequency: float | None, window: float) -> None:
    history = PredictionHistory()
    with pytest.raises(ValueError, match="finite number above 0"):
        history.add(frequency, window)
    assert len(history) == 0


# ---- the next burst

STARTS = np.array([0.0, 10.0, 20.0, 30.0])
VOLUMES = np.array([1e9, 2e9, 3e9, 4e9])


def test_regular_bursts_are_extrapolated() -> None:
    result = predict_next_burst(STARTS, VOLUMES, PeriodRange(9.5, 10.0, 10.5), 33.0)
    assert (result.outcome, result.overdue_s, result.missed_count) == ("expected", 0.0, 0)
    assert (result.earliest_start_s, result.start_s, result.latest_start_s) == (39.5, 40.0, 40.5)
    assert result.volume_bytes == 2.5e9
    # The predictive distribution of four values does not reach the 10 % quantile.
    assert (result.low_volume_bytes, result.high_volume_bytes) == (1e9, 4e9)
    wide = predict_next_burst(STARTS, VOLUMES, None, 33.0, NextBurstParams(tail_ratio=0.25))
    assert (wide.low_volume_bytes, wide.high_volume_bytes) == pytest.approx((1.25e9, 3.75e9))


def test_bursts_correct_the_period() -> None:
    # As in the paper's Figure 15: bursts 8.7 s apart, a predicted period of 8 s.
    starts = 15.3 + 8.7 * np.arange(7)
    result = predict_next_burst(starts, np.full(7, 1e9), PeriodRange(7.9, 8.0, 8.2), starts[-1] + 1)
    assert result.start_s == pytest.approx(starts[-1] + 8.7)
    assert result.earliest_start_s <= result.start_s <= result.latest_start_s


def test_hacc_io_run_is_predicted_burst_by_burst() -> None:
    # Ten bursts, the first late, 8.7 s apart on average; predicted periods as in Figure 15, from three bursts on.
    starts = 15.3 + np.cumsum([0.0, 8.1, 8.2, 9.5, 8.4, 9.3, 8.2, 8.8, 9.2, 8.6])
    history = PredictionHistory()
    errors, inside = [], []
    for seen, period in enumerate([8.1, 8.1, 8.0, 8.3, 8.6, 8.8, 8.7], start=3):
        now = float(starts[seen - 1])
        result = history.add(1 / period, min(now, 26.0))
        within = result.label[result.label >= 0]
        if not len(within):
            continue
        burst = predict_next_burst(starts[:seen], np.full(seen, 1e10), result.periods(int(within[-1])), now)
        inside.append(burst.earliest_start_s <= starts[seen] <= burst.latest_start_s)
        errors.append(abs(burst.start_s - starts[seen]))
    assert len(errors) == 6
    # The nominal coverage is 80 %.
    assert sum(inside) >= 0.8 * len(inside)
    assert np.mean(errors) < 0.1 * 8.7


def test_due_burst_is_never_in_the_past() -> None:
    result = predict_next_burst(STARTS, VOLUMES, PeriodRange(9.0, 10.0, 12.0), 41.0)
    assert (result.outcome, result.missed_count) == ("due", 0)
    assert (result.earliest_start_s, result.start_s, result.latest_start_s) == (41.0, 41.0, 42.0)


def test_overdue_burst_is_reported() -> None:
    result = predict_next_burst(STARTS, VOLUMES, PeriodRange(9.5, 10.0, 10.5), 63.0)
    assert (result.outcome, result.overdue_s, result.missed_count) == ("overdue", 22.5, 3)
    assert (result.earliest_start_s, result.start_s, result.latest_start_s) == (63.0, 70.0, 72.0)


def test_missed_burst_is_no_phase_shift() -> None:
    starts = np.array([0.0, 10.0, 30.0, 40.0])
    result = predict_next_burst(starts, VOLUMES, PeriodRange(10.0, 10.0, 10.0), 41.0)
    assert (result.earliest_start_s, result.start_s, result.latest_start_s) == (50.0, 50.0, 50.0)


def test_scatter_widens_the_range() -> None:
    rng = np.random.default_rng(3)
    starts = np.cumsum(10.0 + rng.uniform(-2, 2, 8))
    exact = predict_next_burst(10.0 * np.arange(8), np.ones(8), PeriodRange(10.0, 10.0, 10.0), 70.0)
    scattered = predict_next_burst(starts, np.ones(8), PeriodRange(10.0, 10.0, 10.0), float(starts[-1]))
    assert exact.latest_start_s == exact.earliest_start_s
    assert 1.0 < scattered.latest_start_s - scattered.earliest_start_s <= 4.0


def test_ranges_have_nominal_coverage() -> None:
    rng = np.random.default_rng(11)
    volumes = rng.lognormal(20, 1, (400, 11))
    # Gaps about a period that is 5 % too long for all of them.
    starts = np.cumsum(rng.normal(9.5, 0.4, (400, 11)), axis=1)
    period = PeriodRange(10.0, 10.0, 10.0)
    result = [predict_next_burst(s[:10], v[:10], period, float(s[9])) for s, v in zip(starts, volumes, strict=True)]
    in_volume = [b.low_volume_bytes <= v <= b.high_volume_bytes for b, v in zip(result, volumes[:, 10], strict=True)]
    in_time = [b.earliest_start_s <= s <= b.latest_start_s for b, s in zip(result, starts[:, 10], strict=True)]
    # 80 % by design; three standard errors are 6 %. The period adds to the range of times, which raises their coverage.
    assert 0.74 <= np.mean(in_volume) <= 0.86
    assert 0.74 <= np.mean(in_time) <= 0.92


def test_only_last_bursts_count() -> None:
    starts = np.concatenate([[0.0, 3.0, 4.0], 100 + STARTS])
    volumes = np.concatenate([[9e12] * 3, VOLUMES])
    few = predict_next_burst(starts, volumes, PeriodRange(10.0, 10.0, 10.0), 130.0, NextBurstParams(burst_count=4))
    assert few.volume_bytes == 2.5e9
    assert few.earliest_start_s == few.latest_start_s == 140.0


def test_missing_period_or_bursts_give_no_time() -> None:
    none = predict_next_burst(STARTS, VOLUMES, None, 40.0)
    assert (none.outcome, none.volume_bytes) == ("no_period", 2.5e9)
    assert math.isnan(none.start_s)
    empty = predict_next_burst(np.zeros(0), np.zeros(0), PeriodRange(1.0, 1.0, 1.0), 0.0)
    assert empty.outcome == "no_bursts"
    assert math.isnan(empty.volume_bytes)
    unknown = predict_next_burst(STARTS, np.array([NAN, 5e9, NAN, NAN]), PeriodRange(9.0, 10.0, 11.0), 30.0)
    assert (unknown.low_volume_bytes, unknown.volume_bytes, unknown.high_volume_bytes) == (5e9, 5e9, 5e9)


@given(
    st.lists(st.floats(0, 30), min_size=1, max_size=12),
    st.floats(2.0, 20.0),
    st.floats(0.0, 0.5),
    st.floats(0.0, 100.0),
)
@settings(max_examples=examples(50), deadline=None)
def test_next_start_matches_naive_implementation(gaps: list[float], period: float, spread: float, wait: float) -> None:
    starts = 1.7e9 + np.cumsum(np.round(np.array(gaps), 3))
    now = float(starts[-1]) + wait
    periods = PeriodRange(period * (1 - spread), period, period * (1 + spread))
    result = predict_next_burst(
        starts, np.ones(len(starts)), periods, now, NextBurstParams(burst_count=12, tail_ratio=0.0)
    )
    times = (result.earliest_start_s, result.start_s, result.latest_start_s)
    assert now <= times[0]
    assert all(low <= high for low, high in pairwise(times))
    assert (result.overdue_s > 0) == (result.outcome == "overdue") == (result.missed_count > 0)
    gap_ratio = np.diff(starts) / period
    is_tie = np.abs(gap_ratio % 1 - 0.5).min(initial=1) < 1e-6
    # With twelve bursts, gaps alone determine the range.
    low, high = (period, period) if len(starts) == 12 else (periods.shortest_s, periods.longest_s)
    expected = naive.next_start(starts.tolist(), low, period, high, now)
    near_step = abs((now - result.start_s) / period) < 1e-6
    if not (is_tie or near_step or abs(now - expected[2]) < 1e-5):
        assert result.missed_count == expected[3]
        np.testing.assert_allclose(times, expected[:3], atol=1e-5, rtol=0)


def test_interval_widens_range_of_few_bursts_only() -> None:
    starts = 10.0 * np.arange(12)
    wide = PeriodRange(9.0, 10.0, 11.0)
    few, many = (predict_next_burst(starts[:count], np.ones(count), wide, starts[count - 1]) for count in (9, 12))
    assert few.latest_start_s - few.earliest_start_s == pytest.approx(2.0)
    assert many.latest_start_s == many.earliest_start_s == pytest.approx(120.0)


def test_very_long_overdue_burst_terminates() -> None:
    result = predict_next_burst(np.array([0.0]), np.array([1.0]), PeriodRange(1e-300, 1e-300, 1e-300), 1e300)
    assert result.outcome == "overdue"
    assert result.earliest_start_s == result.start_s == 1e300


@pytest.mark.parametrize(
    ("starts", "volumes", "now"),
    [
        ([0.0, 1.0], [1.0], 5.0),
        ([1.0, 0.0], [1.0, 1.0], 5.0),
        ([NAN], [1.0], 5.0),
        ([9.0], [1.0], 5.0),
        ([0.0], [1.0], NAN),
        ([0.0], [1.0], math.inf),
    ],
)
def test_invalid_bursts_raise(starts: list[float], volumes: list[float], now: float) -> None:
    with pytest.raises(ValueError, match=r"burst|start"):
        predict_next_burst(np.array(starts), np.array(volumes), PeriodRange(1.0, 1.0, 1.0), now)


@pytest.mark.parametrize("values", [(0.0, 1.0, 2.0), (2.0, 1.0, 3.0), (1.0, 2.0, math.inf), (1.0, NAN, 2.0)])
def test_invalid_range_of_periods_raises(values: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="range of periods"):
        PeriodRange(*values)


# ---- ranges of few or drifting gaps, and hit rates of intervals


def test_ranges_of_few_gaps_have_nominal_coverage() -> None:
    rng = np.random.default_rng(2)
    within = []
    for _ in range(1500):
        starts = np.cumsum(20 * (1 + 0.05 * rng.standard_normal(5)))
        burst = predict_next_burst(starts[:4], np.ones(4), PeriodRange(20.0, 20.0, 20.0), float(starts[3]))
        within.append(burst.earliest_start_s <= starts[4] <= burst.latest_start_s)
    assert 0.75 < np.mean(within) < 0.9


def test_drift_is_extrapolated() -> None:
    starts = np.cumsum(20.0 + 0.5 * np.arange(9))
    burst = predict_next_burst(starts, np.ones(9), PeriodRange(22.0, 22.0, 22.0), float(starts[-1]))
    assert burst.start_s - starts[-1] == pytest.approx(24.5)
    assert burst.latest_start_s - burst.earliest_start_s < 3.0


def test_hit_record_reflects_interval_hits() -> None:
    always, never = HitRecord(), HitRecord()
    interval = PeriodRange(9.0, 10.0, 11.0)
    chances = []
    for _ in range(30):
        chances = [record.probability(interval, [10.0] * 5) for record in (always, never)]
        always.update([10.2])
        never.update([14.0])
    assert chances[0] > 0.85
    assert chances[1] < 0.25
    # An empty update does not change the record.
    before = (always.hits, always.count)
    always.update([])
    always.update([10.0])
    assert (always.hits, always.count) == before
    assert HitRecord.from_dict(always.to_dict()) == always
