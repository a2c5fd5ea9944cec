from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from iosig.warehouse.sources.jobs.pbs import SKIPPED, SOURCE
from iosig.warehouse.sources.protocol import Head
from tests.warehouse.sources import batch_reading

TORQUE_END = (
    "12/21/2009 15:27:00;E;6.edge.example.edu;user=jones group=staff jobname=impi-hybrid queue=ccr ctime=1261424924 "
    "qtime=1261424925 etime=1261424924 start=1261425023 owner=jones@edge.example.edu "
    "exec_host=i02n33/1+i02n33/0+i02n32/1+i02n32/0 Resource_List.neednodes=2:ppn=2 Resource_List.nodect=2 "
    "Resource_List.nodes=2:ppn=2 Resource_List.walltime=04:00:00 session=5510 total_execution_slots=4 "
    "unique_node_count=2 end=1261427220 Exit_status=0 resources_used.cput=00:00:00 resources_used.walltime=00:36:37"
)
PBS_END = (
    '01/02/2024 10:00:05;E;77[3].pbs01;user=ann group=g project=_pbs_project_default account="climate" jobname=icon '
    "queue=workq ctime=1704186000 qtime=1704186000 etime=1704186000 start=1704186300 "
    "exec_host=x1/0*128+x1/1*128+x2/0*128 exec_vnode=(x1:ncpus=128)+(x2:ncpus=128) Resource_List.mpiprocs=256 "
    "Resource_List.ncpus=256 Resource_List.nodect=3 Resource_List.select=3:ncpus=128:mpiprocs=128 "
    'Submit_arguments="-N icon job.sh user=root Exit_status=0" resources_used.cpupercent=\'{"x1": 1}\' session=9 '
    "alt_id=1 end=1704189605 Exit_status=271 resources_used.walltime=00:55:00 run_count=1"
)


read_lines = partial(batch_reading.read_lines, SOURCE)


def epoch(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TORQUE_END, True),
        ("\n12/21/2009 15:27:00;Q;6.edge;queue=ccr\n", True),
        ("12/21/2009 15:27:00;E", False),
        ("2009-12-21 15:27:00;E;6.edge;user=jones", False),
        ("12/21/2009 15:27:00;0010;PBS_Server;Job;6.edge;Exit_status=0", False),
        (f"# a comment\nLast login: today\n{TORQUE_END}", True),
        ("JobID|State\n1|CD\n", False),
        ("", False),
    ],
)
def test_only_accounting_records_are_recognized(text: str, expected: bool) -> None:
    assert SOURCE.sniff(Head("log", text.encode())) is expected


def test_torque_record_of_ended_job_is_read(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, TORQUE_END)
    assert refused.is_empty()
    assert rows.row(0, named=True) == {
        "cluster": None,
        "job_id": "6.edge.example.edu",
        "user": "jones",
        "account": None,
        "job_name": "impi-hybrid",
        "partition": "ccr",
        "node_count": 2,
        "task_count": 4,
        "submitted_at": epoch(1261424924),
        "started_at": epoch(1261425023),
        "ended_at": epoch(1261427220),
        "state": "COMPLETED",
        "cancelled_by": None,
        "exit_code": "0",
        "node_list": "i02n33/1+i02n33/0+i02n32/1+i02n32/0",
        "has_shared_nodes": None,
        "comment": None,
        "source_file": "",
        "line": 1,
    }


def test_pbs_record_with_quoted_values_is_read(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, PBS_END)
    assert refused.is_empty()
    row = rows.row(0, named=True)
    assert row["user"] == "ann"
    assert row["account"] == "climate"
    assert row["node_count"] == 2
    assert row["task_count"] == 256
    assert row["state"] == "FAILED"
    assert row["exit_code"] == "271"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("excl", False),
        ("scatter:excl", False),
        ("pack:exclhost", False),
        ("scatter:shared:group=host", True),
        ("free", None),
        ("scatter:group=excluded", None),
        (None, None),
    ],
)
def test_sharing_of_nodes_is_that_of_the_requested_place(
    tmp_path: Path, place: str | None, expected: bool | None
) -> None:
    given = "" if place is None else f" Resource_List.place={place}"
    rows, refused = read_lines(tmp_path, PBS_END.replace(" session=9", f"{given} session=9"))
    assert refused.is_empty()
    assert rows["has_shared_nodes"].to_list() == [expected]


def test_record_types_determine_state_and_times(tmp_path: Path) -> None:
    rows, refused = read_lines(
        tmp_path,
        "01/02/2024 10:00:00;S;1.s;user=a ctime=1704186000 start=1704186300 exec_host=n1/0",
        "01/02/2024 10:00:00;T;2.s;user=a start=1704186300 exec_host=n1/0",
        "01/02/2024 10:00:00;E;3.s;user=a start=1704186300 end=1704189600 Exit_status=-11",
        "01/02/2024 10:00:00;R;4.s;user=a start=1704186300",
        "01/02/2024 10:00:00;R;5.s;",
        "01/02/2024 10:00:00;A;6.s;Job deleted as result of dependency on 3.s",
        "01/02/2024 10:00:00;D;7.s;requestor=ann@login1",
    )
    assert refused.is_empty()
    stamp = datetime(2024, 1, 2, 10, tzinfo=UTC)
    assert rows.select("job_id", "state", "started_at", "ended_at", "cancelled_by").rows() == [
        ("1.s", "RUNNING", epoch(1704186300), None, None),
        ("2.s", "RUNNING", epoch(1704186300), None, None),
        ("3.s", "FAILED", epoch(1704186300), epoch(1704189600), None),
        ("4.s", "REQUEUED", epoch(1704186300), stamp, None),
        ("5.s", "REQUEUED", None, stamp, None),
        ("6.s", "CANCELLED", None, stamp, None),
        ("7.s", "CANCELLED", None, None, "ann@login1"),
    ]


def test_record_types_without_a_run_are_skipped(tmp_path: Path) -> None:
    rows, refused = read_lines(tmp_path, *(f"01/02/2024 10:00:00;{kind};1.s;any text at all" for kind in SKIPPED))
    assert rows.is_empty()
    assert refused.is_empty()


def test_allocation_and_stated_sizes_take_precedence_over_exec_host(tmp_path: Path) -> None:
    sizes = {
        "exec_host=n1/0-7+n2/0-7": (2, None),
        "exec_host=n[1-4]/0-7 Resource_List.nodect=4": (4, None),
        "unique_node_count=3 Resource_List.nodect=9": (3, None),
        "Resource_List.nodect=4 Resource_List.nodes=9": (4, None),
        "Resource_List.nodes=4:ppn=8+2:ppn=4+cn07:ppn=1": (7, None),
        "Resource_List.nodes=cn01+cn02": (2, None),
        "Resource_List.nodes=12345678901+cn02": (None, None),
        "unique_node_count=2 exec_host=n1/0+n2/0 Resource_List.nodect=9": (2, None),
        "exec_host=n1/0 exec_vnode=(n1:ncpus=1)+(n1:ncpus=1) Resource_List.nodect=2": (1, None),
        "exec_host=login7/24 exec_vnode=(nid1:ncpus=1)+(nid2:ncpus=1+nid3:ncpus=1) Resource_List.nodect=2": (3, None),
        "exec_vnode=(n1[0]:ncpus=4+n1[1]:ncpus=4)+(n2[0]:ncpus=4)": (2, None),
        "exec_host=login7/24 exec_vnode=(login7:ncpus=1) Resource_List.mppnppn=2 Resource_List.mppwidth=64": (32, None),
        "Resource_List.mppnppn=24 Resource_List.mppwidth=25 Resource_List.nodect=1": (2, None),
        "exec_host=login7/24 Resource_List.mppwidth=64 Resource_List.nodect=1": (None, None),
        "Resource_List.mppwidth=64 Resource_List.mppnodect=8": (8, None),
        "exec_host=login7/24 Resource_List.mppwidth=0 Resource_List.nodect=1": (1, None),
        "Resource_List.select=3:ncpus=4:mpiprocs=2+1:ncpus=1": (4, None),
        "Resource_List.mpiprocs=48 total_execution_slots=64 Resource_List.ncpus=96": (None, 48),
        "total_execution_slots=64": (None, 64),
        "Resource_List.ncpus=96": (None, None),
    }
    rows, refused = read_lines(tmp_path, *(f"01/02/2024 10:00:00;S;1.s;{message}" for message in sizes))
    assert refused.is_empty()
    assert rows.select("node_count", "task_count").rows() == list(sizes.values())


@pytest.mark.parametrize(
    ("message", "count", "nodes", "hosts"),
    [
        # a truncated list, chunks that may share a node, and a login node
        ("exec_host=n1/0+ Resource_List.nodect=9", 9, None, 1),
        ("exec_host=n1/0-7+n2/0-7 Resource_List.nodect=9", 9, None, 2),
        ("exec_host=login7/24 Resource_List.nodect=32", 32, None, 1),
        ("exec_host=login7/0*64 Resource_List.select=32:ncpus=2", 32, None, 1),
        ("exec_host=login7/0*64 Resource_List.nodes=32:ppn=2", 32, None, 1),
        # Torque with procs=4: nodect is the default of the queue
        ("exec_host=n1/0+n2/0+n3/0+n4/0 Resource_List.nodect=1", 4, "n1/0+n2/0+n3/0+n4/0", 4),
    ],
)
def test_contradicting_exec_host_is_flagged(tmp_path: Path, message: str, count: int, nodes: str, hosts: int) -> None:
    rows, refused = read_lines(tmp_path, f"01/02/2024 10:00:00;S;1.s;{message}")
    assert rows.select("node_count", "node_list").rows() == [(count, nodes)]
    assert refused["line"].to_list() == [1]
    assert f"exec_host names {hosts} hosts, but the record states" in refused["reason"][0]
    assert f"{count} are used" in refused["reason"][0]


def test_contradiction_of_a_refused_record_is_no_second_reject(tmp_path: Path) -> None:
    _, refused = read_lines(
        tmp_path, "01/02/2024 10:00:00;E;1.s;exec_host=n1/0 Resource_List.nodect=9 Exit_status=ok start=1704186300"
    )
    assert refused["reason"].to_list() == ["The exit status ok is not a number."]


def test_list_of_nodes_is_of_the_allocation(tmp_path: Path) -> None:
    lists = {
        "exec_host=n1/0+n2/0 exec_vnode=(n1:ncpus=1)+(n2:ncpus=1)": "n1/0+n2/0",
        "exec_host=login7/24 exec_vnode=(nid1:ncpus=1)+(nid2:ncpus=1)": "nid1+nid2",
        "exec_vnode=(n1:ncpus=1)": "n1",
        "exec_host=login7/24 exec_vnode=(login7:ncpus=1) Resource_List.mppwidth=64": None,
        "exec_host=login7/24 Resource_List.nodect=32": None,
    }
    rows, _ = read_lines(tmp_path, *(f"01/02/2024 10:00:00;S;1.s;{message}" for message in lists))
    assert rows["node_list"].to_list() == list(lists.values())


def test_job_array_as_a_whole_is_not_a_run(tmp_path: Path) -> None:
    rows, refused = read_lines(
        tmp_path,
        "01/02/2024 10:00:00;E;1[7].s;user=a start=1704186300 end=1704189600 Exit_status=0",
        "01/02/2024 10:00:00;E;1[].s;user=a start=1704186300 end=1704189600 array_indices=7-9 Exit_status=0",
        "01/02/2024 10:00:00;D;1[].s;requestor=ann@login1",
        "01/02/2024 10:00:00;E;2.s;user=a start=1704186300 end=1704189600 array_indices=1-2 Exit_status=0",
    )
    assert refused.is_empty()
    assert rows["job_id"].to_list() == ["1[7].s"]


def test_submission_is_creation_time_and_zero_is_null(tmp_path: Path) -> None:
    rows, _ = read_lines(
        tmp_path,
        "01/02/2024 10:00:00;S;1.s;qtime=1704186001 ctime=1704186000 start=0",
        "01/02/2024 10:00:00;S;2.s;qtime=1704186001",
        "01/02/2024 10:00:00;S;3.s;ctime=0 qtime=1704186001",
    )
    assert rows["submitted_at"].to_list() == [epoch(1704186000), epoch(1704186001), epoch(1704186001)]
    assert rows["started_at"].to_list() == [None] * 3


def test_record_time_is_local_and_replaces_missing_end(tmp_path: Path) -> None:
    rows, refused = read_lines(
        tmp_path,
        "03/27/2006 00:00:02;E;1.s;start=1143437662 Exit_status=0 resources_used.walltime=00:25:09",
        "10/29/2006 01:30:00;E;2.s;start=1143437662 Exit_status=0",
        "10/29/2006 01:30:00;E;3.s;start=1143437662 end=1143439202 Exit_status=0",
        zone="America/Chicago",
    )
    assert rows.select("job_id", "ended_at").rows() == [("1.s", epoch(1143439202)), ("3.s", epoch(1143439202))]
    assert refused["line"].to_list() == [2]
    assert "occurs twice in America/Chicago" in refused["reason"][0]
