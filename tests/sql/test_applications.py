"""Test samples.applications: the sets of samples."""

from __future__ import annotations

import pytest

from iosig.warehouse.contracts.samples import APPLICATIONS
from tests.sql.given import PARAMETERS, Select, expect

JOBS = "stage.jobs"
JOB_IO = "samples.job_io_sources"


def test_samples_are_measured_runs_of_any_filesystem_and_direction(select: Select) -> None:
    jobs = """
        job_id  started_at  ended_at  user  application  node_count
        1       10:00:00    11:00:00  ann   vasp         8
        1       12:00:00    13:00:00  ann   vasp         8
        2       09:00:00    14:00:00  ann   vasp         8
        3       10:00:00    11:00:00  ann   vasp         16
        4       10:00:00    11:00:00  bob   vasp         8
        """
    job_io = """
        job_id  started_at  filesystem  direction  outcome
        1       10:00:00    lake        read       measured
        1       10:00:00    lake        write      measured
        1       10:00:00    pond        read       measured
        2       09:00:00    lake        read       no_polls
        3       10:00:00    lake        write      measured
        """
    expected = """
        application_id  user  application  node_count  sample_count  first_run_started_at  last_run_ended_at
        ann/vasp/16     ann   vasp         16          1             10:00:00  11:00:00
        ann/vasp/8      ann   vasp         8           1             09:00:00  14:00:00
        bob/vasp/8      bob   vasp         8           0             10:00:00  11:00:00
        """
    expect(select(APPLICATIONS, {JOBS: jobs, JOB_IO: job_io}), expected)


@pytest.mark.parametrize(("samples_from", "sample_count"), [("shared", 1), ("exact", 2), ("best", 2), ("traced", 3)])
def test_traces_that_sample_sets_accept_are_counted(select: Select, samples_from: str, sample_count: int) -> None:
    given = {
        JOBS: """
            job_id  started_at  ended_at  user  application  node_count
            1       10:00:00    11:00:00  ann   vasp         8
            2       10:00:00    11:00:00  ann   vasp         8
            3       10:00:00    11:00:00  ann   vasp         8
            4       10:00:00    11:00:00  ann   vasp         8
            """,
        JOB_IO: """
            job_id  started_at  source  outcome
            1       10:00:00    server  measured
            4       10:00:00    client  measured
            """,
        "samples.trace_samples": """
            job_id  started_at  direction  outcome
            1       10:00:00    write      measured
            2       10:00:00    read       measured
            2       10:00:00    write      measured
            3       10:00:00    write      no_polls
            4       10:00:00    write      differs
            """,
    }
    found = select(APPLICATIONS, given, **(PARAMETERS | {"samples_from": samples_from}))
    expect(found, f"application_id sample_count \n ann/vasp/8 {sample_count}")


def test_only_finished_runs_of_known_applications_are_counted(select: Select) -> None:
    jobs = """
        job_id   started_at  ended_at  user  application  node_count  is_application_run
        good     10:00:00    10:00:00  ann   vasp         8           yes
        running  09:00:00    .         ann   vasp         8           yes
        whole    08:00:00    11:00:00  ann   vasp         8           no
        back     12:00:00    11:00:00  ann   vasp         8           yes
        nobody   10:00:00    11:00:00  .     vasp         8           yes
        unnamed  10:00:00    11:00:00  ann   .            8           yes
        unsized  10:00:00    11:00:00  ann   vasp         .           yes
        """
    found = select(APPLICATIONS, {JOBS: jobs})
    expect(
        found, "application_id first_run_started_at last_run_ended_at sample_count \n ann/vasp/8 10:00:00 10:00:00 0"
    )


def test_names_with_slashes_do_not_merge_applications(select: Select) -> None:
    jobs = """
        job_id  started_at  ended_at  user  application  node_count
        1       10:00:00    11:00:00  a/b   c            1
        2       10:00:00    11:00:00  a     b/c          1
        """
    found = select(APPLICATIONS, {JOBS: jobs})
    expect(found, "user application_id \n a/b a%2Fb/c/1 \n a a/b/c/1")


def test_machine_is_that_of_the_runs(select: Select) -> None:
    jobs = """
        job_id  cluster  machine  started_at  ended_at  application_id    user  application  node_count
        1       t1       titan    10:00:00    11:00:00  ann@titan/vasp/8  ann   vasp         8
        2       t2       titan    12:00:00    13:00:00  ann@titan/vasp/8  ann   vasp         8
        3       default  default  10:00:00    11:00:00  ann/vasp/8        ann   vasp         8
        """
    found = select(APPLICATIONS, {JOBS: jobs})
    assert found.select("application_id", "machine").rows() == [
        ("ann/vasp/8", "default"),
        ("ann@titan/vasp/8", "titan"),
    ]
