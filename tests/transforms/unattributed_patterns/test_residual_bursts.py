"""Bursts in residual traffic: limits, volumes, widths, contrast, and gaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from iosig.transforms.arrays import Reals
from iosig.transforms.unattributed_patterns.residual_bursts import PROFILE_POINTS, ResidualBurstParams, find_bursts

STEP_S = 10.0


def background(count: int = 2000) -> Reals:
    return np.random.default_rng(3).lognormal(0.0, 0.3, count)


def test_bursts_have_limits_volumes_and_widths() -> None:
    residual = background()
    residual[500:510] += 50.0
    residual[900] += 400.0
    # A dip of one step does not end a burst.
    residual[1200:1203] += 80.0
    residual[1204:1206] += 80.0
    result = find_bursts(residual, 6.0)
    assert list(zip(result.first.tolist(), result.after.tolist(), strict=True)) == [
        (500, 510),
        (900, 901),
        (1200, 1206),
    ]
    # The background is subtracted.
    assert result.volume_bytes == pytest.approx([500.0, 400.0, 400.0], rel=0.01)
    assert result.width[:2] == pytest.approx([10.0, 1.0], rel=0.01)
    assert result.profile[0] == pytest.approx(np.arange(1, PROFILE_POINTS + 1) / (PROFILE_POINTS + 1), abs=0.02)
    # At this step length, the dip is too long.
    assert len(find_bursts(residual, STEP_S)) == 4


def test_bursts_next_to_a_gap_are_left_out() -> None:
    residual = background()
    residual[500:510] += 50.0
    residual[510:520] = np.nan
    residual[700:705] += 50.0
    residual[-5:] += 50.0
    assert find_bursts(residual, STEP_S).first.tolist() == [700]


@pytest.mark.parametrize("residual", [np.zeros(0), np.zeros(50), np.full(50, np.nan), np.ones(50)])
def test_constant_or_missing_traffic_has_no_bursts(residual: Reals) -> None:
    assert not len(find_bursts(residual, STEP_S))


def test_burst_exceeds_its_surroundings() -> None:
    residual = np.full(2000, 0.1)
    # Slow transfers next to two high bursts do not belong to them, and the dip between them is no burst.
    residual[500:521] = 15.0
    residual[507:514] = 10.0
    residual[[500, 520]] = 100.0
    result = find_bursts(residual, STEP_S)
    assert result.first.tolist() == [500, 520]
    assert (result.volume_bytes > 0).all()
    assert np.isfinite(result.width).all()


def test_longer_flanks_reduce_the_volume_error() -> None:
    """The background's mean over n steps has 1 / n of their variance, and is subtracted from all steps of a burst."""
    scatter = []
    for flank_s, count in ((15.0, 6), (120.0, 48)):
        residual = np.random.default_rng(5).normal(10.0, 1.0, 200_000)
        started = np.arange(100, 199_900, 200)
        residual[started[:, None] + np.arange(10)] += 500.0
        result = find_bursts(residual, 5.0, ResidualBurstParams(flank_s=flank_s))
        assert result.first.tolist() == started.tolist()
        scatter.append(float(result.volume_bytes.std()))
        # Fluctuation within the twelve steps of the burst, plus the error of the background's mean.
        assert scatter[-1] == pytest.approx(np.sqrt(12 + 12**2 / count), rel=0.1)
        assert np.sqrt((result.error_bytes**2).mean()) == pytest.approx(np.sqrt(12), rel=0.1)
    assert scatter[1] < 0.75 * scatter[0]


@given(hnp.arrays(np.float64, st.integers(0, 60), elements=st.sampled_from([0.0, 0.1, 1.0, 3.0, 15.0, 100.0, np.nan])))
def test_bursts_have_bytes_and_are_no_wider_than_long(residual: Reals) -> None:
    result = find_bursts(residual, STEP_S)
    assert (result.volume_bytes > 0).all()
    # The partial steps at both ends count.
    assert ((result.width > 0) & (result.width <= result.after - result.first + 2 + 1e-9)).all()
