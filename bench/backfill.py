"""`uv run python -m bench.backfill --days 90`: process three months of a large site, from raw polls to a release.

The input consists of polls of 96 controllers every 2 s, as one Parquet file per day, and the log of 80,815 jobs of
5,000 applications. Both are from the site of `bench.spider`: three months of one system, as in IOSI (FAST'14, section
6.3). Each part is compared with DuckDB's bare scan of the same polls, which is a lower bound of its cost.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from bench.harness import Cost, iosig, process_cost, python
from bench.spider import Site, site

CONTROLLERS = 96
_POLLS_A_DAY = 43_200
_INTERVAL_S = 2
_BEGAN = datetime(2026, 1, 5, tzinfo=UTC)
#: id of the first job, and number of nodes of each job
FIRST_JOB, NODE_COUNT = 100_000, 16
#: relative variation of each controller's fraction of the traffic from poll to poll
_SCATTER = 0.2
_SCAN = """
import sys, duckdb
duckdb.sql("set threads = 2")
print(duckdb.execute(
    "select count(*), sum(total) from (select polled_at, sum(read_bytes_per_s + write_bytes_per_s) as total "
    "from read_parquet($files) group by all)", {"files": sys.argv[1] + "/*.parquet"}).fetchall())
"""


def write_polls(site_traffic: Site, days: int, folder: Path) -> None:
    """Write a file of polls for each day, in chronological order."""
    names = pl.Series("controller", [f"widow-{number:02}" for number in range(CONTROLLERS)], pl.Categorical)
    for day in range(days):
        chance = np.random.default_rng(day)
        total = site_traffic.bytes_per_s[day * _POLLS_A_DAY : (day + 1) * _POLLS_A_DAY, None] / CONTROLLERS
        scatter = 1.0 + _SCATTER * (chance.random((_POLLS_A_DAY, CONTROLLERS)) - 0.5)
        began = _BEGAN + timedelta(days=day, seconds=_INTERVAL_S)
        at = pl.datetime_range(began, began + timedelta(days=1), "2s", closed="left", time_unit="us", eager=True)
        pl.DataFrame(
            {
                "polled_at": at.gather(np.repeat(np.arange(_POLLS_A_DAY), CONTROLLERS)),
                "controller": names.gather(np.tile(np.arange(CONTROLLERS), _POLLS_A_DAY)),
                "read_bytes_per_s": np.round(total * 0.1 * scatter).ravel(),
                "write_bytes_per_s": np.round(total * scatter).ravel(),
            }
        ).write_parquet(folder / f"polls-{day:02}.parquet")


def write_jobs(site_traffic: Site, days: int, folder: Path) -> int:
    """Write the log of the jobs that end in these days, as `sacct --parsable2` prints it, and return their number."""
    owner = np.repeat(np.arange(len(site_traffic.sizes)), site_traffic.sizes)
    start_s = site_traffic.first * float(_INTERVAL_S) - site_traffic.start_s
    end_s = start_s + site_traffic.duration_s
    chosen = np.flatnonzero(end_s < days * 86_400)
    began = _BEGAN.replace(tzinfo=None)

    def when(seconds: np.ndarray) -> pl.Expr:
        return (
            pl.lit(began) + pl.duration(microseconds=pl.Series(np.round(seconds * 1e6).astype(np.int64)))
        ).dt.strftime("%Y-%m-%dT%H:%M:%SZ")

    job_owner = pl.Series(owner[chosen])
    pl.select(
        JobID=pl.Series(FIRST_JOB + chosen).cast(pl.String),
        User=pl.format("user{}", job_owner % 400),
        Account=pl.format("acct{}", job_owner % 50),
        JobName=pl.format("app{}", job_owner),
        Partition=pl.lit("batch"),
        NNodes=pl.lit(str(NODE_COUNT)),
        NTasks=pl.lit("256"),
        Submit=when(start_s[chosen] - 300),
        Start=when(start_s[chosen]),
        End=when(end_s[chosen]),
        State=pl.lit("COMPLETED"),
        ExitCode=pl.lit("0:0"),
    ).write_csv(folder / "jobs.sacct", separator="|")
    return len(chosen)


def write(folder: Path, days: int) -> int:
    """Write a site's inputs and return the number of jobs."""
    folder.mkdir(parents=True)
    site_traffic = site()
    write_polls(site_traffic, days, folder)
    return write_jobs(site_traffic, days, folder)


def measure_parts(inputs: Path, root: Path) -> Iterator[tuple[str, Cost]]:
    """Yield the costs of the scan, of landing and of the run, and of the scan again at the end."""
    scan = python(_SCAN, str(inputs))
    yield "scan", process_cost(scan)
    yield "land", process_cost(iosig("--warehouse", str(root), "land", str(inputs)))
    yield "run", process_cost(iosig("--warehouse", str(root), "run", "--inline"))
    yield "scan", process_cost(scan)


def main() -> None:
    """Write the inputs unless they exist, and print the cost of each part, as lines of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--output", type=Path, required=True, help="folder of inputs and warehouse")
    chosen = parser.parse_args()
    inputs, root = chosen.output / f"inputs-{chosen.days}", chosen.output / f"warehouse-{chosen.days}"
    if not inputs.exists():
        print(json.dumps({"jobs": write(inputs, chosen.days)}), flush=True)
    shutil.rmtree(root, ignore_errors=True)
    for name, cost in measure_parts(inputs, root):
        fields = {
            "wall_s": round(cost.wall_s, 1),
            "cpu_s": round(cost.cpu_s, 1),
            "peak_gb": round(cost.peak_bytes / 1e9, 2),
        }
        print(json.dumps({"part": name, **fields}), flush=True)


if __name__ == "__main__":
    main()
