"""Burst detection: true bursts, noise, dips, scales, and a naive implementation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.signatures import bursts as module
from iosig.transforms.signatures.bursts import PARAMS, BurstDetectionParams, burst_height, detect_bursts
from iosig.transforms.synthetic.site import signature
from iosig.transforms.synthetic.workload import APPLICATIONS, Application
from tests.budget import examples
from tests.naive.signatures import bursts as naive

pytestmark = pytest.mark.filterwarnings("error")

Reals = npt.NDArray[np.float64]


def make_curve(*pieces: tuple[float, int]) -> Reals:
    """Make a curve from pieces of (rate, seconds)."""
    return np.concatenate([np.zeros(0), *(np.full(count, rate, dtype=np.float64) for rate, count in pieces)])


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda one: one.name)
def test_true_bursts_are_detected_exactly(application: Application) -> None:
    true = [burst for burst in application.bursts if burst.direction == "write"]
    curve = signature(application, "write")
    result = detect_bursts(curve)
    assert len(result) == len(true)
    np.testing.assert_allclose(result.start_s, [burst.offset_s for burst in true], atol=1.0)
    np.testing.assert_allclose(result.end_s, [burst.end_s for burst in true], atol=1.0)
    # Except for partial seconds at the edges.
    lost = np.array([burst.volume_bytes for burst in true]) - result.volume_bytes
    assert lost.min() > -1.0
    assert lost.max() < 2 * PARAMS.min_height_ratio * burst_height(curve)
    assert (result.start_s < result.peak_s).all()
    assert (result.peak_s < result.end_s).all()
    assert np.isnan(result.support_ratio).all()


@pytest.mark.parametrize("name", ["ior_a", "ior_b", "ior_c", "s3d", "flash"])
def test_noise_adds_no_bursts(name: str) -> None:
    application = next(one for one in APPLICATIONS if one.name == name)
    curve = signature(application, "write")
    noise = np.random.default_rng(1).exponential(0.02, len(curve)) * curve.max()
    noisy = detect_bursts(curve + noise)
    assert len(noisy) == len(application.bursts)
    np.testing.assert_allclose(noisy.start_s, detect_bursts(curve).start_s, atol=2.0)


def test_burst_edges_peaks_and_volumes_are_exact() -> None:
    result = detect_bursts(make_curve((0, 3), (5, 2), (9, 2), (4, 1), (0, 8), (8, 3), (0, 2)))
    assert result.start_s.tolist() == [3.0, 16.0]
    assert result.peak_s.tolist() == [5.5, 16.5]
    assert result.end_s.tolist() == [8.0, 19.0]
    assert result.volume_bytes.tolist() == [32.0, 24.0]


def test_short_dips_are_bridged_and_long_dips_split() -> None:
    assert len(detect_bursts(make_curve((9, 5), (0, 4), (9, 5)))) == 1
    assert len(detect_bursts(make_curve((9, 5), (0, 5), (9, 5)))) == 2
    result = detect_bursts(make_curve((9, 5), (1, 4), (9, 5)))
    assert result.volume_bytes.tolist() == [94.0]


def test_only_negligible_bursts_are_dropped() -> None:
    for count, expected in ((4, 1), (5, 2)):
        assert len(detect_bursts(make_curve((10, 100), (0, 50), (10, count)))) == expected
    many = make_curve(*[(10.0, 5), (0.0, 20)] * 400)
    assert len(detect_bursts(many)) == 400, "each is a small share of all, and none is negligible"


def test_height_ignores_noise_and_single_peaks() -> None:
    # The noise has five times the volume of the burst.
    assert burst_height(make_curve((0.1, 5000), (10, 10))) == 10.0
    assert burst_height(make_curve((5, 50), (10, 1))) == 5.0
    # Squared weights: 400 and 600, then 800 and 600.
    assert burst_height(make_curve((5, 16), (10, 6))) == 10.0
    assert burst_height(make_curve((5, 32), (10, 6))) == 5.0
    assert np.isnan(burst_height(make_curve((0, 5))))


@pytest.mark.parametrize(
    "none",
    [
        make_curve(),
        make_curve((0, 9)),
        make_curve((np.nan, 3)),
        make_curve((-1, 4)),
        np.full(3, -np.inf),
        np.full(2, np.inf),
    ],
)
def test_curve_without_io_has_no_bursts(none: Reals) -> None:
    assert len(detect_bursts(none)) == 0


def test_constant_curve_is_a_single_burst() -> None:
    result = detect_bursts(make_curve((3, 10)))
    assert (result.start_s.tolist(), result.peak_s.tolist(), result.end_s.tolist()) == ([0.0], [0.5], [10.0])
    assert detect_bursts(make_curve((3, 1))).volume_bytes.tolist() == [3.0]


def test_missing_seconds_are_in_no_burst() -> None:
    result = detect_bursts(make_curve((9, 5), (np.nan, 6), (9, 5)))
    assert result.end_s.tolist() == [5.0, 16.0]
    bridged = detect_bursts(make_curve((9, 5), (np.nan, 2), (9, 5)))
    assert (len(bridged), bridged.volume_bytes.tolist()) == (1, [90.0])


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-9, 1e300])
def test_detection_is_scale_invariant(scale: float) -> None:
    curve = make_curve((0, 3), (1, 5), (2, 5), (0, 9), (2, 9), (0, 4))
    result, scaled = detect_bursts(curve), detect_bursts(curve * scale)
    np.testing.assert_array_equal(scaled.start_s, result.start_s)
    np.testing.assert_array_equal(scaled.peak_s, result.peak_s)
    np.testing.assert_array_equal(scaled.end_s, result.end_s)


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 1, 2, 5, 7, 40]), st.integers(1, 8)), max_size=20),
    st.sampled_from([0.1, 0.25, 0.6]),
    st.integers(0, 6),
    st.sampled_from([0.0, 0.03, 0.3]),
)
def test_bursts_match_naive_implementation(
    pieces: list[tuple[float, int]], ratio: float, dip_s: int, volume_ratio: float
) -> None:
    curve = make_curve(*pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PARAMS", BurstDetectionParams(ratio, dip_s, volume_ratio))
        result = detect_bursts(curve)
    twin = naive.bursts(curve.tolist(), ratio, dip_s, volume_ratio)
    assert result.start_s.tolist() == [first for first, _, _, _ in twin]
    assert result.peak_s.tolist() == [peak + 0.5 for _, peak, _, _ in twin]
    assert result.end_s.tolist() == [after for _, _, after, _ in twin]
    np.testing.assert_allclose(result.volume_bytes, [volume for *_, volume in twin])
