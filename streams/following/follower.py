"""Following many inputs in one process: what is new is judged together, kept, and told.

Files and polls are looked at once in a while (a `stat` each, where nothing is new) instead of being watched: the
parallel file systems that traces lie on notify no other host of a write.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from iosig.streams.following.followed import Followed, Ready
from iosig.streams.following.rows import Row, row_of
from iosig.transforms.predictions.predictor import OnlineParams, evaluate
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.following.flushes import Flush
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.store.journal import Journal

#: inputs with news that are judged and committed together: bounds the memory, and what a crash makes to be done again
_TOGETHER = 64
#: what was judged is committed after so long at the latest, and the evaluation that is being made [s]
_COMMIT_S = 0.5
#: an input that has not grown for so long hands over a flush that does not say that it is whole [s]
_QUIET_S = 1.0
#: an input that cannot be read is asked again after 2, 4, 8 ... seconds, and so many at most
_LONGEST_PAUSE_S = 60.0


@dataclass(slots=True)
class _Seen:
    """Of an input, on this process's clock: when its last flush came (or it was first looked at), and what it is doing.

    is_live: whether that flush was waited for, so that the time to the next one tells how long it took. quiet_s: when
    it last grew. retry_s: not to be asked before. fault: why it cannot be read.
    """

    came_s: float = field(default_factory=time.monotonic)
    is_live: bool = False
    quiet_s: float = field(default_factory=time.monotonic)
    retry_s: float = -math.inf
    fault: str | None = None


@dataclass(slots=True)
class Follower:
    """Follows inputs.

    tell: gets the rows of each commit. refuse: gets an input's id and why it is followed no more. journal: where rows
    and states are kept; None: nowhere. idle_end_s: a run of which nothing has come for so long is over. note: gets an
    input's id and what was refused of it, as (line, reason).
    """

    followed: list[Followed]
    tell: Callable[[list[Row]], None]
    refuse: Callable[[str, InputRefused], None]
    journal: Journal | None = None
    idle_end_s: float = math.inf
    note: Callable[[str, Sequence[tuple[int, str]]], None] = lambda *_: None
    _seen: dict[str, _Seen] = field(default_factory=dict)
    #: inputs whose last rows would be told again after a restart
    _unsettled: set[str] = field(default_factory=set)

    def follow(self, interval_s: float, stop: Stop, found: Callable[[], Iterable[Followed]] | None = None) -> None:
        """Follow until all inputs are over, or stop is set.

        found: gives the inputs that have appeared since it was last asked. What was committed but perhaps not told, as
        the process before was killed, is told again, line for line the same. An input that was over is looked at once:
        it may have gone on.
        """
        self._tell_again(self.followed)
        while not stop.is_set():
            begun_s = time.monotonic()
            new = list(found()) if found else []
            self._tell_again(new)
            self.followed.extend(new)
            if not self.step(stop):
                if not self.followed and not found:
                    break
                # what the reading took is waited already: with many inputs it is most of the time
                stop.wait(max(0.0, begun_s + interval_s - time.monotonic()))
        self._settle(self.followed)

    def step(self, stop: Stop | None = None) -> bool:
        """Take what is new of every input once; return whether there is more to be had at once."""
        is_behind = False
        waiting: list[tuple[Followed, deque[Flush]]] = []
        for one in self.followed:
            if stop is not None and stop.is_set():
                break
            flushes = self._polled(one)
            is_behind = is_behind or (one.feed.is_behind and not self._is_failing(one))
            if flushes:
                waiting.append((one, deque(flushes)))
            if len(waiting) == _TOGETHER:
                self._take(waiting, stop)
                waiting = []
        self._take(waiting, stop)
        self._leave([one for one in self.followed if one.is_over])
        self.followed = [one for one in self.followed if not one.is_over]
        return is_behind and not (stop is not None and stop.is_set())

    def finish(self) -> None:
        """Take what is left of every input; that it is over is an evaluation of its own only where its end is known."""
        while self.step():
            pass
        self._take([(one, deque(self._finished(one))) for one in self.followed])

    def _finished(self, one: Followed) -> list[Flush]:
        flushes = [] if self._is_failing(one) else one.feed.finish()
        for flush in flushes:
            if flush.refused and not flush.moves:
                self.note(one.identity.followed_id, flush.refused)
        # the job log knows of an end; that a file has no more is none
        is_known = one.identity.source == "server"
        return [flush for flush in flushes if flush.moves or (is_known and flush.position.get("is_over"))]

    def _is_failing(self, one: Followed) -> bool:
        seen = self._seen.get(one.identity.followed_id)
        return seen is not None and time.monotonic() < seen.retry_s

    def _tell_again(self, inputs: Iterable[Followed]) -> None:
        for one in inputs if self.journal is not None else ():
            assert self.journal is not None
            rows = self.journal.evaluations_after(one.identity.followed_id, one.told)
            if rows:
                self.tell(rows)
                self._note_told(one)

    def _leave(self, inputs: Sequence[Followed]) -> None:
        """Give inputs back that are over."""
        self._settle(inputs)
        for one in inputs:
            self._seen.pop(one.identity.followed_id, None)
            if self.journal is not None:
                self.journal.leave(one.identity.followed_id)

    def _settle(self, inputs: Iterable[Followed]) -> None:
        """Keep that all rows of inputs were told: only after a kill are the last ones told again."""
        states = [one.state() for one in inputs if one.identity.followed_id in self._unsettled]
        if states and self.journal is not None:
            self.journal.commit([], states)
        self._unsettled.difference_update(state.followed_id for state in states)

    def _polled(self, one: Followed) -> list[Flush]:
        """Return what is new of an input; one that cannot be read is told of once, and looked at again."""
        seen, now_s = self._seen.setdefault(one.identity.followed_id, _Seen()), time.monotonic()
        if now_s < seen.retry_s:
            return []
        try:
            flushes = one.feed.poll()
            seen.retry_s = now_s + min(_LONGEST_PAUSE_S, 2.0**one.feed.failed_count) * bool(one.feed.failed_count)
            if flushes or one.feed.is_behind:
                return flushes
            return self._left(one, seen, now_s)
        except InputRefused as fault:
            seen.retry_s = now_s + _LONGEST_PAUSE_S
            if str(fault) != seen.fault:
                self.refuse(one.identity.followed_id, fault)
            seen.fault = str(fault)
            return []

    def _left(self, one: Followed, seen: _Seen, now_s: float) -> list[Flush]:
        """Return what waits of an input that has been quiet for a while, or what ends a run that is idle."""
        if now_s - seen.came_s >= self.idle_end_s:
            return one.feed.finish()
        if not one.feed.is_quiet:
            seen.quiet_s = now_s
        return one.feed.pending() if now_s - seen.quiet_s >= _QUIET_S else []

    def _take(self, groups: Sequence[tuple[Followed, deque[Flush]]], stop: Stop | None = None) -> None:
        """Take flushes of inputs, the first of each together, then the second of each; commit, and tell.

        A long backlog is committed piece by piece: so much less is done again after a kill, and stop is heeded soon.
        """
        groups = [(one, flushes) for one, flushes in groups if flushes]
        now_s = time.monotonic()
        while any(flushes for _, flushes in groups):
            self._commit(*self._judged_for_a_while(groups, now_s))
            if stop is not None and stop.is_set():
                return
        for one, _ in groups:
            self._seen[one.identity.followed_id] = _Seen(now_s, is_live=not one.feed.is_behind)

    def _judged_for_a_while(
        self, groups: Sequence[tuple[Followed, deque[Flush]]], now_s: float
    ) -> tuple[list[Row], Sequence[Followed]]:
        """Return the rows of flushes, at least of the first of each input, and the inputs that gave any."""
        rows: list[Row] = []
        taken: dict[str, Followed] = {}
        end_s = time.monotonic() + _COMMIT_S
        while any(flushes for _, flushes in groups):
            ready: list[Ready] = []
            for one, flushes in groups:
                if flushes:
                    taken[one.identity.followed_id] = one
                    ready.extend(self._taken(one, flushes.popleft(), now_s))
            rows.extend(_judged(ready))
            if time.monotonic() >= end_s:
                break
        return rows, list(taken.values())

    def _taken(self, one: Followed, flush: Flush, now_s: float) -> list[Ready]:
        if flush.refused:
            self.note(one.identity.followed_id, flush.refused)
        return one.take(flush, self._elapsed_s(one, now_s))

    def _commit(self, rows: list[Row], taken: Sequence[Followed]) -> None:
        if self.journal is not None:
            self.journal.commit(rows, [one.state() for one in taken])
        if rows:
            self.tell(rows)
        for one in taken:
            self._note_told(one)

    def _note_told(self, one: Followed) -> None:
        self._unsettled.add(one.identity.followed_id)
        one.told = {direction: predictor.evaluation_count for direction, predictor in one.predictors.items()}

    def _elapsed_s(self, one: Followed, now_s: float) -> float | None:
        """Return how long ago the flush before came; None if it came with this one, or was there before us."""
        seen = self._seen.pop(one.identity.followed_id, None)
        return now_s - seen.came_s if seen is not None and seen.is_live else None


def _judged(ready: Sequence[Ready]) -> list[Row]:
    """Evaluate what is ready, together where the parameters are the same, and return the rows."""
    rows: list[Row] = []
    groups: dict[OnlineParams, list[Ready]] = {}
    for one in ready:
        groups.setdefault(one.due.predictor.params, []).append(one)
    for group in groups.values():
        predicted_at = datetime.now(UTC)
        for one, evaluation in zip(group, evaluate([each.due for each in group]), strict=True):
            rows.append(row_of(one.identity, one.told, predicted_at, evaluation))
    return rows
