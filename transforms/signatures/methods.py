"""Extract signatures by every method, with one result for each sample set and method.

IOSI: Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

import numpy as np

from iosig.transforms.arrays import Bools, Reals
from iosig.transforms.signatures import averages, elastic, iosi, outliers, robust, time_normalized, time_warping
from iosig.transforms.signatures.expected_correlation import (
    COMPARABLE_OUTCOMES,
    MIN_EXPECTED_CORRELATION,
    count_missing_bursts,
    predict_correlations,
    select_method,
    summarize_runs,
)
from iosig.transforms.signatures.iosi import IosiParams
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Signature

#: names of methods, as in settings and tables
METHODS = (
    "elastic", "robust", "time_normalized", "iosi", "iosi_filtered", "iosi_raw", "dtw", "mean", "median", "quantile",
)  # fmt: skip
#: methods that run by default; others among which the expected correlation selects improve the means little, and double
#: the time
DEFAULT_METHODS = ("elastic", "iosi_filtered")
#: methods that receive all runs of typical duration, regardless of volume
_ANY_VOLUME_METHODS = ("elastic", "robust", "time_normalized")
#: number of sets that are summarized in one batch, which bounds memory use
_SUMMARY_BATCH_SETS = 16


@dataclass(frozen=True, slots=True)
class SignatureParams:
    """Parameters of the methods that a site may set.

    Attributes
    ----------
    min_run_count
        Minimum number of runs in a set with a signature. IOSI, section 2.3: generally 5 to 10 samples are required.
    iosi
        Of IOSI as published. `iosi_filtered` adds its filters.
    """

    min_run_count: int = 5
    iosi: IosiParams = field(default_factory=IosiParams)

    def iosi_params(self, method: str) -> IosiParams | None:
        """Return the parameters of IOSI that a method uses; None if it is another method."""
        variants = {
            "iosi": self.iosi,
            "iosi_filtered": self.iosi.add_filters(),
            "iosi_raw": replace(self.iosi, has_preprocessing=False),
        }
        return variants.get(method)


@dataclass(frozen=True, slots=True)
class MethodSignatures:
    """Results of one method for m sample sets with n runs in all.

    Attributes
    ----------
    signatures : m
    is_outlier : (n,)
        Whether a run was excluded because of its duration or volume.
    expected_correlation : (m,)
        Expected correlation with the truth, see module `expected_correlation`; NaN without a signature. Published as
        `expected_correlation`.
    missing_burst_count : (m,)
        Number of bursts that most runs contain and the signature lacks; NaN if it is not comparable. Published as
        `missing_burst_count`.
    """

    method: str
    signatures: list[Signature]
    is_outlier: Bools
    expected_correlation: Reals
    missing_burst_count: Reals


def select_methods(results: Sequence[MethodSignatures]) -> list[str]:
    """Select the method of the default signature of each set (m), see `select_method`."""
    names = [result.method for result in results]
    rows = zip(*(result.expected_correlation.tolist() for result in results), strict=True)
    return [select_method(dict(zip(names, row, strict=True))) for row in rows]


def extract_signatures(
    sets: SampleSets, params: SignatureParams | None = None, methods: Sequence[str] = METHODS
) -> list[MethodSignatures]:
    """Extract the signatures of sample sets by several methods.

    Parameters
    ----------
    sets
        The m sample sets with n runs in all.
    params
        Parameters of the methods; None for the defaults.
    methods
        Subset of `METHODS`.

    Returns
    -------
    list of MethodSignatures
        Results in the order of `methods`.

    Raises
    ------
    KeyError
        If a method does not exist.

    Notes
    -----
    `iosi` excludes outliers by duration and volume (IOSI, section 5.1), and `iosi_raw` nothing (section 6.1).
    `elastic`, `robust` and `time_normalized` take low quantiles. So they, and the expected correlation, use all
    complete runs of typical duration, regardless of volume. All others exclude runs of atypical duration and outliers,
    like `iosi_filtered`.
    """
    params = params or SignatureParams()
    is_atypical = ~outliers.select_typical_runs(sets.duration_s, sets.offsets, sets.is_truncated)
    excluded = _exclude_runs_by_method(sets, is_atypical, methods, params)
    extractors = _make_extractors(params)
    signatures: dict[str, list[Signature]] = {}
    for method in methods:
        signatures[method] = _extract_sets(sets, excluded[method], extractors[method], params.min_run_count)
    assessed = _assess(sets, is_atypical, signatures)
    return [
        MethodSignatures(method, accepted, excluded[method], expected, missing)
        for method, (accepted, expected, missing) in ((method, assessed[method]) for method in methods)
    ]


def _exclude_runs_by_method(
    sets: SampleSets, is_atypical: Bools, methods: Sequence[str], params: SignatureParams
) -> dict[str, Bools]:
    """Mark the runs (n) that each method excludes."""
    excluded = dict.fromkeys(_ANY_VOLUME_METHODS, is_atypical)
    rules = {method: params.iosi_params(method) or params.iosi.add_filters() for method in {*methods} - {*excluded}}
    volumes = outliers.run_volumes(sets) if rules else np.zeros(0)
    outliers_by_rule = {
        rule: iosi.score_runs(sets, volumes, is_atypical, rule).is_outlier for rule in set(rules.values())
    }
    return excluded | {method: outliers_by_rule[rule] for method, rule in rules.items()}


def _assess(
    sets: SampleSets, is_atypical: Bools, signatures: Mapping[str, Sequence[Signature]]
) -> dict[str, tuple[list[Signature], Reals, Reals]]:
    """Compute each method's accepted signatures, their expected correlations, and their missing bursts.

    Signatures of our own methods with an insufficient expected correlation are rejected. One summary of the runs serves
    all methods.
    """
    assessed = {
        method: (list(results), np.full(len(results), np.nan), np.full(len(results), np.nan))
        for method, results in signatures.items()
    }
    comparable = [
        index
        for index in range(sets.set_count)
        if any(results[index].outcome in COMPARABLE_OUTCOMES for results in signatures.values())
    ]
    summaries = summarize_runs(_exclude_runs(sets, index, is_atypical) for index in comparable)
    while batch := list(islice(summaries, _SUMMARY_BATCH_SETS)):
        indices = [comparable[number] for number, _ in batch]
        batch_summaries = [summary for _, summary in batch]
        for method, (accepted, expected, missing) in assessed.items():
            batch_signatures = [accepted[index] for index in indices]
            expected[indices] = predict_correlations(batch_summaries, batch_signatures, method)
            for index in indices:
                # results of others' methods are published as defined in their papers
                if method in _ANY_VOLUME_METHODS and expected[index] < MIN_EXPECTED_CORRELATION:
                    background = accepted[index].background_bytes_per_s
                    accepted[index] = Signature.missing("no_common_bursts", background)
                    expected[index] = float("nan")
            missing[indices] = count_missing_bursts(batch_summaries, [accepted[index] for index in indices])
    return assessed


def _make_extractors(params: SignatureParams) -> dict[str, Callable[[Iterable[SampleSet]], Iterable[Signature]]]:
    """Map the name of each method to the function that extracts the signatures of several sets."""
    single: dict[str, Callable[[SampleSet], Signature]] = {
        "robust": robust.extract_robust,
        "time_normalized": time_normalized.extract_time_normalized,
        "dtw": time_warping.extract_dtw,
        "mean": averages.extract_mean,
        "median": averages.extract_median,
        "quantile": averages.extract_quantile,
    }
    return {
        "elastic": elastic.extract_elastic,
        **{
            method: partial(iosi.extract_iosi, params=iosi_params)
            for method in METHODS
            if (iosi_params := params.iosi_params(method))
        },
        **{method: partial(map, extractor) for method, extractor in single.items()},
    }


def _extract_sets(
    sets: SampleSets,
    is_excluded: Bools,
    extractor: Callable[[Iterable[SampleSet]], Iterable[Signature]],
    min_run_count: int,
) -> list[Signature]:
    """Extract the signatures of sets from the runs that are not excluded; a set with too few runs in total has none."""
    is_enough = (np.diff(sets.offsets) >= min_run_count).tolist()
    included = (_exclude_runs(sets, index, is_excluded) for index, has_enough in enumerate(is_enough) if has_enough)
    signatures = iter(extractor(included))
    return [next(signatures) if has_enough else Signature.missing("too_few_samples") for has_enough in is_enough]


def _exclude_runs(sets: SampleSets, index: int, is_excluded: Bools) -> SampleSet:
    """Return a set without the excluded runs."""
    sample_set, is_out = sets.get_set(index), is_excluded[sets.offsets[index] : sets.offsets[index + 1]]
    return sample_set.select_runs(~is_out) if is_out.any() else sample_set
