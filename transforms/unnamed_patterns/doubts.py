"""What may be no application of its own: strays of a train or of a logged application, and makers that move as much.

Contention makes bursts late and slow and takes no byte from them (IOSI: Liu et al., FAST'14, section 4). So a train of
hundreds leaves a few behind that keep its volume and not its beat, and so does what a logged application does in its
runs; and bursts of one maker differ less in what they move than those of two that happen to be near each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals


@dataclass(frozen=True, slots=True)
class DoubtParams:
    """What is doubtful; the values are ours, chosen on simulated sites (seeds 60 to 71 and 160 to 164, of 14 days).

    stray_ratio: what appeared less often than this share of a train's appearances may be its strays. stray_reach: if
    their volumes differ by less, in logarithms. most_spread: volumes of one maker differ by less between their
    quartiles, in logarithms.
    """

    stray_ratio: float = 0.1
    stray_reach: float = 0.05
    least_own: float = 0.7
    most_spread: float = 0.03
    most_inexact: float = 0.05


def doubtful(
    volumes: Sequence[Reals],
    inexact_ratio: Reals,
    burst_count: Ints,
    is_train: Bools,
    params: DoubtParams | None = None,
) -> Bools:
    """Return which patterns (n) may be none of their own.

    volumes: the bytes of each appearance of each. inexact_ratio (n): by which share of them these are inexact, since
    what flows beneath is restless: what of that stands out by chance moves all sorts of bytes, and many of it are alike
    within what nobody can tell. burst_count (n): of an appearance; of several bursts others' fall
    between them, so that their volumes tell nothing. is_train (n): which come at even distances: these are sure.
    """
    params = params or DoubtParams()
    logs = [np.log(each) for each in volumes]
    counts = np.array([len(each) for each in logs], np.int64)
    middle = np.array([np.median(each) for each in logs])
    spread = np.array([np.subtract(*np.quantile(each, (0.75, 0.25))) for each in logs])
    near = np.abs(middle[:, None] - middle) <= params.stray_reach
    is_few = counts[:, None] <= params.stray_ratio * counts
    is_stray = (near & is_few & is_train).any(axis=1)
    is_vague = (spread > params.most_spread) | (inexact_ratio > params.most_inexact)
    found: Bools = (is_stray | is_vague) & ~is_train & (burst_count == 1)
    return found


def are_of_logged(
    volume_bytes: Reals, named: Sequence[Reals], were_there: Bools, params: DoubtParams | None = None
) -> bool:
    """Return whether a pattern (of k appearances) may be strays of what logged applications do, or too many of them.

    volume_bytes (k): of each appearance. named: the bytes of each appearance of the patterns (n) that have a name.
    were_there (n, k): whether a run of whose each is was there in each appearance.
    """
    params = params or DoubtParams()
    typical = np.log(np.median(volume_bytes))
    is_near = np.array([abs(np.log(np.median(each)) - typical) <= params.stray_reach for each in named], np.bool_)
    is_more = np.array([len(each) >= len(volume_bytes) for each in named], np.bool_)
    are_strays = were_there[is_near & is_more].any(axis=0)
    return 1.0 - float(are_strays.mean()) < params.least_own
