"""Test stage.jobs: a single row per run from all records of job logs."""

from __future__ import annotations

import polars as pl

from iosig.warehouse.contracts.jobs import JOBS
from tests.sql.given import DAY, Select, expect, rows, shuffled

RECORDS = "landed.job_records"


def test_ended_record_replaces_running_record(select: Select) -> None:
    records = """
        part_order  job_id  started_at  ended_at  state
        0           7       10:00:00    .         RUNNING
        1           7       10:00:00    11:00:00  COMPLETED
        """
    expect(select(JOBS, {RECORDS: records}), "job_id ended_at state duration_s ended_on \n 7 11:00:00 COMPLETED 3600 9")


def test_ended_record_is_kept_after_landing_an_older_export(select: Select) -> None:
    records = """
        part_order  job_id  started_at  ended_at  state
        0           7       10:00:00    11:00:00  COMPLETED
        1           7       10:00:00    .         RUNNING
        """
    expect(select(JOBS, {RECORDS: records}), "job_id ended_at state \n 7 11:00:00 COMPLETED")


def test_last_landed_record_wins_and_last_line_within_a_file(select: Select) -> None:
    records = """
        part_order  line  job_id  started_at  ended_at  node_count
        0           9     7       10:00:00    11:00:00  1
        1           2     7       10:00:00    11:00:00  2
        1           5     7       10:00:00    10:30:00  3
        1           4     7       10:00:00    11:00:00  4
        """
    expect(select(JOBS, {RECORDS: records}), "job_id ended_at node_count line \n 7 10:30:00 3 5")


def test_requeued_job_has_a_run_for_each_start(select: Select) -> None:
    records = """
        job_id  started_at  ended_at  state
        7       12:00:00    13:00:00  COMPLETED
        7       10:00:00    10:20:00  REQUEUED
        """
    expected = """
        job_id  started_at  state      is_application_run
        7       10:00:00    REQUEUED   yes
        7       12:00:00    COMPLETED  yes
        """
    expect(select(JOBS, {RECORDS: records}), expected)


def test_pending_record_is_superseded_only_on_same_cluster(select: Select) -> None:
    records = """
        cluster  job_id  started_at  ended_at  state
        here     7       .           .         PENDING
        here     7       10:00:00    11:00:00  COMPLETED
        there    7       .           .         PENDING
        here     8       .           11:00:00  CANCELLED
        """
    found = select(JOBS, {RECORDS: records})
    expected = """
        cluster  job_id  state      started_at  ended_on  is_application_run  duration_s
        here     7       COMPLETED  10:00:00    9         yes                 3600
        here     8       CANCELLED  .           9         no                  .
        there    7       PENDING    .           .         no                  .
        """
    expect(found.sort("cluster", "job_id"), expected)


def test_unnamed_cluster_is_the_default_cluster(select: Select) -> None:
    records = """
        cluster  part_order  job_id  started_at  ended_at
        .        0           7       10:00:00    .
        default  1           7       10:00:00    11:00:00
        """
    expect(select(JOBS, {RECORDS: records}), "cluster job_id ended_at \n default 7 11:00:00")


def test_job_kind_and_parent_are_parsed_from_job_id(select: Select) -> None:
    said = """
        job_id               job_kind     parent_job_id
        123                  allocation   .
        123+1                allocation   .
        123+1.0              step         123+1
        123.0                step         123
        123.0+1              step         123
        123.batch            system_step  123
        123.batch+1          system_step  123
        123.extern           system_step  123
        123.interactive      system_step  123
        123.pbs.example.org  allocation   .
        123.server           allocation   .
        123[4].server        array_task   .
        123[].server         allocation   .
        123_4                array_task   .
        123_4.7              step         123_4
        123_[5-9]            allocation   .
        """
    ids = [line.split()[0] for line in said.strip().splitlines()[1:]]
    records = "job_id started_at ended_at" + "".join(f"\n {job_id} 10:00:00 11:00:00" for job_id in ids)
    expect(select(JOBS, {RECORDS: records}), said)


def test_numbered_steps_are_the_runs_of_a_job(select: Select) -> None:
    records = """
        job_id       started_at  ended_at
        1            10:00:00    11:00:00
        1.batch      10:00:00    11:00:00
        1.0          10:00:01    10:30:00
        1.1          10:30:00    10:59:00
        2            10:00:00    11:00:00
        2.batch      10:00:00    11:00:00
        2.extern     10:00:00    11:00:00
        3+0          10:00:00    11:00:00
        3+1          10:00:00    11:00:00
        3+1.0        10:00:00    11:00:00
        4_1          10:00:00    11:00:00
        4_[2-9%3]    10:00:00    10:00:00
        """
    found = select(JOBS, {RECORDS: records})
    runs = found.filter("is_application_run")["job_id"].sort().to_list()
    assert runs == ["1.0", "1.1", "2", "3+0", "3+1.0", "4_1"]


def test_step_inherits_missing_properties_of_its_job(select: Select) -> None:
    records = """
        job_id  started_at  ended_at  user  account  partition  comment   submitted_at  job_name  node_count
        1       10:00:00    11:00:00  ann   physics  long       fs=lake   09:00:00      script    8
        1.0     10:00:00    10:30:00  .     .        .          .         .             vasp      .
        1.1     10:00:00    10:30:00  bob   maths    short      fs=pond   09:30:00      lmp       2
        2.0     10:00:00    10:30:00  .     .        .          .         .             orphan    .
        """
    found = select(JOBS, {RECORDS: records})
    expected = """
        job_id  user  account  partition  filesystem  submitted_at  application  node_count
        1       ann   physics  long       lake        09:00:00      script       8
        1.0     ann   physics  long       lake        09:00:00      vasp         .
        1.1     bob   maths    short      pond        09:30:00      lmp          2
        2.0     .     .        .          .           .             orphan       .
        """
    expect(found.sort("job_id"), expected)


def test_step_inherits_latest_record_of_its_job(select: Select) -> None:
    records = rows(
        RECORDS,
        """
        part_order  line  job_id  started_at  ended_at  submitted_at  account
        1           3     1       12:00:00    13:00:00  11:00:00      late
        1           2     1       10:00:00    11:00:00  09:00:00      early
        0           9     1       08:00:00    08:30:00  07:00:00      first
        1           4     1.0     12:00:00    12:30:00  .             .
        """,
    )
    for disordered in shuffled(records):
        found = select(JOBS, {RECORDS: disordered}).filter(pl.col("job_id") == "1.0")
        expect(found, "job_id submitted_at account \n 1.0 11:00:00 late")


def test_patterns_extract_application_and_filesystem(select: Select) -> None:
    found = select(
        JOBS,
        {
            RECORDS: """
            job_id  started_at  ended_at  job_name     comment
            1       10:00:00    11:00:00  vasp-run7    where:lake;x
            2       10:00:00    11:00:00  other        nowhere
            3       10:00:00    11:00:00  .            where:puddle;
            """,
            "settings.filesystem_aliases": "name filesystem \n lake snx11025",
        },
        application_pattern="^([a-z]+)-",
        filesystem_pattern=r"where:(\w+);",
    )
    expect(
        found,
        """
        job_id  application  filesystem
        1       vasp         snx11025
        2       other        .
        3       .            puddle
        """,
    )


def test_only_requested_days_and_undated_jobs_are_selected(select: Select) -> None:
    records = """
        job_id  started_at   ended_at
        1       8T23:00:00   8T23:59:59
        2       8T23:00:00   00:00:00
        3       10:00:00     10T00:00:00
        4       10:00:00     .
        """
    dated = select(JOBS, {RECORDS: records}, days=[DAY], has_undated=False)
    assert dated["job_id"].to_list() == ["2"]
    both = select(JOBS, {RECORDS: records}, days=[DAY], has_undated=True)
    assert both["job_id"].to_list() == ["2", "4"]
    undated = select(JOBS, {RECORDS: records}, days=[], has_undated=True)
    assert undated["job_id"].to_list() == ["4"]


def test_run_that_ends_before_it_starts_has_no_duration(select: Select) -> None:
    records = """
        job_id  started_at  ended_at
        1       10:00:00    09:59:59
        2       10:00:00    10:00:00
        3       10:00:00    10:00:00.25
        """
    found = select(JOBS, {RECORDS: records})
    expect(found.sort("job_id"), "job_id duration_s \n 1 . \n 2 0 \n 3 0.25")


def test_hostile_names_are_kept_as_data(select: Select) -> None:
    hostile = ["x'; drop table jobs; --", '"; select 1', "$days", "../../etc", "\\1 (.*", "ü\U0001f600", "fs=a b"]
    records = pl.concat(
        rows(RECORDS, f"job_id started_at ended_at \n {number} 10:00:00 11:00:00").with_columns(
            *(pl.lit(name).alias(column) for column in ("job_name", "user", "comment")),
            job_id=pl.format("{}-{}", pl.lit(number), pl.lit(name)),
        )
        for number, name in enumerate(hostile)
    )
    found = select(JOBS, {RECORDS: records}).sort("job_id")
    assert found["application"].to_list() == hostile
    assert found["user"].to_list() == hostile
    assert found["filesystem"].to_list() == [None] * 6 + ["a"]


def test_empty_input_yields_no_rows(select: Select) -> None:
    assert select(JOBS, {}).is_empty()


def test_sharing_of_nodes_comes_from_the_record_then_the_job_then_the_partition(select: Select) -> None:
    records = """
        job_id  partition  has_shared_nodes  started_at  ended_at
        1       serial     .                 10:00:00    11:00:00
        2       serial     no                10:00:00    11:00:00
        2.0     .          .                 10:00:00    11:00:00
        3       main       yes               10:00:00    11:00:00
        4       main       .                 10:00:00    11:00:00
        5       serial     .                 10:00:00    11:00:00
        5.0     .          .                 10:00:00    11:00:00
        6       .          .                 10:00:00    11:00:00
        """
    stated = {"1": None, "2": False, "2.0": False, "3": True, "4": None, "5": None, "5.0": None, "6": None}
    by_partition = {"1": True, "4": False, "5": True, "5.0": True}
    for partitions, expected in (([], stated), (["serial", "debug"], stated | by_partition)):
        found = select(JOBS, {RECORDS: records}, shared_partitions=partitions)
        assert dict(found.select("job_id", "has_shared_nodes").iter_rows()) == expected
