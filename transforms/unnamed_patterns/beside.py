"""Whose runs were there each time a pattern appeared, and how likely that is by chance.

By chance, appearances would lie to the job log as if one were turned against the other by any time: the share of
turns tells how much of the time an application's runs cover (its exposure), and how much the covered share of
appearances varies from turn to turn, as how many independent ones they count (design effect: Kish, Survey Sampling,
1965, section 8.2): the appearances of one train stand or fall together. So many of them covered, or more, is a binomial
tail, and times the applications that were tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from iosig.transforms.arrays import Bools, Ints, Reals


@dataclass(frozen=True, slots=True)
class BesideParams:
    """When a pattern is an application's; the values are ours.

    slack_s: a job log's times, and what is flushed after a run, are so inexact. least_share: an application was there
    in so many of the appearances. chance: less likely than that, it is the application's; doubt: less likely than that,
    it may be. most_share, even_odds: and so it may where an application was there in so many of them, and that is less
    likely, without regard to how many were tried: nothing speaks against it. makers, makers_share: so may so many
    applications that happen to do alike, where they together were there in so many; not those that are there for a
    larger share of the time than most_exposed: they are beside everything.
    """

    slack_s: float = 60.0
    least_share: float = 0.2
    most_share: float = 0.75
    chance: float = 0.01
    doubt: float = 0.05
    even_odds: float = 0.5
    makers: int = 3
    makers_share: float = 0.9
    most_exposed: float = 0.75


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs (n) in a window of time: which application each is of, when it was there, in steps."""

    application: Ints
    started: Reals
    ended: Reals


@dataclass(frozen=True, slots=True)
class Beside:
    """The application whose runs fit a pattern best.

    application: -1 where none was there in most appearances. seen_count: appearances in one of its runs. run_count: its
    runs in the window; seen_run_count: those in which the pattern appeared. chance: how likely so many are by chance,
    all applications counted. outcome: `named` (it is the application's), `unsure`, `unnamed` (nobody's who is logged).
    """

    outcome: str
    application: int
    seen_count: int
    run_count: int
    seen_run_count: int
    chance: float


_NOBODY = Beside("unnamed", -1, 0, 0, 0, float("nan"))


def beside(
    appeared: tuple[Reals, Reals],
    runs: Runs,
    step_count: int,
    interval_s: float,
    params: BesideParams | None = None,
    *,
    is_train: bool = False,
    presences: Presences | None = None,
) -> Beside:
    """Return whose runs were there when a pattern appeared, in a window of so many steps.

    appeared: from, until (k each), in steps. is_train: whether the appearances are surely one maker's; else a few that
    happen to move the same volume may have made them. presences: of these runs in this window, where many patterns are
    asked about.
    """
    params = params or BesideParams()
    started, ended = appeared
    slack = params.slack_s / interval_s
    is_in, covered = there(appeared, runs, slack)
    count = len(covered)
    seen = covered.sum(axis=1)
    candidates = np.flatnonzero(seen >= params.least_share * max(len(started), 1))
    if not len(candidates):
        return _NOBODY
    presences = presences or Presences(runs, step_count, slack)
    shown = presences.shown((started + ended) / 2)
    told = [_chance(presences.of(each), shown, int(seen[each]), len(started)) for each in candidates.tolist()]
    tails, exposures = np.array(told).T
    best = int(candidates[np.lexsort((-seen[candidates], tails))[0]])
    own = runs.application == best
    tail = float(tails.min())
    chance = min(1.0, tail * count)
    is_covered = np.array([seen[each] >= params.most_share * len(started) for each in candidates])
    may_be = chance < params.doubt or bool((is_covered & (tails < params.even_odds)).any())
    makers = covered[candidates[exposures <= params.most_exposed]]
    may_be |= not is_train and _together(makers, params.makers) >= params.makers_share
    outcome = "named" if chance < params.chance else "unsure" if may_be else "unnamed"
    return Beside(outcome, best, int(seen[best]), int(own.sum()), int(is_in[own].any(axis=1).sum()), chance)


def there(appeared: tuple[Reals, Reals], runs: Runs, slack: float) -> tuple[Bools, Bools]:
    """Return which runs (n), and which applications (m), were there in each of some appearances (k).

    appeared: from, until (k each), in steps. slack: a job log's times are so many steps inexact.
    """
    started, ended = appeared
    is_in: Bools = (runs.started[:, None] <= started + slack) & (runs.ended[:, None] >= ended - slack)
    covered = np.zeros((int(runs.application.max(initial=-1)) + 1, len(started)), np.bool_)
    run, appearance = np.nonzero(is_in)
    covered[runs.application[run], appearance] = True
    return is_in, covered


def begun_with(
    started: Reals, runs: Runs, interval_s: float, params: BesideParams | None = None
) -> tuple[Beside, Bools] | None:
    """Return the application that does what appeared (k) at one time after its runs begin, and which it did so.

    None where none does. started (k): in steps. By chance, what appears in a run lies anywhere in it: so many runs or
    more with one within so short a time are a binomial tail, times the times and the applications that were tried.
    """
    params = params or BesideParams()
    slack = params.slack_s / interval_s
    run, appearance = np.nonzero((runs.started[:, None] <= started) & (runs.ended[:, None] >= started))
    found: tuple[float, int, Reals] | None = None
    applications = np.unique(runs.application[run])
    for one in applications.tolist():
        own = runs.application[run] == one
        since = started[appearance[own]] - runs.started[run[own]]
        chance, begin = _at_one_time(since, run[own], runs.ended - runs.started, slack)
        if chance * len(applications) < (found[0] if found else params.chance):
            is_then = (since >= begin) & (since <= begin + slack)
            found = chance * len(applications), one, np.unique(appearance[own][is_then])
    if found is None:
        return None
    chance, one, appeared = found
    is_own = np.zeros(len(started), np.bool_)
    is_own[appeared] = True
    own_runs = int((runs.application == one).sum())
    return Beside("named", one, len(appeared), own_runs, len(appeared), chance), is_own


#: in so many runs an application did what it always does then
_LEAST_RUNS = 3


def _at_one_time(since: Reals, run: Ints, lasted: Reals, within: float) -> tuple[float, float]:
    """Return how likely so many runs with an appearance so short a time after one begin are by chance, and when."""
    order = np.argsort(since, kind="stable")
    since, run = since[order], run[order]
    after = np.searchsorted(since, since + within, side="right")
    at = int((after - np.arange(len(since))).argmax())
    count, runs = len(np.unique(run[at : after[at]])), np.unique(run)
    if count < _LEAST_RUNS:
        return 1.0, 0.0
    # a run that is shorter than that tells nothing
    share = np.minimum(within / np.maximum(lasted[runs], 1e-9), 1.0) * np.bincount(run)[runs]
    expected = float(np.minimum(share, 1.0).mean())
    tail = betainc(count, len(runs) - count + 1.0, expected) if expected < 1.0 else 1.0
    return float(tail) / max(within / float(lasted[runs].max()), 1e-9), float(since[at])


def _together(covered: Bools, count: int) -> float:
    """Return the share of appearances (applications, appearances) that the best so many applications cover."""
    is_open = np.ones(covered.shape[1], np.bool_)
    for _ in range(min(count, len(covered))):
        is_open &= ~covered[int((covered & is_open).sum(axis=1).argmax())]
    return 1.0 - float(is_open.mean())


#: turns are tried at so many places of the window, at most
_MOST_PLACES = 1 << 15


class Presences:
    """When each application's runs were there in a window of so many steps: what its turns need, reckoned once each."""

    def __init__(self, runs: Runs, step_count: int, slack: float) -> None:
        """Take the runs, which are there so many steps longer than the job log says, on both sides."""
        self.runs, self._slack = runs, slack
        self._places = min(_MOST_PLACES, max(step_count, 1))
        self._scale = self._places / max(step_count, 1)
        self._known: dict[int, tuple[float, Reals]] = {}

    def of(self, application: int) -> tuple[float, Reals]:
        """Return for which share of the time an application was there, and the spectrum of that."""
        if application not in self._known:
            own = self.runs.application == application
            first, last = self.runs.started[own] - self._slack, self.runs.ended[own] + self._slack + 1
            begun, over = ((each * self._scale).astype(np.int64).clip(0, self._places) for each in (first, last))
            count = self._places + 1
            edges = np.bincount(begun, minlength=count) - np.bincount(over, minlength=count)
            is_there = (np.cumsum(edges)[:-1] > 0).astype(np.float64)
            self._known[application] = float(is_there.mean()), _spectrum(is_there)
        return self._known[application]

    def shown(self, middles: Reals) -> Reals:
        """Return the spectrum of appearances whose middles are these."""
        places = (middles * self._scale).astype(np.int64).clip(0, self._places - 1)
        return _spectrum(np.bincount(places, minlength=self._places) / len(middles))


def _spectrum(values: Reals) -> Reals:
    """Return the squares of a signal's frequencies but 0, so that two signals' product sums to how their turns vary."""
    power: Reals = np.abs(np.fft.rfft(values)[1:]) ** 2 / len(values)
    # each frequency stands for its negative one, too, but for the highest one of an even number
    power[: (len(values) - 1) // 2] *= np.sqrt(2.0)
    return power


def _chance(presence: tuple[float, Reals], shown: Reals, seen: int, count: int) -> tuple[float, float]:
    """Return how likely so many appearances or more lie in an application's runs if both are turned at random.

    And for which share of the time it is there. By Parseval's theorem turns vary as their spectra's product does.
    """
    exposure, spectrum = presence
    if exposure >= 1.0 - 1e-12:
        return 1.0, exposure
    varies = float(spectrum @ shown)
    independent = min(exposure * (1.0 - exposure) / max(varies, 1e-12), float(count))
    share = seen / count
    tail = betainc(max(share * independent, 1e-9), (1.0 - share) * independent + 1.0, exposure)
    return float(tail), exposure
