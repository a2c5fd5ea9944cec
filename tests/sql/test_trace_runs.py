"""Test samples.trace_series and trace_runs: traced runs with a sample of their own, and the reasons for none."""

from __future__ import annotations

import pytest

from iosig.warehouse.contracts.samples import TRACE_RUNS, TRACE_SERIES
from tests.sql.given import Select, at, expect

RUNS, STEPS, SOURCES = "samples.runs", "samples.grid_steps", "samples.job_io_sources"
JOBS, TRACES, COUNTERS = "stage.jobs", "stage.trace_jobs", "stage.trace_counters"
SIGNALS, SERIES = "samples.trace_signals", "samples.trace_series"
S = 1_000_000
TEN = int(at("10:00:00").timestamp())
#: a run of 100 s from 10:00:00.5 on, with a trace of all of it
GIVEN = {
    RUNS: f"""
        job_id started_at ended_at filesystem step_us phase_us first_step        last_step
        1      10:00:00   10:01:40 lake       {2 * S} 0        {TEN // 2}        {TEN // 2 + 50}
        """,
    JOBS: "job_id started_at duration_s task_count \n 1 10:00:00 100 8",
    TRACES: """
        trace_id cluster job_id job_started_at started_at ended_at tracer  process_count
        t        cluster 1      10:00:00       10:00:00   10:01:40 darshan 8
        """,
    SOURCES: """
        job_id started_at filesystem direction source own_bytes trace_id
        1      10:00:00   lake       write     client 600       t
        1      10:00:00   lake       read      client 0         t
        1      10:00:00   lake       write     server .         .
        """,
    SERIES: """
        job_id started_at direction trace_id module is_async basis    interval_s signal_bytes_per_s
        1      10:00:00   write     t        POSIX  no       requests 0.5        300,300
        1      10:00:00   write     t        STDIO  no       heatmap  10         40
        """,
    STEPS: f"filesystem step_us phase_us step \n lake {2 * S} 0 {TEN // 2 - 5} \n lake {2 * S} 0 {TEN // 2 - 4}",
}


def outcomes(select: Select, **changes: tuple[str, str, str]) -> list[str]:
    """Return the outcomes of the reads and writes of `GIVEN` with some replaced text."""
    given = dict(GIVEN)
    for name, before, after in changes.values():
        assert before in given[name]
        given[name] = given[name].replace(before, after)
    return select(TRACE_RUNS, given)["outcome"].to_list()


def test_run_has_grids_of_one_second_and_of_the_polls(select: Select) -> None:
    expect(
        select(TRACE_RUNS, GIVEN),
        f"""
        job_id filesystem direction tracer  basis   traced_bytes outcome  interval_s first_step last_step   step_count
        1      lake       read      darshan .       0            measured 1          {TEN}      {TEN + 100} 101
        1      lake       write     darshan heatmap 600          measured 1          {TEN}      {TEN + 100} 101
        """,
    )
    expect(
        select(TRACE_RUNS, GIVEN),
        f"""
        grid_started_at poll_step_us poll_first_step poll_last_step poll_place      polled_first_step polled_last_step
        09:59:59        {2 * S}      {TEN // 2}      {TEN // 2 + 50} {5 - TEN // 2} {TEN // 2 - 5}    {TEN // 2 - 4}
        09:59:59        {2 * S}      {TEN // 2}      {TEN // 2 + 50} {5 - TEN // 2} {TEN // 2 - 5}    {TEN // 2 - 4}
        """,
    )


def test_unpolled_filesystem_has_no_grid_of_polls(select: Select) -> None:
    found = select(
        TRACE_RUNS, GIVEN | {STEPS: "", RUNS: "job_id started_at ended_at filesystem \n 1 10:00:00 10:01:40 pond"}
    )
    expected = """
        filesystem direction outcome  poll_step_us poll_first_step poll_place
        lake       read      measured .            .               .
        lake       write     measured .            .               .
        """
    expect(found, expected)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (TRACES, "10:01:40", "10:01:29"),
        (TRACES, "10:00:00   10:01:40", ".          ."),
        (TRACES, "darshan 8", "darshan 7"),
    ],
)
def test_part_of_a_run_is_incomplete(select: Select, name: str, before: str, after: str) -> None:
    assert outcomes(select, change=(name, before, after)) == ["incomplete"] * 2


def test_partial_module_is_incomplete(select: Select) -> None:
    partial = {COUNTERS: "trace_id module is_counted outcome \n t POSIX yes partial"}
    assert select(TRACE_RUNS, GIVEN | partial)["outcome"].to_list() == ["incomplete"] * 2
    other = {COUNTERS: "trace_id module is_counted outcome \n t DXT_POSIX no partial"}
    assert select(TRACE_RUNS, GIVEN | other)["outcome"].to_list() == ["measured"] * 2


def test_traces_in_sequence_cover_a_run_together(select: Select) -> None:
    head = "trace_id cluster job_id job_started_at started_at ended_at tracer process_count"
    first = "a cluster 1 10:00:00 10:00:00 10:00:50 darshan 8"
    last = "b cluster 1 10:00:00 10:00:55 10:01:40 darshan 8"
    for lines, outcome in (
        ([first, last], "measured"),
        ([first, last.replace("00:55", "01:05")], "incomplete"),
        ([first, first.replace("a", "b", 1)], "incomplete"),
        ([first, last.replace("darshan", "recorder")], "several_tracers"),
    ):
        found = select(TRACE_RUNS, GIVEN | {TRACES: "\n".join([head, *lines])})
        assert found["outcome"].to_list() == [outcome] * 2


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("write     client 600 ", "write     client .   ", ["measured", "unknown_sizes"]),
        ("read      client 0 ", "unstated  client 5 ", ["unknown_sizes"] * 2),
        # a few bytes on other file systems do not matter
        ("lake       read      client 0 ", "home       read      client 9 ", ["several_filesystems", "measured"]),
        ("lake       read      client 0 ", "home       write     client 30 ", ["measured", "measured"]),
        ("lake       read      client 0 ", "home       write     client 60 ", ["measured", "several_filesystems"]),
    ],
)
def test_bytes_must_be_known_and_on_one_filesystem(
    select: Select, before: str, after: str, expected: list[str]
) -> None:
    assert outcomes(select, change=(SOURCES, before, after)) == expected
    changed = {SOURCES: GIVEN[SOURCES].replace(before, after)}
    assert set(select(TRACE_RUNS, GIVEN | changed)["filesystem"]) == {"lake"}


def test_trace_without_mounts_belongs_to_only_filesystem_of_run(select: Select) -> None:
    unplaced = {SOURCES: GIVEN[SOURCES].replace("lake", ".   ")}
    found = select(TRACE_RUNS, GIVEN | unplaced)
    assert found.select("filesystem", "outcome").rows() == [("lake", "measured")] * 2
    two = GIVEN[RUNS] + "    1 10:00:00 10:01:40 pond . . . .\n"
    assert select(TRACE_RUNS, GIVEN | unplaced | {RUNS: two}).is_empty()


def test_signals_with_times_belong_to_their_run(select: Select) -> None:
    given = {
        TRACES: """
            trace_id cluster job_id job_started_at started_at
            t        cluster 1      10:00:00       10:00:01
            u        cluster 2      10:00:00       .
            v        .       .      .              10:00:01
            """,
        SIGNALS: """
            trace_id direction module is_async basis    is_counted interval_s signal_bytes_per_s
            t        write     POSIX  no       requests yes        0.5        1,2
            t        write     STDIO  no       interval yes        2          3
            t        write     MPIIO  no       requests no         0.5        9
            u        write     POSIX  no       requests yes        0.5        1,2
            v        write     POSIX  no       requests yes        0.5        1,2
            """,
    }
    expected = """
        job_id started_at direction trace_id module basis    grid_started_at interval_s signal_bytes_per_s
        1      10:00:00   write     t        POSIX  requests 10:00:01        0.5        1,2
        """
    expect(select(TRACE_SERIES, given), expected)
