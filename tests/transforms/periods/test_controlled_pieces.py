"""Pieces: the time from the first activity to the last, its windows, and their samples."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.periods.controlled_pieces import Pieces, Signals
from iosig.transforms.periods.even_signals import EvenSignals

NAN = float("nan")


def signals(*rows: list[float]) -> Signals:
    return Signals.of(EvenSignals(np.array(rows), np.ones(len(rows)), np.zeros(len(rows))))


def one(first: int, last: int, row: int = 0) -> Pieces:
    return Pieces(np.array([row]), np.array([first]), np.array([last]))


def test_a_span_is_from_the_first_activity_to_the_last() -> None:
    found = signals([0, 0, 3, 0, 6, 0], [NAN, 1, NAN, -2, 4, NAN], [0, 0, 0, 0, 0, 0], [np.inf] * 6)
    assert found.spans.first.tolist() == [2, 1, 0, 0]
    assert found.spans.last.tolist() == [5, 5, 0, 0]
    np.testing.assert_array_equal(found.rates[:2], [[0, 0, 0.5, 0, 1, 0], [0, 0.25, 0, 0, 1, 0]])
    assert found.known_counts(found.spans).tolist() == [3, 2, 0, 0]
    np.testing.assert_allclose(found.volumes(found.spans), [1.5, 1.25, 0, 0])
    assert found.chosen(np.array([1])).spans.first.tolist() == [1]


@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1e300])
def test_the_unit_does_not_matter(unit: float) -> None:
    found = signals([0, unit, unit, 0])
    assert found.rates.tolist() == [[0, 1, 1, 0]]


def test_windows_overlap_by_half_and_cover_the_piece() -> None:
    windows, owner = one(10, 90).windows(2, np.array([0]))
    assert windows.first.tolist() == [10, 20, 30, 40, 50, 60, 70]
    assert windows.lengths.tolist() == [20] * 7
    assert owner.tolist() == [0] * 7


def test_windows_are_trimmed_to_their_activity() -> None:
    found = signals([0, 1, 0, 0, 1, 0, 0, 0]).trimmed(
        Pieces(np.zeros(3, dtype=int), np.array([0, 2, 5]), np.array([4, 8, 8]))
    )
    assert found.first.tolist()[:2] == [1, 4]
    assert found.last.tolist()[:2] == [2, 5]
    assert found.lengths.tolist() == [1, 1, 0]


def test_samples_behind_a_piece_are_nothing_and_not_known() -> None:
    found = signals([1, 1, NAN, 1, 1, 1, 1, 1])
    rates, known = found.cut(one(1, 5), 16)
    assert rates.tolist() == [[1, 0, 1, 1] + [0] * 12]
    assert known is not None
    assert known.tolist() == [[True, False, True, True] + [False] * 12]
    rates, known = signals([1] * 16).cut(one(0, 16), 16)
    assert known is None


def test_pieces_of_one_size_are_together() -> None:
    pieces = Pieces(np.zeros(3, dtype=int), np.array([0, 0, 3]), np.array([16, 1000, 18]))
    groups = [(places.tolist(), size) for places, size in pieces.grouped()]
    assert groups == [([0, 2], 16), ([1], 1024)]


def test_pieces_of_about_one_length_fit_the_width() -> None:
    lengths = np.concatenate([np.arange(1, 200), [1000, 1024, 1025, 1536, 1537]])
    pieces = Pieces(np.zeros_like(lengths), np.zeros_like(lengths), lengths)
    groups = [(places, width) for places, width in pieces.alike()]
    assert sorted(np.concatenate([places for places, _ in groups]).tolist()) == list(range(len(lengths)))
    for places, width in groups:
        assert lengths[places].max() <= width
        assert width == 16 or lengths[places].min() > width / 1.51


def test_windows_without_activity_are_not_those_of_neighbours() -> None:
    found = signals([0, 0, 0, 0], [5, 0, 0, 5], [0, 0, 0, 0])
    trimmed = found.trimmed(Pieces(np.array([0, 1, 1, 2]), np.array([0, 1, 0, 0]), np.array([4, 3, 4, 4])))
    assert trimmed.lengths.tolist() == [0, 0, 4, 0]
    assert (trimmed.first[2], trimmed.last[2]) == (0, 4)


def test_volumes_between_places_are_sums_of_samples() -> None:
    found = signals([4, 2, 1, 4], [0, 1, 1, 2])
    edges = found.places(np.array([0, 0, 1, 1]), np.array([1, 3, 0, 4]))
    assert found.volumes_of(edges).tolist() == [0.75, 2.0]
    assert found.volumes_of(edges[:0]).tolist() == []
