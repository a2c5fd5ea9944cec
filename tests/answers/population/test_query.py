"""A population counts each run once, with bytes from its best source, by class, group, basis and period."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import duckdb
import pytest

from iosig.answers.population.query import By, Population, Query, query_population
from tests.flows.populated_releases import TABLES, opened
from tests.warehouse.releasing import opened_tables

NINTH = date(2018, 2, 9)


@pytest.fixture(scope="module")
def site() -> Iterator[duckdb.DuckDBPyConnection]:
    with opened() as connection:
        yield connection


def ask(site: duckdb.DuckDBPyConnection, by: By = "application") -> Population:
    return query_population(site, Query(by=by))


def test_each_run_counts_once_and_batch_steps_are_excluded(site: duckdb.DuckDBPyConnection) -> None:
    told = ask(site)
    assert told.run_count == 6, "five jobs and a series; neither an application's signature nor a batch step"
    assert told.node_hours == pytest.approx(2 + 2 + 0.01 + 1 + 1)
    assert told.measured_bytes == 1205
    writes = told.runs.filter(direction="write").select("subject_id", "bytes", "witness", "period_s")
    assert sorted(writes.rows()) == [
        ("1", 100.0, "exact", 60.0),
        ("2", 40.0, "signature", None),
        ("3", None, "none", None),
        ("4", None, "trace", None),
        ("5", 50.0, "trace", None),
        ("node7", 7.0, "exact", None),
    ]


def test_runs_are_counted_by_both_classes(site: duckdb.DuckDBPyConnection) -> None:
    assert sorted(ask(site).labels().rows(), key=str) == [
        ("OTHER", None, 1),
        ("START", None, 1),
        ("UNIFORM", "NO_USAGE", 1),
        ("UNIFORM", None, 1),
        (None, None, 2),
    ]


def test_shares_refer_to_classified_runs(site: duckdb.DuckDBPyConnection) -> None:
    shares = ask(site).shares()
    assert shares.filter(direction="write").select("label", "run_ratio", "bytes_ratio").rows() == [
        ("OTHER", 0.25, pytest.approx(7 / 197)),
        ("START", 0.25, pytest.approx(50 / 197)),
        ("UNIFORM", 0.5, pytest.approx(140 / 197)),
    ]
    assert shares["periodic_ratio"].unique().sort().to_list() == [0.0, 0.25]
    assert shares.filter(direction="read")["bytes_ratio"].to_list() == [None], "nothing is known to be read"


def test_groups_have_their_most_common_class(site: duckdb.DuckDBPyConnection) -> None:
    columns = ["name", "run_count", "bytes", "label", "stability", "periodic_ratio"]
    assert ask(site).groups().select(columns).rows() == [
        ("ior", 3, 140.0, "UNIFORM", 1.0, pytest.approx(1 / 3)),
        ("s3d", 2, 50.0, "START", 1.0, 0.0),
        ("node7", 1, 7.0, "OTHER", 1.0, 0.0),
    ]
    assert ask(site, "user").groups()["name"].to_list() == ["ann", "bob", None]
    assert ask(site, "account").groups().select("name", "run_count").rows() == [("a", 2), (None, 2), ("b", 2)]


def test_runs_are_grouped_by_wall_time(site: duckdb.DuckDBPyConnection) -> None:
    columns = ["name", "run_count", "bytes", "periodic_ratio"]
    assert ask(site, "duration").groups().select(columns).rows() == [
        ("1 to 4 h", 3, 150.0, pytest.approx(1 / 3)),
        ("under 1 h", 3, 47.0, 0.0),
    ]
    limits = ((3599, "under 1 h"), (14399, "1 to 4 h"), (43200, "4 to 12 h"), (43201, "over 12 h"), (".", None))
    head = "subject_kind subject_id started_at filesystem direction ended_on basis outcome label duration_s"
    rows = [f"series s{number} . . write 9 series classified OTHER {limit}" for number, (limit, _) in enumerate(limits)]
    with opened_tables(TABLES | {"classes": {9: "\n".join([head, *rows])}}) as connection:
        runs = query_population(connection, Query(by="duration")).runs.sort("subject_id")
    assert runs["name"].to_list() == [name for _, name in limits]


def test_runs_on_shared_nodes_are_left_out_as_in_the_paper() -> None:
    day = TABLES["jobs"]
    assert isinstance(day, dict)
    head, *lines = (line for line in str(day[9]).splitlines() if line.strip())
    words = {"1": "no", "2": "yes", "4": "yes"}
    jobs = [f"{head} node_count has_shared_nodes", *(f"{line} 4 {words.get(line.split()[0], '.')}" for line in lines)]
    with opened_tables(TABLES | {"jobs": {9: "\n".join(jobs)}}) as connection:
        every = query_population(connection, Query())
        alone = query_population(connection, Query(excludes_shared_nodes=True))
    subjects = every.runs["subject_id"].unique().sort().to_list()
    assert alone.runs["subject_id"].unique().sort().to_list() == [name for name in subjects if name not in ("2", "4")]
    counts = [population.repeats["run_count"].sum() for population in (every, alone)]
    assert counts == [5, 3]


def test_runs_of_users_with_the_largest_jobs_are_counted_by_configuration() -> None:
    users = [("ann", "ior", 8, 3), ("ann", "ior", 2, 1), ("bob", "s3d", 16, 1), ("bob", ".", 4, 2)]
    users += [(f"user{number}", "ior", 1, 1) for number in range(9)]
    numbered = [row for row in users for _ in range(row[3])]
    head = "job_id user application node_count started_at ended_at is_application_run"
    rows = [f"{job} {user} {name} {nodes} 09:00:00 10:00:00 yes" for job, (user, name, nodes, _) in enumerate(numbered)]
    ignored = [
        "97 . ior 99 09:00:00 10:00:00 yes",
        "98 ann ior . 09:00:00 10:00:00 yes",
        "99 ann batch 99 09:00:00 10:00:00 no",
    ]
    with opened_tables(TABLES | {"jobs": {9: "\n".join([head, *rows, *ignored])}}) as connection:
        repeats = query_population(connection, Query()).repeats
        later = query_population(connection, Query(since=date(2018, 2, 10))).repeats
    assert repeats.rows() == [
        ("bob", None, 4, 2),
        ("bob", "s3d", 16, 1),
        ("ann", "ior", 8, 3),
        ("ann", "ior", 2, 1),
        *((f"user{number}", "ior", 1, 1) for number in range(5)),
    ]
    assert later.is_empty()


def test_exact_and_inferred_classes_are_counted_separately(site: duckdb.DuckDBPyConnection) -> None:
    found = ask(site)
    writes = found.runs.filter(direction="write", subject_kind="job").select("subject_id", "label", "basis")
    assert writes.rows() == [
        ("1", "UNIFORM", "counted"),
        ("2", "UNIFORM", "inferred"),
        ("3", None, "inferred"),
        ("4", None, "inferred"),
        ("5", "START", "traced"),
    ]
    assert found.bases().rows() == [("counted", 2), ("series", 1), ("traced", 1), ("inferred", 1)]
    assert found.count_without_class().rows() == [("no_signature", 1), ("too_short", 1), ("unreliable_signature", 1)]


def test_sources_of_bytes_are_counted(site: duckdb.DuckDBPyConnection) -> None:
    assert ask(site).reference_sources().rows() == [
        ("exact", 2, 107.0),
        ("trace", 2, 50.0),
        ("signature", 1, 40.0),
        ("none", 1, 0.0),
    ]


def test_periods_and_days_refer_to_uniform_dated_runs(site: duckdb.DuckDBPyConnection) -> None:
    assert ask(site).periods("write").to_list() == [60.0]
    assert ask(site).periods("read").to_list() == []
    assert ask(site).days()["run_count"].sum() == 4, "a series ended on no day"


@pytest.mark.parametrize(("since", "until", "count"), [(NINTH, None, 5), (NINTH, NINTH, 5), (None, NINTH, 5)])
def test_day_range_selects_runs_by_their_end(
    site: duckdb.DuckDBPyConnection, since: date | None, until: date | None, count: int
) -> None:
    told = query_population(site, Query(since, until))
    assert told.run_count == count
    assert told.measured_bytes == (1205 if until is None else 1200)
