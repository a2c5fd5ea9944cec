"""Signatures of applications, by every method: one answer for each sample set and method.

IOSI: Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np

from iosig.transforms.arrays import Bools, Reals
from iosig.transforms.signatures import averages, iosi, left_out, robust, stretched, time_warping, trust, warped
from iosig.transforms.signatures.iosi import IosiParams
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.trust import LEAST_TRUST

METHODS = ("warped", "robust", "stretched", "iosi", "iosi_raw", "dtw", "mean", "median", "quantile")
#: what is asked if nothing is said: more contenders add little to the means, and take as long again
USUAL_METHODS = ("warped", "iosi")
#: those that get the usual runs, whatever they moved
_OF_ALL_VOLUMES = ("warped", "robust", "stretched")
#: sets that are judged together: bounds the memory
_JUDGED_TOGETHER = 16


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

    signatures (m). is_outlier (n): runs that were left out for their duration or volume before the method began. trust
    (m): the correlation with the truth that is to be expected of each; NaN where there is no signature.
    lacked_burst_count (m): the bursts that most runs have and the signature lacks; NaN where nobody can tell.
    """

    method: str
    signatures: list[Signature]
    is_outlier: Bools
    trust: Reals
    lacked_burst_count: Reals


def chosen(answers: Sequence[MethodSignatures]) -> list[str]:
    """Return the method whose answer is to be taken if only one is wanted, for each set (m)."""
    names = [answer.method for answer in answers]
    rows = zip(*(answer.trust.tolist() for answer in answers), strict=True)
    return [trust.chosen(dict(zip(names, row, strict=True))) for row in rows]


def extract(
    sets: SampleSets, params: SignatureParams | None = None, methods: Sequence[str] = METHODS
) -> list[MethodSignatures]:
    """Return the signatures of sample sets by some methods, in the order in which these are given.

    Outlier elimination (section 5.1) comes before all methods but `iosi_raw`, which is IOSI without preprocessing: the
    paper's by duration and volume, and ours by what most runs take. `warped`, `robust` and `stretched` get the usual
    runs, whatever they moved: they take low quantiles of them, and so does the judge. Raises KeyError for a method that
    is none.
    """
    least = (params or SignatureParams()).least_run_count
    is_unusual = ~left_out.are_usual(sets.duration_s, sets.offsets)
    own = {"iosi_raw": np.zeros_like(is_unusual)} | dict.fromkeys(_OF_ALL_VOLUMES, is_unusual)
    is_outlier = is_unusual
    if not own.keys() >= set(methods):
        is_outlier = is_unusual | left_out.are_outliers(sets.duration_s, left_out.volumes(sets), sets.offsets)
    makers = _makers(params or SignatureParams())
    found: dict[str, list[Signature]] = {}
    for method in methods:
        found[method] = _of_each(sets, own.get(method, is_outlier), makers[method], least)
    judged = _judged(sets, is_unusual, found)
    answers = ((method, *judged[method]) for method in methods)
    return [
        MethodSignatures(method, kept, own.get(method, is_outlier), trusts, lacked)
        for method, kept, trusts, lacked in answers
    ]


def _judged(
    sets: SampleSets, is_unusual: Bools, found: Mapping[str, Sequence[Signature]]
) -> dict[str, tuple[list[Signature], Reals, Reals]]:
    """Return each method's signatures of each set, how far to trust each, and how many bursts it lacks.

    Ours that are hardly to be trusted are left out. One judge hears all that are of one set.
    """
    judged = {
        method: (list(ones), np.full(len(ones), np.nan), np.full(len(ones), np.nan)) for method, ones in found.items()
    }
    asked = [
        place for place in range(sets.set_count) if any(ones[place].outcome in trust.LACKING for ones in found.values())
    ]
    judges = trust.judges_of(_usual(sets, place, is_unusual) for place in asked)
    while block := list(islice(judges, _JUDGED_TOGETHER)):
        places = [asked[number] for number, _ in block]
        heard = [judge for _, judge in block]
        for method, (kept, trusts, lacked) in judged.items():
            trusts[places] = trust.trusts_of(heard, [kept[place] for place in places], method)
            for place in places:
                # one of our own that is hardly to be trusted; others say what their paper has
                if method in _OF_ALL_VOLUMES and trusts[place] < LEAST_TRUST:
                    background = kept[place].background_bytes_per_s
                    kept[place], trusts[place] = Signature.nothing("no_common_bursts", background), float("nan")
            lacked[places] = trust.lacked_burst_counts(heard, [kept[place] for place in places])
    return judged


def _makers(params: SignatureParams) -> dict[str, Callable[[Iterable[SampleSet]], Iterable[Signature]]]:
    """Return what makes the signatures of some sets by each method."""
    one_by_one: dict[str, Callable[[SampleSet], Signature]] = {
        "robust": robust.robust,
        "stretched": stretched.stretched,
        "dtw": time_warping.dtw,
        "mean": averages.mean,
        "median": averages.median,
        "quantile": averages.quantile,
    }
    return {
        "warped": warped.warped_of_each,
        "iosi": partial(iosi.iosi_of_each, params=params.iosi),
        "iosi_raw": partial(iosi.iosi_raw_of_each, params=params.iosi),
        **{method: partial(map, maker) for method, maker in one_by_one.items()},
    }


def _of_each(
    sets: SampleSets, is_out: Bools, maker: Callable[[Iterable[SampleSet]], Iterable[Signature]], least_run_count: int
) -> list[Signature]:
    """Return the signatures of sets, those of few runs without one, less the runs that are left out."""
    is_enough = (np.diff(sets.offsets) >= least_run_count).tolist()
    made = iter(maker(_usual(sets, place, is_out) for place, is_asked in enumerate(is_enough) if is_asked))
    return [next(made) if is_asked else Signature.nothing("too_few_samples") for is_asked in is_enough]


def _usual(sets: SampleSets, place: int, is_out: Bools) -> SampleSet:
    """Return a set without the runs that are left out."""
    one, is_own = sets.one(place), is_out[sets.offsets[place] : sets.offsets[place + 1]]
    return one.kept(~is_own) if is_own.any() else one
