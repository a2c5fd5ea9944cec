"""Track the I/O behavior of a running application as a state machine, which each evaluation updates.

FTIO (Tarraf et al., DOI 10.1109/IPDPS57955.2024.00048, section II-D) adapts the time window when behavior changes, but
keeps no record of the behaviors. This automaton does. A period that persists is a state; if the same period occurs
again later, it is the same state. Further states are `start` (nothing has persisted), `aperiodic` (no period,
persistently), `gap` (nothing was measured) and `end`. Each transition has a cause and a time.

The automaton is scale-free: periods are compared by ratio, and persistence is counted in evaluations and cycles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

#: causes that an evaluation may carry: a change-point detector fired, nothing was measured, or the run has ended
EVENT_CAUSES = ("change_point", "gap", "end")
#: causes of a transition; `up`: to a longer period; `change_point`: a detector fired; `shift`: only evaluations differ
CAUSES = (
    "first_found",
    "found_again",
    "change_point_up",
    "change_point_down",
    "shift_up",
    "shift_down",
    "period_lost",
    "none_found",
    "gap",
    "end",
)
#: names of the states without a period
OTHER_STATES = ("start", "aperiodic", "gap", "end")
#: maximum ratio of equal periods; well below 2, the ratio of a doubling
TOLERANCE_RATIO = 1.25


@dataclass(frozen=True, slots=True)
class AutomatonParams:
    """Thresholds of persistence and limits of memory. The field names are part of the saved state."""

    #: consecutive evaluations that must agree (section II-D: a dominant frequency found k times; Figure 15: k = 3)
    hold_count: int = 3
    #: number of periods that these evaluations must span, since evaluations may be more frequent than periods
    hold_cycles: float = 1.0
    #: maximum number of periodic states; the one left longest ago is removed
    most_states: int = 32
    #: maximum number of times kept per kind of transition
    most_times: int = 64


@dataclass(frozen=True, slots=True)
class PhaseState:
    """A state of the automaton; its fields are those of the JSON graph.

    Attributes
    ----------
    name : str
        One of `OTHER_STATES`, or `period_1`, `period_2`, … in order of discovery.
    period_s : float or None
        Geometric mean of the periods that established the state [s]; None unless periodic.
    shortest_period_s, longest_period_s : float or None
        Range of all periods in the state [s].
    evaluation_count, visit_count : int
        Number of evaluations that agreed with the state, and of entries into it.
    duration_s : float
        Total time in the state [s].
    first_s, entered_s, last_s : float
        First entry, last entry, and last time in the state [s].

    """

    name: str
    period_s: float | None
    shortest_period_s: float | None
    longest_period_s: float | None
    evaluation_count: int
    visit_count: int
    duration_s: float
    first_s: float
    entered_s: float
    last_s: float


@dataclass(frozen=True, slots=True)
class PhaseTransition:
    """A confirmed change of state: `at_s`, first evaluation of the new behavior; `known_s`, its confirmation [s]."""

    source: str
    target: str
    cause: str
    at_s: float
    known_s: float


@dataclass(slots=True)
class _Edge:
    """Statistics of transitions of one kind: count, first time, and most recent times, oldest first [s]."""

    count: int = 0
    first_s: float = 0.0
    times_s: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A behavior that is not confirmed yet: first period, count, range and start of its evaluations."""

    first_period_s: float | None
    count: int
    log_sum: float
    shortest_s: float | None
    longest_s: float | None
    since_s: float
    is_change_point: bool


class PhaseAutomaton:
    """Automaton of one application; time per evaluation and memory are bounded."""

    __slots__ = (
        "_candidate",
        "_current",
        "_edges",
        "_last_s",
        "_name_count",
        "_removed_count",
        "_states",
        "_unconfirmed_count",
        "params",
    )

    def __init__(self, params: AutomatonParams | None = None) -> None:
        """Start in the state before the first evaluation."""
        self.params = params or AutomatonParams()
        self._states: dict[str, PhaseState] = {}
        self._edges: dict[tuple[str, str, str], _Edge] = {}
        self._current = "start"
        self._candidate: _Candidate | None = None
        self._last_s: float | None = None
        self._name_count = 0
        self._removed_count = 0
        self._unconfirmed_count = 0

    @property
    def current(self) -> PhaseState | None:
        """Current state; None before the first evaluation."""
        return self._states.get(self._current)

    # ---- evaluations

    def add(self, at_s: float, period_s: float | None, cause: str | None = None) -> PhaseTransition | None:
        """Process an evaluation, and confirm a transition if its behavior has persisted.

        Parameters
        ----------
        at_s : float
            Time of the evaluation [s]; not before the previous one.
        period_s : float or None
            Period of the evaluation [s]; None if it found no period.
        cause : str or None
            One of `EVENT_CAUSES`. `gap` and `end` take effect at once.

        Returns
        -------
        PhaseTransition or None
            The transition that this evaluation confirms, if any.

        Raises
        ------
        ValueError
            If an argument is invalid, or after `end`. The automaton does not change in that case.

        """
        self._check(at_s, period_s, cause)
        self._advance(at_s)
        if cause in ("gap", "end"):
            self._drop_candidate()
            return None if cause == self._current else self._enter(cause, cause, at_s, at_s, None)
        return self._process(at_s, period_s, is_change_point=cause == "change_point")

    def wait(self, at_s: float) -> None:
        """Advance the time to `at_s` [s] without an informative evaluation."""
        self._check(at_s, None, None)
        self._advance(at_s)

    def _advance(self, at_s: float) -> None:
        self._last_s = at_s
        if not self._states:
            self._states["start"] = PhaseState("start", None, None, None, 0, 1, 0.0, at_s, at_s, at_s)
        self._extend_current(at_s)

    def _check(self, at_s: float, period_s: float | None, cause: str | None) -> None:
        if cause is not None and cause not in EVENT_CAUSES:
            raise ValueError(f"the cause of an evaluation must be None or one of {', '.join(EVENT_CAUSES)}")
        if not math.isfinite(at_s) or (self._last_s is not None and at_s < self._last_s):
            raise ValueError("times of evaluations must be finite and must not decrease")
        if period_s is not None and not 0 < period_s < math.inf:
            raise ValueError("a period must be a finite number above 0 [s], or None")
        if self._current == "end":
            raise ValueError("no evaluation may follow the end")

    def _process(self, at_s: float, period_s: float | None, *, is_change_point: bool) -> PhaseTransition | None:
        """Count an evaluation toward the current state, or toward a candidate for the next one."""
        candidate = self._candidate
        has_fired = is_change_point or (candidate is not None and candidate.is_change_point)
        if not has_fired and self._is_current(period_s):
            # without a detected change, agreement with the current state resets the candidate
            self._candidate = None
            self._absorb(_start_candidate(at_s, period_s, is_change_point=False))
            return None
        if candidate and not is_change_point and self._is_same_period(period_s, candidate.first_period_s):
            self._candidate = _extend_candidate(candidate, period_s)
        else:
            # after a detected change, evaluations may disagree for a while, so keep the mark of the change
            self._candidate = _start_candidate(at_s, period_s, is_change_point=has_fired)
        return self._confirm_candidate(at_s)

    def _confirm_candidate(self, at_s: float) -> PhaseTransition | None:
        """Enter the state of the candidate if it has persisted."""
        candidate, params = self._candidate, self.params
        if candidate is None or candidate.count < params.hold_count:
            return None
        period = _mean_period(candidate)
        current = self._states[self._current].period_s
        cycle = period if period is not None else current or 0.0
        if at_s - candidate.since_s < params.hold_cycles * cycle:
            return None
        state_name = "aperiodic" if period is None else self._find_state(period)
        if state_name == self._current:
            self._drop_candidate()
            self._absorb(candidate)
            return None
        self._candidate = None
        cause = self._cause(period, candidate.is_change_point)
        target = state_name or self._new_name()
        return self._enter(target, cause, candidate.since_s, at_s, candidate)

    def _cause(self, period_s: float | None, is_change_point: bool) -> str:
        current = self._states[self._current].period_s
        if period_s is None:
            return "period_lost" if current is not None else "none_found"
        if current is None:
            return "found_again" if self._name_count else "first_found"
        return ("change_point" if is_change_point else "shift") + ("_up" if period_s > current else "_down")

    # ---- states

    def _is_same_period(self, period_s_a: float | None, period_s_b: float | None) -> bool:
        if period_s_a is None or period_s_b is None:
            return period_s_a is period_s_b
        return max(period_s_a, period_s_b) <= TOLERANCE_RATIO * min(period_s_a, period_s_b)

    def _is_current(self, period_s: float | None) -> bool:
        state = self._states[self._current]
        if state.period_s is None:
            return period_s is None and self._current == "aperiodic"
        return self._is_same_period(period_s, state.period_s)

    def _find_state(self, period_s: float) -> str | None:
        """Find the state with the nearest period within the tolerance, or the older of two; return its name."""
        periodic = [(state.period_s, state.name) for state in self._states.values() if state.period_s is not None]
        near = [
            (abs(math.log(period / period_s)), name)
            for period, name in periodic
            if self._is_same_period(period, period_s)
        ]
        return min(near, key=lambda pair: pair[0])[1] if near else None

    def _new_name(self) -> str:
        """Create a name for a new periodic state; if the limit is reached, remove the state left longest ago."""
        periodic = [state for state in self._states.values() if state.period_s is not None]
        if len(periodic) >= self.params.most_states:
            others = [state for state in periodic if state.name != self._current]
            self._remove_state(min(others, key=lambda state: state.last_s).name)
        self._name_count += 1
        return f"period_{self._name_count}"

    def _remove_state(self, name: str) -> None:
        del self._states[name]
        self._edges = {key: edge for key, edge in self._edges.items() if name not in key[:2]}
        self._removed_count += 1

    def _extend_current(self, at_s: float) -> None:
        """Extend the current state to a time [s]."""
        state = self._states[self._current]
        self._states[self._current] = replace(state, duration_s=state.duration_s + at_s - state.last_s, last_s=at_s)

    def _absorb(self, evaluations: _Candidate) -> None:
        """Count evaluations toward the current state."""
        state = self._states[self._current]
        shortest = min((p for p in (state.shortest_period_s, evaluations.shortest_s) if p is not None), default=None)
        longest = max((p for p in (state.longest_period_s, evaluations.longest_s) if p is not None), default=None)
        self._states[self._current] = replace(
            state,
            shortest_period_s=shortest,
            longest_period_s=longest,
            evaluation_count=state.evaluation_count + evaluations.count,
        )

    def _drop_candidate(self) -> None:
        """Drop the candidate; count it as an unconfirmed change if a change was detected."""
        if self._candidate is not None and self._candidate.is_change_point:
            self._unconfirmed_count += 1
        self._candidate = None

    def _enter(
        self, target: str, cause: str, at_s: float, known_s: float, evaluations: _Candidate | None
    ) -> PhaseTransition:
        """Leave the current state for another one that began at `at_s`."""
        source = self._current
        previous = self._states[source]
        self._states[source] = replace(previous, duration_s=previous.duration_s - (known_s - at_s), last_s=at_s)
        state = self._states.get(target)
        if state is None:
            period = None if evaluations is None else _mean_period(evaluations)
            state = PhaseState(target, period, None, None, 0, 0, 0.0, at_s, at_s, at_s)
        self._states[target] = replace(
            state,
            visit_count=state.visit_count + 1,
            duration_s=state.duration_s + known_s - at_s,
            entered_s=at_s,
            last_s=known_s,
        )
        self._current = target
        if evaluations is not None:
            self._absorb(evaluations)
        self._record((source, target, cause), at_s)
        return PhaseTransition(source, target, cause, at_s, known_s)

    def _record(self, kind: tuple[str, str, str], at_s: float) -> None:
        edge = self._edges.setdefault(kind, _Edge(first_s=at_s))
        edge.count += 1
        edge.times_s = [*edge.times_s, at_s][-self.params.most_times :]

    # ---- serialization

    def graph(self) -> dict[str, Any]:
        """Export states and transitions as JSON values, in order of first occurrence."""
        nodes = [asdict(state) for state in self._states.values()]
        edges = [
            {"source": source, "target": target, "cause": cause, **asdict(edge)}
            for (source, target, cause), edge in self._edges.items()
        ]
        return {
            "current": self._current if self._states else None,
            "nodes": nodes,
            "edges": edges,
            "forgotten_state_count": self._removed_count,
            "unconfirmed_change_count": self._unconfirmed_count,
        }

    def to_dict(self) -> dict[str, Any]:
        """Export the complete state as JSON values: the graph, and all data needed to resume."""
        candidate = None if self._candidate is None else asdict(self._candidate)
        return {
            "params": asdict(self.params),
            "graph": self.graph(),
            "candidate": candidate,
            "last_s": self._last_s,
            "named_count": self._name_count,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> PhaseAutomaton:
        """Restore an automaton from `to_dict`."""
        automaton = cls(AutomatonParams(**state["params"]))
        graph = state["graph"]
        automaton._states = {node["name"]: PhaseState(**node) for node in graph["nodes"]}
        for edge in graph["edges"]:
            kind = edge["source"], edge["target"], edge["cause"]
            automaton._edges[kind] = _Edge(edge["count"], edge["first_s"], edge["times_s"])
        automaton._candidate = None if state["candidate"] is None else _Candidate(**state["candidate"])
        automaton._current = graph["current"] if graph["nodes"] else "start"
        automaton._last_s, automaton._name_count = state["last_s"], state["named_count"]
        automaton._removed_count = graph["forgotten_state_count"]
        automaton._unconfirmed_count = graph["unconfirmed_change_count"]
        return automaton


# ---- candidates


def _start_candidate(at_s: float, period_s: float | None, *, is_change_point: bool) -> _Candidate:
    log = 0.0 if period_s is None else math.log(period_s)
    return _Candidate(period_s, 1, log, period_s, period_s, at_s, is_change_point)


def _extend_candidate(candidate: _Candidate, period_s: float | None) -> _Candidate:
    """Add an evaluation of the same period to a candidate."""
    if period_s is None or candidate.shortest_s is None or candidate.longest_s is None:
        return replace(candidate, count=candidate.count + 1)
    return replace(
        candidate,
        count=candidate.count + 1,
        log_sum=candidate.log_sum + math.log(period_s),
        shortest_s=min(candidate.shortest_s, period_s),
        longest_s=max(candidate.longest_s, period_s),
    )


def _mean_period(candidate: _Candidate) -> float | None:
    """Geometric mean of a candidate's periods [s]; None if aperiodic."""
    if candidate.shortest_s is None or candidate.longest_s is None:
        return None
    lowest, highest = math.log(candidate.shortest_s), math.log(candidate.longest_s)
    mean = math.exp(min(max(candidate.log_sum / candidate.count, lowest), highest))
    # rounding must not move the mean out of the range of the periods
    return min(max(mean, candidate.shortest_s), candidate.longest_s)
