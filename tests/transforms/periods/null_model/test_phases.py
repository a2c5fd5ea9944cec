"""Phases of I/O: runs above a threshold, their typical size, bridged measurement gaps, and merging."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from iosig.studies.periods import noise
from iosig.transforms.periods.null_model.gaps import has_too_many_phases
from iosig.transforms.periods.null_model.phases import Phases, find_activity, find_phases, merge_phases
from tests.budget import examples
from tests.naive.periods.null_model import gaps as naive


def pulses(starts: list[int], length: int, sample_count: int) -> np.ndarray:
    rates = np.zeros((1, sample_count))
    for start in starts:
        rates[0, start : start + length] = 1.0
    return rates


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=9, max_size=9), min_size=1, max_size=5), st.integers(0, 2))
def test_phases_match_naive_implementation(rows: list[list[int]], threshold: int) -> None:
    result = find_phases(np.array(rows, dtype=float), np.full(len(rows), float(threshold)))
    for row, values in enumerate(rows):
        selected = slice(result.offsets[row], result.offsets[row + 1])
        rows_of_signal = list(
            zip(
                result.first[selected].tolist(),
                result.last[selected].tolist(),
                result.volume[selected].tolist(),
                strict=True,
            )
        )
        assert rows_of_signal == naive.find_runs(values, threshold)


def test_unmeasured_samples_inside_a_phase_belong_to_the_phase() -> None:
    rates = np.array([[0, 5, 0, 5, 0, 0, 5, 0, 0, 0.0]])
    known = np.array([[True, True, False, True, False, False, True, False, True, False]])
    result = find_phases(rates, np.array([1.0]), known)
    assert result.first.tolist() == [1]
    assert result.last.tolist() == [7]


def test_constant_has_no_phase_despite_rounding() -> None:
    rates = np.full((1, 1001), 0.1, dtype=np.float32)
    assert not find_phases(rates, rates.mean(axis=1)).counts.any()


def test_typical_sizes_are_volume_weighted_means() -> None:
    result = Phases(np.array([0, 5]), np.array([1, 9]), np.array([1.0, 3.0]), np.array([0, 2, 2]))
    assert result.typical_volume.tolist() == [2.5, 0.0]
    assert result.typical_length.tolist() == [(1 * 1 + 3 * 4) / 4, 0.0]
    assert result.effective_counts.tolist() == [1.6, 0.0]
    assert result.drop_small(0.5).first.tolist() == [5]


def test_flickering_signal_has_unresolved_phases() -> None:
    rates = noise.draw_white(np.random.default_rng(1), 2, 1000)
    rates[1] = pulses(list(range(0, 1000, 20)), 2, 1000)
    active = find_activity(rates, rates.mean(axis=1))
    assert has_too_many_phases(active, np.array([1000, 1000])).tolist() == [True, False]
    assert active.select(np.array([False, True])).to_phases(rates).counts.tolist() == [0, 50]


def test_close_phases_are_merged() -> None:
    result = find_phases(pulses([0, 4, 20, 24, 40], 2, 50), np.array([0.5]))
    assert merge_phases(result, np.array([0])).counts.tolist() == [5]
    merged = merge_phases(result, np.array([2]))
    assert (merged.first.tolist(), merged.last.tolist(), merged.volume.tolist()) == (
        [0, 20, 40],
        [6, 26, 42],
        [4, 4, 2],
    )
