"""Compose figures, and draw the elements of their panels: pixel columns, headings, axes and legends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from iosig.reports.style import DOTS_PER_INCH, FINDING_POINTS, SOFT, SUBJECT_POINTS, Style, drawn_in, in_force
from iosig.reports.texts import duration_text, shorten, time_ticks
from iosig.transforms.arrays import Ints, Reals
from iosig.warehouse.placing import atomic_write

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text

Data = ParamSpec("Data")
#: width and height in inches
Size = tuple[float, float]

#: approximate number of pixel columns in a panel
#: maximum number of values that are drawn without aggregation
PIXEL_COLUMNS, MAX_EXACT_VALUES = 1100, 4000
#: file formats and their metadata; dates and program versions are omitted so that output is reproducible
KINDS: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Creator": None, "Date": None}}


@dataclass(frozen=True, slots=True)
class Picture:
    """Figure that is composed when it is written, so that no display is needed and no figure stays open."""

    size_in: Size
    compose: Callable[[Figure], None]

    def figure(self) -> Figure:
        """Return the composed figure, in the active style."""
        figure = blank(self.size_in)
        self.compose(figure)
        return figure

    def write(self, path: Path, style: Style | None = None, kind: str | None = None) -> None:
        """Write the figure atomically.

        style: the active one by default. kind: one of `KINDS`; by default, the file name's suffix.
        """
        kind = kind or path.suffix.lower().removeprefix(".")
        if kind not in KINDS:
            raise ValueError(f"the name of a picture must end in {' or '.join(f'.{name}' for name in KINDS)}")
        with drawn_in(style or in_force()):
            figure = self.figure()
            with atomic_write(path.absolute()) as temporary:
                figure.savefig(temporary, format=kind, metadata=KINDS[kind])

    def _repr_html_(self) -> str:
        """Return the figure as SVG, which notebooks show."""
        text = StringIO()
        with drawn_in(in_force()):
            self.figure().savefig(text, format="svg", metadata=KINDS["svg"])
        return text.getvalue()[text.getvalue().index("<svg") :]


def picture(
    size_in: Size | Callable[..., Size], *, is_constrained: bool = False, pads: dict[str, float] | None = None
) -> Callable[[Callable[Concatenate[Figure, Data], None]], Callable[Data, Picture]]:
    """Decorate a function that draws data on a figure, so that it returns a `Picture` of the data.

    size_in: inches, or a function of the data. is_constrained: use matplotlib's constrained layout. pads: additional
    padding between panels [inches].
    """

    def decorate(compose: Callable[Concatenate[Figure, Data], None]) -> Callable[Data, Picture]:
        @wraps(compose)
        def make_picture(*data: Data.args, **options: Data.kwargs) -> Picture:
            def compose_data(figure: Figure) -> None:
                if is_constrained:
                    figure.set_layout_engine("constrained", **pads or {})
                compose(figure, *data, **options)

            return Picture(size_in(*data, **options) if callable(size_in) else size_in, compose_data)

        return make_picture

    return decorate


def blank(size_inches: Size) -> Figure:
    """Return a figure on which text can be measured."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size_inches, dpi=DOTS_PER_INCH)
    FigureCanvasAgg(figure)
    return figure


@dataclass(frozen=True, slots=True)
class Columns:
    """Values (n) aggregated to pixel columns: column edges, minimum, maximum, and fraction of missing values.

    Short series are not aggregated. Columns without known values are NaN.
    """

    edges: Ints
    lowest: Reals
    highest: Reals
    missing_ratio: Reals

    @classmethod
    def aggregate(cls, values: Reals, edges: Ints | None = None) -> Columns:
        """Aggregate values (n) between edges; without edges, only long series are aggregated.

        Infinities count as missing.
        """
        is_known = np.isfinite(values)
        finite = np.where(is_known, values, np.nan)
        if edges is None:
            count = len(values) if len(values) <= MAX_EXACT_VALUES else min(PIXEL_COLUMNS, len(values))
            edges = np.linspace(0, len(values), count + 1).round().astype(np.int64)
        if not len(values):
            return cls(edges, finite, finite, finite)
        starts = edges[:-1]
        missing = np.add.reduceat(~is_known, starts, dtype=np.float64) / np.diff(edges)
        return cls(edges, np.fmin.reduceat(finite, starts), np.fmax.reduceat(finite, starts), missing)

    @property
    def is_exact(self) -> bool:
        """Whether no column aggregates several values."""
        return int(self.edges[-1]) == len(self.lowest)

    def line(self, places: Reals) -> tuple[Reals, Reals]:
        """Return a line through all values at edge positions (n + 1), from minimum to maximum of each column."""
        middles = (places[self.edges[:-1]] + places[self.edges[1:]]) / 2
        if self.is_exact:
            return middles, self.highest
        return np.repeat(middles, 2), np.stack([self.lowest, self.highest], axis=1).ravel()


def fit(figure: Figure, artist: Text, text: str, width_ratio: float = 0.96) -> None:
    """Set the text of a `Text` artist, without its middle if it is wider than this fraction of the figure."""
    wide = width_ratio * figure.bbox.width
    max_chars = len(text)
    artist.set_text(text)
    while max_chars > 8 and (width := artist.get_window_extent().width) > wide:
        max_chars = min(max_chars - 1, int(max_chars * wide / width))
        artist.set_text(shorten(text, max_chars))


def headings(figure: Figure, finding: str, names: Iterable[str], color: str) -> None:
    """Write the finding at the top of a figure, with the subject below."""
    height = figure.get_figheight()
    heading = figure.text(0.02, 1 - 0.4 / height, "", fontsize=FINDING_POINTS, fontweight="bold", color=color)
    fit(figure, heading, finding)
    subject = figure.text(0.02, 1 - 0.7 / height, "", fontsize=SUBJECT_POINTS, color=SOFT)
    fit(figure, subject, "  ·  ".join(name for name in names if name))


def inch_axes(figure: Figure, top_in: float, height_in: float, sides: tuple[float, float]) -> Axes:
    """Add a panel at a fixed distance in inches below the figure's top, so that margins do not grow with the figure."""
    figure_in, (left, right) = float(figure.get_figheight()), sides
    return figure.add_axes((left, 1 - (top_in + height_in) / figure_in, right - left, height_in / figure_in))


def label_values(axis: Axis, text: Callable[[float], str]) -> None:
    """Label the major ticks of an axis, but not the minor ones."""
    from matplotlib.ticker import NullFormatter

    axis.set_major_formatter(lambda value, _: text(value))
    axis.set_minor_formatter(NullFormatter())


def label_decades(axis: Axis, max_count: int, text: Callable[[float], str]) -> None:
    """Label the powers of ten of a logarithmic axis, and also their multiples by 2 and 5 if it spans few decades."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,), numticks=max_count))
    label_values(axis, text)


def label_times(axis: Axis, low_s: float, high_s: float, max_count: int = 9) -> None:
    """Label a logarithmic time axis with round values in seconds, minutes, hours or days."""
    ticks = time_ticks(low_s, high_s, max_count)
    if len(ticks) > 1:
        axis.set_ticks([at_s for at_s, _ in ticks], [text for _, text in ticks])
        axis.set_ticks([], minor=True)
    else:
        label_values(axis, duration_text)


def legend_above(axes: Axes) -> None:
    """Put the legend above the panel, next to its title, where it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            handles,
            labels,
            loc="lower right",
            bbox_to_anchor=(1.005, 0.985),
            ncols=len(handles),
            borderaxespad=0.1,
            handlelength=1.6,
            columnspacing=1.2,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a figure legend: a filled area, a line or a marker."""

    label: str
    is_area: bool
    style: Mapping[str, Any]


def area(label: str, **style: Any) -> Entry:
    """Return a legend entry with a filled area (`matplotlib.patches.Patch`)."""
    return Entry(label, True, style)


def line(label: str, **style: Any) -> Entry:
    """Return a legend entry with a line or a marker (`matplotlib.lines.Line2D`)."""
    return Entry(label, False, style)


def draw_legend(
    figure: Figure, entries: Sequence[Entry], place: tuple[float, float] | None = None, **options: Any
) -> None:
    """Draw a legend at a fixed place in the figure.

    place: its upper left corner, as a fraction of the figure's width and in inches below its top. options: passed on to
    matplotlib.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(label=entry.label, **entry.style) if entry.is_area else Line2D([], [], label=entry.label, **entry.style)
        for entry in entries
    ]
    if place:
        anchor = (place[0], 1 - place[1] / figure.get_figheight())
        options = {"loc": "upper left", "bbox_to_anchor": anchor, "borderaxespad": 0.0} | options
    figure.legend(handles=handles, **options)


def say(axes: Axes, text: str) -> None:
    """Write the reason for an empty panel into it."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=11, color=SOFT)
    axes.set(xticks=[], yticks=[])


def in_order(frame: pl.DataFrame, column: str) -> list[str]:
    """Return the distinct values of a column in order of their first occurrence."""
    return frame[column].unique(maintain_order=True).to_list()
