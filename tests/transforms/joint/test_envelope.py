"""Envelopes weight clean steps most and tolerate missing bytes."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Ragged
from iosig.transforms.joint.envelope import extract_envelopes, weighted_mean_s
from iosig.transforms.signatures.similarity import correlation
from tests.joint_sites import BUSY, CALM, simulate_site, true_curve

SITE = simulate_site((CALM, BUSY), 8, 6000)
RAW = SITE.shared.cut_samples(SITE.shared.volume_bytes)
OTHERS = RAW.values - SITE.own.values


def test_clean_samples_yield_the_truth() -> None:
    result = extract_envelopes(SITE.shared.make_sample_sets(SITE.own, np.zeros(len(OTHERS))), 5)
    for one, application in zip(result.signatures, (CALM, BUSY), strict=True):
        assert correlation(one.bytes_per_s, true_curve(application)) > 0.97
        assert len(one.bursts) == len(application[1])
        assert (one.low_bytes_per_s <= one.bytes_per_s).all()
        assert (one.bytes_per_s <= one.high_bytes_per_s).all()
    assert (result.expected_correlation > 0.8).all()


def test_bursts_survive_missing_bytes_in_a_third_of_runs() -> None:
    lacks = np.repeat(np.arange(len(RAW.counts)) % 3 == 0, RAW.counts)
    holes = Ragged(np.where(lacks, 0.1, 1.0) * SITE.own.values, RAW.offsets)
    result = extract_envelopes(SITE.shared.make_sample_sets(holes, np.zeros(len(OTHERS))), 5)
    assert correlation(result.signatures[0].bytes_per_s, true_curve(CALM)) > 0.9
    assert result.signatures[0].volume_bytes > 0.8 * true_curve(CALM).sum()


def test_steps_with_interference_have_less_weight() -> None:
    # interference is not subtracted here, only its position is known
    blind, weighted = (
        extract_envelopes(SITE.shared.make_sample_sets(RAW, others), 5) for others in (np.zeros(len(OTHERS)), OTHERS)
    )
    near = [correlation(one.signatures[1].bytes_per_s, true_curve(BUSY)) for one in (blind, weighted)]
    assert near[1] > near[0]
    assert near[1] > 0.9


def test_too_few_runs_and_silent_runs_have_no_signature() -> None:
    sets = SITE.shared.make_sample_sets(SITE.own, np.zeros(len(OTHERS)))
    assert [one.outcome for one in extract_envelopes(sets, 9).signatures] == ["too_few_samples"] * 2
    nothing = SITE.shared.make_sample_sets(Ragged(np.zeros(len(OTHERS)), RAW.offsets), OTHERS)
    result = extract_envelopes(nothing, 5)
    assert [one.outcome for one in result.signatures] == ["no_common_bursts"] * 2
    assert np.isnan(result.expected_correlation).all()


def test_outlying_duration_has_little_weight() -> None:
    assert weighted_mean_s(np.array([100.0, 101.0, 99.0, 400.0])) == pytest.approx(100.0, abs=1.0)
    assert weighted_mean_s(np.array([7.0])) == 7.0
    assert weighted_mean_s(np.zeros(3)) == 0.0
