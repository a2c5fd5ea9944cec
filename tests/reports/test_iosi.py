"""The picture of IOSI's intermediate results shows every run, burst and unit, and a reason where a step has none."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iosig.reports.iosi import IosiView, choose_example, draw
from iosig.reports.texts import rate_text, volume_text
from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.signatures.iosi import trace_iosi
from iosig.transforms.signatures.methods import SignatureParams
from iosig.transforms.signatures.sample_sets import SampleSet
from tests.drawn_figures import assert_drawn_alike, figure_of

#: steps of a run, and the step of its interfering burst
STEPS, INTERFERENCE = 400, (40, 150, 200, 240, 360, 60)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@cache
def simulate(run_count: int = 6, scale: float = 1e9, stopped: bool = True) -> SampleSet:
    """Simulate runs with two bursts and one of interference; the last run may stop early."""
    rates = []
    for run in range(run_count):
        steps = np.arange(STEPS)
        middles = (100 + run, 300 + run, INTERFERENCE[run])
        rates.append(scale * (0.1 + sum(np.clip(1 - np.abs(steps - middle) / 8, 0, None) for middle in middles)))
    if stopped and rates:
        rates[-1] = rates[-1][:150]
    counts = np.array([len(one) for one in rates], dtype=np.int64)
    samples = Ragged(np.concatenate([np.zeros(0), *rates]), offsets_of(counts))
    return SampleSet(samples, 2.0, np.full(run_count, -0.5), 2.0 * counts)


def see(sample_set: SampleSet, method: str = "iosi_filtered", name: str = "ana/ior_a/16") -> IosiView:
    params = SignatureParams()
    iosi_params = params.iosi_params(method)
    assert iosi_params is not None
    stages = trace_iosi(sample_set, iosi_params, params.min_run_count)
    jobs = tuple(f"{name[:3]}{number}" for number in range(sample_set.run_count))
    run = int(stages.samples.run[0]) if len(stages.samples.run) else None
    return IosiView(name, "scratch", "write", method, jobs, sample_set, iosi_params, params.min_run_count, stages, run)


def title(axes: Axes) -> str:
    return axes.get_title(loc="left")


def panel(figure: Figure, text: str) -> Axes:
    """Return the panel with this text in its title."""
    (axes,) = (axes for axes in figure.axes if text in title(axes))
    return axes


def count_points(axes: Axes, label: str) -> int:
    (points,) = (one for one in axes.collections if one.get_label() == label)
    return len(points.get_offsets())


def test_panels_follow_the_figures_of_the_paper() -> None:
    view = see(simulate())
    signature = view.stages.signature
    assert signature.volume_bytes == pytest.approx(32e9, rel=0.05)
    assert view.finding == f"2 common bursts of {volume_text(signature.volume_bytes)} in 5 of 6 runs"
    figure = figure_of(draw(view))
    runs = panel(figure, "Figure 7")
    assert (count_points(runs, "used"), count_points(runs, "excluded")) == (5, 1)
    assert panel(figure, "Figure 8").get_legend_handles_labels()[1] == [
        f"background {rate_text(signature.background_bytes_per_s)}"
    ]
    assert [title(axes).partition(":")[0] for axes in figure.axes if title(axes).startswith("Level")] == [
        "Level 1", "Level 2 (used)", "Level 3",
    ]  # fmt: skip
    names = [title(axes) for axes in figure.axes if title(axes).startswith("ana")]
    assert names == ["ana0 (Figure 10)", "ana1", "ana2", "ana3"]
    grid = panel(figure, "Figure 11")
    assert view.stages.clustered is not None
    assert view.stages.dense_units is not None
    assert (count_points(grid, "common bursts"), count_points(grid, "other bursts")) == (10, 5)
    (dense,) = (one for one in grid.collections if one.get_label() == "dense units")
    assert len(dense.get_paths()) == len(view.stages.dense_units.column)
    assert [text.get_text() for text in grid.texts] == ["1", "2"]


def test_every_outlier_factor_has_its_job() -> None:
    figure = figure_of(draw(see(simulate())))
    factors = panel(figure, "Local outlier factors")
    names = [label.get_text() for label in factors.get_yticklabels()]
    assert sorted(names) == [f"ana{number}" for number in range(6)]
    assert names[-1] == "ana5", "the highest factor is at the top"


@pytest.mark.parametrize(
    ("sample_set", "method", "finding", "panel_count"),
    [
        (simulate(3, stopped=False), "iosi", "No signature: too few samples (3 of 5 required)", 4),
        (simulate(6, 0.0), "iosi", "No signature: no bytes were moved", 4),
        (simulate(0), "iosi", "No signature: too few samples (0 of 5 required)", 2),
        (simulate(6), "iosi_raw", "No signature: the samples have no common bursts", 11),
    ],
)
def test_steps_that_were_not_reached_are_not_drawn(
    sample_set: SampleSet, method: str, finding: str, panel_count: int
) -> None:
    view = see(sample_set, method)
    assert view.finding.startswith(finding)
    assert len(figure_of(draw(view)).axes) == panel_count


def test_runs_without_common_bursts_are_drawn_with_the_reason() -> None:
    apart = [1e9 * np.clip(1 - np.abs(np.arange(STEPS) - 60 * run - 40) / 8, 0, None) for run in range(6)]
    samples = Ragged(np.concatenate(apart), STEPS * np.arange(7))
    view = see(SampleSet(samples, 2.0, np.zeros(6), np.full(6, 2.0 * STEPS)))
    assert view.finding == "No signature: the samples have no common bursts"
    figure = figure_of(draw(view))
    assert [text.get_text() for text in panel(figure, "Figure 10").texts] == ["no common bursts"]
    assert count_points(panel(figure, "Figure 11"), "common bursts") == 0


def test_example_is_the_burst_of_most_samples() -> None:
    assert choose_example(np.array([0, -1, 1, 1, 0, 1]), np.ones(6)).tolist() == [2, 3, 5]
    assert choose_example(np.array([1, 1, 0, 0, -1]), np.array([1.0, 1, 1, 2, 9])).tolist() == [2, 3], "the highest"
    assert choose_example(np.repeat(0, 9), np.ones(9)).tolist() == [0, 1, 2, 3]
    assert choose_example(np.array([-1]), np.ones(1)).tolist() == []


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_hostile_names_are_drawn_as_text(kind: str, tmp_path: Path) -> None:
    assert_drawn_alike(draw(see(simulate(), name="$x^2$/<script>\x1b[2J")), tmp_path, kind)
