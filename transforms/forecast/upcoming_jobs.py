"""Draw the future of running and waiting jobs at random: when they start and end, and how they progress.

The duration of a run is drawn from similar runs that lasted longer than its present age. The waiting time of a job is
drawn from similar jobs that waited longer than the job has so far (conditional distribution given survival). A run that
is longer than its signature is slowed evenly. A run that is clearly shorter than its signature was stopped, or
continues a stopped run, with equal probability.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals
from iosig.transforms.demands import draw_standard_normal, draw_stratified


@dataclass(frozen=True, slots=True)
class JobDrawParams:
    """Parameters of the draws; plausible values, not tuned."""

    #: standard deviation of the delay of a run's bursts [s], in addition to its pace
    delay_s: float = 15.0
    #: a run that is shorter than its signature by more than this fraction was stopped, or continues a stopped run (as
    #: in `attribution.placement`)
    short_ratio: float = 0.08
    #: expected remaining time of a job that exceeds all similar jobs, as a fraction of its present age or waiting time
    overdue_ratio: float = 0.1
    #: standard deviation of the log volume of a run if its signature has an expected correlation of 0
    volume_error: float = 0.5


@dataclass(frozen=True, slots=True)
class UpcomingJobs:
    """n jobs that are running or waiting now.

    Attributes
    ----------
    demand : Ints, shape (n,)
        Index of the job's signature among the demands.
    elapsed_s : Reals, shape (n,)
        Time since the start of the job [s]; NaN if it is waiting.
    waiting_s : Reals, shape (n,)
        Time since the submission of the job [s], if it is waiting.
    min_wait_s, max_wait_s : Reals, shape (n,)
        Earliest and latest start [s from now]; infinite if unknown.
    max_duration_s : Reals, shape (n,)
        Time limit [s]; infinite without a limit.
    expected_correlation : Reals, shape (n,)
        Expected correlation of the job's signature with the truth, 0 to 1.
    duration_piece, wait_piece : Ints, shape (n,)
        Piece of `durations_s` and of `waits_s` with the values of similar jobs; no such piece is empty.
    durations_s, waits_s : Ragged
        Durations and waiting times of past jobs [s], grouped by similarity.

    """

    demand: Ints
    elapsed_s: Reals
    waiting_s: Reals
    min_wait_s: Reals
    max_wait_s: Reals
    max_duration_s: Reals
    expected_correlation: Reals
    duration_piece: Ints
    wait_piece: Ints
    durations_s: Ragged
    waits_s: Ragged

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.demand)

    def without_jobs(self) -> UpcomingJobs:
        """Return an empty selection of jobs that keeps `durations_s` and `waits_s`."""
        names = (field.name for field in fields(self) if field.name not in ("durations_s", "waits_s"))
        return replace(self, **{name: getattr(self, name)[:0] for name in names})


@dataclass(frozen=True, slots=True)
class JobDraws:
    """Random schedules and progress of n jobs; all fields have shape (n, draws).

    Attributes
    ----------
    start_s, duration_s
        Start [s from now] and duration [s] of the job.
    signature_start_s
        Position in the signature at which the job starts [s].
    pace
        Seconds of the signature per second of the job.
    delay_s
        Delay of the job's bursts [s].
    volume_ratio
        Bytes of the job relative to its signature.

    """

    start_s: Reals
    duration_s: Reals
    signature_start_s: Reals
    pace: Reals
    delay_s: Reals
    volume_ratio: Reals

    def positions_s(self, jobs: slice | Ints, edges_s: Reals) -> Reals:
        """Compute the positions of the selected jobs in their signatures [s], shape (jobs, draws, edges)."""
        since_s = edges_s - (self.start_s[jobs] + self.delay_s[jobs])[..., None]
        elapsed_s = np.clip(since_s, 0.0, self.duration_s[jobs][..., None])
        positions: Reals = self.signature_start_s[jobs][..., None] + self.pace[jobs][..., None] * elapsed_s
        return positions


def draw_jobs(
    jobs: UpcomingJobs, signature_s: Reals, draw_count: int, seed: int, params: JobDrawParams | None = None
) -> JobDraws:
    """Draw starts, durations and progress of jobs at random.

    Parameters
    ----------
    jobs : UpcomingJobs
        The n jobs that are running or waiting.
    signature_s : Reals, shape (n,)
        Length of each job's signature [s].
    draw_count : int
        Number of draws per job.
    seed : int
        Seed of the random numbers.
    params : JobDrawParams, optional
        Parameters of the distributions.

    Returns
    -------
    JobDraws
        Draws stratified as a Latin hypercube.

    """
    params = params or JobDrawParams()
    count, is_running = len(jobs), np.isfinite(jobs.elapsed_s)
    uniform = draw_stratified(draw_count, 3 * count, seed).T.reshape(3, count, draw_count)
    normal = draw_standard_normal(draw_count, 2 * count, seed + 1).T.reshape(2, count, draw_count)
    elapsed = np.where(is_running, jobs.elapsed_s, 0.0)
    waiting = np.where(is_running, 0.0, jobs.waiting_s)
    waits = draw_exceeding(jobs.waits_s, jobs.wait_piece, waiting, uniform[0], params.overdue_ratio)
    waits = waits - waiting[:, None]
    waits = np.maximum(np.minimum(waits, jobs.max_wait_s[:, None]), jobs.min_wait_s[:, None])
    duration = draw_exceeding(jobs.durations_s, jobs.duration_piece, elapsed, uniform[1], params.overdue_ratio)
    duration = np.maximum(np.minimum(duration, jobs.max_duration_s[:, None]), elapsed[:, None])
    is_short = duration < (1.0 - params.short_ratio) * signature_s[:, None]
    is_continued = is_short & (uniform[2] < 0.5)
    spread = params.volume_error * (1.0 - jobs.expected_correlation)[:, None]
    return JobDraws(
        start_s=np.where(is_running[:, None], -elapsed[:, None], waits),
        duration_s=duration,
        signature_start_s=np.where(is_continued, signature_s[:, None] - duration, 0.0),
        pace=np.where(is_short, 1.0, signature_s[:, None] / np.maximum(duration, 1e-9)),
        # bursts of a waiting job cannot precede its start
        delay_s=params.delay_s * np.where(is_running[:, None], normal[0], np.abs(normal[0])),
        volume_ratio=np.exp(spread * normal[1] - spread**2 / 2),
    )


def draw_exceeding(samples: Ragged, piece: Ints, minimum: Reals, uniform: Reals, overdue_ratio: float) -> Reals:
    """Draw values from empirical distributions, given that they exceed a minimum.

    Parameters
    ----------
    samples : Ragged
        Observed values; pieces are not empty.
    piece : Ints, shape (n,)
        Piece of `samples` that each value is drawn from.
    minimum : Reals, shape (n,)
        Value that has already been exceeded.
    uniform : Reals, shape (n, draws)
        Uniform random numbers, 0 to 1: relative ranks in the values above the minimum, which are interpolated linearly.
    overdue_ratio : float
        If no value exceeds the minimum, mean excess relative to the minimum; the excess is exponential (memoryless).

    Returns
    -------
    Reals, shape (n, draws)
        Values that are equal to or above the minimum.

    """
    owner = samples.owner
    order = np.lexsort((samples.values, owner))
    values = samples.values[order]
    first, counts = samples.offsets[:-1][piece], samples.counts[piece]
    below = _count_up_to(values, owner, piece, minimum)
    is_overdue = below == counts
    below = np.where(is_overdue, counts - 1, below)
    rank = np.clip(below[:, None] + uniform * (counts - below)[:, None] - 0.5, below[:, None], (counts - 1)[:, None])
    low = rank.astype(np.int64)
    high = np.minimum(low + 1, (counts - 1)[:, None])
    at = first[:, None]
    interpolated = values[at + low] + (rank - low) * (values[at + high] - values[at + low])
    extrapolated = minimum[:, None] - overdue_ratio * minimum[:, None] * np.log1p(-uniform)
    durations: Reals = np.where(is_overdue[:, None], extrapolated, np.maximum(interpolated, minimum[:, None]))
    return durations


def _count_up_to(values: Reals, owner: Ints, piece: Ints, limit: Reals) -> Ints:
    """Count the values of each given piece up to a limit; values are sorted by piece and size."""
    combined = np.concatenate([values, limit])
    rank = np.unique(combined, return_inverse=True)[1]
    key = owner * np.int64(len(combined) + 1) + rank[: len(values)]
    query = piece * np.int64(len(combined) + 1) + rank[len(values) :]
    first = np.searchsorted(owner, piece)
    counts: Ints = np.searchsorted(key, query, side="right") - first
    return counts
