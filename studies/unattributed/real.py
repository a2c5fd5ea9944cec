"""Rank runs with known bytes on a measured day among decoys, all without a signature.

The log states which runs used the polled file system. The decoys are runs on other file systems, and copies of all runs
at random times: only the traffic distinguishes them from the true runs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from iosig.studies.real_day import MINUTE_S, Day
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.attribution.explanation import subtract_background
from iosig.transforms.attribution.likely_bytes import STEP_S, estimate_likely_bytes
from iosig.transforms.unattributed_patterns.residual import resample_polls

#: number of decoys, including the sixteen runs on other file systems
DECOYS = 200
#: number of random draws of the decoys
DRAWS = 20
#: minutes with a lower rate are not evaluated [B/s]
MIN_BYTES_PER_S = 2e9


def estimate_by_minute(day: Day, start_s: Reals, end_s: Reals, application: Ints) -> Reals:
    """Estimate the likely bytes by run and minute, as `iosig who` does."""
    count = int(day.minute[-1]) + 1
    edges = np.linspace(day.step_s, len(day.minute) * day.step_s, len(day.minute))
    total_bytes = np.zeros(len(start_s) * count)
    for moved in day.moved.values():
        traffic = resample_polls(edges, np.full(len(edges), day.step_s), moved, 0.0, STEP_S)
        residual = np.where(np.isfinite(traffic), subtract_background(traffic, STEP_S), np.nan)
        likely = estimate_likely_bytes(residual, start_s / STEP_S, (end_s + day.step_s) / STEP_S, application)
        at = likely.run * count + np.minimum((likely.step * STEP_S / MINUTE_S).astype(np.int64), count - 1)
        total_bytes += np.bincount(at, likely.volume_bytes, len(total_bytes))
    return total_bytes.reshape(-1, count)


def summarize_real_runs(day: Day) -> pl.DataFrame:
    """Return the true and the likely bytes of the day's runs on its file system."""
    own_runs = np.flatnonzero(day.is_own)
    likely_bytes = estimate_by_minute(day, day.start_s[own_runs], day.end_s[own_runs], day.application[own_runs])
    rows = [
        {
            "run": day.name[run],
            "lasted_s": float(day.end_s[run] - day.start_s[run]),
            "read_bytes": float(day.truth("read", run)[1].sum()),
            "written_bytes": float(day.truth("write", run)[1].sum()),
            "likely_bytes": float(likely_bytes[place].sum()),
        }
        for place, run in enumerate(own_runs.tolist())
    ]
    total = sum(float(np.nansum(moved)) for moved in day.moved.values())
    return pl.DataFrame(rows).with_columns(day_bytes=pl.lit(total))


def rank_among_decoys(day: Day, seeds: Iterable[int]) -> pl.DataFrame:
    """Count the minutes above 2 GB/s in which the true run ranks first, and among the first three, by draw."""
    return pl.DataFrame([{"seed": seed} | _evaluate_draw(day, seed) for seed in seeds])


def _evaluate_draw(day: Day, seed: int) -> dict[str, float]:
    runs, started = add_decoys(day, seed)
    likely_bytes = estimate_by_minute(day, started, started + (day.end_s - day.start_s)[runs], day.application[runs])
    minutes, true = select_busy_minutes(day)
    rank = (likely_bytes[:, minutes] > likely_bytes[true, minutes]).sum(axis=0)
    return {"asked": float(len(minutes)), "first": float((rank == 0).sum()), "top": float((rank < 3).sum())}


def add_decoys(day: Day, seed: int) -> tuple[Ints, Reals]:
    """Return, for true runs and then decoys, the index of the day's run that each copies, and the start times."""
    rng = np.random.default_rng(seed)
    own_runs, other_runs = np.flatnonzero(day.is_own), np.flatnonzero(~day.is_own)
    copied = rng.integers(0, len(day.name), DECOYS - len(other_runs))
    longest = (day.end_s - day.start_s).max()
    start_s = rng.uniform(0.0, len(day.minute) * day.step_s - longest, len(copied))
    return np.concatenate([own_runs, other_runs, copied]), np.concatenate(
        [day.start_s[own_runs], day.start_s[other_runs], start_s]
    )


def select_busy_minutes(day: Day) -> tuple[Ints, Ints]:
    """Return the minutes above the minimum rate with bytes of a true run, and the run with the most bytes in each."""
    own_runs, count = np.flatnonzero(day.is_own), int(day.minute[-1]) + 1
    truth, total = np.zeros((len(own_runs), count)), np.zeros(count)
    for direction, moved in day.moved.items():
        total += np.bincount(day.minute, np.nan_to_num(moved), count)
        for place, run in enumerate(own_runs.tolist()):
            steps, volume = day.truth(direction, run)
            truth[place] += np.bincount(day.minute[steps], volume, count)
    minutes = np.flatnonzero((total > MIN_BYTES_PER_S * MINUTE_S) & truth.any(axis=0))
    return minutes, truth[:, minutes].argmax(axis=0)
