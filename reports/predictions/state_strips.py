"""Draw common elements of figures over a run's time: its clock, drawable times, strips of states and their colors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from iosig.reports import panels, style
from iosig.reports.style import BLUE, FAINT, GRAY, GREEN, GROUND, INK, ORANGE, PURPLE, SKY, VERMILION
from iosig.reports.texts import TIMES, Unit, choose_unit, duration_text, plain, time_axis_text
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: mean width of a character relative to the font size, with a safety margin
#: the same of a bold character
LETTER, BOLD_LETTER = 0.63, 0.72
LABEL_POINTS, NAME_CHARACTERS = 7.5, 24
#: timestamps beyond this (30 million years) are treated as missing [s]
#: timestamps closer to 0 than this are treated as 0 [s]
_MAX_TIME_S, _MIN_TIME_S = 1e15, 1e-15
_PERIODIC_COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
_OTHER_COLORS = {"start": FAINT, "aperiodic": GRAY, "gap": GROUND, "end": INK}
#: label of times with a state that is no longer recorded
UNKNOWN = "not kept"
_UNKNOWN_COLOR = FAINT


@dataclass(frozen=True, slots=True)
class RunClock:
    """Conversion of a run's timestamps to axis positions; timestamps far from 0 are relative to the first one."""

    unit: Unit
    origin_s: float
    has_utc_clock: bool = False

    @classmethod
    def for_span(cls, first_s: float, last_s: float, *, has_utc_clock: bool = False) -> RunClock:
        """Choose unit and origin of an axis between two times."""
        span = last_s - first_s or 1.0
        # the origin is a multiple of a power of ten, which is positive even for the shortest span
        step = max(10.0 ** math.floor(math.log10(span)) / 10, 1e-300)
        origin = 0.0 if abs(first_s) <= 10 * span else math.floor(first_s / step) * step
        return cls(choose_unit(span + abs(first_s - origin), TIMES, "s"), origin, has_utc_clock)

    def at(self, seconds: npt.ArrayLike) -> Reals:
        """Convert timestamps in seconds to axis positions."""
        places: Reals = (np.asarray(seconds, dtype=np.float64) - self.origin_s) / self.unit.size
        return places

    @property
    def label(self) -> str:
        """Label of the time axis, with its unit and origin."""
        return time_axis_text(self.unit, self.origin_s, has_utc_clock=self.has_utc_clock)


def mask_implausible_times(values: npt.ArrayLike) -> Reals:
    """Replace implausibly large times or durations by NaN, and tiny ones by 0."""
    numbers = np.asarray(values, dtype=np.float64)
    size = np.abs(numbers)
    masked: Reals = np.where(size <= _MAX_TIME_S, np.where(size >= _MIN_TIME_S, numbers, 0.0), np.nan)
    return masked


def state_color(name: str) -> str:
    """Return a state's color, consistent across all figures."""
    if name == UNKNOWN:
        return _UNKNOWN_COLOR
    if name in _OTHER_COLORS:
        return _OTHER_COLORS[name]
    number = state_number(name)
    return _PERIODIC_COLORS[(int(number) - 1) % len(_PERIODIC_COLORS)] if number else GRAY


def ink_on(name: str) -> str:
    """Return a readable text color for a state's background color."""
    return style.ink_on(state_color(name))


@dataclass(frozen=True, slots=True)
class StateSequence:
    """States (n) between edges (n + 1) [s], the period of each state [s], and the times and causes of transitions.

    A state starts when it was first observed, although the automaton confirms it only after it has persisted.
    """

    names: list[str]
    edges_s: list[float]
    causes: list[tuple[float, str]]
    periods_s: dict[str, float]

    @property
    def texts(self) -> dict[str, str]:
        """Labels to write next to the names of periodic states."""
        return {name: duration_text(period_s) for name, period_s in self.periods_s.items()}


def sort_states(graph: Mapping[str, Any]) -> StateSequence:
    """Return the states in chronological order, as far as transition times are still recorded."""
    periods = {node["name"]: float(node["period_s"]) for node in graph["nodes"] if node["period_s"]}
    first = min(node["first_s"] for node in graph["nodes"])
    last = max(node["last_s"] for node in graph["nodes"])
    moves = sorted(
        (time, edge["source"], edge["target"], edge["cause"]) for edge in graph["edges"] for time in edge["times_s"]
    )
    # Transitions may be missing before the first recorded time of an edge.
    cut = [edge["times_s"][0] for edge in graph["edges"] if edge["count"] > len(edge["times_s"]) and edge["times_s"]]
    moves = [move for move in moves if not cut or move[0] >= max(cut)]
    if not moves:
        return StateSequence([graph["current"]], [first, last], [], periods)
    is_whole = not cut and moves[0][1] == "start"
    names, edges = [moves[0][1] if is_whole else UNKNOWN], [first]
    for place, (time, _, target, _) in enumerate(moves):
        follows = moves[place + 1][1] if place + 1 < len(moves) else graph["current"]
        # If the exit from a forgotten state is missing, the state at this time is unknown.
        names.append(follows if target == follows or not graph["forgotten_state_count"] else UNKNOWN)
        edges.append(time)
    return StateSequence(names, [*edges, last], [(move[0], move[3]) for move in moves], periods)


def draw_strip(axes: Axes, names: Sequence[str], edges_s: Reals, clock: RunClock, notes: Mapping[str, str]) -> None:
    """Draw states (n) between ascending edges (n + 1) as a strip, with their names where they fit.

    notes: additional text for each state's name, written if it fits too.
    """
    from matplotlib.collections import PolyCollection

    spans, owners = _spans(names, edges_s)
    wide_in = float(axes.get_position().width * axes.get_figure().get_figwidth())  # type: ignore[union-attr]
    inches = wide_in / max(float(edges_s[-1] - edges_s[0]), 1e-300)
    if len(owners) > panels.PIXEL_COLUMNS:
        spans, owners = _spans(*_in_columns(spans, owners))
    left, right = clock.at(spans[:-1]), clock.at(spans[1:])
    zeros, ones = np.zeros(len(left)), np.ones(len(left))
    corners = np.stack([[left, zeros], [left, ones], [right, ones], [right, zeros]]).transpose(2, 0, 1)
    for name in dict.fromkeys(owners):
        chosen = corners[[owner == name for owner in owners]]
        hatch = "////" if name in {"gap", UNKNOWN} else None
        edge = GRAY if hatch else "none"
        axes.add_collection(
            PolyCollection(list(chosen), facecolors=state_color(name), edgecolors=edge, hatch=hatch, lw=0)
        )
    widths = np.diff(spans) * inches
    for place in np.flatnonzero(widths > 0.12):
        _name_span(
            axes, owners[place], notes.get(owners[place], ""), float(left[place] + right[place]) / 2, widths[place]
        )
    axes.set(ylim=(0.0, 1.0), yticks=[])
    axes.spines["left"].set_visible(False)


def _spans(names: Sequence[str], edges_s: Reals) -> tuple[Reals, list[str]]:
    """Merge adjacent spans with equal names, and return edges and names."""
    is_new = [place for place, name in enumerate(names) if not place or name != names[place - 1]]
    return np.append(edges_s[is_new], edges_s[-1]), [names[place] for place in is_new]


def _in_columns(spans_s: Reals, owners: Sequence[str]) -> tuple[list[str], Reals]:
    """Return the state with the longest duration in each pixel column."""
    columns = np.linspace(spans_s[0], spans_s[-1], panels.PIXEL_COLUMNS + 1)
    kinds = list(dict.fromkeys(owners))
    number = {name: place for place, name in enumerate(kinds)}
    owner = np.array([number[name] for name in owners])
    durations_s = np.empty((len(kinds), panels.PIXEL_COLUMNS))
    for place in range(len(kinds)):
        total = np.concatenate([[0.0], np.cumsum(np.where(owner == place, np.diff(spans_s), 0.0))])
        durations_s[place] = np.diff(np.interp(columns, spans_s, total))
    return [kinds[place] for place in np.argmax(durations_s, axis=0)], columns


def _name_span(axes: Axes, name: str, note: str, middle: float, wide_in: float) -> None:
    """Label a state's part of the strip with the longest text that fits: name and note, name, or number."""
    shown = plain(name, NAME_CHARACTERS)
    for text in (f"{shown}: {note}" if note else shown, shown, state_number(name)):
        if text and text_inches(text, LABEL_POINTS) < wide_in - 0.06:
            axes.text(
                middle, 0.48, text, ha="center", va="center", fontsize=LABEL_POINTS, clip_on=True,
                color=ink_on(name),
                bbox={"pad": 0.8, "lw": 0, "fc": state_color(name)} if name in {"gap", UNKNOWN} else None,
            )  # fmt: skip
            return


def text_inches(text: str, points: float, *, is_bold: bool = False) -> float:
    """Estimate the width of a text in inches, with a safety margin."""
    return len(text) * (BOLD_LETTER if is_bold else LETTER) * points / 72


def state_number(name: str) -> str:
    """Return the number of a periodic state; empty for other states."""
    head, _, tail = name.partition("_")
    return tail if head == "period" and tail.isascii() and tail.isdigit() and len(tail) < 19 else ""
