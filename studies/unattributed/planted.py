"""Plant applications without log entries on a site, and match them with the patterns in unattributed traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from iosig.estimates.columns import floats
from iosig.flows.steps.unattributed_patterns import WINDOW_DAYS
from iosig.studies.sites import LoggedJobs, SiteTraffic, Transfers, name_applications, simulate_site, to_seconds
from iosig.transforms.arrays import Bools, Ints, Reals, rows_of
from iosig.transforms.synthetic.site import Site
from iosig.transforms.synthetic.workload import APPLICATIONS, DAY_S, GB, Application, Burst, Direction, bursts, stream
from iosig.transforms.unattributed_patterns.cooccurrence import Runs
from iosig.transforms.unattributed_patterns.finding import find_patterns
from iosig.transforms.unattributed_patterns.patterns import DetectedPattern
from iosig.transforms.unattributed_patterns.residual import choose_step_s, compute_residual

#: user of the planted applications, which are not in the log
UNLOGGED_USER = "nobody"
#: days that a nightly run analyzes
DAYS = float(WINDOW_DAYS)
#: number of days to which the run counts of applications refer
_WEEK_DAYS = 7.0
#: planted applications with fewer occurrences are not evaluated
MIN_OCCURRENCES = 6
#: minimum fraction of a pattern's occurrences that belong to its owner
_MIN_OWNER_RATIO = 0.7
#: maximum distance between the starts of a transfer and an occurrence [steps]
_TOLERANCE_STEPS = 2.5
_BACKGROUND = "background"


def plant_applications(seed: int, days: float) -> tuple[Application, ...]:
    """Draw five unlogged applications: three periodic ones, and two with random times.

    Two periodic ones last as long as the site, one a third of this time. The others have one and three bursts, 8 to 14
    times per week.
    """
    rng = stream(seed, "planted")
    directions: list[Direction] = ["write", "read", "write"]
    trains = [
        _draw_train(f"train_{direction}_{number}", direction, rng, days * DAY_S * share)
        for number, (direction, share) in enumerate(zip(directions, (0.98, 0.98, 0.33), strict=True))
    ]
    single = Burst(
        5.0, rng.uniform(30, 150) * GB, rng.uniform(1.0, 3.0) * GB, "read" if rng.random() < 0.5 else "write"
    )
    volumes, peaks = rng.uniform(20, 120, 3) * GB, rng.uniform(0.8, 2.5, 3) * GB
    start_s = 5.0 + np.cumsum([0.0, *(volumes[:2] / peaks[:2] * 1.4 + rng.uniform(60, 400, 2))])
    three_bursts = tuple(
        Burst(*burst) for burst in zip(start_s.tolist(), volumes.tolist(), peaks.tolist(), strict=True)
    )
    sporadic = (_make_sporadic("single", (single,), rng), _make_sporadic("three", three_bursts, rng))
    return (*trains, *(scale_run_count(application, days) for application in sporadic))


def _draw_train(name: str, direction: Direction, rng: np.random.Generator, span_s: float) -> Application:
    every_s, peak = float(rng.choice([600, 900, 1200, 1800, 3600])), rng.uniform(0.7, 2.2)
    count = int(span_s / every_s) - 1
    volume = peak * rng.uniform(10, 40)
    return Application(
        name, UNLOGGED_USER, "", 1, span_s, bursts(every_s / 2, every_s, [volume] * count, [peak], direction), 1
    )


def _make_sporadic(name: str, run_bursts: tuple[Burst, ...], rng: np.random.Generator) -> Application:
    return Application(name, UNLOGGED_USER, "", 1, run_bursts[-1].end_s + 5.0, run_bursts, int(rng.integers(8, 15)))


def draw_site(family: str, level: str, seed: int) -> Site:
    """Simulate a site of a family and level with planted applications."""
    logged = (scale_run_count(application, DAYS) for application in APPLICATIONS)
    return simulate_site(family, level, seed, DAYS, (*logged, *plant_applications(seed, DAYS)))


def scale_run_count(application: Application, days: float) -> Application:
    """Scale an application's run count to sites longer than a week."""
    return replace(application, run_count=round(application.run_count * max(days / _WEEK_DAYS, 1.0)))


def compute_site_residual(traffic: SiteTraffic, attributed_bytes: Reals) -> tuple[Reals, float]:
    """Compute the residual of a site in steps, and the length of a step.

    attributed_bytes: by job and minute.
    """
    step_s = choose_step_s(traffic.interval_s)
    step_bytes, minute = traffic.resample(step_s)
    return compute_residual(step_bytes, attributed_bytes.sum(axis=0), minute, step_s), step_s


def compute_oracle_residual(traffic: SiteTraffic, moved: Transfers, is_known: Bools) -> tuple[Reals, float]:
    """Compute the residual as if the bytes of some jobs were known exactly, and those of the others not at all.

    moved: transfers of all jobs (n) in this direction; is_known (n): mask of the jobs with known bytes.
    """
    step_s = choose_step_s(traffic.interval_s)
    step_bytes, minute = traffic.resample(step_s)
    known_transfers = rows_of(moved, is_known[moved.job])
    as_one_job = replace(known_transfers, job=np.zeros_like(known_transfers.job))
    known_bytes = as_one_job.sum_in_steps(np.zeros(1, np.int64), np.array([len(step_bytes)]), step_s)
    return compute_residual(
        np.maximum(step_bytes - known_bytes, 0.0), np.zeros(traffic.minute_count), minute, step_s
    ), step_s


def detect_patterns(residual: Reals, step_s: float, logged: LoggedJobs) -> list[DetectedPattern]:
    """Detect patterns in the residual, and the applications that co-occur with them."""
    return find_patterns(residual, step_s, Runs(logged.application, logged.start_s / step_s, logged.end_s / step_s))


@dataclass(frozen=True, slots=True)
class _SiteTransfers:
    """All transfers (m) of a site in one direction: owner, times in seconds, and bytes.

    application (m): index among the logged applications, -1 if none. occurrences: number per planted application.
    """

    owner: list[str]
    application: Ints
    start_s: Reals
    end_s: Reals
    moved_bytes: Reals
    occurrences: dict[str, int]

    @classmethod
    def from_site(cls, site: Site, direction: Direction) -> _SiteTransfers:
        moved = site.bursts.filter(direction=direction).drop_nulls("started_at")
        logged = site.jobs.filter(pl.col("started_at").is_not_null(), pl.col("user") != UNLOGGED_USER)
        numbers = logged.select("job_id", application=name_applications(logged).rank("dense").cast(pl.Int64) - 1)
        moved = moved.join(numbers, on="job_id", how="left", maintain_order="left")
        hidden = site.jobs.filter(user=UNLOGGED_USER).select("job_id", is_hidden=True)
        moved = moved.join(hidden, on="job_id", how="left", maintain_order="left")
        hidden_bursts = moved.filter(pl.col("is_hidden"))
        counts = (
            hidden_bursts.group_by("name", "burst")
            .len()
            .group_by("name")
            .agg(pl.col("len").max(), pl.col("burst").n_unique())
        )
        return cls(
            [
                f"{UNLOGGED_USER}/{name}" if is_hidden else name
                for name, is_hidden in moved.select("name", "is_hidden").rows()
            ],
            moved["application"].fill_null(-1).to_numpy(),
            to_seconds(site, moved["started_at"]),
            to_seconds(site, moved["ended_at"].fill_null(moved["started_at"])),
            floats(moved["moved_bytes"]),
            # each burst of a periodic application is an occurrence; for the others, each run is
            {
                f"{UNLOGGED_USER}/{name}": max_count if max_count > 1 else bursts
                for name, max_count, bursts in counts.rows()
            },
        )

    def find_owner(self, start_s: Reals, end_s: Reals, inexact_s: float) -> tuple[str, int, Ints]:
        """Return the owner of most occurrences, their number, and the application of each occurrence (-1: none).

        An occurrence belongs to the transfer that starts with it, or else to the one that moved the most bytes during
        it. The start takes precedence, since others may move more between the bursts of an occurrence.
        """
        overlap_s = np.minimum(end_s[:, None], self.end_s) - np.maximum(start_s[:, None], self.start_s)
        share = np.clip(overlap_s, 0.0, None) / np.maximum(self.end_s - self.start_s, 1e-6) * self.moved_bytes
        begins = np.where(np.abs(self.start_s - start_s[:, None]) <= inexact_s, self.moved_bytes, 0.0)
        largest, is_any = share.argmax(axis=1), share.max(axis=1) > 0
        pairs = zip(self._find_largest_owners(begins), self._find_largest_owners(share), strict=True)
        names = Counter(name for pair in pairs for name in dict.fromkeys(pair))
        name, count = max(names.items(), key=lambda entry: (entry[0] != _BACKGROUND, entry[1]))
        return name, count, np.where(is_any, self.application[largest], -1)

    def _find_largest_owners(self, volume_bytes: Reals) -> list[str]:
        """Return the owner of the largest value in each row (n, transfers)."""
        largest, is_any = volume_bytes.argmax(axis=1), volume_bytes.max(axis=1) > 0
        return [
            self.owner[index] if has_owner else _BACKGROUND for index, has_owner in zip(largest, is_any, strict=True)
        ]


def match_patterns(
    site: Site, direction: Direction, detected_patterns: list[DetectedPattern], step_s: float
) -> Iterator[dict[str, object]]:
    """Match the detected patterns with the true owners of their bursts.

    Yields one row per planted application, and per other pattern. what: `planted` or `other`; name: the planted
    application, or the owner of most occurrences; occurrence_count, found_count: occurrences, and those in the detected
    pattern; outcome: of the pattern, `missed` if none; is_right: whether the attributed application is correct.
    """
    truth = _SiteTransfers.from_site(site, direction)
    best: dict[str, tuple[int, str]] = {}
    for pattern, cooccurrence in ((detected.pattern, detected.cooccurrence) for detected in detected_patterns):
        owner, count, applications = truth.find_owner(
            pattern.started * step_s, pattern.ended * step_s, _TOLERANCE_STEPS * step_s
        )
        is_own = count >= _MIN_OWNER_RATIO * len(pattern.started)
        if is_own and owner in truth.occurrences:
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
    for owner, occurrence_count in truth.occurrences.items():
        if occurrence_count >= MIN_OCCURRENCES:
            count, outcome = best.get(owner, (0, "missed"))
            row = {"what": "planted", "name": owner, "occurrence_count": occurrence_count, "found_count": count}
            yield row | {"outcome": outcome, "is_right": None}
