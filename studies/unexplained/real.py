"""A real day: runs whose true bytes are known, among decoys; none of them has a signature.

The log says which runs used the file system that was polled. Those on other ones are moved to it, and copies of all are
put at drawn hours: who does not look at the traffic cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from flows.arrays import epoch_s, floats
from flows.landing import Told, reading_of
from flows.settings import Settings
from flows.single.one_input import PollInput, opened
from transforms.arrays import Bools, Ints, Reals
from transforms.attribution.explaining import room_of
from transforms.attribution.likely import STEP_S, likely
from transforms.unnamed_patterns.leftover import on_steps
from warehouse.contracts.jobs import JOB_RECORDS
from warehouse.errors import InputRefused
from warehouse.sources.files.opening import read_head
from warehouse.sources.protocol import recognize

MINUTE_S = 60.0
#: what is among the true runs, in all (the sixteen of other file systems among them)
DECOYS = 200
#: so often are decoys drawn
DRAWS = 20
#: minutes in which less flowed are not asked about [B/s]
LEAST_BYTES_PER_S = 2e9


@dataclass(frozen=True, slots=True)
class Day:
    """A file system's day: bytes read and written in each poll's step, and the runs (n) of its log.

    began_s: when the first step begins, since 1970. started_s, ended_s (n): since then. is_own (n): whether the log
    says that the run used the file system.
    """

    moved: dict[str, Reals]
    step_s: float
    name: list[str]
    application: Ints
    started_s: Reals
    ended_s: Reals
    is_own: Bools
    began_s: float = 0.0

    @classmethod
    def read(cls, polls: Path, log: Path) -> Day:
        """Read a day; InputRefused where a file holds no polls, or no jobs."""
        with opened(polls, Settings(), Told()) as found:
            if not isinstance(found, PollInput):
                raise InputRefused(f"{found.name} holds no polls.", "Give polls of storage servers.")
            rows = found.rows
        rates = [pl.col(f"{name}_bytes_per_s") * pl.col("interval_s") for name in ("read", "write")]
        sums = [pl.when(each.count() > 0).then(each.sum()) for each in rates]
        ticks = rows.group_by("polled_at").agg(pl.col("interval_s").max(), *sums).sort("polled_at")
        edges, interval_s = epoch_s(ticks["polled_at"]), floats(ticks["interval_s"])
        step_s = float(np.median(interval_s))
        began_s = float(np.floor((edges[0] - step_s) / MINUTE_S) * MINUTE_S)
        volumes = {name: floats(ticks[f"{name}_bytes_per_s"]) for name in ("read", "write")}
        moved = {name: on_steps(edges, interval_s, each, began_s, step_s) for name, each in volumes.items()}
        jobs = _jobs(log)
        return cls(
            moved,
            step_s,
            jobs["job_name"].to_list(),
            jobs["job_name"].rank("dense").cast(pl.Int64).to_numpy() - 1,
            epoch_s(jobs["started_at"]) - began_s,
            epoch_s(jobs["ended_at"]) - began_s,
            (jobs["comment"] == "fs=scratch1").to_numpy(),
            began_s,
        )

    @property
    def minute(self) -> Ints:
        """The minute of each step."""
        steps = np.arange(len(self.moved["read"]))
        found: Ints = (steps * self.step_s / MINUTE_S).astype(np.int64)
        return found

    def truth(self, direction: str, run: int) -> tuple[Ints, Reals]:
        """Return the steps of a run, and what flowed in them: of a benchmark that had the file system for itself.

        As the golden join has it: polls from its start on, to one that began before its end.
        """
        first, after = (
            int(np.ceil(each / self.step_s)) for each in (self.started_s[run], self.ended_s[run] + self.step_s)
        )
        steps = np.arange(first - 1, after - 1)
        return steps, np.nan_to_num(self.moved[direction][steps])

    def likely_bytes(self, started_s: Reals, ended_s: Reals, application: Ints) -> Reals:
        """Return what runs are likely to have moved, by run and minute, as `iosig who` reckons it."""
        count = int(self.minute[-1]) + 1
        edges = np.linspace(self.step_s, len(self.minute) * self.step_s, len(self.minute))
        found = np.zeros(len(started_s) * count)
        for moved in self.moved.values():
            traffic = on_steps(edges, np.full(len(edges), self.step_s), moved, 0.0, STEP_S)
            left = np.where(np.isfinite(traffic), room_of(traffic, STEP_S), np.nan)
            one = likely(left, started_s / STEP_S, (ended_s + self.step_s) / STEP_S, application)
            at = one.run * count + np.minimum((one.step * STEP_S / MINUTE_S).astype(np.int64), count - 1)
            found += np.bincount(at, one.volume_bytes, len(found))
        return found.reshape(-1, count)


def _jobs(log: Path) -> pl.DataFrame:
    source = recognize(read_head(log))
    batches = source.read(log, reading_of(source, Settings(), Told()))
    rows = [batch.rows for batch in batches if batch.table == JOB_RECORDS]
    if not rows:
        raise InputRefused(f"{log.name} holds no jobs.", "Give the job log of that day.")
    return pl.concat(rows).drop_nulls(["started_at", "ended_at"])


def told(day: Day) -> pl.DataFrame:
    """Return the runs of a day that used its file system: what flowed while each was there, and what is told of it."""
    own = np.flatnonzero(day.is_own)
    found = day.likely_bytes(day.started_s[own], day.ended_s[own], day.application[own])
    rows = [
        {
            "run": day.name[run],
            "lasted_s": float(day.ended_s[run] - day.started_s[run]),
            "read_bytes": float(day.truth("read", run)[1].sum()),
            "written_bytes": float(day.truth("write", run)[1].sum()),
            "likely_bytes": float(found[place].sum()),
        }
        for place, run in enumerate(own.tolist())
    ]
    total = sum(float(np.nansum(moved)) for moved in day.moved.values())
    return pl.DataFrame(rows).with_columns(day_bytes=pl.lit(total))


def tried(day: Day, seeds: Iterable[int]) -> pl.DataFrame:
    """Return in how many minutes of more than 2 GB/s the true run comes first among decoys, a row each draw."""
    return pl.DataFrame([{"seed": seed} | _among_decoys(day, seed) for seed in seeds])


def _among_decoys(day: Day, seed: int) -> dict[str, float]:
    runs, started = with_decoys(day, seed)
    given = day.likely_bytes(started, started + (day.ended_s - day.started_s)[runs], day.application[runs])
    asked, true = asked_minutes(day)
    rank = (given[:, asked] > given[true, asked]).sum(axis=0)
    return {"asked": float(len(asked)), "first": float((rank == 0).sum()), "top": float((rank < 3).sum())}


def with_decoys(day: Day, seed: int) -> tuple[Ints, Reals]:
    """Return the true runs and decoys after them: which run of the day each is or copies, and when it starts."""
    rng = np.random.default_rng(seed)
    own, others = np.flatnonzero(day.is_own), np.flatnonzero(~day.is_own)
    copied = rng.integers(0, len(day.name), DECOYS - len(others))
    longest = (day.ended_s - day.started_s).max()
    at = rng.uniform(0.0, len(day.minute) * day.step_s - longest, len(copied))
    return np.concatenate([own, others, copied]), np.concatenate([day.started_s[own], day.started_s[others], at])


def asked_minutes(day: Day) -> tuple[Ints, Ints]:
    """Return the minutes in which much flowed and a true run moved bytes, and which of these moved most."""
    own, count = np.flatnonzero(day.is_own), int(day.minute[-1]) + 1
    truth, total = np.zeros((len(own), count)), np.zeros(count)
    for direction, moved in day.moved.items():
        total += np.bincount(day.minute, np.nan_to_num(moved), count)
        for place, run in enumerate(own.tolist()):
            steps, volume = day.truth(direction, run)
            truth[place] += np.bincount(day.minute[steps], volume, count)
    asked = np.flatnonzero((total > LEAST_BYTES_PER_S * MINUTE_S) & truth.any(axis=0))
    return asked, truth[:, asked].argmax(axis=0)
