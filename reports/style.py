"""Define a common style for all figures: colors for light and dark backgrounds, and font sizes.

A color is named by its hue or role (`BLUE`, `INK`) and resolved by the active style, so figures are independent of
their background. The six hues start from those of Okabe and Ito ("Color Universal Design", 2008). In that palette,
orange and light blue have a contrast of only 2.3 on white. The hues were shifted until each has a contrast of 3 or more
with its background (WCAG 2.2, 1.4.11); the two hues of text have 4.5 or more (1.4.3). Subject to that, the smallest
distance in Oklab between any two hues is maximal for trichromats, protanopes, deuteranopes and tritanopes, simulated as
by Machado et al. (DOI 10.1109/TVCG.2009.113).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iosig.transforms.arrays import Reals

# ---- colors, by their roles

#: hues: BLUE for measured data, VERMILION for errors and findings; the other four have no fixed meaning
BLUE, VERMILION, PURPLE, ORANGE, GREEN, SKY = (
    f"iosig:{role}" for role in ("blue", "vermilion", "purple", "orange", "green", "sky")
)
#: background; primary text and lines; secondary text and lines
GROUND, INK, SOFT = (f"iosig:{role}" for role in ("ground", "ink", "soft"))
#: neutral colors: lines, areas and grids
GRAY, PALE, FAINT = (f"iosig:{role}" for role in ("gray", "pale", "faint"))
#: categorical colors, in order of assignment
HUES = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
#: stops of the sequential color map used by `shades`, from few to many
SHADES = tuple(f"iosig:shade{number}" for number in range(7))
#: colors of directions and classes
DIRECTION_HUES = {"write": BLUE, "read": ORANGE}
CLASS_HUES = {
    "START": SKY, "END": BLUE, "HILL": GREEN, "CANYON": PURPLE, "UNIFORM": ORANGE, "OTHER": GRAY,
    "NO_USAGE": PALE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """Color values of all roles, as six-digit sRGB."""

    name: str
    ground: str
    ink: str
    soft: str
    gray: str
    pale: str
    faint: str
    blue: str
    vermilion: str
    purple: str
    orange: str
    green: str
    sky: str

    @property
    def is_dark(self) -> bool:
        """Whether the background is darker than the text."""
        return luminance(self.ground) < luminance(self.ink)

    def colors(self) -> dict[str, str]:
        """Return the style's color values keyed by role."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}

    def shades(self) -> dict[str, str]:
        """Return the stops of the sequential color map keyed by role."""
        names = (role.removeprefix("iosig:") for role in SHADES)
        return dict(zip(names, _SHADES[self.is_dark], strict=True))

    def color(self, role: str) -> str:
        """Return the color of a role's name."""
        color: str = getattr(self, role.removeprefix("iosig:"))
        return color


LIGHT = Style(
    "light", ground="#FFFFFF", ink="#1C2126", soft="#5A626B", gray="#919191", pale="#D5D9DD", faint="#E6E9EC",
    blue="#3A418A", vermilion="#C22C2E", purple="#581E3B", orange="#CF7E24", green="#09777B", sky="#0095FF",
)  # fmt: skip
DARK = Style(
    "dark", ground="#15191E", ink="#E8EBEE", soft="#A3ABB4", gray="#777777", pale="#3A4149", faint="#2A3037",
    blue="#6A84F8", vermilion="#F96618", purple="#AB7196", orange="#FBE032", green="#54D5A8", sky="#BCFEFE",
)  # fmt: skip
STYLES = {style.name: style for style in (LIGHT, DARK)}

# ---- sizes

DOTS_PER_INCH = 120
#: default figure width
WIDTH_IN = 11.0
#: font sizes [points]: finding, subject, panel title, axis label, tick label, note
FINDING_POINTS, SUBJECT_POINTS, PANEL_POINTS, LABEL_POINTS, TICK_POINTS, NOTE_POINTS = 13.0, 10.0, 10.5, 9.0, 8.5, 8.0
FONT = "DejaVu Sans"


# ---- the active style

_IN_FORCE: ContextVar[Style] = ContextVar("style", default=LIGHT)


def in_force() -> Style:
    """Return the active style; the default is the light one."""
    return _IN_FORCE.get()


@contextmanager
def drawn_in(style: Style = LIGHT) -> Iterator[None]:
    """Apply the style, independent of the user's matplotlibrc; names from the input are never parsed as formulas."""
    import matplotlib

    token = _IN_FORCE.set(style)
    name_colors(style)
    try:
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(_settings())
            yield
    finally:
        _IN_FORCE.reset(token)
        name_colors(in_force())


def name_colors(style: Style) -> None:
    """Register the roles as matplotlib color names, with a style's values."""
    from matplotlib.colors import get_named_colors_mapping

    mapping = get_named_colors_mapping()
    for role, color in (style.colors() | style.shades()).items():
        # Assign keys one by one, because this invalidates matplotlib's color cache.
        mapping[f"iosig:{role}"] = color


def _settings() -> dict[Any, Any]:
    from matplotlib.rcsetup import cycler

    of_ground = ("figure.facecolor", "figure.edgecolor", "savefig.facecolor", "axes.facecolor", "legend.facecolor")
    of_ink = ("text.color", "axes.labelcolor", "axes.titlecolor", "lines.color", "patch.edgecolor")
    # By default, box plots would be black, even on dark backgrounds.
    of_boxes = [f"boxplot.{part}.color" for part in ("boxprops", "whiskerprops", "capprops", "flierprops")]
    return {
        **dict.fromkeys(of_ground, GROUND),
        **dict.fromkeys((*of_ink, *of_boxes, "boxplot.flierprops.markeredgecolor"), INK),
        **dict.fromkeys(("xtick.color", "ytick.color", "axes.edgecolor"), SOFT),
        **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), INK),
        "axes.prop_cycle": cycler(color=list(HUES)),
        "grid.color": FAINT,
        "grid.linewidth": 0.6,
        "text.parse_math": False,
        "font.family": [FONT],
        "axes.titlelocation": "left",
        "axes.titlesize": PANEL_POINTS,
        "axes.titleweight": "bold",
        "axes.labelsize": LABEL_POINTS,
        "figure.labelsize": LABEL_POINTS,
        "xtick.labelsize": TICK_POINTS,
        "ytick.labelsize": TICK_POINTS,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.formatter.use_mathtext": False,
        "legend.fontsize": TICK_POINTS,
        "legend.frameon": False,
        "agg.path.chunksize": 10_000,
        # By default, ids in SVG files are random.
        "svg.hashsalt": "iosig",
    }


# ---- contrast


def ink_on(color: str) -> str:
    """Return the text color role with the higher contrast on a background: ink or ground."""
    style = in_force()
    return max((GROUND, INK), key=lambda role: contrast(style.color(role), style.color(color)))


def contrast(first_color: str, second_color: str) -> float:
    """Return the contrast of two sRGB colors in six digits, from 1 to 21 (WCAG 2.2, "contrast ratio")."""
    low, high = sorted((luminance(first_color), luminance(second_color)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    """Return the relative luminance of a six-digit sRGB color, from 0 to 1 (WCAG 2.2, "relative luminance")."""
    red, green, blue = (_linear(int(color[place : place + 2], 16) / 255) for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


# ---- color maps


def shades(shares: Reals, style: Style | None = None) -> Reals:
    """Map fractions (n) from 0 to 1 to RGB colors (n, 3); the contrast with the background grows with the fraction.

    style: the style that defines the background; the active one by default.
    """
    import numpy as np

    stops = _SHADES[(style or in_force()).is_dark]
    parts = np.array([[int(stop[place : place + 2], 16) / 255 for place in (1, 3, 5)] for stop in stops])
    places = np.linspace(0.0, 1.0, len(stops))
    return np.stack([np.interp(shares, places, parts[:, part]) for part in range(3)], axis=-1)


#: sequential color map: darker on light and lighter on dark backgrounds, with hues that are safe for color blindness
_SHADES = {
    False: ("#EAF1F7", "#B9D3E8", "#7FB0D6", "#3F86C0", "#1F5A9E", "#14316B", "#0B1638"),
    True: ("#1E2A38", "#23486B", "#2C6F9B", "#4B9AB8", "#86C2C1", "#CBE3B8", "#FDF6C9"),
}
