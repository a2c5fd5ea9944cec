"""Clean samples: subtract the traffic that is attributed to runs of other applications.

The curves of all applications are fitted to the traffic together (`fitting`), so that no other run gets traffic that
the application's own runs explain. Only the traffic attributed to *other* applications is subtracted: a sample keeps
the traffic that its own application explains, and unattributed traffic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ragged, Reals, places_of
from iosig.transforms.joint.fitting import FittedTraffic, fit_traffic
from iosig.transforms.joint.shared_traffic import KnownSignatures, SharedTraffic


@dataclass(frozen=True, slots=True)
class CleanedSamples:
    """The k samples of a shared file system after cleaning; arrays have one value for each step of each sample.

    Attributes
    ----------
    volume_bytes : k pieces
        Traffic minus that of other applications, never negative; NaN where not measured.
    interference_bytes : (values,)
        The traffic that was subtracted.
    active_count : (values,)
        Mean number of other active runs.
    active_ratio : (values,)
        Fraction of the step in which the run itself was active.
    contention_cost
        Slowdown by each other active run, see `contention`.
    """

    volume_bytes: Ragged
    interference_bytes: Reals
    active_count: Reals
    active_ratio: Reals
    contention_cost: float


def clean_samples(shared: SharedTraffic, known_signatures: KnownSignatures, min_run_count: int) -> CleanedSamples:
    """Subtract the traffic of other applications from samples.

    Parameters
    ----------
    shared, known_signatures, min_run_count
        See `fitting.fit_traffic`.

    Returns
    -------
    CleanedSamples
        Samples of all applications, and what was subtracted.
    """
    count = len(shared.volume_bytes)
    fit = fit_traffic(shared, known_signatures, min_run_count)
    first, end = shared.sample_windows()
    raw, place = shared.cut_samples(shared.volume_bytes), places_of(first, end - first)
    interference: Reals = np.bincount(fit.step, fit.volume_bytes, count).astype(np.float64)[place]
    sample_application = np.repeat(shared.application[shared.sample_runs], raw.counts)
    fit_application = shared.application[fit.run]
    order = np.argsort(fit_application, kind="stable")
    edges = np.searchsorted(fit_application[order], np.arange(shared.application_count + 1))
    for application in np.unique(sample_application).tolist():
        rows, is_own = order[edges[application] : edges[application + 1]], sample_application == application
        interference[is_own] -= np.bincount(fit.step[rows], fit.volume_bytes[rows], count)[place[is_own]]
    interference = np.maximum(interference, 0.0)
    active_ratio = _own_active_ratio(shared, fit, raw)
    active_count = np.maximum(np.bincount(fit.step, fit.active_ratio, count)[place] - active_ratio, 0.0)
    volume = Ragged(np.maximum(raw.values - interference, 0.0), raw.offsets)
    return CleanedSamples(volume, interference, active_count, active_ratio, fit.contention_cost)


def _own_active_ratio(shared: SharedTraffic, fit: FittedTraffic, raw: Ragged) -> Reals:
    """Return the fraction of each step of the samples in which the run itself was active."""
    first, end = shared.sample_windows()
    sample_of_run = np.full(len(shared.application), -1)
    sample_of_run[shared.sample_runs] = np.arange(len(first))
    sample = sample_of_run[fit.run]
    is_inside = (sample >= 0) & (fit.step >= first[sample]) & (fit.step < end[sample])
    active_ratio = np.zeros(len(raw.values))
    rows = sample[is_inside]
    active_ratio[raw.offsets[rows] + fit.step[is_inside] - first[rows]] = fit.active_ratio[is_inside]
    return active_ratio
