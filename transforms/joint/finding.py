"""Finding signatures together: rounds of cleaning and extracting, and whether they predict held-out runs better.

A round places all known signatures on the traffic, cleans the samples by that (`cleaning`) and extracts them anew
(`envelope`). It ends when signatures stay as they are, or after a few rounds. An answer stands only where

- most of the foreign traffic in its samples is explained: else the plain low quantile is the better estimate; and
- runs that it was not made of are predicted better by it than by the plain answer that was made of the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from transforms.arrays import Bools, Ints, Reals, owners
from transforms.joint.cleaning import Cleaned, cleaned
from transforms.joint.envelope import Envelopes, extract
from transforms.joint.shared import Known, Shared
from transforms.signatures.sample_sets import SampleSets
from transforms.signatures.signature import Signature
from transforms.signatures.similarity import correlation
from transforms.signatures.trust import LEAST_TRUST, Judge, alike

#: what makes plain signatures of sample sets, for half of the runs
Plain = Callable[[SampleSets], Sequence[Signature]]

#: a signature that correlates so much with that of the round before has not changed
_SETTLED = 0.995
#: rates above so many times a signature's height are others'
_MOST_HEIGHTS = 1.2


@dataclass(frozen=True, slots=True)
class JointParams:
    """How signatures are found together; the values are ours.

    round_count: at most so many rounds. least_run_count: sets of fewer runs have none. least_explained_ratio: of the
    foreign traffic in an application's samples, so much has to be others' known.
    """

    round_count: int = 4
    least_run_count: int = 5
    least_explained_ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it, for m applications.

    signatures (m), trust (m): as `envelope.Envelopes` has them. explained_ratio (m): of the foreign traffic in the
    samples, what others' signatures explain; NaN without samples. gain (m): by how much likelier held-out runs look to
    it than to the plain answer; NaN where that cannot be asked. is_better (m): whether it stands. round_count: the
    rounds that were made; delay: see `envelope.usual_delay`.
    """

    signatures: tuple[Signature, ...]
    trust: Reals
    explained_ratio: Reals
    gain: Reals
    is_better: Bools
    round_count: int
    delay: float


def find(shared: Shared, plain: Known, make_plain: Plain, params: JointParams | None = None) -> Found:
    """Find the signatures of all applications that have samples, together.

    plain: what is known of the applications so far; those without samples keep it. make_plain: makes plain signatures
    of half of the runs, to hold the others against.
    """
    params = params or JointParams()
    known, rounds = plain, 0
    for number in range(params.round_count):
        rounds = number + 1
        now = cleaned(shared, known)
        found = extract(shared.sets(now.own, now.others), params.least_run_count)
        before, known = known, _with(plain, found)
        if _is_settled(before, known):
            break
    ratio = _explained_ratio(shared, now, found.signatures)
    asked = (np.nan_to_num(found.trust) >= LEAST_TRUST) & (np.nan_to_num(ratio) >= params.least_explained_ratio)
    gain = _gain(shared, now, make_plain, asked)
    return Found(found.signatures, found.trust, ratio, gain, asked & (np.nan_to_num(gain) > 0), rounds, found.delay)


def _with(plain: Known, found: Envelopes) -> Known:
    """Return what is known after a round: what was found, and else what was known before the first one."""
    is_found = [one.outcome == "extracted" for one in found.signatures]
    signatures = tuple(
        new if is_new else old for old, new, is_new in zip(plain.signatures, found.signatures, is_found, strict=True)
    )
    return Known(signatures, np.where(is_found, found.trust, plain.trust))


def _is_settled(before: Known, after: Known) -> bool:
    return all(_is_alike(old, new) for old, new in zip(before.signatures, after.signatures, strict=True))


def _is_alike(old: Signature | None, new: Signature | None) -> bool:
    if old is new or old is None or new is None:
        return old is new
    return bool(correlation(old.bytes_per_s, new.bytes_per_s) >= _SETTLED)


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


def _gain(shared: Shared, now: Cleaned, make_plain: Plain, asked: Bools) -> Reals:
    """Return by how much likelier the runs of each half look to what was found in the other one (m)."""
    gain = np.zeros(len(asked))
    is_known = asked.copy()
    raw = shared.cut(shared.volume_bytes)
    every = shared.sets(raw), shared.sets(now.own, now.others)
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
