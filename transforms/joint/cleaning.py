"""Cleaning: samples less what the runs of other applications were given of them.

What all applications do is fitted to the traffic together (`fitting`), also what the application itself does: so no
other run is given what its own runs explain. Then only what *other* applications were given is taken off. So a sample
never lacks what its own application explains, and what nobody explains stays in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ragged, Reals, places_of
from iosig.transforms.joint.fitting import Given, fitted
from iosig.transforms.joint.shared import Known, Shared


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Samples (k) of a shared file system, cleaned.

    own: bytes in each step of each sample, less what others were given; NaN where not measured. others: what others
    were given there, in all, in the same order. at_work, work_ratio: how many others were at work there, and for which
    share of the step the run itself. cost: what each of them costs it; see `slowing`.
    """

    own: Ragged
    others: Reals
    at_work: Reals
    work_ratio: Reals
    cost: float


def cleaned(shared: Shared, known: Known, least_run_count: int) -> Cleaned:
    """Return samples less what other applications' runs are given; see `fitting.fitted`."""
    count = len(shared.volume_bytes)
    given = fitted(shared, known, least_run_count)
    first, after = shared.windows()
    raw, place = shared.cut(shared.volume_bytes), places_of(first, after - first)
    others: Reals = np.bincount(given.step, given.volume_bytes, count).astype(np.float64)[place]
    of_sample = np.repeat(shared.application[shared.samples], raw.counts)
    application = shared.application[given.run]
    order = np.argsort(application, kind="stable")
    edges = np.searchsorted(application[order], np.arange(shared.application_count + 1))
    for one in np.unique(of_sample).tolist():
        rows, is_own = order[edges[one] : edges[one + 1]], of_sample == one
        others[is_own] -= np.bincount(given.step[rows], given.volume_bytes[rows], count)[place[is_own]]
    others = np.maximum(others, 0.0)
    work_ratio = _own_work(shared, given, raw)
    at_work = np.maximum(np.bincount(given.step, given.work_ratio, count)[place] - work_ratio, 0.0)
    return Cleaned(Ragged(np.maximum(raw.values - others, 0.0), raw.offsets), others, at_work, work_ratio, given.cost)


def _own_work(shared: Shared, given: Given, raw: Ragged) -> Reals:
    """Return for which share of each step of the samples the run itself was at work."""
    first, after = shared.windows()
    sample = np.full(len(shared.application), -1)
    sample[shared.samples] = np.arange(len(first))
    own = sample[given.run]
    is_in = (own >= 0) & (given.step >= first[own]) & (given.step < after[own])
    found = np.zeros(len(raw.values))
    rows = own[is_in]
    found[raw.offsets[rows] + given.step[is_in] - first[rows]] = given.work_ratio[is_in]
    return found
