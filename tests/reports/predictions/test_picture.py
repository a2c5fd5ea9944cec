"""The picture of predictions: any number of evaluations, exact values, and literal names."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from iosig.reports import panels, style
from iosig.reports.predictions import automaton as automaton_view, evaluations, picture
from iosig.reports.predictions.evaluations import PredictionView
from iosig.reports.predictions.picture import draw
from iosig.reports.predictions.state_strips import StateSequence
from iosig.transforms.predictions.automaton import PhaseAutomaton
from tests.drawn_figures import assert_drawn_alike, figure_of

pytestmark = pytest.mark.filterwarnings("error")

NUMBERS = dict.fromkeys(evaluations._NUMBERS, pl.Float64) | {"run_number": pl.Int64, "evaluation": pl.Int64}
TEXTS = dict.fromkeys((*evaluations._TEXTS, *evaluations._NAMES), pl.String)


def rows(periods: list[float | None], gap_s: float = 8.0, run: int = 1, **columns: Any) -> pl.DataFrame:
    """Return an evaluation a second after the onset of each phase; phases begin at even intervals."""
    made = []
    for place, period in enumerate(periods):
        onset = place * gap_s
        row: dict[str, Any] = {
            "followed_id": "a.jsonl",
            "direction": "write",
            "window_strategy": "all",
            "method": "dft",
        }
        row |= {"run_number": run, "evaluation": place + 1, "window_start_s": 0.0, "window_end_s": onset + 1}
        row |= {"phase_count": place + 1, "last_phase_start_s": onset, "phase_state": "start", "period_s": period}
        row |= {"outcome": "periodic" if period else "aperiodic", "next_burst_outcome": "no_period"}
        if period:
            row |= {"shortest_period_s": 0.9 * period, "longest_period_s": 1.2 * period, "probability": 0.5}
            row |= {"phase_state": "period_1", "next_burst_outcome": "expected"}
            ahead = zip(("earliest", "start", "latest"), (0.9, 1.0, 1.2), strict=True)
            row |= {f"next_burst_{name}_s": onset + factor * period for name, factor in ahead}
        made.append(row)
    frame = pl.DataFrame(made, schema=NUMBERS | TEXTS)
    return frame.with_columns(**{name: pl.lit(value) for name, value in columns.items()})


def composed(view: PredictionView) -> Figure:
    return figure_of(draw(view))


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def panel(figure: Figure, title: str) -> Any:
    return next(axes for axes in figure.axes if axes.get_title(loc="left").startswith(title))


def labels(figure: Figure) -> list[str]:
    return [label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]]


# ---- the file


@pytest.mark.parametrize("kind", sorted(panels.KINDS))
def test_picture_is_deterministic(kind: str, tmp_path: Path) -> None:
    assert_drawn_alike(draw(PredictionView(rows([None, 8.0, 8.0]))), tmp_path, kind)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"predictions": rows([])}, "not empty"),
        ({"predictions": pl.concat([rows([8.0]), rows([8.0], direction="read")])}, "a single input"),
        ({"predictions": rows([8.0]).drop("outcome", "period_s")}, "lack the columns outcome, period_s"),
        ({"time_s": np.arange(3.0)}, "times and throughputs"),
        ({"time_s": np.array([1.0, 0.0]), "bytes_per_s": np.ones(2)}, "ascend"),
        ({"onset_s": np.array([1.0, math.nan]), "end_s": np.ones(2)}, "finite"),
    ],
    ids=["none", "two", "columns", "lengths", "order", "finite"],
)
def test_invalid_views_are_rejected(told: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PredictionView(**({"predictions": rows([8.0])} | told))


# ---- any predictions


@pytest.mark.parametrize("period", [3e-6, 8.0, 2e5])
def test_units_fit_the_magnitude(period: float) -> None:
    figure = composed(PredictionView(rows([period] * 12, period)))
    name = {3e-6: "µs", 8.0: "s", 2e5: "h"}[period]
    assert panel(figure, "Predicted").get_ylabel() == f"period [{name}]"


@pytest.mark.parametrize("count", [1, 5000])
def test_evaluations_without_any_period_are_drawn(count: int) -> None:
    figure = composed(PredictionView(rows([None] * count)))
    assert f"no period in {count:,} evaluation{'s' * (count > 1)}" in words(figure)
    assert "aperiodic" in words(figure)


def test_only_the_last_of_several_runs_is_shown() -> None:
    view = PredictionView(pl.concat([rows([8.0] * 4), rows([20.0] * 3, 20.0, run=2)]))
    told = words(composed(view))
    assert any("the last of 2 runs" in text and "3 evaluations" in text for text in told)


def test_distant_periods_are_on_a_logarithmic_axis() -> None:
    assert panel(composed(PredictionView(rows([8.0] * 5))), "Predicted").get_yscale() == "linear"
    axes = panel(composed(PredictionView(rows([8.0, 8.0, 800.0]))), "Predicted")
    assert axes.get_yscale() == "log"
    assert "5 min" in [text.get_text() for text in axes.get_yticklabels()]


def test_tentative_periods_are_hollow() -> None:
    frame = rows([None, 8.0, 8.0]).with_columns(outcome=pl.Series(["too_short", "tentative", "periodic"]))
    figure = composed(PredictionView(frame))
    hollow = [line for line in panel(figure, "Predicted").lines if line.get_label() == "tentative"]
    assert [line.get_markerfacecolor() for line in hollow] == [style.GROUND]
    assert hollow[0].get_xdata().tolist() == [9.0]
    assert "too_short" in words(figure)


def test_changes_are_labeled() -> None:
    changes = pl.Series([None, None, "longer", None, None, "shorter"], dtype=pl.String)
    frame = rows([8.0, 8.0, 16.0, 16.0, 16.0, 8.0]).with_columns(change=changes, change_s=pl.lit(12.0))
    told = words(composed(PredictionView(frame)))
    assert {"longer", "shorter"} <= set(told)
    assert any("2 changes" in text for text in told)


def test_extreme_among_many_evaluations_is_kept() -> None:
    periods: list[float | None] = [8.0] * 9_000
    periods[7_777] = 31.0
    view = PredictionView(rows(periods))
    curve = next(line for line in panel(composed(view), "Predicted").lines if "predicted" in str(line.get_label()))
    place = int(np.nanargmax(curve.get_ydata()))
    assert curve.get_ydata()[place] == 31.0
    assert len(curve.get_xdata()) <= 2 * evaluations._COLUMNS + 4
    run = evaluations.Run.from_view(view)
    assert curve.get_xdata()[place] == pytest.approx(run.clock.at(run.at_s[7_777]).item(), rel=0.01)


def test_bins_match_a_loop_over_evaluations() -> None:
    generator = np.random.default_rng(3)
    at = np.sort(generator.random(4000)) * 90
    values = np.where(generator.random(4000) < 0.5, np.nan, generator.normal(size=4000))
    bins = evaluations.Bins.from_times(at, (0.0, 100.0))
    assert len(bins.starts) <= evaluations._COLUMNS
    for place, (low, high) in enumerate(zip(bins.lowest(values), bins.highest(values), strict=True)):
        stop = bins.starts[place + 1] if place + 1 < len(bins.starts) else 4000
        known = [value for value in values[bins.starts[place] : stop] if math.isfinite(value)]
        assert (low, high) == (min(known), max(known)) if known else math.isnan(low)


# ---- observed bursts


def test_observed_burst_and_gap_follow_each_evaluation() -> None:
    run = evaluations.Run.from_view(PredictionView(rows([None, 8.0, 10.0])))
    came, gap = run.came()
    assert came.tolist() == pytest.approx([8.0, 16.0, math.nan], nan_ok=True)
    assert gap.tolist() == pytest.approx([8.0, 8.0, math.nan], nan_ok=True)


def test_phases_that_were_not_observed_singly_have_no_gap() -> None:
    frame = rows([8.0] * 4).with_columns(phase_count=pl.Series([1.0, 2.0, 5.0, 6.0]))
    assert evaluations.Run.from_view(PredictionView(frame)).gaps_s.tolist() == pytest.approx(
        [8.0, math.nan, 8.0], nan_ok=True
    )


def test_errors_are_relative_to_the_true_gap() -> None:
    view = PredictionView(rows([10.0] * 3))
    errors = picture._errors(evaluations.Run.from_view(view))
    assert errors[:, 0].tolist() == pytest.approx([0.125, 0.25, 0.5])
    assert np.isnan(errors[:, 2]).all()
    assert (
        panel(composed(view), "Next burst")
        .get_title(loc="left")
        .startswith("Next burst: 0% of 2 bursts detected started")
    )


def test_phases_and_gaps_are_labeled() -> None:
    onset, at = np.array([0.0, 11.2, 19.5]), np.arange(0, 22, 0.1)
    rate = np.where(at % 8 < 1, 3e9, np.nan)
    figure = composed(PredictionView(rows([8.0] * 3), at, rate, onset, onset + 2))
    title = panel(figure, "Throughput").get_title(loc="left")
    assert title == "Throughput: 3 phases, 9.75 s apart (median; 8.3 s to 11.2 s)"
    assert {"11.2 s", "8.3 s"} <= set(words(figure))


# ---- windows


def test_only_the_last_windows_are_drawn_if_they_are_short() -> None:
    short = rows([8.0] * 100).with_columns(window_start_s=pl.col("window_end_s") - 24)
    assert panel(composed(PredictionView(short)), "Windows").get_title(loc="left").endswith("the last 20 of 100")
    long = panel(composed(PredictionView(rows([8.0] * 100))), "Windows")
    assert long.get_title(loc="left").endswith(", 40 of 100")
    assert long.get_yticklabels()[-1].get_text() == "100"


# ---- hostile input


def test_hostile_names_are_drawn() -> None:
    name = "$x_1$ \x1b[31m\n\u202e" + "W" * 10_000
    frame = rows([None, 8.0], followed_id=name, phase_state="$\\a$" * 99, change="%\x1b", outcome="\n" * 50)
    figure = composed(PredictionView(frame))
    for text in figure.texts:
        assert text.get_window_extent().x1 <= figure.bbox.width
    assert not [text for text in words(figure) if "\x1b" in text]


@settings(max_examples=3, deadline=None)
@given(st.data())
def test_any_numbers_are_drawn(data: st.DataObject) -> None:
    number = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(1e-3, 1e3))
    frame = rows([8.0] * 4)
    values = {
        name: pl.Series(data.draw(st.lists(number, min_size=4, max_size=4)), dtype=pl.Float64)
        for name in evaluations._NUMBERS
        if name not in {"run_number", "evaluation"}
    }
    composed(PredictionView(frame.with_columns(**values)))


@pytest.mark.parametrize(("other", "has_period"), [(8.0, True), (1.0, True), (None, False)])
def test_periods_below_the_clock_resolution_are_none(other: float | None, has_period: bool) -> None:
    frame = rows([8.0] * 4).with_columns(
        period_s=pl.Series([None, 5e-324, 1e-300, other], dtype=pl.Float64), shortest_period_s=pl.lit(5e-324)
    )
    figure = composed(PredictionView(frame))
    assert ("no period in 4 evaluations" in words(figure)) is not has_period


def test_onsets_below_the_clock_resolution_coincide() -> None:
    onset = np.array([0.0, 5e-324, 8.0, 16.0])
    title = panel(composed(PredictionView(rows([8.0] * 4), onset_s=onset, end_s=onset + 1)), "4 phases")
    assert title.get_title(loc="left") == "4 phases, 8 s apart (median; 0 s to 8 s)"


def strip(axes: Axes) -> list[tuple[float, float, str]]:
    """Spans [s] and colors of a strip of states."""
    found = []
    for one in axes.collections:
        color = to_hex(one.get_facecolor()[0])
        for path in one.get_paths():
            ends = np.asarray(path.vertices)[:, 0]
            found.append((round(float(ends.min()), 6), round(float(ends.max()), 6), color))
    return sorted(found)


def test_both_pictures_of_a_run_show_the_same_states() -> None:
    periods = [8.0] * 6 + [20.0] * 6
    automaton, at_s = PhaseAutomaton(), []
    for place, period in enumerate(periods):
        at_s.append(8.0 * place + 1)
        automaton.add(at_s[-1], period)
    graph = automaton.graph()
    view = PredictionView(rows(list(periods)), graph=graph)
    states = evaluations.Run.from_view(view).states
    for node in graph["nodes"]:
        spans = [end - begin for name, begin, end in _spans(states) if name == node["name"]]
        assert sum(spans) == pytest.approx(node["duration_s"]), "the strip's and the automaton's time in a state"
    # The second period begins at its first evaluation, not at its confirmation by the third.
    assert next(begin for name, begin, _ in _spans(states) if name == "period_2") == at_s[6]
    other = figure_of(automaton_view.draw(graph, "x"))
    (own,) = (each for each in composed(view).axes if [text.get_text() for text in each.get_yticklabels()] == ["state"])
    assert strip(own) == strip(other.axes[1])


def _spans(states: StateSequence) -> list[tuple[str, float, float]]:
    return [(name, *ends) for name, ends in zip(states.names, pairwise(states.edges_s), strict=True)]
