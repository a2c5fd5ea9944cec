"""Cleaning: others' bytes go, an application's own stay, whatever is known of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.joint_sites import BUSY, CALM, Application, drawn, known_of
from transforms.joint.cleaning import cleaned

SITE = drawn((CALM, BUSY), 6, 6000)
RAW = SITE.shared.cut(SITE.shared.volume_bytes)


def test_others_bytes_go_where_both_are_known() -> None:
    found = cleaned(SITE.shared, known_of(CALM, BUSY))
    before, after = (np.abs(one - SITE.own.values).sum() for one in (RAW.values, found.own.values))
    assert after < 0.15 * before
    assert found.own.offsets.tolist() == RAW.offsets.tolist()


def test_what_is_taken_and_what_is_left_is_what_was_there() -> None:
    found = cleaned(SITE.shared, known_of(CALM, BUSY))
    assert (found.own.values >= 0).all()
    assert (found.own.values <= RAW.values).all()
    # no more than others were given, as some are less certain than others
    assert (RAW.values - found.own.values <= found.others + 1e-9).all()


def test_nothing_is_taken_off_by_ones_own_signature() -> None:
    # its bursts find half of what they are said to be: with less they are no bursts
    false: Application = (600.0, [(50, 110, 5.0), (250, 310, 5.0)])
    found = cleaned(SITE.shared, known_of(false, None))
    is_own = np.repeat(SITE.shared.application[SITE.shared.samples] == 0, RAW.counts)
    assert found.own.values[is_own].tolist() == RAW.values[is_own].tolist()
    assert not found.others[is_own].any()
    # but of the others' samples it is
    assert found.others[~is_own].any()


def test_without_any_signature_samples_stay_as_they_are() -> None:
    found = cleaned(SITE.shared, known_of(None, None))
    assert found.own.values.tolist() == RAW.values.tolist()
    assert not found.others.any()


def test_what_was_not_measured_is_not_zero() -> None:
    volume = SITE.shared.volume_bytes.copy()
    volume[500:520] = np.nan
    shared = replace(SITE.shared, volume_bytes=volume)
    found = cleaned(shared, known_of(CALM, BUSY))
    assert np.isnan(found.own.values).tolist() == np.isnan(shared.cut(volume).values).tolist()
    assert np.isfinite(found.others).all()


def test_less_is_taken_by_who_is_less_certain() -> None:
    known = known_of(CALM, BUSY)
    unsure = replace(known, trust=np.array([0.9, 0.1]))
    is_calm = np.repeat(SITE.shared.application[SITE.shared.samples] == 0, RAW.counts)
    sure, less = (cleaned(SITE.shared, one).own.values[is_calm].sum() for one in (known, unsure))
    assert sure < 0.7 * less
    assert less <= RAW.values[is_calm].sum()


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_how_applications_are_numbered_does_not_matter(order: list[int]) -> None:
    shared = replace(SITE.shared, application=np.array(order)[SITE.shared.application])
    found = cleaned(shared, known_of(*(CALM, BUSY)[:: 1 if order == [0, 1] else -1]))
    own = cleaned(SITE.shared, known_of(CALM, BUSY)).own
    assert found.own.values.sum() == pytest.approx(own.values.sum())
