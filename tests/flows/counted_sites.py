"""A small site with byte counters per job: two targets, a scrape every ten seconds around midnight."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
from tests.naive.counters import Server

MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
START = MIDNIGHT - timedelta(hours=1)
LASTING_S = 7200.0


@dataclass(frozen=True)
class Counted:
    """Counters as the collectors scraped them, and the bytes that each job truly moved."""

    samples: pl.DataFrame
    scrapes: pl.DataFrame
    moved: dict[str, int]


def counted(seed: int = 1, target_count: int = 2, lost_ratio: float = 0.0, restart_ratio: float = 0.0) -> Counted:
    """Simulate two hours around midnight; jobs are named 0 to 4."""
    samples, scrapes, moved = [], [], dict[str, int]()
    for number in range(target_count):
        rng = np.random.default_rng([seed, number])
        server = Server(rng, 600.0, True, 10.0, lost_ratio, restart_ratio)
        server.run(LASTING_S)
        name = pl.lit(f"work-OST{number:04x}")
        samples.append(server.samples(START).with_columns(target=name))
        scrapes.append(server.scrapes(START).with_columns(target=name))
        for key, value in server.moved.items():
            moved[key] = moved.get(key, 0) + value
    return Counted(pl.concat(samples), pl.concat(scrapes), moved)


def land(store: Store, counters: Counted, name: str = "stats.txt") -> str:
    """Land the counters as a reader would; the first scrape of each UTC day lists all entries."""
    batches = [Batch(COUNTER_SAMPLES, counters.samples), Batch(SCRAPES, counters.scrapes)]
    return landing.land_batches(store, name, "jobstats", batches).landing.landing_id


def write_jobs(path: Path, jobs: dict[str, tuple[float, float]]) -> Path:
    """Write a job log of jobs with their starts and ends, in seconds after the site's start."""
    lines = ["JobID|User|JobName|Partition|NNodes|Start|End|State"]
    for number, (job_id, (started, ended)) in enumerate(jobs.items()):
        times = "|".join(f"{START + timedelta(seconds=second):%FT%TZ}" for second in (started, ended))
        lines.append(f"{job_id}|ann|{('ior', 's3d')[number % 2]}|batch|8|{times}|COMPLETED")
    path.write_text("\n".join(lines) + "\n")
    return path
