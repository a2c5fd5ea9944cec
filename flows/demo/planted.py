"""Simulate the demo's site: three days of eight applications, with planted events.

One application changes, two runs collide, and a busy file system makes it worth delaying a start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from iosig.transforms.synthetic.site import Site, SiteParams, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS, DAY_S, Application, Burst, Revision, bursts

DAYS = 3
#: application that writes twice as much in each burst from the last day on
CHANGED = "ior_b"
#: on the last day, most bursts of one run of the victim collide with a run of the culprit
VICTIM, CULPRIT = "gromacs", "enzo"
#: application with a trace of its last run
TRACED = "ior_a"
#: number of runs of each application without planned start times
_RUN_COUNT = 5 * DAYS
_VICTIM_STARTS_H = ((1.5, 6.0, 10.5, 15.0, 19.5), (2.0, 8.0, 14.0, 20.0), (3.0, 12.0, 19.0))
#: start times by day; the last run is still active when the polls end, so that other jobs should wait
_CULPRIT_STARTS_H = ((3.9, 6.12, 11.9, 17.5, 22.0), (5.0, 8.15, 14.1), (12.13, 17.4, 23.6))
#: start times by day; the last day has enough runs for the new version to prevail in the signature
_CHANGED_STARTS_H = ((2.5, 7.2, 12.0, 16.3, 21.0), (6.5, 18.0), (1.0, 5.0, 9.0, 14.5, 17.5, 21.0))
_ENZO = Application(
    CULPRIT, "ivy", "prj107", 2048, 2400.0, bursts(240, 740, [2000] * 3, [5.0], "write"), weight=8.0,
)  # fmt: skip
#: background traffic as a multiple of the default; variation of compute phases between runs, as in the signature study
_FOREIGN_LEVEL, _DRIFT_RATIO = 0.7, 0.003


@dataclass(frozen=True, slots=True)
class Collision:
    """The planted slowdown: the delayed job, the interfering job, and the former's duration with and without it [s]."""

    victim_job_id: str
    culprit_job_id: str
    duration_s: float
    alone_s: float


def demo_site(seed: int) -> Site:
    """Simulate the demo's site."""
    params = SiteParams(seed=seed, days=DAYS, foreign_level=_FOREIGN_LEVEL, drift_ratio=_DRIFT_RATIO)
    return simulate(params, _applications())


def _applications() -> tuple[Application, ...]:
    by_name = {
        application.name: replace(application, run_count=_RUN_COUNT)
        for application in APPLICATIONS
        if application.name != "ior_c"
    }
    by_name[VICTIM] = replace(by_name[VICTIM], starts_s=_starts(_VICTIM_STARTS_H))
    by_name[CHANGED] = _double_bursts(replace(by_name[CHANGED], starts_s=_starts(_CHANGED_STARTS_H)))
    return (*by_name.values(), replace(_ENZO, starts_s=_starts(_CULPRIT_STARTS_H)))


def _starts(hours_of_days: Iterable[Iterable[float]]) -> tuple[float, ...]:
    return tuple(day * DAY_S + 3600.0 * hour for day, hours in enumerate(hours_of_days) for hour in hours)


def _double_bursts(application: Application) -> Application:
    """Double the bytes of an application's bursts from the last day on; its compute phases keep their duration."""
    later, late_s = [], 0.0
    for burst in application.bursts:
        doubled = Burst(burst.offset_s + late_s, 2 * burst.volume_bytes, burst.peak_bytes_per_s, burst.direction)
        late_s += doubled.duration_s - burst.duration_s
        later.append(doubled)
    revision = Revision((DAYS - 1) * DAY_S, application.duration_s + late_s, tuple(later))
    return replace(application, revision=revision)


def collision(site: Site) -> Collision:
    """Find the planted slowdown, and the duration of the victim when it runs alone."""
    instant = pl.lit(site.params.start) + pl.duration(seconds=int((DAYS - 1) * DAY_S + 12 * 3600))
    candidates = site.jobs.filter((pl.col("started_at") - instant).abs() < pl.duration(minutes=15))
    victim, culprit = (
        candidates.row(by_predicate=pl.col("job_name") == name, named=True) for name in (VICTIM, CULPRIT)
    )
    victim_application = next(application for application in site.applications if application.name == VICTIM)
    duration_s = (victim["ended_at"] - victim["started_at"]).total_seconds()
    return Collision(victim["job_id"], culprit["job_id"], duration_s, victim_application.duration_s)


def find_traced_job_id(site: Site) -> str:
    """Find the traced job: the last complete run of its application."""
    runs = site.runs.filter(application=TRACED, kind="complete")
    jobs = site.jobs.join(runs, on="job_id", how="semi").filter(pl.col("ended_at").is_not_null())
    job_id: str = jobs.sort("ended_at")["job_id"][-1]
    return job_id
