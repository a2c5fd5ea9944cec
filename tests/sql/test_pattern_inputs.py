"""Test the inputs of patterns: summed polls, summed attributed bytes, and runs that may have used a file system."""

from __future__ import annotations

from iosig.warehouse.contracts.attribution import EXPLAINED_MINUTES
from iosig.warehouse.contracts.polls import POLLED_TRAFFIC
from iosig.warehouse.contracts.samples import FILESYSTEM_RUNS
from tests.sql.given import Select, expect

TICKS, JOBS = "stage.filesystem_rates", "stage.jobs"
PARTITIONS = "settings.partition_filesystems"


def test_polls_of_an_instant_are_summed_by_direction(select: Select) -> None:
    ticks = """
        filesystem  polled_at  interval_s  read_bytes  written_bytes
        lake        12:00:10   10          5           .
        lake        12:00:10   20          7           .
        lake        12:00:20   10          .           1
        pond        12:00:10   10          2           3
    """
    expected = """
        filesystem  direction  polled_at  interval_s  moved_bytes
        lake        read       12:00:10   20          12
        lake        read       12:00:20   10          .
        lake        write      12:00:10   20          .
        lake        write      12:00:20   10          1
        pond        read       12:00:10   10          2
        pond        write      12:00:10   10          3
        """
    expect(select(POLLED_TRAFFIC, {TICKS: ticks}), expected)


def test_attributed_bytes_are_summed_by_minute(select: Select) -> None:
    attributed = """
        job_id  filesystem  direction  minute_at  attributed_bytes
        1       lake        read       12:01:00   5
        2       lake        read       12:01:00   7
        1       lake        write      12:01:00   1
        1       pond        read       12:02:00   2
    """
    expected = """
        filesystem  direction  minute_at  attributed_bytes
        lake        read       12:01:00   12
        lake        write      12:01:00   1
        pond        read       12:02:00   2
        """
    expect(select(EXPLAINED_MINUTES, {"transforms.attributed_io": attributed}), expected)


def test_filesystems_of_a_run_come_from_job_or_partition_or_are_all(select: Select) -> None:
    jobs = """
        job_id  user  application  node_count  filesystem  partition  is_application_run
        own     a/b   ior          8           pond        batch      yes
        mapped  ann   ior          8           .           batch      yes
        other   ann   ior          8           .           debug      yes
        no_run  ann   ior          8           lake        .          no
        nobody  .     ior          8           lake        .          yes
    """
    ticks = "filesystem interval_s \n lake 1 \n lake 2 \n pond 1"
    expect(
        select(FILESYSTEM_RUNS, {JOBS: jobs, TICKS: ticks, PARTITIONS: "partition filesystem \n batch lake"}),
        """
        application_id  job_id  filesystem
        ann/ior/8       mapped  lake
        ann/ior/8       other   lake
        a%2Fb/ior/8     own     pond
        ann/ior/8       other   pond
        """,
    )
