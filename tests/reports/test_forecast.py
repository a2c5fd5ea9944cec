"""The picture of a forecast: stacked layers, a hatched range, and a capacity line if it is near."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread

from iosig.reports import style
from iosig.reports.forecast import DrawnCollision, ForecastView, draw
from tests.drawn_figures import figure_of

VIEW = ForecastView(
    filesystem="lake",
    at="2026-03-03 10:00 UTC",
    step_s=600.0,
    expected_bytes_per_s=np.array([3e9, 4e9, 2e9]),
    low_bytes_per_s=np.array([2e9, 3e9, 1e9]),
    high_bytes_per_s=np.array([4e9, 6e9, 3e9]),
    unknown_bytes_per_s=np.full(3, 1e9),
    layers=(("small", np.array([0.0, 0.5e9, 0.0])), ("tall", np.array([2e9, 2.5e9, 1e9]))),
    without_bytes_per_s=None,
    capacity_bytes_per_s=None,
    collisions=(),
)


def composed(view: ForecastView) -> Figure:
    return figure_of(draw(view))


def names(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_known_traffic_is_stacked_below_unknown_traffic_and_range() -> None:
    figure = composed(VIEW)
    areas = [area for area in figure.axes[0].collections if isinstance(area, PolyCollection)]
    colors = [to_hex(area.get_facecolor()[0]).upper() for area in areas[:3]]
    assert colors == [style.LIGHT.blue, style.LIGHT.orange, style.LIGHT.pale]
    tops = [max(vertex[1] for path in area.get_paths() for vertex in path.vertices) for area in areas]
    assert tops == [2.5, 3.0, 4.0, 6.0]
    assert areas[3].get_hatch() == "////"
    assert names(figure) == ["expected", "80 % within", "tall", "small", "unplanned"]
    assert VIEW.verdict == "3 GB/s expected on average, 4 GB/s in 15 min"


def test_capacity_is_drawn_only_if_near() -> None:
    for capacity, is_drawn in ((7e9, True), (70e9, False)):
        assert ("capacity" in names(composed(replace(VIEW, capacity_bytes_per_s=capacity)))) == is_drawn


def test_collisions_and_excluded_application_are_labeled() -> None:
    meeting = DrawnCollision(3600.0, "tall", "small")
    figure = composed(replace(VIEW, collisions=(meeting,), without_bytes_per_s=np.full(3, 1e9)))
    said = [text.get_text() for text in figure.texts]
    assert "60 to 120 min: bursts of tall and small overlap" in said
    assert "without the what-if run" in names(figure)


@pytest.mark.parametrize(
    "view", [VIEW, replace(VIEW, layers=(("$x^2$\x1b[2J/8", np.ones(3)),)), replace(VIEW, high_bytes_per_s=np.zeros(3))]
)
def test_any_forecast_is_drawn(view: ForecastView, tmp_path: Path) -> None:
    draw(view).write(tmp_path / "forecast.png")
    assert imread(tmp_path / "forecast.png").shape[1] == 1440
