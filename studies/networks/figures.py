"""The figure of the study of networks: planted patterns, drawn as any network is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from reports import panels
from reports.networks.legend import pixel_axes
from reports.networks.picture import draw_disc
from reports.networks.view import NetworkView
from transforms.networks.network import Network
from transforms.networks.patterns import patterns
from transforms.networks.rings import layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIDE, _TITLE, _COLUMNS = 560, 34, 2


def draw_patterns(networks: Mapping[str, Network], path: Path) -> None:
    """Draw networks side by side, each under its name, with dots at the nodes that cause its pattern."""
    rows = -(-len(networks) // _COLUMNS)
    size = (_COLUMNS * _SIDE / panels.DOTS_PER_INCH, rows * (_SIDE + _TITLE) / panels.DOTS_PER_INCH)
    panels.write(size, lambda figure: _compose(figure, networks), path)


def _compose(figure: Figure, networks: Mapping[str, Network]) -> None:
    for number, (name, network) in enumerate(networks.items()):
        row, column = divmod(number, _COLUMNS)
        axes = pixel_axes(figure, column * _SIDE, row * (_SIDE + _TITLE) + _TITLE, _SIDE, _SIDE)
        axes.set_title(name, loc="center", fontsize=11)
        draw_disc(axes, NetworkView(name, network, layout(network), patterns(network), pl.DataFrame()), _SIDE)
