"""Read a day of measured polls of a file system, and the runs in its job log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from iosig.answers.single.one_input import PollInput, open_input
from iosig.estimates.columns import epoch_s, floats
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions, make_reading
from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.unattributed_patterns.residual import resample_polls
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import recognize

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Day:
    """A file system's day: bytes read and written per step, and the runs (n) of its log.

    moved: bytes per step by direction. day_start_s: start of the first step, Unix time. start_s, end_s (n): relative to
    it. is_own (n): whether the run used this file system, according to the log.
    """

    moved: dict[str, Reals]
    step_s: float
    name: list[str]
    application: Ints
    start_s: Reals
    end_s: Reals
    is_own: Bools
    day_start_s: float = 0.0

    @classmethod
    def read(cls, polls: Path, log: Path) -> Day:
        """Read polls and job log; raise InputRefused if a file contains no polls or no jobs."""
        rows = read_polls(polls)
        rates = [pl.col(f"{name}_bytes_per_s") * pl.col("interval_s") for name in ("read", "write")]
        sums = [pl.when(volume.count() > 0).then(volume.sum()) for volume in rates]
        ticks = rows.group_by("polled_at").agg(pl.col("interval_s").max(), *sums).sort("polled_at")
        edges, interval_s = epoch_s(ticks["polled_at"]), floats(ticks["interval_s"])
        step_s = float(np.median(interval_s))
        day_start_s = float(np.floor((edges[0] - step_s) / MINUTE_S) * MINUTE_S)
        volumes = {name: floats(ticks[f"{name}_bytes_per_s"]) for name in ("read", "write")}
        moved = {
            name: resample_polls(edges, interval_s, volume, day_start_s, step_s) for name, volume in volumes.items()
        }
        jobs = _read_jobs(log)
        return cls(
            moved,
            step_s,
            jobs["job_name"].to_list(),
            jobs["job_name"].rank("dense").cast(pl.Int64).to_numpy() - 1,
            epoch_s(jobs["started_at"]) - day_start_s,
            epoch_s(jobs["ended_at"]) - day_start_s,
            (jobs["comment"] == "fs=scratch1").to_numpy(),
            day_start_s,
        )

    @property
    def minute(self) -> Ints:
        """Minute index of each step since the start of the day."""
        steps = np.arange(len(self.moved["read"]))
        minutes: Ints = (steps * self.step_s / MINUTE_S).astype(np.int64)
        return minutes

    def truth(self, direction: str, run: int) -> tuple[Ints, Reals]:
        """Return the steps of a run and the bytes moved in them; valid for runs that had the file system to themselves.

        The window is that of the golden join: polls from the run's start to the last one that started before its end.
        """
        first, after = (
            int(np.ceil(instant_s / self.step_s)) for instant_s in (self.start_s[run], self.end_s[run] + self.step_s)
        )
        steps = np.arange(first - 1, after - 1)
        return steps, np.nan_to_num(self.moved[direction][steps])


def read_polls(path: Path) -> pl.DataFrame:
    """Read the rows of a poll file; raise InputRefused if the file contains no polls."""
    with open_input(path, Settings(), ReadOptions()) as poll_input:
        if not isinstance(poll_input, PollInput):
            raise InputRefused(f"{poll_input.name} contains no polls.", "Pass polls of storage servers.")
        return poll_input.rows


def _read_jobs(log: Path) -> pl.DataFrame:
    source = recognize(read_head(log))
    # Edison's log has times in UTC, without an offset
    batches = source.read(log, make_reading(source, Settings(), ReadOptions(time_zone="UTC")))
    rows = [batch.rows for batch in batches if batch.table == JOB_RECORDS]
    if not rows:
        raise InputRefused(f"{log.name} contains no jobs.", "Pass the job log of that day.")
    return pl.concat(rows).drop_nulls(["started_at", "ended_at"])
