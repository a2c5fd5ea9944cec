"""`who` selects minutes, sums attributed bytes consistently, and reports times without data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import duckdb
import polars as pl
import pytest

from iosig.answers.attribution.query import Answer, Query, build_document, who
from iosig.warehouse.errors import NothingToDo, UsageError
from tests.flows.attributed_releases import opened
from tests.sql.given import at, rows


@pytest.fixture(scope="module")
def site() -> Iterator[duckdb.DuckDBPyConnection]:
    with opened() as connection:
        yield connection


def ask(site: duckdb.DuckDBPyConnection, since: str, until: str | None, *directions: str) -> Answer:
    return who(site, Query("lake", at(since), at(until) if until else None, directions or ("read", "write")))


def test_time_range_is_rounded_to_whole_minutes() -> None:
    half = datetime(2026, 3, 3, 12, 10, 30, tzinfo=UTC)
    of = Query.parse("lake", half, None, None, "read")
    assert (of.since, of.until) == (half - timedelta(seconds=30), half + timedelta(seconds=30))
    of = Query.parse("lake", None, half, half + timedelta(minutes=1), None)
    assert (of.since, of.until) == (half - timedelta(seconds=30), half + timedelta(seconds=90))
    assert of.directions == ("read", "write")
    full = half.replace(second=0)
    assert Query.parse("lake", None, full, full + timedelta(minutes=1), None).until == full + timedelta(minutes=1)
    assert Query.parse("lake", full, None, None, None).until == full + timedelta(minutes=1)
    assert Query.parse("lake", None, full, None, None).until is None


@pytest.mark.parametrize(("at_", "since", "until"), [(0, None, None), (1, 1, None), (1, None, 2), (0, 2, 1), (0, 0, 1)])
def test_invalid_time_range_is_refused(at_: int, since: int | None, until: int | None) -> None:
    first, second, third = (datetime(2026, 3, 3, hour, tzinfo=UTC) if hour else None for hour in (at_, since, until))
    with pytest.raises(UsageError, match=r"since|Give a time"):
        Query.parse("lake", first, second, third, None)


@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_years_without_polls_are_refused(year: int) -> None:
    with pytest.raises(UsageError, match=f"the year {year}"):
        Query.parse("lake", datetime(year, 12, 31, 23, 59, tzinfo=UTC), None, None, None)


def test_jobs_users_and_applications_are_ordered_by_bytes(site: duckdb.DuckDBPyConnection) -> None:
    told = ask(site, "10:00:00", "10:02:00", "write")
    columns = ["attributed_bytes", "attributed_low_bytes", "attributed_high_bytes", "confidence", "fit"]
    assert told.jobs.select("job_id", *columns).rows() == [
        ("2", 600, 600, 600, 1.0, "counted"),
        ("1", 400, 300, 500, pytest.approx((0.9 * 120 + 0.5 * 280) / 400), "fair"),
        ("3", 200, 50, 400, 0.2, "poor"),
    ]
    assert told.users.select("user", "job_count", *columns).rows() == [
        ("ann", 2, 1000, 900, 1100, pytest.approx(0.848), "good"),
        ("bob", 1, 200, 50, 400, 0.2, "poor"),
    ]
    assert told.applications.select("application", "job_count", "attributed_bytes").rows() == [
        ("ior", 2, 600),
        ("s3d", 1, 600),
    ]
    # the second minute has 80 bytes more attributed than polled, which are ignored
    assert (told.measured_bytes, told.attributed_bytes, told.unattributed_bytes) == (1300, 1120, 180)
    assert told.others["job_id"].to_list() == ["4"], "neither on another file system, a batch step, nor who came later"


def test_both_directions_are_summed_by_default(site: duckdb.DuckDBPyConnection) -> None:
    told = ask(site, "10:00:00", None)
    assert told.until == at("10:03:00")
    assert told.measured_bytes == 1350
    assert told.jobs.select("job_id", "attributed_bytes").row(0) == ("2", 640)
    # no traffic flowed while the job with most nodes ran
    assert told.others.select("job_id", pl.col("likely_bytes") > 0).rows() == [("4", True), ("7", False)]


def test_candidates_are_ordered_with_unattributed_bytes(site: duckdb.DuckDBPyConnection) -> None:
    told = ask(site, "10:00:00", "10:02:00", "write")
    likely = dict(told.jobs.select("job_id", "likely_bytes").iter_rows())
    assert likely["2"] is None, "servers counted all that it moved"
    assert likely["1"] > 0, "its signature does not explain all of the first minute"
    assert likely["3"] == 0, "nothing is left of the second one, with which it came"
    assert told.candidates["job_id"].to_list() == ["2", "1", "3", "4"]
    (first, *_, last) = told.candidates.select("attributed_bytes", "likely_bytes").rows()
    assert first == (600, None)
    assert last == (0, told.others["likely_bytes"][0])


def test_time_without_traffic_has_no_jobs(site: duckdb.DuckDBPyConnection) -> None:
    told = ask(site, "10:02:00", "10:03:00")
    assert (told.measured_bytes, told.jobs.height, told.users.height) == (0, 0, 0)


def test_missing_polls_are_refused_with_available_times(site: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(NothingToDo, match="2018-02-09T10:00:30Z to 2018-02-09T10:03:00Z"):
        ask(site, "11:00:00", "11:05:00")
    with pytest.raises(UsageError, match="only of: lake, pond"):
        who(site, Query("sea", at("10:00:00"), None))


def test_document_lists_the_top_of_each_group(site: duckdb.DuckDBPyConnection) -> None:
    told = json.loads(build_document(ask(site, "10:00:00", "10:02:00", "write"), 1, "an-id").json_text())
    assert (told["release_id"], told["since"], told["until"]) == (
        "an-id",
        "2018-02-09T10:00:00Z",
        "2018-02-09T10:02:00Z",
    )
    assert [[row["attributed_bytes"] for row in told[name]] for name in ("jobs", "users", "applications")] == [
        [600],
        [1000],
        [600],
    ]
    assert told["jobs"][0]["started_at"] == "2018-02-09T09:00:00Z"
    assert (told["job_count"], told["other_job_count"]) == (3, 1)
    assert told["other_jobs"][0]["application"] == "ior"


def test_release_without_polls_is_refused() -> None:
    with opened() as connection:
        connection.register("filesystem_rates", rows("stage.filesystem_rates", "").to_arrow())
        with pytest.raises(UsageError, match="only of: none"):
            who(connection, Query("lake", at("10:00:00"), None))
