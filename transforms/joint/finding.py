"""Finding signatures together: samples cleaned and extracted anew, and whether that predicts held-out runs better.

What all applications do is fitted to the traffic together, samples are cleaned by that (`cleaning`), and extracted anew
(`envelope`). An answer stands only where

- most of the foreign traffic in its samples is explained: else the plain low quantile is the better estimate; and
- runs that it was not made of are predicted better by it than by the plain answer that was made of the same ones. Of
  samples that are nearly clean both answers differ by little but their clocks, which held-out runs hardly tell apart:
  the more the plain answer is trusted, the more is asked; and
- it is trusted no less than the plain answer: that of half of the runs may fail where that of all of them is good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, owners
from iosig.transforms.joint.cleaning import Cleaned, cleaned
from iosig.transforms.joint.envelope import extract
from iosig.transforms.joint.shared import Known, Shared
from iosig.transforms.joint.slowing import alone
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.trust import LEAST_TRUST, Judge, alike

#: what makes plain signatures of sample sets, for half of the runs
Plain = Callable[[SampleSets], Sequence[Signature]]

#: plain answers that are trusted less are not favoured, those that are trusted more have this more likeness
_FAVOURED, _FAVOUR = (0.8, 0.95), 0.03
#: rates above so many times a signature's height are others'
_MOST_HEIGHTS = 1.2


@dataclass(frozen=True, slots=True)
class JointParams:
    """How signatures are found together; the values are ours.

    least_run_count: sets of fewer runs have none. least_explained_ratio: of the foreign traffic in an application's
    samples, so much has to be others' known.
    """

    least_run_count: int = 5
    least_explained_ratio: float = 0.6


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it, for m applications.

    signatures (m), trust (m): as `envelope.Envelopes` has them. explained_ratio (m): of the foreign traffic in the
    samples, what others' signatures explain; NaN without samples. gain (m): by how much likelier held-out runs look to
    it than to the plain answer; NaN where that cannot be asked. is_better (m): whether it stands. cost: what each
    other run at work costs a run; see `slowing`.
    """

    signatures: tuple[Signature, ...]
    trust: Reals
    explained_ratio: Reals
    gain: Reals
    is_better: Bools
    cost: float


def find(shared: Shared, plain: Known, make_plain: Plain, params: JointParams | None = None) -> Found:
    """Find the signatures of all applications that have samples, together.

    plain: what is known of the applications so far; those without samples keep it. make_plain: makes plain signatures
    of half of the runs, to hold the others against.
    """
    params = params or JointParams()
    now = cleaned(shared, plain, params.least_run_count)
    found = extract(_alone(shared, now), params.least_run_count)
    ratio = _explained_ratio(shared, now, found.signatures)
    asked = (np.nan_to_num(found.trust) >= LEAST_TRUST) & (np.nan_to_num(ratio) >= params.least_explained_ratio)
    gain = _gain(shared, now, make_plain, asked)
    is_trusted = np.nan_to_num(found.trust) >= np.nan_to_num(plain.trust)
    is_better = asked & is_trusted & (np.nan_to_num(gain) > favour(plain.trust))
    return Found(found.signatures, found.trust, ratio, gain, is_better, now.cost)


def _alone(shared: Shared, now: Cleaned) -> SampleSets:
    """Return the cleaned samples as they were, had nobody slowed their runs."""
    return alone(shared.sets(now.own, now.others), now.at_work, now.work_ratio, now.cost)


# ---- whether it stands


def _explained_ratio(shared: Shared, now: Cleaned, signatures: Sequence[Signature]) -> Reals:
    """Return of the foreign traffic in each application's samples the share that others are given (m)."""
    of_sample = shared.application[shared.samples]
    edges = shared.set_offsets
    others = _by_sample(now.others, now.own.owner, len(of_sample))
    left = _by_sample(np.nan_to_num(now.own.values), now.own.owner, len(of_sample))
    found = np.full(shared.application_count, np.nan)
    for place, one in enumerate(signatures):
        runs = slice(edges[place], edges[place + 1])
        volume = one.volume_bytes if one.outcome == "extracted" else 0.0
        foreign = others[runs].sum() + np.maximum(left[runs] - volume, 0.0).sum()
        if foreign > 0:
            found[place] = others[runs].sum() / foreign
    return found


def _by_sample(values: Reals, owner: Ints, count: int) -> Reals:
    summed: Reals = np.bincount(owner, values, count).astype(np.float64)
    return summed


def favour(trust: Reals) -> Reals:
    """Return by how much likelier held-out runs have to look than to plain answers that are trusted so far (m)."""
    found: Reals = np.interp(np.nan_to_num(trust), _FAVOURED, (0.0, _FAVOUR))
    return found


def _gain(shared: Shared, now: Cleaned, make_plain: Plain, asked: Bools) -> Reals:
    """Return by how much likelier the runs of each half look to what was found in the other one (m)."""
    gain = np.zeros(len(asked))
    is_known = asked.copy()
    raw = shared.cut(shared.volume_bytes)
    every = shared.sets(raw), _alone(shared, now)
    for which in (0, 1):
        plain_sets, joint_sets = (_half(sets, which) for sets in every)
        plain, joint = make_plain(plain_sets), extract(joint_sets, 1).signatures
        held_out = _half(every[1], 1 - which)
        for place in np.flatnonzero(asked).tolist():
            judge = Judge.of(held_out.one(place))
            if judge is None:
                is_known[place] = False
                continue
            gain[place] += likeness(judge, joint[place]) - likeness(judge, plain[place])
    return np.where(is_known, gain / 2.0, np.nan)


def _half(sets: SampleSets, which: int) -> SampleSets:
    """Return every other run of each set: the even ones (0) or the odd ones (1)."""
    place = np.arange(int(sets.offsets[-1])) - sets.offsets[owners(sets.offsets)]
    parts = [sets.one(number).kept(place[a:b] % 2 == which) for number, (a, b) in enumerate(
        zip(sets.offsets[:-1].tolist(), sets.offsets[1:].tolist(), strict=True))]  # fmt: skip
    return SampleSets.of(parts)


def likeness(judge: Judge, one: Signature) -> float:
    """Return how alike a signature is to each run that a judge heard, in the mean; 0 where there is none."""
    if one.outcome != "extracted":
        return 0.0
    curve = judge.on_steps(one)
    highest = max(float(np.quantile(curve, 0.99)), 0.5 * float(curve.max()), 1e-300)
    return float(alike(np.minimum(judge.rates, _MOST_HEIGHTS * highest), curve[None]).mean())
