"""Signals of runs: grids with steps of powers of ten, and the choice of the finest complete measurement."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.throughput.signals import SignalParams, choose_basis, choose_grids

PARAMS = SignalParams()


@pytest.mark.parametrize(
    ("duration_s", "interval_s", "step_count"),
    [
        (86400.0, 1.0, 86400),
        (100.0, 1.0, 100),
        (99.0, 0.1, 990),
        (10.0, 0.1, 100),
        (9.99, 0.01, 999),
        (0.05, 0.0001, 500),
        (1e6, 1.0, 1_000_000),
        (1e6 + 1, 10.0, 100_001),
        (0.0, 1e-6, 1),
        (1e-6, 1e-6, 1),
    ],
)
def test_step_is_a_power_of_ten(duration_s: float, interval_s: float, step_count: int) -> None:
    found_s, found_count = choose_grids(np.array([duration_s]), PARAMS)
    assert found_s[0] == pytest.approx(interval_s, rel=1e-12)
    assert found_count[0] == step_count


@given(st.floats(0, 1e9))
def test_grid_covers_the_run_exactly(duration_s: float) -> None:
    interval_s, step_count = choose_grids(np.array([duration_s]), PARAMS)
    assert interval_s[0] * step_count[0] >= duration_s * (1 - 1e-8)
    assert interval_s[0] * (step_count[0] - 1) <= duration_s
    assert 1 <= step_count[0] <= PARAMS.max_step_count * (1 + 1e-8)
    assert interval_s[0] == 1e-6 or step_count[0] >= PARAMS.min_step_count


def choose(**row: Any) -> tuple[str | None, float | None]:
    known = {"counted_bytes": None, "request_bytes": None, "heatmap_bytes": None, "has_interval": False} | row
    types = {name: pl.Boolean if name == "has_interval" else pl.Float64 for name in known}
    found = choose_basis(pl.DataFrame([known], schema=types), PARAMS)
    return (found["basis"].item(), found["covered_ratio"].item()) if found.height else (None, None)


@pytest.mark.parametrize(
    ("row", "basis", "covered"),
    [
        ({"counted_bytes": 100.0, "request_bytes": 100.0, "heatmap_bytes": 100.0}, "requests", 1.0),
        ({"counted_bytes": 100.0, "request_bytes": 95.0, "heatmap_bytes": 100.0}, "requests", 0.95),
        ({"counted_bytes": 100.0, "request_bytes": 94.0, "heatmap_bytes": 101.0}, "heatmap", 1.0),
        ({"counted_bytes": 100.0, "request_bytes": 6.55, "has_interval": True}, "interval", 1.0),
        ({"counted_bytes": 100.0, "request_bytes": 6.55}, "requests", 0.0655),
        ({"counted_bytes": 100.0, "request_bytes": 6.0, "heatmap_bytes": 7.0}, "heatmap", 0.07),
        ({"counted_bytes": 100.0, "heatmap_bytes": 7.0}, "heatmap", 0.07),
        ({"counted_bytes": 100.0, "has_interval": True}, "interval", 1.0),
        ({"counted_bytes": 100.0}, None, None),
        ({"request_bytes": 5.0}, "requests", None),
        ({"counted_bytes": 0.0, "request_bytes": 0.0, "has_interval": True}, None, None),
        ({}, None, None),
    ],
)
def test_finest_complete_measurement_is_chosen(row: dict[str, Any], basis: str | None, covered: float | None) -> None:
    assert choose(**row) == (basis, pytest.approx(covered) if covered is not None else None)
