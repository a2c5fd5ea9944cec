"""Colors of edges: luminance increases with counts, also for dichromats, and maps of adjacent hops differ."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.reports.networks.colors import colors, convert_to_lab, unused_color

HOPS = range(4)
#: Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009),
#: severity 1.0, on linear RGB
DICHROMATS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def seen_by(kind: str, srgb: np.ndarray) -> np.ndarray:
    parts = srgb / 255.0
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(DICHROMATS[kind]).T, 0.0, 1.0)
    return 255.0 * np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)


def lightness(srgb: np.ndarray) -> np.ndarray:
    return convert_to_lab(srgb)[..., 0]


def test_lab_of_known_colors_is_exact() -> None:
    known = convert_to_lab([[255, 255, 255], [0, 0, 0], [255, 0, 0]])
    assert known == pytest.approx(np.array([[100, 0, 0], [0, 0, 0], [53.24, 80.09, 67.20]]), abs=0.05)


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("hop", HOPS)
def test_luminance_increases_with_every_step(hop: int, is_dark: bool) -> None:
    steps = np.diff(lightness(colors(hop, is_dark=is_dark)))
    assert steps.min() > 0
    # Evenly, so that no step looks like a border.
    assert steps.max() < 3 * steps.mean()


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("hop", HOPS)
@pytest.mark.parametrize("kind", DICHROMATS)
def test_order_of_counts_is_visible_to_dichromats(kind: str, hop: int, is_dark: bool) -> None:
    seen = lightness(seen_by(kind, colors(hop, is_dark=is_dark)))
    # Eight steps, because rounding to bytes hides differences of single steps.
    assert (seen[8:] > seen[:-8]).all()
    assert seen[-1] - seen[0] > 35


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("hop", HOPS)
@pytest.mark.parametrize("kind", [None, *DICHROMATS])
def test_maps_of_adjacent_hops_differ(kind: str | None, hop: int, is_dark: bool) -> None:
    one, other = (colors(number, is_dark=is_dark).astype(float) for number in (hop, hop + 1))
    if kind is not None:
        one, other = seen_by(kind, one), seen_by(kind, other)
    # 2.3 is a just noticeable difference.
    assert np.linalg.norm(convert_to_lab(one) - convert_to_lab(other), axis=1).min() > 5


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("hop", HOPS)
def test_gray_differs_from_all_colors(hop: int, is_dark: bool) -> None:
    gray = unused_color(is_dark=is_dark)
    assert len(set(gray.tolist())) == 1
    assert np.linalg.norm(convert_to_lab(colors(hop, is_dark=is_dark)) - convert_to_lab(gray), axis=1).min() > 15


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("hop", HOPS)
def test_rare_values_stand_out_from_gray_and_background(hop: int, is_dark: bool) -> None:
    few = lightness(colors(hop, is_dark=is_dark))[0]
    gray = float(lightness(unused_color(is_dark=is_dark)))
    assert (few - gray if is_dark else gray - few) > 10
    assert abs(few - (8.0 if is_dark else 100.0)) > 25


def test_hues_equal_the_hues_of_the_paper() -> None:
    def hue(hop: int, step: int) -> float:
        _, a, b = convert_to_lab(colors(hop, is_dark=False)[step])
        return float(np.degrees(np.arctan2(b, a)) % 360)

    assert 250 < hue(0, 0) < 300
    assert 130 < hue(0, 128) < 190
    assert 85 < hue(0, 255) < 105
    assert 300 < hue(1, 0) < 330
    assert 15 < hue(1, 128) < 45
    assert 50 < hue(1, 255) < 80


def test_deeper_networks_repeat_the_color_maps() -> None:
    assert (colors(9, is_dark=True) == colors(1, is_dark=True)).all()


def test_colors_returns_a_copy() -> None:
    colors(0, is_dark=False)[:] = 0
    assert colors(0, is_dark=False).any()
