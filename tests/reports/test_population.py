"""The picture of a population: bars of all runs, and any input is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from iosig.reports.population import PopulationView, draw
from tests.drawn_figures import figure_of


def view(
    volumes: tuple[float, ...] = (1e9, 3e9, 0.0), periods: tuple[float, ...] = (60.0, 600.0), name: str = "ior"
) -> PopulationView:
    both = {way: np.array(volumes) for way in ("write", "read")}
    hours = {way: np.ones(len(volumes)) for way in both}
    steps = {way: {"END": np.array([1.0, 2.0])} for way in both}
    return PopulationView(
        "r",
        3,
        both,
        hours,
        {way: np.array(periods) for way in both},
        "Applications",
        (name,),
        (2.0,),
        ("a", "b"),
        steps,
    )


def test_bars_contain_every_run_that_moved_bytes() -> None:
    runs, hours, groups, periods, write, *_ = figure_of(draw(view(periods=(60.0, 6000.0)))).axes
    assert sum(bar.get_height() for bar in runs.patches) == sum(bar.get_height() for bar in hours.patches) == 4
    assert [bar.get_width() for bar in groups.patches] == [2.0]
    assert periods.get_title(loc="left") == "Periods of runs with even I/O, 2 longer"
    assert sum(bar.get_height() for bar in write.patches) == 3


def test_repeated_runs_are_stacked_by_user() -> None:
    *_, empty = figure_of(draw(view())).axes
    assert [text.get_text() for text in empty.texts] == ["no runs with user and node count"]
    *_, repeats = figure_of(draw(replace(view(), repeats={"bob": (3, 2), "ann": (1,)}))).axes
    assert [(bar.get_x(), bar.get_width()) for bar in repeats.patches] == [(0, 3), (3, 2), (0, 1)]
    assert [label.get_text() for label in repeats.get_yticklabels()] == ["bob", "ann"]


@pytest.mark.parametrize("shown", [view((), ()), view((0.0,)), view((1e30, 1.0), (1e9,)), view(name="$x^2$\x1b[2J")])
def test_any_population_is_drawn(shown: PopulationView, tmp_path: Path) -> None:
    draw(shown).write(tmp_path / "population.png")
    assert imread(tmp_path / "population.png").shape[1] == 1440
