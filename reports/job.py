"""Render the page of one run as a single file: findings, heat maps, samples and signatures, bytes, and neighbors.

The page contains no scripts and loads nothing; names from logs are inserted as escaped text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iosig.reports.findings import files_text
from iosig.reports.inline_svg import page_rules, render_svg
from iosig.reports.panels import Picture, inch_axes
from iosig.reports.slowdowns import format_slowed_bursts, top_interferer
from iosig.reports.style import BLUE, GRAY, VERMILION, WIDTH_IN
from iosig.reports.templates import environment
from iosig.reports.texts import TIMES, choose_rate_unit, choose_unit, plain
from iosig.warehouse.contracts.metrics import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TEMPLATE = "job.html"
_PANEL_IN, _GAP_IN = 1.5, 0.75
_X_MARGINS = (0.085, 0.985)
#: maximum number of sample panels on a page; those with the most bytes are kept
_MAX_PANELS = 6
#: request sizes as keys of tracer histograms, and as readable labels
_SIZES = {
    "0_100": "up to 100 B", "100_1K": "to 1 KiB", "1K_10K": "to 10 KiB", "10K_100K": "to 100 KiB",
    "100K_1M": "to 1 MiB", "1M_4M": "to 4 MiB", "4M_10M": "to 10 MiB", "10M_100M": "to 100 MiB",
    "100M_1G": "to 1 GiB", "1G_PLUS": "above 1 GiB",
}  # fmt: skip


def job_page(document: Mapping[str, Any], pictures: Sequence[str | None]) -> str:
    """Render the page of a run.

    document: the output of `iosig job --json`. pictures: SVG heat maps of each trace, or None for a trace without one.
    """
    operations = document["operations"]
    signatures = [row["signature"] for row in operations if row["signature"]]
    return (
        environment(Path(__file__).parent)
        .get_template(_TEMPLATE)
        .render(
            told=document,
            kind=get_name_kind(document["job_id"], document["traces"]),
            traces=list(zip(document["traces"], pictures, strict=True)),
            samples=sample_svg(document["samples"], document["signatures"], "bytes"),
            operations=sample_svg(operations, signatures, "operations"),
            rules=page_rules(),
            sizes=_SIZES,
            files_text=files_text,
            slowed_text=format_slowed_bursts,
            top_interferer=top_interferer,
        )
    )


def get_name_kind(name: str, traces: Sequence[Mapping[str, Any]]) -> str:
    """Return whether a name refers to a job, or to a trace without a job (named after its file); traces: their rows."""
    return "Trace" if traces and name == traces[0]["source_file"] else "Job"


# ---- samples over signatures


def sample_svg(
    samples: Sequence[Mapping[str, Any]], signatures: Sequence[Mapping[str, Any]], metric: Metric
) -> str | None:
    """Return the figure of a run's samples, each in a panel with its application's signature drawn over it.

    samples, signatures: rows of the document, with rates in `bytes_per_s` or `operations_per_s`. Returns None if no
    sample has traffic.
    """
    rates = f"{metric}_per_s"
    active = [row for row in samples if any(row[rates])]
    if not active:
        return None
    shown = sorted(active, key=lambda row: -sum(rate or 0.0 for rate in row[rates]))[:_MAX_PANELS]
    curves = {(row["filesystem"], row["direction"]): row for row in signatures if row[rates]}
    size = WIDTH_IN, len(shown) * (_PANEL_IN + _GAP_IN) + 0.2

    def compose(figure: Figure) -> None:
        for number, row in enumerate(shown):
            axes = inch_axes(figure, 0.3 + number * (_PANEL_IN + _GAP_IN), _PANEL_IN, _X_MARGINS)
            _draw_sample(axes, row, curves.get((row["filesystem"], row["direction"])), metric)

    of_operations = " in operations" if metric == "operations" else ""
    title = f"Traffic{of_operations} during the run, and its application's signature"
    return render_svg(Picture(size, compose), f"samples-{metric}", title)


def _draw_sample(axes: Axes, sample: Mapping[str, Any], curve: Mapping[str, Any] | None, metric: Metric) -> None:
    rates = np.array([np.nan if rate is None else rate for rate in sample[f"{metric}_per_s"]])
    edges_s = sample["start_s"] + sample["step_s"] * np.arange(len(rates) + 1)
    curve_rates = np.array(curve[f"{metric}_per_s"]) if curve else np.empty(0)
    curve_edges_s = curve["step_s"] * np.arange(len(curve_rates) + 1) if curve else np.zeros(1)
    unit = choose_rate_unit(max(float(np.nanmax(rates)), float(curve_rates.max(initial=0.0))), metric)
    time = choose_unit(max(float(edges_s[-1]), float(curve_edges_s[-1])), TIMES, "s")
    # Server counters cover this run only; samples cut from all traffic, such as all operations, include other jobs.
    is_exact = sample.get("is_exact", False)
    axes.stairs(np.nan_to_num(rates) / unit.size, edges_s / time.size, fill=True, color=BLUE if is_exact else GRAY)
    gaps = np.flatnonzero(np.isnan(rates))
    if len(gaps):
        axes.plot((edges_s[gaps] + sample["step_s"] / 2) / time.size, np.zeros(len(gaps)), "|", color=VERMILION)
    if len(curve_rates):
        axes.stairs(curve_rates / unit.size, curve_edges_s / time.size, color=VERMILION, linewidth=1.6)
    word = {"write": "Writes", "read": "Reads"}[sample["direction"]]
    source_text = "counted for this run" if is_exact else "all traffic"
    line = "; the signature over it" if len(curve_rates) else ""
    axes.set_title(f"{word} on {plain(sample['filesystem'], 60)}, {source_text}{line}")
    axes.set(xlabel=f"time since the run began [{time.name}]", ylabel=f"[{unit.name}]", ylim=(0, None))
    axes.set_xlim(0, max(float(edges_s[-1]), float(curve_edges_s[-1])) / time.size)
    axes.locator_params(axis="y", nbins=4)
