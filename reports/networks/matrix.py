"""Draw a small network as one matrix per hop, with the value of each node pair printed in its cell.

A ring of a few nodes is mostly empty and hides which nodes communicate; a matrix gives each pair a separate cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.reports.networks.legend import pixel_axes
from iosig.reports.networks.texts import get_hop_quantity, node_text, ratio_text, value_text
from iosig.reports.networks.view import SLOW_RATIO, NetworkView
from iosig.reports.style import FAINT, GRAY, GROUND, INK, NOTE_POINTS, VERMILION, in_force, luminance, shades
from iosig.reports.texts import plain, plural
from iosig.transforms.arrays import Reals
from iosig.transforms.networks.log_bins import NEGATIVE
from iosig.transforms.networks.network import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: margin above the matrix, for its title and column names [pixels]
#: margin below the matrix [pixels]
#: margin to the left of the matrix, for its row names [pixels]
#: maximum width of a cell [pixels]
#: maximum height of a cell [pixels]
_ABOVE, _BELOW, _BESIDE, _CELL_WIDE, _CELL_HIGH = 92, 24, 230, 400, 60
_NAME_CHARACTERS = 20


def mean_values(view: NetworkView, hop: int) -> Reals:
    """Return the mean metric of each node pair of a hop (outer, inner) in the selected windows; NaN without data.

    Times [s] exclude unknown and negative ones. Sizes [B] are per transfer. Bandwidths [B/s] are total bytes over total
    time.
    """
    network, (first, stop) = view.network, view.window_range
    is_selected = pl.col("window").is_between(first, stop, closed="left")
    edges = (
        network.edges.with_row_index("edge").filter(pl.col("hop") == hop).with_columns(pl.col("edge").cast(pl.Int32))
    )
    is_timed = (pl.col("metric") == METRICS.index("time")) & (pl.col("bin") > NEGATIVE)
    timed = network.counts.filter(is_selected & is_timed).group_by("edge").agg(timed_count=pl.col("count").sum())
    sums = (
        network.totals.filter(is_selected)
        .group_by("edge", maintain_order=True)
        .agg(pl.col("transfer_count", "read_bytes", "written_bytes", "transfer_time_s").sum())
    )
    moved_bytes = (pl.col("read_bytes") + pl.col("written_bytes")).cast(pl.Float64)
    time_s, bottom = pl.col("transfer_time_s"), pl.col("transfer_count")
    top, bottom = {
        "time": (time_s, pl.col("timed_count")),
        "size": (moved_bytes, pl.col("transfer_count")),
        "bandwidth": (moved_bytes, time_s),
    }[view.metric]
    rows = (
        edges.join(sums, on="edge")
        .join(timed, on="edge", how="left")
        .with_columns(value=pl.when(bottom > 0).then(top / bottom))
    )
    outer, inner = network.layers[hop : hop + 2]
    means = np.full((outer.node_count, inner.node_count), np.nan)
    means[rows["source"].to_numpy(), rows["target"].to_numpy()] = rows["value"].fill_null(np.nan).to_numpy()
    return means


def matrices_high(view: NetworkView, max_height: int) -> int:
    """Return the total height of all matrices in pixels, limited to `most`."""
    layers = view.network.layers[: view.network.hop_count]
    cells = sum(max(layer.node_count, 1) for layer in layers) * _CELL_HIGH
    return min(max_height, cells + len(layers) * (_ABOVE + _BELOW))


def draw_matrices(figure: Figure, view: NetworkView, left: int, top: int, side: int) -> None:
    """Stack one matrix per hop inside a square of `side` pixels."""
    hops = [mean_values(view, hop) for hop in range(view.network.hop_count)]
    positive = np.concatenate([values[np.isfinite(values) & (values > 0)] for values in hops])
    ends = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 1.0)
    rows = sum(len(values) for values in hops)
    high = min(_CELL_HIGH, (side - len(hops) * (_ABOVE + _BELOW)) / max(rows, 1))
    for hop, values in enumerate(hops):
        wide = min(_CELL_WIDE, (side - _BESIDE - 40) / max(values.shape[1], 1))
        size = max(values.shape[1], 1) * wide, max(len(values), 1) * high
        axes = pixel_axes(figure, left + _BESIDE, top + _ABOVE, *size)
        _draw_matrix(axes, view, hop, values, ends)
        top += int(_ABOVE + size[1] + _BELOW)


def _draw_matrix(axes: Axes, view: NetworkView, hop: int, values: Reals, ends: tuple[float, float]) -> None:
    outer, inner = view.network.layers[hop : hop + 2]
    names = [plain(plural(layer.name), 24) for layer in (outer, inner)]
    quantity = get_hop_quantity(view.network, view.metric, hop)
    axes.set_title(f"{names[0]} (rows) to {names[1]} (columns): mean {quantity}", pad=40 if values.shape[1] > 1 else 24)
    axes.patch.set_facecolor(FAINT)
    axes.set(xlim=(0, values.shape[1]), ylim=(len(values), 0))
    _fill(axes, view, values, ends)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False, labelsize=NOTE_POINTS)
    axes.tick_params(axis="y", pad=12)
    slow = {label: ratio for nodes in view.slow for label, ratio in zip(nodes.labels, nodes.ratios, strict=True)
            if nodes.layer == outer.name and ratio >= SLOW_RATIO}  # fmt: skip
    labels = [
        (node_text(label), f" \u00d7 {ratio_text(slow[label])}" if label in slow else "") for label in outer.labels
    ]
    axes.set_yticks(np.arange(len(values)) + 0.5, [name[:_NAME_CHARACTERS] + note for name, note in labels])
    for tick, (_, note) in zip(axes.get_yticklabels(), labels, strict=True):
        tick.set_color(VERMILION if note else INK)
    across = [node_text(label)[:_NAME_CHARACTERS] for label in inner.labels]
    is_crowded = max(map(len, across), default=0) * len(across) > 130
    axes.set_xticks(
        np.arange(values.shape[1]) + 0.5,
        across,
        rotation=30 if is_crowded else 0,
        ha="left" if is_crowded else "center",
    )
    axes.spines[:].set_visible(False)
    _mark_requests(axes, view, hop)


def _fill(axes: Axes, view: NetworkView, values: Reals, ends: tuple[float, float]) -> None:
    """Fill each cell with a log-scaled shade, and write its value into it."""
    low, high = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(values / low) / np.log(high / low) if high > low else np.zeros_like(values)
    # The extreme shades have too little contrast with the background or the text.
    levels = 0.12 + 0.76 * np.clip(np.nan_to_num(share, neginf=0.0), 0.0, 1.0)
    for (row, column), value in np.ndenumerate(values):
        if not np.isfinite(value):
            continue
        color = shades(levels[row, column : column + 1])[0]
        axes.fill_between([column + 0.02, column + 0.98], row + 0.03, row + 0.97, color=tuple(color), lw=0)
        bright = luminance("#" + "".join(f"{round(255 * part):02X}" for part in color))
        is_ink = (bright > 0.25) != in_force().is_dark
        axes.text(
            column + 0.5, row + 0.5, value_text(view.metric, float(value)) if value > 0 else "0", ha="center",
            va="center", fontsize=NOTE_POINTS, color=INK if is_ink else GROUND, clip_on=True,
        )  # fmt: skip
    if not np.isfinite(values).any():
        axes.text(0.5, 0.5, "no known values", transform=axes.transAxes, ha="center", va="center", color=GRAY)


def _mark_requests(axes: Axes, view: NetworkView, hop: int) -> None:
    """Draw a red ring before each node that issued an outlier request."""
    if not {"metric", "source_layer", "source_node"} <= set(view.bottlenecks.columns):
        return
    layer = view.network.layers[hop]
    of_layer = (pl.col("metric") == view.metric) & (pl.col("source_layer") == layer.name)
    names = view.bottlenecks.filter(of_layer)["source_node"].unique().to_list()
    places = np.flatnonzero(layer.labels.is_in(names).to_numpy())
    axes.plot(
        np.zeros(len(places)), places + 0.5, "o", ms=9, mfc=GROUND, mec=VERMILION, mew=1.8, clip_on=False, zorder=5
    )
