"""Phase automaton: states, causes of transitions, limits of memory, and resumption."""

from __future__ import annotations

import json
import math
from dataclasses import astuple

import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.predictions.automaton import (
    CAUSES,
    OTHER_STATES,
    AutomatonParams,
    PhaseAutomaton,
    PhaseTransition,
)
from tests.budget import examples
from tests.naive.predictions import automaton as naive

NAN = math.nan
Event = tuple[float, float | None, str | None]


def run_automaton(
    events: list[Event], params: AutomatonParams | None = None
) -> tuple[PhaseAutomaton, list[PhaseTransition]]:
    automaton = PhaseAutomaton(params)
    transitions = [automaton.add(*event) for event in events]
    return automaton, [each for each in transitions if each is not None]


def steady(period: float | None, count: int, start: float, step: float, cause: str | None = None) -> list[Event]:
    return [(start + number * step, period, cause if number == 0 else None) for number in range(count)]


def kinds(transitions: list[PhaseTransition]) -> list[tuple[str, str, str]]:
    return [(each.source, each.target, each.cause) for each in transitions]


# ---- states and causes


def test_persistent_period_becomes_a_state() -> None:
    automaton, transitions = run_automaton(steady(10.0, 5, 100.0, 10.0))
    assert transitions == [PhaseTransition("start", "period_1", "first_found", 100.0, 120.0)]
    state = automaton.current
    assert state is not None
    assert (state.name, state.period_s, state.evaluation_count, state.visit_count) == ("period_1", 10.0, 5, 1)
    assert (state.first_s, state.entered_s, state.last_s, state.duration_s) == (100.0, 100.0, 140.0, 40.0)


def test_frequent_evaluations_must_span_a_period() -> None:
    _, transitions = run_automaton(steady(10.0, 30, 0.0, 0.5))
    assert [each.known_s for each in transitions] == [10.0]
    _, transitions = run_automaton(steady(10.0, 30, 0.0, 0.5), AutomatonParams(hold_cycles=0.0))
    assert [each.known_s for each in transitions] == [1.0]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(("cause", "word"), [("change_point", "change_point"), (None, "shift")])
def test_doubling_and_halving_are_transitions_at_every_scale(scale: float, cause: str | None, word: str) -> None:
    step = 10 * scale
    events = [
        *steady(10 * scale, 5, 0.0, step),
        *steady(20 * scale, 5, 5 * step, step, cause),
        *steady(10 * scale, 5, 10 * step, step, cause),
        *steady(20 * scale, 5, 15 * step, step, cause),
    ]
    automaton, transitions = run_automaton(events)
    assert kinds(transitions) == [
        ("start", "period_1", "first_found"),
        ("period_1", "period_2", f"{word}_up"),
        ("period_2", "period_1", f"{word}_down"),
        ("period_1", "period_2", f"{word}_up"),
    ]
    assert [each.at_s for each in transitions] == pytest.approx([0.0, 5 * step, 10 * step, 15 * step])
    graph = automaton.graph()
    assert [node["name"] for node in graph["nodes"]] == ["start", "period_1", "period_2"]
    edge = graph["edges"][1]
    assert (edge["source"], edge["target"], edge["count"]) == ("period_1", "period_2", 2)
    assert edge["times_s"] == pytest.approx([5 * step, 15 * step])
    assert [node["visit_count"] for node in graph["nodes"]] == [1, 2, 2]


def test_lost_period_gap_and_end_are_states() -> None:
    events = [
        *steady(None, 3, 0.0, 10.0),
        *steady(10.0, 3, 30.0, 10.0),
        *steady(None, 3, 60.0, 10.0),
        *steady(10.5, 3, 90.0, 10.0),
        (120.0, None, "gap"),
        (130.0, None, "gap"),
        *steady(9.5, 3, 140.0, 10.0),
        (170.0, None, "end"),
    ]
    automaton, transitions = run_automaton(events)
    assert kinds(transitions) == [
        ("start", "aperiodic", "none_found"),
        ("aperiodic", "period_1", "first_found"),
        ("period_1", "aperiodic", "period_lost"),
        ("aperiodic", "period_1", "found_again"),
        ("period_1", "gap", "gap"),
        ("gap", "period_1", "found_again"),
        ("period_1", "end", "end"),
    ]
    period = next(node for node in automaton.graph()["nodes"] if node["name"] == "period_1")
    assert (period["shortest_period_s"], period["period_s"], period["longest_period_s"]) == (9.5, 10.0, 10.5)
    assert sum(node["duration_s"] for node in automaton.graph()["nodes"]) == pytest.approx(170.0)
    with pytest.raises(ValueError, match="follow the end"):
        automaton.add(180.0, 10.0)


def test_single_outlier_changes_nothing() -> None:
    events = [*steady(10.0, 4, 0.0, 10.0), (40.0, 20.0, None), (50.0, None, None), *steady(10.0, 4, 60.0, 10.0)]
    automaton, transitions = run_automaton(events)
    assert kinds(transitions) == [("start", "period_1", "first_found")]
    assert automaton.current is not None
    assert automaton.current.evaluation_count == 8


def test_unconfirmed_change_is_counted_without_transition() -> None:
    events = [*steady(10.0, 4, 0.0, 10.0), *steady(10.2, 4, 40.0, 10.0, "change_point")]
    automaton, transitions = run_automaton(events)
    assert len(transitions) == 1
    assert automaton.graph()["unconfirmed_change_count"] == 1
    assert automaton.current is not None
    assert automaton.current.evaluation_count == 8


def test_detected_change_outlasts_disagreeing_evaluations() -> None:
    wavering: list[Event] = [(40.0, 14.0, "change_point"), (50.0, 33.0, None)]
    _, transitions = run_automaton([*steady(10.0, 4, 0.0, 10.0), *wavering, *steady(20.0, 4, 60.0, 10.0)])
    assert transitions[-1] == PhaseTransition("period_1", "period_2", "change_point_up", 60.0, 80.0)


def test_slow_drift_leads_to_another_state() -> None:
    events: list[Event] = [(10.0 * number, 10.0 * 1.01**number, None) for number in range(80)]
    automaton, transitions = run_automaton(events, AutomatonParams(hold_cycles=0.0))
    assert [each.cause for each in transitions] == ["first_found", "shift_up", "shift_up", "shift_up"]
    for node in automaton.graph()["nodes"][1:]:
        assert node["longest_period_s"] <= 1.25 * node["period_s"]


# ---- bounds


def test_least_recently_left_state_is_removed() -> None:
    params = AutomatonParams(most_states=3, most_times=2, hold_cycles=0.0)
    automaton = PhaseAutomaton(params)
    at = 0.0
    for period in [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 4.0, 8.0, 1.0, 16.0]:
        for _ in range(3):
            at += 1.0
            automaton.add(at, period)
        graph = automaton.graph()
        names = [node["name"] for node in graph["nodes"]]
        assert sum(node["period_s"] is not None for node in graph["nodes"]) <= 3
        assert all(edge["source"] in names and edge["target"] in names for edge in graph["edges"])
        assert all(len(edge["times_s"]) <= 2 for edge in graph["edges"])
    # The state of 2 s was removed for 8 s, then the state of 4 s for 16 s.
    assert names == ["start", "period_1", "period_4", "period_5"]
    assert graph["forgotten_state_count"] == 2
    edge = next(edge for edge in graph["edges"] if edge["source"] == "period_4")
    assert (edge["target"], edge["count"]) == ("period_1", 1)


def test_last_times_of_a_transition_are_kept() -> None:
    params = AutomatonParams(most_times=2, hold_cycles=0.0)
    events = [(3.0 * turn + step, [1.0, 2.0][turn % 2], None) for turn in range(9) for step in range(3)]
    automaton, _ = run_automaton(events, params)
    edge = next(each for each in automaton.graph()["edges"] if each["cause"] == "shift_up")
    assert (edge["count"], edge["first_s"], edge["times_s"]) == (4, 3.0, [15.0, 21.0])


# ---- naive implementation, resumption

periods = st.none() | st.sampled_from([1.0, 1.1, 1.3, 2.0, 2.2, 5.0, 11.0]) | st.floats(0.5, 20.0)
stretches = st.lists(
    st.tuples(periods, st.integers(1, 6), st.sampled_from([None, None, "change_point", "gap"])), max_size=14
)


def laid_out(given_ones: list[tuple[float | None, int, str | None]], step: float) -> list[Event]:
    events: list[Event] = []
    for period, count, cause in given_ones:
        for number in range(count):
            said = cause if number == 0 else None
            events.append((len(events) * step, None if said == "gap" else period, said))
    return events


@given(stretches, st.sampled_from([0.3, 1.0, 10.0]), st.integers(1, 4), st.sampled_from([0.0, 1.0, 2.0]))
@settings(max_examples=examples(40), deadline=None)
def test_transitions_match_naive_implementation(
    given_ones: list[tuple[float | None, int, str | None]], step: float, hold_count: int, hold_cycles: float
) -> None:
    events = laid_out(given_ones, step)
    params = AutomatonParams(hold_count=hold_count, hold_cycles=hold_cycles, most_states=99)
    automaton, transitions = run_automaton(events, params)
    assert [astuple(each) for each in transitions] == naive.transitions(events, hold_count, hold_cycles, 1.25)
    graph = automaton.graph()
    assert sum(edge["count"] for edge in graph["edges"]) == len(transitions)
    assert {edge["cause"] for edge in graph["edges"]} <= set(CAUSES)
    whole = events[-1][0] if events else 0.0
    assert sum(node["duration_s"] for node in graph["nodes"]) == pytest.approx(whole)
    assert all((node["period_s"] is None) == (node["name"] in OTHER_STATES) for node in graph["nodes"])
    for node in graph["nodes"]:
        if node["period_s"] is not None:
            assert node["shortest_period_s"] <= node["period_s"] <= node["longest_period_s"]


@given(stretches, st.integers(0, 40))
@settings(max_examples=examples(25), deadline=None)
def test_automaton_resumes_from_state(given_ones: list[tuple[float | None, int, str | None]], cut: int) -> None:
    events = laid_out(given_ones, 1.0)
    params = AutomatonParams(most_states=2, most_times=3)
    whole, transitions = run_automaton(events, params)
    first, before = run_automaton(events[:cut], params)
    second = PhaseAutomaton.from_dict(json.loads(json.dumps(first.to_dict(), allow_nan=False)))
    after = [each for each in (second.add(*event) for event in events[cut:]) if each is not None]
    assert before + after == transitions
    assert json.dumps(second.to_dict()) == json.dumps(whole.to_dict())


# ---- misuse


@pytest.mark.parametrize(
    ("at", "period", "cause"),
    [
        (1.0, 10.0, None),
        (NAN, 10.0, None),
        (9.0, 0.0, None),
        (9.0, NAN, None),
        (9.0, math.inf, None),
        (9.0, 10.0, "first_found"),
        (9.0, 10.0, "<b>"),
    ],
)
def test_invalid_evaluation_raises_without_change(at: float, period: float, cause: str | None) -> None:
    automaton, _ = run_automaton(steady(10.0, 2, 0.0, 5.0))
    before = json.dumps(automaton.to_dict())
    with pytest.raises(ValueError, match=r"evaluation|period"):
        automaton.add(at, period, cause)
    assert json.dumps(automaton.to_dict()) == before


def test_empty_state_is_restored() -> None:
    empty = PhaseAutomaton()
    assert empty.current is None
    assert PhaseAutomaton.from_dict(json.loads(json.dumps(empty.to_dict()))).to_dict() == empty.to_dict()


def test_wait_extends_the_current_state():
    automaton = PhaseAutomaton()
    automaton.wait(5.0)
    automaton.wait(25.0)
    assert automaton.current is not None
    assert (automaton.current.name, automaton.current.duration_s) == ("start", 20.0)
    assert automaton.current.evaluation_count == 0
    automaton.add(30.0, None, "end")
    with pytest.raises(ValueError, match="follow the end"):
        automaton.wait(40.0)
