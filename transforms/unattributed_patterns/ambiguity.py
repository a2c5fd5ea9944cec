"""Find patterns that may not be an application of their own: strays of another pattern, or mixtures of several.

Contention delays and slows bursts, but does not reduce their bytes (IOSI: Liu et al., FAST'14, section 4). A train,
i.e. a periodic series of bursts, therefore leaves a few strays among its hundreds of bursts. A stray has the train's
volume but is off its beat, i.e. its due times. A logged application leaves such strays within its runs, too. Volumes of
one application vary less than those of two applications with similar volumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals


@dataclass(frozen=True, slots=True)
class AmbiguityParams:
    """Thresholds of ambiguity, chosen on simulated sites (seeds 60 to 71 and 160 to 164, 14 days each)."""

    #: number of appearances, as a fraction of a train's, below which a pattern may consist of the train's strays
    stray_ratio: float = 0.1
    #: maximum difference of log volumes between a pattern and its strays
    stray_reach: float = 0.05
    #: minimum fraction of appearances outside the runs of named applications with that volume
    min_unexplained_ratio: float = 0.7
    #: maximum interquartile range of the log volumes of one application
    max_spread: float = 0.03
    #: maximum relative measurement error of a volume
    max_error_ratio: float = 0.05


def find_ambiguous(
    volumes: Sequence[Reals],
    error_ratio: Reals,
    burst_count: Ints,
    is_train: Bools,
    params: AmbiguityParams | None = None,
) -> Bools:
    """Find patterns that may be strays of a train, or with volumes that do not identify one application.

    Parameters
    ----------
    volumes : sequence of Reals
        Bytes of each appearance, for each of n patterns.
    error_ratio : Reals, shape (n,)
        Relative measurement error of the volumes. Above a fluctuating background, chance peaks may have any volume, and
        many volumes are equal within the measurement error.
    burst_count : Ints, shape (n,)
        Number of bursts per appearance. If it is more than one, bursts of other applications may fall between, so
        volumes carry no information.
    is_train : Bools, shape (n,)
        Whether a pattern is periodic; periodic patterns are never ambiguous.
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
    volume_bytes: Reals, named_volumes: Sequence[Reals], is_covered: Bools, params: AmbiguityParams | None = None
) -> bool:
    """Determine whether too many appearances of a pattern may be strays of logged applications.

    Parameters
    ----------
    volume_bytes : Reals, shape (k,)
        Bytes of each appearance of the pattern.
    named_volumes : sequence of Reals
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
    is_near = np.array(
        [abs(np.log(np.median(volumes)) - log_volume) <= params.stray_reach for volumes in named_volumes], np.bool_
    )
    is_frequent = np.array([len(volumes) >= len(volume_bytes) for volumes in named_volumes], np.bool_)
    may_be_stray = is_covered[is_near & is_frequent].any(axis=0)
    return 1.0 - float(may_be_stray.mean()) < params.min_unexplained_ratio
