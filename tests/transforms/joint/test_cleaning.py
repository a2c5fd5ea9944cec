"""Cleaning removes the interference of other applications and keeps the application's traffic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iosig.transforms.joint.cleaning import CleanedSamples, clean_samples
from iosig.transforms.joint.shared_traffic import SharedTraffic
from tests.joint_sites import BUSY, CALM, make_known_signatures, simulate_site

LEAST = 5
SITE = simulate_site((CALM, BUSY), 6, 6000)
RAW = SITE.shared.cut_samples(SITE.shared.volume_bytes)
NOTHING = make_known_signatures(None, None)


def clean_site(shared: SharedTraffic = SITE.shared) -> CleanedSamples:
    return clean_samples(shared, NOTHING, LEAST)


def test_interference_is_removed_without_known_signatures() -> None:
    result = clean_site()
    before, after = (np.abs(one - SITE.own.values).sum() for one in (RAW.values, result.volume_bytes.values))
    assert after < 0.15 * before
    assert result.volume_bytes.offsets.tolist() == RAW.offsets.tolist()


def test_interference_and_cleaned_volume_add_up_to_traffic() -> None:
    result = clean_site()
    assert (result.volume_bytes.values >= 0).all()
    assert result.volume_bytes.values == pytest.approx(np.maximum(RAW.values - result.interference_bytes, 0.0))
    assert (result.interference_bytes >= 0).all()


def test_runs_of_the_same_application_are_not_subtracted() -> None:
    # two concurrent runs of one application keep the traffic of both
    shared = SITE.shared
    is_calm = shared.application == 0
    alone = replace(
        shared,
        application=shared.application[is_calm],
        application_count=1,
        started=shared.started[is_calm],
        ended=shared.ended[is_calm],
        is_sample=shared.is_sample[is_calm],
    )
    result = clean_samples(alone, make_known_signatures(None), LEAST)
    assert result.volume_bytes.values.tolist() == alone.cut_samples(alone.volume_bytes).values.tolist()
    assert not result.interference_bytes.any()


def test_gaps_stay_missing() -> None:
    volume = SITE.shared.volume_bytes.copy()
    volume[500:520] = np.nan
    result = clean_site(replace(SITE.shared, volume_bytes=volume))
    gap = np.isnan(SITE.shared.cut_samples(volume).values)
    assert np.isnan(result.volume_bytes.values).tolist() == gap.tolist()
    assert np.isfinite(result.interference_bytes).all()
    assert result.volume_bytes.values[~gap] == pytest.approx(clean_site().volume_bytes.values[~gap], abs=3.0)


def test_order_of_applications_does_not_matter() -> None:
    result = clean_site(replace(SITE.shared, application=1 - SITE.shared.application))
    assert result.volume_bytes.values.sum() == pytest.approx(clean_site().volume_bytes.values.sum())
