"""The picture of a phase automaton: any number of states, labels without overlap, and the order of states in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from iosig.reports import panels
from iosig.reports.predictions import automaton as automaton_view
from iosig.reports.predictions.automaton import draw
from iosig.reports.predictions.state_strips import UNKNOWN, sort_states
from iosig.transforms.predictions.automaton import PhaseAutomaton
from tests.drawn_figures import assert_drawn_alike, figure_of

pytestmark = pytest.mark.filterwarnings("error")


def followed(periods: list[float | None], start_s: float = 0.0, times: int = 4) -> PhaseAutomaton:
    """Return an automaton that has evaluated each of these periods a few times."""
    automaton, now = PhaseAutomaton(), start_s
    for period in periods:
        for _ in range(times):
            now += period or 1.0
            automaton.add(now, period)
    return automaton


def many(count: int) -> dict[str, Any]:
    """Return a graph of `count` states with several successors each, including gaps and times without a period."""
    generator = np.random.default_rng(count)
    periods: list[float | None] = [float(0.01 * 1.3**place) for place in range(count)]
    visits = [periods[place] for place in generator.integers(0, count, 3 * count)]
    return followed([*periods, None, *visits]).graph()


def composed(graph: dict[str, Any], title: str = "a trace") -> Figure:
    return figure_of(draw(graph, title))


def words(figure: Figure) -> list[str]:
    return [text.get_text().strip() for text in figure.findobj(Text)]


# ---- the file


@pytest.mark.parametrize("kind", sorted(panels.KINDS))
def test_picture_is_deterministic(kind: str, tmp_path: Path) -> None:
    assert_drawn_alike(draw(followed([8.0, 16.0, None, 8.0]).graph(), "x"), tmp_path, kind)


def test_png_is_a_valid_image(tmp_path: Path) -> None:
    draw(followed([8.0]).graph(), "x").write(tmp_path / "deep" / "a.PNG")
    assert imread(tmp_path / "deep" / "a.PNG").shape[1] == 1320


# ---- the graph


@pytest.mark.parametrize("count", [1, 2, 9, 32])
def test_nodes_and_labels_do_not_overlap(count: int) -> None:
    layout = automaton_view._Layout.from_graph(many(count))
    boxes = [box for node in layout.nodes.values() for box in node.boxes]
    assert len(boxes) >= 2 * count
    for place, (left, low, right, high) in enumerate(boxes):
        assert 0 <= left < right <= layout.width_in
        assert layout.lowest_in <= low < high <= layout.lowest_in + layout.height_in
        for other in boxes[place + 1 :]:
            assert other[0] >= right or other[2] <= left or other[1] >= high - 1e-9 or other[3] <= low + 1e-9


@pytest.mark.parametrize("count", [2, 32])
def test_texts_of_the_graph_do_not_overlap(count: int) -> None:
    figure = composed(many(count))
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text()]
    for place, box in enumerate(boxes):
        assert not [other for other in boxes[place + 1 :] if box.shrunk(0.95, 0.9).overlaps(other)]


def test_longer_periods_are_further_right() -> None:
    layout = automaton_view._Layout.from_graph(followed([30.0, 1.0, 400.0, 1.5]).graph())
    places = {node.lines[0]: node.x for node in layout.nodes.values() if node.y == 0}
    assert sorted(places, key=lambda name: places[name]) == ["1 s", "1.5 s", "30 s", "400 s"]


def test_spread_separates_only_close_places() -> None:
    apart = automaton_view._spread(np.array([0.0, 0.01, 5.0, 10.0]), 1.0, 0.0, 10.0)
    assert (np.diff(apart) >= 1 - 1e-9).all()
    assert apart[2:].tolist() == pytest.approx([5.0, 10.0])
    assert automaton_view._spread(np.zeros(1), 1.0, 0.0, 10.0).tolist() == [5.0]
    assert (np.diff(automaton_view._spread(np.zeros(11), 1.0, 0.0, 10.0)) >= 1 - 1e-9).all()


def test_current_state_cause_and_count_are_shown() -> None:
    figure = composed(followed([8.0, 16.0, 8.0, 16.0]).graph())
    told = words(figure)
    assert any(text.startswith("Now period_2 (16 s), for ") for text in told)
    assert {"shift_up \u00d72", "shift_down \u00d71", "first_found \u00d71"} <= set(told)


def test_node_area_is_the_share_of_time() -> None:
    graph = followed([10.0, 10.0, 10.0, 100.0]).graph()
    nodes, total = automaton_view._Layout.from_graph(graph).nodes, sum(node["duration_s"] for node in graph["nodes"])
    for node in graph["nodes"]:
        if node["period_s"]:
            share = node["duration_s"] / total
            assert nodes[node["name"]].radius ** 2 == pytest.approx(share * automaton_view._MAX_RADIUS_IN**2)


def test_automaton_without_evaluations_has_a_message() -> None:
    assert "no evaluations yet" in words(composed(PhaseAutomaton().graph()))


def test_automaton_with_a_single_evaluation_is_drawn() -> None:
    automaton = PhaseAutomaton()
    automaton.add(3.0, None)
    assert "start" in words(composed(automaton.graph()))


def test_hostile_titles_are_drawn_literally() -> None:
    figure = composed(followed([8.0]).graph(), "$x_1$ \x1b[31m\n\u202e" + "W" * 10_000)
    heading = figure.texts[1]
    assert heading.get_text().startswith("$x_1$ \ufffd[31m\ufffd\ufffd")
    assert heading.get_window_extent().x1 <= figure.bbox.width


# ---- order in time


def test_sequence_has_the_states_in_order() -> None:
    automaton = followed([8.0, 16.0, 8.0])
    automaton.add(500.0, None, "gap")
    automaton.add(600.0, None, "end")
    found = sort_states(automaton.graph())
    assert found.names == ["start", "period_1", "period_2", "period_1", "gap", "end"]
    assert [cause for _, cause in found.causes] == ["first_found", "shift_up", "shift_down", "gap", "end"]
    assert found.edges_s[-3:] == [500.0, 600.0, 600.0]


def test_sequence_omits_transitions_that_are_not_kept() -> None:
    found = sort_states(followed([8.0, 16.0] * 100).graph())
    assert found.names[0] == UNKNOWN
    assert set(found.names[1:]) == {"period_1", "period_2"}
    assert all(one != other for one, other in zip(found.names, found.names[1:], strict=False))


def test_removed_states_do_not_change_the_order() -> None:
    periods = [float(1.3**place) for place in range(40)]
    found = sort_states(followed([*periods, periods[39], periods[20]]).graph())
    assert found.names[0] == UNKNOWN
    assert found.names[-1] == "period_21"
