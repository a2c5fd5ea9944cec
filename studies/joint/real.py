"""A real day: bursts that were measured, in runs of made-up applications, among what really flowed that day.

The log's runs that had the file system nearly for themselves are bursts whose every step is known. Applications repeat
them, each at gaps of its own, and their runs begin at drawn times. What flowed that day flows still, and is in no log.
Nobody slows anybody: what was measured cannot tell how it would have been slowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.joint.plain import plainly, usual
from iosig.studies.real_day import Day
from iosig.transforms.arrays import Reals
from iosig.transforms.joint.extraction import extract_jointly
from iosig.transforms.joint.shared_traffic import KnownSignatures, SharedTraffic
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import correlation
from iosig.transforms.synthetic.workload import stream

#: how large the bursts are, as shares of what was measured: so the rest of the day is little or much of all
SIZES = {"as measured": 1.0, "a tenth": 0.1, "a thirtieth": 1 / 30}
DIRECTIONS = ("read", "write")
#: applications of each direction, and runs of each
APPLICATION_COUNT, RUN_COUNT = 8, 10
#: runs that moved less have no burst [bytes]
_LEAST_BYTES = 1e11
#: how many bursts an application has, and how long it computes between them [s]
_BURSTS, _GAPS_S = (3, 8), (120.0, 400.0)
#: before the first burst and after the last one [s]; by how much gaps differ from run to run
_BEFORE_S, _AFTER_S, _DRIFT_RATIO = 20.0, 30.0, 0.003


@dataclass(frozen=True, slots=True)
class Injected:
    """A day with runs among its traffic: what is seen, what each application does (seconds), and what is in no log."""

    shared: SharedTraffic
    truths: tuple[Reals, ...]
    unlogged_ratio: float


def bursts(day: Day, direction: str) -> list[Reals]:
    """Return what runs that had the file system for themselves moved, second by second [B/s]."""
    moved = [day.truth(direction, run)[1] for run in np.flatnonzero(day.is_own).tolist()]
    # a poll's bytes came at any time of its interval
    return [np.repeat(one, round(day.step_s)) / day.step_s for one in moved if one.sum() > _LEAST_BYTES]


def injected(day: Day, direction: str, size: float, seed: int) -> Injected:
    """Put runs of applications that repeat real bursts of so much of their size into a day."""
    rng = stream(seed, "real bursts", direction)
    known = day.moved[direction]
    alone = known[: int(np.flatnonzero(np.nan_to_num(known) > 0)[-1]) + 1]
    traffic, real = alone.copy(), bursts(day, direction)
    truths, rows = [], []
    for application in range(APPLICATION_COUNT):
        burst = size * real[application % len(real)]
        gaps_s = np.full(int(rng.integers(*_BURSTS)), rng.uniform(*_GAPS_S))
        gaps_s[0] = _BEFORE_S
        truths.append(_curve(burst, gaps_s))
        for _ in range(RUN_COUNT):
            start_s = rng.uniform(0.0, len(alone) * day.step_s - 1.05 * len(truths[-1]))
            drifted_s = gaps_s * (1.0 + _DRIFT_RATIO * rng.standard_normal(len(gaps_s)))
            end_s = _add(traffic, burst, start_s, drifted_s, day.step_s)
            rows.append((application, np.floor(start_s), np.floor(end_s)))
    owner, started, ended = np.array(rows).T
    shared = SharedTraffic(
        traffic,
        day.step_s,
        owner.astype(np.int64),
        APPLICATION_COUNT,
        started / day.step_s,
        ended / day.step_s,
        np.ones(len(rows), dtype=np.bool_),
    )
    return Injected(shared, tuple(truths), float(np.nansum(alone) / np.nansum(traffic)))


def _curve(burst: Reals, gaps_s: Reals) -> Reals:
    """Return what an application does whose gaps are so long, in whole seconds."""
    parts = [np.concatenate([np.zeros(round(gap_s)), burst]) for gap_s in gaps_s.tolist()]
    return np.concatenate([*parts, np.zeros(round(_AFTER_S))])


def _add(traffic: Reals, burst: Reals, start_s: float, gaps_s: Reals, step_s: float) -> float:
    """Add a run's bytes to the traffic; return when it ends [s]."""
    edges_s, now_s = np.arange(len(traffic) + 1) * step_s, start_s
    total = np.concatenate([[0.0], np.cumsum(burst)])
    for gap_s in gaps_s.tolist():
        now_s += gap_s
        traffic += np.diff(np.interp(edges_s - now_s, np.arange(len(total)), total))
        now_s += len(burst)
    return now_s + _AFTER_S


def tried(day: Day, seeds: Iterable[int]) -> pl.DataFrame:
    """Return how far signatures are from the exact series: a row each size, direction, draw and application.

    size, direction, seed, application, unlogged_ratio; usual, joint, chosen: distances; is_better: the joint one
    stands; explained_ratio.
    """
    sites = product(SIZES, DIRECTIONS, seeds)
    return pl.DataFrame([row for size, direction, seed in sites for row in _judged(day, size, direction, seed)])


def _judged(day: Day, size: str, direction: str, seed: int) -> Iterator[dict[str, object]]:
    site = injected(day, direction, SIZES[size], seed)
    raw = site.shared.make_sample_sets(site.shared.cut_samples(site.shared.volume_bytes))
    plain, expected_correlation = usual(methods.extract_signatures(raw, methods=methods.DEFAULT_METHODS))
    known = KnownSignatures(tuple(one if one.outcome == "extracted" else None for one in plain), expected_correlation)
    found = extract_jointly(site.shared, known, plainly)
    for place, truth in enumerate(site.truths):
        is_better = bool(found.is_accepted[place])
        old, new = _distance(plain[place], truth), _distance(found.signatures[place], truth)
        yield {
            "size": size,
            "direction": direction,
            "seed": seed,
            "application": place,
            "unlogged_ratio": site.unlogged_ratio,
            "usual": old,
            "joint": new,
            "chosen": new if is_better else old,
            "is_better": is_better,
            "explained_ratio": float(found.explained_ratio[place]),
        }


def _distance(one: Signature, truth: Reals) -> float:
    return 1.0 - (correlation(one.bytes_per_s, truth) if one.outcome == "extracted" else 0.0)
