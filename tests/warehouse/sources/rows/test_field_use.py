"""Test the record of the fields that readers take and ignore."""

from __future__ import annotations

import pytest

from iosig.warehouse.sources.rows.field_use import is_recording, note_fields, record_fields
from tests.warehouse.sources.samples import read, samples

#: sample -> some of the fields that are taken, and some of those that are ignored
FIELDS = {
    "sacct": ({"jobid": "job_id", "start": "started_at"}, set()),
    "squeue": ({"jobid": "job_id", "nodes": "node_count"}, set()),
    "pbs": ({"user": "user", "exec_host": "exec_host"}, set()),
    "sge": ({"owner": "user", "project": "account", "task_number": "job_id"}, {"department", "mem"}),
    "lsf": ({"userName": "user", "execHosts": "node_count, node_list"}, set()),
    "slurm-jobcomp": ({"NodeCnt": "node_count", "StartTime": "started_at"}, {"ProcCnt", "WorkDir"}),
    "swf": ({"submit": "submitted_at", "processors": "task_count"}, {"think_time", "memory"}),
    "flux": ({"t_run": "started_at", "nodelist": "node_list"}, {"ranks", "expiration"}),
    "clustercockpit": ({"numNodes": "node_count", "shared": "sharing"}, {"walltime", "statistics"}),
    "clustercockpit-data": ({"lustre_read_bw": "bytes_per_s (read)"}, {"cpu_load"}),
    "mmperfmon": ({"gpfs_nsdds_bytes_read": "read_bytes_per_s"}, set()),
    "lustre-stats": ({"read_bytes": "read_bytes_per_s, read_iops"}, {"statfs", "ping"}),
    "tacc-stats": ({"read_bytes": "total_read_bytes", "open": "total_open_count"}, {"mmap"}),
    "pmrep": ({"Time": "sampled_at"}, set()),
    "sacct-json": ({"job_id": "job_id", "nodes": "node_list"}, set()),
    "squeue-json": ({"user_name": "user", "time_limit": "time_limit_s"}, set()),
    "polls-csv": ({"polled_at": "polled_at"}, set()),
    "polls-parquet": ({"controller": "controller"}, set()),
    "series": ({"write_bytes": "write_bytes"}, set()),
    "jobstats": ({"write_bytes": "total_written_bytes, total_write_count"}, set()),
    "influx-line": ({"jobid": "job_key", "jobstats_write_bytes": "total_written_bytes"}, {"host"}),
    "ldms-csv": ({"job_id": "job_key", "ost": "target"}, {"ProducerName"}),
    "mmpmon": ({"br": "total_read_bytes"}, set()),
    "prometheus-prom": ({"lustre_job_write_bytes_total": "a count"}, {"lustre_up"}),
    "prometheus-json": ({"lustre_job_write_bytes_total": "total_written_bytes"}, set()),
    "request-events-csv": ({"layer": "layer"}, set()),
}


def test_notes_are_kept_in_order_and_only_while_recording() -> None:
    note_fields({"a": "b"}, ["a"])
    assert not is_recording()
    with record_fields() as use:
        assert is_recording()
        note_fields({"x": "read"}, ["y", "x"])
        # a field that any part of the input uses is not ignored
        note_fields({"y": "write"}, ["z", "y"])
        note_fields({}, ["x"])
    note_fields({"a": "b"}, ["a"])
    assert use.taken == {"x": "read", "y": "write"}
    assert list(use.ignored) == ["z"]


@pytest.mark.parametrize("key", FIELDS)
def test_readers_note_their_fields(key: str) -> None:
    with record_fields() as use:
        read(samples()[key])
    taken, ignored = FIELDS[key]
    assert taken.items() <= use.taken.items()
    assert ignored <= set(use.ignored)
