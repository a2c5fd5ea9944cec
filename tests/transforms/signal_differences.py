"""Differences of two signals, which bound the errors of sampling, binning and splitting in tests."""

from __future__ import annotations

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals, owners
from iosig.transforms.throughput.even_values import Instants
from iosig.transforms.throughput.exact_sums import segment_sums
from iosig.transforms.throughput.requests import Steps


def volume_errors(steps: Steps, samples: Ragged, instants: Instants) -> Reals:
    """Return FTIO's abstraction error of each subject (n): abs(sum(b) / f - V) / V, for samples b at f hertz.

    The error is a difference of volumes, as in sections II-C and II-E of the paper, so local excess and deficit cancel.
    V is the volume of the subject, including impulses; the error is NaN where V is zero.
    """
    volume = steps.volume_bytes
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(segment_sums(samples.values, samples.offsets) / instants.sampling_hz - volume) / volume
    return np.where(volume > 0, error, np.nan)


def shape_differences(first: Steps, second: Steps) -> Reals:
    """Return the Bray-Curtis dissimilarity of each subject's two signals (n), from 0 to 1; NaN where both are empty.

    The integral of abs(first - second) divided by the sum of both volumes, exact on the edges of both. It is 0 for
    equal signals and 1 for signals that are never active together. It is at or above the difference of the volumes
    divided by their sum; an impulse coincides only with an impulse.
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
    # The edges of each signal keep their order here, so a running count gives the latest edge. After the last edge of a
    # subject the rate is 0, which is also the rate before the first edge of the next subject.
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
    # Each signal has at most one impulse per instant: the later row of a pair keeps the difference.
    pairs = np.flatnonzero((times[1:] == times[:-1]) & (owner[1:] == owner[:-1]))
    signed[pairs + 1] += signed[pairs]
    signed[pairs] = 0.0
    return segment_sums(np.abs(signed), _bounds(owner, first.subject_count))


def _bounds(owner: Ints, count: int) -> Ints:
    return np.searchsorted(owner, np.arange(count + 1)).astype(np.int64, copy=False)
