"""A real day: runs whose true bytes are known, among decoys; none of them has a signature.

The log says which runs used the file system that was polled. Those on other ones are moved to it, and copies of all are
put at drawn hours: who does not look at the traffic cannot tell them apart.
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

#: what is among the true runs, in all (the sixteen of other file systems among them)
DECOYS = 200
#: so often are decoys drawn
DRAWS = 20
#: minutes in which less flowed are not asked about [B/s]
LEAST_BYTES_PER_S = 2e9


def likely_bytes(day: Day, start_s: Reals, end_s: Reals, application: Ints) -> Reals:
    """Return what runs are likely to have moved, by run and minute, as `iosig who` reckons it."""
    count = int(day.minute[-1]) + 1
    edges = np.linspace(day.step_s, len(day.minute) * day.step_s, len(day.minute))
    found = np.zeros(len(start_s) * count)
    for moved in day.moved.values():
        traffic = resample_polls(edges, np.full(len(edges), day.step_s), moved, 0.0, STEP_S)
        left = np.where(np.isfinite(traffic), subtract_background(traffic, STEP_S), np.nan)
        one = estimate_likely_bytes(left, start_s / STEP_S, (end_s + day.step_s) / STEP_S, application)
        at = one.run * count + np.minimum((one.step * STEP_S / MINUTE_S).astype(np.int64), count - 1)
        found += np.bincount(at, one.volume_bytes, len(found))
    return found.reshape(-1, count)


def told(day: Day) -> pl.DataFrame:
    """Return the runs of a day that used its file system: what flowed while each was there, and what is told of it."""
    own = np.flatnonzero(day.is_own)
    found = likely_bytes(day, day.start_s[own], day.end_s[own], day.application[own])
    rows = [
        {
            "run": day.name[run],
            "lasted_s": float(day.end_s[run] - day.start_s[run]),
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
    given = likely_bytes(day, started, started + (day.end_s - day.start_s)[runs], day.application[runs])
    asked, true = asked_minutes(day)
    rank = (given[:, asked] > given[true, asked]).sum(axis=0)
    return {"asked": float(len(asked)), "first": float((rank == 0).sum()), "top": float((rank < 3).sum())}


def with_decoys(day: Day, seed: int) -> tuple[Ints, Reals]:
    """Return the true runs and decoys after them: which run of the day each is or copies, and when it starts."""
    rng = np.random.default_rng(seed)
    own, others = np.flatnonzero(day.is_own), np.flatnonzero(~day.is_own)
    copied = rng.integers(0, len(day.name), DECOYS - len(others))
    longest = (day.end_s - day.start_s).max()
    at = rng.uniform(0.0, len(day.minute) * day.step_s - longest, len(copied))
    return np.concatenate([own, others, copied]), np.concatenate([day.start_s[own], day.start_s[others], at])


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
