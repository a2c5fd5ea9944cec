"""Joint extraction: extract signatures from cleaned samples, and accept those that predict held-out runs better.

A signature is the rate at which an application moves bytes along its run. A plain signature comes from the samples of
one application alone: a low quantile across its runs. A joint signature comes from cleaned samples. To clean samples,
the curves of all applications are fitted to the traffic together, and the traffic of others is subtracted (`cleaning`).
Signatures are then extracted from the cleaned samples (`envelope`). A joint signature is accepted only if

- the traffic of other applications explains most of the interference in its samples; otherwise the plain signature is
  the better estimate;
- it predicts held-out runs better than the plain signature of the same runs. In nearly clean samples, the two differ
  mainly in timing, which held-out runs barely resolve. The required gain therefore increases with the plain signature's
  expected correlation;
- its expected correlation is not below that of the plain signature, since the test uses only half of the runs per fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, owners
from iosig.transforms.joint.cleaning import CleanedSamples, clean_samples
from iosig.transforms.joint.contention import remove_contention
from iosig.transforms.joint.envelope import extract_envelopes
from iosig.transforms.joint.shared_traffic import KnownSignatures, SharedTraffic
from iosig.transforms.signatures.expected_correlation import (
    MIN_EXPECTED_CORRELATION,
    PARAMS as COMPARISON_PARAMS,
    RunSummary,
    pearson_correlation,
)
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature

#: function that extracts the plain signatures of sample sets
PlainExtractor = Callable[[SampleSets], Sequence[Signature]]

#: `_GAIN_RANGE`: expected correlations of the plain signature between which the required gain in correlation increases
#: linearly, from 0 to its maximum
#: `_MAX_REQUIRED_GAIN`: maximum of the required gain; on calm simulated sites (seeds 1 and 2), 10 of 125 joint
#: signatures are further from the truth than the plain signatures by more than 0.005; without a required gain, 27 are
_GAIN_RANGE, _MAX_REQUIRED_GAIN = (0.8, 0.95), 0.03


@dataclass(frozen=True, slots=True)
class JointParams:
    """Parameters of joint extraction that a site may set; the defaults are not from a publication.

    Attributes
    ----------
    min_run_count
        Minimum number of runs in a set; smaller sets have no joint signature.
    min_explained_ratio
        Minimum fraction of the interference in an application's samples that other applications explain.
    """

    min_run_count: int = 5
    min_explained_ratio: float = 0.6


@dataclass(frozen=True, slots=True)
class JointResult:
    """Joint signatures of m applications.

    Attributes
    ----------
    signatures : m
        Joint signature of each application, as in `envelope.Envelopes`.
    expected_correlation : (m,)
        Expected correlation of the joint signature with the truth, as in `envelope.Envelopes`.
    explained_ratio : (m,)
        Fraction of the interference in the samples that other applications explain; NaN without interference.
    correlation_gain : (m,)
        Mean correlation with held-out runs, minus the same for the plain signature; NaN where not tested.
    is_accepted : (m,)
        Whether the joint signature replaces the plain one.
    contention_cost
        Slowdown of a run by each other active run, see `contention`.
    """

    signatures: tuple[Signature, ...]
    expected_correlation: Reals
    explained_ratio: Reals
    correlation_gain: Reals
    is_accepted: Bools
    contention_cost: float


def extract_jointly(
    shared: SharedTraffic, plain: KnownSignatures, extract_plain: PlainExtractor, params: JointParams | None = None
) -> JointResult:
    """Extract the signatures of all applications that have samples, together.

    Parameters
    ----------
    shared
        The traffic of a file system and its runs.
    plain
        Signatures of the m applications so far; applications without samples keep theirs.
    extract_plain
        Extracts plain signatures from half of the runs, for comparison.
    params
        Parameters; None for the defaults.

    Returns
    -------
    JointResult
    """
    params = params or JointParams()
    cleaned = clean_samples(shared, plain, params.min_run_count)
    joint = extract_envelopes(_make_clean_sets(shared, cleaned), params.min_run_count)
    explained = _compute_explained_ratio(shared, cleaned, joint.signatures)
    expected = np.nan_to_num(joint.expected_correlation)
    is_tested = (expected >= MIN_EXPECTED_CORRELATION) & (np.nan_to_num(explained) >= params.min_explained_ratio)
    gain = _correlation_gain(shared, cleaned, extract_plain, is_tested)
    is_as_good = expected >= np.nan_to_num(plain.expected_correlation)
    is_accepted = is_tested & is_as_good & (np.nan_to_num(gain) > compute_required_gain(plain.expected_correlation))
    return JointResult(
        joint.signatures, joint.expected_correlation, explained, gain, is_accepted, cleaned.contention_cost
    )


def _make_clean_sets(shared: SharedTraffic, cleaned: CleanedSamples) -> SampleSets:
    """Create sample sets from cleaned samples, without contention."""
    sets = shared.make_sample_sets(cleaned.volume_bytes, cleaned.interference_bytes)
    return remove_contention(sets, cleaned.active_count, cleaned.active_ratio, cleaned.contention_cost)


# ---- acceptance


def _compute_explained_ratio(shared: SharedTraffic, cleaned: CleanedSamples, signatures: Sequence[Signature]) -> Reals:
    """Compute the fraction of the interference in each application's samples that other applications explain (m)."""
    sample_count = len(shared.sample_runs)
    edges = shared.set_offsets
    attributed = _sum_by_sample(cleaned.interference_bytes, cleaned.volume_bytes.owner, sample_count)
    cleaned_bytes = _sum_by_sample(np.nan_to_num(cleaned.volume_bytes.values), cleaned.volume_bytes.owner, sample_count)
    ratio = np.full(shared.application_count, np.nan)
    for index, signature in enumerate(signatures):
        runs = slice(edges[index], edges[index + 1])
        volume = signature.volume_bytes if signature.outcome == "extracted" else 0.0
        interference = attributed[runs].sum() + np.maximum(cleaned_bytes[runs] - volume, 0.0).sum()
        if interference > 0:
            ratio[index] = attributed[runs].sum() / interference
    return ratio


def _sum_by_sample(values: Reals, owner: Ints, count: int) -> Reals:
    sums: Reals = np.bincount(owner, values, count).astype(np.float64)
    return sums


def compute_required_gain(expected_correlation: Reals) -> Reals:
    """Return the gain in correlation required to replace plain signatures with these expected correlations (m)."""
    gain: Reals = np.interp(np.nan_to_num(expected_correlation), _GAIN_RANGE, (0.0, _MAX_REQUIRED_GAIN))
    return gain


def _correlation_gain(
    shared: SharedTraffic, cleaned: CleanedSamples, extract_plain: PlainExtractor, is_tested: Bools
) -> Reals:
    """Compute the gain in correlation with held-out runs, by two-fold cross-validation (m); NaN where not tested."""
    gain = np.zeros(len(is_tested))
    is_known = is_tested.copy()
    raw = shared.cut_samples(shared.volume_bytes)
    plain_all, joint_all = shared.make_sample_sets(raw), _make_clean_sets(shared, cleaned)
    for fold in (0, 1):
        plain = extract_plain(_select_fold(plain_all, fold))
        joint = extract_envelopes(_select_fold(joint_all, fold), 1).signatures
        held_out = _select_fold(joint_all, 1 - fold)
        for index in np.flatnonzero(is_tested).tolist():
            summary = RunSummary.from_set(held_out.get_set(index))
            if summary is None:
                is_known[index] = False
                continue
            gain[index] += mean_run_correlation(summary, joint[index]) - mean_run_correlation(summary, plain[index])
    return np.where(is_known, gain / 2.0, np.nan)


def _select_fold(sets: SampleSets, fold: int) -> SampleSets:
    """Select every second run of each set: those with an even index (fold 0) or an odd one (fold 1)."""
    place = np.arange(int(sets.offsets[-1])) - sets.offsets[owners(sets.offsets)]
    bounds = zip(sets.offsets[:-1].tolist(), sets.offsets[1:].tolist(), strict=True)
    return SampleSets.concatenate(
        [sets.get_set(index).select_runs(place[a:b] % 2 == fold) for index, (a, b) in enumerate(bounds)]
    )


def mean_run_correlation(summary: RunSummary, signature: Signature) -> float:
    """Compute the correlation of a signature with each summarized run, averaged over runs.

    Parameters
    ----------
    summary
        Runs from which the signature was not extracted.
    signature
        Signature from any method.

    Returns
    -------
    float
        The mean correlation; 0 without a signature.
    """
    if signature.outcome != "extracted":
        return 0.0
    curve = summary.resample(signature)
    height = max(float(np.quantile(curve, 0.99)), 0.5 * float(curve.max()), 1e-300)
    clipped = np.minimum(summary.rates, COMPARISON_PARAMS.max_height_ratio * height)
    return float(pearson_correlation(clipped, curve[None]).mean())
