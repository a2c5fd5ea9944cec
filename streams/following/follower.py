"""Follow many inputs in one process: evaluate new data in batches, commit and report the results.

Files and polls are checked periodically (one `stat` each, if nothing is new) instead of by file notification. The
parallel file systems that contain traces do not notify other hosts of a write.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from iosig.streams.following.followed import FollowedInput, Ready
from iosig.streams.following.rows import Row, format_row
from iosig.transforms.predictions.predictor import OnlineParams, evaluate
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.following.flushes import Flush
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.store.journal import Journal

#: maximum number of inputs that are evaluated and committed together; bounds the memory, and the work lost in a crash
_TOGETHER = 64
#: evaluations are committed after this time, once the current one has finished [s]
_COMMIT_S = 0.5
#: an input that has not grown for this time yields its incomplete flush [s]
_QUIET_S = 1.0
#: a failing input is retried after 2, 4, 8 ... seconds, up to this maximum
_MAX_RETRY_DELAY_S = 60.0


@dataclass(slots=True)
class _InputStatus:
    """Status of an input, on this process's clock, since its last flush or its first check.

    is_live: whether that flush arrived while waiting, so the time to the next one is meaningful. quiet_s: time of the
    last growth. retry_s: earliest time of the next read. fault: why it cannot be read.
    """

    came_s: float = field(default_factory=time.monotonic)
    is_live: bool = False
    quiet_s: float = field(default_factory=time.monotonic)
    retry_s: float = -math.inf
    fault: str | None = None


@dataclass(slots=True)
class Follower:
    """Polls the followed inputs, evaluates new flushes, and commits and reports the resulting rows.

    tell: receives the rows of each commit. refuse: receives an input's id and the reason why it can no longer be read.
    journal: storage of rows and states; None: no storage. idle_end_s: a run without new data for this time has ended.
    note: receives an input's id and its refused parts, as (line, reason).
    """

    followed: list[FollowedInput]
    tell: Callable[[list[Row]], None]
    refuse: Callable[[str, InputRefused], None]
    journal: Journal | None = None
    idle_end_s: float = math.inf
    note: Callable[[str, Sequence[tuple[int, str]]], None] = lambda *_: None
    _seen: dict[str, _InputStatus] = field(default_factory=dict)
    #: inputs with rows that would be reported again after a restart
    _unsettled: set[str] = field(default_factory=set)

    def follow(
        self, interval_s: float, stop: Stop, find_new: Callable[[], Iterable[FollowedInput]] | None = None
    ) -> None:
        """Follow until all inputs have ended, or stop is set.

        find_new: returns inputs that have appeared since its last call. Rows that were committed before a kill, but
        possibly not reported, are reported again, identically. An input that had ended is checked once, because it may
        have resumed.
        """
        self._tell_again(self.followed)
        while not stop.is_set():
            begun_s = time.monotonic()
            new = list(find_new()) if find_new else []
            self._tell_again(new)
            self.followed.extend(new)
            if not self.step(stop):
                if not self.followed and not find_new:
                    break
                # subtract the time of the reads: with many inputs they take most of the interval
                stop.wait(max(0.0, begun_s + interval_s - time.monotonic()))
        self._settle(self.followed)

    def step(self, stop: Stop | None = None) -> bool:
        """Process new data of every input once; return whether more are available immediately."""
        is_behind = False
        waiting: list[tuple[FollowedInput, deque[Flush]]] = []
        for followed in self.followed:
            if stop is not None and stop.is_set():
                break
            flushes = self._poll_feed(followed)
            is_behind = is_behind or (followed.feed.is_behind and not self._is_failing(followed))
            if flushes:
                waiting.append((followed, deque(flushes)))
            if len(waiting) == _TOGETHER:
                self._take(waiting, stop)
                waiting = []
        self._take(waiting, stop)
        self._leave([followed for followed in self.followed if followed.is_over])
        self.followed = [followed for followed in self.followed if not followed.is_over]
        return is_behind and not (stop is not None and stop.is_set())

    def finish(self) -> None:
        """Process the remaining data of every input; only a known end is evaluated separately."""
        while self.step():
            pass
        self._take([(followed, deque(self._finish_feed(followed))) for followed in self.followed])

    def _finish_feed(self, followed: FollowedInput) -> list[Flush]:
        flushes = [] if self._is_failing(followed) else followed.feed.finish()
        for flush in flushes:
            if flush.refused and not flush.moves:
                self.note(followed.identity.followed_id, flush.refused)
        # a job log records an end; the end of a file is not the end of a run
        is_known = followed.identity.source == "server"
        return [flush for flush in flushes if flush.moves or (is_known and flush.position.get("is_over"))]

    def _is_failing(self, followed: FollowedInput) -> bool:
        status = self._seen.get(followed.identity.followed_id)
        return status is not None and time.monotonic() < status.retry_s

    def _tell_again(self, inputs: Iterable[FollowedInput]) -> None:
        for followed in inputs if self.journal is not None else ():
            assert self.journal is not None
            rows = self.journal.evaluations_after(followed.identity.followed_id, followed.told)
            if rows:
                self.tell(rows)
                self._record_reported(followed)

    def _leave(self, inputs: Sequence[FollowedInput]) -> None:
        """Release inputs that have ended."""
        self._settle(inputs)
        for followed in inputs:
            self._seen.pop(followed.identity.followed_id, None)
            if self.journal is not None:
                self.journal.leave(followed.identity.followed_id)

    def _settle(self, inputs: Iterable[FollowedInput]) -> None:
        """Record that all rows of inputs were reported, so that a restart does not repeat them."""
        states = [followed.state() for followed in inputs if followed.identity.followed_id in self._unsettled]
        if states and self.journal is not None:
            self.journal.commit([], states)
        self._unsettled.difference_update(state.followed_id for state in states)

    def _poll_feed(self, followed: FollowedInput) -> list[Flush]:
        """Return new flushes of an input; report a read error once, and retry later."""
        status, now_s = self._seen.setdefault(followed.identity.followed_id, _InputStatus()), time.monotonic()
        if now_s < status.retry_s:
            return []
        try:
            flushes = followed.feed.poll()
            status.retry_s = now_s + min(_MAX_RETRY_DELAY_S, 2.0**followed.feed.failed_count) * bool(
                followed.feed.failed_count
            )
            if flushes or followed.feed.is_behind:
                return flushes
            return self._drain_quiet_feed(followed, status, now_s)
        except InputRefused as fault:
            status.retry_s = now_s + _MAX_RETRY_DELAY_S
            if str(fault) != status.fault:
                self.refuse(followed.identity.followed_id, fault)
            status.fault = str(fault)
            return []

    def _drain_quiet_feed(self, followed: FollowedInput, status: _InputStatus, now_s: float) -> list[Flush]:
        """Return the incomplete flush of a quiet input, or the final flushes of an idle one."""
        if now_s - status.came_s >= self.idle_end_s:
            return followed.feed.finish()
        if not followed.feed.is_quiet:
            status.quiet_s = now_s
        return followed.feed.pending() if now_s - status.quiet_s >= _QUIET_S else []

    def _take(self, groups: Sequence[tuple[FollowedInput, deque[Flush]]], stop: Stop | None = None) -> None:
        """Process flushes in rounds, one flush per input and round; commit and report the rows.

        A long backlog is committed in parts, which limits the work lost in a kill and the delay of a stop.
        """
        groups = [(followed, flushes) for followed, flushes in groups if flushes]
        now_s = time.monotonic()
        while any(flushes for _, flushes in groups):
            self._commit(*self._evaluate_rounds(groups, now_s))
            if stop is not None and stop.is_set():
                return
        for followed, _ in groups:
            self._seen[followed.identity.followed_id] = _InputStatus(now_s, is_live=not followed.feed.is_behind)

    def _evaluate_rounds(
        self, groups: Sequence[tuple[FollowedInput, deque[Flush]]], now_s: float
    ) -> tuple[list[Row], Sequence[FollowedInput]]:
        """Evaluate one or more rounds, up to the commit interval; return the rows and the inputs concerned."""
        rows: list[Row] = []
        evaluated: dict[str, FollowedInput] = {}
        end_s = time.monotonic() + _COMMIT_S
        while any(flushes for _, flushes in groups):
            ready: list[Ready] = []
            for followed, flushes in groups:
                if flushes:
                    evaluated[followed.identity.followed_id] = followed
                    ready.extend(self._take_flush(followed, flushes.popleft(), now_s))
            rows.extend(_evaluate_batched(ready))
            if time.monotonic() >= end_s:
                break
        return rows, list(evaluated.values())

    def _take_flush(self, followed: FollowedInput, flush: Flush, now_s: float) -> list[Ready]:
        if flush.refused:
            self.note(followed.identity.followed_id, flush.refused)
        return followed.take(flush, self._elapsed_s(followed, now_s))

    def _commit(self, rows: list[Row], inputs: Sequence[FollowedInput]) -> None:
        if self.journal is not None:
            self.journal.commit(rows, [followed.state() for followed in inputs])
        if rows:
            self.tell(rows)
        for followed in inputs:
            self._record_reported(followed)

    def _record_reported(self, followed: FollowedInput) -> None:
        self._unsettled.add(followed.identity.followed_id)
        followed.told = {direction: predictor.evaluation_count for direction, predictor in followed.predictors.items()}

    def _elapsed_s(self, followed: FollowedInput, now_s: float) -> float | None:
        """Return the time since the previous flush; None if both came together or it predates this process."""
        status = self._seen.pop(followed.identity.followed_id, None)
        return now_s - status.came_s if status is not None and status.is_live else None


def _evaluate_batched(ready: Sequence[Ready]) -> list[Row]:
    """Evaluate due items, batched by parameters, and return the rows."""
    rows: list[Row] = []
    groups: dict[OnlineParams, list[Ready]] = {}
    for item in ready:
        groups.setdefault(item.due.predictor.params, []).append(item)
    for group in groups.values():
        predicted_at = datetime.now(UTC)
        for item, evaluation in zip(group, evaluate([due_item.due for due_item in group]), strict=True):
            rows.append(format_row(item.identity, item.told, predicted_at, evaluation))
    return rows
