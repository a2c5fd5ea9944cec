"""Signatures of applications, by every method: one answer for each sample set and method.

IOSI: Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from transforms.arrays import Bools
from transforms.signatures import averages, iosi, left_out as usual_runs, outliers, robust, time_warping
from transforms.signatures.averages import AverageParams
from transforms.signatures.iosi import IosiParams
from transforms.signatures.left_out import UsualRunParams
from transforms.signatures.outliers import OutlierParams
from transforms.signatures.robust import RobustParams
from transforms.signatures.sample_sets import SampleSet, SampleSets
from transforms.signatures.signature import Extracted
from transforms.signatures.time_warping import TimeWarpingParams

METHODS = ("robust", "iosi", "iosi_raw", "dtw", "mean", "median", "quantile")
#: the method whose answer to take if only one is wanted: the best one in the study (docs/signatures-study.md)
DEFAULT_METHOD = "robust"


@dataclass(frozen=True, slots=True)
class SignatureParams:
    """The parameters of all methods.

    least_run_count: sets of fewer runs have no signature (section 2.3: generally 5 to 10 samples are required).
    """

    least_run_count: int = 5
    outliers: OutlierParams = field(default_factory=OutlierParams)
    usual: UsualRunParams = field(default_factory=UsualRunParams)
    robust: RobustParams = field(default_factory=RobustParams)
    iosi: IosiParams = field(default_factory=IosiParams)
    dtw: TimeWarpingParams = field(default_factory=TimeWarpingParams)
    averages: AverageParams = field(default_factory=AverageParams)


@dataclass(frozen=True, slots=True)
class Signatures:
    """One method's answers for m sample sets of n runs in all.

    extracted (m). is_outlier (n): runs that were left out for their duration or volume before the method began.
    """

    method: str
    extracted: list[Extracted]
    is_outlier: Bools


def extract(
    sets: SampleSets, params: SignatureParams | None = None, methods: Sequence[str] = METHODS
) -> list[Signatures]:
    """Return the signatures of sample sets by some methods, in the order in which these are given.

    Outlier elimination (section 5.1) comes before all methods but `iosi_raw`, which is IOSI without preprocessing: the
    paper's by duration and volume, and ours by what most runs take. `robust` gets the usual runs, whatever they moved:
    it weighs them by that itself. Raises KeyError for a method that is none.
    """
    chosen = params or SignatureParams()
    is_unusual = ~usual_runs.are_usual(sets.duration_s, sets.offsets, chosen.usual)
    left_outs = {"iosi_raw": np.zeros_like(is_unusual), "robust": is_unusual}
    is_outlier = is_unusual
    if not left_outs.keys() >= set(methods):
        volume_bytes = outliers.volumes(sets)
        is_outlier = is_unusual | outliers.are_outliers(sets.duration_s, volume_bytes, sets.offsets, chosen.outliers)
    makers = _makers(chosen)
    answers = []
    for method in methods:
        left_out = left_outs.get(method, is_outlier)
        extracted = [_of_one(sets, place, left_out, makers[method], chosen) for place in range(sets.set_count)]
        answers.append(Signatures(method, extracted, left_out))
    return answers


def _makers(params: SignatureParams) -> dict[str, Callable[[SampleSet], Extracted]]:
    return {
        "robust": lambda one: robust.robust(one, params.robust),
        "iosi": lambda one: iosi.iosi(one, params.iosi),
        "iosi_raw": lambda one: iosi.iosi_raw(one, params.iosi),
        "dtw": lambda one: time_warping.dtw(one, params.dtw),
        "mean": lambda one: averages.mean(one, params.averages),
        "median": lambda one: averages.median(one, params.averages),
        "quantile": lambda one: averages.quantile(one, params=params.averages),
    }


def _of_one(
    sets: SampleSets, place: int, left_out: Bools, maker: Callable[[SampleSet], Extracted], params: SignatureParams
) -> Extracted:
    one = sets.one(place)
    if one.run_count < params.least_run_count:
        return Extracted.nothing("too_few_samples")
    is_left_out = left_out[sets.offsets[place] : sets.offsets[place + 1]]
    return maker(one.kept(~is_left_out) if is_left_out.any() else one)
