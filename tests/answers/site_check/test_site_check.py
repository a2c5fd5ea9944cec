"""`check-site` counts what the logs cover, estimates when applications have enough samples, and names the next step."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import duckdb
import pytest

from iosig.answers.site_check.advice import advise
from iosig.answers.site_check.query import SiteQuery, check_site
from iosig.warehouse.errors import NothingToDo
from tests.warehouse.releasing import Content, opened_tables

QUERY = SiteQuery(min_sample_count=5, min_expected_correlation=0.6)
TABLES: dict[str, Content] = {
    "jobs": {
        9: """
            cluster job_id user application application_id filesystem node_count started_at ended_at is_application_run
            titan   1      ann  ior         ann/ior/8      lake       8          09:00:00   10:00:00 yes
            titan   2      ann  ior         ann/ior/8      lake       8          10:00:00   11:00:00 yes
            titan   3      bob  s3d         bob/s3d/8      sea        8          09:00:00   12:00:00 yes
            titan   4      .    .           .              .          .          09:00:00   10:00:00 yes
            titan   4.b    ann  ior         ann/ior/8      lake       8          09:00:00   10:00:00 no
            """
    },
    "job_io": {
        9: """
            cluster job_id started_at filesystem direction outcome
            titan   1      09:00:00   lake       write     attributed
            titan   1      09:00:00   lake       read      not_attributed
            titan   2      10:00:00   lake       write     measured
            titan   3      09:00:00   sea        write     no_polls
            titan   4      09:00:00   lake       write     not_attributed
            """
    },
    "polls_daily": {
        6: """
            filesystem polled_on interval_s missing_ratio expected_poll_count
            lake       6         2          0.2           100
            pond       6         5          0             10
            """,
        9: """
            filesystem polled_on interval_s missing_ratio expected_poll_count
            lake       9         2          0.1           300
            """,
    },
    "counters_daily": {
        9: """
            filesystem scraped_on interval_s missing_ratio expected_scrape_count read_bytes written_bytes
            lake       9          60         0             100                   60         40
            """
    },
    "attribution_daily": {
        9: """
            filesystem polled_on direction measured_bytes unattributed_bytes
            lake       9         write     700            600
            lake       9         read      300            300
            """
    },
    "unattributed_counter_io": {
        9: """
            filesystem scraped_on key_kind read_bytes written_bytes
            lake       9          unknown  30         .
            """
    },
    "applications": {
        None: """
            application_id user application node_count sample_count first_run_started_at last_run_ended_at
            ann/ior/8      ann  ior         8          3            1T00:00:00           9T00:00:00
            bob/s3d/8      bob  s3d         8          1            9T09:00:00           9T12:00:00
            eve/hpl/8      eve  hpl         8          7            1T00:00:00           9T00:00:00
            eve/hpl/9      eve  hpl         9          7            1T00:00:00           9T00:00:00
            eve/idle/8     eve  idle        8          7            1T00:00:00           9T00:00:00
            """
    },
    "signatures": {
        None: """
            application_id filesystem direction method  is_default outcome          expected_correlation
            eve/hpl/8      lake       write     elastic yes        extracted        0.9
            eve/hpl/8      lake       read      elastic yes        no_common_bursts .
            eve/hpl/9      lake       write     elastic yes        extracted        0.3
            eve/hpl/9      lake       write     iosi    no         extracted        0.9
            eve/idle/8     lake       write     elastic yes        no_io            .
            bob/s3d/8      lake       write     elastic yes        too_few_samples  .
            """
    },
    "trace_jobs": {
        9: """
            trace_id job_match
            t1       job_id
            t2       none
            t3       ambiguous
            """
    },
}


@pytest.fixture(scope="module")
def site() -> Iterator[duckdb.DuckDBPyConnection]:
    with opened_tables(TABLES) as connection:
        yield connection


def test_filesystems_combine_polls_counters_and_names_in_job_logs(site: duckdb.DuckDBPyConnection) -> None:
    columns = ("filesystem", "has_polls", "has_counters", "day_count", "missing_day_count", "run_count")
    assert check_site(site, QUERY).filesystems.select(columns).rows() == [
        ("lake", True, True, 2, 2, 3),
        ("pond", True, False, 1, 0, 0),
        # named by a job log only
        ("sea", False, False, 0, None, 1),
    ]


def test_ratios_are_weighted_by_polls_and_bytes(site: duckdb.DuckDBPyConnection) -> None:
    (lake, *_) = check_site(site, QUERY).filesystems.to_dicts()
    assert lake["missing_ratio"] == pytest.approx((0.2 * 100 + 0.1 * 300) / 400)
    assert lake["attributed_ratio"] == pytest.approx(0.1)
    assert lake["unknown_key_ratio"] == pytest.approx(0.3)


def test_clusters_count_application_runs_without_fields(site: duckdb.DuckDBPyConnection) -> None:
    columns = ("cluster", "run_count", "no_user_ratio", "no_node_count_ratio", "measured_ratio")
    assert check_site(site, QUERY).clusters.select(columns).rows() == [("titan", 4, 0.25, 0.25, 0.75)]


def test_application_counts_once_by_its_best_signature(site: duckdb.DuckDBPyConnection) -> None:
    assert check_site(site, QUERY).applications.rows() == [
        ("reliable", 1),
        ("unreliable", 1),
        ("no_io", 1),
        ("too_few_samples", 2),
    ]


def test_missing_samples_are_expected_at_the_rate_since_the_first_run(site: duckdb.DuckDBPyConnection) -> None:
    # three samples in eight days: two more take eight days; one sample has no rate
    assert check_site(site, QUERY).waiting.drop("run_count").rows() == [
        ("ann/ior/8", 3, 2, date(2018, 2, 17)),
        ("bob/s3d/8", 1, 4, None),
    ]


def test_advice_names_each_problem_once_with_clocks_first(site: duckdb.DuckDBPyConnection) -> None:
    advice = advise(check_site(site, QUERY), ["lake: the times of jobs look 5 hours early."])
    assert [problem.name for problem in advice] == [
        "clocks 1",
        "days lake",
        "gaps lake",
        "keys lake",
        "unused pond",
        "unmeasured file systems",
        "no_user_ratio titan",
        "no_application_ratio titan",
        "no_node_count_ratio titan",
        "unmeasured titan",
        "traces",
        "samples",
    ]
    sentences = {problem.name: problem.sentence for problem in advice}
    assert "without polls and counters: sea (1 run)." in sentences["unmeasured file systems"]
    assert "10% of the bytes are attributed. 2 applications still have fewer than 5 samples" in sentences["samples"]
    assert "expected on 2018-02-17" in sentences["samples"]


def test_complete_site_needs_no_advice() -> None:
    polls = "filesystem polled_on interval_s missing_ratio expected_poll_count \n lake 9 2 0 100"
    daily = "filesystem polled_on direction measured_bytes unattributed_bytes \n lake 9 write 100 20"
    jobs = "\n".join(TABLES["jobs"][9].strip().splitlines()[:3])
    job_io = "\n".join(TABLES["job_io"][9].strip().splitlines()[:4])
    complete = TABLES | {
        "job_io": {9: job_io},
        "jobs": {9: jobs},
        "polls_daily": {9: polls},
        "attribution_daily": {9: daily},
        "unattributed_counter_io": {9: "filesystem scraped_on key_kind"},
        "trace_jobs": {9: "trace_id job_match \n t1 job_id"},
    }
    with opened_tables(complete) as connection:
        check = check_site(connection, QUERY)
        assert advise(check, []) == []


def test_empty_release_has_nothing_to_check() -> None:
    empty: dict[str, Content] = {
        name: {None: next(iter(content.values())).strip().splitlines()[0]} for name, content in TABLES.items()
    }
    with opened_tables(empty) as connection, pytest.raises(NothingToDo, match="land some"):
        check_site(connection, QUERY)
