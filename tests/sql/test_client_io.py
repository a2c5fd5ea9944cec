"""Test samples.client_io: bytes of traced runs by file system."""

from __future__ import annotations

from typing import Any

from iosig.warehouse.contracts.job_io import CLIENT_IO
from tests.sql.given import Select, expect

JOBS = "stage.trace_jobs"
COUNTERS = "stage.trace_counters"
RECORDS = "landed.trace_records"
FILES = "landed.trace_files"
SIGNALS = "samples.trace_signals"
ALIASES = "settings.filesystem_aliases"


def test_bytes_belong_to_filesystem_of_their_files(select: Select) -> None:
    given: dict[str, Any] = {
        JOBS: "trace_id cluster job_id job_started_at started_at duration_s \n t edison 7 10:00:00 10:00:01 10",
        COUNTERS: "trace_id module is_counted \n t POSIX yes \n t STDIO yes \n t MPIIO no",
        RECORDS: """
        trace_id  module  file_number  rank  read_bytes  written_bytes
        t         POSIX   1            0     100         .
        t         POSIX   1            1     100         .
        t         POSIX   2            0     5           50
        t         STDIO   3            0     0           7
        t         STDIO   4            0     0           0
        t         MPIIO   1            0     100000      100000
        """,
        FILES: """
        trace_id  file_number  mount
        t         1            /scratch
        t         2            /home
        t         3            /home
        t         4            /nothing
        other     1            /other
        """,
        SIGNALS: "trace_id module direction basis is_counted peak_bytes_per_s \n t POSIX read requests yes 1000",
        ALIASES: "name filesystem \n /scratch snx11025",
    }
    expected = """
        cluster  job_id  started_at  filesystem  direction  trace_id  volume_bytes  mean_bytes_per_s  peak_bytes_per_s
        edison   7       10:00:00    /home       read       t         5             0.5               .
        edison   7       10:00:00    /home       write      t         57            5.7               .
        edison   7       10:00:00    snx11025    read       t         200           20                .
        edison   7       10:00:00    snx11025    write      t         0             0                 .
        """
    expect(select(CLIENT_IO, given), expected)


def test_totals_have_no_filesystem_and_peak_of_signal(select: Select) -> None:
    given = {
        JOBS: "trace_id traced_job_id started_at duration_s \n t 99 . 4 \n u . . .",
        COUNTERS: "trace_id module is_counted read_bytes written_bytes \n t MPIIO yes 40 . \n u MPIIO yes 1 2",
        SIGNALS: """
        trace_id  module  direction  basis     is_counted  peak_bytes_per_s
        t         MPIIO   read       requests  yes         25
        u         MPIIO   read       interval  yes         1
        """,
    }
    expected = """
        cluster  job_id  started_at  filesystem  direction  volume_bytes  mean_bytes_per_s  peak_bytes_per_s
        default  99      .           .           read       40            10                25
        default  99      .           .           write      0             0                 .
        default  u       .           .           read       1             .                 .
        default  u       .           .           write      2             .                 .
        """
    expect(select(CLIENT_IO, given), expected)


def test_idle_run_has_zero_bytes_and_unreadable_run_has_no_rows(select: Select) -> None:
    given = {
        JOBS: "trace_id duration_s \n idle 5 \n unread 5",
        COUNTERS: "trace_id module is_counted outcome \n idle POSIX yes sound \n unread POSIX no unreadable",
        RECORDS: "trace_id module file_number read_bytes \n idle POSIX 1 0",
        FILES: "trace_id file_number mount \n idle 1 /scratch",
    }
    expect(
        select(CLIENT_IO, given),
        "trace_id filesystem direction volume_bytes \n idle . read 0 \n idle . write 0",
    )


def test_bytes_without_direction_are_separate(select: Select) -> None:
    given = {
        JOBS: "trace_id duration_s \n t 10",
        COUNTERS: "trace_id module is_counted \n t MPIIO yes",
        SIGNALS: """
        trace_id  module  direction  basis     is_counted  volume_bytes  peak_bytes_per_s
        t         MPIIO   unstated   requests  yes         600           100
        """,
    }
    expect(
        select(CLIENT_IO, given),
        "trace_id direction volume_bytes mean_bytes_per_s peak_bytes_per_s \n t unstated 600 60 100",
    )


def test_volume_with_a_request_of_unknown_size_is_null(select: Select) -> None:
    given = {
        JOBS: "trace_id duration_s \n t 10",
        COUNTERS: "trace_id module is_counted \n t MPIIO yes \n t STDIO yes",
        RECORDS: """
        trace_id  module  file_number  rank  read_bytes  written_bytes  read_count  write_count
        t         MPIIO   1            0     .           100            3           1
        t         MPIIO   1            1     50          100            1           1
        t         STDIO   1            0     .           .              0           .
        """,
    }
    expect(
        select(CLIENT_IO, given),
        "direction volume_bytes mean_bytes_per_s \n read . . \n write 200 20",
    )
