"""The picture of attribution: a panel per direction, colors by volume, and stacked layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread

from iosig.reports import style
from iosig.reports.attribution import AttributionView, DrawnTraffic, draw
from tests.drawn_figures import figure_of


def view(*layers: tuple[str, list[float]], measured: tuple[float, ...] = (4, 8, np.nan, 2)) -> AttributionView:
    drawn = tuple((name, np.array(rates, dtype=float)) for name, rates in layers)
    traffic = tuple(DrawnTraffic(name, np.array(measured), drawn) for name in ("write", "read"))
    return AttributionView("lake", "2026-03-03 10:00 UTC", 60.0, 840.0, 420.0, traffic)


def composed(shown: AttributionView) -> Figure:
    return figure_of(draw(shown))


def test_layers_are_stacked_below_the_unattributed_bytes() -> None:
    figure = composed(view(("small", [1, 0, 0, 0]), ("tall", [2, 4, 0, 0])))
    write, read = figure.axes
    areas = [area for area in write.collections if isinstance(area, PolyCollection)]
    light = style.LIGHT
    assert [to_hex(area.get_facecolor()[0]).upper() for area in areas] == [light.blue, light.orange, light.pale]
    tops = [max(vertex[1] for path in area.get_paths() for vertex in path.vertices) for area in areas]
    assert tops == [4, 4, 8]
    assert np.isnan(write.lines[0].get_ydata()).sum() == 2, "nothing was polled there"
    assert (write.get_title(loc="left"), read.get_title(loc="left")) == ("write", "read")
    assert write.get_xlim() == (0, 240), "seconds"


def test_small_applications_share_a_color() -> None:
    figure = composed(view(*((f"app{number}", [0, number, 0, 0]) for number in range(9))))
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["measured", *(f"app{number}" for number in range(8, 2, -1)), "other applications", "unattributed"]


@pytest.mark.parametrize("shown", [view(), view(("$x^2$\x1b[2J/8", [1, 2, 0, 0])), view(measured=(np.nan,) * 4)])
def test_any_attribution_is_drawn(shown: AttributionView, tmp_path: Path) -> None:
    draw(shown).write(tmp_path / "who.png")
    assert imread(tmp_path / "who.png").shape[1] == 1440
    assert "420 B of 840 B attributed (50%)" in shown.verdict
