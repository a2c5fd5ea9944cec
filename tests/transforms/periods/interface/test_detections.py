"""Detections: periods, gathering of parts in order, and rejection."""

from itertools import pairwise

import numpy as np
from hypothesis import given, strategies as st

from iosig.transforms.periods.interface.detections import Candidates, Detections, gather


def _numbered(numbers: list[int]) -> Detections:
    """Detections in which all values of a signal equal its number, and so does its number of candidates."""
    selected = np.array(numbers, dtype=np.float64)
    counts = np.array(numbers, dtype=np.int64)
    listed = np.repeat(selected, counts)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    outcome = np.full(len(selected), "periodic")
    return Detections(
        outcome, selected, selected, selected, selected, selected, Candidates(listed, listed, listed, listed, offsets)
    )


def test_period_is_nan_unless_periodic() -> None:
    none = np.full(2, np.nan)
    result = Detections(
        np.array(["periodic", "aperiodic"]), np.array([0.05, np.nan]), none, none, none, none, Candidates.empty(2)
    )
    assert result.signal_count == 2
    assert result.is_periodic.tolist() == [True, False]
    assert result.period_s[0] == 20.0
    assert np.isnan(result.period_s[1])
    assert result.candidates.offsets.tolist() == [0, 0, 0]


@given(st.permutations(range(6)), st.lists(st.integers(0, 6), max_size=4))
def test_gather_restores_the_order_of_signals(order: list[int], cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), 6]
    pieces = [order[first:last] for first, last in pairwise(bounds)]
    result = gather([_numbered(piece) for piece in pieces], [np.array(piece, dtype=np.int64) for piece in pieces])
    whole = _numbered(list(range(6)))
    assert result.frequency_hz.tolist() == whole.frequency_hz.tolist()
    assert result.candidates.offsets.tolist() == whole.candidates.offsets.tolist()
    assert result.candidates.phase_rad.tolist() == whole.candidates.phase_rad.tolist()


def test_gather_of_no_parts_is_empty() -> None:
    assert gather([], []).signal_count == 0


def test_rejected_signals_have_no_period() -> None:
    result = _numbered([1, 2]).reject(np.array([True, False]), "too_many_gaps")
    assert result.outcome.tolist() == ["too_many_gaps", "periodic"]
    assert np.isnan(result.frequency_hz[0])
    assert np.isnan(result.period_s[0])
    assert result.frequency_hz[1] == 2.0
