"""Darshan logs: a DXT log landed, beside PyDarshan's own route to Parquet; small logs, beside a process for each."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.figures import Figure
from bench.processes import Cost, cost_of, in_turn, python

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
#: `to_df` of all records, and what belongs to a whole record put beside its segments at once
_PEER = """
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
count, child.MOST_REQUESTS = int(sys.argv[1]), int(sys.argv[2])
for log in islice(cycle(sys.argv[3:]), count):
    for batch in SOURCE.read(Path(log), Reading()):
        pass
"""
_SMALL_COUNT = 84
#: how often a log is landed again, in one process
_MORE = 5
_SMALL_BYTES = 50_000
_MEGABYTE = 1e6
_LEAST_RATIO = 5.0
_LEAST_REUSE_RATIO = 3.0


def figures(data: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Measure what there is to say of Darshan logs; `data` is the folder of real measurements."""
    log = next((data / "darshan").glob("jeanbez_8_*.darshan"))
    yield from landing(log, scratch / "darshan", rounds)
    yield from small_logs(sorted((data / "darshan").glob("*.darshan")), rounds)


def landing(log: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the landing of a DXT log beside PyDarshan's frames to Parquet: whole processes, and warm ones."""

    def run(code: str, count: int) -> Callable[[], Cost]:
        def measured() -> Cost:
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            return cost_of(python(code, str(log), str(scratch), str(count)))

        return measured

    once, peers_once = in_turn(run(_LAND, 1), run(_PEER, 1), rounds)
    often, peers_often = in_turn(run(_LAND, 1 + _MORE), run(_PEER, 1 + _MORE), rounds)
    ours_s, peers_s = _cpu_s(once), _cpu_s(peers_once)
    warm_s, peers_warm_s = (_cpu_s(often) - ours_s) / _MORE, (_cpu_s(peers_often) - peers_s) / _MORE
    yield _ratio(
        "land a DXT log (276,882 segments) / PyDarshan's `to_df` to Parquet, processor time, imports apart",
        warm_s,
        peers_warm_s,
        _LEAST_RATIO,
    )
    yield _ratio("… the first log of a process, imports included", ours_s, peers_s, None)
    peak, peers_peak = (max(cost.peak_bytes for cost in costs) / _MEGABYTE for costs in (once, peers_once))
    yield Figure(
        "… peak memory of the largest process",
        f"{peak:.0f} MB",
        f"{peers_peak:.0f} MB",
        f"{peak / peers_peak:.2f}",
        "1",
        peak < peers_peak,
    )


def small_logs(logs: Sequence[Path], rounds: int) -> Iterator[Figure]:
    """Time the reading of 84 small logs by children that are used again, beside a new one for each."""
    small = [str(log) for log in logs if log.stat().st_size < _SMALL_BYTES]

    def run(count: int, request_count: int) -> Callable[[], Cost]:
        return lambda: cost_of(python(_READ, str(count), str(request_count), *small))

    reused, started = in_turn(run(_SMALL_COUNT, 1000), run(_SMALL_COUNT, 1), rounds)
    first, _ = in_turn(run(1, 1000), run(1, 1), rounds)
    each_s, each_started_s = ((_cpu_s(costs) - _cpu_s(first)) / (_SMALL_COUNT - 1) for costs in (reused, started))
    ratio = each_started_s / each_s
    yield Figure(
        "read one of 84 small Darshan logs / with a new process for each, processor time",
        f"{1000 * each_s:.0f} ms",
        f"{1000 * each_started_s:.0f} ms",
        f"{ratio:.1f} times less",
        f"{_LEAST_REUSE_RATIO:g} times less",
        ratio >= _LEAST_REUSE_RATIO,
    )


def _cpu_s(costs: Sequence[Cost]) -> float:
    return statistics.median(cost.cpu_s for cost in costs)


def _ratio(name: str, ours_s: float, peers_s: float, least: float | None) -> Figure:
    ratio = peers_s / ours_s
    return Figure(
        name,
        f"{ours_s:.2f} s",
        f"{peers_s:.2f} s",
        f"{ratio:.1f} times less",
        "" if least is None else f"{least:g} times less",
        least is None or ratio >= least,
    )
