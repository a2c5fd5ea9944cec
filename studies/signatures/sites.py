"""Where the study's samples come from: simulated sites whose applications are known, one sample set for each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from iosig.transforms.arrays import Reals, cut
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.synthetic.site import Site, SiteParams, signature, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS, Application, bursts

#: other users' activity as multiples of the usual, by the names of the study
LEVELS = {"calm": 1.0, "busy": 2.0, "stormy": 4.0}
#: what one run's computing differs from another's: see `workload.Workload`, and the study's page
DRIFT_RATIO = 0.003
#: IOSI, section 6.2: each of 18,000 processes writes 3.4 MB at a checkpoint. Peaks and their unevenness are ours.
S3D = Application(
    "s3d", "ben", "prj102", 1125, 3600.0, bursts(200, 440, [18_000 * 3.4e-3] * 8, [5.5, 4.2, 6.0, 4.8], "write")
)
_CHOSEN = ("ior_a", "ior_b", "ior_c", "flash")
#: those of IOSI's section 6.1, of its section 6.2, and one without a regular step
STUDIED: tuple[Application, ...] = tuple(
    S3D if name == "s3d" else next(known for known in APPLICATIONS if known.name == name)
    for name in (*_CHOSEN[:3], "s3d", *_CHOSEN[3:])
)
#: those that are the paper's IOR jobs
IOR = _CHOSEN[:3]


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of an application: its mean rate in each second of a run alone, and its bursts."""

    bytes_per_s: Reals
    bursts: Bursts

    @classmethod
    def of(cls, application: Application) -> Truth:
        """Return what an application writes alone."""
        written = [burst for burst in application.bursts if burst.direction == "write"]
        starts = np.array([burst.offset_s for burst in written])
        ends = np.array([burst.end_s for burst in written])
        volumes = np.array([burst.volume_bytes for burst in written])
        # the middle of a plateau: a burst holds its peak for most of its time
        return cls(
            signature(application, "write"),
            Bursts(starts, (starts + ends) / 2.0, ends, volumes, np.full(len(starts), np.nan)),
        )


@dataclass(frozen=True, slots=True)
class Drawn:
    """Sample sets of applications whose truth is known, in order."""

    applications: tuple[Application, ...]
    sets: SampleSets

    @property
    def truths(self) -> list[Truth]:
        """What is true of each."""
        return [Truth.of(application) for application in self.applications]


@dataclass(frozen=True, slots=True)
class SiteSetting:
    """One kind of simulated site.

    foreign_level, fault_level, drift_ratio, days: see `synthetic.SiteParams`. In five days, ten runs of each of five
    applications take a quarter of the time: they are in each other's way too.
    """

    foreign_level: float = 1.0
    fault_level: float = 0.0
    drift_ratio: float = DRIFT_RATIO
    days: float = 5.0
    applications: tuple[Application, ...] = STUDIED

    def drawn(self, seed: int) -> Drawn:
        """Simulate a site and cut the samples of its applications' runs out of its traffic."""
        site = simulate(self._params(seed), self.applications)
        interval_s = site.params.interval_s
        rates = polled_rates(site) if self.fault_level else site.traffic["write_bytes"].to_numpy() / interval_s
        return Drawn(
            self.applications, SampleSets.concatenate([_set_of(site, rates, one.name) for one in self.applications])
        )

    def _params(self, seed: int) -> SiteParams:
        params = SiteParams(
            seed=seed,
            days=self.days,
            foreign_level=self.foreign_level,
            fault_level=self.fault_level,
            drift_ratio=self.drift_ratio,
        )
        if self.fault_level:
            return params
        # Where no poll is lost the traffic is all that is asked for: as much bandwidth, in one controller's polls.
        bandwidth = params.controller_count * params.controller_bytes_per_s
        return replace(params, controller_count=1, controller_bytes_per_s=bandwidth)


def polled_rates(site: Site) -> Reals:
    """Return a site's rate of writing in each step, as its polls tell (ticks): NaN where no controller reported.

    As the night does it (`sql/samples/grid_steps.sql`): the sum of what was reported, each poll once.
    """
    polls = site.polls.unique(["polled_at", "controller"]).group_by("polled_at")
    summed = polls.agg(pl.col("write_bytes_per_s").sum().cast(pl.Float64))
    found = site.traffic.select("polled_at").join(summed, on="polled_at", how="left", maintain_order="left")
    rates: Reals = found["write_bytes_per_s"].fill_null(float("nan")).to_numpy()
    return rates


def _set_of(site: Site, rates: Reals, name: str) -> SampleSet:
    """Return one application's runs that have ended, whatever became of them."""
    ours = site.jobs.join(site.runs.filter(application=name), on="job_id").filter(pl.col("ended_at").is_not_null())
    site_start_s = site.params.start.timestamp()
    start_s, end_s = (ours[f"{end}_at"].dt.epoch("us").to_numpy() / 1e6 - site_start_s for end in ("started", "ended"))
    return set_of(rates, site.params.interval_s, start_s, end_s)


def set_of(rates: Reals, interval_s: float, start_s: Reals, end_s: Reals) -> SampleSet:
    """Cut runs (n) out of rates whose right edges are 0, interval_s, 2 interval_s ... (ticks).

    As `sql/samples/runs.sql` does: a step is a run's if its right edge lies in [start_s, end_s + interval_s).
    """
    first = np.ceil(start_s / interval_s).astype(np.int64)
    last = np.ceil((end_s + interval_s) / interval_s).astype(np.int64) - 1
    samples = cut(rates, first, np.minimum(last, len(rates) - 1))
    return SampleSet(samples, interval_s, (first - 1) * interval_s - start_s, end_s - start_s)


def seed_of(seed: int, number: int) -> int:
    """Return the seed of the study's site of that number: the same for all its settings, so that they compare."""
    return int(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1)[0])
