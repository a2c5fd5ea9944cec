"""Test transforms.job_io: a single estimate per run, file system and direction, without counting a byte twice."""

from __future__ import annotations

from iosig.warehouse.contracts.job_io import JOB_IO
from tests.sql.given import Select, expect

SOURCES, ATTRIBUTED = "samples.job_io_sources", "transforms.attributed_io"


def test_counters_precede_traces_and_traces_precede_attribution(select: Select) -> None:
    sources = """
        job_id started_at filesystem direction source   trace_id outcome    filesystem_bytes own_bytes
        1      10:00:00   lake       write     server   .        measured   9                .
        1      10:00:00   lake       write     jobstats .        measured   .                5
        1      10:00:00   lake       write     client   a        measured   .                4
        2      10:00:00   lake       write     server   .        measured   9                .
        2      10:00:00   lake       write     jobstats .        incomplete .                3
        2      10:00:00   lake       write     client   b        measured   .                4
        2      10:00:00   lake       write     client   c        measured   .                2
        3      10:00:00   lake       write     server   .        measured   9                .
        3      10:00:00   lake       read      server   .        measured   8                .
        4      10:00:00   lake       write     server   .        no_polls   .                .
        5      10:00:00   lake       write     server   .        measured   9                .
        5      10:00:00   lake       write     jobstats .        incomplete .                3
        6      10:00:00   lake       write     jobstats .        several_runs .              7
        7      10:00:00   lake       write     server   .        measured   9                .
        7      10:00:00   lake       write     client   d        unknown_sizes .             .
        8      10:00:00   lake       write     server   .        measured   9                .
        8      10:00:00   lake       write     client   e        unknown_sizes .             .
        """
    attributed = """
        job_id started_at filesystem direction minute_at attributed_bytes attributed_low_bytes attributed_high_bytes \
            estimate_source
        1      10:00:00   lake       write     10:01:00  5               5         5          counted
        3      10:00:00   lake       write     10:01:00  2               1         3          attributed
        3      10:00:00   lake       write     10:02:00  4               2         6          attributed
        8      10:00:00   lake       write     10:02:00  4               2         6          attributed
        """
    expected = """
        job_id direction estimated_bytes estimated_low_bytes estimated_high_bytes estimate_source outcome own_bytes \
            filesystem_bytes
        1      write     5               5                   5                    counted         measured       5 9
        2      write     6               6                   6                    traced          measured       6 9
        3      read      .               .                   .                    none            not_attributed . 8
        3      write     6               3                   9                    attributed      attributed     . 9
        4      write     .               .                   .                    none            no_polls       . .
        5      write     3               3                   .                    counted         incomplete     3 9
        6      write     7               .                   .                    counted         several_runs   7 .
        7      write     .               .                   .                    none            unknown_sizes  . 9
        8      write     4               2                   6                    attributed      attributed     . 9
        """
    expect(select(JOB_IO, {SOURCES: sources, ATTRIBUTED: attributed}), expected)


def test_bytes_without_filesystem_are_in_a_separate_row(select: Select) -> None:
    sources = """
        job_id started_at filesystem direction source   trace_id outcome  filesystem_bytes own_bytes
        1      10:00:00   lake       write     server   .        measured 9                .
        1      10:00:00   lake       read      server   .        measured 9                .
        1      10:00:00   .          write     client   a        measured .                5
        2      10:00:00   lake       write     server   .        measured 9                .
        2      10:00:00   .          unstated  client   b        measured .                6
        3      10:00:00   lake       write     server   .        measured 9                .
        3      10:00:00   lake       write     jobstats .        measured .                4
        3      10:00:00   .          write     client   c        measured .                5
        3      10:00:00   .          unstated  client   d        measured .                5
        4      10:00:00   lake       write     server   .        measured 9                .
        4      10:00:00   lake       read      server   .        measured 9                .
        4      10:00:00   /scratch   write     client   e        measured .                7
        5      10:00:00   lake       write     server   .        measured 9                .
        5      10:00:00   pond       write     jobstats .        measured .                7
        """
    attributed = """
        job_id started_at filesystem direction minute_at attributed_bytes estimate_source
        1      10:00:00   lake       write     10:01:00  2               attributed
        1      10:00:00   lake       read      10:01:00  3               attributed
        2      10:00:00   lake       write     10:01:00  2               attributed
        4      10:00:00   lake       write     10:01:00  2               attributed
        4      10:00:00   lake       read      10:01:00  2               attributed
        5      10:00:00   lake       write     10:01:00  2               attributed
        """
    expected = """
        job_id filesystem direction estimated_bytes estimate_source outcome
        1      lake       read      3               attributed      attributed
        1      lake       write     .               none            in_other_row
        1      .          write     5               traced          measured
        2      lake       write     .               none            in_other_row
        2      .          unstated  6               traced          measured
        3      lake       write     4               counted         measured
        4      /scratch   write     7               traced          measured
        4      lake       read      2               attributed      attributed
        4      lake       write     .               none            in_other_row
        5      lake       write     2               attributed      attributed
        5      pond       write     7               counted         measured
        """
    expect(select(JOB_IO, {SOURCES: sources, ATTRIBUTED: attributed}), expected)


def test_estimate_above_filesystem_bytes_is_flagged(select: Select) -> None:
    sources = """
        job_id started_at filesystem direction source   trace_id filesystem_bytes own_bytes metadata_operation_count
        1      10:00:00   lake       write     server   .        9                .         .
        1      10:00:00   lake       write     jobstats .        .                9.5       .
        2      10:00:00   lake       write     server   .        9                .         .
        2      10:00:00   lake       write     client   a        .                9         .
        2      10:00:00   lake       write     jobstats .        .                8         7
        3      10:00:00   lake       write     client   b        .                9         .
        4      10:00:00   lake       write     server   .        9                .         .
        """
    expected = """
        job_id estimated_bytes is_above_filesystem metadata_operation_count
        1      9.5             yes                 .
        2      8               no                  7
        3      9               .                   .
        4      .               .                   .
        """
    expect(select(JOB_IO, {SOURCES: sources}), expected)


def test_trace_that_ends_on_another_day_is_in_row_of_its_run(select: Select) -> None:
    sources = """
        ended_on job_id started_at filesystem direction source trace_id filesystem_bytes own_bytes
        9        1      10:00:00   lake       write     client a        .                5
        9        2      10:00:00   lake       write     client b        .                6
        10       1      10:00:00   lake       write     server .        9                .
        """
    expected = """
        ended_on job_id estimated_bytes filesystem_bytes
        9        2      6               .
        10       1      5               9
        """
    expect(select(JOB_IO, {SOURCES: sources}), expected)
