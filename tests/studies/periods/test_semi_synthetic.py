"""Semi-synthetic traces have every number that the paper states, and their truth equals their content."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.studies.periods.semi_synthetic import (
    NOISE_LEVELS,
    ApplicationParams,
    Applications,
    Library,
    NoiseLevel,
    NoiseParams,
    PhaseParams,
    compute_phase_durations,
    draw_applications,
    draw_library,
    draw_noise_traces,
    draw_phases,
)
from iosig.transforms.throughput.request_phases import request_phases
from tests.budget import examples

#: Few processes and pieces, because the tests do not depend on their number.
SMALL = PhaseParams(process_count=4, piece_count=3)


@pytest.fixture(scope="module")
def small() -> Library:
    return draw_library(np.random.default_rng(1), SMALL)


def drawn(small: Library, count: int = 5, seed: int = 2, **params: float | int | NoiseLevel) -> Applications:
    return draw_applications(ApplicationParams(**params), count, np.random.default_rng(seed), small)  # type: ignore[arg-type]


# ---- the library


def test_phase_durations_equal_the_paper() -> None:
    found = compute_phase_durations(PhaseParams())
    assert len(found) == 99
    assert found[0] == pytest.approx(10.22)
    assert found[-1] == pytest.approx(13.34)
    assert found.mean() == pytest.approx(10.4, rel=1e-9)
    assert (np.diff(found) > 0).all()
    # Few durations are long, so the mean is close to the minimum.
    assert np.median(found) < found.mean()


@settings(max_examples=examples(50), deadline=None)
@given(
    count=st.integers(3, 300),
    shortest=st.floats(0.1, 50.0),
    extent=st.floats(0.1, 50.0),
    place=st.floats(0.01, 0.99),
)
def test_phase_durations_have_any_requested_mean(count: int, shortest: float, extent: float, place: float) -> None:
    share = 1.02 / count + place * (0.49 - 1.02 / count)
    params = PhaseParams(
        phase_count=count, shortest_s=shortest, mean_s=shortest + share * extent, longest_s=shortest + extent
    )
    found = compute_phase_durations(params)
    assert found.min() == pytest.approx(shortest)
    assert found.max() == pytest.approx(shortest + extent)
    assert found.mean() == pytest.approx(params.mean_s, rel=1e-6)


@pytest.mark.parametrize("mean_s", [10.0, 10.22, 11.79, 14.0])
def test_impossible_mean_is_rejected(mean_s: float) -> None:
    with pytest.raises(ValueError, match="mean"):
        PhaseParams(mean_s=mean_s)


def test_mean_below_the_share_of_the_longest_phase_is_rejected() -> None:
    with pytest.raises(ValueError, match="too low"):
        compute_phase_durations(PhaseParams(mean_s=10.23))


def test_phases_move_the_volume_stated_in_the_paper() -> None:
    params = PhaseParams()
    found = draw_phases(params, np.random.default_rng(3))
    assert found.edges_s.shape == (99, 32, 11)
    assert (np.diff(found.edges_s, axis=2) > 0).all()
    assert (found.edges_s[:, :, 0] == 0).all()
    # 3.5 GB per process and 112 GB per phase: about 10 GB/s.
    assert found.piece_bytes * 10 == pytest.approx(3.5e9)
    assert 32 * 3.5e9 / found.durations_s.mean() == pytest.approx(10.8e9, rel=0.01)
    assert sorted(found.durations_s) == pytest.approx(list(compute_phase_durations(params)))
    # No process ends more than a tenth of the phase before the last process.
    assert (found.edges_s[:, :, -1] >= 0.9 * found.durations_s[:, None] - 1e-9).all()


def test_pieces_without_spread_are_even() -> None:
    found = draw_phases(PhaseParams(uneven_ratio=0.0, piece_cov=0.0), np.random.default_rng(4))
    lengths = np.diff(found.edges_s, axis=2)
    assert lengths == pytest.approx(np.broadcast_to(found.durations_s[:, None, None] / 10, lengths.shape))


@pytest.mark.parametrize(("level", "rate"), [("low", 5e8), ("high", 1e9)])
def test_noise_has_the_rates_of_the_paper(level: NoiseLevel, rate: float) -> None:
    found = draw_noise_traces(NoiseParams(), level, np.random.default_rng(5))
    assert found.period_s.shape == (100, 10)
    assert found.period_s.mean() == pytest.approx(2.2, rel=0.01)
    assert found.bytes_per_s.mean() == pytest.approx(rate, rel=0.01)
    assert found.active_s == pytest.approx(found.period_s / 2)


# ---- traces


def test_iterations_without_spread_are_equal() -> None:
    even = PhaseParams(process_count=2, piece_count=2, uneven_ratio=0.0, piece_cov=0.0)
    whole = draw_library(np.random.default_rng(0), even)
    # A single phase, so that each iteration takes the same time.
    only = Library(phases=type(whole.phases)(whole.phases.edges_s[:1], whole.phases.piece_bytes), noise=whole.noise)
    lasting = float(only.phases.durations_s[0])
    found = drawn(only, count=3, compute_mean_s=5.0, iteration_count=4)
    assert found.period_s == pytest.approx([5.0 + lasting] * 3)
    assert found.phase_start_s[0] == pytest.approx([5.0 + i * (5.0 + lasting) for i in range(4)])
    assert found.duration_s == pytest.approx([4 * (5.0 + lasting)] * 3)
    assert found.io_ratio == pytest.approx([lasting / (5.0 + lasting)] * 3)
    # Both processes move their 3.5 GB evenly in each phase, and no other bytes are moved.
    samples = found.instants(10.0)
    values = samples.values[: samples.offsets[1]]
    times = np.arange(len(values)) / 10.0
    is_io = (times % (5.0 + lasting)) >= 5.0
    assert values[~is_io].max() == 0
    assert values[is_io] == pytest.approx(2 * 3.5e9 / lasting)


def test_truth_equals_the_phases_of_the_requests(small: Library) -> None:
    found = drawn(small, count=7, compute_mean_s=11.0, compute_deviation_s=3.0)
    # Compute phases are longer than any gap within a phase.
    told = request_phases(found.requests, 0.5)
    for trace in range(7):
        ours = slice(told.offsets[trace], told.offsets[trace + 1])
        is_long = found.phase_start_s[trace, 1:] - found.phase_end_s[trace, :-1] > 0.5
        started = found.phase_start_s[trace][np.r_[True, is_long]]
        assert told.onset_s[ours] == pytest.approx(started)
        assert told.end_s[ours] == pytest.approx(found.phase_end_s[trace][np.r_[is_long, True]])
        assert told.volume_bytes[ours].sum() == pytest.approx(20 * 4 * 3.5e9)


def test_delays_do_not_affect_the_first_process(small: Library) -> None:
    found = drawn(small, count=50, delay_mean_s=30.0)
    began = found.requests.start_s.reshape(50, 20, 4, 3)[:, :, :, 0]
    assert began[:, :, 0] == pytest.approx(found.phase_start_s)
    delays = began[:, :, 1:] - found.phase_start_s[:, :, None]
    assert (delays >= 0).all()
    assert delays.mean() == pytest.approx(30.0, rel=0.05)
    assert delays.std() == pytest.approx(30.0, rel=0.05)
    ceased = found.requests.end_s.reshape(50, 20, 12)
    assert ceased.max(axis=2) == pytest.approx(found.phase_end_s)


def test_phases_do_not_overlap(small: Library) -> None:
    found = drawn(small, count=20, compute_deviation_s=22.0, delay_mean_s=10.0)
    assert (found.phase_start_s[:, 1:] >= found.phase_end_s[:, :-1]).all()
    assert (found.phase_start_s[:, 0] >= 0).all()


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 2.0])
def test_compute_phases_are_normal_and_positive(small: Library, ratio: float) -> None:
    from scipy.stats import kstest, truncnorm

    found = drawn(small, count=200, compute_mean_s=11.0, compute_deviation_s=11.0 * ratio)
    before = np.concatenate([np.zeros((200, 1)), found.phase_end_s[:, :-1]], axis=1)
    computing = (found.phase_start_s - before).ravel()
    assert computing.min() >= -1e-9
    wanted = truncnorm(-1.0 / ratio, np.inf, loc=11.0, scale=11.0 * ratio)
    assert kstest(computing, wanted.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("level", "rate"), [("low", 2.5e8), ("high", 5e8)])
def test_noise_covers_the_whole_trace(small: Library, level: NoiseLevel, rate: float) -> None:
    quiet, noisy = drawn(small), drawn(small, noise_level=level)
    assert noisy.phase_end_s == pytest.approx(quiet.phase_end_s)
    count = len(quiet.requests.start_s)
    added = noisy.requests.select(slice(count, None))
    for trace in range(5):
        is_own = added.subject == trace
        began, ceased = added.start_s[is_own], added.end_s[is_own]
        assert began[0] == 0
        assert (began[1:] > ceased[:-1]).all()
        assert ceased[-1] <= quiet.duration_s[trace]
        assert quiet.duration_s[trace] - ceased[-1] < 2.2
        # Active for half of the time, at the rate of the level.
        mean = added.volume_bytes[is_own].sum() / quiet.duration_s[trace]
        assert mean == pytest.approx(rate, rel=0.05)


def test_samples_cover_whole_intervals(small: Library) -> None:
    found = drawn(small, count=9, compute_deviation_s=5.0)
    binned, points = found.bins(1.0), found.instants(1.0)
    counts = np.floor(found.duration_s).astype(int)
    assert np.diff(binned.offsets).tolist() == np.diff(points.offsets).tolist() == counts.tolist()
    assert found.instants(1.0, found.steps()).values == pytest.approx(points.values)
    # Bytes missing from the bins lie in the last partial second.
    volume = np.add.reduceat(binned.values, binned.offsets[:-1])
    assert (volume <= 20 * 4 * 3.5e9 * (1 + 1e-12)).all()
    assert (volume >= 20 * 4 * 3.5e9 - 1.0 * 4 * 3.5e9).all()


def test_cropped_traces_start_and_end_within_periods(small: Library) -> None:
    whole = drawn(small, count=300)
    found = whole.crop(np.random.default_rng(3))
    assert found.period_s == pytest.approx(whole.period_s)
    early, late = found.window_start_s / whole.period_s, (whole.window_end_s - found.window_end_s) / whole.period_s
    for share in (early, late):
        assert (share.min(), share.max()) == (pytest.approx(0, abs=0.03), pytest.approx(1, abs=0.03))
    assert found.sample_counts(2.0).tolist() == np.floor(2 * found.duration_s).astype(int).tolist()
    # The cropped trace equals the whole trace from its start on.
    steps = found.steps()
    seen, values = found.instants(1.0, steps), whole.instants(100.0, steps)
    for trace in range(5):
        times = found.window_start_s[trace] + np.arange(found.sample_counts(1.0)[trace])
        nearest = values.values[values.offsets[trace] :][np.round(100 * times).astype(int)]
        own = seen.values[seen.offsets[trace] : seen.offsets[trace + 1]]
        assert np.isclose(own, nearest).mean() > 0.95
    ratio = [
        np.mean(((at >= start[:, None]) & (at < end[:, None])).any(axis=0))
        for start, end, at in zip(
            whole.phase_start_s,
            whole.phase_end_s,
            np.linspace(found.window_start_s, found.window_end_s, 5000, axis=1),
            strict=True,
        )
    ]
    assert found.io_ratio == pytest.approx(ratio, abs=0.01)


def test_io_time_is_from_the_first_to_the_last_request(small: Library) -> None:
    whole = drawn(small, count=5)
    found = whole.narrow_to_io()
    for trace in range(5):
        is_own = whole.requests.subject == trace
        assert found.window_start_s[trace] == whole.requests.start_s[is_own].min()
        assert found.window_end_s[trace] == pytest.approx(whole.requests.end_s[is_own].max())
    compute_s = whole.phase_start_s[:, 0]
    assert whole.duration_s - found.duration_s == pytest.approx(compute_s)
    assert found.period_s == pytest.approx(whole.period_s)
    # no whole number of periods
    periods = found.duration_s / found.period_s
    assert np.abs(periods - np.round(periods)).min() > 0.1


@pytest.mark.parametrize("level", NOISE_LEVELS)
def test_traces_are_determined_by_the_seed(small: Library, level: NoiseLevel) -> None:
    first, second, other = (
        drawn(small, seed=seed, noise_level=level, delay_mean_s=3.0, compute_deviation_s=3.0) for seed in (8, 8, 9)
    )
    assert np.array_equal(first.requests.start_s, second.requests.start_s)
    assert np.array_equal(first.requests.volume_bytes, second.requests.volume_bytes)
    assert not np.array_equal(first.phase_end_s, other.phase_end_s)


@pytest.mark.parametrize("level", NOISE_LEVELS)
def test_zero_traces_give_an_empty_result(small: Library, level: NoiseLevel) -> None:
    found = drawn(small, count=0, noise_level=level)
    assert found.requests.subject_count == 0
    assert found.bins(1.0).offsets.tolist() == [0]
    assert found.instants(1.0).offsets.tolist() == [0]


@pytest.mark.parametrize(
    "params",
    [
        {"iteration_count": 0},
        {"compute_mean_s": -1.0},
        {"compute_mean_s": float("nan")},
        {"compute_deviation_s": -1.0},
        {"delay_mean_s": -1.0},
    ],
)
def test_impossible_settings_are_rejected(params: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"needs|negative"):
        ApplicationParams(**params)  # type: ignore[arg-type]
