"""Reading of what collectors write of servers' counters, beside polars' plain reading of as many bytes.

A site in four formats: 20 targets with 200 jobs each, read every minute, and half of the jobs did something since then.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from bench.figures import Figure
from iosig.warehouse.sources.counters import influx_line, jobstats, ldms_csv, prometheus
from iosig.warehouse.sources.protocol import Reading, Source

_TARGETS, _JOBS, _SHARE = 20, 200, 0.5
_T = 1_700_000_000
#: of a core; a million entries a second are asked of two
_LEAST_BYTES_PER_S, _LEAST_ROWS_PER_S = 60e6, 0.4e6
#: seconds by the clock, and of the processor
Cost = tuple[float, float]
_SEED = 7

_STATS = (
    "- job_id:          {job}\n  snapshot_time:   {changed}.887515895 secs.nsecs\n"
    "  start_time:      {since}.057286226 secs.nsecs\n  elapsed_time:    {age}.830229669 secs.nsecs\n"
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
_METRICS = "".join(
    f"lustre_job_{name}_total{_LABELS}}}}} {{{value}}}\n"
    for name, value in (
        ("read_bytes", "read"),
        ("read_samples", "reads"),
        ("write_bytes", "written"),
        ("write_samples", "writes"),
    )
) + "".join(f'lustre_job_stats_total{_LABELS},operation="{name}"}}}} {{punches}}\n' for name in ("getattr", "punch"))
_SETS = (
    "{at}.{usec:06d},{usec},oss{server},fs1,fs1-OST{target:04x},{job},{changed},{read},"
    "{written},0,0,{punches},0,0,0,0,0,0,0\n"
)
_SETS_HEADER = (
    "#Time,Time_usec,ProducerName,fs_name,ost,job_id,snapshot_time,read_bytes_sum,write_bytes_sum,getattr,setattr,punch,"
    "sync,destroy,create,statfs,get_info,set_info,quotactl\n"
)
#: as Telegraf's sample has it
_POINTS = (
    "lustre2,host=oss{server},jobid={job},name=fs1-OST{target:04x} jobstats_ost_setattr=0i,jobstats_ost_sync=0i,"
    "jobstats_punch={punches}i,jobstats_read_bytes={read}i,jobstats_read_calls={reads}i,jobstats_read_max_size=4096i,"
    "jobstats_read_min_size=4096i,jobstats_write_bytes={written}i,jobstats_write_calls={writes}i,"
    "jobstats_write_max_size=53048576i,jobstats_write_min_size=8820i {at}000000000\n"
)


@dataclass(frozen=True, slots=True)
class _Format:
    """A format: what is written of an entry, before a target and before a snapshot, and how the peer reads it."""

    source: Source
    entry: str
    snapshots: int
    of_snapshot: str = ""
    of_target: str = ""
    header: str = ""
    delimiter: str = "\x01"


_FORMATS = (
    _Format(jobstats.SOURCE, _STATS, 15, "{at}\n", "obdfilter.fs1-OST{target:04x}.job_stats=\njob_stats:\n"),
    _Format(prometheus.SOURCE, _METRICS, 20, "# {at}\n"),
    _Format(ldms_csv.SOURCE, _SETS, 100, header=_SETS_HEADER, delimiter=","),
    _Format(influx_line.SOURCE, _POINTS, 50),
)


def reading(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the reading of each format to rows, in turn with polars' reading of the same file."""
    for form in _FORMATS:
        path = write(scratch / form.source.name, form)
        costs: tuple[list[Cost], list[Cost]] = ([], [])
        for counted in range(rounds + 1):
            taken = _timed(lambda: _ours(form, path)), _timed(lambda: _peer(form, path))  # noqa: B023
            if counted:
                for known, cost in zip(costs, taken, strict=True):
                    known.append(cost)
        yield from _figures(form, path, _median(costs[0]), _median(costs[1]))
        path.unlink()


def _figures(form: _Format, path: Path, ours: Cost, peers: Cost) -> Iterator[Figure]:
    size, rows = path.stat().st_size, form.snapshots * _TARGETS * _JOBS
    what = f"read {size / 1e6:.0f} MB of {form.source.name} ({rows:,} entries) / polars reads it plainly"
    by_rows = form.source is ldms_csv.SOURCE
    moved, unit, least = (rows, "M entries/s", _LEAST_ROWS_PER_S) if by_rows else (size, "MB/s", _LEAST_BYTES_PER_S)
    (wall_s, cpu_s), (peer_wall_s, peer_cpu_s) = ours, peers
    yield Figure(
        f"{what}, a second of processor time",
        f"{moved / cpu_s / 1e6:.3g} {unit}",
        f"{moved / peer_cpu_s / 1e6:.3g} {unit}",
        f"1/{cpu_s / peer_cpu_s:.1f}",
        f"{least / 1e6:g} {unit}",
        bool(moved / cpu_s >= least),
    )
    yield Figure(
        "… a second by the clock, two threads",
        f"{moved / wall_s / 1e6:.3g} {unit}",
        f"{moved / peer_wall_s / 1e6:.3g} {unit}",
        f"1/{wall_s / peer_wall_s:.1f}",
        "",
        True,
    )


def _median(costs: list[Cost]) -> Cost:
    return statistics.median(cost[0] for cost in costs), statistics.median(cost[1] for cost in costs)


def _timed(read: Callable[[], None]) -> Cost:
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    read()
    return time.perf_counter() - began_s, time.process_time() - began_cpu_s


def _ours(form: _Format, path: Path) -> None:
    rows = sum(batch.rows.height for batch in form.source.read(path, Reading()) if batch.table.name != "scrapes")
    least = _TARGETS * _JOBS * (1 + _SHARE / 2 * (form.snapshots - 1))
    if rows < least:
        raise AssertionError(f"{form.source.name}: only {rows:,} entries changed")


def _peer(form: _Format, path: Path) -> None:
    pl.read_csv(path, has_header=False, separator=form.delimiter, quote_char=None, skip_rows=bool(form.header))


def write(path: Path, form: _Format) -> Path:
    """Write a site's snapshots in a format."""
    dice = np.random.default_rng(_SEED)
    read = dice.integers(10**6, 10**12, (_TARGETS, _JOBS))
    changed = np.full(read.shape, _T)
    with path.open("w") as file:
        file.write(form.header)
        for snapshot in range(form.snapshots):
            at = _T + 60 * snapshot
            is_moved = dice.random(read.shape) < _SHARE
            read += is_moved * dice.integers(4096, 10**9, read.shape)
            changed[is_moved] = at
            file.write(form.of_snapshot.format(at=at))
            for target in range(_TARGETS):
                file.write(form.of_target.format(target=target))
                own = zip(read[target].tolist(), changed[target].tolist(), strict=True)
                for job, (value, moved_at) in enumerate(own):
                    named = {"job": 42_990_000 + job, "target": target, "server": target // 4, "usec": 7 * job}
                    times = {"at": at, "changed": moved_at, "since": _T - 900, "age": moved_at - _T + 900}
                    counts = {"reads": value >> 20, "writes": value >> 18, "punches": value >> 30}
                    told = {**named, **times, **counts, "read": value, "written": 3 * value}
                    file.write(form.entry.format(**told))
    return path
