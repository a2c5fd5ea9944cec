from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.sources.jobs.swf import FIELDS, SOURCE, STATES
from iosig.warehouse.sources.protocol import Head
from tests.budget import examples
from tests.warehouse.sources import batch_reading

START = 749458803
ZERO = datetime.fromtimestamp(START, UTC)
HEADER = ("; Version: 2.2", "; Computer: IBM SP2", f"; UnixStartTime: {START}", "; TimeZoneString: US/Pacific")
LINE = "1 0 1460 16 128 -1 -1 128 -1 -1 1 7 2 3 1 5 -1 -1"


read_lines = partial(batch_reading.read_lines, SOURCE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n".join([*HEADER, LINE]), True),
        (LINE, True),
        ("  " + LINE.replace(" ", "   ") + "\n", True),
        ("\n".join(HEADER), True),
        ("; a note\n; another\n", False),
        (LINE + " 1", False),
        (LINE.rpartition(" ")[0], False),
        (LINE.replace("128", "many"), False),
        ("0.5 1024\n1.0 2048\n", False),
        (LINE.replace(" ", ","), False),
        ("", False),
    ],
)
def test_only_workload_logs_are_recognized(text: str, expected: bool) -> None:
    assert SOURCE.sniff(Head("log", text.encode())) is expected


def test_job_with_all_fields_is_read(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, *HEADER, "; MaxNodes: 128", "; MaxProcs: 128 (one a node)", "", LINE)
    assert refused.is_empty()
    assert rows.row(0, named=True) == {
        "cluster": "IBM SP2",
        "job_id": "1",
        "user": "7",
        "account": None,
        "job_name": "3",
        "partition": "5",
        "node_count": 128,
        "task_count": 128,
        "submitted_at": ZERO,
        "started_at": ZERO + timedelta(seconds=1460),
        "ended_at": ZERO + timedelta(seconds=1476),
        "state": "COMPLETED",
        "cancelled_by": None,
        "exit_code": None,
        "node_list": None,
        "has_shared_nodes": None,
        "comment": None,
        "source_file": "",
        "line": 8,
    }


def test_processors_are_nodes_only_on_single_processor_nodes(tmp_path: Path) -> None:
    for comments in ((), ("; MaxNodes: 16", "; MaxProcs: 128"), ("; MaxProcs: 128",)):
        rows, _ = read_lines(tmp_path, *HEADER, *comments, LINE)
        assert rows.select("node_count", "task_count").rows() == [(None, 128)]


def test_negative_sentinel_is_null(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, *HEADER, "4 10 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 2 -1 -1 -1")
    assert refused.is_empty()
    row = rows.row(0, named=True)
    assert row["partition"] == "2"
    assert row["submitted_at"] == ZERO + timedelta(seconds=10)
    nulls = ("started_at", "ended_at", "state", "user", "job_name", "task_count")
    assert [row[name] for name in nulls] == [None] * len(nulls)


def test_run_of_unknown_duration_has_no_end(tmp_path: Path) -> None:
    rows, _ = read_lines(tmp_path, *HEADER, LINE.replace(" 16 ", " -1 "), LINE.replace(" 16 ", " 0 "))
    start = ZERO + timedelta(seconds=1460)
    assert rows.select("started_at", "ended_at").rows() == [(start, None), (start, start)]


def test_times_may_have_fractions(tmp_path: Path) -> None:
    rows, _ = read_lines(tmp_path, *HEADER, "1 0.5 1e1 2.25 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1")
    assert rows["started_at"].to_list() == [ZERO + timedelta(seconds=10.5)]
    assert rows["ended_at"].to_list() == [ZERO + timedelta(seconds=12.75)]


def test_status_codes_are_mapped_to_states(tmp_path: Path) -> None:
    rows, _ = read_lines(tmp_path, *HEADER, *(LINE.replace(" 1 7", f" {status} 7") for status in STATES))
    assert rows["state"].to_list() == ["FAILED", "COMPLETED", "CANCELLED"]


def test_parts_of_swapped_job_are_skipped_after_its_line(tmp_path: Path) -> None:
    part = LINE.replace(" 1 7", " 2 7")
    rows, refused = read_lines(tmp_path, *HEADER, LINE, part, part.replace(" 2 7", " 3 7"), "9" + part[1:])
    assert rows["line"].to_list() == [5]
    assert refused.select("line", "reason").rows() == [
        (8, "The line is a part of a job, but the line of the job does not precede it.")
    ]


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(1, 10**9),
            st.integers(-1, 10**8),
            st.integers(-1, 10**6),
            st.integers(-1, 10**6),
            st.integers(-1, 10**5),
            st.sampled_from(["-1", "0", "1", "5"]),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_jobs_round_trip(tmp_path: Path, jobs: list[tuple[int, int, int, int, int, str]]) -> None:
    lines, expected = [], []
    for job, submit, wait, run, processors, status in jobs:
        values = dict.fromkeys(FIELDS, "-1") | {
            "job": str(job),
            "submit": str(submit),
            "wait": str(wait),
            "run": str(run),
            "processors": str(processors),
            "status": status,
        }
        lines.append(" ".join(values.values()))
        at = [None if submit < 0 else ZERO + timedelta(seconds=submit)]
        for seconds in (wait, run):
            at.append(None if at[-1] is None or seconds < 0 else at[-1] + timedelta(seconds=seconds))
        expected.append((str(job), *at, None if processors < 0 else processors, STATES.get(status)))
    rows, refused = read_lines(tmp_path, *HEADER, *lines)
    assert refused.is_empty()
    names = ["job_id", "submitted_at", "started_at", "ended_at", "task_count", "state"]
    assert rows.select(names).rows() == expected
