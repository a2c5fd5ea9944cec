"""Follow one input: read its feed, check its clock, and update a predictor for each direction of its runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from iosig.streams.following.rows import Circumstances, Identity
from iosig.transforms.predictions.predictor import Due, OnlineParams, Predictor
from iosig.transforms.throughput.requests import Requests
from iosig.warehouse.errors import UsageError
from iosig.warehouse.following.flushes import Flush, Moves
from iosig.warehouse.store.journal import State

#: a run's clock that advances faster than elapsed wall time by this factor has jumped
_JUMP_RATIO = 2.0
#: tolerance for other causes of a lead: late flushes and clock drift [s]
_JUMP_SLACK_S = 60.0
#: latest plausible time of a run's clock, even in seconds since 1970: the year 5138 [s]
_LATEST_S = 1e11
#: range of plausible polling intervals [s]
_MIN_INTERVAL_S, _MAX_INTERVAL_S = 1e-3, 86_400.0


class Feed(Protocol):
    """Source of flushes: a growing trace, or polls of a file system."""

    #: number of consecutive failed reads
    failed_count: int
    #: whether the last read returned nothing new
    is_quiet: bool

    @property
    def is_behind(self) -> bool:
        """Whether more data are available immediately."""
        ...

    def pending(self) -> list[Flush]:
        """Return incomplete data of an input that has been quiet for a while."""
        ...

    def poll(self) -> list[Flush]:
        """Return new flushes without waiting."""
        ...

    def finish(self) -> list[Flush]:
        """Return the remaining flushes at the end of the run; the last one has the event `end`."""
        ...


@dataclass(slots=True)
class _Clock:
    """The run's own clock: its latest time, and the start of the first request in the last flush."""

    until_s: float = -math.inf
    start_s: float = -math.inf


@dataclass(frozen=True, slots=True)
class Ready:
    """An evaluation of an input that is due, with its context."""

    identity: Identity
    told: Circumstances
    due: Due


@dataclass(slots=True)
class FollowedInput:
    """One followed input, with its feed, clock and predictor per direction.

    spacing_s: minimum interval between evaluations of a direction, on the run's clock. direction: evaluate only this
    one; None: all. told: number of evaluations per direction that had been reported before the last commit.
    """

    identity: Identity
    feed: Feed
    params: OnlineParams
    spacing_s: float = 0.0
    direction: str | None = None
    run_number: int = 1
    position: Mapping[str, Any] = field(default_factory=dict)
    is_over: bool = False
    predictors: dict[str, Predictor] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    _clock: _Clock = field(default_factory=_Clock)
    #: time of each direction's last evaluation, on the run's clock
    _evaluated_s: dict[str, float] = field(default_factory=dict)
    #: events of flushes that have not triggered an evaluation yet
    _waiting_events: list[str] = field(default_factory=list)

    # ---- flushes

    def take(self, flush: Flush, elapsed_s: float | None = None) -> list[Ready]:
        """Process a flush and return the evaluations that become due.

        elapsed_s: wall time since the previous flush; None where it is meaningless, as for a file that already existed.
        """
        moves, is_refused = _sensible(flush.moves)
        if self.direction is not None:
            moves = {name: requests for name, requests in moves.items() if name == self.direction}
        events = [*self._waiting_events, *flush.events, *(["refused"] if is_refused else [])]
        is_end = "end" in flush.events
        if self.is_over and not is_end:
            events.append("resumed")
        gap_s = _hole_s(flush, self._clock.until_s) if "gap" in flush.events else 0.0
        self._follow_clock(moves, flush, elapsed_s, events)
        self._add(moves, flush)
        self.position = flush.position
        event_names = tuple(dict.fromkeys(events))
        ready = []
        # sorted by name, so that the order of rows survives a restart
        for direction, predictor in sorted(self.predictors.items()):
            if math.isnan(predictor.pyramid.until_s) or not (is_end or self._is_due(direction, moves)):
                continue
            is_gap = predictor.period_s is not None and gap_s >= predictor.period_s
            cause = "end" if is_end else "gap" if is_gap else None
            self._evaluated_s[direction] = self._clock.until_s
            due = Due(predictor, self._clock.until_s, cause)
            circumstances = Circumstances(direction, self.run_number, predictor.params, event_names, is_end)
            ready.append(Ready(self.identity, circumstances, due))
        self._waiting_events = [] if ready else list(event_names)
        self.is_over = is_end
        return ready

    def _is_due(self, direction: str, moves: Mapping[str, Moves]) -> bool:
        last_s = self._evaluated_s.get(direction)
        return direction in moves and (last_s is None or self._clock.until_s - last_s >= self.spacing_s)

    def _follow_clock(
        self, moves: Mapping[str, Moves], flush: Flush, elapsed_s: float | None, events: list[str]
    ) -> None:
        """Detect a new run or a clock jump in a trace; polls use the server's clock, which is not checked."""
        end_s = max((float(requests.end_s.max()) for requests in moves.values()), default=-math.inf)
        until_s = flush.until_s if abs(flush.until_s) <= _LATEST_S else end_s
        start_s = min((float(requests.start_s.min()) for requests in moves.values()), default=math.inf)
        if moves and self.identity.source == "client":
            is_earlier = start_s < self._clock.until_s
            is_other = bool({"replaced", "truncated"} & set(flush.events)) and (is_earlier or self.is_over)
            if is_other or until_s < self._clock.start_s:
                events.extend([] if is_other else ["clock_back"])
                self._begin_run()
            elif elapsed_s is not None and until_s - self._clock.until_s > _JUMP_RATIO * elapsed_s + _JUMP_SLACK_S:
                events.append("clock_jump")
                for predictor in self.predictors.values():
                    predictor.start_window(start_s)
            self._clock.start_s = start_s
        if self.is_over:
            for predictor in self.predictors.values():
                predictor.resume()
        self._clock.until_s = max(self._clock.until_s, until_s)

    def _begin_run(self) -> None:
        self.run_number += 1
        self._clock, self._evaluated_s = _Clock(), {}
        for predictor in self.predictors.values():
            predictor.restart()

    def _add(self, moves: Mapping[str, Moves], flush: Flush) -> None:
        """Add requests to each direction's predictor, and advance all predictors to the current time."""
        if not self.predictors and flush.measured is not None and moves:
            # steps finer than the polling interval add no information
            intervals_s = np.concatenate([requests.end_s - requests.start_s for requests in moves.values()])
            interval_s = float(np.median(intervals_s))
            self.params = replace(self.params, finest_s=min(max(interval_s, _MIN_INTERVAL_S), _MAX_INTERVAL_S))
        for direction, requests in moves.items():
            predictor = self.predictors.setdefault(direction, Predictor(self.params))
            predictor.add(Requests.from_arrays(requests.start_s, requests.end_s, requests.volume_bytes), flush.measured)
        for predictor in self.predictors.values():
            if not math.isnan(predictor.pyramid.until_s):
                predictor.pyramid.advance(self._clock.until_s)

    # ---- to disk and back

    def state(self) -> State:
        """Return the resumable state, with the input's position, its clock and all predictors."""
        predictors, contents = {}, []
        # the order in which JSON's sorted keys are read back
        for direction, predictor in sorted(self.predictors.items()):
            plain, content = predictor.to_state()
            predictors[direction] = {**plain, "content_bytes": len(content)}
            contents.append(content)
        position = {
            "feed": dict(self.position),
            "params": self._make_params_record(),
            "finest_s": self.params.finest_s,
            "run_number": self.run_number,
            "until_s": _plain(self._clock.until_s),
            "start_s": _plain(self._clock.start_s),
            "evaluated_s": self._evaluated_s,
            "waiting_events": self._waiting_events,
            "is_over": self.is_over,
            "told": self.told,
            "predictors": predictors,
        }
        return State(self.identity.followed_id, position, b"".join(contents))

    def restore(self, state: State) -> None:
        """Restore a saved state. Raises UsageError if it was saved with other parameters."""
        saved, params = state.position, self._make_params_record()
        # states of earlier versions have no parameters of the method
        if params | saved["params"] != params:
            raise UsageError(
                f"{self.identity.followed_id} was followed with other parameters: pass the same ones, or --reset."
            )
        self.params = replace(self.params, finest_s=saved["finest_s"])
        self.told, self.position, self._evaluated_s = dict(saved["told"]), saved["feed"], dict(saved["evaluated_s"])
        self.run_number, self.is_over = saved["run_number"], saved["is_over"]
        self._clock = _Clock(_time(saved["until_s"]), _time(saved["start_s"]))
        self._waiting_events = list(saved["waiting_events"])
        at = 0
        for direction, plain in sorted(saved["predictors"].items()):
            end = at + plain["content_bytes"]
            self.predictors[direction] = Predictor.from_state(self.params, plain, state.content[at:end])
            at = end

    def _make_params_record(self) -> dict[str, Any]:
        # for polls, the finest step depends on the data
        overrides = {"finest_s": None} if self.identity.source == "server" else {}
        return _plain_params(self.params) | {"spacing_s": self.spacing_s, "direction": self.direction} | overrides

    def count_on(self, state: State) -> None:
        """Reset the predictors, but continue the numbering of runs and evaluations from a state."""
        self.run_number = state.position["run_number"] + 1
        for direction, plain in state.position["predictors"].items():
            self.predictors[direction] = Predictor(self.params)
            self.predictors[direction].evaluation_count = plain["evaluation_count"]
        self.told = dict(state.position["told"])


@lru_cache(maxsize=64)
def _plain_params(params: OnlineParams) -> dict[str, Any]:
    """Convert parameters to values of JSON, cached because many inputs share them and need them at each commit."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(params)))
    return plain


def _sensible(moves: Mapping[str, Moves]) -> tuple[dict[str, Moves], bool]:
    """Drop requests with implausible times; also return whether any were dropped."""
    plausible, is_refused = {}, False
    for direction, requests in moves.items():
        is_near = (np.abs(requests.start_s) <= _LATEST_S) & (np.abs(requests.end_s) <= _LATEST_S)
        is_refused = is_refused or not is_near.all()
        if is_near.any():
            plausible[direction] = Moves(
                requests.start_s[is_near], requests.end_s[is_near], requests.volume_bytes[is_near]
            )
    return plausible, is_refused


def _hole_s(flush: Flush, until_s: float) -> float:
    """Return the length of the gap before a flush of polls [s]."""
    if flush.measured is None or not len(flush.measured) or not math.isfinite(until_s):
        return 0.0
    return float(flush.measured[:, 0].min()) - until_s


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _time(value: float | None) -> float:
    return -math.inf if value is None else value
