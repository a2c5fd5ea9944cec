"""Stripes: targets of bytes and requests split at stripes match an implementation that iterates over bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.throughput import striping
from iosig.transforms.throughput.even_values import BinAccumulator, Grid, bin_requests
from iosig.transforms.throughput.requests import Requests, step_function
from iosig.transforms.throughput.striping import NO_OST, Extents, Layouts, Pieces, find_osts, split_requests
from tests.naive.throughput import striping as naive
from tests.transforms.request_lists import BOUNDED
from tests.transforms.signal_differences import shape_differences

#: Two striped files, a file without targets, and a file without a stripe.
LAYOUTS = Layouts(np.array([4, 10, 4, 0]), np.array([7, 3, 5, 1, 2]), np.array([0, 3, 4, 4, 5]))


def make_extents(rows: list[tuple[int, int, float, float, int]]) -> Extents:
    offset, length, began, ceased, layout = zip(*rows, strict=True) if rows else ((),) * 5
    whole = (np.array(column, dtype=np.int64) for column in (offset, length, layout))
    times = (np.array(column, dtype=np.float64) for column in (began, ceased))
    first, second, third = whole
    return Extents(first, second, *times, third)


def pieces_of(extents_: Extents, layouts: Layouts = LAYOUTS) -> Pieces:
    found = list(split_requests(extents_, layouts))
    return Pieces(
        *(
            np.concatenate([getattr(piece, name) for piece in found])
            for name in ("request", "offset_bytes", "length_bytes", "ost", "start_s", "end_s")
        )
    )


def test_offset_determines_the_target() -> None:
    offsets = np.array([0, 3, 4, 11, 12, 99])
    assert find_osts(offsets, np.zeros(6, dtype=np.int64), LAYOUTS).tolist() == [7, 7, 3, 5, 7, 7]


@pytest.mark.parametrize(("offset", "layout"), [(0, -1), (0, 4), (0, 2), (0, 3), (-1, 0)])
def test_unknown_layouts_have_no_target(offset: int, layout: int) -> None:
    assert find_osts(np.array([offset]), np.array([layout]), LAYOUTS).tolist() == [NO_OST]
    found = pieces_of(make_extents([(offset, 100, 1.0, 2.0, layout)]))
    assert (found.ost.tolist(), found.length_bytes.tolist()) == ([NO_OST], [100])
    assert (found.start_s.tolist(), found.end_s.tolist()) == ([1.0], [2.0])


def test_requests_are_split_at_stripes() -> None:
    found = pieces_of(make_extents([(2, 10, 0.0, 10.0, 0)]))
    assert found.offset_bytes.tolist() == [2, 4, 8]
    assert found.length_bytes.tolist() == [2, 4, 4]
    assert found.ost.tolist() == [7, 3, 5]
    assert found.start_s.tolist() == [0, 2, 6]
    assert found.end_s.tolist() == [2, 6, 10]


@pytest.mark.parametrize(
    ("row", "ost"),
    [
        # no bytes; an unknown number of bytes
        ((5, 0, 1.0, 2.0, 0), 3),
        ((5, -1, 1.0, 2.0, 0), 3),
        # beyond 2**63; more pieces than allowed per call
        ((2**63 - 5, 100, 1.0, 2.0, 0), NO_OST),
        ((0, 2**62, 1.0, 2.0, 0), NO_OST),
        # within a stripe
        ((5, 3, 1.0, 2.0, 0), 3),
    ],
)
def test_unsplittable_requests_remain_whole(row: tuple[int, int, float, float, int], ost: int) -> None:
    found = pieces_of(make_extents([row]))
    assert (found.offset_bytes[0], found.length_bytes[0], found.start_s[0], found.end_s[0]) == row[:4]
    assert found.ost.tolist() == [ost]


def test_largest_stripes_do_not_overflow() -> None:
    layouts = Layouts(np.array([2**62]), np.array([1, 2]), np.array([0, 2]))
    found = pieces_of(make_extents([(2**62 - 1, 2**62, 0.0, 1.0, 0)]), layouts)
    assert found.length_bytes.tolist() == [1, 2**62 - 1]
    assert found.ost.tolist() == [1, 2]


def test_mismatched_layouts_are_rejected() -> None:
    with pytest.raises(ValueError, match="equal lengths"):
        Layouts(np.array([4]), np.array([1]), np.array([0]))


ROWS = st.lists(
    st.tuples(
        st.integers(0, 200),
        st.integers(1, 60),
        st.integers(0, 640).map(lambda n: n / 64),
        st.integers(0, 64).map(lambda n: n / 64),
        st.integers(-1, 3),
    ),
    min_size=1,
    max_size=8,
)


@BOUNDED
@given(ROWS, st.integers(1, 9))
def test_pieces_match_naive_implementation(rows: list[tuple[int, int, float, float, int]], chunk: int) -> None:
    extents_ = make_extents(
        [(offset, length, began, began + lasting, layout) for offset, length, began, lasting, layout in rows]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(striping, "_CHUNK_PIECES", chunk)
        found = pieces_of(extents_)
    for number, (offset, length, _, _, layout) in enumerate(rows):
        mine = found.request == number
        targets = (
            LAYOUTS.osts[LAYOUTS.offsets[layout] : LAYOUTS.offsets[layout + 1]].tolist() if layout in (0, 1) else []
        )
        stripe = int(LAYOUTS.stripe_bytes[layout])
        expected = naive.pieces(offset, length, stripe, targets) if targets else [(offset, length, NO_OST)]
        columns = (found.offset_bytes[mine], found.length_bytes[mine], found.ost[mine])
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
        began, ceased = found.start_s[mine], found.end_s[mine]
        assert (began[0], ceased[-1]) == (extents_.start_s[number], extents_.end_s[number])
        assert began[1:].tolist() == ceased[:-1].tolist()
        share = (ceased - began) * length
        np.testing.assert_allclose(share, columns[1] * (ceased[-1] - began[0]), rtol=1e-9, atol=1e-9)


@BOUNDED
@given(ROWS)
def test_pieces_have_the_signal_of_their_requests(rows: list[tuple[int, int, float, float, int]]) -> None:
    extents_ = make_extents(
        [(offset, length, began, began + lasting, layout) for offset, length, began, lasting, layout in rows]
    )
    found = pieces_of(extents_)
    whole = step_function(Requests.from_arrays(extents_.start_s, extents_.end_s, extents_.length_bytes))
    parts = step_function(Requests.from_arrays(found.start_s, found.end_s, found.length_bytes))
    assert shape_differences(whole, parts)[0] < 1e-9
    assert parts.volume_bytes[0] == pytest.approx(whole.volume_bytes[0], rel=1e-14)


def test_throughput_is_attributed_to_each_target() -> None:
    """Two requests that cross stripes: every target has its bytes at the times of their transfer."""
    extents_ = make_extents([(0, 12, 0.0, 3.0, 0), (2, 4, 0.0, 1.0, 0), (0, 5, 0.0, 1.0, -1)])
    bins = BinAccumulator(Grid.from_range(np.zeros(8), 3.0, 3))
    for piece in split_requests(extents_, LAYOUTS):
        bins.add(Requests(piece.start_s, piece.end_s, piece.length_bytes.astype(float), piece.ost, 8))
    found = bins.result().volume_bytes.reshape(8, 3)
    assert found[7].tolist() == [4 + 2, 0, 0]
    assert found[3].tolist() == [2, 4, 0]
    assert found[5].tolist() == [0, 0, 4]
    # Requests without a target are only in the signal of the whole run.
    assert found.sum() == 16
    run = Requests.from_arrays(extents_.start_s, extents_.end_s, extents_.length_bytes)
    assert bin_requests(run, Grid.from_range(0.0, 3.0, 3)).volume_bytes.sum() == 21
