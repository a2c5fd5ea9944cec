"""Extract samples from simulated sites with known applications, one sample set per application."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from iosig.studies.signatures.mechanisms import drain_cache
from iosig.transforms.arrays import Reals, cut
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.synthetic.site import Site, SiteParams, signature, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS, Application, bursts

#: background activity, as multiples of the default
LEVELS = {"calm": 1.0, "busy": 2.0, "stormy": 4.0}
#: variation of computing times between runs; see `workload.Workload`, and the study's page
DRIFT_RATIO = 0.003
#: S3D in IOSI, section 6.2: each of 18,000 processes writes 3.4 MB per checkpoint; peaks and their variation are ours
S3D = Application(
    "s3d", "ben", "prj102", 1125, 3600.0, bursts(200, 440, [18_000 * 3.4e-3] * 8, [5.5, 4.2, 6.0, 4.8], "write")
)
_CHOSEN = ("ior_a", "ior_b", "ior_c", "flash")
#: studied applications: those of IOSI's sections 6.1 and 6.2, and one without a regular step
STUDIED: tuple[Application, ...] = tuple(
    S3D if name == "s3d" else next(known for known in APPLICATIONS if known.name == name)
    for name in (*_CHOSEN[:3], "s3d", *_CHOSEN[3:])
)
#: names of the paper's IOR jobs
IOR = _CHOSEN[:3]


@dataclass(frozen=True, slots=True)
class Truth:
    """Undisturbed rate of an application per second, and its bursts."""

    bytes_per_s: Reals
    bursts: Bursts

    @classmethod
    def from_application(cls, application: Application, drain_s: float = 0.0) -> Truth:
        """Compute the undisturbed write rate and the bursts of an application, after a cache that drains in `drain_s`.

        A burst then ends when a quarter of its rate is left.
        """
        written = [burst for burst in application.bursts if burst.direction == "write"]
        starts = np.array([burst.offset_s for burst in written])
        ends = np.array([burst.end_s for burst in written])
        volumes = np.array([burst.volume_bytes for burst in written])
        drained_s = drain_s * np.log(4.0)
        # peak times are in the middle of plateaus, since a burst keeps its peak rate for most of its duration
        return cls(
            drain_cache(signature(application, "write"), drain_s),
            Bursts(starts, (starts + ends) / 2.0, ends + drained_s, volumes, np.full(len(starts), np.nan)),
        )


@dataclass(frozen=True, slots=True)
class LabeledSamples:
    """Sample sets of applications with known truth, in order.

    drain_s: time constant of a cache between the runs and the servers [s].
    """

    applications: tuple[Application, ...]
    sets: SampleSets
    drain_s: float = 0.0

    @property
    def truths(self) -> list[Truth]:
        """Undisturbed rate and bursts of each application, as servers see them."""
        return [Truth.from_application(application, self.drain_s) for application in self.applications]


@dataclass(frozen=True, slots=True)
class SiteSetting:
    """Parameters of a simulated site.

    foreign_level, fault_level, drift_ratio, days: see `synthetic.SiteParams`. In five days, ten runs of each of five
    applications take a quarter of the time, so they also interfere with each other.
    """

    foreign_level: float = 1.0
    fault_level: float = 0.0
    drift_ratio: float = DRIFT_RATIO
    days: float = 5.0
    applications: tuple[Application, ...] = STUDIED

    def draw(self, seed: int) -> LabeledSamples:
        """Simulate a site and extract the samples of its applications' runs."""
        site = simulate(self._params(seed), self.applications)
        interval_s = site.params.interval_s
        rates = compute_poll_rates(site) if self.fault_level else site.traffic["write_bytes"].to_numpy() / interval_s
        return LabeledSamples(
            self.applications,
            SampleSets.concatenate(
                [_select_application(site, rates, application.name) for application in self.applications]
            ),
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
        # without lost polls, only the total traffic matters, so simulate one controller with the total bandwidth
        bandwidth = params.controller_count * params.controller_bytes_per_s
        return replace(params, controller_count=1, controller_bytes_per_s=bandwidth)


def compute_poll_rates(site: Site) -> Reals:
    """Return a site's write rate in each step from its polls (ticks); NaN if no controller reported.

    As `sql/samples/grid_steps.sql` does: the sum of the reported rates, each poll once.
    """
    polls = site.polls.unique(["polled_at", "controller"]).group_by("polled_at")
    summed = polls.agg(pl.col("write_bytes_per_s").sum().cast(pl.Float64))
    joined = site.traffic.select("polled_at").join(summed, on="polled_at", how="left", maintain_order="left")
    rates: Reals = joined["write_bytes_per_s"].fill_null(float("nan")).to_numpy()
    return rates


def _select_application(site: Site, rates: Reals, name: str) -> SampleSet:
    """Extract the samples of one application's completed runs."""
    runs = site.jobs.join(site.runs.filter(application=name), on="job_id").filter(pl.col("ended_at").is_not_null())
    site_start_s = site.params.start.timestamp()
    start_s, end_s = (runs[f"{end}_at"].dt.epoch("us").to_numpy() / 1e6 - site_start_s for end in ("started", "ended"))
    return extract_samples(rates, site.params.interval_s, start_s, end_s)


def extract_samples(rates: Reals, interval_s: float, start_s: Reals, end_s: Reals) -> SampleSet:
    """Extract runs (n) from rates with right edges at 0, interval_s, 2 interval_s ... (ticks).

    As `sql/samples/runs.sql` does: a step belongs to a run if its right edge lies in [start_s, end_s + interval_s).
    """
    first = np.ceil(start_s / interval_s).astype(np.int64)
    last = np.ceil((end_s + interval_s) / interval_s).astype(np.int64) - 1
    samples = cut(rates, first, np.minimum(last, len(rates) - 1))
    return SampleSet(samples, interval_s, (first - 1) * interval_s - start_s, end_s - start_s)


def derive_seed(seed: int, number: int) -> int:
    """Derive the seed of the site with this number; all settings share it, so that they are comparable."""
    return int(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1)[0])
