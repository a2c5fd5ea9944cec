"""Format the text of figures: quantities in suitable units, and names from the input without control characters."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from iosig.warehouse.contracts.application_ids import without_machine
from iosig.warehouse.contracts.metrics import Metric

#: maximum length of a name
_NAME_CHARACTERS = 300
_UNKNOWN = "\ufffd"


@dataclass(frozen=True, slots=True)
class Unit:
    """Display unit of a quantity: size, minimum value for its use, and name."""

    size: float
    min_value: float
    name: str


def thousands(base: str, prefixes: str, power: int = 0) -> tuple[Unit, ...]:
    """Return a unit for each prefix, in steps of 1000; the first one is 10**power base units, a space is no prefix."""
    sizes = [10.0 ** (power + 3 * place) for place in range(len(prefixes))]
    return tuple(Unit(size, size, f"{prefix}{base}".strip()) for size, prefix in zip(sizes, prefixes, strict=True))


RATES, VOLUMES = thousands("B/s", " kMGT"), thousands("B", " kMGTP")
#: units of rates and of volumes, with their base unit, by metric
_RATES_OF: dict[Metric, tuple[tuple[Unit, ...], str]] = {
    "bytes": (RATES, "B/s"),
    "operations": (thousands("op/s", " kMGT"), "op/s"),
}
_VOLUMES_OF: dict[Metric, tuple[tuple[Unit, ...], str]] = {
    "bytes": (VOLUMES, "B"),
    "operations": (thousands("op", " kMGTP"), "op"),
}
#: minutes start at 10 min, hours and days at 5, so that shorter times keep enough digits
TIMES = (
    Unit(1e-6, 1e-6, "µs"),
    Unit(1e-3, 1e-3, "ms"),
    Unit(1.0, 1.0, "s"),
    Unit(60.0, 600.0, "min"),
    Unit(3600.0, 18_000.0, "h"),
    Unit(86_400.0, 432_000.0, "d"),
)
#: round multiples of each time unit; fewer and rounder ones where space is limited
_TICKS = {
    **dict.fromkeys(("µs", "ms", "d"), ((1, 2, 5, 10, 20, 50, 100, 200, 500), (1, 5, 10, 50, 100, 500), (1, 10, 100))),
    **dict.fromkeys(("s", "min"), ((1, 2, 5, 10, 20, 30), (1, 5, 10, 30), (1, 10))),
    "h": ((1, 2, 5, 10), (1, 5), (1,)),
}


def choose_unit(largest: float, units: tuple[Unit, ...], base: str) -> Unit:
    """Choose the unit for a value; far outside all units, a power of ten of the base unit."""
    if not (math.isfinite(largest) and largest > 0):
        return Unit(1.0, 1.0, base)
    if not units[0].min_value * 1e-3 <= largest < units[-1].min_value * 1e5:
        exponent = max(-300, min(300, math.floor(math.log10(largest))))
        return Unit(10.0**exponent, 10.0**exponent, f"1e{exponent:+d} {base}")
    return next((unit for unit in reversed(units) if unit.min_value <= largest), units[0])


def duration_text(seconds: float) -> str:
    """Format a duration in the largest suitable unit."""
    return amount_text(seconds, TIMES, "s", digits=4)


def exact_duration_text(seconds: float) -> str:
    """Format a duration in a readable unit, followed by its seconds if that unit is another one."""
    text = duration_text(seconds)
    return text if text.endswith("s") else f"{text} = {seconds:.6g} s"


def duration_range_text(low_s: float, high_s: float) -> str:
    """Format a range of durations in the unit of the longer one."""
    unit = choose_unit(high_s, TIMES, "s")
    return f"{low_s / unit.size:.3g} to {high_s / unit.size:.3g} {unit.name}"


def time_ticks(low_s: float, high_s: float, max_count: int = 9) -> list[tuple[float, str]]:
    """Return at most `max_count` round times between two limits, with labels, for a logarithmic axis."""
    ticks: list[tuple[float, str]] = []
    for level in range(3):
        ticks = [
            (count * unit.size, f"{count} {unit.name}")
            for unit in TIMES
            for count in _TICKS[unit.name][level]
            if low_s <= count * unit.size <= high_s
        ]
        if len(ticks) <= max_count:
            return ticks
    return ticks[:: -(-len(ticks) // max_count)]


def base_name(text: str) -> str:
    """Return the last component of an absolute path; other text is returned unchanged."""
    return text.rstrip("/").rpartition("/")[2] if text.startswith("/") else text


def volume_text(value: float, metric: Metric = "bytes") -> str:
    """Format bytes or operations with a decimal prefix."""
    return amount_text(value, *_VOLUMES_OF[metric])


def volume_range_texts(value: float, low: float | None, high: float | None) -> tuple[str, str]:
    """Return bytes with a unit, and their range in the same unit: three digits each, "?" for an unknown end."""
    unit = choose_unit(value, VOLUMES, "B")
    # the inner format rounds to three digits, the outer one prints them without an exponent
    ends = ("?" if end is None else f"{float(f'{end / unit.size:.3g}'):g}" for end in (low, high))
    return f"{value / unit.size:.3g} {unit.name}", "-".join(ends)


def volume_tick_text(value: float) -> str:
    """Format bytes for a tick label, so that rounding errors do not turn 1 GB into 1000 MB."""
    return volume_text(value * (1 + 1e-9))


def rate_text(value: float, metric: Metric = "bytes") -> str:
    """Format bytes or operations per second with a decimal prefix."""
    return amount_text(value, *_RATES_OF[metric])


def choose_rate_unit(largest: float, metric: Metric) -> Unit:
    """Choose the unit for a rate of bytes or operations."""
    return choose_unit(largest, *_RATES_OF[metric])


def amount_text(value: float, units: tuple[Unit, ...], base: str, digits: int = 3) -> str:
    """Format an amount in a suitable unit, or in the base unit."""
    unit = choose_unit(value, units, base)
    is_power = unit.name.startswith("1e")
    return f"{value:.{digits}g} {base}" if is_power else f"{value / unit.size:.{digits}g} {unit.name}"


def format_count(count: int, noun: str) -> str:
    """Format a number with its noun in the singular or plural."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of an English noun, such as a layer's name."""
    return noun if noun.endswith("s") else f"{noun}s"


def time_axis_text(unit: Unit, origin_s: float, *, has_utc_clock: bool) -> str:
    """Return the label of a time axis, with its unit and its origin, if not 0."""
    if origin_s == 0:
        return f"time [{unit.name}]"
    since = f"{origin_s:.15g} s"
    if has_utc_clock and abs(origin_s) < 1e11:
        # fromtimestamp() has platform-dependent limits.
        instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=round(origin_s))
        since = f"{instant:%Y-%m-%d %H:%M:%S} UTC"
    return f"time after {since} [{unit.name}]"


def ratio_text(ratio: float) -> str:
    """Format a ratio in percent, or as a power of ten if it is small."""
    return f"{ratio:.1%}" if ratio == 0 or ratio >= 0.001 else f"{ratio:.1e}"


def plain(text: str, max_chars: int = _NAME_CHARACTERS) -> str:
    """Sanitize input text for drawing: shorten it, and replace characters that the font cannot render."""
    drawable = _drawable()
    return "".join(
        letter if letter.isprintable() and ord(letter) in drawable and not unicodedata.combining(letter) else _UNKNOWN
        for letter in unicodedata.normalize("NFC", shorten(text, max_chars))
    )


def printable(text: object, max_chars: int) -> str:
    """Sanitize input text for terminals and pages: shorten it, and replace non-printable characters."""
    return "".join(letter if letter.isprintable() else _UNKNOWN for letter in shorten(str(text), max_chars))


def shorten(text: str, max_chars: int) -> str:
    """Shorten long text in the middle, because similar names differ at the ends."""
    tail = max_chars // 2
    return text if len(text) <= max_chars else f"{text[: max_chars - 1 - tail]}…{text[len(text) - tail :]}"


def shorten_id(application_id: str, max_chars: int) -> str:
    """Shorten a long application id: first by the machine, then in the middle."""
    return shorten(application_id if len(application_id) <= max_chars else without_machine(application_id), max_chars)


@cache
def _drawable() -> Container[int]:
    """Return the set of characters that the font can render."""
    from matplotlib.font_manager import findfont, get_font

    return get_font(findfont("DejaVu Sans")).get_charmap()
