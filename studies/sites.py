"""Simulate sites of several families and noise levels, as the nightly run observes them, with ground truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, offsets_of, places_of
from iosig.transforms.attribution.runs import Runs
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.synthetic.site import Site, SiteParams, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS, DIRECTIONS, Application, Direction
from iosig.transforms.unattributed_patterns.residual import resample_polls

#: background activity, as multiples of the default
LEVELS = {"calm": 0.3, "busy": 1.0, "stormy": 3.0}
DAYS = 2.0
#: description and parameters of each family; fixed before any method was evaluated on them
FAMILIES: dict[str, tuple[str, SiteParams]] = {
    "usual": ("like the demo", SiteParams()),
    "drifting": ("runs differ by 5 % in their pace instead of 1.5 %", SiteParams(drift_ratio=0.05)),
    "fair": ("transfers share the bandwidth without seek losses", SiteParams(seek_loss_ratio=0.0)),
    "seeks": ("each concurrent transfer reduces a transfer's speed by half", SiteParams(seek_loss_ratio=0.5)),
    "stopping": ("30 % of the runs stop early and restart", SiteParams(stop_ratio=0.3)),
    "coarse": ("polls come every 10 s instead of 2", SiteParams(interval_s=10.0)),
}
MINUTE_S = 60.0
#: minimum number of runs for a signature (IOSI, section 5.1), the same as in the nightly run
_MIN_RUNS = 5


@dataclass(frozen=True, slots=True)
class LoggedJobs:
    """A site's jobs (n) as the job log shows them; times in seconds since the left edge of the first poll.

    application (n): index of the application. end_s (n): the end of the site for running jobs. is_complete (n): whether
    the job has ended.
    """

    application: Ints
    node_count: Reals
    start_s: Reals
    end_s: Reals
    is_complete: Bools


@dataclass(frozen=True, slots=True)
class SiteSignatures:
    """Signatures of a site's applications (m) in one direction; None for applications without one."""

    signatures: tuple[Signature | None, ...]
    expected_correlation: Reals

    @property
    def has_signature(self) -> Bools:
        """Mask of the applications that have a signature (m)."""
        return np.array([signature is not None for signature in self.signatures], np.bool_)

    def get(self, application: int) -> Signature:
        """Return an application's signature; the application must have one."""
        signature = self.signatures[application]
        assert signature is not None
        return signature


@dataclass(frozen=True, slots=True)
class SiteTraffic:
    """A site's traffic per step in one direction, its jobs (n), and the true bytes by job and minute."""

    traffic_bytes: Reals
    interval_s: float
    logged: LoggedJobs
    truth_bytes: Reals

    @property
    def minute_count(self) -> int:
        """Number of minutes covered by the truth."""
        return int(self.truth_bytes.shape[1])

    @property
    def minutes_bytes(self) -> Reals:
        """Total bytes moved in each minute."""
        return _sum_by_index(self._minute(np.arange(len(self.traffic_bytes))), self.traffic_bytes, (self.minute_count,))

    def sum_by_minute(self, step: Ints, volume_bytes: Reals, job: Ints) -> Reals:
        """Sum bytes given by step and job into an array (jobs, minutes)."""
        return _sum_by_index(job * self.minute_count + self._minute(step), volume_bytes, self.truth_bytes.shape)

    def resample(self, step_s: float) -> tuple[Reals, Ints]:
        """Resample the traffic to steps of `step_s` and return it with the minute index of each step."""
        edges: Reals = np.arange(1.0, len(self.traffic_bytes) + 1.0) * self.interval_s
        traffic = resample_polls(edges, np.full(len(edges), self.interval_s), self.traffic_bytes, 0.0, step_s)
        minute = (np.arange(len(traffic)) * step_s / MINUTE_S).astype(np.int64)
        return traffic, np.minimum(minute, self.minute_count - 1)

    def _minute(self, step: Ints) -> Ints:
        minute: Ints = np.minimum((step * self.interval_s / MINUTE_S).astype(np.int64), self.minute_count - 1)
        return minute


def draw_site(family: str, level: str, seed: int) -> dict[Direction, SiteTraffic]:
    """Simulate a site and observe it in each direction."""
    return observe_site(simulate_site(family, level, seed, DAYS))


def simulate_site(
    family: str, level: str, seed: int, days: float, applications: Sequence[Application] = APPLICATIONS
) -> Site:
    """Simulate a site of a family and background level, without lost polls."""
    params = replace(FAMILIES[family][1], seed=seed, days=days, foreign_level=LEVELS[level], fault_level=0.0)
    return simulate(params, applications)


def select_logged_jobs(site: Site, unlogged: Sequence[str] = ()) -> pl.DataFrame:
    """Return the jobs that have started, sorted by start time, without those of the `unlogged` users."""
    is_logged = pl.col("started_at").is_not_null() & ~pl.col("user").is_in(list(unlogged))
    return site.jobs.filter(is_logged).sort("started_at", "job_id")


def observe_site(site: Site, unlogged: Sequence[str] = ()) -> dict[Direction, SiteTraffic]:
    """Return traffic, jobs and truth in each direction; jobs of the `unlogged` users are not in the log."""
    jobs = select_logged_jobs(site, unlogged)
    logged = _collect_jobs(site, jobs)
    return {
        direction: SiteTraffic(
            site.traffic[f"{direction}_bytes"].to_numpy().astype(np.float64),
            site.params.interval_s,
            logged,
            _sum_by_job_and_minute(site, jobs, direction),
        )
        for direction in DIRECTIONS
    }


def _collect_jobs(site: Site, jobs: pl.DataFrame) -> LoggedJobs:
    return LoggedJobs(
        name_applications(jobs).rank("dense").to_numpy().astype(np.int64) - 1,
        jobs["node_count"].to_numpy().astype(np.float64),
        to_seconds(site, jobs["started_at"]),
        to_seconds(site, jobs["ended_at"].fill_null(_last_poll_at(site))),
        jobs["ended_at"].is_not_null().to_numpy(),
    )


def name_applications(jobs: pl.DataFrame) -> pl.Series:
    """Return the application identifier of each job: user, job name and node count."""
    name = pl.concat_str("user", "job_name", pl.col("node_count").cast(pl.String), separator="/")
    return jobs.select(name).to_series()


def to_seconds(site: Site, instants: pl.Series) -> Reals:
    """Convert instants to seconds since the left edge of the first poll."""
    seconds: Reals = (instants - site.params.start).dt.total_microseconds().to_numpy() / 1e6 + site.params.interval_s
    return seconds


def _last_poll_at(site: Site) -> datetime:
    """Return the time of the site's last poll."""
    return site.params.start + timedelta(seconds=(site.params.tick_count - 1) * site.params.interval_s)


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers (m) of jobs in one direction: start and end [s] and bytes, moved at a constant rate.

    job (m): row index of the transfer's job.
    """

    job: Ints
    begun_s: Reals
    end_s: Reals
    volume_bytes: Reals

    @classmethod
    def from_site(cls, site: Site, jobs: pl.DataFrame, direction: Direction) -> Transfers:
        """Collect the transfers of a site's jobs, sorted by job."""
        place = jobs.select("job_id").with_row_index("job")
        moved = site.bursts.filter(direction=direction).drop_nulls("started_at").join(place, on="job_id", how="inner")
        moved = moved.sort("job", maintain_order=True)
        start_s, end_s = (
            to_seconds(site, moved[name].fill_null(_last_poll_at(site))) for name in ("started_at", "ended_at")
        )
        # avoid a division by zero for instantaneous transfers
        end_s = np.maximum(end_s, start_s + 1e-4)
        volume = moved["moved_bytes"].to_numpy().astype(np.float64)
        return cls(moved["job"].to_numpy().astype(np.int64), start_s, end_s, volume)

    def sum_in_steps(self, first: Ints, counts: Ints, step_s: float) -> Reals:
        """Sum each job's bytes into its steps; returns the jobs' steps concatenated, shape (sum of counts,).

        first, counts (n): first step and number of steps of each job. Bytes outside this range count in its nearest
        step.
        """
        start, end = self.begun_s / step_s, self.end_s / step_s
        low = np.floor(start).astype(np.int64)
        step_counts = np.ceil(end).astype(np.int64) - low
        transfer = np.repeat(np.arange(len(step_counts)), step_counts)
        step = places_of(low, step_counts)
        share = (np.minimum(step + 1, end[transfer]) - np.maximum(step, start[transfer])) / (end - start)[transfer]
        offsets, job = offsets_of(counts), self.job[transfer]
        at = offsets[job] + np.clip(step - first[job], 0, counts[job] - 1)
        return _sum_by_index(at, self.volume_bytes[transfer] * share, (int(offsets[-1]),))


def _sum_by_job_and_minute(site: Site, jobs: pl.DataFrame, direction: Direction) -> Reals:
    """Return the true bytes of each job in each minute, shape (jobs, minutes)."""
    counts = np.full(jobs.height, round(site.params.days * 1440))
    moved = Transfers.from_site(site, jobs, direction).sum_in_steps(np.zeros_like(counts), counts, MINUTE_S)
    return moved.reshape(jobs.height, -1)


def _sum_by_index(at: Ints, values: Reals, shape: tuple[int, ...]) -> Reals:
    """Sum values by flat index into an array of the given shape."""
    summed: Reals = np.bincount(at, values, math.prod(shape)).astype(np.float64).reshape(shape)
    return summed


def extract_site_signatures(traffic: SiteTraffic) -> SiteSignatures:
    """Extract signatures from a site's traffic as the nightly run does: the best default method per application."""
    logged = traffic.logged
    order = np.flatnonzero(logged.is_complete)
    order = order[np.argsort(logged.application[order], kind="stable")]
    counts = np.bincount(logged.application[order], minlength=int(logged.application.max()) + 1)
    enough = np.flatnonzero(counts >= _MIN_RUNS)
    order = order[np.isin(logged.application[order], enough)]
    sets = _build_sample_sets(traffic, order, counts[enough])
    signatures, correlations = select_default(methods.extract_signatures(sets, methods=methods.DEFAULT_METHODS))
    by_application: list[Signature | None] = [None] * len(counts)
    expected_correlation = np.zeros(len(counts))
    for application, signature, correlation in zip(enough, signatures, correlations, strict=True):
        if signature.outcome == "extracted":
            by_application[application] = signature
            # as in the nightly run: methods without an expected correlation count as 0.5
            expected_correlation[application] = np.nan_to_num(correlation, nan=0.5)
    return SiteSignatures(tuple(by_application), expected_correlation)


def select_default(answers: Sequence[methods.MethodSignatures]) -> tuple[list[Signature], Reals]:
    """Select the published signature of each application (m), and its expected correlation (m).

    It is that of the default method with the best expected correlation.
    """
    defaults = {answer.method: answer for answer in answers if answer.method in methods.DEFAULT_METHODS}
    selected = list(enumerate(methods.select_methods(list(defaults.values()))))
    correlations: Reals = np.array([defaults[name].expected_correlation[place] for place, name in selected])
    return [defaults[name].signatures[place] for place, name in selected], correlations


def _build_sample_sets(traffic: SiteTraffic, runs: Ints, counts: Ints) -> SampleSets:
    """Cut the runs' samples from the traffic; the runs must be grouped by application."""
    samples, start_s = extract_samples(traffic, runs)
    started, ended = traffic.logged.start_s[runs], traffic.logged.end_s[runs]
    intervals = np.full(len(counts), traffic.interval_s)
    return SampleSets(samples, start_s - started, ended - started, intervals, offsets_of(counts))


def extract_samples(traffic: SiteTraffic, runs: Ints) -> tuple[Ragged, Reals]:
    """Return the traffic during some runs (n) [B/s], and the start of the first step of each run (n) [s]."""
    first, after = find_run_steps(traffic, runs)
    pieces = [traffic.traffic_bytes[begin:end] / traffic.interval_s for begin, end in zip(first, after, strict=True)]
    samples = Ragged(np.concatenate([np.zeros(0), *pieces]), offsets_of(after - first))
    start_s = first.astype(np.float64) * traffic.interval_s
    return samples, start_s


def find_run_steps(traffic: SiteTraffic, runs: Ints) -> tuple[Ints, Ints]:
    """Return the first step of each run (n), and the step after its last.

    A poll belongs to a run if its right edge lies within the run or at most one interval after it.
    """
    started, ended = (
        instants_s[runs] / traffic.interval_s for instants_s in (traffic.logged.start_s, traffic.logged.end_s)
    )
    first = np.maximum(np.ceil(started).astype(np.int64) - 1, 0)
    return first, np.clip(np.ceil(ended).astype(np.int64), first, len(traffic.traffic_bytes))


def plan_runs(traffic: SiteTraffic, signatures: SiteSignatures) -> tuple[Ints, Runs]:
    """Return the jobs of applications with a signature, and their expected bursts."""
    logged, interval_s = traffic.logged, traffic.interval_s
    jobs = np.flatnonzero(signatures.has_signature[logged.application])
    job_signatures = [signatures.get(int(application)) for application in logged.application[jobs]]
    bursts = tuple(
        np.concatenate([np.zeros(0), *(getattr(signature.bursts, name) / size for signature in job_signatures)])
        for name, size in (("start_s", interval_s), ("end_s", interval_s), ("volume_bytes", 1.0))
    )
    durations = np.array([signature.duration_s for signature in job_signatures])
    times = (logged.start_s[jobs] / interval_s, logged.end_s[jobs] / interval_s, durations / interval_s)
    application = logged.application[jobs]
    offsets = offsets_of([len(signature.bursts.start_s) for signature in job_signatures])
    return jobs, Runs.from_signatures(
        times, (signatures.expected_correlation[application], application), offsets, (bursts[0], bursts[1], bursts[2])
    )
