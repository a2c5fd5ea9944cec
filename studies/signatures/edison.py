"""Inject applications into measured traffic: a day of Edison's scratch file system, or any other polls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from iosig.studies.real_day import read_polls
from iosig.studies.signatures.sites import DRIFT_RATIO, STUDIED, LabeledSamples, extract_samples
from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.synthetic.site import SiteParams
from iosig.transforms.synthetic.workload import END, START, Application, Direction, Plan, Workload, make_plans
from iosig.warehouse.errors import InputRefused

_USUAL = SiteParams()
_DOING = {"read": "reading", "write": "writing"}


@dataclass(frozen=True, slots=True)
class Traffic:
    """Measured background traffic: bytes_per_s (ticks), NaN where not polled, at even steps of interval_s."""

    bytes_per_s: Reals
    interval_s: float

    @property
    def edges_s(self) -> Reals:
        """Edges of the steps relative to the first right edge (ticks + 1)."""
        return np.arange(-1.0, len(self.bytes_per_s)) * self.interval_s

    @classmethod
    def read(cls, path: Path, direction: Direction = "write") -> Traffic:
        """Read the traffic of one direction from a poll file, from the first to the last recorded poll.

        Raises InputRefused if the file contains no polls, or none of that direction.
        """
        return cls.from_polls(read_polls(path), path.name, direction)

    @classmethod
    def from_polls(cls, polls: pl.DataFrame, name: str, direction: Direction = "write") -> Traffic:
        """Sum the polls of all controllers: rows of `polls` from one file system."""
        rate = f"{direction}_bytes_per_s"
        measured = polls.filter(pl.col(rate).is_not_null()).group_by("polled_at")
        ticks = measured.agg(pl.col(rate).sum(), pl.col("interval_s").median()).sort("polled_at")
        if ticks.is_empty():
            raise InputRefused(
                f"{name} has no {direction} rates.", f"Provide polls with a rate of {_DOING[direction]}."
            )
        interval_s = float(ticks["interval_s"].median())  # type: ignore[arg-type]
        times = ticks["polled_at"].dt.epoch("us").to_numpy() / 1e6
        places = np.round((times - times[0]) / interval_s).astype(np.int64)
        rates = np.full(places[-1] + 1, np.nan)
        rates[places] = ticks[rate].to_numpy()
        return cls(rates, interval_s)

    def split_hours(self, hours: float) -> list[Reals]:
        """Split the traffic into consecutive complete pieces of `hours`, per second [B/s].

        They end with the last byte, since files may be padded with zeros. Missing polls are replaced by the median.
        """
        is_used = np.flatnonzero(self.bytes_per_s > 0)
        if not len(is_used):
            return []
        used = self.bytes_per_s[: int(is_used[-1]) + 1]
        used = np.nan_to_num(used, nan=float(np.nanmedian(used)))
        count = int(hours * 3600.0 / self.interval_s)
        seconds = np.arange(int(hours * 3600.0))
        pieces = [used[begin : begin + count] for begin in range(0, len(used) + 1 - count, count)]
        return [piece[np.minimum((seconds / self.interval_s).astype(np.int64), count - 1)] for piece in pieces]


@dataclass(frozen=True, slots=True)
class EdisonSetting:
    """Applications injected into measured traffic, each into its own copy, so that runs do not overlap.

    A run's transfers are slowed as on simulated sites (`contention.SharedBandwidth`): background traffic at the rate of
    the run costs as much as one other stream. The background is kept as measured.
    """

    traffic: Traffic
    drift_ratio: float = DRIFT_RATIO
    stop_ratio: float = _USUAL.stop_ratio
    seek_loss_ratio: float = _USUAL.seek_loss_ratio
    applications: tuple[Application, ...] = STUDIED

    def draw(self, seed: int) -> LabeledSamples:
        """Inject the runs of all applications and extract their samples."""
        return LabeledSamples(
            self.applications,
            SampleSets.concatenate([self._draw_samples(application, seed) for application in self.applications]),
        )

    def _draw_samples(self, application: Application, seed: int) -> SampleSet:
        span_s = float(self.traffic.edges_s[-1])
        # no other users: the traffic already contains them
        workload = Workload(seed, span_s, 0.0, self.drift_ratio, self.stop_ratio, 0.0)
        rates, runs = self.traffic.bytes_per_s.copy(), []
        for plan in make_plans([application], workload):
            for start_s, end_s, moved_bytes in self._serve(plan):
                # unfinished runs have no sample, but their bytes are in the traffic
                rates += moved_bytes / self.traffic.interval_s
                if end_s <= span_s:
                    runs.append((np.floor(start_s), np.floor(end_s)))
        times: Reals = np.array(runs, dtype=np.float64).reshape(-1, 2)
        return extract_samples(rates, self.traffic.interval_s, times[:, 0], times[:, 1])

    def _serve(self, plan: Plan) -> Iterator[tuple[float, float, Reals]]:
        """Yield start, end and bytes per step (ticks) of each job in a chain of restarts."""
        edges, now = self.traffic.edges_s, plan.start_s
        for part, (job, pieces) in enumerate(plan.parts):
            now += job.queue_s + 30.0 if part else 0.0
            started, moved = now, np.zeros(len(edges) - 1)
            for piece in pieces:
                now += piece.wait_s
                if piece.burst in (START, END):
                    continue
                cumulative_bytes = self._progress(piece.peak_bytes_per_s)
                before = float(np.interp(now, edges, cumulative_bytes))
                if piece.direction == "write":
                    moved += np.diff(np.clip(cumulative_bytes - before, 0.0, piece.volume_bytes))
                now = float(np.interp(before + piece.volume_bytes, cumulative_bytes, edges, right=np.inf))
            yield started, now, moved

    def _progress(self, peak_bytes_per_s: float) -> Reals:
        """Return the bytes an endless transfer would have moved by each edge (ticks + 1)."""
        background = np.nan_to_num(self.traffic.bytes_per_s, nan=float(np.nanmedian(self.traffic.bytes_per_s)))
        rates = peak_bytes_per_s / (1.0 + self.seek_loss_ratio * background / peak_bytes_per_s)
        return np.concatenate([[0.0], np.cumsum(rates * self.traffic.interval_s)])
