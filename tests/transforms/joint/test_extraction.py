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
    extract_jointly,
    mean_run_correlation,
    required_gain,
)
from iosig.transforms.joint.shared_traffic import KnownSignatures
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.expected_correlation import RunSummary
from iosig.transforms.signatures.methods import SignatureParams
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import correlation
from tests.joint_sites import BUSY, CALM, DENSE, SPARSE, Application, curve_of, drawn, known_of

ALL = (CALM, BUSY, SPARSE, DENSE)
SITE = drawn(ALL, 10, 10_000)


def plainly(sets: SampleSets) -> Sequence[Signature]:
    """Return `warped` signatures, of three runs and more."""
    return methods.extract_signatures(sets, SignatureParams(min_run_count=3), ["warped"])[0].signatures


@cache
def plain() -> KnownSignatures:
    shared = SITE.shared
    answer = methods.extract_signatures(
        shared.make_sample_sets(shared.cut_samples(shared.volume_bytes)), methods=["warped"]
    )[0]
    return KnownSignatures(
        tuple(one if one.outcome == "extracted" else None for one in answer.signatures), answer.expected_correlation
    )


@cache
def together() -> JointResult:
    return extract_jointly(SITE.shared, plain(), plainly)


def near(one: Signature | None, application: Application) -> float:
    if one is None or one.outcome != "extracted":
        return 0.0
    return correlation(one.bytes_per_s, curve_of(application))


def test_joint_signatures_improve_correlation() -> None:
    found = together()
    assert found.is_accepted.all()
    before, after = (
        sum(1.0 - near(one, application) for one, application in zip(answers, ALL, strict=True))
        for answers in (plain().signatures, found.signatures)
    )
    assert after < 0.5 * before
    assert (found.explained_ratio > 0.7).all()


def test_no_accepted_signature_is_worse_on_a_calm_site() -> None:
    calm = drawn(ALL, 8, 24_000)
    shared = calm.shared
    answer = methods.extract_signatures(
        shared.make_sample_sets(shared.cut_samples(shared.volume_bytes)), methods=["warped"]
    )[0]
    found = extract_jointly(shared, KnownSignatures(tuple(answer.signatures), answer.expected_correlation), plainly)
    for old, new, is_better, application in zip(
        answer.signatures, found.signatures, found.is_accepted.tolist(), ALL, strict=True
    ):
        assert near(old, application) > 0.9
        assert near(new if is_better else old, application) >= near(old, application) - 0.005


def test_required_gain_increases_with_expected_correlation() -> None:
    found = required_gain(np.array([np.nan, 0.0, 0.8, 0.875, 0.95, 1.0]))
    assert found == pytest.approx([0.0, 0.0, 0.0, 0.015, 0.03, 0.03])


def test_gain_below_the_requirement_is_rejected() -> None:
    # the same answers, but the plain ones trusted fully: those that gain less than that stay
    found = together()
    sure = extract_jointly(SITE.shared, KnownSignatures(plain().signatures, np.ones(len(ALL))), plainly)
    assert sure.correlation_gain.tolist() == found.correlation_gain.tolist()
    assert sure.is_accepted.tolist() == (found.correlation_gain > required_gain(np.ones(len(ALL)))).tolist()


def test_expected_correlation_must_not_decrease() -> None:
    plain_trust = together().expected_correlation + np.array([0.01, -0.01, np.nan, 0.0])
    found = extract_jointly(SITE.shared, KnownSignatures(plain().signatures, plain_trust), plainly)
    assert found.is_accepted.tolist() == [
        False, True, True, True,
    ]  # fmt: skip


def test_result_is_deterministic() -> None:
    again = extract_jointly(SITE.shared, plain(), plainly)
    for old, new in zip(together().signatures, again.signatures, strict=True):
        assert old.bytes_per_s.tobytes() == new.bytes_per_s.tobytes()
    assert again.correlation_gain.tolist() == together().correlation_gain.tolist()


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
    found = extract_jointly(alone, KnownSignatures(plain().signatures[:1], plain().expected_correlation[:1]), plainly)
    assert not found.is_accepted.any()
    assert found.explained_ratio.tolist() == [0.0]


def test_false_signature_of_another_application_is_harmless() -> None:
    # the other one is said to do what this one does, and more of it
    false: Application = (500.0, [(10, 110, 9.0), (210, 310, 9.0), (410, 490, 9.0)])
    found = extract_jointly(SITE.shared, known_of(CALM, false, SPARSE, DENSE), plainly)
    stands = found.signatures[0] if found.is_accepted[0] else plain().signatures[0]
    assert near(stands, CALM) >= near(plain().signatures[0], CALM) - 0.02


def test_false_burst_in_own_signature_is_removed() -> None:
    # nothing is there where it says: so it gets no byte, and what it took of others by chance is not common
    false: Application = (600.0, [*CALM[1], (360, 400, 8.0)])
    found = extract_jointly(SITE.shared, known_of(false, *ALL[1:]), plainly)
    begun = found.signatures[0].bursts.started_s
    assert not ((begun > 340) & (begun < 420)).any()
    assert near(found.signatures[0], CALM) > 0.9


def test_runs_outside_sample_sets_are_subtracted_but_not_extracted() -> None:
    is_sample = (SITE.shared.application == 0) | (np.arange(len(SITE.shared.application)) % 2 == 0)
    found = extract_jointly(replace(SITE.shared, is_sample=is_sample), plain(), plainly, JointParams(min_run_count=6))
    assert found.signatures[1].outcome == "too_few_samples"
    assert near(found.signatures[0], CALM) > 0.9


def test_missing_signature_has_zero_correlation() -> None:
    sets = SITE.shared.make_sample_sets(SITE.own)
    judge = RunSummary.from_set(sets.get_set(0))
    assert judge is not None
    assert mean_run_correlation(judge, Signature.missing("no_common_bursts")) == 0.0
    assert mean_run_correlation(judge, together().signatures[0]) > 0.8
