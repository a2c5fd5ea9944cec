"""`top` ranks the members of each grouping by the bytes of their runs, and reports what has no estimate."""

from __future__ import annotations

import json
from collections.abc import Iterator

import duckdb
import pytest

from iosig.answers.top import By, Query, build_document, rank_runs
from iosig.warehouse.errors import NothingToDo, UsageError
from tests.sql.given import at
from tests.warehouse.releasing import Content, opened_tables

TABLES: dict[str, Content] = {
    "jobs": {
        9: """
            job_id user account application application_id started_at ended_at is_application_run
            1      ann  p1      ior         ann/ior/8      09:00:00   10:00:00 yes
            2      ann  p1      ior         ann/ior/16     09:00:00   11:00:00 yes
            3      bob  p1      s3d         bob/s3d/8      09:00:00   12:00:00 yes
            4      .    .       .           .              09:00:00   10:00:00 yes
            5      eve  p2      s3d         eve/s3d/8      09:00:00   10:00:00 yes
            6      bob  p1      s3d         bob/s3d/8      09:00:00   10:00:00 no
            """
    },
    "job_io": {
        9: """
            job_id started_at filesystem direction estimate_source estimated_bytes estimated_low_bytes \
                estimated_high_bytes
            1      09:00:00   lake       write     attributed      100             80                  130
            1      09:00:00   lake       read      attributed      20              10                  30
            1      09:00:00   pond       write     none            .               .                   .
            2      09:00:00   lake       write     counted         200             200                 200
            3      09:00:00   lake       write     counted         50              50                  .
            3      09:00:00   pond       write     attributed      600             500                 900
            4      09:00:00   lake       unstated  traced          30              30                  30
            5      09:00:00   lake       write     none            .               .                   .
            6      09:00:00   lake       write     counted         9999            9999                9999
            """
    },
    "filesystem_rates": {
        9: """
            filesystem polled_at interval_s read_bytes written_bytes
            lake       10:00:00  60         50         700
            lake       12:00:00  60         .          800
            pond       10:00:00  60         7          8
            """
    },
}


@pytest.fixture(scope="module")
def site() -> Iterator[duckdb.DuckDBPyConnection]:
    with opened_tables(TABLES) as connection:
        yield connection


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("user", [("bob", 1, 650), ("ann", 2, 320), (None, 1, 30), ("eve", 1, None)]),
        ("account", [("p1", 3, 970), (None, 1, 30), ("p2", 1, None)]),
        (
            "application",
            [
                ("bob/s3d/8", 1, 650),
                ("ann/ior/16", 1, 200),
                ("ann/ior/8", 1, 120),
                (None, 1, 30),
                ("eve/s3d/8", 1, None),
            ],
        ),
        ("code", [("s3d", 2, 650), ("ior", 2, 320), (None, 1, 30)]),
    ],
)
def test_members_are_ordered_by_bytes_and_unknown_bytes_are_null(
    site: duckdb.DuckDBPyConnection, by: By, expected: list[tuple[str | None, int, float | None]]
) -> None:
    ranking = rank_runs(site, Query(by))
    assert ranking.members.select("name", "run_count", "estimated_bytes").rows() == expected
    assert ranking.estimated_bytes == sum(volume or 0.0 for _, _, volume in expected) == 1000


def test_directions_ranges_and_own_bytes_are_sums_of_the_runs(site: duckdb.DuckDBPyConnection) -> None:
    ranking = rank_runs(site, Query("user"))
    columns = (
        "name",
        "read_bytes",
        "written_bytes",
        "estimated_low_bytes",
        "estimated_high_bytes",
        "own_bytes",
        "share",
    )
    assert ranking.members.select(columns).rows() == [
        # the upper end of one of bob's runs is unknown
        ("bob", None, 650, 550, None, 50, 0.65),
        ("ann", 20, 300, 290, 360, 200, 0.32),
        # a direction that the trace does not state counts for the total only
        (None, None, None, 30, 30, 30, 0.03),
        ("eve", None, None, None, None, None, None),
    ]
    assert (ranking.run_count, ranking.estimated_run_count, ranking.measured_bytes) == (5, 4, 1565)


@pytest.mark.parametrize(
    ("query", "names", "measured"),
    [
        (Query("user", until=at("11:00:00")), ["ann", None, "eve"], 765),
        (Query("user", since=at("11:00:00")), ["bob", "ann"], 800),
        (Query("user", filesystem="pond"), ["bob", "ann"], 15),
        (Query("user", direction="read"), ["ann"], 57),
        (Query("user", direction="write"), ["bob", "ann", "eve"], 1508),
    ],
)
def test_time_filesystem_and_direction_select_runs(
    site: duckdb.DuckDBPyConnection, query: Query, names: list[str | None], measured: float
) -> None:
    ranking = rank_runs(site, query)
    assert ranking.members["name"].to_list() == names
    assert ranking.measured_bytes == measured


def test_no_estimate_at_all_has_no_shares(site: duckdb.DuckDBPyConnection) -> None:
    ranking = rank_runs(site, Query("user", until=at("10:30:00"), filesystem="pond"))
    assert ranking.members.select("name", "estimated_bytes", "share").rows() == [("ann", None, None)]
    assert (ranking.run_count, ranking.estimated_run_count) == (1, 0)


def test_invalid_queries_are_refused(site: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(UsageError, match="file system 'sea', only: lake, pond"):
        rank_runs(site, Query(filesystem="sea"))
    with pytest.raises(UsageError, match="does not come before"):
        Query(since=at("11:00:00"), until=at("11:00:00"))
    with pytest.raises(NothingToDo, match="No run ended"):
        rank_runs(site, Query(until=at("09:00:00")))


def test_document_has_the_first_members_and_the_totals_of_all(site: duckdb.DuckDBPyConnection) -> None:
    document = json.loads(build_document(rank_runs(site, Query("code")), 1, "r1").json_text())
    assert [member["name"] for member in document["members"]] == ["s3d"]
    assert (document["member_count"], document["run_count"], document["estimated_bytes"]) == (3, 5, 1000)
