"""The figure of `who` assigns each minute to a step and conserves bytes."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from iosig.answers.attribution.figure import build_view
from iosig.answers.attribution.query import Answer, Query
from tests.sql.given import NOON


def told(minutes: int, measured: dict[int, float], parts: list[tuple[str, int, float]]) -> Answer:
    """Return an answer about writes: bytes by minute, and by application and minute."""

    def edges(numbers: list[int]) -> pl.Series:
        return pl.Series([NOON + timedelta(minutes=number + 1) for number in numbers], dtype=pl.Datetime("us", "UTC"))

    none = pl.DataFrame()
    every = pl.DataFrame(
        {"direction": "write", "minute_at": edges(list(measured)), "measured_bytes": [*measured.values()]}
    )
    schema = ["application_id", "minute", "attributed_bytes"]
    owned = pl.DataFrame(parts, schema=schema, orient="row")
    owned = owned.with_columns(direction=pl.lit("write"), minute_at=edges(owned["minute"].to_list()))
    until = NOON + timedelta(minutes=minutes)
    return Answer(Query("lake", NOON, until, ("write",)), until, none, none, none, every, owned, none)


def test_each_minute_is_a_step() -> None:
    view = build_view(told(4, {0: 60.0, 1: 120.0, 3: 0.0}, [("b", 1, 60.0), ("a", 0, 30.0), ("a", 1, 6.0)]))
    (traffic,) = view.traffic
    assert view.step_s == 60
    np.testing.assert_array_equal(traffic.measured_bytes_per_s, [1, 2, np.nan, 0])
    assert [(name, rates.tolist()) for name, rates in traffic.layers] == [("a", [0.5, 0.1, 0, 0]), ("b", [0, 1, 0, 0])]
    assert (view.measured_bytes, view.attributed_bytes) == (180, 96)


def test_long_time_range_is_drawn_in_longer_steps() -> None:
    measured = {minute: float(minute % 7) for minute in range(1001)}
    view = build_view(told(1001, measured, [("a", 1000, 5.0)]))
    (traffic,) = view.traffic
    assert (view.step_s, len(traffic.measured_bytes_per_s)) == (180, 334)
    assert np.sum(traffic.measured_bytes_per_s) * view.step_s == pytest.approx(sum(measured.values()))
    assert traffic.layers[0][1][-1] == pytest.approx(5 / 180)
