"""Cumulative bytes and rates of runs at positions in their signatures, and stratified draws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.demands import Demand, Demands, draw_stratified
from tests.budget import examples
from tests.naive import advice as naive

_rates = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=6)
_places = st.lists(st.floats(-20.0, 60.0), min_size=2, max_size=6)


@settings(max_examples=examples(50))
@given(runs=st.lists(st.tuples(_rates, st.sampled_from([0.5, 1.0, 3.0]), _places), min_size=1, max_size=4))
def test_rates_match_naive_implementation(runs: list[tuple[list[float], float, list[float]]]) -> None:
    demands = Demands.from_list([Demand(np.array(rates), step) for rates, step, _ in runs])
    edges = [sorted(places) for _, _, places in runs]
    count = min(map(len, edges))
    positions = np.array([places[:count] for places in edges])
    result = demands.rates(np.arange(len(runs)), positions, 2.0)
    expected = [
        [naive.rate_between(rates, step, low, high) / 2.0 for low, high in pairwise(places[:count])]
        for (rates, step, _), places in zip(runs, edges, strict=True)
    ]
    assert result == pytest.approx(np.array(expected), abs=1e-9)


def test_cumulative_bytes_of_several_runs_and_draws_are_exact() -> None:
    demands = Demands.from_list([Demand(np.array([5.0]), 1.0), Demand(np.array([1.0, 0.0, 3.0]), 2.0)])
    positions = np.array([[[0.0, 6.0], [5.0, 9.0]], [[-4.0, 1.0], [0.0, 2.0]]])
    assert demands.cumulative_bytes(np.array([1, 1]), positions).tolist() == [
        [[0.0, 8.0], [5.0, 8.0]],
        [[0.0, 1.0], [0, 2]],
    ]
    assert demands.duration_s.tolist() == [1.0, 6.0]
    assert demands.peak_bytes_per_s.tolist() == [5.0, 3.0]


def test_stratified_draws_are_evenly_spread() -> None:
    shares = draw_stratified(10, 3, 0)
    assert np.sort(shares, axis=0)[:, 1] == pytest.approx(np.arange(10) / 10 + 0.05)
    assert shares[:, 0].tolist() != shares[:, 1].tolist()
