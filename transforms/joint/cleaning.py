"""Cleaning: samples less what the runs of other known applications were given of them.

All runs are placed on the traffic together (`attribution.explaining`), also those of the application itself: so no
other run takes what its own signature explains. Then only what *other* applications were given is taken off, and of
that a share by how certain it is. So a sample never lacks what its own application's signature explains, and a false
burst of it adds nothing where nothing was measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transforms.arrays import Ints, Ragged, Reals, owners
from transforms.attribution.explaining import explain
from transforms.joint.shared import Known, Shared

#: certainties count as shares of this quantile of them: where transfers slow each other, all places cost something
_CERTAIN_LEVEL = 0.8


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Samples (k) of a shared file system, cleaned.

    own: bytes in each step of each sample, less what others were given; NaN where not measured. others: what others
    were given there, in all, in the same order.
    """

    own: Ragged
    others: Reals


def cleaned(shared: Shared, known: Known) -> Cleaned:
    """Return samples less what other applications' runs are given by what is known of them."""
    count = len(shared.volume_bytes)
    runs, meant = shared.meant(known)
    found = explain(shared.volume_bytes, meant, shared.interval_s)
    share = _shares(found.certainty)[found.run]
    application = shared.application[runs][found.run]
    parts = (found.volume_bytes * share, found.volume_bytes)
    all_of_them = [np.bincount(found.step, part, count) for part in parts]
    raw = shared.cut(shared.volume_bytes)
    place = _steps(shared)
    of_sample = np.repeat(shared.application[shared.samples], raw.counts)
    taken, given = (total[place] for total in all_of_them)
    order = np.argsort(application, kind="stable")
    edges = np.searchsorted(application[order], np.arange(shared.application_count + 1))
    for one in np.unique(of_sample).tolist():
        rows, is_own = order[edges[one] : edges[one + 1]], of_sample == one
        for part, total in zip(parts, (taken, given), strict=True):
            total[is_own] -= np.bincount(found.step[rows], part[rows], count)[place[is_own]]
    own = np.maximum(raw.values - np.maximum(taken, 0.0), 0.0)
    return Cleaned(Ragged(own, raw.offsets), np.maximum(given, 0.0))


def _shares(certainty: Reals) -> Reals:
    """Return which share of what each run was given is taken off others' samples."""
    most = float(np.quantile(certainty, _CERTAIN_LEVEL)) if len(certainty) else 0.0
    return np.clip(certainty / most, 0.0, 1.0) if most > 0 else np.zeros(len(certainty))


def _steps(shared: Shared) -> Ints:
    """Return the step of each value of the samples."""
    first, after = shared.windows()
    offsets = np.concatenate([[0], np.cumsum(after - first)])
    owner = owners(offsets)
    found: Ints = np.arange(offsets[-1]) - offsets[owner] + first[owner]
    return found
