"""Evenly sampled signals: times, gaps, and groups by length."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.arrays import Ragged
from iosig.transforms.periods.interface.even_signals import EvenSignals, group_by_length


def test_duration_is_the_duration_of_the_samples() -> None:
    signal = EvenSignals.from_samples([1.0, 2.0, np.nan, 4.0], 0.5, 10.0)
    assert signal.duration_s == 8.0
    assert signal.end_s == 18.0
    assert signal.missing_ratio == 0.25
    assert signal.volume_bytes == 14.0


def test_slice_keeps_its_times() -> None:
    part = EvenSignals.from_samples(np.arange(6.0), 2.0, 1.0).slice_samples(2, 5)
    assert part.start_s == 2.0
    assert part.end_s == 3.5
    assert part.bytes_per_s.tolist() == [[2.0, 3.0, 4.0]]


def test_empty_signals_are_completely_missing() -> None:
    assert EvenSignals.from_samples([], 1.0).missing_ratio == 1.0


@pytest.mark.parametrize("hz", [0.0, -1.0, np.nan, np.inf])
def test_sampling_frequency_must_be_positive(hz: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        EvenSignals.from_samples([1.0], hz)


@given(st.lists(st.integers(0, 6), max_size=12))
def test_groups_contain_every_signal_once(lengths: list[int]) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    pieces = Ragged(np.arange(float(offsets[-1])), offsets)
    count = len(lengths)
    seen = []
    for places, group in group_by_length(pieces, np.ones(count), np.arange(float(count))):
        assert group.start_s.tolist() == places.tolist()
        for place, values in zip(places, group.bytes_per_s, strict=True):
            assert values.tolist() == pieces.values[offsets[place] : offsets[place + 1]].tolist()
        seen += places.tolist()
    assert sorted(seen) == list(range(count))


@given(st.lists(st.integers(0, 40), max_size=12), st.floats(0.01, 1.0))
def test_padded_groups_contain_every_signal_once_with_nan_padding(lengths: list[int], ratio: float) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    pieces = Ragged(np.arange(float(offsets[-1])), offsets)
    count = len(lengths)
    seen = []
    for places, group in group_by_length(pieces, np.ones(count), np.zeros(count), ratio):
        selected = np.array(lengths)[places]
        assert group.sample_count == selected.max()
        assert group.sample_count <= selected.min() * (1 + ratio) + 1e-6
        for place, values in zip(places, group.bytes_per_s, strict=True):
            assert values[: lengths[place]].tolist() == pieces.values[offsets[place] : offsets[place + 1]].tolist()
            assert np.isnan(values[lengths[place] :]).all()
        seen += places.tolist()
    assert sorted(seen) == list(range(count))


@given(st.integers(1, 9), st.integers(0, 5), st.integers(1, 12))
def test_chunks_are_consecutive_and_complete(signals: int, samples: int, size: int) -> None:
    whole = EvenSignals(
        np.arange(float(signals * samples)).reshape(signals, samples), np.ones(signals), np.zeros(signals)
    )
    parts = [part.bytes_per_s for _, part in whole.iter_chunks(size)]
    assert np.concatenate(parts).tolist() == whole.bytes_per_s.tolist()
