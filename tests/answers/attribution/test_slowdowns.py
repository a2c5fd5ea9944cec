"""`slowdowns` lists runs with significantly delayed bursts, their delay, and the interfering jobs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import duckdb
import pytest

from iosig.answers.attribution.query import Query
from iosig.answers.attribution.slowdowns import SlowdownAnswer, build_slowdown_document, find_slowdowns
from tests.flows.attributed_releases import opened
from tests.sql.given import at


@pytest.fixture(scope="module")
def site() -> Iterator[duckdb.DuckDBPyConnection]:
    with opened() as connection:
        yield connection


def ask(site: duckdb.DuckDBPyConnection, since: str, until: str | None, *directions: str) -> SlowdownAnswer:
    return find_slowdowns(site, Query("lake", at(since), at(until) if until else None, directions or ("read", "write")))


def test_runs_are_ordered_by_delay_with_top_interferer(site: duckdb.DuckDBPyConnection) -> None:
    told = ask(site, "10:00:00", "10:03:00")
    assert told.run_count == 3
    columns = (
        "job_id",
        "user",
        "burst_count",
        "slowed_burst_count",
        "delay_s",
        "top_interferer_job_id",
        "top_interferer_bytes",
    )
    assert told.runs.select(columns).rows() == [("1", "ann", 3, 2, 100, "3", 400), ("2", "ann", 1, 1, 30, None, None)]
    error = math.hypot(20, 15)
    assert told.runs.select("delay_low_s", "delay_high_s").rows()[0] == pytest.approx((100 - error, 100 + error))
    assert told.runs.select("interfering_bytes", "unattributed_bytes").rows() == [(900, 200), (0, 500)]
    assert told.runs["expected_correlation"].to_list() == [0.8, None]
    assert told.runs["confidence"][0] == pytest.approx((0.9 * 40 + 0.5 * 60) / 100)


def test_only_bursts_within_the_time_range_count(site: duckdb.DuckDBPyConnection) -> None:
    assert ask(site, "10:01:00", "10:02:00").runs["delay_s"].to_list() == [60, 30]
    assert ask(site, "10:02:00", None).runs.is_empty()
    assert ask(site, "10:00:00", "10:03:00", "read").run_count == 1


def test_document_has_plain_values(site: duckdb.DuckDBPyConnection) -> None:
    told = json.loads(build_slowdown_document(ask(site, "10:00:00", None), 1, "release").json_text())
    assert (told["slowed_run_count"], told["run_count"], len(told["runs"])) == (2, 3, 1)
    assert told["runs"][0]["started_at"] == "2018-02-09T09:00:00Z"
