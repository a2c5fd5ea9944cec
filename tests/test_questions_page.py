"""The queries of docs/questions.md give the planted answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.sql.given import DAY, at
from tests.warehouse.releasing import Content, opened_tables

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "questions.md").read_text(encoding="utf-8")
QUERIES: dict[str, str] = dict(re.findall(r"^## (.*?)\n.*?```sql\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))
TABLES: dict[str, Content] = {
    "jobs": {
        9: """
            cluster job_id account application_id started_at ended_at
            titan   1      p1      ann/ior/8      09:00:00   10:00:00
            titan   2      p1      ann/ior/8      10:00:00   11:00:00
            titan   3      p2      bob/s3d/8      09:00:00   12:00:00
            """
    },
    "job_io": {
        9: """
            cluster job_id started_at filesystem direction estimated_bytes
            titan   1      09:00:00   lake       write     1e12
            titan   1      09:00:00   lake       read      2e12
            titan   2      10:00:00   lake       write     1e12
            titan   3      09:00:00   lake       write     4e12
            titan   3      09:00:00   lake       read      .
            """
    },
    "periods": {
        9: """
            subject_kind cluster subject_id started_at filesystem direction method is_default outcome \
                period_s period_error_s
            job          titan   1          09:00:00   lake       write     null_tested yes   periodic  600    2
            job          titan   1          09:00:00   lake       write     dft         no    periodic  300    .
            job          titan   3          09:00:00   lake       write     null_tested yes   aperiodic .      .
            application  .       ann/ior/8  .          lake       write     null_tested yes   periodic  600    1
            application  .       bob/s3d/8  .          lake       write     null_tested yes   periodic  60     1
            application  .       eve/s3d/8  .          lake       write     dft         no    periodic  900    1
            """
    },
    "signatures": {
        None: """
            application_id filesystem direction method  is_default is_changed change_correlation relative_volume_change
            ann/ior/8      lake       write     elastic yes        yes        0.25               -0.5
            ann/ior/8      lake       write     iosi    no         yes        0.125              1
            bob/s3d/8      lake       write     elastic yes        no         0.75               0
            """
    },
    "signature_points": {None: "application_id"},
    "signature_bursts": {
        None: """
            application_id filesystem direction method  burst volume_bytes
            ann/ior/8      lake       write     elastic 0     1e9
            ann/ior/8      lake       write     elastic 1     3e9
            ann/ior/8      lake       write     iosi    0     9e9
            """
    },
    "classes": {
        9: """
            subject_kind subject_id started_at filesystem direction outcome    label
            job          1          09:00:00   lake       write     classified START
            job          1          09:00:00   pond       write     classified START
            job          2          10:00:00   lake       write     classified START
            job          3          09:00:00   lake       write     too_short  .
            application  ann/ior/8  .          lake       write     classified START
            """
    },
    "polls_daily": {
        9: """
            polled_on filesystem missing_ratio read_bytes written_bytes
            9         lake       0.25          4000000000000 12000000000000
            """
    },
    "attributed_io": {
        9: """
            job_id started_at filesystem direction minute_at application_id attributed_bytes
            1      09:00:00   lake       write     09:10:00  ann/ior/8      3e9
            1      09:00:00   lake       read      09:20:00  ann/ior/8      1e9
            3      09:00:00   lake       write     09:30:00  bob/s3d/8      7e9
            2      10:00:00   lake       write     10:30:00  ann/ior/8      5e9
            """
    },
    "rejects": {
        None: """
            source_file line reason         remedy
            jobs.sacct  7    no_start_time  export_again
            """
    },
}
ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    "Which applications wrote most last week?": [("bob/s3d/8", 4), ("ann/ior/8", 2)],
    "Who are the biggest users and accounts?": [("p1", 4), ("p2", 4)],
    "Which applications have a period between 5 and 30 minutes?": [("ann/ior/8", "write", 600, 1)],
    "What share of all bytes is periodic?": [(0.125, 0.0625)],
    "Whose signature changed?": [("ann/ior/8", "lake", "write", 0.25, -0.5)],
    "On how much of the day do polls cover each file system?": [(DAY, "lake", 0.75)],
    "How large is a typical burst of each application?": [("ann/ior/8", "write", 2, 2)],
    "How many jobs are in each class?": [("write", "START", 2)],
    "In which hours did two big applications collide?": [(at("09:00:00"), "lake", "ann/ior/8", "bob/s3d/8", 4)],
    "Which inputs were refused, and why?": [("jobs.sacct", 7, "no_start_time", "export_again")],
}


@pytest.fixture(scope="module")
def site() -> Iterator[duckdb.DuckDBPyConnection]:
    with opened_tables(TABLES) as connection:
        yield connection


def test_every_question_has_a_query() -> None:
    assert list(QUERIES) == re.findall(r"^## (.*)", PAGE, re.MULTILINE)
    assert QUERIES.keys() == ANSWERS.keys()


@pytest.mark.parametrize("question", ANSWERS)
def test_query_gives_the_planted_answer(site: duckdb.DuckDBPyConnection, question: str) -> None:
    query = QUERIES[question].replace("2026-03-01", "2018-02-05").replace("2026-03-08", "2018-02-12")
    assert sorted(site.sql(query).fetchall()) == sorted(ANSWERS[question])
