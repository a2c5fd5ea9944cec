"""Draw one application's signature: the samples of its runs above, their common signature below.

As Figures 9 and 15 of IOSI (Liu et al., FAST'14): samples and signature share one time axis. Missing data are gaps in a
sample's line. Samples and signatures are drawn in full; where values are closer than pixels, each pixel column shows
their minimum and maximum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import panels
from iosig.reports.panels import Columns
from iosig.reports.style import BLUE, FAINT, GRAY, GREEN, INK, ORANGE, PALE, PURPLE, SKY, SOFT, VERMILION
from iosig.reports.texts import (
    TIMES,
    Unit,
    choose_rate_unit,
    choose_unit,
    duration_text,
    format_count,
    plain,
    rate_text,
    volume_text,
)
from iosig.transforms.arrays import Ragged, Reals, offsets_of
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.expected_correlation import COMPARABLE_OUTCOMES, find_missing_bursts_in_set
from iosig.transforms.signatures.outliers import select_typical_runs
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from iosig.warehouse.contracts.metrics import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_WIDTH_IN, _SIGNATURE_IN, _SUPPORT_IN = 11.0, 3.2, 0.8
#: approximate height of all samples together [inches]
#: maximum height of a row [inches]
#: minimum height of a row [inches]
#: minimum height of rows with names [inches]
_SAMPLES_IN, _MAX_ROW_IN, _MIN_ROW_IN, _NAMED_ROW_IN = 4.2, 0.4, 0.07, 0.11
#: maximum number of samples drawn
_MAX_ROWS = 120
#: fraction of a row's height that the highest sample fills
_ROW_FILL = 0.92
_NUMBER_POINTS = 8.0
#: space above the panels, for the headings [inches]
#: space between two panels, for the upper one's axis and the lower one's title [inches]
#: space below the panels, for the axis [inches]
_TOP_IN, _BETWEEN_IN, _BOTTOM_IN = 1.15, 0.52, 0.6
_SIDES = (0.085, 0.975)
_OVERLAID = (ORANGE, GREEN, PURPLE, SKY)
#: outliers are clipped at this multiple of the time range of the used samples
#: outliers are clipped at this multiple of the highest rate of the used samples
_BEYOND_TIME, _BEYOND_RATE = 1.15, 1.25
#: maximum length of a job id
#: maximum length of an application's name
_JOB_CHARACTERS, _NAME_CHARACTERS = 14, 80
#: why an application has no signature, by outcome
REASONS = {
    "too_few_samples": "No signature: too few samples",
    "no_io": "No signature: no bytes were moved",
    "no_common_bursts": "No signature: the samples have no common bursts",
}
#: how samples of a run alone were measured, by their source
_MEASURED = {"jobstats": "counted", "client": "traced"}


@dataclass(frozen=True, slots=True)
class DrawnSample:
    """One run's sample: mean rates per step (n) in bytes per second, NaN where not measured.

    start_s: left edge of the first step, relative to the run's start. duration_s: of the run; NaN uses the sample's
    length. source: origin of the sample, as in `sample_sets`; only one from servers contains the traffic of other runs.
    """

    job_id: str
    bytes_per_s: Reals
    interval_s: float
    start_s: float
    is_outlier: bool
    duration_s: float = math.nan
    source: str = "server"

    @property
    def edges_s(self) -> Reals:
        """The edges of its steps since the run's start (n + 1)."""
        edges: Reals = self.start_s + self.interval_s * np.arange(len(self.bytes_per_s) + 1, dtype=np.float64)
        return edges


@dataclass(frozen=True, slots=True)
class DrawnSignature:
    """Signature that one method extracted from a number of samples.

    expected_correlation: with the true signature; NaN if unavailable.
    """

    method: str
    signature: Signature
    sample_count: int
    used_sample_count: int
    expected_correlation: float = math.nan


@dataclass(frozen=True)
class SignatureView:
    """Samples and signatures of one application; one or more signatures, the main one first.

    metric: what all amounts count.
    """

    application_id: str
    filesystem: str
    direction: str
    samples: tuple[DrawnSample, ...]
    signatures: tuple[DrawnSignature, ...]
    metric: Metric = "bytes"

    @property
    def main(self) -> DrawnSignature:
        """Signature that the figure describes."""
        return self.signatures[0]

    @property
    def has_curve(self) -> bool:
        """Whether any signature has a curve to draw."""
        return any(len(drawn.signature.bytes_per_s) for drawn in self.signatures)

    @property
    def verdict(self) -> str:
        """One-line summary made of the finding and its details."""
        return "  ·  ".join([self.finding, *self.details])

    @property
    def finding(self) -> str:
        """Sentence on the application's I/O behavior and visible anomalies, or the reason for a missing signature."""
        main, fitted = self.main, self.main.signature
        if fitted.outcome != "extracted":
            count_text = f" ({main.sample_count})" if fitted.outcome == "too_few_samples" else ""
            return "; ".join([f"{REASONS[fitted.outcome]}{count_text}", *self._missing_burst_notes])
        with np.errstate(over="ignore"):
            volume = volume_text(fitted.volume_bytes, self.metric)
        verb = {"write": "writes", "read": "reads"}.get(self.direction, "moves")
        bursts = format_count(len(fitted.bursts), "burst")
        text = f"A run of {duration_text(fitted.duration_s)} {verb} {volume} in {bursts}"
        return "; ".join([text, *self._missing_burst_notes])

    @property
    def details(self) -> list[str]:
        """Number of runs behind the signature, its peak rate and expected correlation; empty without a signature."""
        main, signature = self.main, self.main.signature
        if signature.outcome != "extracted":
            return []
        return [
            f"{main.used_sample_count} of {format_count(main.sample_count, 'run')} used",
            f"up to {rate_text(float(signature.bytes_per_s.max(initial=0.0)), self.metric)}",
            *(
                [f"expected correlation {main.expected_correlation:.2f} of 1"]
                if math.isfinite(main.expected_correlation)
                else []
            ),
        ]

    @property
    def _missing_burst_notes(self) -> list[str]:
        """Describe the bursts that are visible in the samples but not in the signature, if any."""
        count = len(self.missing_bursts)
        return (
            [f"{format_count(count, 'burst')} of the samples {'is' if count == 1 else 'are'} not in the signature"]
            if count
            else []
        )

    @cached_property
    def missing_bursts(self) -> Reals:
        """Bursts that most comparable runs have and the main signature lacks.

        Start and end as fractions of the duration (n, 2); the count matches `signatures.missing_burst_count`.
        """
        samples = self.samples
        if (
            self.main.signature.outcome not in COMPARABLE_OUTCOMES
            or len({sample.interval_s for sample in samples}) != 1
        ):
            return np.zeros((0, 2))
        taken_s = np.array([sample.duration_s for sample in samples])
        seen_s = np.array([max(float(sample.edges_s[-1]), 0.0) for sample in samples])
        runs = SampleSet(
            Ragged(
                np.concatenate([sample.bytes_per_s for sample in samples]),
                offsets_of([len(sample.bytes_per_s) for sample in samples]),
            ),
            samples[0].interval_s,
            np.array([sample.start_s for sample in samples]),
            np.where(np.isfinite(taken_s), taken_s, seen_s),
        )
        return find_missing_bursts_in_set(
            runs.select_runs(select_typical_runs(runs.duration_s, np.array([0, len(samples)]))), self.main.signature
        )


# ---- layout


def _size(view: SignatureView) -> tuple[float, float]:
    below = _BETWEEN_IN + _SIGNATURE_IN + _SUPPORT_IN * _has_support(view.main) if view.has_curve else 0.0
    return _WIDTH_IN, _TOP_IN + _samples_in(view) + below + _BOTTOM_IN


def _samples_in(view: SignatureView) -> float:
    count = len(_rows(view.samples))
    return max(count * _row_in(count), 2 * _MAX_ROW_IN)


def _has_support(drawn: DrawnSignature) -> bool:
    return bool(np.isfinite(drawn.signature.bursts.support_ratio).any())


@panels.picture(_size)
def draw(figure: Figure, view: SignatureView) -> None:
    """Draw the samples, and below them the signatures and the number of samples that support each burst."""
    _headings(figure, view)
    longest = _longest_s(view)
    clock = choose_unit(longest, TIMES, "s")
    panel_axes = [panels.inch_axes(figure, _TOP_IN, _samples_in(view), _SIDES)]
    _draw_samples(panel_axes[0], view, clock)
    if view.has_curve:
        top = _TOP_IN + _samples_in(view) + _BETWEEN_IN
        panel_axes.append(panels.inch_axes(figure, top, _SIGNATURE_IN, _SIDES))
        _draw_signatures(panel_axes[1], view, clock)
        if _has_support(view.main):
            panel_axes.append(panels.inch_axes(figure, top + _SIGNATURE_IN + 0.12, _SUPPORT_IN - 0.12, _SIDES))
            _draw_support(panel_axes[2], view.main.signature.bursts, clock)
    for axes in panel_axes:
        axes.set_xlim(0.0, longest / clock.size)
        axes.tick_params(axis="x", labelbottom=axes is panel_axes[-1])
    panel_axes[-1].set_xlabel(f"time since the run's start [{clock.name}]")
    if view.has_curve:
        number_bursts(panel_axes[1], view.main.signature.bursts, clock)


def _headings(figure: Figure, view: SignatureView) -> None:
    names = (plain(view.application_id, _NAME_CHARACTERS), view.direction, plain(view.filesystem), view.main.method)
    panels.headings(figure, view.finding, (*names, *view.details), _finding_color(view))


def _finding_color(view: SignatureView) -> str:
    """Return red if the samples show bursts that the signature lacks."""
    return VERMILION if len(view.missing_bursts) else INK


def _longest_s(view: SignatureView) -> float:
    """Return the end of the time axis; much longer outliers are truncated to keep the other samples readable."""
    ends = [float(drawn.edges_s[-1]) for drawn in view.samples if not drawn.is_outlier]
    ends += [drawn.signature.duration_s for drawn in view.signatures]
    needed = max(ends, default=0.0)
    beyond = max((float(drawn.edges_s[-1]) for drawn in view.samples if drawn.is_outlier), default=0.0)
    if needed > 0:
        beyond = min(beyond, _BEYOND_TIME * needed)
    return max(needed, beyond) or 1.0


# ---- samples


def _draw_samples(axes: Axes, view: SignatureView, clock: Unit) -> None:
    """Draw each run's sample in a separate row on a common scale: used samples first, then the outliers, dashed."""
    rows = _rows(view.samples)
    high = _scale(view.samples)
    _say_samples(axes, view, rows, high)
    shade_bursts(axes, view.main.signature.bursts, clock)
    for row, sample in enumerate(reversed(rows)):
        _draw_sample(axes, sample, row, clock, high)
        if not sample.is_outlier:
            _draw_missed(axes, sample, row, clock, high, view.missing_bursts)
    axes.set_ylim(0.0, max(len(rows), 1))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=min(8.0, 50 * _row_in(len(rows))))
    is_named = _row_in(len(rows)) >= _NAMED_ROW_IN
    names = [sample.job_id if sample.is_outlier or is_named else "" for sample in reversed(rows)]
    axes.set_yticks(np.arange(len(rows)) + 0.35, [plain(name, _JOB_CHARACTERS) for name in names])
    for label, sample in zip(axes.get_yticklabels(), reversed(rows), strict=True):
        label.set_color(SOFT if sample.is_outlier else INK)


def _rows(samples: Sequence[DrawnSample]) -> list[DrawnSample]:
    """Select the samples to draw: the last used samples, then the last outliers, up to `_MAX_ROWS` in total."""
    used = [sample for sample in samples if not sample.is_outlier]
    outliers = [sample for sample in samples if sample.is_outlier][-_MAX_ROWS // 4 :]
    return used[-max(_MAX_ROWS - len(outliers), 1) :] + outliers


def _row_in(count: int) -> float:
    """Return the row height in inches for a given number of samples."""
    return min(_MAX_ROW_IN, max(_MIN_ROW_IN, _SAMPLES_IN / max(count, 1)))


def _scale(samples: Sequence[DrawnSample]) -> float:
    """Return the rate at full row height; much higher outliers are clipped to keep the other samples readable."""
    needed = max((_peak(sample.bytes_per_s) for sample in samples if not sample.is_outlier), default=0.0)
    beyond = max((_peak(sample.bytes_per_s) for sample in samples if sample.is_outlier), default=0.0)
    return max(needed, min(beyond, _BEYOND_RATE * needed) if needed > 0 else beyond)


def _say_samples(axes: Axes, view: SignatureView, rows: Sequence[DrawnSample], high: float) -> None:
    samples = view.samples
    outliers = sum(sample.is_outlier for sample in samples)
    parts = [f"Samples: {len(samples) - outliers} used" if outliers else format_count(len(samples), "sample")]
    if outliers:
        parts.append(f"{outliers} excluded as {'an outlier' if outliers == 1 else 'outliers'} (dashed)")
    for source, measured in _MEASURED.items():
        if count := sum(sample.source == source for sample in samples):
            are_all = count == len(samples)
            parts.append(f"{measured} for each run alone" if are_all else f"{count} {measured} for the run alone")
    if len(rows) < len(samples):
        parts.append(f"last {len(rows)} shown")
    if high > 0:
        parts.append(f"each row up to {rate_text(high, view.metric)}")
    axes.set_title(", ".join(parts))
    if not samples:
        panels.say(axes, "no samples in the release")
    elif not high > 0:
        is_known = any(np.isfinite(sample.bytes_per_s).any() for sample in samples)
        silence = "no bytes were moved" if view.metric == "bytes" else "no operations"
        panels.say(axes, silence if is_known else "no data")


def _draw_sample(axes: Axes, sample: DrawnSample, row: int, clock: Unit, high: float) -> None:
    """Draw one sample as a line over a filled area; missing data are gray."""
    edges = sample.edges_s / clock.size
    axes.axhline(row, color=PALE, lw=0.5, zorder=0.6)
    is_missing = ~np.isfinite(sample.bytes_per_s)
    if is_missing.any():
        gaps = Columns.aggregate(np.where(is_missing, 0.5, np.nan))
        axes.stairs(row + gaps.highest, edges[gaps.edges], baseline=row, fill=True, color=GRAY, alpha=0.45, lw=0)
    if not high > 0 or not len(sample.bytes_per_s):
        return
    places, values = Columns.aggregate(np.minimum(sample.bytes_per_s / high, 1.0) * _ROW_FILL).line(edges)
    if sample.is_outlier:
        axes.plot(places, row + values, color=SOFT, lw=0.7, ls=(0, (4, 1.5)))
    else:
        axes.fill_between(places, row, row + values, color=BLUE, alpha=0.35, lw=0)
        axes.plot(places, row + values, color=BLUE, lw=0.6)


def _draw_missed(axes: Axes, sample: DrawnSample, row: int, clock: Unit, high: float, missed_ratios: Reals) -> None:
    """Highlight in red the parts of a sample with bursts that most samples have and the signature lacks."""
    ratios = (sample.edges_s[:-1] + sample.interval_s / 2) / max(float(sample.edges_s[-1]), sample.interval_s)
    is_missed = ((ratios[:, None] >= missed_ratios[:, 0]) & (ratios[:, None] < missed_ratios[:, 1])).any(axis=1)
    if not (is_missed.any() and high > 0):
        return
    columns = Columns.aggregate(np.where(is_missed, np.minimum(sample.bytes_per_s / high, 1.0) * _ROW_FILL, np.nan))
    places, values = columns.line(sample.edges_s / clock.size)
    axes.fill_between(places, row, row + values, color=VERMILION, lw=0, zorder=2.5)


def _peak(values: Reals) -> float:
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


# ---- signatures


def _draw_signatures(axes: Axes, view: SignatureView, clock: Unit) -> None:
    """Draw the main signature with its band, bursts and background, and the others as lines over it."""
    main, *overlaid = view.signatures
    axes.set_title(f"Signature: I/O without interference ({main.method})")
    curves = [_band(drawn.signature)[1] for drawn in view.signatures[:1]] + [
        drawn.signature.bytes_per_s for drawn in overlaid
    ]
    background = main.signature.background_bytes_per_s
    high = max([_peak(curve) for curve in curves] + [background if math.isfinite(background) else 0.0])
    unit = choose_rate_unit(high, view.metric)
    axes.set_ylabel(f"throughput [{unit.name}]")
    shade_bursts(axes, main.signature.bursts, clock)
    _draw_curve(axes, main, clock, unit)
    for drawn, color in zip(overlaid, (_OVERLAID * len(overlaid))[: len(overlaid)], strict=True):
        if len(drawn.signature.bytes_per_s):
            line = Columns.aggregate(drawn.signature.bytes_per_s / unit.size).line(
                _seconds(drawn.signature) / clock.size
            )
            axes.plot(*line, color=color, lw=1.2, ls=(0, (5, 1.5)), label=drawn.method)
        else:
            axes.plot([], [], color=color, ls=":", label=f"{drawn.method}: {drawn.signature.outcome}")
    if math.isfinite(background):
        label = f"background, excluded: {rate_text(background, view.metric)}"
        axes.axhline(background / unit.size, color=GRAY, lw=1.1, ls="--", zorder=1.5, label=label)
    # Leave space for the burst numbers.
    axes.set_ylim(0.0, 1.17 * (high / unit.size) if high > 0 else 1.0)
    panels.legend_above(axes)


def _draw_curve(axes: Axes, drawn: DrawnSignature, clock: Unit, unit: Unit) -> None:
    signature = drawn.signature
    if not len(signature.bytes_per_s):
        return
    edges = _seconds(signature) / clock.size
    low, high = _band(signature)
    curve = Columns.aggregate(signature.bytes_per_s / unit.size)
    axes.fill_between(*curve.line(edges), color=BLUE, alpha=0.13, lw=0)
    if np.isfinite(signature.low_bytes_per_s).any():
        places = edges[curve.edges]
        bottom, top = Columns.aggregate(low / unit.size).lowest, Columns.aggregate(high / unit.size).highest
        axes.stairs(top, places, baseline=bottom, fill=True, color=SKY, alpha=0.35, lw=0, label="its band")
    axes.plot(*curve.line(edges), color=BLUE, lw=1.4, label=drawn.method)


def _band(signature: Signature) -> tuple[Reals, Reals]:
    """Return the lower and upper edges of the uncertainty band; without a band, the curve for both."""
    low = np.where(np.isfinite(signature.low_bytes_per_s), signature.low_bytes_per_s, signature.bytes_per_s)
    high = np.where(np.isfinite(signature.high_bytes_per_s), signature.high_bytes_per_s, signature.bytes_per_s)
    return low, high


def _seconds(signature: Signature) -> Reals:
    """Return the edges of a signature's seconds (n + 1)."""
    return np.arange(len(signature.bytes_per_s) + 1, dtype=np.float64)


# ---- bursts


def shade_bursts(axes: Axes, bursts: Bursts, clock: Unit) -> None:
    """Shade the time of each burst over the full height."""
    if len(bursts):
        axes.broken_barh(
            list(zip(bursts.start_s / clock.size, (bursts.end_s - bursts.start_s) / clock.size, strict=True)),
            (0.0, 1.0),
            transform=axes.get_xaxis_transform(),
            color=INK,
            alpha=0.07,
            lw=0,
            zorder=0.5,
            label="burst" if len(bursts) == 1 else "bursts",
        )


def number_bursts(axes: Axes, bursts: Bursts, clock: Unit) -> None:
    """Write burst numbers along the upper edge: each, or every second, fifth, tenth ..., to avoid overlap."""
    middles = (bursts.start_s + bursts.end_s) / 2 / clock.size
    inches = (_SIDES[1] - _SIDES[0]) * _WIDTH_IN / axes.get_xlim()[1]
    # the width of a digit is about 0.64 of the font size, and an inch has 72 points
    room = (len(str(len(bursts))) + 1) * 0.64 * _NUMBER_POINTS / 72
    numbers = np.arange(1, len(bursts) + 1)
    for step in (scale * factor for scale in 10 ** np.arange(8) for factor in (1, 2, 5)):
        chosen = (numbers == 1) | (numbers % step == 0)
        if not (np.diff(middles[chosen]) * inches < room).any():
            break
    for number, middle in zip(numbers[chosen], middles[chosen], strict=True):
        axes.text(
            middle, 0.985, f"{number}",
            transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=_NUMBER_POINTS, color=INK,
            clip_on=True,
        )  # fmt: skip


def _draw_support(axes: Axes, bursts: Bursts, clock: Unit) -> None:
    """Draw the number of used samples that support each burst, as bars with the burst's width."""
    from matplotlib.collections import PolyCollection

    top = 100 * np.where(np.isfinite(bursts.support_ratio), bursts.support_ratio, 0.0)
    left, right = bursts.start_s / clock.size, bursts.end_s / clock.size
    zero = np.zeros(len(bursts))
    corners = np.stack([[left, zero], [left, top], [right, top], [right, zero]]).transpose(2, 0, 1)
    # the outline keeps bursts visible that are narrower than a pixel
    axes.add_collection(PolyCollection(list(corners), facecolors=GRAY, edgecolors=GRAY, linewidths=0.5))
    axes.set_ylim(0, 118)
    axes.set_yticks([0, 50, 100])
    axes.grid(axis="y", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    axes.set_ylabel("runs that\nhave it [%]", fontsize=8.5)
