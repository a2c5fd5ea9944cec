"""Test samples.own_series: runs with known client-side traffic over time."""

from __future__ import annotations

import pytest

from iosig.warehouse.contracts.samples import OWN_SERIES
from tests.sql.given import Select, expect

EXACT, SOURCES = "samples.exact_samples", "samples.job_io_sources"
JOBS, SIGNALS = "stage.trace_jobs", "samples.trace_signals"
GIVEN = {
    SOURCES: """
        job_id started_at filesystem direction source own_bytes trace_id
        1      12:00:00   lake       write     client 5         t
        1      12:00:00   lake       read      client 5         t
        1      12:00:00   lake       write     server .         .
        """,
    JOBS: "trace_id started_at job_started_at \n t 12:00:01 12:00:00",
    SIGNALS: """
        trace_id direction module is_async basis    is_counted interval_s signal_bytes_per_s
        t        write     POSIX  no       requests yes        0.5        1,2
        t        write     STDIO  no       heatmap  yes        2          3
        t        write     MPIIO  no       requests no         0.5        9
        """,
}
TRACED = """
    job_id direction trace_id module grid_started_at counted_s sample_bytes_per_s estimate_source
    1      write     t        POSIX  12:00:01        0.5       1,2                traced
    1      write     t        STDIO  12:00:01        2         3                  traced
    """


def test_counted_signals_of_a_trace_are_series_of_its_run(select: Select) -> None:
    expect(select(OWN_SERIES, GIVEN), TRACED)


def test_complete_counters_take_precedence_over_a_trace(select: Select) -> None:
    exact = """
        job_id filesystem direction grid_started_at interval_s sample_bytes_per_s outcome
        1      lake       write     11:59:50        10         7,.                measured
        2      lake       write     11:59:50        10         8                  incomplete
        """
    expected = """
        job_id direction trace_id grid_started_at counted_s sample_bytes_per_s estimate_source
        1      write     .        11:59:50        10        7,.                counted
        """
    expect(select(OWN_SERIES, GIVEN | {EXACT: exact}), expected)
    expect(select(OWN_SERIES, GIVEN | {EXACT: exact.replace("write", "read")}).filter(estimate_source="traced"), TRACED)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (SOURCES, "lake       write     client 5 ", ".          write     client 5 "),
        (SOURCES, "lake       write     client 5 ", "pond       write     client 5 "),
        (SOURCES, "lake       read      client 5 ", "lake       unstated  client 5 "),
        (SOURCES, "lake       read      client 5 ", "lake       read      client . "),
        (JOBS, "12:00:01 12:00:00", "12:00:01 ."),
        (JOBS, "12:00:01 12:00:00", ". 12:00:00"),
        (SIGNALS, "heatmap ", "interval"),
    ],
)
def test_trace_without_filesystem_or_time_has_no_series(select: Select, name: str, before: str, after: str) -> None:
    changed = GIVEN[name].replace(before, after)
    assert changed != GIVEN[name]
    assert select(OWN_SERIES, GIVEN | {name: changed}).is_empty()
