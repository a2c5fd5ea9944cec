"""Planted runs have the specified phases, gaps, changes and background traffic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.studies.predictions import planted as made
from iosig.studies.predictions.planted import REQUEST_BYTES, PlantedRun
from iosig.transforms.throughput.requests import Requests
from tests.budget import examples


def drawn(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def handed_over(run: PlantedRun) -> list[Requests]:
    return [run.requests(phase) for phase in range(run.phase_count)]


# ---- HACC-IO


@pytest.mark.parametrize("seed", range(3))
def test_hacc_like_run_has_the_distances_of_the_paper(seed):
    """FTIO, section III-B: 8.7 s, and 7.7 s without the first phase, which lasts from 4.1 s to 15.3 s."""
    run = made.draw_hacc_run(drawn(seed))
    assert run.phase_count == 10
    assert run.gaps_s.mean() == pytest.approx(8.7)
    assert run.gaps_s[1:].mean() == pytest.approx(7.7)
    assert (run.onset_s[0], run.phase_end_s[0]) == (4.1, pytest.approx(15.3))
    assert run.onset_s[1] == pytest.approx(20.8)
    assert run.start_s.shape == (10, 16)


# ---- any run


def every_kind(seed: int) -> dict[str, PlantedRun]:
    return {
        "hacc": made.draw_hacc_run(drawn(seed)),
        "changing": made.draw_changing_run(drawn(seed), 3.0, 0.5, (6, 5), 0.2),
        "out of step": made.draw_changing_run(drawn(seed), 3.0, 2.0, (4, 3), 0.1, desync_ratio=0.6),
        "irregular": made.draw_irregular_run(drawn(seed), 5.0, 9),
    }


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 1000))
def test_phases_do_not_overlap_and_the_first_rank_is_in_step(seed):
    for run in every_kind(seed).values():
        assert (run.onset_s[1:] > run.phase_end_s[:-1]).all()
        assert (run.start_s >= run.onset_s[:, None]).all()
        assert (run.start_s[:, 0] == run.onset_s).all(), "the first rank is in step"
        assert (run.end_s >= run.start_s).all()
        assert (run.end_s[:, 0] == run.phase_end_s).all()
        assert (run.volume_bytes == REQUEST_BYTES).all()


@pytest.mark.parametrize("kind", ["hacc", "changing", "out of step", "irregular"])
def test_run_is_determined_by_the_generator(kind):
    one, same, other = every_kind(4)[kind], every_kind(4)[kind], every_kind(5)[kind]
    assert np.array_equal(one.start_s, same.start_s)
    assert not np.array_equal(one.start_s, other.start_s)


def test_ranks_are_delayed_by_at_most_the_requested_ratio():
    onsets, lengths = 10.0 * np.arange(200), np.full(200, 2.0)
    run = made.plant_phases(onsets, lengths, drawn(), ranks=8, desync_ratio=0.25)
    late = run.start_s - onsets[:, None]
    assert 0.48 < late.max() <= 0.5
    assert late[:, 1:].mean() == pytest.approx(0.25, abs=0.02)
    assert np.isnan(run.period_s).all()


# ---- changes


@pytest.mark.parametrize("period_s", [200.0, 0.2])
@pytest.mark.parametrize("ratio", [2.0, 0.5, 1.0])
def test_gaps_change_at_the_requested_phase(period_s, ratio):
    run = made.draw_changing_run(drawn(2), period_s, ratio, (30, 25), 0.05)
    assert run.phase_count == 55
    assert run.period_s.tolist() == [period_s] * 30 + [ratio * period_s] * 25
    relative = run.gaps_s / run.period_s[:-1]
    assert relative.mean() == pytest.approx(1.0, abs=0.03)
    assert relative.std() == pytest.approx(0.05, abs=0.02)
    assert (run.phase_end_s - run.onset_s).mean() == pytest.approx(0.15 * period_s, rel=0.1)


def test_gaps_without_jitter_equal_the_period():
    run = made.draw_changing_run(drawn(), 10.0, 2.0, (5, 4), jitter=0.0)
    assert run.gaps_s == pytest.approx([10.0] * 5 + [20.0] * 3)


def test_runs_with_different_ratios_are_equal_until_the_change():
    one, other = (made.draw_changing_run(drawn(3), 10.0, ratio, (7, 5), 0.1) for ratio in (1.0, 2.0))
    for name in ("onset_s", "start_s", "end_s"):
        assert np.array_equal(getattr(one, name)[:8], getattr(other, name)[:8])
    assert one.onset_s[8] != other.onset_s[8]


# ---- background


def test_background_is_delivered_once_with_the_requested_volume():
    run = made.draw_changing_run(drawn(1), 10.0, 1.0, (12, 0))
    with_more = made.add_background(run, drawn(2), 0.3)
    rows = handed_over(with_more)
    assert all((row.end_s <= ended).all() for row, ended in zip(rows, with_more.phase_end_s, strict=True))
    within = with_more.background.end_s <= run.phase_end_s[-1]
    assert sum(len(row.start_s) for row in rows) == run.start_s.size + within.sum()
    volume = sum(float(row.volume_bytes.sum()) for row in rows)
    assert volume / run.volume_bytes.sum() == pytest.approx(1.3, rel=0.03)
    assert np.array_equal(with_more.onset_s, run.onset_s)


def test_run_without_background_delivers_only_its_phases():
    run = made.draw_hacc_run(drawn())
    for phase, row in enumerate(handed_over(run)):
        assert np.array_equal(row.start_s, run.start_s[phase])
        assert np.array_equal(row.end_s, run.end_s[phase])


# ---- runs without a period


def test_irregular_gaps_vary_like_exponential_pauses():
    run = made.draw_irregular_run(drawn(6), 10.0, 2000)
    assert run.gaps_s.mean() == pytest.approx(10.0, rel=0.05)
    assert run.gaps_s.std() == pytest.approx(8.5, rel=0.1)
    assert np.isnan(run.period_s).all()


def test_constant_io_has_no_pauses():
    run = made.draw_constant_run(drawn(), 5.0, 6, ranks=3, start_s=2.0)
    assert run.start_s.shape == (6, 24)
    flat = [np.sort(values.reshape(6, 3, 8)[:, 1].ravel()) for values in (run.start_s, run.end_s)]
    assert flat[0][1:] == pytest.approx(flat[1][:-1])
    assert flat[0][0] == 2.0
    assert run.phase_end_s[-1] == pytest.approx(32.0, rel=0.15)


def test_single_phase_has_silence_before_and_after():
    run = made.draw_single_phase(drawn(), 10.0)
    assert run.onset_s[0] == 10.0
    assert run.phase_end_s[-2] == pytest.approx(20.0, rel=0.15)
    assert run.onset_s[-1] == run.phase_end_s[-1] == 40.0
    assert run.volume_bytes[-1].sum() < 1e-3 * run.volume_bytes[0].sum()
