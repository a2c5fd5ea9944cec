"""Exact sums equal rational sums, in any order and at both ends of the range of floats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.throughput import exact_sums
from iosig.transforms.throughput.exact_sums import ExactSums, running_sums, segment_sums, split_into_limbs
from tests.naive.throughput import exact_sums as naive
from tests.transforms.request_lists import BOUNDED

#: All magnitudes; digits below 2**-992 are in no limb.
WIDE = st.floats(1e-290, 1e290) | st.just(0.0)
COMMON = st.floats(1e-3, 1e12)


@BOUNDED
@given(st.lists(WIDE | WIDE.map(lambda x: -x), max_size=20))
def test_limbs_add_up_to_the_value(values: list[float]) -> None:
    total = [0] * len(values)
    for place, multiples in split_into_limbs(np.array(values)):
        assert np.abs(multiples).max(initial=0) < 1 << 32
        for row, multiple in enumerate(multiples.tolist()):
            total[row] += multiple << 32 * (place + 40)
    # Digits of the smallest numbers below the lowest limb may be missing.
    for value, found in zip(values, total, strict=True):
        assert abs(found / (1 << 32 * 40) - value) <= 2.0**-992


@BOUNDED
@given(st.lists(COMMON, min_size=1, max_size=40), st.integers(0, 2**32))
def test_cancelled_rates_leave_no_residue(rates: list[float], seed: int) -> None:
    changes = rates + [-rate for rate in np.random.default_rng(seed).permutation(rates).tolist()]
    found = running_sums(np.array(changes))
    assert found[-1] == 0.0
    np.testing.assert_allclose(found, naive.running_sums(changes), rtol=1e-15, atol=0)


def test_small_rate_is_preserved_next_to_a_large_rate() -> None:
    small, large = 1e-3, 1e18
    assert running_sums(np.array([small, large, -large, -small])).tolist() == [small, large, small, 0.0]
    # A sum of floats loses the small rate.
    assert np.cumsum([small, large, -large])[-1] == 0.0


def test_running_sums_cross_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    rates = rng.lognormal(0, 20, 500)
    changes = np.concatenate([rates, -rng.permutation(rates)])
    whole = running_sums(changes)
    monkeypatch.setattr(exact_sums, "_CHUNK", 7)
    np.testing.assert_array_equal(running_sums(changes), whole)
    assert whole[-1] == 0.0


@BOUNDED
@given(st.lists(st.tuples(st.integers(0, 4), WIDE), max_size=40))
def test_cells_equal_rational_sums(terms: list[tuple[int, float]]) -> None:
    cells, values = [cell for cell, _ in terms], [value for _, value in terms]
    sums = ExactSums(5)
    sums.add(np.array(cells, dtype=np.int64), np.array(values))
    np.testing.assert_allclose(sums.totals(), naive.cell_sums(cells, values, 5), rtol=4e-16, atol=1e-290)


@BOUNDED
@given(st.lists(st.tuples(st.integers(0, 4), COMMON), max_size=40), st.integers(0, 2**32), st.integers(1, 9))
def test_sums_are_independent_of_order_and_chunks(terms: list[tuple[int, float]], seed: int, step: int) -> None:
    cells = np.array([cell for cell, _ in terms], dtype=np.int64)
    values = np.array([value for _, value in terms])
    at_once, in_parts = ExactSums(5), ExactSums(5)
    at_once.add(cells, values)
    order = np.random.default_rng(seed).permutation(len(terms))
    for start in range(0, len(order), step):
        in_parts.add(cells[order[start : start + step]], values[order[start : start + step]])
    later = ExactSums(5)
    later.add_few(cells[::2], values[::2])
    later.add(cells[1::2], values[1::2])
    assert at_once.totals().tolist() == in_parts.totals().tolist() == later.totals().tolist() == later.totals().tolist()


@BOUNDED
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), COMMON), max_size=20), st.sampled_from([0, 3, 100]))
def test_running_sums_over_cells_are_exact(spans: list[tuple[int, int, float]], few: int) -> None:
    """Terms are added at once, partly later, or all later."""
    changes, expected = ExactSums(10), np.zeros(10)
    for number, (first, length, value) in enumerate(spans):
        last = min(first + length, 9)
        add = changes.add_few if number < few else changes.add
        add(np.array([last, first]), np.array([-value, value]))
        expected[first:last] += value
    found = changes.running()
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert (found[expected == 0] == 0).all()
    np.testing.assert_array_equal(changes.running(), found)


def test_running_sums_over_cells_cross_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    first, value = rng.integers(0, 900, 300), rng.lognormal(0, 20, 300)
    last = first + rng.integers(0, 100, 300)
    found = []
    for chunk in (1 << 15, 7):
        monkeypatch.setattr(exact_sums, "_CHUNK", chunk)
        for way in ("add", "add_few"):
            changes = ExactSums(1000)
            getattr(changes, way)(last, -value)
            getattr(changes, way)(first, value)
            found.append(changes.running())
    assert all(np.array_equal(each, found[0]) for each in found)
    assert found[0][-1] == 0.0


def test_carry_preserves_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_sums, "_MAX_TERMS", 5)
    sums, kept = ExactSums(2), ExactSums(2)
    values = np.array([1e12 + 0.1, -3.7, 1e-7, 5.0])
    for _ in range(50):
        sums.add(np.array([0, 0, 1, 1]), values)
    monkeypatch.setattr(exact_sums, "_MAX_TERMS", 1 << 30)
    for _ in range(50):
        kept.add(np.array([0, 0, 1, 1]), values)
    assert sums.totals().tolist() == kept.totals().tolist()
    assert sums.totals().tolist() == naive.cell_sums([0, 0, 1, 1] * 50, [*values.tolist()] * 50, 2)


def test_sum_of_equal_terms_does_not_drift() -> None:
    count = 1_000_000
    sums = ExactSums(1)
    sums.add(np.zeros(count, dtype=np.int64), np.full(count, 0.1))
    assert sums.totals()[0] == pytest.approx(0.1 * count, rel=1e-15)
    # A sequential sum of floats drifts.
    assert abs(np.bincount(np.zeros(count, dtype=np.int64), np.full(count, 0.1))[0] / (0.1 * count) - 1) > 1e-12


@BOUNDED
@given(st.lists(st.lists(COMMON, max_size=6), max_size=8), st.integers(1, 20))
def test_segment_sums_equal_exact_sums(pieces: list[list[float]], chunk: int) -> None:
    values = np.array([value for piece in pieces for value in piece])
    offsets = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])]).astype(np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_sums, "_CHUNK", chunk)
        found = segment_sums(values, offsets)
    expected = [naive.cell_sums([0] * len(piece), piece, 1)[0] for piece in pieces]
    np.testing.assert_allclose(found, expected, rtol=4e-16)


def test_empty_sums_are_zero() -> None:
    assert running_sums(np.zeros(0)).tolist() == []
    assert ExactSums(3).totals().tolist() == ExactSums(3).running().tolist() == [0.0, 0.0, 0.0]
    assert segment_sums(np.zeros(0), np.array([0, 0])).tolist() == [0.0]
    # Below the lowest limb.
    assert list(split_into_limbs(np.array([5e-324]))) == []
