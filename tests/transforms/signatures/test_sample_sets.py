"""Selection and concatenation of sample sets preserve their content."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings, strategies as st

from iosig.estimates.signatures.parallel import select_chunk
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from tests.budget import examples
from tests.transforms.run_sets import make_sample_set

BOUNDED = settings(max_examples=examples(50), deadline=None)
RATES = st.lists(st.lists(st.floats(0, 1e12), max_size=6), max_size=5)


def make_distinct_runs(rows: list[list[float]], interval_s: float = 2.0) -> SampleSet:
    """Make runs with distinct starts and durations."""
    return make_sample_set(
        rows,
        interval_s,
        start_s=[-0.1 * place for place in range(len(rows))],
        duration_s=[100.0 + place for place in range(len(rows))],
    )


def assert_equal_runs(result: SampleSet, expected: SampleSet) -> None:
    assert result.interval_s == expected.interval_s
    np.testing.assert_array_equal(result.samples.values, expected.samples.values)
    np.testing.assert_array_equal(result.samples.offsets, expected.samples.offsets)
    np.testing.assert_array_equal(result.start_s, expected.start_s)
    np.testing.assert_array_equal(result.duration_s, expected.duration_s)


@BOUNDED
@given(RATES)
def test_rates_equal_the_rates_of_the_runs(rows: list[list[float]]) -> None:
    one = make_distinct_runs(rows)
    assert one.run_count == len(rows)
    assert [rate.tolist() for rate in one.rates] == rows


@BOUNDED
@given(RATES, st.data())
def test_interference_is_selected_and_concatenated(rows: list[list[float]], data: st.DataObject) -> None:
    marks = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), dtype=bool)
    plain = make_distinct_runs(rows)
    one = replace(plain, interference=-plain.samples.values)
    kept = one.select_runs(marks)
    assert kept.interference is not None
    np.testing.assert_array_equal(kept.interference, -kept.samples.values)
    both = SampleSets.concatenate([one, plain])
    for place, expected in enumerate((-plain.samples.values, np.full(len(plain.samples.values), np.nan))):
        np.testing.assert_array_equal(both.get_set(place).interference, expected)
        part = select_chunk(both, slice(place, place + 1))
        np.testing.assert_array_equal(part.interference, expected)
    assert SampleSets.concatenate([plain, plain]).interference is None


@BOUNDED
@given(RATES, st.data())
def test_selected_runs_are_unchanged(rows: list[list[float]], data: st.DataObject) -> None:
    marks = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    one = make_distinct_runs(rows)
    kept = one.select_runs(np.array(marks, dtype=bool))
    places = [place for place, mark in enumerate(marks) if mark]
    assert [rate.tolist() for rate in kept.rates] == [rows[place] for place in places]
    np.testing.assert_array_equal(kept.duration_s, [100.0 + place for place in places])
    np.testing.assert_allclose(kept.start_s, [-0.1 * place for place in places])
    assert kept.samples.offsets.dtype == np.int64


@BOUNDED
@given(st.lists(RATES, max_size=4))
def test_concatenated_sets_are_unchanged(sets: list[list[list[float]]]) -> None:
    ones = [make_distinct_runs(rows, 1.0 + place) for place, rows in enumerate(sets)]
    together = SampleSets.concatenate(ones)
    assert together.set_count == len(sets)
    assert together.owner.tolist() == [place for place, rows in enumerate(sets) for _ in rows]
    for place, one in enumerate(ones):
        assert_equal_runs(together.get_set(place), one)


def test_set_is_a_view() -> None:
    together = SampleSets.concatenate(
        [make_distinct_runs([[1.0], [2.0, 3.0]]), make_distinct_runs([[4.0, 5.0], [], [6.0]])]
    )
    one = together.get_set(1)
    assert np.shares_memory(one.samples.values, together.samples.values)
    assert np.shares_memory(one.rates[0], together.samples.values)
    assert one.samples.offsets.tolist() == [0, 2, 2, 3]


def test_empty_input_and_empty_sets_are_concatenated() -> None:
    assert SampleSets.concatenate([]).set_count == 0
    assert len(SampleSets.concatenate([]).owner) == 0
    empty = SampleSets.concatenate([make_distinct_runs([]), make_distinct_runs([[]])])
    assert [empty.get_set(place).run_count for place in range(2)] == [0, 1]
