"""Fit a table to a width: choose its columns and their widths, and wrap the text of its cells."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

#: spaces between two columns
GAP = 2
#: pieces of a cell: words may break after a slash, a comma or a semicolon, as in paths and ids
_BREAKS = re.compile(r"[^\s/,;]+[/,;]*|[/,;]+")
#: maximum length of a piece; longer pieces break anywhere
_MAX_UNBROKEN_CHARS = 24
#: a command in backticks, with the space before it
_COMMAND = r"\s*[^\s`]*`[^`\n]*\biosig [^`\n]*`\S*"
#: significant digits of a number that is not whole
_NUMBER_DIGITS = 4
#: an amount of one to three digits in a unit with prefixes
_AMOUNT = re.compile(r"^([0-9]{1,3})(\.[0-9]+)?( (?:[kMGTPE]B(?:/s)?|[µm]s|s))$")
#: maximum number of decimals in seconds, if some values exceed one second
_SECOND_DIGITS = 3
_SECONDS = re.compile(r"([0-9,]+)(\.[0-9]+)? s")
#: maximum number of lines to which text without spaces is wrapped, before a column is dropped
#: maximum number of lines to which prose is wrapped
_MAX_NAME_LINES, _MAX_PROSE_LINES = 2, 5
#: minimum width of prose
_MIN_PROSE_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Fit:
    """The visible columns of a table, as indices into all columns, and their widths in characters."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]


class _Column:
    """Natural (unwrapped) and minimum width of a column."""

    def __init__(self, name: str, cells: Sequence[str], is_number: bool) -> None:
        self._name, self._cells, self._is_number = name, cells, is_number

    @cached_property
    def natural(self) -> int:
        return max(map(_longest_line, (self._name, *self._cells)), default=0)

    @cached_property
    def min_width(self) -> int:
        name_width = max(map(measure_width, self._name.split()), default=0)
        content_width = max(map(_longest_line, self._cells), default=0)
        return max(
            name_width, content_width if self._is_number else min(content_width, self._find_min_width(content_width))
        )

    def _find_min_width(self, natural_width: int) -> int:
        """Return the minimum width for wrapped cells: wider for prose than for names, and never within a short word."""
        longest = max(self._cells, key=_longest_line, default="")
        pieces = max((measure_width(piece) for cell in self._cells for piece in _BREAKS.findall(cell)), default=0)
        keeps_words = longest.count(" ") > 3
        if not keeps_words and natural_width <= _MAX_UNBROKEN_CHARS:
            return natural_width
        few_lines = (
            max(_MIN_PROSE_WIDTH, natural_width // _MAX_PROSE_LINES)
            if keeps_words
            else math.ceil(natural_width / _MAX_NAME_LINES)
        )
        return max(few_lines, min(pieces, _MAX_UNBROKEN_CHARS))


def fit_table(
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    are_numbers: Sequence[bool],
    width: int | None,
    last: Sequence[str] = (),
) -> Fit:
    """Fit a table to a width; without a width, all of it is shown.

    Text is wrapped first, if it stays readable. Then columns are dropped: those named in `last`, in that order, then
    the others from the right. The first column always stays.
    """
    columns = [_Column(name, [row[place] for row in cells], are_numbers[place]) for place, name in enumerate(names)]
    shown_places = list(range(len(names)))
    if width is None or _sum_widths([columns[place].natural for place in shown_places]) <= width:
        return Fit(tuple(shown_places), tuple(columns[place].natural for place in shown_places))
    drop_order = [names.index(name) for name in last if name in names]
    drop_order += [place for place in reversed(shown_places) if place not in drop_order]
    while len(shown_places) > 1 and _sum_widths([columns[place].min_width for place in shown_places]) > width:
        shown_places.remove(next(place for place in drop_order if place in shown_places and place))
    return Fit(tuple(shown_places), _distribute_width([columns[place] for place in shown_places], width))


def _sum_widths(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _distribute_width(columns: Sequence[_Column], width: int) -> tuple[int, ...]:
    """Distribute spare width over the columns, smallest shortfall first; all columns must fit at minimum width."""
    if len(columns) == 1:
        return (max(1, min(width, columns[0].natural)),)
    widths = [column.min_width for column in columns]
    spare = width - _sum_widths(widths)
    shortfalls = sorted((column.natural - column.min_width, place) for place, column in enumerate(columns))
    for number, (shortfall, place) in enumerate(shortfalls):
        added = min(shortfall, spare // (len(shortfalls) - number))
        widths[place] += added
        spare -= added
    return tuple(widths)


#: a word, as a unit that stays together
#: a part of a word up to a slash or a comma, as a unit that stays together
_WORD, _PART = r"\s*\S+", r"\s*(?:[^\s/,;]+[/,;]*|[/,;]+)"


def wrap_text(text: str, width: int, *, keeps_words: bool = False, keeps_commands: bool = False) -> list[str]:
    """Break a text into lines of limited width: between words, after a slash or a comma, else within a word.

    keeps_words: never break within a word. keeps_commands: never break a command in backticks, so that it can be
    copied.
    """
    pieces = "|".join([*([_COMMAND] if keeps_commands else []), _WORD if keeps_words else _PART])
    unbroken = "|".join([*([_COMMAND] if keeps_commands else []), *([_WORD] if keeps_words else [])])
    lines = text.split("\n")
    broken = (_break_line(line, width, pieces, unbroken) if measure_width(line) > width else [line] for line in lines)
    return [part for parts in broken for part in parts]


def _break_line(text: str, width: int, pieces: str, unbroken: str) -> list[str]:
    lines, line = [], ""
    for piece in re.findall(pieces, text):
        if line and measure_width(line + piece) > width:
            lines.append(line)
            line = ""
        line += piece if line else piece.lstrip()
        while measure_width(line) > width and not re.fullmatch(unbroken, line):
            at = _count_fitting_letters(line, width)
            lines.append(line[:at])
            line = line[at:]
    return [*lines, line] if line or not lines else lines


def _count_fitting_letters(line: str, width: int) -> int:
    """Return the number of letters that fit a width, with a minimum of one."""
    used_width = 0
    for at, letter in enumerate(line):
        used_width += measure_width(letter)
        if used_width > width:
            return max(at, 1)
    return len(line)


def measure_width(text: str) -> int:
    """Return the width of text in terminal cells: two for East Asian letters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _longest_line(text: str) -> int:
    return max(map(measure_width, text.split("\n")))


# ---- numbers


def number_texts(values: Sequence[float | int | None]) -> list[str | None]:
    """Format a column's numbers with four significant digits and the same number of decimals.

    If their magnitudes differ too much for that, each number is formatted separately.
    """
    texts = [None if value is None else number_text(value) for value in values]
    present = [text for text in texts if text is not None]
    digits = max((len(text.partition(".")[2]) for text in present), default=0)
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    is_alike = bool(sizes) and max(sizes) < 1000 * min(sizes) and not any("e" in text for text in present)
    digits = min(digits, _NUMBER_DIGITS - 1 - math.floor(math.log10(max(sizes)))) if is_alike else 0
    if digits <= 0 or not is_alike or all(isinstance(value, int | None) for value in values):
        return texts
    return [
        text if text is None or value is None or not math.isfinite(value) else f"{value:,.{digits}f}"
        for value, text in zip(values, texts, strict=True)
    ]


def amount_texts(texts: Sequence[str]) -> Sequence[str]:
    """Format the amounts of a column with the same precision if some have a decimal point.

    Three significant digits each (5.00 MB next to 65.1 MB); for plain seconds, the same number of decimals.
    """
    if not any("." in text for text in texts):
        return texts
    matches = [_SECONDS.fullmatch(text) for text in texts]
    if all(match or text == "-" for match, text in zip(matches, texts, strict=True)):
        values = [float((match[1] + (match[2] or "")).replace(",", "")) if match else 0.0 for match in matches]
        max_digits = _SECOND_DIGITS if max(values) >= 1 else _MAX_UNBROKEN_CHARS
        digits = min(max(len(match[2] or ".") - 1 for match in matches if match), max_digits)
        return [f"{value:,.{digits}f} s" if match else "-" for match, value in zip(matches, values, strict=True)]
    return [_AMOUNT.sub(_with_three_digits, text) for text in texts]


def _with_three_digits(match: re.Match[str]) -> str:
    whole, fraction = match[1], match[2] or ""
    missing_count = 3 - len((whole + fraction).replace(".", "").lstrip("0"))
    return f"{whole}{fraction or '.' * (missing_count > 0)}{'0' * missing_count}{match[3]}"


def number_text(value: float | int) -> str:
    """Format integers in full, and other numbers with four significant digits."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.{_NUMBER_DIGITS}g}"
