"""Pictures of the periods study are deterministic and show the values of the tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iosig.studies.periods import figures
from tests.budget import one_in
from tests.drawn_figures import assert_drawn_alike

METHODS = ("first", "second")


def answers(experiment: str, values: Sequence[float], levels: Sequence[str] = ("none",)) -> pl.DataFrame:
    """Errors of ten traces of each setting, one trace without a period; the second method finds none."""
    rng = np.random.default_rng(0)
    frames = []
    for method in METHODS:
        for value in values:
            for level in levels:
                errors = 10.0 ** rng.uniform(-5, 2, 10)
                found = pl.Series([None, *errors[1:]] if method == "first" else [None] * 10, dtype=pl.Float64)
                frame = pl.DataFrame({"error_ratio": found, "sigma_vol": found / 200, "sigma_time": found / 400})
                frames.append(
                    frame.select(
                        pl.lit(experiment).alias("experiment"),
                        pl.lit(value).alias("value"),
                        pl.lit(level).alias("noise_level"),
                        pl.lit(method).alias("method"),
                        pl.all(),
                    )
                )
    return pl.concat(frames)


def alarms() -> pl.DataFrame:
    rows = [
        (kind, noise, method, ratio, max(ratio - 0.01, 0.0), min(ratio + 0.02, 1.0))
        for kind, noise in (("white", "normal"), ("bursts", "10 bursts"))
        for method, ratio in zip(METHODS, (0.0, 1.0), strict=True)
    ]
    return pl.DataFrame(rows, ["kind", "noise", "method", "alarm_ratio", "low_ratio", "high_ratio"], orient="row")


DRAWN = {
    "compute_time": figures.draw_errors(answers("compute_time", [2.75, 44.0], ["none", "low", "high"]), "compute_time"),
    "desynchronization": figures.draw_errors(answers("desynchronization", [0.0, 22.0]), "desynchronization"),
    "variability": figures.draw_errors(answers("variability", [0.0, 2.0]), "variability"),
    "deviations": figures.draw_deviations(answers("variability", [0.0, 2.0])),
    "alarms": figures.draw_alarms(alarms()),
    "examples": figures.draw_examples([("one", np.ones(9)), ("two", np.arange(5.0))], 1.0),
}


@pytest.mark.parametrize("name", one_in(6, DRAWN))
def test_pictures_are_deterministic(name: str, tmp_path: Path) -> None:
    assert_drawn_alike(DRAWN[name], tmp_path)


def test_boxes_have_the_errors_of_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    boxes: list[tuple[float, float]] = []

    def kept(axes: object, values: np.ndarray, place: float, width: float, color: str) -> None:
        boxes.append((place, float(np.median(values))))

    monkeypatch.setattr(figures, "_box", kept)
    table = answers("variability", [0.5, 0.1])
    figures.draw_errors(table, "variability").write(tmp_path / "any.png")
    # In the order of values, without a box for the method that finds no period.
    wanted = [
        float(np.median(np.clip(table.filter(pl.col("value") == value)["error_ratio"].drop_nulls(), 1e-4, 10.0)))
        for value in (0.1, 0.5)
    ]
    assert boxes == [(0.0, pytest.approx(wanted[0])), (1.0, pytest.approx(wanted[1]))]


def test_drawing_needs_no_display_and_no_global_figure(tmp_path: Path) -> None:
    DRAWN["alarms"].write(tmp_path / "any.png")
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
