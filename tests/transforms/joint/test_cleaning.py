"""Cleaning removes the interference of other applications and keeps an application's own traffic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iosig.transforms.joint.cleaning import CleanedSamples, clean_samples
from iosig.transforms.joint.shared_traffic import SharedTraffic
from tests.joint_sites import BUSY, CALM, drawn, known_of

LEAST = 5
SITE = drawn((CALM, BUSY), 6, 6000)
RAW = SITE.shared.cut_samples(SITE.shared.volume_bytes)
NOTHING = known_of(None, None)


def clean(shared: SharedTraffic = SITE.shared) -> CleanedSamples:
    return clean_samples(shared, NOTHING, LEAST)


def test_interference_is_removed_without_known_signatures() -> None:
    found = clean()
    before, after = (np.abs(one - SITE.own.values).sum() for one in (RAW.values, found.volume_bytes.values))
    assert after < 0.15 * before
    assert found.volume_bytes.offsets.tolist() == RAW.offsets.tolist()


def test_interference_and_cleaned_volume_add_up_to_traffic() -> None:
    found = clean()
    assert (found.volume_bytes.values >= 0).all()
    assert found.volume_bytes.values == pytest.approx(np.maximum(RAW.values - found.interference_bytes, 0.0))
    assert (found.interference_bytes >= 0).all()


def test_own_runs_are_not_subtracted() -> None:
    # two runs of one application, one beside the other: what both did stays in both
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
    found = clean_samples(alone, known_of(None), LEAST)
    assert found.volume_bytes.values.tolist() == alone.cut_samples(alone.volume_bytes).values.tolist()
    assert not found.interference_bytes.any()


def test_gaps_stay_missing() -> None:
    volume = SITE.shared.volume_bytes.copy()
    volume[500:520] = np.nan
    found = clean(replace(SITE.shared, volume_bytes=volume))
    gap = np.isnan(SITE.shared.cut_samples(volume).values)
    assert np.isnan(found.volume_bytes.values).tolist() == gap.tolist()
    assert np.isfinite(found.interference_bytes).all()
    assert found.volume_bytes.values[~gap] == pytest.approx(clean().volume_bytes.values[~gap], abs=3.0)


def test_order_of_applications_does_not_matter() -> None:
    found = clean(replace(SITE.shared, application=1 - SITE.shared.application))
    assert found.volume_bytes.values.sum() == pytest.approx(clean().volume_bytes.values.sum())
