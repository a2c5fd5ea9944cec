"""Test inputs of the kinds of fault that `test_cases` lists, in other formats and structures."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.store.landing import find_source
from tests.warehouse.sources.batch_reading import UTC_ZONE, tables_of
from tests.warehouse.sources.samples import T, completed_job, pbs_job, sge_job

SACCT = "JobID|JobName|User|NNodes|Start|End|State"
POLLS = "polled_at,controller,read_bytes_per_s,write_bytes_per_s"
SERIES = {
    "metric": {"__name__": "lustre_write_bytes_total", "component": "ost", "target": "fs1-OST0000"},
    "values": [[T, "5"], [T + 10, "+Inf"], [T + 20, "9"]],
}


@dataclass(frozen=True, slots=True)
class Variant:
    """An input and what lands: the format, values of columns of a table, and a word of each reject."""

    name: str
    content: str | bytes
    format: str
    table: str
    values: Mapping[str, list[Any]]
    rejects: tuple[str, ...] = ()


def lines(*texts: str) -> str:
    return "".join(f"{text}\n" for text in texts)


def sacct_job(job_id: str, state: str = "COMPLETED", name: str = "sim") -> str:
    return f"{job_id}|{name}|ann|2|2026-03-01T10:00:00|2026-03-01T11:00:00|{state}"


def answer(**members: Any) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [SERIES]}} | members)


def of_sacct(**members: Any) -> dict[str, Any]:
    job = {"job_id": 5, "user": "ann", "name": "a|b", "allocation_nodes": 1, "state": {"current": "COMPLETED"},
           "time": {"start": T, "end": T + 100, "submission": T}, "exit_code": {"return_code": 0}}  # fmt: skip
    return {"meta": {"Slurm": {}}, "jobs": [job], "errors": []} | members


def of_squeue(**members: Any) -> dict[str, Any]:
    job = {"job_id": 1, "user_name": "a", "job_state": ["PENDING"], "partition": "p", "submit_time": T}
    return {"jobs": [job], "last_update": {"set": True, "infinite": False, "number": T}} | members


def poll(minute: int, read: str) -> str:
    return f"2026-03-01T10:0{minute}:00Z,a,{read},2"


VARIANTS = [
    # records that summarize others
    Variant("steps.txt", lines(SACCT, *map(sacct_job, ("102", "102.batch", "102.extern", "102.0", "100_1", "200+1"))),
            "sacct", "job_records", {"job_id": ["102", "102.batch", "102.extern", "102.0", "100_1", "200+1"]}),
    Variant("pbs.txt", lines(pbs_job(1).replace(";1.pbs;", ";7[].pbs;"), pbs_job(2).replace(";2.pbs;", ";7[2].pbs;"),
                             pbs_job(3).replace(";3.pbs;", ";8-1.srv;")),
            "pbs", "job_records", {"job_id": ["7[2].pbs", "8-1.srv"]}),
    Variant("accounting", lines(sge_job(5).replace(":1:0:2.0", ":1:3:2.0"),
                                sge_job(7).replace("defaultdepartment:NONE:1:", "defaultdepartment:mpi:1:")
                                .replace(":NONE:1024", ":1.cn2:1024")),
            "sge", "job_records", {"job_id": ["5_3"]}),
    Variant("jobcomp.log", lines(*(completed_job(n).replace(" Derived", f" ArrayJobId=100 ArrayTaskId={n} Derived")
                                   for n in (1, 2))),
            "slurm-jobcomp", "job_records", {"job_id": ["100_1", "100_2"]}),
    Variant("queue.txt", lines(str(T), "JOBID;USER;PARTITION;STATE;NODES;NAME", "100_[1-5];ann;main;PENDING;2;a;b"),
            "squeue", "queue_records", {"job_id": ["100_[1-5]"], "run_count": [5], "job_name": ["a;b"]}),
    # node counts
    Variant("login.txt", lines(pbs_job(1).replace("exec_host=cn1/0*8+cn2/0*8",
                                                  "exec_host=login1/0*128 Resource_List.nodect=64")),
            "pbs", "job_records", {"node_count": [64], "node_list": [None]}, ("exec_host names 1 hosts",)),
    # separators in names
    Variant("closed.txt", lines(f"{SACCT}|", f"{sacct_job('1')}|", f"{sacct_job('2', name='a|b')}|"),
            "sacct", "job_records", {"job_id": ["1"]}, ("9 fields; the header has 7",)),
    Variant("last.txt", lines("JobID|User|Partition|State|JobName", "1|ann|main|COMPLETED|a|b|c"),
            "sacct", "job_records", {"job_name": ["a|b|c"]}),
    Variant("newline.txt", lines(SACCT, sacct_job("1", name="two\nlines"), sacct_job("2")),
            "sacct", "job_records", {"job_id": ["2"]}, ("2 fields; the header has 7", "6 fields; the header has 7")),
    # documents that state something about themselves
    Variant("none.json", json.dumps(of_sacct(jobs=[], warnings=[{"description": "nothing found with the query"}])),
            "sacct-json", "job_records", {}),
    Variant("null.json", json.dumps(of_sacct(errors=None, warnings=None)),
            "sacct-json", "job_records", {"job_name": ["a|b"]}),
    Variant("infos.json", answer(infos=["metric might not be a counter"]),
            "prometheus", "counter_samples", {"total_written_bytes": [5, 9]}, ("1 of 3 samples",)),
    # instants
    Variant("squeue-1700000000.json", json.dumps(of_squeue()),
            "squeue-json", "queue_records", {"observed_at": [T]}),
    Variant(f"oss1-{T - 600}.txt", lines("obdfilter.s-OST0000.job_stats=", "job_stats:", "- job_id:          5",
                                         f"  snapshot_time:   {T}",
                                         "  read_bytes:      { samples: 1, unit: bytes, min: 4, max: 4, sum: 4 }",
                                         "  write_bytes:     { samples: 0, unit: bytes, min: 0, max: 0, sum: 0 }"),
            "jobstats", "scrapes", {"scraped_at": [T]}),
    # encodings, comments and foreign lines
    Variant("utf16.txt", codecs.BOM_UTF16_LE + lines(SACCT, sacct_job("1")).replace("\n", "\r\n").encode("utf-16-le"),
            "sacct", "job_records", {"job_id": ["1"]}),
    Variant("utf16.json", codecs.BOM_UTF16_BE + json.dumps(of_sacct()).encode("utf-16-be"),
            "sacct-json", "job_records", {"job_id": ["5"]}),
    Variant("bom.csv", codecs.BOM_UTF8 + lines("# of oss1", POLLS, poll(0, "1"), poll(1, "1")).encode(),
            "polls-csv", "polls", {"read_bytes_per_s": [1, 1]}),
    Variant("sep.csv", lines("sep=,", POLLS, poll(0, "1"), poll(1, "1")),
            "polls-csv", "polls", {"read_bytes_per_s": [1, 1]}, ("1 fields where 4|2 fields where 4",)),
    Variant("login.out", lines("Last login: today", "mmpmon node 10.0.0.1 name n1 fs_io_s OK", "cluster:        c1",
                               "filesystem:     gpfs1", "disks:          4", f"timestamp:      {T}/5",
                               "bytes read:     10", "bytes written:  20", "opens:          1", "closes:         1",
                               "reads:          2", "writes:         3", "readdir:        0", "inode updates:  1"),
            "mmpmon", "counter_samples", {"total_read_bytes": [10]}, ("not in mmpmon's",)),
    # gaps
    Variant("gaps.csv", lines(POLLS, *(poll(minute, text) for minute, text in enumerate(
                ("1", "#N/A", "<NA>", "-nan(ind)", "1.#QNAN", "+NaN", "undefined")))),
            "polls-csv", "polls", {"read_bytes_per_s": [1, None, None, None, None, None, None]}),
    Variant("write.csv", lines("time_s,write_bytes_per_s", "0,1", "10,#N/A", "20,nan", "30,7"),
            "series", "series", {"bytes_per_s": [1, None, None, 7]}),
    # parameters of other kinds in a dump
    Variant("oss1.stats", "".join(lines("version=2.15.1", "obdfilter.s-OST0000.stats=",
                                        f"snapshot_time             {T + second}.5 secs.nsecs",
                                        f"read_bytes 5 samples [bytes] 4096 4096 {4096 * (second + 5)}",
                                        "obdfilter.s-OST0000.exports.1@o2ib.stats=",
                                        f"read_bytes 5 samples [bytes] 1 1 {second}") for second in (0, 10)),
            "lustre-stats", "polls", {"controller": ["s-OST0000"], "read_bytes_per_s": [4096]}),
]  # fmt: skip

#: name, content, and words of the refusal
REFUSED = {
    "warning.json": (answer(warnings=["remote storage timed out"]), "remote storage timed out"),
    "partial.json": (answer(isPartial=True), "isPartial"),
    "late.json": ('{"data": {"resultType": "matrix", "result": []}, "status": "error", "error": "many"}', "many"),
    "errors.json": (json.dumps(of_squeue(errors=[{"description": "no controller"}])), "no controller"),
    "two.json": (json.dumps(of_squeue()) + "\n" + json.dumps(of_squeue()), "another document follows"),
    "tmio.json": ('{"write_sync": {"bandwidth": {"b_rank_avr": [1], "t_rank_s": [0], "t_rank_e": [', "not complete"),
    "message.json": ("sacct: warning: x\n" + json.dumps(of_sacct()), "`sacct: warning: x` precedes"),
    "page.json": ("<html><head><title>502 Bad Gateway</title></head></html>", "502 Bad Gateway"),
    "error.txt": (lines("sacct: error: Problem talking to the database", SACCT), "Problem talking to the database"),
    "table.txt": (lines("   JOBID PARTITION   NAME  USER ST   TIME NODES", "       1      main    sim   a  R   1:0  2"),
                  "padded columns"),
    "qstat.txt": (lines("Job Id: 1.pbs", "    Job_Name = x", "    job_state = F"), "output of qstat"),
    "tracejob.txt": (lines("", "Job: 1.pbs", "", "03/01/2026 13:00:01  S    Job Queued"), "or tracejob"),
    "bacct.txt": (lines("", "Accounting information about jobs that are:", "  - submitted by all users."), "bacct"),
    "qacct.txt": (lines("=" * 62, "qname        all.q", "hostname     cn1", "jobnumber    5"), "output of qacct"),
    "parser.txt": (lines("# darshan log version: 3.41", "# exe: ./a", "POSIX\t-1\t9\tPOSIX_OPENS\t1\t/x\t/\text4"),
                   "darshan-parser"),
    "dump.sql": (lines("-- MySQL dump 10.13", "CREATE TABLE `OST_DATA` (", " `OST_ID` int", ");"), "dump of an LMT"),
    "telegraf.json": ('{"fields":{"read_bytes":4},"name":"lustre2","tags":{"host":"o"},"timestamp":1}\n', "as JSON"),
    "mmperfmon.csv": (lines("Row,Timestamp,gpfs_fs_bytes_read", "1,2026-03-01-12:00:00,5"), "as CSV"),
    "pmrep.txt": (lines("  g.f.read_bytes  g.f.write_bytes", "          byte/s           byte/s"), "pmrep's table"),
    "daos.csv": (lines("name,value,min,max,mean,sample_size,sum,std_dev", "26/pool/f/dfs/ops/READ,34"), "no times"),
    "ldms": (lines("1723114647.000000,0,oss1,s-OST0000,5,1,2,3"), "without their header"),
    "stats": (lines(f"snapshot_time             {T}.5 secs.nsecs", "read_bytes 5 samples [bytes] 1 1 5"),
              "No header names the target"),
}  # fmt: skip


def read(folder: Path, name: str, content: str | bytes) -> tuple[str, dict[str, pl.DataFrame]]:
    """Write an input, recognize it and read it."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    source = find_source(path, None, None)
    return source.name, tables_of(source.read(path, UTC_ZONE))


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_variant_lands_as_stated(tmp_path: Path, variant: Variant) -> None:
    name, tables = read(tmp_path, variant.name, variant.content)
    assert name == variant.format
    rows = tables.get(variant.table, pl.DataFrame())
    instants = [pl.col(column).dt.epoch("s") for column in variant.values if column.endswith("_at")]
    assert rows.with_columns(instants).select(*variant.values).to_dict(as_series=False) == dict(variant.values)
    rejects = tables.get(REJECTS.name, pl.DataFrame(schema={"reason": pl.String}))["reason"]
    assert len(rejects) == len(variant.rejects), rejects.to_list()
    assert all(
        any(word in reason for word in words.split("|")) for words, reason in zip(variant.rejects, rejects, strict=True)
    )


@pytest.mark.parametrize("name", REFUSED)
def test_variant_is_refused_with_its_cause(tmp_path: Path, name: str) -> None:
    content, words = REFUSED[name]
    with pytest.raises(InputRefused) as refusal:
        read(tmp_path, name, content)
    assert any(word in str(refusal.value) for word in words.split("|")), refusal.value
    assert "fits no known format" not in str(refusal.value)
