"""Samples are downsampled with the same bytes and gaps as a loop over their steps."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.answers.report.samples import average_steps, downsample
from iosig.transforms.arrays import Ragged, offsets_of
from tests.budget import examples

_LISTS = st.lists(st.lists(st.one_of(st.none(), st.floats(0, 1e12)), max_size=12), max_size=5)


def naive(rates: list[float | None], most: int) -> tuple[int, list[float | None]]:
    """Return the number of steps per mean, and the means, by a loop over steps."""
    every = max(math.ceil(len(rates) / most), 1)
    means: list[float | None] = []
    for start in range(0, len(rates), every):
        known = [rate for rate in rates[start : start + every] if rate is not None]
        means.append(sum(known) / len(known) if known else None)
    return every, means


@given(_LISTS, st.integers(1, 5))
@settings(max_examples=examples(100), deadline=None)
def test_averages_equal_a_loop_over_steps(lists: list[list[float | None]], most: int) -> None:
    values = [math.nan if rate is None else rate for rates in lists for rate in rates]
    flat = Ragged(np.array(values, dtype=float), offsets_of(np.array([len(rates) for rates in lists], dtype=np.int64)))
    every, means = average_steps(flat, most)
    for number, rates in enumerate(lists):
        steps, expected = naive(rates, most)
        found = means.values[means.offsets[number] : means.offsets[number + 1]].tolist()
        assert every[number] == steps
        assert found == pytest.approx([math.nan if one is None else one for one in expected], nan_ok=True)


def test_rates_are_scaled_integers_and_gaps_stay() -> None:
    query = """
        select * from (values (1, 2.0, [0, 10, null, null, 999.0]), (2, 5.0, null), (3, 5.0, [null]))
            as told (id, interval_s, rates)
    """
    with duckdb.connect() as connection:
        found = downsample(connection, query, 3).sort("id")
    assert found["id"].to_list() == [1, 3]
    assert found["step_s"].to_list() == [4.0, 5.0]
    assert found["rates"].to_list() == [[5, None, 999], [None]]
    assert found["scale_bytes_per_s"].to_list() == [1.0, 1.0]
