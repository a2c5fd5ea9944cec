"""Signatures of applications, by every method: one answer for each sample set and method.

IOSI: Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from transforms.arrays import Bools
from transforms.signatures import averages, iosi, left_out, robust, time_warping
from transforms.signatures.iosi import IosiParams
from transforms.signatures.sample_sets import SampleSet, SampleSets
from transforms.signatures.signature import Signature

METHODS = ("robust", "iosi", "iosi_raw", "dtw", "mean", "median", "quantile")
#: the method whose answer to take if only one is wanted: the best one in the study (docs/signatures-study.md)
DEFAULT_METHOD = "robust"


@dataclass(frozen=True, slots=True)
class SignatureParams:
    """What may be set of the methods; all else are constants beside what they are for.

    least_run_count: sets of fewer runs have no signature (section 2.3: generally 5 to 10 samples are required).
    """

    least_run_count: int = 5
    iosi: IosiParams = field(default_factory=IosiParams)


@dataclass(frozen=True, slots=True)
class MethodSignatures:
    """One method's answers for m sample sets of n runs in all.

    signatures (m). is_outlier (n): runs that were left out for their duration or volume before the method began.
    """

    method: str
    signatures: list[Signature]
    is_outlier: Bools


def extract(
    sets: SampleSets, params: SignatureParams | None = None, methods: Sequence[str] = METHODS
) -> list[MethodSignatures]:
    """Return the signatures of sample sets by some methods, in the order in which these are given.

    Outlier elimination (section 5.1) comes before all methods but `iosi_raw`, which is IOSI without preprocessing: the
    paper's by duration and volume, and ours by what most runs take. `robust` gets the usual runs, whatever they moved:
    it weighs them by that itself. Raises KeyError for a method that is none.
    """
    chosen = params or SignatureParams()
    is_unusual = ~left_out.are_usual(sets.duration_s, sets.offsets)
    own = {"iosi_raw": np.zeros_like(is_unusual), "robust": is_unusual}
    is_outlier = is_unusual
    if not own.keys() >= set(methods):
        is_outlier = is_unusual | left_out.are_outliers(sets.duration_s, left_out.volumes(sets), sets.offsets)
    makers = _makers(chosen)
    answers = []
    for method in methods:
        is_out = own.get(method, is_outlier)
        places = range(sets.set_count)
        signatures = [_of_one(sets, place, is_out, makers[method], chosen.least_run_count) for place in places]
        answers.append(MethodSignatures(method, signatures, is_out))
    return answers


def _makers(params: SignatureParams) -> dict[str, Callable[[SampleSet], Signature]]:
    return {
        "robust": robust.robust,
        "iosi": lambda one: iosi.iosi(one, params.iosi),
        "iosi_raw": lambda one: iosi.iosi_raw(one, params.iosi),
        "dtw": time_warping.dtw,
        "mean": averages.mean,
        "median": averages.median,
        "quantile": averages.quantile,
    }


def _of_one(
    sets: SampleSets, place: int, is_out: Bools, maker: Callable[[SampleSet], Signature], least_run_count: int
) -> Signature:
    one = sets.one(place)
    if one.run_count < least_run_count:
        return Signature.nothing("too_few_samples")
    is_own = is_out[sets.offsets[place] : sets.offsets[place + 1]]
    return maker(one.kept(~is_own) if is_own.any() else one)
