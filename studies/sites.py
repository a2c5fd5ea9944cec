"""Sites of several families and levels, as a night sees them, and whose bytes they were."""

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
from iosig.transforms.synthetic.workload import DIRECTIONS, Direction
from iosig.transforms.unattributed_patterns.residual import resample_polls

#: other users' activity, in multiples of the usual
LEVELS = {"calm": 0.3, "busy": 1.0, "stormy": 3.0}
DAYS = 2.0
#: of each family what differs from the usual site, and the same in words; fixed before anything was measured on them
FAMILIES: dict[str, tuple[str, SiteParams]] = {
    "usual": ("like the demo", SiteParams()),
    "drifting": ("runs differ by 5 % in their pace instead of 1.5 %", SiteParams(drift_ratio=0.05)),
    "fair": ("transfers share the bandwidth without seek losses", SiteParams(seek_loss_ratio=0.0)),
    "seeks": ("each concurrent transfer reduces a transfer's speed by half", SiteParams(seek_loss_ratio=0.5)),
    "stopping": ("30 % of the runs stop early and restart", SiteParams(stop_ratio=0.3)),
    "coarse": ("polls come every 10 s instead of 2", SiteParams(interval_s=10.0)),
}
MINUTE_S = 60.0
#: IOSI, section 5.1, and the night: fewer runs make no signature
_LEAST_RUNS = 5


@dataclass(frozen=True, slots=True)
class Logged:
    """What is known of a site's jobs (n) without any signature: times in seconds since the first poll's left edge.

    application (n): which of the applications each is of; end_s: the site's end for those that still run.
    is_complete: which of them have ended.
    """

    application: Ints
    node_count: Reals
    start_s: Reals
    end_s: Reals
    is_complete: Bools


@dataclass(frozen=True, slots=True)
class Known:
    """The signatures of a site's applications (m) in one direction, where there are some; else no bursts."""

    signatures: tuple[Signature | None, ...]
    expected_correlation: Reals

    @property
    def has(self) -> Bools:
        """Which applications have a signature (m)."""
        return np.array([one is not None for one in self.signatures], np.bool_)

    def of(self, application: int) -> Signature:
        """Return the signature of an application that has one."""
        one = self.signatures[application]
        assert one is not None
        return one


@dataclass(frozen=True, slots=True)
class Seen:
    """One site in one direction: its traffic in steps, its jobs (n), and the truth by job and minute."""

    traffic_bytes: Reals
    interval_s: float
    logged: Logged
    truth_bytes: Reals

    @property
    def minute_count(self) -> int:
        """How many minutes there are."""
        return int(self.truth_bytes.shape[1])

    @property
    def minutes_bytes(self) -> Reals:
        """The traffic of each minute."""
        return _summed(self._minute(np.arange(len(self.traffic_bytes))), self.traffic_bytes, (self.minute_count,))

    def by_minute(self, step: Ints, volume_bytes: Reals, job: Ints) -> Reals:
        """Return bytes in steps, by job and minute."""
        return _summed(job * self.minute_count + self._minute(step), volume_bytes, self.truth_bytes.shape)

    def in_steps(self, step_s: float) -> tuple[Reals, Ints]:
        """Return the traffic in steps of a length, and the minute of each."""
        edges: Reals = np.arange(1.0, len(self.traffic_bytes) + 1.0) * self.interval_s
        traffic = resample_polls(edges, np.full(len(edges), self.interval_s), self.traffic_bytes, 0.0, step_s)
        minute = (np.arange(len(traffic)) * step_s / MINUTE_S).astype(np.int64)
        return traffic, np.minimum(minute, self.minute_count - 1)

    def _minute(self, step: Ints) -> Ints:
        minute: Ints = np.minimum((step * self.interval_s / MINUTE_S).astype(np.int64), self.minute_count - 1)
        return minute


def drawn(family: str, level: str, seed: int) -> dict[Direction, Seen]:
    """Return a site of a family and level in each direction."""
    return seen(made(family, level, seed, DAYS))


def made(family: str, level: str, seed: int, days: float) -> Site:
    """Return a site of a family and level, whose polls are all there."""
    return simulate(replace(FAMILIES[family][1], seed=seed, days=days, foreign_level=LEVELS[level], fault_level=0.0))


def started(site: Site, unlogged: Sequence[str] = ()) -> pl.DataFrame:
    """Return the jobs that started, in the order in which all else has them; what some users run is not logged."""
    is_logged = pl.col("started_at").is_not_null() & ~pl.col("user").is_in(list(unlogged))
    return site.jobs.filter(is_logged).sort("started_at", "job_id")


def seen(site: Site, unlogged: Sequence[str] = ()) -> dict[Direction, Seen]:
    """Return a site in each direction; what some users run is not logged."""
    jobs = started(site, unlogged)
    logged = _logged(site, jobs)
    return {
        direction: Seen(
            site.traffic[f"{direction}_bytes"].to_numpy().astype(np.float64),
            site.params.interval_s,
            logged,
            _truth(site, jobs, direction),
        )
        for direction in DIRECTIONS
    }


def _logged(site: Site, jobs: pl.DataFrame) -> Logged:
    return Logged(
        application_names(jobs).rank("dense").to_numpy().astype(np.int64) - 1,
        jobs["node_count"].to_numpy().astype(np.float64),
        seconds(site, jobs["started_at"]),
        seconds(site, jobs["ended_at"].fill_null(_ends(site))),
        jobs["ended_at"].is_not_null().to_numpy(),
    )


def application_names(jobs: pl.DataFrame) -> pl.Series:
    """Return the application of each job."""
    name = pl.concat_str("user", "job_name", pl.col("node_count").cast(pl.String), separator="/")
    return jobs.select(name).to_series()


def seconds(site: Site, instants: pl.Series) -> Reals:
    """Return seconds since the left edge of the first poll, of which the site's start is the right one."""
    found: Reals = (instants - site.params.start).dt.total_microseconds().to_numpy() / 1e6 + site.params.interval_s
    return found


def _ends(site: Site) -> datetime:
    """Return when the last poll is."""
    return site.params.start + timedelta(seconds=(site.params.tick_count - 1) * site.params.interval_s)


@dataclass(frozen=True, slots=True)
class Transfers:
    """What jobs moved in one direction (m transfers): whose each was, from when to when [s], and its bytes.

    job (m): the row of its job. A transfer goes evenly from its start to its end.
    """

    job: Ints
    begun_s: Reals
    end_s: Reals
    volume_bytes: Reals

    @classmethod
    def of(cls, site: Site, jobs: pl.DataFrame, direction: Direction) -> Transfers:
        """Return the transfers of a site's jobs, in the order of these."""
        place = jobs.select("job_id").with_row_index("job")
        moved = site.bursts.filter(direction=direction).drop_nulls("started_at").join(place, on="job_id", how="inner")
        moved = moved.sort("job", maintain_order=True)
        begun, ceased = (seconds(site, moved[name].fill_null(_ends(site))) for name in ("started_at", "ended_at"))
        # at once is as long as the shortest of them
        ceased = np.maximum(ceased, begun + 1e-4)
        volume = moved["moved_bytes"].to_numpy().astype(np.float64)
        return cls(moved["job"].to_numpy().astype(np.int64), begun, ceased, volume)

    def on_steps(self, first: Ints, counts: Ints, step_s: float) -> Reals:
        """Return what each job (n) moved in its steps, one job after the other: shape (sum of counts,).

        first, counts (n): the number of each job's first step, and how many it has; what lies beside them is the
        nearest one's.
        """
        begun, ceased = self.begun_s / step_s, self.end_s / step_s
        low = np.floor(begun).astype(np.int64)
        lasting = np.ceil(ceased).astype(np.int64) - low
        of = np.repeat(np.arange(len(lasting)), lasting)
        step = places_of(low, lasting)
        share = (np.minimum(step + 1, ceased[of]) - np.maximum(step, begun[of])) / (ceased - begun)[of]
        offsets, job = offsets_of(counts), self.job[of]
        at = offsets[job] + np.clip(step - first[job], 0, counts[job] - 1)
        return _summed(at, self.volume_bytes[of] * share, (int(offsets[-1]),))


def _truth(site: Site, jobs: pl.DataFrame, direction: Direction) -> Reals:
    """Return what each job moved in each minute."""
    counts = np.full(jobs.height, round(site.params.days * 1440))
    moved = Transfers.of(site, jobs, direction).on_steps(np.zeros_like(counts), counts, MINUTE_S)
    return moved.reshape(jobs.height, -1)


def _summed(at: Ints, values: Reals, shape: tuple[int, ...]) -> Reals:
    """Return sums of values by place, in that shape."""
    summed: Reals = np.bincount(at, values, math.prod(shape)).astype(np.float64).reshape(shape)
    return summed


def signed(seen: Seen) -> Known:
    """Return the signatures that the night would find in a site's traffic: the default of each application."""
    logged = seen.logged
    order = np.flatnonzero(logged.is_complete)
    order = order[np.argsort(logged.application[order], kind="stable")]
    counts = np.bincount(logged.application[order], minlength=int(logged.application.max()) + 1)
    enough = np.flatnonzero(counts >= _LEAST_RUNS)
    order = order[np.isin(logged.application[order], enough)]
    answers = methods.extract_signatures(_sets(seen, order, counts[enough]), methods=methods.DEFAULT_METHODS)
    by_method = {one.method: one for one in answers}
    found: list[Signature | None] = [None] * len(counts)
    expected_correlation = np.zeros(len(counts))
    for place, method in enumerate(methods.select_methods(answers)):
        one = by_method[method]
        if one.signatures[place].outcome == "extracted":
            found[enough[place]] = one.signatures[place]
            # as the night: methods that tell no expected correlation are taken as half sure
            expected_correlation[enough[place]] = np.nan_to_num(one.expected_correlation[place], nan=0.5)
    return Known(tuple(found), expected_correlation)


def _sets(seen: Seen, runs: Ints, counts: Ints) -> SampleSets:
    """Return the samples of runs, those of one application on end."""
    samples, start_s = cut(seen, runs)
    started, ended = seen.logged.start_s[runs], seen.logged.end_s[runs]
    intervals = np.full(len(counts), seen.interval_s)
    return SampleSets(samples, start_s - started, ended - started, intervals, offsets_of(counts))


def cut(seen: Seen, runs: Ints) -> tuple[Ragged, Reals]:
    """Return the traffic that some runs (n) saw [B/s], and when the first step of each begins (n) [s]."""
    first, after = steps_of(seen, runs)
    pieces = [seen.traffic_bytes[begin:end] / seen.interval_s for begin, end in zip(first, after, strict=True)]
    samples = Ragged(np.concatenate([np.zeros(0), *pieces]), offsets_of(after - first))
    start_s = first.astype(np.float64) * seen.interval_s
    return samples, start_s


def steps_of(seen: Seen, runs: Ints) -> tuple[Ints, Ints]:
    """Return the first step of some runs (n), and the one after the last.

    A poll is a run's if its right edge is in the run, or an interval after it.
    """
    started, ended = (each[runs] / seen.interval_s for each in (seen.logged.start_s, seen.logged.end_s))
    first = np.maximum(np.ceil(started).astype(np.int64) - 1, 0)
    return first, np.clip(np.ceil(ended).astype(np.int64), first, len(seen.traffic_bytes))


def planned(seen: Seen, known: Known) -> tuple[Ints, Runs]:
    """Return the jobs that are of applications with signatures, and what each means to do."""
    logged, interval_s = seen.logged, seen.interval_s
    jobs = np.flatnonzero(known.has[logged.application])
    own = [known.of(int(application)) for application in logged.application[jobs]]
    bursts = tuple(
        np.concatenate([np.zeros(0), *(getattr(one.bursts, name) / size for one in own)])
        for name, size in (("start_s", interval_s), ("end_s", interval_s), ("volume_bytes", 1.0))
    )
    durations = np.array([one.duration_s for one in own])
    times = (logged.start_s[jobs] / interval_s, logged.end_s[jobs] / interval_s, durations / interval_s)
    application = logged.application[jobs]
    offsets = offsets_of([len(one.bursts.start_s) for one in own])
    return jobs, Runs.from_signatures(
        times, (known.expected_correlation[application], application), offsets, (bursts[0], bursts[1], bursts[2])
    )
