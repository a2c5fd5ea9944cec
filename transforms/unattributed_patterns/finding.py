"""Detect recurring patterns in residual traffic, and the logged applications that may own the patterns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.unattributed_patterns.ambiguity import find_ambiguous, may_be_strays
from iosig.transforms.unattributed_patterns.cooccurrence import PresenceSpectra, Runs, find_coverage
from iosig.transforms.unattributed_patterns.patterns import DetectedPattern, Pattern, PatternParams
from iosig.transforms.unattributed_patterns.rhythms import subtract_rhythm
from iosig.transforms.unattributed_patterns.search import PatternSearch


def find_patterns(
    residual_bytes: Reals, interval_s: float, runs: Runs, params: PatternParams | None = None
) -> list[DetectedPattern]:
    """Find recurring patterns in residual traffic, and the logged application that may own each.

    Parameters
    ----------
    residual_bytes : Reals, shape (steps,)
        Unattributed bytes in each step; NaN where nothing was measured.
    interval_s : float
        Length of a step [s].
    runs : Runs
        Logged runs of the window, in steps.
    params : PatternParams, optional
        Thresholds of all stages.

    Returns
    -------
    list of DetectedPattern
        Patterns in descending order of total bytes.

    Notes
    -----
    Periodic I/O of logged applications within their runs is subtracted first, since it disturbs the volumes of other
    bursts. The owner of a cluster is the logged application that causes it. Bursts of similar size in the owner's runs
    join the cluster. So do bursts at the time at which an appearance of a train is due, since contention changed their
    volume.

    """
    params = params or PatternParams()
    slack = params.cooccurrence.slack_s / interval_s
    spectra = PresenceSpectra(runs, len(residual_bytes), slack)
    search = PatternSearch.create(residual_bytes, residual_bytes, interval_s, spectra, params)
    parts, is_free = search.split_clusters()
    attributed: list[DetectedPattern] = []
    for _ in range(params.rhythm_rounds):
        rhythms = search.find_rhythms(parts)
        if not rhythms:
            break
        remaining = search.residual_bytes
        for application, rhythm, patterns in sorted(rhythms, key=lambda item: -item[1].evidence):
            is_own = runs.application == application
            remaining = subtract_rhythm(remaining, rhythm, runs.started[is_own], runs.ended[is_own], params.rhythms)
            attributed += patterns
        search = PatternSearch.create(residual_bytes, remaining, interval_s, spectra, params)
        parts, is_free = search.split_clusters()
    unattributed = search.build_patterns(parts, is_free)
    unattributed += search.find_pair_patterns(parts, is_free, unattributed)
    results = _mark_ambiguous([*attributed, *unattributed], runs, slack, params)
    return sorted(results, key=lambda result: -result.pattern.volume_bytes.sum())


def _mark_ambiguous(
    results: list[DetectedPattern], runs: Runs, slack: float, params: PatternParams
) -> list[DetectedPattern]:
    """Change the outcome of ambiguous patterns from `unattributed` to `ambiguous`."""
    unnamed = [index for index, result in enumerate(results) if result.cooccurrence.outcome == "unattributed"]
    patterns = [results[index].pattern for index in unnamed]
    burst_counts = np.array([pattern.burst_count for pattern in patterns], np.int64)
    is_train = np.array([pattern.is_train for pattern in patterns], np.bool_)
    volumes = [pattern.volume_bytes for pattern in patterns]
    error_ratio = np.array([np.median(pattern.error_bytes / pattern.volume_bytes) for pattern in patterns])
    is_ambiguous = find_ambiguous(volumes, error_ratio, burst_counts, is_train, params.ambiguity)
    attributed = [
        result for result in results if result.cooccurrence.outcome == "attributed" and result.pattern.burst_count == 1
    ]
    is_ambiguous |= np.array(
        [_may_be_strays(pattern, attributed, runs, slack, params) for pattern in patterns], np.bool_
    )
    for index in np.array(unnamed, np.int64)[is_ambiguous].tolist():
        cooccurrence = replace(results[index].cooccurrence, outcome="ambiguous")
        results[index] = replace(results[index], cooccurrence=cooccurrence)
    return results


def _may_be_strays(
    pattern: Pattern, attributed: list[DetectedPattern], runs: Runs, slack: float, params: PatternParams
) -> bool:
    """Whether a pattern of single bursts may consist of strays of logged applications."""
    if pattern.is_train or pattern.burst_count > 1:
        return False
    _, is_covered = find_coverage((pattern.started, pattern.ended), runs, slack)
    applications = np.array([result.cooccurrence.application for result in attributed], np.int64)
    volumes = [result.pattern.volume_bytes for result in attributed]
    return may_be_strays(pattern.volume_bytes, volumes, is_covered[applications], params.ambiguity)
