"""The figure of a population shows the counted runs by days, weeks or months."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from iosig.answers.population.figure import _days, build_view
from iosig.answers.population.query import Query, query_population
from tests.flows.populated_releases import opened


def test_figure_shows_the_counted_runs_and_bytes() -> None:
    with opened() as site:
        view = build_view(query_population(site, Query()), "r")
    assert sum(volumes.sum() for volumes in view.volumes_bytes.values()) == 197
    assert (view.names, view.hours) == (("ior", "s3d", "node7"), (pytest.approx(4.01), 2.0, 0.0))
    assert view.days == ("2018-02-09",)
    assert {name: counts.tolist() for name, counts in view.day_counts["write"].items()} == {
        "UNIFORM": [2.0], "START": [1.0],
    }  # fmt: skip
    assert view.verdict == "6 runs moved 197 B; even and periodic: 1 write, 0 read"


@pytest.mark.parametrize(("day_count", "step_count"), [(5, 5), (62, 62), (63, 9), (434, 62), (500, 17)])
def test_long_time_range_is_drawn_in_longer_steps(day_count: int, step_count: int) -> None:
    days = [date(2018, 1, 1) + timedelta(days=number) for number in range(day_count)]
    counts = pl.DataFrame({"ended_on": days, "direction": "write", "label": "END", "run_count": 2})
    steps, found = _days(counts)
    assert len(steps) == step_count
    assert found["write"]["END"].sum() == 2 * day_count
    assert np.all(found["write"]["END"] > 0)


def test_empty_population_has_no_days() -> None:
    empty = pl.DataFrame(
        schema={"ended_on": pl.Date, "direction": pl.String, "label": pl.String, "run_count": pl.Int64}
    )
    assert _days(empty) == ((), {"write": {}, "read": {}})
