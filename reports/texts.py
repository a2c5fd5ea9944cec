"""What stands on a picture: sizes in a unit that fits them, and texts from the input as they are."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Container
from dataclasses import dataclass
from functools import cache

#: characters of a name that are shown
_NAME_CHARACTERS = 300
_UNKNOWN = "\ufffd"


@dataclass(frozen=True, slots=True)
class Unit:
    """What a shown 1 stands for, the size from which on it is used, and its name."""

    size: float
    least: float
    name: str


RATES = tuple(
    Unit(10.0**power, 10.0**power, name)
    for power, name in zip((0, 3, 6, 9, 12), ("B/s", "kB/s", "MB/s", "GB/s", "TB/s"), strict=True)
)
HERTZ = tuple(
    Unit(10.0**power, 10.0**power, name)
    for power, name in zip((-6, -3, 0, 3, 6), ("µHz", "mHz", "Hz", "kHz", "MHz"), strict=True)
)
#: minutes from ten on, hours from five on, days from five on: shorter times are told with digits to spare
TIMES = (
    Unit(1e-6, 1e-6, "µs"),
    Unit(1e-3, 1e-3, "ms"),
    Unit(1.0, 1.0, "s"),
    Unit(60.0, 600.0, "min"),
    Unit(3600.0, 18_000.0, "h"),
    Unit(86_400.0, 432_000.0, "d"),
)


def unit_for(largest: float, units: tuple[Unit, ...], base: str) -> Unit:
    """Return the unit that fits a size; for one that is far beyond all units, a power of ten of the base."""
    if not (math.isfinite(largest) and largest > 0):
        return Unit(1.0, 1.0, base)
    if not units[0].least * 1e-3 <= largest < units[-1].least * 1e5:
        exponent = max(-300, min(300, math.floor(math.log10(largest))))
        return Unit(10.0**exponent, 10.0**exponent, f"1e{exponent:+d} {base}")
    return next((unit for unit in reversed(units) if unit.least <= largest), units[0])


def duration_text(seconds: float) -> str:
    """Return a time as people write it."""
    return _text(seconds, unit_for(seconds, TIMES, "s"), "s")


def exact_duration_text(seconds: float) -> str:
    """Return a time as people write it, beside its seconds where it is told in another unit."""
    shown = duration_text(seconds)
    return shown if shown.endswith("s") else f"{shown} = {seconds:.6g} s"


def frequency_text(hertz: float) -> str:
    """Return a frequency as people write it."""
    return _text(hertz, unit_for(hertz, HERTZ, "Hz"), "Hz")


def _text(value: float, unit: Unit, base: str) -> str:
    is_named = not unit.name.endswith(f" {base}")
    return f"{value / unit.size:.4g} {unit.name}" if is_named else f"{value:.4g} {base}"


def ratio_text(ratio: float) -> str:
    """Return a ratio in percent, or as a power of ten where it is small."""
    return f"{ratio:.1%}" if ratio == 0 or ratio >= 0.001 else f"{ratio:.1e}"


def plain(text: str, most: int = _NAME_CHARACTERS) -> str:
    """Return a text from the input as it can be drawn: nothing that steers, no mark without a letter, not too long."""
    known = _drawable()
    return "".join(
        letter if letter.isprintable() and ord(letter) in known and not unicodedata.combining(letter) else _UNKNOWN
        for letter in unicodedata.normalize("NFC", shortened(text, most))
    )


def printable(text: object, most: int) -> str:
    """Return a text from the input as it can be printed or put into a page: nothing that steers, not too long."""
    return "".join(letter if letter.isprintable() else _UNKNOWN for letter in shortened(str(text), most))


def shortened(text: str, most: int) -> str:
    """Return a text without its middle, if it is too long: names differ from their like at either end."""
    tail = most // 2
    return text if len(text) <= most else f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


@cache
def _drawable() -> Container[int]:
    """Return the characters that the font has."""
    from matplotlib.font_manager import findfont, get_font

    return get_font(findfont("DejaVu Sans")).get_charmap()
