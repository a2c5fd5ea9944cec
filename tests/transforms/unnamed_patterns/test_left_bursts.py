"""Bursts of what is left: where they begin and end, what stands out, and what is beside a gap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from iosig.transforms.arrays import Reals
from iosig.transforms.unnamed_patterns.left_bursts import PROFILE_POINTS, LeftBurstParams, left_bursts

STEP_S = 10.0


def surface(count: int = 2000) -> Reals:
    return np.random.default_rng(3).lognormal(0.0, 0.3, count)


def test_bursts_are_found_with_their_bytes_and_widths() -> None:
    left = surface()
    left[500:510] += 50.0
    left[900] += 400.0
    # a dip of one step is part of it
    left[1200:1203] += 80.0
    left[1204:1206] += 80.0
    found = left_bursts(left, 6.0)
    assert list(zip(found.first.tolist(), found.after.tolist(), strict=True)) == [(500, 510), (900, 901), (1200, 1206)]
    # what flows beneath them is not theirs
    assert found.volume_bytes == pytest.approx([500.0, 400.0, 400.0], rel=0.01)
    assert found.width[:2] == pytest.approx([10.0, 1.0], rel=0.01)
    assert found.profile[0] == pytest.approx(np.arange(1, PROFILE_POINTS + 1) / (PROFILE_POINTS + 1), abs=0.02)
    # of others that are as many steps apart as that
    assert len(left_bursts(left, STEP_S)) == 4


def test_what_is_beside_a_gap_is_left_out() -> None:
    left = surface()
    left[500:510] += 50.0
    left[510:520] = np.nan
    left[700:705] += 50.0
    left[-5:] += 50.0
    assert left_bursts(left, STEP_S).first.tolist() == [700]


@pytest.mark.parametrize("left", [np.zeros(0), np.zeros(50), np.full(50, np.nan), np.ones(50)])
def test_without_anything_that_stands_out_there_are_none(left: Reals) -> None:
    assert not len(left_bursts(left, STEP_S))


def test_what_is_nowhere_above_what_flows_beside_it_is_no_burst() -> None:
    left = np.full(2000, 0.1)
    # slow transfers beside two high bursts are no part of them, and a dip between these is none of its own
    left[500:521] = 15.0
    left[507:514] = 10.0
    left[[500, 520]] = 100.0
    found = left_bursts(left, STEP_S)
    assert found.first.tolist() == [500, 520]
    assert (found.volume_bytes > 0).all()
    assert np.isfinite(found.width).all()


def test_volumes_are_nearer_to_the_truth_the_longer_is_told_what_flows_beneath() -> None:
    """The mean of n restless steps scatters by the n-th part of their variance, and what is beneath is m steps long."""
    scatter = []
    for flank_s, count in ((15.0, 6), (120.0, 48)):
        left = np.random.default_rng(5).normal(10.0, 1.0, 200_000)
        begun = np.arange(100, 199_900, 200)
        left[begun[:, None] + np.arange(10)] += 500.0
        found = left_bursts(left, 5.0, LeftBurstParams(flank_s=flank_s))
        assert found.first.tolist() == begun.tolist()
        scatter.append(float(found.volume_bytes.std()))
        # ten steps of its own, and as many (and the two beside it) of what is told to be beneath
        assert scatter[-1] == pytest.approx(np.sqrt(12 + 12**2 / count), rel=0.1)
        assert np.sqrt((found.inexact_bytes**2).mean()) == pytest.approx(np.sqrt(12), rel=0.1)
    assert scatter[1] < 0.75 * scatter[0]


@given(hnp.arrays(np.float64, st.integers(0, 60), elements=st.sampled_from([0.0, 0.1, 1.0, 3.0, 15.0, 100.0, np.nan])))
def test_bursts_move_something_and_are_as_wide_as_they_last_at_most(left: Reals) -> None:
    found = left_bursts(left, STEP_S)
    assert (found.volume_bytes > 0).all()
    # a burst has a part of the steps beside it
    assert ((found.width > 0) & (found.width <= found.after - found.first + 2 + 1e-9)).all()
