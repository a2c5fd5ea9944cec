"""What no log names: applications planted on a site, and which of them are found in what nobody explains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from iosig.estimates.columns import floats
from iosig.flows.steps.unattributed_patterns import WINDOW_DAYS
from iosig.studies.sites import FAMILIES, LEVELS, Logged, Seen, Transfers, application_names, seconds
from iosig.transforms.arrays import Bools, Ints, Reals, rows_of
from iosig.transforms.synthetic.site import Site, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS, DAY_S, GB, Application, Burst, Direction, bursts, stream
from iosig.transforms.unattributed_patterns.cooccurrence import Runs
from iosig.transforms.unattributed_patterns.finding import find_patterns
from iosig.transforms.unattributed_patterns.patterns import DetectedPattern
from iosig.transforms.unattributed_patterns.residual import choose_step_s, compute_residual

#: who is in no log
NOBODY = "nobody"
#: what the night looks at
DAYS = float(WINDOW_DAYS)
#: how often an application comes is said of as many days
_WEEK_DAYS = 7.0
#: a planted application that appeared less often is not asked about: it was stopped early
LEAST_APPEARANCES = 6
#: a pattern is what most of its appearances are of
_MOST = 0.7
#: a transfer begins with an appearance if it does within so many steps
_INEXACT = 2.5
_NO_ONE = "background"


def planted(seed: int, days: float) -> tuple[Application, ...]:
    """Return five applications that no log names: three trains, and two that come as they like.

    Two trains last as long as the site, one a third of it. Of the others one does one burst, one three, 8 to 14 times
    a week.
    """
    rng = stream(seed, "planted")
    ways: list[Direction] = ["write", "read", "write"]
    trains = [
        _train(f"train_{way}_{number}", way, rng, days * DAY_S * share)
        for number, (way, share) in enumerate(zip(ways, (0.98, 0.98, 0.33), strict=True))
    ]
    single = Burst(
        5.0, rng.uniform(30, 150) * GB, rng.uniform(1.0, 3.0) * GB, "read" if rng.random() < 0.5 else "write"
    )
    volumes, peaks = rng.uniform(20, 120, 3) * GB, rng.uniform(0.8, 2.5, 3) * GB
    begun = 5.0 + np.cumsum([0.0, *(volumes[:2] / peaks[:2] * 1.4 + rng.uniform(60, 400, 2))])
    three = tuple(Burst(*each) for each in zip(begun.tolist(), volumes.tolist(), peaks.tolist(), strict=True))
    others = (_at_times("single", (single,), rng), _at_times("three", three, rng))
    return (*trains, *(as_often(each, days) for each in others))


def _train(name: str, way: Direction, rng: np.random.Generator, span_s: float) -> Application:
    every_s, peak = float(rng.choice([600, 900, 1200, 1800, 3600])), rng.uniform(0.7, 2.2)
    count = int(span_s / every_s) - 1
    volume = peak * rng.uniform(10, 40)
    return Application(name, NOBODY, "", 1, span_s, bursts(every_s / 2, every_s, [volume] * count, [peak], way), 1)


def _at_times(name: str, each: tuple[Burst, ...], rng: np.random.Generator) -> Application:
    return Application(name, NOBODY, "", 1, each[-1].end_s + 5.0, each, int(rng.integers(8, 15)))


def drawn(family: str, level: str, seed: int) -> Site:
    """Return a site of a family and level on which applications are planted."""
    params = replace(FAMILIES[family][1], seed=seed, days=DAYS, foreign_level=LEVELS[level], fault_level=0.0)
    logged = (as_often(each, DAYS) for each in APPLICATIONS)
    return simulate(params, (*logged, *planted(seed, DAYS)))


def as_often(application: Application, days: float) -> Application:
    """Return an application that comes as often a week, where there are more days than a week has."""
    return replace(application, run_count=round(application.run_count * max(days / _WEEK_DAYS, 1.0)))


def left_of(one: Seen, given: Reals) -> tuple[Reals, float]:
    """Return what nobody explains of a site, in steps, and how long a step is.

    given: what is explained, by job and minute.
    """
    step_s = choose_step_s(one.interval_s)
    traffic, minute = one.in_steps(step_s)
    return compute_residual(traffic, given.sum(axis=0), minute, step_s), step_s


def left_if_known(one: Seen, moved: Transfers, is_known: Bools) -> tuple[Reals, float]:
    """Return the same where it is known to the byte what some jobs moved, and nothing of the others.

    moved: what all jobs (n) moved in that direction; is_known (n): of which of them that is known.
    """
    step_s = choose_step_s(one.interval_s)
    traffic, minute = one.in_steps(step_s)
    own = rows_of(moved, is_known[moved.job])
    together = replace(own, job=np.zeros_like(own.job))
    known = together.on_steps(np.zeros(1, np.int64), np.array([len(traffic)]), step_s)
    return compute_residual(np.maximum(traffic - known, 0.0), np.zeros(one.minute_count), minute, step_s), step_s


def found_in(left: Reals, step_s: float, logged: Logged) -> list[DetectedPattern]:
    """Return the patterns of what is left, and whose they may be."""
    return find_patterns(left, step_s, Runs(logged.application, logged.start_s / step_s, logged.end_s / step_s))


@dataclass(frozen=True, slots=True)
class _Truth:
    """All transfers (m) of a site in one direction: whose each was, when, and its bytes; times in seconds.

    application (m): the number of its application among the logged ones, -1 where it is of none.
    """

    owner: list[str]
    application: Ints
    start_s: Reals
    end_s: Reals
    moved_bytes: Reals
    appearances: dict[str, int]

    @classmethod
    def of(cls, site: Site, direction: Direction) -> _Truth:
        moved = site.bursts.filter(direction=direction).drop_nulls("started_at")
        logged = site.jobs.filter(pl.col("started_at").is_not_null(), pl.col("user") != NOBODY)
        numbers = logged.select("job_id", application=application_names(logged).rank("dense").cast(pl.Int64) - 1)
        moved = moved.join(numbers, on="job_id", how="left", maintain_order="left")
        hidden = site.jobs.filter(user=NOBODY).select("job_id", is_hidden=True)
        moved = moved.join(hidden, on="job_id", how="left", maintain_order="left")
        own = moved.filter(pl.col("is_hidden"))
        counts = (
            own.group_by("name", "burst").len().group_by("name").agg(pl.col("len").max(), pl.col("burst").n_unique())
        )
        return cls(
            [f"{NOBODY}/{name}" if is_hidden else name for name, is_hidden in moved.select("name", "is_hidden").rows()],
            moved["application"].fill_null(-1).to_numpy(),
            seconds(site, moved["started_at"]),
            seconds(site, moved["ended_at"].fill_null(moved["started_at"])),
            floats(moved["moved_bytes"]),
            # a train's bursts are an appearance each, and a run of the others'
            {f"{NOBODY}/{name}": most if most > 1 else bursts for name, most, bursts in counts.rows()},
        )

    def owner_of(self, start_s: Reals, end_s: Reals, inexact_s: float) -> tuple[str, int, Ints]:
        """Return whose some appearances are, how many of them, and the application of each, -1 for none.

        An appearance is of whose transfer begins with it, and of who moved most in it: of one with several bursts the
        pauses are part, too, in which others may move more.
        """
        own = np.minimum(end_s[:, None], self.end_s) - np.maximum(start_s[:, None], self.start_s)
        share = np.clip(own, 0.0, None) / np.maximum(self.end_s - self.start_s, 1e-6) * self.moved_bytes
        begins = np.where(np.abs(self.start_s - start_s[:, None]) <= inexact_s, self.moved_bytes, 0.0)
        most, is_any = share.argmax(axis=1), share.max(axis=1) > 0
        pairs = zip(self._names(begins), self._names(share), strict=True)
        names = Counter(name for pair in pairs for name in dict.fromkeys(pair))
        name, count = max(names.items(), key=lambda each: (each[0] != _NO_ONE, each[1]))
        return name, count, np.where(is_any, self.application[most], -1)

    def _names(self, volume_bytes: Reals) -> list[str]:
        """Return whose most is of each row (n, transfers)."""
        most, is_any = volume_bytes.argmax(axis=1), volume_bytes.max(axis=1) > 0
        return [self.owner[each] if has else _NO_ONE for each, has in zip(most, is_any, strict=True)]


def held(site: Site, direction: Direction, found: list[DetectedPattern], step_s: float) -> Iterator[dict[str, object]]:
    """Yield what is found, held against whose bursts they were.

    A row each planted application, and each pattern that is none of them. what: `planted` or `other`; name: the planted
    one, or whose most of a pattern's appearances are; occurrence_count, found_count: how often a planted one appeared,
    and how many of these the pattern has that was found of it; outcome: what is said of the pattern, `missed` where
    there is none; is_right: whether it is of the application that is named.
    """
    truth = _Truth.of(site, direction)
    best: dict[str, tuple[int, str]] = {}
    for pattern, cooccurrence in ((detected.pattern, detected.cooccurrence) for detected in found):
        owner, count, applications = truth.owner_of(pattern.started * step_s, pattern.ended * step_s, _INEXACT * step_s)
        is_own = count >= _MOST * len(pattern.started)
        if is_own and owner in truth.appearances:
            best[owner] = max(best.get(owner, (0, "missed")), (count, cooccurrence.outcome))
            continue
        is_right = (
            float((applications == cooccurrence.application).mean()) > 0.5 if cooccurrence.application >= 0 else None
        )
        yield {
            "what": "other",
            "name": owner if is_own else "several",
            "occurrence_count": len(pattern.started),
            "found_count": count,
            "outcome": cooccurrence.outcome,
            "is_right": is_right,
        }
    for owner, appearances in truth.appearances.items():
        if appearances >= LEAST_APPEARANCES:
            count, outcome = best.get(owner, (0, "missed"))
            told = {"what": "planted", "name": owner, "occurrence_count": appearances, "found_count": count}
            yield told | {"outcome": outcome, "is_right": None}
