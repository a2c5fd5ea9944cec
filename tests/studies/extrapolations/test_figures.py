"""Pictures of the extrapolations study are deterministic and show the values of the tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from matplotlib.axes import Axes

from iosig.studies.extrapolations import figures as figures
from tests.budget import one_in
from tests.drawn_figures import assert_drawn_alike, figure_of

COUNTS = (8, 12, 24)


def traces(names: tuple[str, ...] = ("one", "$two_$")) -> pl.DataFrame:
    rows = [(name, n, 1000 * n * place, 20_000 + place * n) for place, name in enumerate(names, 1) for n in COUNTS]
    return pl.DataFrame(rows, ["program", "process_count", "traced_bytes", "compressed_bytes"], orient="row")


def sizes(names: tuple[str, ...] = ("one", "$two_$")) -> pl.DataFrame:
    rows = [(name, n, 21_000) for name in names for n in (100, 1_000_000)]
    return pl.DataFrame(rows, ["program", "process_count", "compressed_bytes"], orient="row")


def checks() -> pl.DataFrame:
    rows = [(name, n, n / 100) for name in ("one", "two") for n in COUNTS]
    return pl.DataFrame(rows, ["program", "process_count", "traced_s"], orient="row")


def curves() -> pl.DataFrame:
    rows = [(name, n, n / 90) for name in ("one", "two") for n in (*COUNTS, 96)]
    return pl.DataFrame(rows, ["program", "process_count", "extrapolated_s"], orient="row")


def maps() -> pl.DataFrame:
    rows = [(n, n < 12, rank, i, 48 // n * rank + 48 * i) for n in (4, 12) for rank in range(n) for i in range(2)]
    return pl.DataFrame(rows, ["process_count", "is_traced", "rank", "iteration", "offset"], orient="row")


DRAWN = {
    "sizes": figures.draw_sizes(traces(), sizes(), "sizes"),
    "times": figures.draw_times(checks(), curves(), "times"),
    "map": figures.draw_map(maps(), "map"),
}


@pytest.mark.parametrize("name", one_in(4, DRAWN))
def test_pictures_are_deterministic(name: str, tmp_path: Path) -> None:
    assert_drawn_alike(DRAWN[name], tmp_path)


def test_sizes_are_extrapolated_linearly() -> None:
    (axes,) = figure_of(DRAWN["sizes"]).axes
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    ends = [float(pl.Series(line.get_ydata())[-1]) for line in dashed]
    assert sorted(ends) == pytest.approx([1e9, 2e9])


def test_only_a_few_programs_are_shown_by_decreasing_size() -> None:
    names = tuple("abcdefgh")
    axes = figure_of(figures.draw_sizes(traces(names), sizes(names[1:]), "sizes")).axes[0]
    assert axes.get_legend_handles_labels()[1] == ["h", "f", "d", "b"]


def test_unseen_rank_count_has_a_separate_marker() -> None:
    shown = [axes for axes in figure_of(DRAWN["times"]).axes if axes.get_visible()]
    assert len(shown) == 2
    points = {str(line.get_label()): list(zip(*line.get_data(), strict=True)) for line in shown[0].lines}
    assert points["traced, unseen"] == [(24, 0.24)]
    assert points["traced, used for the fit"] == [(8, 0.08), (12, 0.12)]
    assert len(points["models"]) == 4


def test_map_bars_are_at_the_offsets_of_the_ranks() -> None:
    figure = figure_of(DRAWN["map"])
    first: Axes = figure.axes[0]
    assert first.get_title(loc="left") == "4 ranks, traced"
    pieces = {(bar.get_x(), bar.get_y() + 0.5, bar.get_width()) for bar in first.patches}  # type: ignore[attr-defined]
    assert pieces == {(12 * rank + 48 * i, rank, 12) for rank in range(4) for i in range(2)}
    assert figure.axes[1].get_title(loc="left") == "12 ranks, extrapolated"
