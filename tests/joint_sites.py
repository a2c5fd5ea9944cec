"""Small simulated sites without contention: applications whose runs share a file system, with their true traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ragged, Reals
from iosig.transforms.joint.shared_traffic import KnownSignatures, SharedTraffic
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.signature import Signature

STEP_S = 2.0
#: duration of an application [s], and its bursts: start, end [s] and rate
Application = tuple[float, Sequence[tuple[float, float, float]]]
CALM: Application = (600.0, [(60, 100, 8.0), (260, 300, 8.0), (460, 500, 8.0)])
BUSY: Application = (500.0, [(20, 60, 9.0), (120, 160, 9.0), (220, 260, 9.0), (320, 360, 9.0), (420, 460, 9.0)])

#: two more of the same height, with other rhythms
SPARSE: Application = (580.0, [(30, 75, 8.5), (190, 235, 8.5), (350, 395, 8.5), (510, 555, 8.5)])
DENSE: Application = (550.0, [(at, at + 25, 8.0) for at in range(15, 520, 60)])


def true_curve(application: Application) -> Reals:
    """Rates of an application without interference in each second."""
    duration_s, bursts = application
    rates = np.zeros(int(duration_s))
    for begin, end, rate in bursts:
        rates[int(begin) : int(end)] = rate
    return rates


def true_signature(application: Application) -> Signature:
    """Make the true signature of an application."""
    rates = true_curve(application)
    return Signature.from_curve(rates, detect_bursts(rates))


@dataclass(frozen=True)
class Drawn:
    """A simulated site, and the true volume of each sample in its steps."""

    shared: SharedTraffic
    own: Ragged


def simulate_site(applications: Sequence[Application], run_count: int, span_s: float, seed: int = 1) -> Drawn:
    """Simulate runs without contention; those of one application do not overlap."""
    rng = np.random.default_rng(seed)
    application = np.repeat(np.arange(len(applications)), run_count)
    durations = np.array([applications[one][0] for one in application])
    slot_s = span_s / run_count
    slot = np.tile(np.arange(run_count), len(applications))
    started = np.floor(slot * slot_s + rng.random(len(application)) * (slot_s - durations))
    alone = [true_curve(one) for one in applications]
    moved = np.zeros((len(application), int(span_s)))
    for run, (one, begin) in enumerate(zip(application.tolist(), started.astype(int).tolist(), strict=True)):
        moved[run, begin : begin + len(alone[one])] = alone[one]
    steps = moved.reshape(len(moved), -1, int(STEP_S)).sum(axis=2)
    shared = SharedTraffic(
        steps.sum(axis=0),
        STEP_S,
        application,
        len(applications),
        started / STEP_S,
        (started + durations) / STEP_S,
        np.ones(len(application), dtype=np.bool_),
    )
    raw = shared.cut_samples(shared.volume_bytes)
    first, after = shared.sample_windows()
    parts = [steps[run, a:b] for run, a, b in zip(shared.sample_runs, first, after, strict=True)]
    return Drawn(shared, Ragged(np.concatenate(parts), raw.offsets))


def make_known_signatures(*applications: Application | None, expected_correlation: float = 0.9) -> KnownSignatures:
    """Make known signatures: the true ones, or None."""
    signatures = tuple(None if one is None else true_signature(one) for one in applications)
    return KnownSignatures(
        signatures, np.where([one is not None for one in applications], expected_correlation, np.nan)
    )
