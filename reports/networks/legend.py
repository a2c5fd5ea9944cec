"""Draw the panel next to the circle: color scales, value scales, patterns and individual requests."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports.networks.colors import colors, unused_color
from iosig.reports.networks.scales import Scale
from iosig.reports.networks.texts import (
    bottleneck_texts,
    describe_slowest,
    get_hop_quantity,
    log_ticks,
    pattern_causes,
    pattern_texts,
    quantity,
    slot_places,
    value_text,
)
from iosig.reports.networks.view import NetworkView
from iosig.reports.style import DOTS_PER_INCH, GRAY, INK, SOFT, in_force
from iosig.reports.texts import format_count, plain, plural
from iosig.transforms.arrays import Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: font size of headings [points]
#: font size of text [points]
#: line height [pixels]
#: width of a character [pixels]
_HEADING, _TEXT, _LINE, _LETTER = 9.5, 8.5, 19, 8.4
_BAR_HIGH, _SCALE_HIGH, _SCALE_LEFT = 15, 300, 110
#: line width of each hop; inner hops are drawn last and thinner, so that they do not hide outer ones
_LINES = (3.2, 1.3, 0.8)
_COUNTS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
#: fraction of the axis that a name occupies
_NAME_SHARE = 0.05
#: maximum number of hops in the legend
#: maximum number of individual requests in the legend
_MAX_HOPS, _MAX_REQUESTS = 6, 5


def pixel_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add a panel at an offset in pixels from the figure's upper left corner."""
    whole_width, whole_height = figure.get_size_inches() * DOTS_PER_INCH
    return figure.add_axes(
        (left / whole_width, 1 - (top + height) / whole_height, width / whole_width, height / whole_height)
    )


class Legend:
    """Legend as a column of panels and text, filled from the top."""

    def __init__(self, figure: Figure, left: float, top: float, width: float) -> None:
        self._figure, self._left, self._top, self._width = figure, left, top, width

    def draw(self, view: NetworkView, scale: Scale, counts: list[Ints], used: list[int]) -> None:
        """Draw every section of the legend.

        counts (edges, slots): transfers of each hop's used edges. used: the number of used edges of each hop.
        """
        self.findings(view)
        if scale.slot_count and used and not view.is_small:
            max_counts = [int(of_hop.max(initial=0)) for of_hop in counts]
            self.colors(view, max_counts, [format_count(count, "edge") for count in used])
            self.scale(view, scale, [counts])

    def _text(self, text: str, size: float = _TEXT, weight: str = "normal", color: str = INK) -> None:
        whole_width, whole_height = self._figure.get_size_inches() * DOTS_PER_INCH
        self._figure.text(
            self._left / whole_width, 1 - self._top / whole_height, text,
            fontsize=size, fontweight=weight, color=color, ha="left", va="top",
        )  # fmt: skip
        self._top += _LINE

    def _heading(self, text: str) -> None:
        self._text(text, _HEADING, "bold")
        self._top += 3

    def colors(self, view: NetworkView, max_counts: Sequence[int], edge_texts: Sequence[str]) -> None:
        """Draw the colors of each hop, from one transfer to the maximum count, with a text on its edges."""
        self._heading("Color: transfers of one edge with one value")
        for hop, (max_count, edge_text) in enumerate(zip(max_counts[:_MAX_HOPS], edge_texts, strict=False)):
            outer, inner = (plain(plural(layer.name), 16) for layer in view.network.layers[hop : hop + 2])
            quantity = get_hop_quantity(view.network, view.metric, hop)
            self._text(f"{outer} to {inner}: {quantity}, {edge_text}")
            if max_count:
                self._bar(hop, max_count)
            else:
                self._text("no values are known", color=SOFT)
        self._swatch("no transfers with this value")
        self._top += 16

    def _bar(self, hop: int, max_count: int) -> None:
        """Draw a log-scaled color bar from one transfer to the maximum."""
        axes = pixel_axes(self._figure, self._left + 4, self._top, self._width - 40, _BAR_HIGH)
        axes.imshow(colors(hop, is_dark=in_force().is_dark)[None], aspect="auto", extent=(0.0, 1.0, 0.0, 1.0))
        ticks = np.unique(np.concatenate([[1.0], np.round(log_ticks(1.0, float(max_count), 6)), [float(max_count)]]))
        places = np.log(ticks) / max(np.log(max_count), 1e-9) if max_count > 1 else np.array([0.5])
        # Skip ticks that would overlap the largest number.
        is_kept = (places <= 0.86) | (ticks == max_count)
        names = [f"{int(tick):,}" for tick in ticks[is_kept].tolist()]
        axes.set_xticks(places[is_kept], names, fontsize=8)
        axes.set_yticks([])
        axes.tick_params(length=3, pad=2)
        axes.spines[:].set_visible(False)
        self._top += _BAR_HIGH + 34

    def _swatch(self, text: str) -> None:
        axes = pixel_axes(self._figure, self._left + 4, self._top + 1, 26, 13)
        axes.imshow(unused_color(is_dark=in_force().is_dark)[None, None], aspect="auto")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        self._left += 38
        self._text(text)
        self._left -= 38

    def scale(self, view: NetworkView, scale: Scale, runs: Sequence[Sequence[Ints]]) -> None:
        """Draw the value axis of all edges, with the number of transfers at each position.

        runs: counts (edges, slots) by hop of each run; the lines of the second run are dashed.
        """
        from matplotlib.ticker import FuncFormatter, NullLocator

        self._heading(f"Position on an edge: {quantity(view.network, view.metric)}")
        self._text("outer end: highest", color=SOFT)
        axes = pixel_axes(
            self._figure, self._left + _SCALE_LEFT, self._top, self._width - _SCALE_LEFT - 30, _SCALE_HIGH
        )
        edges = np.arange(scale.slot_count + 1)
        totals = [[of_hop.sum(axis=0) for of_hop in counts] for counts in runs]
        for run, hop in product(range(len(runs)), range(min(view.network.hop_count, _MAX_HOPS))):
            color = tuple(float(part) for part in colors(hop, is_dark=in_force().is_dark)[70] / 255)
            axes.stairs(np.maximum(totals[run][hop], 0.5), edges, orientation="horizontal", baseline=0.5,
                        color=color, lw=_LINES[min(hop, len(_LINES) - 1)], ls="--" if run else "-")  # fmt: skip
        self._name_slots(axes, view, scale)
        axes.set_xscale("log")
        highest = max((float(total.max(initial=0)) for of_run in totals for total in of_run), default=1.0)
        axes.set_xlim(0.5, max(2.0, highest) * 1.3)
        axes.set_ylim(0, scale.slot_count)
        axes.tick_params(labelsize=8)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(_count_text))
        axes.set_xlabel("transfers", fontsize=8, labelpad=1)
        self._top += _SCALE_HIGH + 8
        self._text("inner end: lowest", color=SOFT)
        self._top += 24

    def _name_slots(self, axes: Axes, view: NetworkView, scale: Scale) -> None:
        special = scale.special_count
        names = [["0", "below 0"][scale.has_negative] if special == 1 else "0 and below"] * (special > 0)
        places = [special / 2] * (special > 0)
        values = scale.lowest_values[scale.special_count :]
        if len(values):
            ticks = log_ticks(float(values[0]), float(scale.highest_values[-1]))
            at = slot_places(scale, ticks)
            is_free = at >= (places[-1] + _NAME_SHARE * scale.slot_count if special else 0.0)
            places = places + at[is_free].tolist()
            names = names + [value_text(view.metric, tick) for tick in ticks[is_free].tolist()]
        axes.set_yticks(places, names)
        if special:
            axes.axhspan(0, special, color=GRAY, alpha=0.18, lw=0)

    def say(self, text: str) -> None:
        """Write a single line."""
        self._text(text, color=SOFT)

    def findings(self, view: NetworkView) -> None:
        """Write the slow nodes, the patterns and the outlier requests of a view."""
        self._sentences("Slow: time relative to the layer's median", describe_slowest(view.slow))
        has_causes = any(pattern_causes(view.network, view.patterns, view.metric))
        self._sentences(
            f"Patterns of most nodes, whole run{' (dots: outliers)' * has_causes}",
            pattern_texts(view.network, view.patterns, view.metric, view.slow),
        )
        self._sentences(
            "Outlier requests (red circles)",
            bottleneck_texts(view.bottlenecks, view.metric, _MAX_REQUESTS),
        )

    def _sentences(self, heading: str, sentences: list[str]) -> None:
        if not sentences:
            return
        self._heading(heading)
        for sentence in sentences:
            for number, line in enumerate(textwrap.wrap(sentence, int(self._width / _LETTER))):
                self._text(line if not number else f"   {line}")
            self._top += 3
        self._top += 14


def _count_text(value: float, _: object) -> str:
    unit, name = next(((size, sign) for size, sign in _COUNTS if value >= size), (1.0, ""))
    return f"{value / unit:.4g}{name}" if value >= 1 else ""
