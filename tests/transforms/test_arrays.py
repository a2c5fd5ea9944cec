"""Ragged arrays match naive implementations that loop over pieces."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import (
    Ints,
    Ragged,
    Reals,
    concatenate_pieces,
    concatenate_rows,
    cut,
    offsets_of,
    owners,
    places_of,
    places_within,
    rows_of,
    split_into_chunks,
)
from tests.budget import examples
from tests.naive import arrays as naive

NAN = float("nan")


def ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def pieces(ragged: Ragged) -> list[Reals]:
    return [ragged.values[low:high] for low, high in pairwise(ragged.offsets)]


# ---- idioms

COUNTS = st.lists(st.integers(0, 5), max_size=12)


@settings(max_examples=examples(50), deadline=None)
@given(COUNTS)
def test_owners_and_places_match_naive_implementation(counts: list[int]) -> None:
    offsets = offsets_of(counts)
    assert offsets.tolist() == naive.offsets(counts)
    assert offsets.dtype == np.int64
    assert owners(offsets).tolist() == [owner for owner, _ in naive.rows(counts)]
    assert places_within(ints(counts)).tolist() == [place for _, place in naive.rows(counts)]


def test_offsets_accept_booleans_and_empty_input() -> None:
    assert offsets_of(np.array([True, False, True])).tolist() == [0, 1, 1, 2]
    assert offsets_of([]).tolist() == [0]


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), max_size=12))
def test_places_are_consecutive_from_first_of_each_piece(ranges: list[tuple[int, int]]) -> None:
    result = places_of(ints([first for first, _ in ranges]), ints([count for _, count in ranges]))
    assert result.tolist() == [first + step for first, count in ranges for step in range(count)]


@settings(max_examples=examples(50), deadline=None)
@given(COUNTS.filter(bool), st.data())
def test_places_in_matches_naive_implementation(counts: list[int], data: st.DataObject) -> None:
    selected = data.draw(st.lists(st.integers(0, len(counts) - 1), max_size=8))
    offsets = offsets_of(counts)
    ragged = Ragged(np.arange(float(offsets[-1])), offsets)
    assert ragged.counts.tolist() == counts
    assert ragged.owner.tolist() == owners(offsets).tolist()
    rows = naive.rows(counts)
    expected = [place for piece in selected for place, (owner, _) in enumerate(rows) if owner == piece]
    assert ragged.places_in(ints(selected)).tolist() == expected


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns of one length."""

    number: Ints
    value: Reals


def test_rows_of_selects_from_every_field() -> None:
    pair = Pair(ints([1, 2, 3]), np.array([0.5, NAN, 2.5]))
    for at in (ints([2, 0]), np.array([True, False, True]), slice(1, None), ints([])):
        result = rows_of(pair, at)
        np.testing.assert_array_equal(result.number, pair.number[at])
        np.testing.assert_array_equal(result.value, pair.value[at])


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=5))
def test_concatenate_rows_keeps_order(parts: list[list[int]]) -> None:
    result = concatenate_rows([Pair(ints(part), np.array(part, dtype=float)) for part in parts])
    assert result.number.tolist() == result.value.tolist() == [value for part in parts for value in part]


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=4), min_size=1, max_size=4))
def test_concatenate_pieces_keeps_order(parts: list[list[list[int]]]) -> None:
    tables = [
        Ragged(
            np.array([value for piece in part for value in piece], dtype=np.float64),
            offsets_of([len(piece) for piece in part]),
        )
        for part in parts
    ]
    assert [piece.tolist() for piece in pieces(concatenate_pieces(tables))] == [
        piece for part in parts for piece in part
    ]


# ---- pieces of a series


@st.composite
def cuts(draw: st.DrawFn) -> tuple[list[float], list[int], list[int]]:
    series = draw(st.lists(st.just(NAN) | st.floats(0, 1e15), max_size=40))
    places = st.integers(0, max(len(series) - 1, 0))
    bounds = draw(st.lists(st.tuples(places, places), max_size=20)) if series else []
    return series, [low for low, _ in bounds], [high for _, high in bounds]


@settings(max_examples=examples(50), deadline=None)
@given(cuts())
def test_cut_matches_naive_implementation(case: tuple[list[float], list[int], list[int]]) -> None:
    series, first, last = case
    result = cut(np.array(series, dtype=float), ints(first), ints(last))
    expected = naive.cut(series, first, last)
    assert result.offsets.dtype == np.int64
    assert len(result.offsets) == len(first) + 1
    for piece, slice_ in zip(pieces(result), expected, strict=True):
        np.testing.assert_array_equal(piece, np.array(slice_, dtype=float))


def test_pieces_may_overlap_repeat_or_be_empty() -> None:
    result = cut(np.array([10.0, 11.0, NAN, 13.0]), ints([0, 1, 1, 3, 2]), ints([1, 3, 3, 3, 1]))
    np.testing.assert_array_equal(result.values, [10, 11, 11, NAN, 13, 11, NAN, 13, 13])
    assert result.offsets.tolist() == [0, 2, 5, 8, 9, 9]


def test_cut_without_pieces_is_empty() -> None:
    result = cut(np.array([1.0]), ints([]), ints([]))
    assert result.values.size == 0
    assert result.offsets.tolist() == [0]


def test_empty_series_allows_only_empty_pieces() -> None:
    result = cut(np.array([]), ints([5, -3]), ints([4, -4]))
    assert result.offsets.tolist() == [0, 0, 0]
    with pytest.raises(IndexError):
        cut(np.array([]), ints([0]), ints([0]))


@pytest.mark.parametrize(("first", "last"), [(-1, 0), (2, 3), (3, 3), (-2, -1), (-9, 9)])
def test_piece_beyond_the_series_raises_index_error(first: int, last: int) -> None:
    with pytest.raises(IndexError, match="beyond the series"):
        cut(np.array([1.0, 2.0, 3.0]), ints([0, first]), ints([1, last]))


def test_cut_copies_the_series() -> None:
    series = np.array([1.0, 2.0, 3.0])
    result = cut(series, ints([0, 0]), ints([2, 2]))
    result.values[0] = 9
    assert series.tolist() == [1, 2, 3]
    assert result.values.tolist() == [9, 2, 3, 1, 2, 3]


def test_cut_of_2000_jobs_takes_less_than_two_seconds() -> None:
    random = np.random.default_rng(1)
    first = random.integers(0, 40_000, 2_000)
    start_s = time.process_time()
    result = cut(np.arange(43_200.0), first, first + 3_000)
    assert time.process_time() - start_s < 2
    assert result.values.size == 2_000 * 3_001
    assert (result.values[result.offsets[:-1]] == first).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 60), st.one_of(st.none(), st.integers(1, 5)))
def test_chunks_contain_all_items_in_order_and_are_full(sizes: list[int], max_size: int, max_count: int | None) -> None:
    counts = np.array(sizes, dtype=np.int64)
    chunks = split_into_chunks(counts, max_size, max_count)
    assert [place for chunk in chunks for place in range(chunk.start, chunk.stop)] == list(range(len(sizes)))
    for chunk in chunks:
        assert counts[chunk].sum() <= max_size or chunk.stop - chunk.start == 1
        assert chunk.stop - chunk.start <= (max_count or len(sizes))
    # The first item of each chunk does not fit into the previous chunk.
    for chunk, after in pairwise(chunks):
        is_full = chunk.stop - chunk.start == max_count
        assert is_full or counts[chunk].sum() + counts[after.start] > max_size


def test_chunks_of_narrow_integers_do_not_overflow() -> None:
    assert split_into_chunks(np.full(4, 4_000_000_000, dtype=np.uint32), 8_000_000_000) == [slice(0, 2), slice(2, 4)]
