"""Likely bytes: who moved most of what nobody explains, by when they were there.

What is left of a step was moved by those who were there, at rates that nobody knows. Each run has one of its own, which
is like that of its application's other runs; nobody's has one too. The rates under which the traffic is most likely are
found by expectation and maximization (the expected share of each in each step by the rates, then the rates by the
shares: Dempster, Laird and Rubin, J. R. Stat. Soc. B 39, 1977; for sums of Poisson numbers Shepp and Vardi, IEEE
Trans. Med. Imaging 1, 1982, doi:10.1109/TMI.1982.4307558). So a run during which much flows, time and again, is
likelier than one that was there by chance. Runs of an application move much at the same times since their starts: in
which phases, its other runs tell. What a signature explains of its runs counts in part for both: when and how much an
application moves is seen there, too. It tells who to ask first, and not how much each moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, places_of

#: steps of so many seconds tell runs of a minute from each other; shorter ones tell no more
STEP_S = 10.0


@dataclass(frozen=True, slots=True)
class LikelyParams:
    """How rates are found; the values are ours, chosen on simulated sites (seeds 1 and 2) and a real day (`STEP_S`).

    round_count: how often shares and rates are found in turn. own_steps, own_ratio: a run's rate counts as its
    application's for so many steps, and for such a share of its own ones, beside these. phase_steps: so long is a phase
    of a run; beside_ratio: how much its neighbours count with it; prior_steps: for so many steps it counts as the mean
    of the run; first_phased_round: from which round on phases are asked for. explained_ratio, phased_ratio: so much of
    what is explained of a run already counts for its rate, and for its application's phases; these two were chosen on
    other simulated sites (seeds 60 to 65, stormy).
    """

    round_count: int = 30
    own_steps: float = 6.0
    own_ratio: float = 0.6
    phase_steps: int = 3
    beside_ratio: float = 0.7
    prior_steps: float = 12.0
    first_phased_round: int = 5
    explained_ratio: float = 0.15
    phased_ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class Likely:
    """What runs are likely to have moved: the run, the step and the bytes of each row (k), by run and step."""

    run: Ints
    step: Ints
    volume_bytes: Reals


def spread(run: Ints, stretch: Ints, volume_bytes: Reals, of_step: Ints) -> Likely:
    """Return what runs moved in stretches (k), evenly over the steps of these; of_step (steps): of which each is.

    Stretches that have no steps are left out.
    """
    first, after = (np.searchsorted(of_step, stretch, side=side) for side in ("left", "right"))
    counts = after - first
    of = np.repeat(np.arange(len(counts)), counts)
    return Likely(run[of], places_of(first, counts), (volume_bytes / np.maximum(counts, 1))[of])


def likely(
    left_bytes: Reals,
    started: Reals,
    ended: Reals,
    application: Ints,
    params: LikelyParams | None = None,
    explained: Likely | None = None,
) -> Likely:
    """Return how what is left (bytes in each step; NaN where nothing was measured) is likely shared among runs.

    started, ended (n): when runs were there, in steps. application (n): whose they are. explained: what of the traffic
    is some run's already, and so not left.
    """
    params = params or LikelyParams()
    left = np.nan_to_num(left_bytes)
    first = np.clip(np.floor(started), 0, len(left)).astype(np.int64)
    counts = np.clip(np.ceil(ended), first, len(left)).astype(np.int64) - first
    step, run = places_of(first, counts), np.repeat(np.arange(len(first)), counts)
    # the share of a step in which a run was there
    own = np.isfinite(left_bytes)[step] * (np.minimum(step + 1, ended[run]) - np.maximum(step, started[run]))
    exposure = np.maximum(np.bincount(run, own, len(first)), 1e-9)
    of_all = np.maximum(np.bincount(application, exposure), 1e-9)
    mean = float(left.mean()) if len(left) else 0.0
    rate, nobody = np.full(len(first), max(mean, 1e-9)), max(mean, 1e-9)
    phases = _Phases.of(run, (step - started[run]) / params.phase_steps, application)
    factor, drawn = np.ones(len(phases.run)), params.own_steps + params.own_ratio * exposure
    known = _in_rows(explained, first, counts)
    usually_known = np.bincount(application, np.bincount(run, known, len(first)), len(of_all)) / of_all
    known_rate = (np.bincount(run, known, len(first)) + drawn * usually_known[application]) / (exposure + drawn)
    for number in range(params.round_count):
        factored = factor[phases.number] * own
        share = _share(left, rate[run] * factored, step, nobody)
        moved = rate[run] * factored * share[step]
        total = np.bincount(run, moved + params.explained_ratio * known, len(first))
        usual = (np.bincount(application, total, len(of_all)) / of_all)[application]
        rate = (total + drawn * usual) / (np.maximum(np.bincount(run, factored, len(first)), 1e-9) + drawn)
        if number >= params.first_phased_round:
            whole_rate = rate + (params.phased_ratio - params.explained_ratio) * known_rate
            factor = phases.factors(moved + params.phased_ratio * known, own, whole_rate, params)
        nobody *= float(share.mean())
    expected = rate[run] * factor[phases.number] * own
    return Likely(run, step, expected * _share(left, expected, step, nobody)[step])


@dataclass(frozen=True, slots=True)
class _Phases:
    """Phases of runs (p), by run and time since its start: the run, and which phase of its application it is.

    number (rows): the phase of each run's each step. is_next (p - 1), is_next_of_all (phases of applications - 1):
    whether the phase after it is the next one of the same run, or application.
    """

    run: Ints
    of_all: Ints
    number: Ints
    is_next: Bools
    is_next_of_all: Bools

    @classmethod
    def of(cls, run: Ints, phase: Reals, application: Ints) -> _Phases:
        """Return the phases of steps of runs (rows), of which `phase` tells how many have passed."""
        place: Ints = np.maximum(phase, 0.0).astype(np.int64)
        # two numbers beyond each run's last phase: what follows it is no neighbour
        most = int(place.max(initial=0)) + 2
        own, number = np.unique(run * most + place, return_inverse=True)
        every, of_all = np.unique(application[own // most] * most + own % most, return_inverse=True)
        return cls(own // most, of_all, number, np.diff(own) == 1, np.diff(every) == 1)

    def factors(self, moved: Reals, own: Reals, rate: Reals, params: LikelyParams) -> Reals:
        """Return how much more (p) the application's other runs move in a phase than in the mean.

        A run's own bytes say nothing of its phase: who alone is there would have all that flows meanwhile.
        """
        count = len(self.run)
        total, expected = np.bincount(self.number, moved, count), np.bincount(self.number, own, count) * rate[self.run]
        others = [self._of_others(each.astype(np.float64), params.beside_ratio) for each in (total, expected)]
        prior = params.prior_steps * rate[self.run]
        factors: Reals = (others[0] + prior) / np.maximum(others[1] + prior, 1e-300)
        return factors

    def _of_others(self, values: Reals, beside_ratio: float) -> Reals:
        """Return the sums (p) of the application's other runs, of the phase and what is beside it."""
        every = np.bincount(self.of_all, values).astype(np.float64)
        own = _with_beside(values, self.is_next, beside_ratio)
        found: Reals = np.maximum(_with_beside(every, self.is_next_of_all, beside_ratio)[self.of_all] - own, 0.0)
        return found


def _in_rows(explained: Likely | None, first: Ints, counts: Ints) -> Reals:
    """Return what is explained, in the order of runs and their steps: `counts` (n) from each `first` one (n) on."""
    if explained is None:
        return np.zeros(int(counts.sum()))
    place = explained.step - first[explained.run]
    is_there = (place >= 0) & (place < counts[explained.run])
    row = (offsets_of(counts)[explained.run] + place)[is_there]
    found: Reals = np.bincount(row, explained.volume_bytes[is_there], int(counts.sum())).astype(np.float64)
    return found


def _with_beside(values: Reals, is_next: Bools, ratio: float) -> Reals:
    """Return values with a share of those beside them."""
    found = values.copy()
    found[:-1] += ratio * values[1:] * is_next
    found[1:] += ratio * values[:-1] * is_next
    return found


def _share(left: Reals, expected: Reals, step: Ints, nobody: float) -> Reals:
    """Return how much more is left of each step than all together are expected to move."""
    found: Reals = left / np.maximum(np.bincount(step, expected, len(left)) + nobody, 1e-300)
    return found
