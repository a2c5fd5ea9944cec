"""Likely bytes: who of those without a signature moved most, by when they were there.

What is left of a step was moved by those who were there, at rates that nobody knows. Each run has one of its own, which
is like that of its application's other runs; nobody's has one too. The rates under which the traffic is most likely are
found by expectation and maximization (the expected share of each in each step by the rates, then the rates by the
shares: Dempster, Laird and Rubin, J. R. Stat. Soc. B 39, 1977; for sums of Poisson numbers Shepp and Vardi, IEEE
Trans. Med. Imaging 1, 1982, doi:10.1109/TMI.1982.4307558). So a run during which much flows, time and again, is
likelier than one that was there by chance. It tells who to ask first, and not how much each moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transforms.arrays import Ints, Reals, places_of

#: steps of so many seconds tell runs of a minute from each other; shorter ones tell no more
STEP_S = 10.0


@dataclass(frozen=True, slots=True)
class LikelyParams:
    """How rates are found; the values are ours, chosen on simulated sites (seeds 11 to 13) and a real day (`STEP_S`).

    round_count: how often shares and rates are found in turn. own_steps: a run's rate counts as its application's for
    so many steps, beside its own ones.
    """

    round_count: int = 30
    own_steps: float = 12.0


@dataclass(frozen=True, slots=True)
class Likely:
    """What runs are likely to have moved: the run, the step and the bytes of each row (k), by run and step."""

    run: Ints
    step: Ints
    volume_bytes: Reals


def likely(
    left_bytes: Reals, started: Reals, ended: Reals, application: Ints, params: LikelyParams | None = None
) -> Likely:
    """Return how what is left (bytes in each step; NaN where nothing was measured) is likely shared among runs.

    started, ended (n): when runs were there, in steps. application (n): whose they are.
    """
    params = params or LikelyParams()
    left = np.nan_to_num(left_bytes)
    first = np.clip(np.floor(started), 0, len(left)).astype(np.int64)
    counts = np.clip(np.ceil(ended), first, len(left)).astype(np.int64) - first
    step, run = places_of(first, counts), np.repeat(np.arange(len(first)), counts)
    # the share of a step in which a run was there
    there = np.minimum(step + 1, ended[run]) - np.maximum(step, started[run])
    own = np.isfinite(left_bytes)[step] * there
    exposure = np.maximum(np.bincount(run, own, len(first)), 1e-9)
    of_all = np.maximum(np.bincount(application, exposure), 1e-9)
    mean = float(left.mean()) if len(left) else 0.0
    rate, nobody = np.full(len(first), max(mean, 1e-9)), max(mean, 1e-9)
    for _ in range(params.round_count):
        share = _share(left, rate[run] * own, step, nobody)
        moved = np.bincount(run, rate[run] * own * share[step], len(first))
        usual = np.bincount(application, moved, len(of_all)) / of_all
        rate = (moved + params.own_steps * usual[application]) / (exposure + params.own_steps)
        nobody *= float(share.mean())
    expected = rate[run] * own
    return Likely(run, step, expected * _share(left, expected, step, nobody)[step])


def _share(left: Reals, expected: Reals, step: Ints, nobody: float) -> Reals:
    """Return how much more is left of each step than all together are expected to move."""
    found: Reals = left / np.maximum(np.bincount(step, expected, len(left)) + nobody, 1e-300)
    return found
