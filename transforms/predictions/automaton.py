"""The states of an application's I/O behaviour, and why it went from one to the next, while the run goes on.

FTIO (Tarraf et al., DOI 10.1109/IPDPS57955.2024.00048, section II-D) follows an application whose behaviour changes by
adapting the time window; its paper keeps no record of the behaviours. This automaton is ours: it reads evaluations one
by one. A period that holds for a while is a state; the same period later is the same state again. Beside these there
are `start` (nothing has held yet), `aperiodic` (evaluations found no period, and that held), `gap` (nothing was
measured) and `end`. Each transition has its cause and its time.

All of it is scale-free: periods are compared by their ratio, and what is "a while" counts evaluations and cycles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

#: what an evaluation may say beside its period: a change-point detector fired; nothing was measured; the run is over
EVENT_CAUSES = ("change_point", "gap", "end")
#: why one state gave way to another. up: to a longer period; change_point: a detector said so, shift: evaluations alone
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
#: states that are not periodic, by the names that they have in the graph
OTHER_STATES = ("start", "aperiodic", "gap", "end")
#: periods are the same up to this factor, either way (ours: well below the 2 of doubling and halving)
TOLERANCE_RATIO = 1.25


@dataclass(frozen=True, slots=True)
class AutomatonParams:
    """When a behaviour is a state; all ours but for hold_count.

    hold_count: evaluations in a row that must agree (section II-D: a dominant frequency that is found k times; Figure
    15: three). hold_cycles: how many periods these must span, for evaluations may come faster than periods.
    most_states: periodic states that are kept; the one that was left longest ago goes. most_times: transitions of one
    kind whose times are kept, the last ones.
    """

    hold_count: int = 3
    hold_cycles: float = 1.0
    most_states: int = 32
    most_times: int = 64


@dataclass(frozen=True, slots=True)
class PhaseState:
    """One behaviour.

    name: one of `OTHER_STATES`, or `period_1`, `period_2`, … in the order in which they were first seen. period_s: by
    which it is recognized, the geometric mean of those that made it a state; shortest_period_s, longest_period_s: of
    all that it had; None unless periodic. evaluation_count: evaluations that agreed with it. visit_count: how often
    it was entered; duration_s: for how long in all; entered_s: when last; first_s: when first; last_s: when it last
    held.
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
    """One transition: at_s, when the new behaviour was first seen; known_s, when it had held for long enough."""

    source: str
    target: str
    cause: str
    at_s: float
    known_s: float


@dataclass(slots=True)
class _Edge:
    """Transitions of one kind: how many, the first time, and the last times, oldest first [s]."""

    count: int = 0
    first_s: float = 0.0
    times_s: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A behaviour that has yet to hold: of its evaluations their first period, number, times and range."""

    first_period_s: float | None
    count: int
    log_sum: float
    shortest_s: float | None
    longest_s: float | None
    since_s: float
    is_change_point: bool


class PhaseAutomaton:
    """The behaviour of one application, told by its evaluations one after the other; bounded in time and memory."""

    __slots__ = (
        "_candidate",
        "_current",
        "_edges",
        "_forgotten",
        "_last_s",
        "_named",
        "_states",
        "_unconfirmed",
        "params",
    )

    def __init__(self, params: AutomatonParams | None = None) -> None:
        """Start before the first evaluation."""
        self.params = params or AutomatonParams()
        self._states: dict[str, PhaseState] = {}
        self._edges: dict[tuple[str, str, str], _Edge] = {}
        self._current = "start"
        self._candidate: _Candidate | None = None
        self._last_s: float | None = None
        self._named = 0
        self._forgotten = 0
        self._unconfirmed = 0

    @property
    def current(self) -> PhaseState | None:
        """The state that holds; None before the first evaluation."""
        return self._states.get(self._current)

    # ---- evaluations

    def add(self, at_s: float, period_s: float | None, cause: str | None = None) -> PhaseTransition | None:
        """Take an evaluation, and return the transition that it makes certain, if any.

        at_s: not before the one before. period_s: None where it found none. cause: one of `EVENT_CAUSES`, or None for
        an evaluation that has nothing else to say. `gap` and `end` hold at once; behind an `end` nothing may come.
        """
        self._check(at_s, period_s, cause)
        self._begin(at_s)
        if cause in ("gap", "end"):
            self._drop_candidate()
            return None if cause == self._current else self._enter(cause, cause, at_s, at_s, None)
        return self._weigh(at_s, period_s, is_change_point=cause == "change_point")

    def wait(self, at_s: float) -> None:
        """Let time pass in which evaluations have nothing to say yet. at_s: not before the last one."""
        self._check(at_s, None, None)
        self._begin(at_s)

    def _begin(self, at_s: float) -> None:
        self._last_s = at_s
        if not self._states:
            self._states["start"] = PhaseState("start", None, None, None, 0, 1, 0.0, at_s, at_s, at_s)
        self._touch(at_s)

    def _check(self, at_s: float, period_s: float | None, cause: str | None) -> None:
        if cause is not None and cause not in EVENT_CAUSES:
            raise ValueError(f"an evaluation's cause is None or one of {', '.join(EVENT_CAUSES)}")
        if not math.isfinite(at_s) or (self._last_s is not None and at_s < self._last_s):
            raise ValueError("evaluations come in the order of their times, which are finite")
        if period_s is not None and not 0 < period_s < math.inf:
            raise ValueError("a period is a finite number above 0 [s], or None")
        if self._current == "end":
            raise ValueError("nothing comes behind the end")

    def _weigh(self, at_s: float, period_s: float | None, *, is_change_point: bool) -> PhaseTransition | None:
        """Count an evaluation towards the current state, or towards the behaviour that may follow it."""
        candidate = self._candidate
        has_fired = is_change_point or (candidate is not None and candidate.is_change_point)
        if not has_fired and self._is_current(period_s):
            # unless a detector says otherwise, what agrees with the current state is no change
            self._candidate = None
            self._absorb(_begun(at_s, period_s, is_change_point=False))
            return None
        if candidate and not is_change_point and self._is_alike(period_s, candidate.first_period_s):
            self._candidate = _joined(candidate, period_s)
        else:
            # once a detector has fired, evaluations may waver before they agree
            self._candidate = _begun(at_s, period_s, is_change_point=has_fired)
        return self._settled(at_s)

    def _settled(self, at_s: float) -> PhaseTransition | None:
        """Make the candidate the current state if it has held for long enough."""
        candidate, params = self._candidate, self.params
        if candidate is None or candidate.count < params.hold_count:
            return None
        period = _mean_period(candidate)
        current = self._states[self._current].period_s
        cycle = period if period is not None else current or 0.0
        if at_s - candidate.since_s < params.hold_cycles * cycle:
            return None
        known = "aperiodic" if period is None else self._recognized(period)
        if known == self._current:
            self._drop_candidate()
            self._absorb(candidate)
            return None
        self._candidate = None
        cause = self._cause(period, candidate.is_change_point)
        target = known or self._new_name()
        return self._enter(target, cause, candidate.since_s, at_s, candidate)

    def _cause(self, period_s: float | None, is_change_point: bool) -> str:
        current = self._states[self._current].period_s
        if period_s is None:
            return "period_lost" if current is not None else "none_found"
        if current is None:
            return "found_again" if self._named else "first_found"
        return ("change_point" if is_change_point else "shift") + ("_up" if period_s > current else "_down")

    # ---- states

    def _is_alike(self, one_s: float | None, other_s: float | None) -> bool:
        if one_s is None or other_s is None:
            return one_s is other_s
        return max(one_s, other_s) <= TOLERANCE_RATIO * min(one_s, other_s)

    def _is_current(self, period_s: float | None) -> bool:
        state = self._states[self._current]
        if state.period_s is None:
            return period_s is None and self._current == "aperiodic"
        return self._is_alike(period_s, state.period_s)

    def _recognized(self, period_s: float) -> str | None:
        """Return the state whose period is the nearest within the tolerance; of two the older."""
        known = [(state.period_s, state.name) for state in self._states.values() if state.period_s is not None]
        near = [(abs(math.log(period / period_s)), name) for period, name in known if self._is_alike(period, period_s)]
        return min(near, key=lambda pair: pair[0])[1] if near else None

    def _new_name(self) -> str:
        """Return a new periodic state's name, and forget the state that was left longest ago if there is no room."""
        periodic = [state for state in self._states.values() if state.period_s is not None]
        if len(periodic) >= self.params.most_states:
            others = [state for state in periodic if state.name != self._current]
            self._forget(min(others, key=lambda state: state.last_s).name)
        self._named += 1
        return f"period_{self._named}"

    def _forget(self, name: str) -> None:
        del self._states[name]
        self._edges = {key: edge for key, edge in self._edges.items() if name not in key[:2]}
        self._forgotten += 1

    def _touch(self, at_s: float) -> None:
        """Let the current state last until now."""
        state = self._states[self._current]
        self._states[self._current] = replace(state, duration_s=state.duration_s + at_s - state.last_s, last_s=at_s)

    def _absorb(self, found: _Candidate) -> None:
        """Count evaluations towards the current state."""
        state = self._states[self._current]
        shortest = min((p for p in (state.shortest_period_s, found.shortest_s) if p is not None), default=None)
        longest = max((p for p in (state.longest_period_s, found.longest_s) if p is not None), default=None)
        self._states[self._current] = replace(
            state,
            shortest_period_s=shortest,
            longest_period_s=longest,
            evaluation_count=state.evaluation_count + found.count,
        )

    def _drop_candidate(self) -> None:
        """Give up what has not held; if a detector had fired, it did so for nothing that could be told."""
        if self._candidate is not None and self._candidate.is_change_point:
            self._unconfirmed += 1
        self._candidate = None

    def _enter(self, target: str, cause: str, at_s: float, known_s: float, found: _Candidate | None) -> PhaseTransition:
        """Leave the current state for another one, which began at at_s."""
        source = self._current
        left = self._states[source]
        self._states[source] = replace(left, duration_s=left.duration_s - (known_s - at_s), last_s=at_s)
        state = self._states.get(target)
        if state is None:
            period = None if found is None else _mean_period(found)
            state = PhaseState(target, period, None, None, 0, 0, 0.0, at_s, at_s, at_s)
        self._states[target] = replace(
            state,
            visit_count=state.visit_count + 1,
            duration_s=state.duration_s + known_s - at_s,
            entered_s=at_s,
            last_s=known_s,
        )
        self._current = target
        if found is not None:
            self._absorb(found)
        self._record((source, target, cause), at_s)
        return PhaseTransition(source, target, cause, at_s, known_s)

    def _record(self, kind: tuple[str, str, str], at_s: float) -> None:
        edge = self._edges.setdefault(kind, _Edge(first_s=at_s))
        edge.count += 1
        edge.times_s = [*edge.times_s, at_s][-self.params.most_times :]

    # ---- as plain values

    def graph(self) -> dict[str, Any]:
        """Return states and transitions as plain values, fit for JSON; nodes and edges by their first time."""
        nodes = [asdict(state) for state in self._states.values()]
        edges = [
            {"source": source, "target": target, "cause": cause, **asdict(edge)}
            for (source, target, cause), edge in self._edges.items()
        ]
        return {
            "current": self._current if self._states else None,
            "nodes": nodes,
            "edges": edges,
            "forgotten_state_count": self._forgotten,
            "unconfirmed_change_count": self._unconfirmed,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as plain values, fit for JSON: the graph, and what it takes to go on."""
        candidate = None if self._candidate is None else asdict(self._candidate)
        return {
            "params": asdict(self.params),
            "graph": self.graph(),
            "candidate": candidate,
            "last_s": self._last_s,
            "named_count": self._named,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> PhaseAutomaton:
        """Return the automaton that `to_dict` wrote."""
        found = cls(AutomatonParams(**state["params"]))
        graph = state["graph"]
        found._states = {node["name"]: PhaseState(**node) for node in graph["nodes"]}
        for edge in graph["edges"]:
            kind = edge["source"], edge["target"], edge["cause"]
            found._edges[kind] = _Edge(edge["count"], edge["first_s"], edge["times_s"])
        found._candidate = None if state["candidate"] is None else _Candidate(**state["candidate"])
        found._current = graph["current"] if graph["nodes"] else "start"
        found._last_s, found._named = state["last_s"], state["named_count"]
        found._forgotten = graph["forgotten_state_count"]
        found._unconfirmed = graph["unconfirmed_change_count"]
        return found


# ---- candidates


def _begun(at_s: float, period_s: float | None, *, is_change_point: bool) -> _Candidate:
    log = 0.0 if period_s is None else math.log(period_s)
    return _Candidate(period_s, 1, log, period_s, period_s, at_s, is_change_point)


def _joined(candidate: _Candidate, period_s: float | None) -> _Candidate:
    """Return a candidate with one more evaluation, which is alike."""
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
    """Return the geometric mean of a candidate's periods; None where it has none."""
    if candidate.shortest_s is None or candidate.longest_s is None:
        return None
    lowest, highest = math.log(candidate.shortest_s), math.log(candidate.longest_s)
    mean = math.exp(min(max(candidate.log_sum / candidate.count, lowest), highest))
    # a mean of equal numbers is that number, but for rounding
    return min(max(mean, candidate.shortest_s), candidate.longest_s)
