"""Draw a network's values over time: per hop, a line at the mean that fades toward the minimum and maximum.

As Figure 2 of Sigovan et al. (IPDPS'13); a semitransparent gray rectangle marks the selected time range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.reports import panels
from iosig.reports.networks.colors import colors
from iosig.reports.networks.texts import get_hop_quantity, log_ticks, value_text
from iosig.reports.networks.view import NetworkView
from iosig.reports.style import GRAY, in_force
from iosig.reports.texts import TIMES, choose_unit, plain, plural
from iosig.transforms.arrays import Reals
from iosig.transforms.networks.network import METRICS, STEPS_PER_WINDOW, Network

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: maximum number of hops; only the outer ones are drawn
MAX_HOPS = 4
#: number of pixel rows of the gradient
#: opacity of the gradient relative to the line
_ROWS, _STRENGTH = 120, 0.75
#: index of the line color in a hop's color map
_COLOR = 70
#: margin around the values, in decades
_MARGIN_DECADES = 0.12


def draw_timelines(panel_axes: list[Axes], view: NetworkView) -> None:
    """Draw each hop's timeline into its panel on a common scale, and mark the selected range."""
    network = view.network
    timeline, *peer_timelines = (_select_metric(one) for one in (view, *view.peers))
    steps = timeline.filter(pl.col("count") > 0)
    low, high = _range(pl.concat([steps, *(peer.filter(pl.col("count") > 0) for peer in peer_timelines)]))
    edges = network.window_edges_s
    spans = np.array([one.network.window_edges_s[[0, -1]] for one in (view, *view.peers)])
    clock = choose_unit(float(np.abs(spans).max()), TIMES, "s")
    first, stop = view.window_range
    for hop, axes in enumerate(panel_axes):
        axes.set_xlim(spans[:, 0].min() / clock.size, spans[:, 1].max() / clock.size)
        axes.axvspan(edges[first] / clock.size, edges[stop] / clock.size, color=GRAY, alpha=0.16, lw=0, zorder=0)
        of_hop, nothing = steps.filter(pl.col("hop") == hop), _nothing(timeline.filter(pl.col("hop") == hop))
        if nothing:
            axes.set_ylim(low, high)
            panels.say(axes, nothing)
        else:
            color = colors(hop, is_dark=in_force().is_dark)[_COLOR]
            _draw(axes, network, of_hop, color, edges[[0, -1]] / clock.size, (low, high))
        outer, inner = (plain(plural(layer.name), 24) for layer in network.layers[hop : hop + 2])
        axes.set_title(f"{outer} to {inner}: {get_hop_quantity(network, view.metric, hop)}", fontsize=9, pad=3)
        axes.tick_params(labelsize=8, labelbottom=axes is panel_axes[-1])
        _name_values(axes, view, low, high)
    panel_axes[-1].set_xlabel(f"time since the run's start [{clock.name}]", fontsize=9)


def _select_metric(view: NetworkView) -> pl.DataFrame:
    return view.network.timeline.filter(pl.col("metric") == METRICS.index(view.metric))


def _nothing(timeline: pl.DataFrame) -> str | None:
    """Return the reason why a hop has no timeline (no value above zero), or None."""
    if not len(timeline):
        return "no values are known"
    if bool((timeline["most"] > 0).any()):
        return None
    return "all values are 0" if bool((timeline["least"] == 0).all()) else "no values are above 0"


def _range(steps: pl.DataFrame) -> tuple[float, float]:
    """Return base-10 axis limits around all positive values, with a margin."""
    values = np.concatenate([steps[name].to_numpy() for name in ("least", "most")])
    values = values[(values > 0) & np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = np.log10(values.min()), np.log10(values.max())
    return float(low - _MARGIN_DECADES), float(high + _MARGIN_DECADES)


def _draw(
    axes: Axes,
    network: Network,
    steps: pl.DataFrame,
    color: npt.NDArray[np.uint8],
    span: Reals,
    limits: tuple[float, float],
) -> None:
    """Draw one hop on a logarithmic axis: the mean, fading to minimum and maximum; values <= 0 are at the bottom.

    span: start and end of the run on the axis. limits: lowest and highest value, as powers of ten.
    """
    low, high = limits
    axes.set_ylim(low, high)
    count = network.window_count * STEPS_PER_WINDOW
    mean, minimum, maximum = (np.full(count, np.nan) for _ in range(3))
    place = np.clip(steps["step"].to_numpy(), 0, count - 1)
    mean[place] = _compute_log10((steps["sum"] / steps["count"]).to_numpy(), low)
    minimum[place], maximum[place] = (_compute_log10(steps[name].to_numpy(), low) for name in ("least", "most"))
    left, right = span.tolist()
    image = np.empty((_ROWS, count, 4), dtype=np.uint8)
    image[..., :3] = color
    image[..., 3] = np.round(255 * _STRENGTH * _compute_opacity(mean, minimum, maximum, low, high))
    axes.imshow(
        image, extent=(left, right, low, high), origin="lower", aspect="auto", interpolation="nearest", zorder=1
    )
    line = tuple(float(part) for part in color / 255)
    axes.stairs(mean, np.linspace(left, right, count + 1), baseline=None, color=line, lw=1.6, zorder=2)


def _compute_log10(values: Reals, low: float) -> Reals:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0, np.maximum(np.log10(values), low), low)


def _compute_opacity(mean: Reals, minimum: Reals, maximum: Reals, low: float, high: float) -> Reals:
    """Return the opacity of each pixel (rows, steps): 1 at the mean, falling to 0 at the minimum and maximum."""
    rows = low + (high - low) * (np.arange(_ROWS)[:, None] + 0.5) / _ROWS
    # Keep the gradient half a row wide or more, so that a single value is visible.
    pixel = (high - low) / _ROWS
    above, below = np.maximum(maximum - mean, pixel), np.maximum(mean - minimum, pixel)
    opacity = 1 - np.where(rows >= mean, (rows - mean) / above, (mean - rows) / below)
    strength: Reals = np.nan_to_num(np.clip(opacity, 0.0, 1.0))
    return strength


def _name_values(axes: Axes, view: NetworkView, low: float, high: float) -> None:
    if not axes.get_yticks().size:
        return
    ticks = log_ticks(10**low, 10**high, 4)
    axes.set_yticks(np.log10(ticks), [value_text(view.metric, value) for value in ticks.tolist()])
