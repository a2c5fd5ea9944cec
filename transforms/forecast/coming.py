"""Coming jobs: when those that run or wait may start and end, and how far they are at an instant.

What is known of both is how others like them fared: a run lasts as long as one of those that lasted longer than it has
by now, a job waits as long as one of those that waited longer. A run that lasts longer than its signature is late
evenly; one that is clearly shorter was stopped, or is the rest of one that was, as likely as not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals
from iosig.transforms.demands import even_shares, standard_errors


@dataclass(frozen=True, slots=True)
class ComingParams:
    """How jobs are drawn; the values are ours.

    late_s: how late bursts of a run are beside its pace, as a standard deviation. short_ratio: a run that is shorter
    than one alone by more was stopped, or began where another one was stopped (as in `attribution.placing`).
    overdue_ratio: one that has lasted or waited longer than all before is expected to go on for this share of that
    time. volume_error: how much more or less a run moves than its signature, as a standard deviation of the logarithm,
    where the signature is not to be trusted at all.
    """

    late_s: float = 15.0
    short_ratio: float = 0.08
    overdue_ratio: float = 0.1
    volume_error: float = 0.5


@dataclass(frozen=True, slots=True)
class Coming:
    """n jobs that run or wait, at an instant from which on times count.

    demand (n): which of the demands each makes. elapsed_s (n): since its start, NaN for one that waits. waited_s (n):
    since its submission, for one that waits. least_wait_s, most_wait_s (n): when it may start at the earliest and will
    at the latest, infinite where nobody knows. limit_s (n): how long it may last, infinite where it may last for ever.
    trust (n): of its signature, 0 to 1. lasted (n), waited (n): which piece of `durations_s` and `waits_s` tells of
    jobs like it; each has a value at least.
    """

    demand: Ints
    elapsed_s: Reals
    waited_s: Reals
    least_wait_s: Reals
    most_wait_s: Reals
    limit_s: Reals
    trust: Reals
    lasted: Ints
    waited: Ints
    durations_s: Ragged
    waits_s: Ragged

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.demand)


@dataclass(frozen=True, slots=True)
class Drawn:
    """How jobs may go (n, draws): started_s, from the instant on; lasting_s from the start to the end.

    first_s: where in its signature it begins; tempo: how many seconds of its signature pass in one of its own; late_s:
    how late its bursts are; volume_ratio: what it moves over what its signature says.
    """

    started_s: Reals
    lasting_s: Reals
    first_s: Reals
    tempo: Reals
    late_s: Reals
    volume_ratio: Reals

    def positions_s(self, jobs: slice | Ints, edges_s: Reals) -> Reals:
        """Return how far in their signatures some jobs are at instants (jobs, draws, edges)."""
        since = edges_s - (self.started_s[jobs] + self.late_s[jobs])[..., None]
        passed = np.clip(since, 0.0, self.lasting_s[jobs][..., None])
        found: Reals = self.first_s[jobs][..., None] + self.tempo[jobs][..., None] * passed
        return found


def drawn(coming: Coming, alone_s: Reals, draw_count: int, seed: int, params: ComingParams | None = None) -> Drawn:
    """Draw how jobs may go; alone_s (n): how long a run of each alone takes."""
    params = params or ComingParams()
    count, runs = len(coming), np.isfinite(coming.elapsed_s)
    shares = even_shares(draw_count, 3 * count, seed).T.reshape(3, count, draw_count)
    errors = standard_errors(draw_count, 2 * count, seed + 1).T.reshape(2, count, draw_count)
    elapsed = np.where(runs, coming.elapsed_s, 0.0)
    waited = np.where(runs, 0.0, coming.waited_s)
    waits = beyond(coming.waits_s, coming.waited, waited, shares[0], params.overdue_ratio) - waited[:, None]
    waits = np.maximum(np.minimum(waits, coming.most_wait_s[:, None]), coming.least_wait_s[:, None])
    lasting = beyond(coming.durations_s, coming.lasted, elapsed, shares[1], params.overdue_ratio)
    lasting = np.maximum(np.minimum(lasting, coming.limit_s[:, None]), elapsed[:, None])
    is_short = lasting < (1.0 - params.short_ratio) * alone_s[:, None]
    is_rest = is_short & (shares[2] < 0.5)
    spread = params.volume_error * (1.0 - coming.trust)[:, None]
    return Drawn(
        started_s=np.where(runs[:, None], -elapsed[:, None], waits),
        lasting_s=lasting,
        first_s=np.where(is_rest, alone_s[:, None] - lasting, 0.0),
        tempo=np.where(is_short, 1.0, alone_s[:, None] / np.maximum(lasting, 1e-9)),
        # nobody begins before he starts
        late_s=params.late_s * np.where(runs[:, None], errors[0], np.abs(errors[0])),
        volume_ratio=np.exp(spread * errors[1] - spread**2 / 2),
    )


def beyond(past: Ragged, of: Ints, already: Reals, shares: Reals, overdue_ratio: float) -> Reals:
    """Return values like past ones that are no less than what is there already.

    past: pieces of values, at least one in each. of (n): which piece is asked; already (n): what is there. shares
    (n, draws): 0 to 1, which of those beyond it: from the least to the greatest, between two in proportion. Where none
    is beyond, what is there grows by overdue_ratio of it in the mean, as if it had no memory.
    """
    owner = past.owner
    order = np.lexsort((past.values, owner))
    values = past.values[order]
    first, counts = past.offsets[:-1][of], past.counts[of]
    below = _counts_up_to(values, owner, of, already)
    is_over = below == counts
    below = np.where(is_over, counts - 1, below)
    place = np.clip(below[:, None] + shares * (counts - below)[:, None] - 0.5, below[:, None], (counts - 1)[:, None])
    low = place.astype(np.int64)
    high = np.minimum(low + 1, (counts - 1)[:, None])
    at = first[:, None]
    between = values[at + low] + (place - low) * (values[at + high] - values[at + low])
    more = already[:, None] - overdue_ratio * already[:, None] * np.log1p(-shares)
    found: Reals = np.where(is_over[:, None], more, np.maximum(between, already[:, None]))
    return found


def _counts_up_to(values: Reals, owner: Ints, of: Ints, at_most: Reals) -> Ints:
    """Return how many values of a piece are at most so great; values in order of piece and size."""
    every = np.concatenate([values, at_most])
    rank = np.unique(every, return_inverse=True)[1]
    key = owner * np.int64(len(every) + 1) + rank[: len(values)]
    asked = of * np.int64(len(every) + 1) + rank[len(values) :]
    first = np.searchsorted(owner, of)
    found: Ints = np.searchsorted(key, asked, side="right") - first
    return found
