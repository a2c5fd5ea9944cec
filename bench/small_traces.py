"""Many small traces: landed together in one call, beside each in a folder of its own; Darshan logs, and their run."""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import made_logs
from bench.figures import Figure
from bench.processes import Cost, cost_of, in_turn, iosig, median_s, python

_LAND = """
import sys
from pathlib import Path
from iosig.streams.landing import Told, land_paths
from iosig.settings.model import Settings
from iosig.warehouse.store import lots
from iosig.warehouse.store.store import Store
folder, into, lots.FEWEST_INPUTS = sys.argv[1], sys.argv[2], int(sys.argv[3])
for _ in land_paths(Store(Path(into)), Settings(), [folder], Told()):
    pass
"""
_COUNT = 1000
_TOGETHER, _ALONE = 8, 1 << 30
_MOST_S = 0.005
#: a night's; what is the same for many logs and for a few is taken off
_LOG_COUNT, _FEW_LOGS = 10_000, 20
_MOST_LANDING_S, _MOST_RUN_S = 0.005, 0.048
_LEAST_RATIO = 3.0


def landing(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the landing of a thousand traces of a kilobyte."""
    folder, into = scratch / "small", scratch / "small-warehouse"
    write(folder)

    def land(fewest: int, count: int) -> Callable[[], Cost]:
        given = folder if count == _COUNT else next(folder.iterdir())

        def measured() -> Cost:
            shutil.rmtree(into, ignore_errors=True)
            return cost_of(python(_LAND, str(given), str(into), str(fewest)))

        return measured

    together, alone = in_turn(land(_TOGETHER, _COUNT), land(_ALONE, _COUNT), rounds)
    first, _ = in_turn(land(_ALONE, 1), land(_ALONE, 1), rounds)
    each_s, each_alone_s = ((_cpu_s(costs) - _cpu_s(first)) / (_COUNT - 1) for costs in (together, alone))
    yield Figure(
        "land one of 1,000 small traces together / in a folder of its own, processor time",
        f"{1000 * each_s:.1f} ms",
        f"{1000 * each_alone_s:.1f} ms",
        f"{each_alone_s / each_s:.1f} times less",
        f"{1000 * _MOST_S:.0f} ms, {_LEAST_RATIO:g} times less",
        each_s <= _MOST_S and each_alone_s >= _LEAST_RATIO * each_s,
    )


def of_darshan(data: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the landing of ten thousand small Darshan logs, and the run that makes their networks and all else."""
    few, many = scratch / "few-logs", scratch / "many-logs"
    for folder, count in ((few, _FEW_LOGS), (many, _LOG_COUNT)):
        made_logs.write(data / "darshan" / made_logs.BASE, folder, count)
    into = scratch / "darshan-warehouse"

    def land(folder: Path) -> Callable[[], Cost]:
        def measured() -> Cost:
            shutil.rmtree(into, ignore_errors=True)
            return cost_of(python(_LAND, str(folder), str(into), str(_TOGETHER)))

        return measured

    def run(folder: Path) -> Callable[[], Cost]:
        def measured() -> Cost:
            land(folder)()
            return cost_of(iosig("--warehouse", str(into), "run", "--inline"))

        return measured

    for name, work, limit_s in (
        (f"land one of {_LOG_COUNT:,} small Darshan logs, processor time", land, _MOST_LANDING_S),
        ("… their run, with all networks (10,000 in 4 minutes of two cores)", run, _MOST_RUN_S),
    ):
        all_of_them, first = in_turn(work(many), work(few), rounds)
        each_s = (_cpu_s(all_of_them) - _cpu_s(first)) / (_LOG_COUNT - _FEW_LOGS)
        told = f"{1000 * each_s:.1f} ms (all of them {median_s(all_of_them):.0f} s of wall)"
        yield Figure(name, told, "", "", f"{1000 * limit_s:.0f} ms", each_s <= limit_s)


def write(folder: Path) -> None:
    """Write a thousand traces of a kilobyte, each of another content."""
    folder.mkdir(parents=True)
    for number in range(_COUNT):
        began = [10.0 * step for step in range(6 + number % 3)]
        numbers = {"b_rank_avr": [1e9 + number] * len(began), "t_rank_s": began, "t_rank_e": [at + 2 for at in began]}
        document = {"write_sync": {"bandwidth": numbers}, "io_time": {"delta_t_agg": 2.5}}
        (folder / f"{number}.jsonl").write_text(json.dumps(document) + "\n")


def _cpu_s(costs: list[Cost]) -> float:
    return statistics.median(cost.cpu_s for cost in costs)
