"""The style of all pictures: contrast, colors that dichromats can distinguish, and the active style."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from iosig.reports import style
from iosig.reports.networks.colors import convert_to_lab
from iosig.reports.style import DARK, LIGHT, STYLES, Style

#: Linear sRGB as seen by dichromats: Machado et al., DOI 10.1109/TVCG.2009.113, severity 1.0.
_EYES = {
    "trichromat": np.eye(3),
    "protanope": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranope": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanope": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
both = pytest.mark.parametrize("shown", STYLES.values(), ids=STYLES)


def parts(color: str) -> np.ndarray:
    return np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)], dtype=float)


def seen(color: str, eyes: np.ndarray) -> np.ndarray:
    """Return a color as CIELAB, as seen by a kind of color vision."""
    srgb = parts(color) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen_as = np.clip(eyes @ linear, 0, 1)
    back = np.where(seen_as <= 0.0031308, 12.92 * seen_as, 1.055 * seen_as ** (1 / 2.4) - 0.055)
    return convert_to_lab(255 * back)


@both
def test_colors_have_sufficient_contrast(shown: Style) -> None:
    on_ground = {role: style.contrast(color, shown.ground) for role, color in shown.colors().items()}
    hues = {role.removeprefix("iosig:") for role in style.HUES}
    assert {role for role in hues | {"gray"} if on_ground[role] < 3} == set()
    assert {role for role in ("ink", "soft", "blue", "vermilion") if on_ground[role] < 4.5} == set()
    # Unattributed areas and grids stay in the background.
    assert 1.1 < on_ground["faint"] < on_ground["pale"] < 3


@both
@pytest.mark.parametrize("eyes", _EYES)
def test_hues_are_distinguishable_by_dichromats(eyes: str, shown: Style) -> None:
    hues = {role: seen(shown.color(role), _EYES[eyes]) for role in style.HUES}
    nearest = min(float(np.linalg.norm(hues[one] - hues[other])) for one, other in combinations(hues, 2))
    assert nearest > 20, "a just noticeable difference is 2.3"


def test_contrast_equals_the_standard() -> None:
    assert style.contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert style.contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005), "WebAIM's example"


@both
def test_texts_on_colors_have_sufficient_contrast(shown: Style) -> None:
    with style.drawn_in(shown):
        for role in (*style.HUES, style.INK, style.GROUND, style.PALE):
            assert style.contrast(shown.color(style.ink_on(role)), shown.color(role)) > 3.7


def test_roles_follow_the_active_style() -> None:
    from matplotlib.colors import to_hex

    with style.drawn_in(DARK):
        assert to_hex(style.BLUE).upper() == DARK.blue
        with style.drawn_in(LIGHT):
            assert (to_hex(style.BLUE).upper(), style.in_force()) == (LIGHT.blue, LIGHT)
        assert (to_hex(style.BLUE).upper(), style.in_force()) == (DARK.blue, DARK)
    assert (to_hex(style.BLUE).upper(), style.in_force()) == (LIGHT.blue, LIGHT)


@both
def test_shades_of_larger_values_contrast_more(shown: Style) -> None:
    with style.drawn_in(shown):
        shades = np.array(style.shades(np.linspace(0, 1, 33)))
    away = np.abs(convert_to_lab(255 * shades)[:, 0] - convert_to_lab(parts(shown.ground))[0])
    assert (np.diff(away) > 0).all()
