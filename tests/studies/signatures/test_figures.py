"""Pictures of the signatures study are deterministic and show the values of the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.studies.signatures import figures as figures
from iosig.studies.signatures.figures import Example, SweptParameter
from tests.budget import one_in
from tests.drawn_figures import assert_drawn_alike

METHODS = ("robust", "another")
APPLICATIONS = ("first", "second", "third")


def summed(experiment: str, values: tuple[float, ...], levels: tuple[str, ...]) -> pl.DataFrame:
    """A row for each value, level, application and method."""
    rng = np.random.default_rng(0)
    rows = []
    for level in levels:
        for value in values:
            for application in APPLICATIONS:
                for method in METHODS:
                    row: dict[str, object] = {
                        "experiment": experiment,
                        "value": value,
                        "level": level,
                        "application": application,
                        "method": method,
                    }
                    for name in ("cross_correlation", "correlation", "volume_ratio"):
                        low, mean, high = np.sort(rng.uniform(-0.1, 1.0, 3)).tolist()
                        row |= {f"mean_{name}": mean, f"low_{name}": low, f"high_{name}": high}
                    rows.append(row | {"mean_missed_count": 0.5, "mean_false_count": float(rng.integers(90))})
    return pl.DataFrame(rows)


def times() -> pl.DataFrame:
    rows = [
        (by, value, method, 0.001 * value)
        for by, values in (("samples", (2, 12)), ("points", (500, 4000)))
        for value in values
        for method in METHODS
    ]
    return pl.DataFrame(rows, ["by", "value", "method", "seconds"], orient="row")


def examples() -> list[Example]:
    curve = np.r_[np.zeros(5), 3e9, np.zeros(5)]
    return [
        Example("one", [("sample 1", curve * 100, 2.0), ("truth", curve, 1.0), ("robust", curve, 1.0)]),
        Example("two", [("sample 1", curve, 2.0), ("truth", np.zeros(4), 1.0), ("robust", np.zeros(0), 1.0)]),
    ]


DRAWN = {
    "accuracy": figures.draw_accuracy(summed("levels", (0.0,), ("calm", "stormy")), "title"),
    "one level": figures.draw_accuracy(summed("edison", (0.0,), ("real",)), "title"),
    "sweeps": figures.draw_sweeps(
        summed("gamma", (0.1, 0.5), ("busy",)).filter(pl.col("method") == "robust"),
        [SweptParameter("gamma", "words", 0.5), SweptParameter("kappa", "of nothing", 0.9)],
        "title",
    ),
    "drift": figures.draw_drift(summed("drift", (0.0, 0.015), ("calm",)), "title"),
    "times": figures.draw_times(times(), "title"),
    "examples": figures.draw_examples(examples(), "title"),
}


@pytest.mark.parametrize("name", one_in(4, DRAWN))
def test_pictures_are_deterministic(name: str, tmp_path: Path) -> None:
    assert_drawn_alike(DRAWN[name], tmp_path)


def test_points_are_means_with_quartiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[tuple[str, np.ndarray, list[np.ndarray] | None]] = []

    points = figures._points

    def kept(axes: Any, place: Any, mean: Any, bars: Any, method: str, **how: Any) -> None:
        drawn.append((method, mean, bars))
        points(axes, place, mean, bars, method, **how)

    monkeypatch.setattr(figures, "_points", kept)
    table = summed("levels", (0.0,), ("calm",))
    figures.draw_accuracy(table, "title").write(tmp_path / "any.png")
    assert [method for method, *_ in drawn] == ["robust"] * 4 + ["another"] * 4
    rows = table.filter(method="another")
    _, mean, bars = drawn[5]
    assert mean.tolist() == rows["mean_correlation"].to_list()
    assert bars is not None
    assert (mean - bars[0]).tolist() == pytest.approx(rows["low_correlation"].to_list())
    assert (mean + bars[1]).tolist() == pytest.approx(rows["high_correlation"].to_list())
    assert drawn[7][1].tolist() == (rows["mean_missed_count"] + rows["mean_false_count"]).to_list()


def test_lines_connect_consecutive_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from matplotlib.axes import Axes

    lines: list[tuple[list[float], list[float]]] = []
    plot = Axes.plot

    def kept(self: Axes, x: np.ndarray, y: np.ndarray, **how: object) -> object:
        lines.append((x.tolist(), y.tolist()))
        return plot(self, x, y, **how)

    monkeypatch.setattr(Axes, "plot", kept)
    table = summed("drift", (0.015, 0.0), ("calm",))
    figures.draw_drift(table, "title").write(tmp_path / "any.png")
    assert len(lines) == len(APPLICATIONS) * len(METHODS) * 2
    first = table.filter(application="first", method="robust").sort("value")
    assert lines[0] == ([0.0, 0.015], first["mean_cross_correlation"].to_list())


def test_method_has_the_same_style_everywhere() -> None:
    assert figures._style("dtw", 0) == figures._style("dtw", 5)
    assert figures._style("first", 0) != figures._style("second", 1)
