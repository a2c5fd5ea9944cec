"""Simulation of a server with counters per job, second by second."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES


@dataclass
class Server:
    """A target whose jobs write at random; its readings are kept as a collector would report them."""

    rng: np.random.Generator
    cleanup_s: float
    says_since: bool
    interval_s: float
    lost_ratio: float
    restart_ratio: float
    job_count: int = 5
    entries: dict[str, list[float]] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    read: list[dict[str, Any]] = field(default_factory=list)
    scraped: list[dict[str, Any]] = field(default_factory=list)
    seen: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def run(self, until_s: float) -> None:
        """Advance the time; the first scrape precedes all writes."""
        busy = self.rng.uniform(0.002, 0.1, self.job_count)
        self._scrape(0.0)
        for second in np.arange(1.0, until_s):
            if self.rng.random() < self.restart_ratio:
                self.entries.clear()
            for job in np.flatnonzero(self.rng.random(self.job_count) < busy):
                entry = self.entries.setdefault(str(job), [0, second, second])
                count = int(self.rng.integers(1, 1000))
                entry[0], entry[2] = entry[0] + count, second
                self.moved[str(job)] = self.moved.get(str(job), 0) + count
            self.entries = {k: e for k, e in self.entries.items() if second - e[2] < self.cleanup_s}
            if second % self.interval_s == 0 and (self.rng.random() >= self.lost_ratio or second >= until_s - 20):
                self._scrape(second)
        self._scrape(until_s)

    def _scrape(self, second: float) -> None:
        target = {"filesystem": "work", "component": "ost", "target": "o0"}
        self.scraped.append(target | {"scraped_at": second, "entry_count": len(self.entries), "is_job_scrape": True})
        for key, (total, since, changed) in self.entries.items():
            if self.seen.get(key) != (total, since, changed):
                self.read.append(
                    target | {"job_key": key, "scraped_at": second, "sampled_at": changed,
                    "counter_started_at": since if self.says_since else None, "total_written_bytes": int(total)}
                )  # fmt: skip
        self.seen = {key: tuple(entry) for key, entry in self.entries.items()}  # type: ignore[misc]

    def samples(self, start: datetime) -> pl.DataFrame:
        """Return the readings as rows of `counter_samples`."""
        return _rows(self.read, start).select(COUNTER_SAMPLES.column_names)

    def scrapes(self, start: datetime) -> pl.DataFrame:
        """Return the scrapes as rows of `scrapes`."""
        return pl.DataFrame(_timed(self.scraped, start), schema=frames.schema(SCRAPES))


def _timed(rows: list[dict[str, Any]], start: datetime) -> list[dict[str, Any]]:
    return [
        {
            name: start + timedelta(seconds=value) if name.endswith("_at") and value is not None else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _rows(rows: list[dict[str, Any]], start: datetime) -> pl.DataFrame:
    return pl.DataFrame(_timed(rows, start), schema=frames.schema(COUNTER_SAMPLES))
