"""Build a small valid input of each format, and read inputs that may be damaged."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgpack
import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.predictions.lines import format_line
from iosig.warehouse.sources.protocol import Batch, get_source, recognize
from tests.dftracer_traces import Process, write_call
from tests.flows import growing_traces
from tests.naive import recorder_traces
from tests.prediction_rows import prediction
from tests.warehouse.extrapolation_records import EXTRAPOLATED
from tests.warehouse.sources import archives, lmt_tables, trace_landing
from tests.warehouse.sources.batch_reading import UTC_ZONE, tables_of
from tests.warehouse.sources.counters import (
    test_influx_line as influx,
    test_jobstats as jobstats,
    test_ldms_csv as ldms,
    test_ldms_lustre2 as lustre2,
    test_mmpmon as mmpmon,
    test_pmrep as pmrep,
    test_prometheus as prometheus,
    test_tacc_stats as tacc,
)
from tests.warehouse.sources.darshan import test_layout as darshan
from tests.warehouse.sources.events import test_source as events
from tests.warehouse.sources.jobs import test_clustercockpit as cockpit, test_flux as flux, test_lsf as lsf
from tests.warehouse.sources.polls import test_csv as polls, test_lustre_stats as stats, test_mmperfmon as mmperfmon
from tests.warehouse.sources.reviews import test_source as reviews
from tests.warehouse.sources.series import test_clustercockpit as rates

#: 2026-03-01T12:00:00Z
T = 1_772_366_400


@dataclass(frozen=True, slots=True)
class Sample:
    """A valid input: the names of format and file, the content and the main table.

    `value` occurs once within the content; `document` is the object that a JSON content was written from; `beside`
    contains the files in the same folder that the format needs.
    """

    format: str
    name: str
    content: bytes
    table: str
    value: bytes = b""
    document: Any = None
    write: Callable[[Any], str] = json.dumps
    beside: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of reading an input: rows by table and rejects, or the refusal that stopped the reading."""

    tables: dict[str, pl.DataFrame]
    rejects: pl.DataFrame
    refusal: InputRefused | None = field(default=None, compare=False)

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table, in any order, without their positions in the input."""
        places = ("line", "source_file", "request", "call", "event")
        found = self.tables.get(table, pl.DataFrame()).drop(places, strict=False)
        return sorted(map(tuple, map(repr_of, found.rows())))


def repr_of(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Return a row's values as texts, which are sortable for any types."""
    return tuple(map(repr, row))


def recognized(sample: Sample, content: bytes) -> str:
    """Return the name of the recognized format of a content."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / sample.name
        path.write_bytes(content)
        return recognize(read_head(path)).name


def read(sample: Sample, content: bytes | None = None, name: str = "") -> Outcome:
    """Read an input as landing does; its batches must satisfy their contracts and be writable as JSON.

    `name` is the file's path below a temporary folder; the default is the sample's name.
    """
    batches: list[Batch] = []
    refusal = None
    with TemporaryDirectory() as folder:
        path = Path(folder) / (name or sample.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sample.content if content is None else content)
        for other, other_content in sample.beside.items():
            path.with_name(other).write_bytes(other_content)
        os.utime(path, (T, T))
        try:
            batches.extend(get_source(sample.format).read(path, UTC_ZONE))
        except InputRefused as error:
            refusal = error
    tables = tables_of(batches)
    for rows in tables.values():
        rows.write_json()
    return Outcome(tables, tables.pop(REJECTS.name, frames.empty(REJECTS)), refusal)


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _json(name: str, file_name: str, document: Any, table: str, value: bytes) -> Sample:
    return Sample(name, file_name, json.dumps(document).encode(), table, value, document)


def _as_lines(documents: Any) -> str:
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in documents)


def _json_lines(name: str, file_name: str, lines: list[str], table: str, value: bytes) -> Sample:
    documents = [json.loads(line.rstrip(",")) if line[:1] == "{" else line for line in lines]
    return Sample(name, file_name, _as_lines(documents).encode(), table, value, documents, _as_lines)


def _of_file(write: Callable[[Path], object]) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        made = write(path)
        return (made if isinstance(made, Path) else path).read_bytes()


def _parquet(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


# ---- job logs and queues


SACCT_HEADER = "JobID|User|Partition|NNodes|Start|End|State|NodeList"


def sacct_job(number: int, user: str = "ann") -> str:
    return f"{number}|{user}|main|8|2026-03-01T12:00:0{number}Z|2026-03-01T13:00:00Z|COMPLETED|cn[01-08]"


def pbs_job(number: int, user: str = "ann") -> str:
    return (
        f"03/01/2026 13:00:0{number};E;{number}.pbs;user={user} jobname=icon queue=main ctime={T} start={T + number} "
        f"exec_host=cn1/0*8+cn2/0*8 end={T + 3600} Exit_status=0"
    )


def swf_job(number: int, user: str = "7") -> str:
    return f"{number} {number} 1460 16 128 -1 -1 128 -1 -1 1 {user} 2 3 1 5 -1 -1"


def sge_job(number: int, user: str = "ann") -> str:
    return (
        f"all.q:cn1:staff:{user}:icon:{number}:sge:0:{T - 60}:{T + number}:{T + 3600}:0:0:3590:1.5:0.5" + ":0" * 15
        + ":climate:defaultdepartment:NONE:1:0:2.0:0.1:0.0:-l h_rt=24:00:00:0.0:NONE:1024.0:0:0"
    )  # fmt: skip


def completed_job(number: int, user: str = "ann") -> str:
    return (
        f"JobId={number} UserId={user}(1001) GroupId=staff(100) Name=icon run JobState=COMPLETED Partition=main "
        f"TimeLimit=120 StartTime=2026-03-01T12:00:0{number} EndTime=2026-03-01T13:00:00 NodeList=cn[1-8] NodeCnt=8 "
        "ProcCnt=64 WorkDir=/x ReservationName= Tres=cpu=64,node=8 Account=climate QOS=normal WcKey= Cluster=c1 "
        "SubmitTime=2026-03-01T11:00:00 EligibleTime=2026-03-01T11:00:00 DerivedExitCode=0:0 ExitCode=0:0 "
    )


def _sacct_json() -> Any:
    job = {
        "account": "climate", "comment": {"job": "fs=scratch1"}, "allocation_nodes": 2, "cluster": "c1",
        "time": {"elapsed": 600, "end": T + 600, "start": T, "submission": T - 60}, "nodes": "cn[01-02]",
        "exit_code": {"status": "SUCCESS", "return_code": 0}, "partition": "main", "user": "ann", "name": "icon",
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "steps": [
            {
                "time": {"elapsed": 580, "end": T + 600, "start": T}, "nodes": {"count": 2, "range": "cn[01-02]"},
                "state": "COMPLETED", "step": {"id": "0", "name": "icon.x"}, "exit_code": {"return_code": 0},
            }
        ],
    }  # fmt: skip
    jobs = [job | {"job_id": 1}, job | {"job_id": 2, "user": "bob"}, job | {"job_id": 3}]
    return {"meta": {"Slurm": {"release": "22.05"}}, "jobs": jobs, "errors": []}


SQUEUE_HEADER = "JOBID|USER|ACCOUNT|PARTITION|STATE|SUBMIT_TIME|START_TIME|TIME_LIMIT|NODES|REASON|NAME"


def squeue_job(number: int, user: str = "ann") -> str:
    return f"{number}|{user}|(null)|io|PENDING|2026-03-01T11:00:0{number}|N/A|30:00|4|Priority|icon"


def _squeue_json() -> Any:
    job = {
        "account": "climate", "cluster": "c1", "comment": "fs=scratch", "name": "icon", "partition": "io",
        "user_name": "ann", "state_reason": "Priority", "job_state": "PENDING", "node_count": 4, "time_limit": 30,
        "submit_time": T - 60, "eligible_time": T - 60, "start_time": 0, "array_task_string": "",
    }  # fmt: skip
    jobs = [job | {"job_id": 1}, job | {"job_id": 2, "user_name": "bob"}, job | {"job_id": 3}]
    return {"meta": {"Slurm": {}}, "jobs": jobs, "errors": []}


def _of_jobs() -> list[Sample]:
    users = ("ann", "bob", "ann")
    log = {
        "sacct": (SACCT_HEADER, *map(sacct_job, range(1, 4), users)),
        "squeue": (str(T), SQUEUE_HEADER, *map(squeue_job, range(1, 4), users)),
        "pbs": tuple(map(pbs_job, range(1, 4), users)),
        "swf": (f"; UnixStartTime: {T}", *map(swf_job, range(1, 4), ("7", "88", "7"))),
        "sge": ("# Version: 8.1.9", *map(sge_job, range(1, 4), users)),
        "slurm-jobcomp": tuple(map(completed_job, range(1, 4), users)),
        "lsf": tuple(lsf.job(number, user=user).rstrip() for number, user in enumerate(users, start=1)),
    }
    queues = ("squeue", "squeue-json")
    texts = [
        Sample(name, f"{name}.txt", _lines(*lines), "queue_records" if name in queues else "job_records", b"bob")
        for name, lines in log.items()
    ]
    return [
        *(text for text in texts if text.format != "swf"),
        Sample("swf", "log.swf", texts[3].content, "job_records", b"88"),
        _json_lines("flux", "flux.jsonl", [json.dumps(flux.job(n, username=user)) for n, user in enumerate(users, 1)],
                    "job_records", b"bob"),
        _json("clustercockpit", "meta.json", cockpit.meta(user="bob"), "job_records", b"bob"),
        _json("sacct-json", "sacct.json", _sacct_json(), "job_records", b"bob"),
        _json("squeue-json", f"squeue-{T}.json", _squeue_json(), "queue_records", b"bob"),
    ]  # fmt: skip


# ---- polls and series


def _of_polls() -> list[Sample]:
    times = T + 60.0 * pl.int_range(1, 5, eager=True)
    rows = pl.DataFrame({"polled_at": times, "controller": ["a", "b", "b", "a"], "read_bytes_per_s": 1.5,
                         "write_bytes_per_s": [7, 8, 9, 10]})  # fmt: skip
    lines = [f"{T + 60 * number},ctl{name},{number}.5,2" for number, name in enumerate("abca", start=1)]
    values = [[1.0, 2, 3, 4], [5, 6, 7, 8]]
    readings = [(ost, second, 100 * second * ost, 5 * second) for ost in (1, 2) for second in (1, 2, 3)]
    return [
        Sample("polls-csv", "polls.csv", _lines(polls.HEADER, *lines), "polls", b"ctlc"),
        Sample("polls-parquet", "polls.parquet", _parquet(rows), "polls"),
        Sample("h5lmt", "a.h5lmt", _of_file(lambda path: archives.pylmt(path, times, values, values)), "polls"),
        Sample("tokio", "a.hdf5", _of_file(lambda path: archives.tokio(
            path, times, list(zip(*values, strict=True)), list(zip(*values, strict=True)))), "polls"),
        Sample("lmt-database", "lmt.db", _of_file(lambda path: lmt_tables.database(path.parent, readings)), "polls"),
        Sample("mmperfmon", "mmperfmon.out", mmperfmon.good_text(2).encode(), "polls", b"12:03"),
        Sample("lustre-stats", "oss1.stats", "".join(stats.reading(10 * n, 0, 81920 * n) for n in range(4)).encode(),
               "polls", b"163840"),
        replace(
            _json("clustercockpit-data", "data.json",
                  rates.LOAD | {"lustre_read_bw": rates.metric([1.5, 2], [3, None], prefix="M")}, "series", b"f1040"),
            beside={"meta.json": json.dumps(cockpit.meta()).encode()},
        ),
        Sample("series", "write-7.csv", _lines("time_s,write_bytes", "0,1", "10,5", "20,77", "30,90"), "series", b"77"),
    ]  # fmt: skip


# ---- counters


def _of_counters() -> list[Sample]:
    keys = ("j1", "j22", "j3")
    entries = "".join(jobstats.entry(key, 5, 8192) for key in keys)
    series = [
        {
            "metric": {"__name__": "lustre_job_write_bytes_total", "jobid": key, "component": "ost",
                       "target": "fs1-OST0001", "instance": "oss1", "fs": "lake"},
            "values": [[T, "5"], [T + 10, "9"]],
        }
        for key in keys
    ]  # fmt: skip
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    logged = [(second, key, name, 4096 * second) for second in (1, 2) for key in keys for name in ("write", "mkdir")]
    frame = pl.DataFrame(logged, schema=["timestamp", "job_id", "operation", "value"], orient="row")
    frame = frame.with_columns(pl.from_epoch(pl.col("timestamp") + T).cast(pl.Datetime("ms")))
    text = {
        "jobstats": ("stats", f"{T}\n{jobstats.header()}{entries}"),
        "influx-line": ("metrics.out", "".join(influx.job(key, 4096) for key in keys)),
        "ldms-csv": ("lustre_ost", ldms.JOBS + "".join(ldms.job(key, 4096) for key in keys)),
        "ldms-lustre2": (
            "lustre2_client",
            lustre2.HEADER + "".join(lustre2.line(0, key, 5, node=f"n{place}") for place, key in enumerate(keys)),
        ),
        "tacc-stats": (
            "1772366400",
            tacc.HEADER + "".join(tacc.reading(0, key, 5, host=f" n{place}") for place, key in enumerate(keys)),
        ),
        "mmpmon": ("mmpmon", "".join(mmpmon.line(5, node=key) for key in keys)),
        "pmrep": ("pcp.csv", pmrep.HEADER + "".join(pmrep.line(4096, host=key) for key in keys)),
        "prometheus": ("oss1.prom", prometheus.snapshot(4096, 8192, 3).replace('"j1"', '"j22"')),
    }
    found = [Sample(name, file, content.encode(), "counter_samples", b"j22") for name, (file, content) in text.items()]
    return [
        *found,
        _json("prometheus", "answer.json", answer, "counter_samples", b"j22"),
        Sample("glljobstat", "glljobstat.parquet", _parquet(frame), "counter_samples"),
    ]


# ---- traces, extrapolations, predictions


def _packed() -> bytes:
    def flush(start: float) -> list[object]:
        phases = [[5, at, at + 1, at + 1, 1.0, 1.0, 1.0, 1.0, 1] for at in (start, start + 2, start + 4)]
        return ["write_sync", False, True, *[1] * 10, phases]

    return b"".join(msgpack.packb(array) for array in (flush(0.0), flush(6.0), ["io_time", *[1.0] * 18]))


def _recorder() -> tuple[bytes, bytes]:
    text = "".join(f"{at}.0 {at}.5 pwrite 0 0 ( /a/f{at} %p 120 {at} )\n" for at in range(1, 4))
    calls = trace_landing.made_up(2, seed=3)
    return text.encode(), trace_landing.tarred(recorder_traces.separate(calls))


def _of_traces() -> list[Sample]:
    text, packed = _recorder()
    process = Process(1, rank=0).lines_of([write_call(0, 4096), write_call(50, 8192, tid=77), write_call(90, 1)])
    table = _lines(events.HEADER, *events.GOOD)
    log = darshan.Log(modules={1: (4, b"".join(darshan.record(88, rank=rank) for rank in range(3)))})
    return [
        _json_lines("dftracer", "t.pfw", process, "trace_requests", b"8192"),
        _json_lines("tmio", "8.jsonl", [line.decode() for line in growing_traces.flushes(3)], "trace_requests", b""),
        Sample("tmio", "8.msgpack", _packed(), "trace_requests"),
        Sample("request-events", "e.csv", table, "request_events", b"send"),
        Sample("request-events", "e.parquet", _parquet(pl.read_csv(table)), "request_events"),
        Sample("recorder", "0.txt", text, "trace_calls", b"f2"),
        Sample("recorder", "raw.tar", packed, "trace_calls"),
        Sample("darshan", "a.darshan", _of_file(log.write), "trace_records"),
        _json_lines("predictions", "p.jsonl", [format_line(prediction(n, f"/a/t{n}")) for n in (1, 2, 3)],
                    "prediction_records", b"/a/t2"),
        _json("extrapolations", "r.json", json.loads(EXTRAPOLATED.text()), "extrapolation_records", b"pwrite"),
        Sample("class-reviews", "reviews.csv", _lines(reviews.HEADER, *reviews.GOOD), "review_records", b"job7"),
    ]  # fmt: skip


@cache
def samples() -> dict[str, Sample]:
    """Return a sample of each format by name; the file's suffix distinguishes variants of a format."""
    found = [*_of_jobs(), *_of_polls(), *_of_counters(), *_of_traces()]
    formats = [sample.format for sample in found]
    return {
        sample.format if formats.count(sample.format) == 1 else f"{sample.format}-{sample.name.split('.')[-1]}": sample
        for sample in found
    }


@cache
def sound(key: str) -> Outcome:
    """Return the outcome of reading a sample without damage."""
    return read(samples()[key])


# ---- expected outcomes


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected outcome of a damaged sample.

    `refusal` is the pattern of the reason if the input is refused. Otherwise: the number of additional rows (None: no
    rows at all), whether all rows are rows of the sample, the number of rejects, and the pattern of each reason.
    """

    refusal: str = ""
    more: int | None = 0
    are_known: bool = True
    rejected: int = 0
    reason: str = ""

    def check(self, key: str, outcome: Outcome) -> None:
        """Assert that an outcome equals the expected outcome."""
        if self.refusal:
            assert outcome.refusal is not None
            assert re.search(self.refusal, outcome.refusal.reason)
            assert outcome.refusal.remedy
            return
        assert outcome.refusal is None, outcome.refusal
        before, table = sound(key), samples()[key].table
        rejects = outcome.rejects.join(before.rejects, on=["line", "reason"], how="anti", nulls_equal=True)
        assert rejects.height == self.rejected, rejects["reason"].to_list()
        assert rejects["reason"].str.contains(self.reason).all(), rejects["reason"].to_list()
        assert rejects["remedy"].null_count() == rejects["line"].null_count() == 0
        known, rows = before.rows(table), outcome.rows(table)
        assert len(rows) == (0 if self.more is None else len(known) + self.more)
        assert not self.are_known or set(rows) <= set(known)


def same(rejected: int = 0, reason: str = "") -> Expected:
    """Expect the rows of the sample and a number of rejects."""
    return Expected(rejected=rejected, reason=reason)


def lost(count: int, rejected: int = 0, reason: str = "") -> Expected:
    """Expect all but `count` rows of the sample, and a number of rejects."""
    return Expected(more=-count, rejected=rejected, reason=reason)


def none(rejected: int = 0, reason: str = "") -> Expected:
    """Expect no rows and a number of rejects."""
    return Expected(more=None, rejected=rejected, reason=reason)


def changed(more: int, rejected: int = 0, reason: str = "") -> Expected:
    """Expect `more` additional rows with different values, and a number of rejects."""
    return Expected(more=more, are_known=False, rejected=rejected, reason=reason)


def refused(reason: str) -> Expected:
    """Expect a refusal."""
    return Expected(refusal=reason)
