"""Patterns that may not be an application of their own: strays of another pattern, or mixtures of several.

Contention delays and slows bursts but takes no bytes from them (IOSI: Liu et al., FAST'14, section 4). A train of
hundreds of bursts therefore leaves a few strays with its volume but off its beat, and so does a logged application
within its runs. Volumes of one application vary less than those of two applications with similar volumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals


@dataclass(frozen=True, slots=True)
class AmbiguityParams:
    """Thresholds of ambiguity, chosen on simulated sites (seeds 60 to 71 and 160 to 164, 14 days each)."""

    #: a pattern with fewer appearances than this fraction of a train's may consist of the train's strays
    stray_ratio: float = 0.1
    #: maximum difference of log volumes between a pattern and its strays
    stray_reach: float = 0.05
    #: minimum fraction of appearances outside the runs of named applications with that volume
    min_unexplained_ratio: float = 0.7
    #: maximum interquartile range of the log volumes of one application
    max_spread: float = 0.03
    #: maximum measurement error of a volume, as a fraction of it
    max_error_ratio: float = 0.05


def find_ambiguous(
    volumes: Sequence[Reals],
    error_ratio: Reals,
    burst_count: Ints,
    is_train: Bools,
    params: AmbiguityParams | None = None,
) -> Bools:
    """Find patterns that may be strays of a train, or whose volumes do not identify one application.

    Parameters
    ----------
    volumes : sequence of Reals
        Bytes of each appearance, for each of n patterns.
    error_ratio : Reals, shape (n,)
        Measurement error of the volumes, as a fraction of them. Above a fluctuating background, chance peaks have all
        volumes, and many of them are equal within the measurement error.
    burst_count : Ints, shape (n,)
        Bursts per appearance. With several bursts, others' may fall between them, and volumes carry no information.
    is_train : Bools, shape (n,)
        Periodic patterns; these are never ambiguous.
    params : AmbiguityParams, optional
        Thresholds.

    Returns
    -------
    Bools, shape (n,)
        Ambiguous patterns.

    """
    params = params or AmbiguityParams()
    logs = [np.log(volume) for volume in volumes]
    counts = np.array([len(log) for log in logs], np.int64)
    median = np.array([np.median(log) for log in logs])
    spread = np.array([np.subtract(*np.quantile(log, (0.75, 0.25))) for log in logs])
    is_near = np.abs(median[:, None] - median) <= params.stray_reach
    is_rare = counts[:, None] <= params.stray_ratio * counts
    is_stray = (is_near & is_rare & is_train).any(axis=1)
    is_vague = (spread > params.max_spread) | (error_ratio > params.max_error_ratio)
    is_ambiguous: Bools = (is_stray | is_vague) & ~is_train & (burst_count == 1)
    return is_ambiguous


def may_be_strays(
    volume_bytes: Reals, named: Sequence[Reals], is_covered: Bools, params: AmbiguityParams | None = None
) -> bool:
    """Determine whether too many appearances of a pattern may be strays of logged applications.

    Parameters
    ----------
    volume_bytes : Reals, shape (k,)
        Bytes of each appearance of the pattern.
    named : sequence of Reals
        Bytes of each appearance, for each of n patterns of logged applications.
    is_covered : Bools, shape (n, k)
        Whether a run of each pattern's application covers each appearance.
    params : AmbiguityParams, optional
        Thresholds.

    Returns
    -------
    bool
        True if fewer than `min_unexplained_ratio` of the appearances lie outside such runs.

    """
    params = params or AmbiguityParams()
    log_volume = np.log(np.median(volume_bytes))
    is_near = np.array([abs(np.log(np.median(other)) - log_volume) <= params.stray_reach for other in named], np.bool_)
    is_frequent = np.array([len(other) >= len(volume_bytes) for other in named], np.bool_)
    may_be_stray = is_covered[is_near & is_frequent].any(axis=0)
    return 1.0 - float(may_be_stray.mean()) < params.min_unexplained_ratio
