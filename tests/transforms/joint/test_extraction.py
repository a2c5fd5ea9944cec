"""Joint signatures improve on plain ones, and errors of known signatures do not propagate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from iosig.transforms.joint.extraction import (
    JointParams,
    JointResult,
    compute_required_gain,
    extract_jointly,
    mean_run_correlation,
)
from iosig.transforms.joint.shared_traffic import KnownSignatures
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.expected_correlation import RunSummary
from iosig.transforms.signatures.methods import SignatureParams
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import correlation
from tests.joint_sites import BUSY, CALM, DENSE, SPARSE, Application, make_known_signatures, simulate_site, true_curve

ALL = (CALM, BUSY, SPARSE, DENSE)
SITE = simulate_site(ALL, 10, 10_000)


def extract_plain(sets: SampleSets) -> Sequence[Signature]:
    """Extract `elastic` signatures from three runs or more."""
    return methods.extract_signatures(sets, SignatureParams(min_run_count=3), ["elastic"])[0].signatures


@cache
def extract_plain_signatures() -> KnownSignatures:
    shared = SITE.shared
    answer = methods.extract_signatures(
        shared.make_sample_sets(shared.cut_samples(shared.volume_bytes)), methods=["elastic"]
    )[0]
    return KnownSignatures(
        tuple(one if one.outcome == "extracted" else None for one in answer.signatures), answer.expected_correlation
    )


@cache
def extract_joint() -> JointResult:
    return extract_jointly(SITE.shared, extract_plain_signatures(), extract_plain)


def correlation_with_truth(one: Signature | None, application: Application) -> float:
    if one is None or one.outcome != "extracted":
        return 0.0
    return correlation(one.bytes_per_s, true_curve(application))


def test_joint_signatures_correlate_better_than_plain_signatures() -> None:
    result = extract_joint()
    assert result.is_accepted.all()
    before, after = (
        sum(1.0 - correlation_with_truth(one, application) for one, application in zip(answers, ALL, strict=True))
        for answers in (extract_plain_signatures().signatures, result.signatures)
    )
    assert after < 0.5 * before
    assert (result.explained_ratio > 0.7).all()


def test_no_accepted_signature_is_worse_on_a_calm_site() -> None:
    calm = simulate_site(ALL, 8, 24_000)
    shared = calm.shared
    answer = methods.extract_signatures(
        shared.make_sample_sets(shared.cut_samples(shared.volume_bytes)), methods=["elastic"]
    )[0]
    result = extract_jointly(
        shared, KnownSignatures(tuple(answer.signatures), answer.expected_correlation), extract_plain
    )
    for old, new, is_better, application in zip(
        answer.signatures, result.signatures, result.is_accepted.tolist(), ALL, strict=True
    ):
        assert correlation_with_truth(old, application) > 0.9
        assert (
            correlation_with_truth(new if is_better else old, application)
            >= correlation_with_truth(old, application) - 0.005
        )


def test_required_gain_increases_with_expected_correlation() -> None:
    result = compute_required_gain(np.array([np.nan, 0.0, 0.8, 0.875, 0.95, 1.0]))
    assert result == pytest.approx([0.0, 0.0, 0.0, 0.015, 0.03, 0.03])


def test_gain_below_the_requirement_is_rejected() -> None:
    # With a full expected correlation of the plain signatures, small gains are rejected.
    result = extract_joint()
    sure = extract_jointly(
        SITE.shared, KnownSignatures(extract_plain_signatures().signatures, np.ones(len(ALL))), extract_plain
    )
    assert sure.correlation_gain.tolist() == result.correlation_gain.tolist()
    assert sure.is_accepted.tolist() == (result.correlation_gain > compute_required_gain(np.ones(len(ALL)))).tolist()


def test_expected_correlation_must_not_decrease() -> None:
    plain_trust = extract_joint().expected_correlation + np.array([0.01, -0.01, np.nan, 0.0])
    result = extract_jointly(
        SITE.shared, KnownSignatures(extract_plain_signatures().signatures, plain_trust), extract_plain
    )
    assert result.is_accepted.tolist() == [
        False, True, True, True,
    ]  # fmt: skip


def test_joint_extraction_is_deterministic() -> None:
    again = extract_jointly(SITE.shared, extract_plain_signatures(), extract_plain)
    for old, new in zip(extract_joint().signatures, again.signatures, strict=True):
        assert old.bytes_per_s.tobytes() == new.bytes_per_s.tobytes()
    assert again.correlation_gain.tolist() == extract_joint().correlation_gain.tolist()


def test_plain_signature_stays_if_interference_is_unexplained() -> None:
    is_calm = SITE.shared.application == 0
    alone = replace(
        SITE.shared,
        application=SITE.shared.application[is_calm],
        application_count=1,
        started=SITE.shared.started[is_calm],
        ended=SITE.shared.ended[is_calm],
        is_sample=SITE.shared.is_sample[is_calm],
    )
    result = extract_jointly(
        alone,
        KnownSignatures(extract_plain_signatures().signatures[:1], extract_plain_signatures().expected_correlation[:1]),
        extract_plain,
    )
    assert not result.is_accepted.any()
    assert result.explained_ratio.tolist() == [0.0]


def test_false_signature_of_another_application_is_harmless() -> None:
    # The known signature of the other application claims the traffic of this application, and more.
    false: Application = (500.0, [(10, 110, 9.0), (210, 310, 9.0), (410, 490, 9.0)])
    result = extract_jointly(SITE.shared, make_known_signatures(CALM, false, SPARSE, DENSE), extract_plain)
    stands = result.signatures[0] if result.is_accepted[0] else extract_plain_signatures().signatures[0]
    assert (
        correlation_with_truth(stands, CALM)
        >= correlation_with_truth(extract_plain_signatures().signatures[0], CALM) - 0.02
    )


def test_false_burst_in_known_signature_is_removed() -> None:
    # no traffic at the false burst: it gets no volume, and coincidences are not common
    false: Application = (600.0, [*CALM[1], (360, 400, 8.0)])
    result = extract_jointly(SITE.shared, make_known_signatures(false, *ALL[1:]), extract_plain)
    begun = result.signatures[0].bursts.start_s
    assert not ((begun > 340) & (begun < 420)).any()
    assert correlation_with_truth(result.signatures[0], CALM) > 0.9


def test_runs_outside_sample_sets_are_subtracted_but_not_extracted() -> None:
    is_sample = (SITE.shared.application == 0) | (np.arange(len(SITE.shared.application)) % 2 == 0)
    result = extract_jointly(
        replace(SITE.shared, is_sample=is_sample),
        extract_plain_signatures(),
        extract_plain,
        JointParams(min_run_count=6),
    )
    assert result.signatures[1].outcome == "too_few_samples"
    assert correlation_with_truth(result.signatures[0], CALM) > 0.9


def test_missing_signature_has_zero_correlation() -> None:
    sets = SITE.shared.make_sample_sets(SITE.own)
    judge = RunSummary.from_set(sets.get_set(0))
    assert judge is not None
    assert mean_run_correlation(judge, Signature.missing("no_common_bursts")) == 0.0
    assert mean_run_correlation(judge, extract_joint().signatures[0]) > 0.8
