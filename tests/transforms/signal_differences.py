"""How much two signals differ: what tests of sampling, binning and splitting are held by."""

from __future__ import annotations

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals, owners
from iosig.transforms.throughput.even_values import Instants
from iosig.transforms.throughput.exact_sums import segment_sums
from iosig.transforms.throughput.requests import Steps


def volume_errors(steps: Steps, samples: Ragged, instants: Instants) -> Reals:
    """Return each subject's abstraction error as FTIO has it (n): abs(sum(b) / f - V) / V, for samples b at f hertz.

    The difference of two volumes, as the paper says in sections II-C and II-E and the tool computes: too much here
    makes up for too little there. V is all that the subject moved, impulses included; NaN where that is nothing.
    """
    volume = steps.volume_bytes
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(segment_sums(samples.values, samples.offsets) / instants.sampling_hz - volume) / volume
    return np.where(volume > 0, error, np.nan)


def shape_differences(first: Steps, second: Steps) -> Reals:
    """Return how much of each subject's two signals does not coincide (n), from 0 to 1; NaN where both are nothing.

    The integral of abs(first - second) over the sum of both volumes (Bray and Curtis' dissimilarity, of
    functions), exact on the edges of both: 0 if they are the same, 1 if they are never active together. It is
    at least the difference of the volumes over their sum; an impulse coincides only with an impulse.
    """
    apart = _areas_apart(first, second) + _impulses_apart(first, second)
    volume = first.volume_bytes + second.volume_bytes
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.minimum(apart / volume, 1.0)
    return np.where(volume > 0, found, np.nan)


def _areas_apart(first: Steps, second: Steps) -> Reals:
    times = np.concatenate([first.edges_s, second.edges_s])
    owner = np.concatenate([first.owner, second.owner])
    order = np.lexsort((times, owner))
    owner, times, is_first = owner[order], times[order], order < len(first.edges_s)
    # Both have their edges in this order already: the latest one is the last one counted. Behind a subject's last
    # edge is 0, which is also right before the next one's first.
    levels = [
        np.concatenate([[0.0], steps.bytes_per_s])[np.cumsum(is_own)]
        for steps, is_own in ((first, is_first), (second, ~is_first))
    ]
    is_within = owner[1:] == owner[:-1]
    widths = np.zeros(len(times))
    np.subtract(times[1:], times[:-1], out=widths[:-1], where=is_within)
    return segment_sums(np.abs(levels[0] - levels[1]) * widths, _bounds(owner, first.subject_count))


def _impulses_apart(first: Steps, second: Steps) -> Reals:
    times = np.concatenate([first.impulses_s, second.impulses_s])
    owner = np.concatenate([owners(first.impulse_offsets), owners(second.impulse_offsets)])
    signed = np.concatenate([first.impulse_bytes, -second.impulse_bytes])
    order = np.lexsort((times, owner))
    owner, times, signed = owner[order], times[order], signed[order]
    # At an instant there is at most one of either: a pair is left with its difference, in the later row.
    pairs = np.flatnonzero((times[1:] == times[:-1]) & (owner[1:] == owner[:-1]))
    signed[pairs + 1] += signed[pairs]
    signed[pairs] = 0.0
    return segment_sums(np.abs(signed), _bounds(owner, first.subject_count))


def _bounds(owner: Ints, count: int) -> Ints:
    return np.searchsorted(owner, np.arange(count + 1)).astype(np.int64, copy=False)
