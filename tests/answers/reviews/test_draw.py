"""Test the draw of runs for reviewers: which runs are drawn, their series, and the seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import duckdb
import pytest

from iosig.answers.reviews.draw import ReviewQuery, query_runs
from tests.warehouse.releasing import Content, opened_tables

QUERY = ReviewQuery(count=10, seed=1, reviewer="ann")
TABLES: dict[str, Content] = {
    "classes": {
        9: """
            subject_kind cluster subject_id started_at filesystem direction ended_on basis outcome label duration_s
            job cluster 1 09:00:00 lake write 9 counted classified UNIFORM 60
            job cluster 1 09:00:00 lake read 9 counted classified NO_USAGE 60
            job cluster 2 09:00:00 lake write 9 inferred classified START 60
            job cluster 3 09:00:00 lake write 9 inferred too_short . 60
            job cluster 4 09:00:00 lake write 9 counted classified END 60
            job cluster 5 09:00:00 lake write 9 inferred classified HILL 60
            job cluster 6 09:00:00 lake write 9 traced classified HILL 60
            series . node7 . . write . series classified OTHER 60
            """
    },
    "periods": {
        9: """
            subject_kind cluster subject_id started_at filesystem direction ended_on is_default outcome   period_s
            job          cluster 1          09:00:00   lake       write     9        yes        periodic  20
            job          cluster 1          09:00:00   lake       write     9        no         periodic  30
            job          cluster 2          09:00:00   lake       write     9        yes        aperiodic .
            """
    },
    "exact_samples": {
        9: """
            cluster job_id started_at filesystem direction ended_on outcome grid_started_at interval_s \
                sample_bytes_per_s
            cluster 1 09:00:00 lake write 9 measured 09:00:00 20 1,.,3
            """
    },
    "trace_samples": {
        9: """
            cluster job_id started_at filesystem direction ended_on outcome grid_started_at interval_s \
                sample_bytes_per_s
            cluster 1 09:00:00 lake write 9 measured 09:00:00 20 2,2,2
            cluster 4 09:00:00 lake write 9 differs 09:00:00 20 2,2,2
            cluster 6 09:00:00 lake write 9 measured 09:00:00 20 2,2,2
            """
    },
    "samples": {
        9: """
            cluster job_id started_at filesystem direction ended_on grid_started_at interval_s sample_bytes_per_s
            cluster 1 09:00:00 lake write 9 09:00:00 20 9,9,9
            cluster 2 09:00:00 lake write 9 09:00:10 20 4,4,4
            cluster 3 09:00:00 lake write 9 09:00:00 20 4,4,4
            cluster 5 09:00:00 lake write 9 09:00:00 20 4,4,4
            """
    },
    "class_reviews": {
        None: """
            subject_kind cluster subject_id started_at filesystem direction reviewer
            job cluster 5 09:00:00 lake write ann
            job cluster 1 09:00:00 lake write bob
            """
    },
}


@pytest.fixture(scope="module")
def site() -> Iterator[duckdb.DuckDBPyConnection]:
    with opened_tables(TABLES) as connection:
        yield connection


def test_classified_runs_with_a_series_are_drawn_unless_reviewed(site: duckdb.DuckDBPyConnection) -> None:
    assert set(query_runs(site, QUERY)["job_id"]) == {"1", "2", "6"}
    assert set(query_runs(site, replace(QUERY, reviewer="bob"))["job_id"]) == {"2", "5", "6"}


def test_exact_series_is_preferred_to_shared_traffic(site: duckdb.DuckDBPyConnection) -> None:
    runs = {row["job_id"]: row for row in query_runs(site, QUERY).to_dicts()}
    assert [(runs[name]["is_exact"], runs[name]["start_s"]) for name in "12"] == [(True, 0.0), (False, 10.0)]
    rates = [None if level is None else level * runs["1"]["scale_bytes_per_s"] for level in runs["1"]["rates"]]
    assert rates[0] == pytest.approx(1, rel=1e-2)
    assert rates[1:] == [None, pytest.approx(3, rel=1e-2)]


def test_only_the_default_period_is_reviewed(site: duckdb.DuckDBPyConnection) -> None:
    assert dict(query_runs(site, QUERY).select("job_id", "period_s").rows()) == {"1": 20.0, "2": None, "6": None}


def test_seed_and_count_select_the_runs(site: duckdb.DuckDBPyConnection) -> None:
    draws = {seed: query_runs(site, replace(QUERY, seed=seed, count=1))["job_id"].item() for seed in range(20)}
    assert set(draws.values()) == {"1", "2", "6"}
    assert draws == {seed: query_runs(site, replace(QUERY, seed=seed, count=1))["job_id"].item() for seed in range(20)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"direction": "read"}, set()),
        ({"direction": "write"}, {"1", "2", "6"}),
        ({"since": date(2018, 2, 10)}, set()),
        ({"until": date(2018, 2, 9)}, {"1", "2", "6"}),
    ],
)
def test_direction_and_days_limit_the_draw(
    site: duckdb.DuckDBPyConnection, change: dict[str, object], expected: set[str]
) -> None:
    assert set(query_runs(site, replace(QUERY, **change))["job_id"]) == expected
