"""Benchmark the readers of input formats, each against another program that reads the same file.

The files are generated, except Darshan logs. Single-process decoders are timed in this process; FTIO and PyDarshan run
in separate processes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from bench import tmio
from bench.harness import (
    Alternative,
    Comparison,
    Context,
    Cost,
    Row,
    alternate,
    benchmark,
    call_cost,
    compare_alternatives,
    iosig,
    process_cost,
    python,
)
from iosig.warehouse.sources.counters import influx_line, jobstats, ldms_csv, prometheus
from iosig.warehouse.sources.dftracer import source as dftracer
from iosig.warehouse.sources.protocol import Reading, Source
from iosig.warehouse.sources.recorder import files as recorder_files, raw
from tests.naive import recorder_traces as naive

# ---- Darshan

_LAND = """
import sys
from pathlib import Path
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
log, into, count = sys.argv[1:]
for number in range(int(count)):
    landing.land(Store(Path(into) / str(number)), Path(log), lambda _: Reading(), format_name="darshan")
"""
#: program that calls `to_df` for all records, and repeats the columns of a record for each of its segments
_PYDARSHAN = """
import sys
from pathlib import Path
import darshan, numpy, pandas
log, into, count = sys.argv[1:]
for number in range(int(count)):
    report = darshan.DarshanReport(log, read_all=False)
    for module in ("DXT_POSIX", "DXT_MPIIO"):
        report.mod_read_all_dxt_records(module)
        records = report.records[module].to_df()
        frames = [record[f"{direction}_segments"] for record in records for direction in ("write", "read")]
        segments = pandas.concat(frames, ignore_index=True)
        counts = [len(frame) for frame in frames]
        for name in ("id", "rank", "hostname"):
            segments[name] = numpy.repeat([record[name] for record in records for _ in range(2)], counts)
        segments["direction"] = numpy.repeat(["write", "read"] * len(records), counts)
        segments.to_parquet(Path(into) / f"{module}-{number}.parquet")
"""
_READ = """
import sys
from itertools import cycle, islice
from pathlib import Path
from iosig.warehouse.sources.darshan.source import SOURCE
from iosig.warehouse.sources.files import child
from iosig.warehouse.sources.protocol import Reading
count, child.MAX_REQUESTS = int(sys.argv[1]), int(sys.argv[2])
for log in islice(cycle(sys.argv[3:]), count):
    for batch in SOURCE.read(Path(log), Reading()):
        pass
"""
#: number of further landings of a log in the same process, without imports; number and maximum size [B] of small logs
_WARM, _SMALL_LOGS, _SMALL_BYTES = 5, 84, 50_000


@benchmark("darshan", is_of_data=True)
def darshan_logs(context: Context) -> Iterator[Row]:
    """Land a DXT log, compared with PyDarshan's conversion; read small logs, compared with one process each."""
    log = next((context.data / "darshan").glob("jeanbez_8_*.darshan"))

    def landing(code: str, count: int) -> Alternative:
        return lambda: process_cost(python(code, str(log), str(context.fresh("darshan")), str(count)))

    counts = (1, 1 + _WARM)
    costs = alternate([landing(code, count) for code in (_LAND, _PYDARSHAN) for count in counts], context.rounds)
    warm = [_difference(costs[place + 1], costs[place], _WARM) for place in (0, 2)]
    yield Comparison(
        "land a DXT log (276,882 segments) / PyDarshan's `to_df` to Parquet, imports apart", "cpu_s", max_ratio=1 / 5
    ).row(*warm)
    yield Comparison("… the first log of a process", "cpu_s").row(costs[0], costs[2])
    yield Comparison("… peak memory of the largest process", "peak_bytes", max_ratio=1).row(costs[0], costs[2])
    logs = (context.data / "darshan").glob("*.darshan")
    small = sorted(str(path) for path in logs if path.stat().st_size < _SMALL_BYTES)

    def reading(count: int, requests_per_child: int) -> Alternative:
        return lambda: process_cost(python(_READ, str(count), str(requests_per_child), *small))

    first, reused, renewed = alternate(
        [reading(1, 1000), reading(_SMALL_LOGS, 1000), reading(_SMALL_LOGS, 1)], context.rounds
    )
    differences = [_difference(costs_of_many, first, _SMALL_LOGS - 1) for costs_of_many in (reused, renewed)]
    yield Comparison("read a small Darshan log / with a new process for each", "cpu_s", max_ratio=1 / 3).row(
        *differences
    )


def _difference(more_costs: list[Cost], fewer_costs: list[Cost], count: int) -> list[Cost]:
    """Return the cost per item, from the difference of the medians of longer and shorter runs."""
    wall_s, cpu_s = (
        (
            statistics.median(getattr(cost, name) for cost in more_costs)
            - statistics.median(getattr(cost, name) for cost in fewer_costs)
        )
        / count
        for name in ("wall_s", "cpu_s")
    )
    return [Cost(wall_s, cpu_s)]


# ---- Recorder

_ITERATIONS, _RANKS, _OFFSETS = 20_000, 4, 25
_OPEN, _CLOSE, _PWRITE, _BARRIER = 0, 1, 3, 5
#: number of writes at random offsets at the end
_IRREGULAR = 20_000


@benchmark("recorder")
def recorder(context: Context) -> Iterator[Row]:
    """Decode a raw trace of more than two million calls, compared with a decoder that processes one call at a time."""
    folder = context.fresh("recorder")
    count = write_recorder_trace(folder)

    def ours() -> None:
        with recorder_files.open_trace(folder) as (_, files):
            run = raw.open_run(files)
            if sum(run.decode(rank).calls.height for rank in run.ranks) != count:
                raise RuntimeError("calls were lost")

    yield from compare_alternatives(
        Comparison(
            "decode a raw Recorder trace / one of its four ranks call by call, times four",
            count=count,
            unit="calls",
            min_rate=1e6,
        ),
        lambda: call_cost(ours),
        lambda: call_cost(lambda: naive.decoded(folder, 0)).scale(_RANKS),
        context.rounds,
    )


def write_recorder_trace(folder: Path) -> int:
    """Write iterations of writes and a barrier, then irregular writes; return the number of calls."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "VERSION").write_bytes(b"2.5.0")
    (folder / "recorder.mt").write_bytes(naive.metadata(_RANKS))
    return sum(_write_rank(folder, rank) for rank in range(_RANKS))


def _write_rank(folder: Path, rank: int) -> int:
    rng = np.random.default_rng(rank)
    path = f"/scratch/project/run/output.{rank:08d}"
    offsets = [*range(_OFFSETS), *rng.integers(1 << 20, 1 << 40, _IRREGULAR).tolist()]
    arguments = [(_OPEN, (path, "66", "420")), (_CLOSE, (path,)), (_BARRIER, ("MPI_COMM_WORLD",))]
    arguments += [(_PWRITE, (path, "%p", "131072", str(offset * 131072))) for offset in offsets]
    keys = [naive.Call(function, 0, call_arguments, 0, 0).key() for function, call_arguments in arguments]
    writes, irregular = list(range(3, 3 + _OFFSETS)), list(range(3 + _OFFSETS, len(keys)))
    grammar: naive.Grammar = {
        -1: [(0, 1), (-2, _ITERATIONS), *((number, 1) for number in irregular), (1, 1)],
        -2: [*((number, 1) for number in writes[:20]), (-3, 2), (2, 1)],
        -3: [(number, 1) for number in writes[20:]],
    }
    order = np.array(naive.sequence(grammar, -1))
    counts = np.bincount(order, minlength=len(keys)).tolist()
    numbers = {key: number for number, key in enumerate(keys)}
    (folder / f"{rank}.cst").write_bytes(naive.signatures(numbers, rank, dict(enumerate(counts))))
    (folder / f"{rank}.cfg").write_bytes(naive.grammar_file(grammar))
    gaps = rng.integers(10, 100_000, order.size, dtype=np.uint32)
    stamps = np.stack([gaps, gaps + rng.integers(0, 10_000, order.size, dtype=np.uint32)], axis=-1)
    (folder / f"{rank}.ts").write_bytes(stamps.astype("<u4").tobytes())
    return order.size


# ---- DFTracer

_EVENTS, _FILES = 1_000_000, 500
_STARTED_US = 1_700_000_000_000_000
#: calls, with a placeholder for a number in their arguments
_CALLS = (
    ("write", '"count":1048576,"ret":%d,"fd":7'),
    ("read", '"count":1048576,"ret":%d,"fd":7'),
    ("lseek64", '"ret":0,"whence":0,"offset":%d,"fd":7'),
    ("open", '"ret":%d,"flags":0'),
)


@benchmark("dftracer")
def dftracer_trace(context: Context) -> Iterator[Row]:
    """Read a trace of a million calls to rows, compared with `json.loads` line by line."""
    path = _write_dftracer(context.scratch / "million.pfw")

    def ours() -> None:
        batches = dftracer.read(path, Reading())
        tables = ("trace_requests", "trace_metadata")
        if sum(batch.rows.height for batch in batches if batch.table.name in tables) < _EVENTS:
            raise RuntimeError("calls were lost")

    def peer() -> None:
        with path.open() as lines:
            for line in lines:
                if line[0] == "{":
                    json.loads(line)

    yield from compare_alternatives(
        Comparison(
            f"read a DFTracer trace ({path.stat().st_size / 1e6:.0f} MB) / `json.loads` line by line",
            "cpu_s",
            count=_EVENTS,
            unit="events",
            min_rate=1e6,
        ),
        lambda: call_cost(ours),
        lambda: call_cost(peer),
        context.rounds,
    )


def _write_dftracer(path: Path) -> Path:
    """Write the trace of a process in the format of DFTracer 1: reads, writes, seeks and opens of many files."""
    rng = np.random.default_rng(7)
    sizes, files, kinds = (rng.integers(end, size=_EVENTS).tolist() for end in (1 << 20, _FILES, len(_CALLS)))
    process_fields = '"pid":7,"tid":7'
    with path.open("w") as file:
        file.write(
            f'[\n{{"id":1,"name":"HH","cat":"dftracer",{process_fields},"ph":"M","args":{{"name":"node1","value":5}}}}\n'
        )
        for number in range(_FILES):
            args = f'"args":{{"name":"/scratch/project/run/output.{number:05}","value":{number}}}'
            file.write(f'{{"id":{number + 2},"name":"FH","cat":"dftracer",{process_fields},"ph":"M",{args}}}\n')
        for place, (size, number, kind) in enumerate(zip(sizes, files, kinds, strict=True), _FILES + 2):
            name, args = _CALLS[kind]
            call = f'"ts":{_STARTED_US + 40 * place},"dur":37,"ph":"X","args":{{"hhash":5,"p_idx":3,"level":1,{args}'
            file.write(
                f'{{"id":{place},"name":"{name}","cat":"POSIX",{process_fields},{call % size},"fhash":{number}}}}}\n'
            )
        file.write("]\n")
    return path


# ---- counters

_TARGETS, _JOBS, _MOVED_RATIO, _FIRST_AT = 20, 200, 0.5, 1_700_000_000
_STATS = (
    "- job_id:          {job}\n  snapshot_time:   {changed}.887515895 secs.nsecs\n"
    "  read_bytes:      {{ samples: {reads:11}, unit: bytes, min:     4096, max:  4194304, sum: {read:16}, "
    "sumsq: {read:18}, hist: {{ 4K: 1, 1M: 6 }} }}\n"
    "  write_bytes:     {{ samples: {writes:11}, unit: bytes, min:     4096, max:  4194304, sum: {written:16}, "
    "sumsq: {written:18}, hist: {{ 4K: 1, 1M: 6 }} }}\n"
    "  read:            {{ samples: {reads:11}, unit: usecs, min: 65, max: 34699, sum: {read:16}, sumsq: 9 }}\n"
    "  write:           {{ samples: {writes:11}, unit: usecs, min: 65, max: 34699, sum: {read:16}, sumsq: 9 }}\n"
    "  getattr:         {{ samples:           0, unit: usecs, min: 0, max: 0, sum: 0, sumsq: 0 }}\n"
    "  punch:           {{ samples: {punches:11}, unit: usecs, min: 96, max: 354, sum: 16840, sumsq: 9 }}\n"
)
_LABELS = '{{component="ost",jobid="{job}",target="fs1-OST{target:04x}"'
_TOTALS = {"read_bytes": "read", "read_samples": "reads", "write_bytes": "written", "write_samples": "writes"}
_METRICS = "".join(f"lustre_job_{name}_total{_LABELS}}}}} {{{value}}}\n" for name, value in _TOTALS.items()) + "".join(
    f'lustre_job_stats_total{_LABELS},operation="{name}"}}}} {{punches}}\n' for name in ("getattr", "punch")
)
_SETS = (
    "{at}.{usec:06d},{usec},oss{server},fs1,fs1-OST{target:04x},{job},{changed},{read},"
    "{written},0,0,{punches},0,0,0,0,0,0,0\n"
)
_SETS_HEADER = (
    "#Time,Time_usec,ProducerName,fs_name,ost,job_id,snapshot_time,read_bytes_sum,write_bytes_sum,getattr,setattr,punch,"
    "sync,destroy,create,statfs,get_info,set_info,quotactl\n"
)
#: lines in the format of Telegraf
_POINTS = (
    "lustre2,host=oss{server},jobid={job},name=fs1-OST{target:04x} jobstats_ost_setattr=0i,jobstats_ost_sync=0i,"
    "jobstats_punch={punches}i,jobstats_read_bytes={read}i,jobstats_read_calls={reads}i,jobstats_read_max_size=4096i,"
    "jobstats_read_min_size=4096i,jobstats_write_bytes={written}i,jobstats_write_calls={writes}i,"
    "jobstats_write_max_size=53048576i,jobstats_write_min_size=8820i {at}000000000\n"
)


@dataclass(frozen=True, slots=True)
class _Format:
    """Templates of a format (entry, target header, snapshot header); is_by_entry: whether the limit is per entry."""

    source: Source
    snapshots: int
    entry: str
    snapshot: str = ""
    target: str = ""
    header: str = ""
    delimiter: str = "\x01"
    is_by_entry: bool = False


_FORMATS = (
    _Format(jobstats.SOURCE, 15, _STATS, "{at}\n", "obdfilter.fs1-OST{target:04x}.job_stats=\njob_stats:\n"),
    _Format(prometheus.SOURCE, 20, _METRICS, "# {at}\n"),
    _Format(ldms_csv.SOURCE, 100, _SETS, header=_SETS_HEADER, delimiter=",", is_by_entry=True),
    _Format(influx_line.SOURCE, 50, _POINTS, is_by_entry=True),
)


@benchmark("counters")
def counters(context: Context) -> Iterator[Row]:
    """Read collectors' snapshots of server counters, compared with Polars' plain reading of the same file.

    A site of 20 targets with 200 jobs each is polled every minute; half of the jobs are active in each minute.
    """
    for form in _FORMATS:
        path = _write_snapshots(context.scratch / form.source.name, form)
        entries, size = form.snapshots * _TARGETS * _JOBS, path.stat().st_size
        unit, count, limit = ("entries", entries, 0.5e6) if form.is_by_entry else ("B", size, 60e6)
        name = f"read {size / 1e6:.0f} MB of {form.source.name} ({entries:,} entries) / polars reads it plainly"
        yield from compare_alternatives(
            Comparison(name, "cpu_s", count=count, unit=unit, min_rate=limit),
            lambda: call_cost(_reading(form, path)),  # noqa: B023
            lambda: call_cost(_plain_reading(form, path)),  # noqa: B023
            context.rounds,
            Comparison("… by the clock, two threads", count=count, unit=unit),
        )
        path.unlink()


def _reading(form: _Format, path: Path) -> Callable[[], None]:
    def read() -> None:
        batches = form.source.read(path, Reading())
        rows = sum(batch.rows.height for batch in batches if batch.table.name != "scrapes")
        if rows < _TARGETS * _JOBS * (1 + _MOVED_RATIO / 2 * (form.snapshots - 1)):
            raise RuntimeError(f"{form.source.name}: only {rows:,} entries changed")

    return read


def _plain_reading(form: _Format, path: Path) -> Callable[[], object]:
    return lambda: pl.read_csv(
        path, has_header=False, separator=form.delimiter, quote_char=None, skip_rows=bool(form.header)
    )


def _write_snapshots(path: Path, form: _Format) -> Path:
    """Write a site's snapshots of counters in a format."""
    rng = np.random.default_rng(7)
    read = rng.integers(10**6, 10**12, (_TARGETS, _JOBS))
    changed = np.full(read.shape, _FIRST_AT)
    with path.open("w") as file:
        file.write(form.header)
        for at in range(_FIRST_AT, _FIRST_AT + 60 * form.snapshots, 60):
            is_moved = rng.random(read.shape) < _MOVED_RATIO
            read += is_moved * rng.integers(4096, 10**9, read.shape)
            changed[is_moved] = at
            file.write(form.snapshot.format(at=at))
            for target in range(_TARGETS):
                file.write(form.target.format(target=target))
                target_fields = {"target": target, "server": target // 4, "at": at}
                for job, (value, moved_at) in enumerate(zip(read[target], changed[target], strict=True)):
                    counts = {"reads": value >> 20, "writes": value >> 18, "punches": value >> 30}
                    names = {"job": 42_990_000 + job, "usec": 7 * job, "changed": moved_at}
                    file.write(form.entry.format(**target_fields, **names, **counts, read=value, written=3 * value))
    return path


# ---- TMIO


@benchmark("tmio")
def tmio_trace(context: Context) -> Iterator[Row]:
    """Land a TMIO JSON of a million requests, compared with FTIO's reading and detection on the same file."""
    trace = tmio.write_json(context.scratch / "1000.json")
    subprocess.run([*tmio.FTIO, "--help"], cwd=context.scratch, check=True, capture_output=True)
    size = round(trace.stat().st_size / 1e6)
    yield from compare_alternatives(
        Comparison(f"land a TMIO JSON of 1,000,000 requests ({size} MB) / FTIO 0.0.9 on it", "cpu_s", max_ratio=0.5),
        lambda: process_cost(iosig("--warehouse", str(context.fresh("tmio") / "warehouse"), "land", str(trace))),
        lambda: process_cost([*tmio.FTIO, str(trace), "-e", "no"], context.scratch),
        context.rounds,
        Comparison("… peak memory", "peak_bytes"),
    )
