"""Inject runs of synthetic applications into a day of measured traffic.

Logged runs that used the file system almost exclusively provide bursts with known bytes in every step. Each application
repeats one such burst with its own gaps, and its runs start at random times. The measured traffic is kept, and counts
as unlogged. Bursts are not slowed down, since the measurements do not show how contention would have affected them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.joint.plain import extract_both
from iosig.studies.real_day import Day
from iosig.transforms.arrays import Reals
from iosig.transforms.joint.shared_traffic import SharedTraffic
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import correlation
from iosig.transforms.synthetic.workload import stream

#: scale of the injected bursts, which determines the fraction of measured traffic in the total
SIZES = {"as measured": 1.0, "a tenth": 0.1, "a thirtieth": 1 / 30}
DIRECTIONS = ("read", "write")
#: number of applications per direction, and of runs per application
APPLICATION_COUNT, RUN_COUNT = 8, 10
#: runs with fewer bytes are not used as bursts [B]
_MIN_BYTES = 1e11
#: ranges of the number of bursts per application, and of the gaps between them [s]
_BURSTS, _GAPS_S = (3, 8), (120.0, 400.0)
#: time before the first and after the last burst [s]; relative standard deviation of the gaps between runs
_BEFORE_S, _AFTER_S, _DRIFT_RATIO = 20.0, 30.0, 0.003


@dataclass(frozen=True, slots=True)
class InjectedDay:
    """A day with injected runs: total traffic, each application's true rate in each second, and the unlogged ratio."""

    shared: SharedTraffic
    truths: tuple[Reals, ...]
    unlogged_ratio: float


def extract_bursts(day: Day, direction: str) -> list[Reals]:
    """Return the rates of runs that used the file system exclusively, second by second [B/s]."""
    moved = [day.truth(direction, run)[1] for run in np.flatnonzero(day.is_own).tolist()]
    # spread a poll's bytes evenly over its interval
    return [np.repeat(run_bytes, round(day.step_s)) / day.step_s for run_bytes in moved if run_bytes.sum() > _MIN_BYTES]


def inject_runs(day: Day, direction: str, size: float, seed: int) -> InjectedDay:
    """Inject runs of applications that repeat measured bursts, scaled by `size`, into a day."""
    rng = stream(seed, "real bursts", direction)
    traffic_bytes = day.moved[direction]
    background = traffic_bytes[: int(np.flatnonzero(np.nan_to_num(traffic_bytes) > 0)[-1]) + 1]
    traffic, real_bursts = background.copy(), extract_bursts(day, direction)
    truths, rows = [], []
    for application in range(APPLICATION_COUNT):
        burst = size * real_bursts[application % len(real_bursts)]
        gaps_s = np.full(int(rng.integers(*_BURSTS)), rng.uniform(*_GAPS_S))
        gaps_s[0] = _BEFORE_S
        truths.append(_build_curve(burst, gaps_s))
        for _ in range(RUN_COUNT):
            start_s = rng.uniform(0.0, len(background) * day.step_s - 1.05 * len(truths[-1]))
            drifted_s = gaps_s * (1.0 + _DRIFT_RATIO * rng.standard_normal(len(gaps_s)))
            end_s = _add_run(traffic, burst, start_s, drifted_s, day.step_s)
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
    return InjectedDay(shared, tuple(truths), float(np.nansum(background) / np.nansum(traffic)))


def _build_curve(burst: Reals, gaps_s: Reals) -> Reals:
    """Build the rate of a run with these gaps, in whole seconds."""
    parts = [np.concatenate([np.zeros(round(gap_s)), burst]) for gap_s in gaps_s.tolist()]
    return np.concatenate([*parts, np.zeros(round(_AFTER_S))])


def _add_run(traffic: Reals, burst: Reals, start_s: float, gaps_s: Reals, step_s: float) -> float:
    """Add a run's bytes to the traffic and return the end of the run [s]."""
    edges_s, now_s = np.arange(len(traffic) + 1) * step_s, start_s
    total = np.concatenate([[0.0], np.cumsum(burst)])
    for gap_s in gaps_s.tolist():
        now_s += gap_s
        traffic += np.diff(np.interp(edges_s - now_s, np.arange(len(total)), total))
        now_s += len(burst)
    return now_s + _AFTER_S


def evaluate_day(day: Day, seeds: Iterable[int]) -> pl.DataFrame:
    """Compute the distances of signatures from the exact rate: one row per size, direction, draw and application.

    Columns: size, direction, seed, application, unlogged_ratio; usual, joint, chosen: distances; is_better: whether the
    joint signature was accepted; explained_ratio.
    """
    sites = product(SIZES, DIRECTIONS, seeds)
    return pl.DataFrame([row for size, direction, seed in sites for row in _evaluate_draw(day, size, direction, seed)])


def _evaluate_draw(day: Day, size: str, direction: str, seed: int) -> Iterator[dict[str, object]]:
    site = inject_runs(day, direction, SIZES[size], seed)
    raw = site.shared.make_sample_sets(site.shared.cut_samples(site.shared.volume_bytes))
    plain, _, joint = extract_both(site.shared, methods.extract_signatures(raw, methods=methods.DEFAULT_METHODS))
    for place, truth in enumerate(site.truths):
        is_better = bool(joint.is_accepted[place])
        old, new = _compute_distance(plain[place], truth), _compute_distance(joint.signatures[place], truth)
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
            "explained_ratio": float(joint.explained_ratio[place]),
        }


def _compute_distance(signature: Signature, truth: Reals) -> float:
    return 1.0 - (correlation(signature.bytes_per_s, truth) if signature.outcome == "extracted" else 0.0)
