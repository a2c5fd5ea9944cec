"""Merge the polls of one file system into flushes, grouped by poll time, and count each poll once.

Internal times are whole microseconds since 1970; flushes contain seconds since the run's start. A poll time is complete
once a later one has been seen, or every controller that reported recently has reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from iosig.streams.following.seen_polls import SeenPolls
from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.warehouse.following.flushes import Flush, Moves

_WAITING = {
    "controller": pl.Int64(),
    "polled_us": pl.Int64(),
    "interval_us": pl.Int64(),
    "read": pl.Float64(),
    "write": pl.Float64(),
    "is_gap": pl.Boolean(),
}
#: columns of the polls that `MergedPolls` accepts
SCHEMA = {
    "controller": pl.String(),
    "polled_us": pl.Int64(),
    "interval_us": pl.Int64(),
    "read_bytes_per_s": pl.Float64(),
    "write_bytes_per_s": pl.Float64(),
}
MAX_CONTROLLERS = 8192
#: number of poll times after which a controller that stopped reporting is no longer expected
_EXPECTED_TIMES = 8
#: maximum number of poll times that wait because most controllers lag behind them by more than the horizon
_MAX_PENDING_TIMES = 60
#: a longer time without a poll is a gap, in intervals beyond the poll's own
_GAP_INTERVALS = 0.5
#: maximum number of queued reasons
_MAX_NOTES = 100
_MAX_BYTES = 2.0**53
_RATES = {"read": "read_bytes_per_s", "write": "write_bytes_per_s"}
_FAR_US = 1 << 62


@dataclass(frozen=True, slots=True)
class FeedParams:
    """Grouping of polls into flushes, and timeouts.

    flush_s: minimum interval between flushes on the run's clock, on a grid from its start; 0: one flush per poll time.
    horizon_s: polls later than this are refused; it also limits how far a few controllers' clocks may be ahead of the
    others. end_wait_s: timeout for polls that cover the end of a finished run. give_up_s: maximum downtime of a
    database.
    """

    flush_s: float = 0.0
    horizon_s: float = 3600.0
    end_wait_s: float = 300.0
    give_up_s: float = 900.0


@dataclass(frozen=True, slots=True, eq=False)
class _Ordered:
    """Polls (n) in chronological order, clipped to the run: times [us], controllers, volumes [B] by direction."""

    polled_us: Ints
    controller: Ints
    interval_us: Ints
    began_us: Ints
    ceased_us: Ints
    volumes: Mapping[str, Reals]
    is_measured: Bools

    @classmethod
    def sort(cls, rows: pl.DataFrame, started_us: int, ended_us: int | None) -> _Ordered:
        ordered = rows.sort("polled_us", "controller")
        polled, interval = (ordered[name].to_numpy() for name in ("polled_us", "interval_us"))
        began = np.maximum(polled - interval, started_us)
        ceased = np.minimum(polled, _FAR_US if ended_us is None else ended_us)
        share = (ceased - began) / interval
        volumes = {name: ordered[name].to_numpy() * share for name in _RATES}
        measured = ~(np.isnan(volumes["read"]) & np.isnan(volumes["write"]))
        return cls(polled, ordered["controller"].to_numpy(), interval, began, ceased, volumes, measured)


class MergedPolls:
    """Counted polls of one file system, and queued ones, with poll times that are not complete yet."""

    def __init__(
        self,
        started_us: int,
        limit_bytes_per_s: float | None,
        params: FeedParams,
        plain: Mapping[str, Any] | None = None,
    ) -> None:
        self.started_us = started_us
        self.ended_us: int | None = None
        self._limit, self._params = limit_bytes_per_s, params
        self._horizon_us = round(params.horizon_s * 1e6)
        self._flush_us = round(params.flush_s * 1e6)
        saved = plain or {}
        self._controllers: dict[str, int] = {name: at for at, name in enumerate(saved.get("controllers", ()))}
        self._names: tuple[str, ...] = tuple(self._controllers)
        self._seen = SeenPolls.from_plain(saved["seen"]) if saved else SeenPolls(started_us)
        self.closed_us: int = saved.get("closed_us", started_us)
        self._told_us: int = saved.get("told_us", started_us)
        self._reported: list[int] = [int(mask, 16) for mask in saved.get("reported", ())]
        self._waiting = pl.DataFrame(schema=_WAITING)
        self._has_passed_end = False
        # position of most controllers when polls of others were queued for being ahead
        self._held_at_us: int | None = None
        self._notes: list[tuple[int, str]] = []
        self._events: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether polls of the run's end have arrived, and all earlier polls have been returned."""
        return self._has_passed_end and self._waiting.is_empty()

    def plain(self) -> dict[str, Any]:
        """Return the state of counted polls as JSON-serializable values."""
        return {
            "controllers": self._names,
            "seen": self._seen.plain(),
            "closed_us": self.closed_us,
            "told_us": self._told_us,
            "reported": [f"{mask:x}" for mask in self._reported],
        }

    def waiting(self) -> list[tuple[Any, ...]]:
        """Return the queued polls as JSON-serializable values; `wait_for` restores them."""
        return self._waiting.filter(pl.col("polled_us") > self.closed_us).rows()

    def wait_for(self, polls: Sequence[Sequence[Any]]) -> None:
        """Restore the polls that were queued before a restart."""
        self._waiting = pl.DataFrame(polls, schema=_WAITING, orient="row")

    def end(self, ended_us: int) -> None:
        """Set the end of the run; later polls do not belong to it."""
        self.ended_us = ended_us
        self._has_passed_end |= self.closed_us >= ended_us
        self._waiting = self._before_end(self._waiting)

    def note(self, line: int, reason: str) -> None:
        """Queue a reason for a refusal for the next flush; beyond the maximum, reasons are dropped."""
        if len(self._notes) < _MAX_NOTES:
            self._notes.append((line, reason))

    def tell(self, event: str) -> None:
        """Queue an event of the input for the next flush."""
        self._events.append(event)

    def push(self, rows: pl.DataFrame, *, is_again: bool = False) -> Iterator[Flush]:
        """Add polls (`SCHEMA`); yield a flush for each late poll time, which had already been returned without them.

        is_again: the polls were processed before a restart, so their faults have already been reported.
        """
        inside = rows.filter(pl.col("polled_us") > self.started_us, pl.col("interval_us") > 0)
        valid = self._number_controllers(
            self._plausible(self._before_end(self._convert_rates(inside)), is_again), is_again
        )
        late_polls = _first_of_each(valid.filter(pl.col("polled_us") <= self.closed_us, ~pl.col("is_gap")))
        yield from self._late(late_polls, is_again)
        self._waiting = _first_of_each(pl.concat([self._waiting, valid.filter(pl.col("polled_us") > self.closed_us)]))

    def _convert_rates(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Convert rates to whole bytes, as nightly runs do, and flag gaps and implausible values."""
        interval_s = pl.col("interval_us") / 1e6
        return rows.select(
            "controller",
            "polled_us",
            "interval_us",
            *((pl.col(rate) * interval_s).round().alias(name) for name, rate in _RATES.items()),
            is_gap=pl.all_horizontal(pl.col(rate).is_null() for rate in _RATES.values()),
            is_implausible=pl.any_horizontal(
                (pl.col(rate) > (np.inf if self._limit is None else self._limit))
                | (pl.col(rate) * interval_s > _MAX_BYTES)
                for rate in _RATES.values()
            ).fill_null(False),
        )

    def _before_end(self, rows: pl.DataFrame) -> pl.DataFrame:
        if self.ended_us is None:
            return rows
        is_before = pl.col("polled_us") - pl.col("interval_us") < self.ended_us
        rows_before = rows.filter(is_before)
        self._has_passed_end |= rows_before.height < rows.height
        return rows_before

    def _plausible(self, rows: pl.DataFrame, is_again: bool) -> pl.DataFrame:
        plausible = rows.filter(~pl.col("is_implausible"))
        if (count := rows.height - plausible.height) and not is_again:
            self.note(0, f"{count} polls exceed the maximum rate of a controller and are ignored.")
        return plausible.drop("is_implausible")

    def _number_controllers(self, rows: pl.DataFrame, is_again: bool) -> pl.DataFrame:
        """Replace controller names by stable numbers."""
        for name in rows["controller"].unique().sort():
            if name not in self._controllers and len(self._controllers) < MAX_CONTROLLERS:
                self._controllers[name] = len(self._controllers)
        if len(self._names) < len(self._controllers):
            self._names = tuple(self._controllers)
        numbers = pl.Series("number", range(len(self._names)), pl.Int64)
        numbered = rows.with_columns(
            pl.col("controller").replace_strict(
                pl.Series(self._names, dtype=pl.String), numbers, default=None, return_dtype=pl.Int64
            )
        )
        accepted = numbered.filter(pl.col("controller").is_not_null())
        if (count := rows.height - accepted.height) and not is_again:
            self.note(0, f"{count} polls are ignored: more controllers than the maximum of {MAX_CONTROLLERS}.")
        return accepted

    # ---- polls that come late

    def _late(self, rows: pl.DataFrame, is_again: bool) -> Iterator[Flush]:
        fresh = rows.filter(pl.Series(~self._is_seen(rows), dtype=pl.Boolean))
        floor_us = max(self.closed_us - self._horizon_us, self._seen.floor_us)
        too_late = fresh.filter(pl.col("polled_us") <= floor_us)
        if too_late.height and not is_again:
            self.note(0, f"{too_late.height} polls came more than {self._params.horizon_s:g} s late and are ignored.")
        polls = _Ordered.sort(fresh.filter(pl.col("polled_us") > floor_us), self.started_us, self.ended_us)
        for low, high in self._cells(polls.polled_us):
            self._count(polls, low, high)
            yield self._flush(polls, low, high)

    def _is_seen(self, rows: pl.DataFrame) -> Bools:
        """Return a mask (n) of polls that have already been counted."""
        times, at = np.unique(rows["polled_us"].to_numpy(), return_inverse=True)
        width = len(self._controllers) // 8 + 1
        masks = b"".join(self._seen.at(int(time)).to_bytes(width, "little") for time in times)
        bits = np.frombuffer(masks, np.uint8).reshape(len(times), width)
        controller = rows["controller"].to_numpy()
        is_seen: Bools = (bits[at, controller >> 3] >> (controller & 7).astype(np.uint8)) & 1 == 1
        return is_seen

    # ---- polls in time

    def ready(self, *, is_final: bool = False) -> Iterator[Flush]:
        """Yield the flushes of complete poll times, or of all queued polls if no more will arrive."""
        polls = _Ordered.sort(self._take_complete_polls(is_final), self.started_us, self.ended_us)
        cells = list(self._cells(polls.polled_us))
        for at, (low, high) in enumerate(cells):
            reported = _masks(polls.polled_us[low:high], polls.controller[low:high])[1]
            is_last = at == len(cells) - 1
            if is_last and not (is_final or self._has_passed_end or self._is_whole(polls, high, reported[-1])):
                break
            events = self._advance(polls, low, high, reported)
            refused, notes = self._pop_events()
            yield replace(self._flush(polls, low, high), events=(*notes, *events), refused=refused)
        self._waiting = self._waiting.filter(pl.col("polled_us") > self.closed_us)

    def _is_whole(self, polls: _Ordered, high: int, reported: int) -> bool:
        """Return whether all expected controllers have reported at a flush's last poll time."""
        expected = 0
        for mask in self._reported:
            expected |= mask
        is_end = self.ended_us is not None and int(polls.polled_us[high - 1]) >= self.ended_us
        return (not self._flush_us or is_end) and expected != 0 and not expected & ~reported

    def _advance(self, polls: _Ordered, low: int, high: int, reported: Sequence[int]) -> tuple[str, ...]:
        """Count the polls of one flush, i.e. rows `low` to `high` (exclusive), and mark their times as complete.

        Returns the event `gap` if a gap precedes or divides the intervals of the polls. reported: bit mask of the
        controllers that have reported, per poll time.
        """
        self._reported = [*self._reported, *reported][-_EXPECTED_TIMES:]
        self._count(polls, low, high)
        self.closed_us = int(polls.polled_us[high - 1])
        ends = [self._told_us, *_union(polls, low, high).ravel().tolist(), int(polls.ceased_us[low:high].max())]
        interval_us = int(polls.interval_us[low:high].min())
        has_gap = any(
            right - left > _GAP_INTERVALS * interval_us for left, right in zip(ends[::2], ends[1::2], strict=True)
        )
        self._told_us = max(self._told_us, ends[-1])
        return ("gap",) if has_gap else ()

    def _take_complete_polls(self, is_final: bool) -> pl.DataFrame:
        """Return the queued polls, except those ahead of most controllers by more than the horizon."""
        if is_final or self._waiting.is_empty():
            return self._waiting
        times = np.unique(self._waiting["polled_us"].to_numpy())
        ahead_us = self._ahead_us(times)
        held_count = int((times > ahead_us).sum())
        if not held_count:
            self._held_at_us = None
            return self._waiting
        ontime = self._waiting.filter(pl.col("polled_us") <= ahead_us)
        reached_us = max(self.closed_us, int(times[times <= ahead_us].max(initial=0)))
        if self._held_at_us is None:
            self._held_at_us = reached_us
        elif held_count >= _MAX_PENDING_TIMES and self._held_at_us == reached_us:
            # the other controllers have sent nothing since, so these are the only active ones
            return self._waiting
        elif held_count >= _MAX_PENDING_TIMES:
            count = self._waiting.height - ontime.height
            self.note(0, f"{count} polls are ignored: their clocks are ahead of the others.")
            self._waiting, self._held_at_us = ontime, None
        return ontime

    def _ahead_us(self, times: Ints) -> int:
        """Return the instant after which only a few controllers have polls, following a jump beyond the horizon."""
        before = np.concatenate([[self.closed_us], times[:-1]])
        if self.closed_us == self.started_us:
            before[0] = times[0]
        jumps = np.flatnonzero(times - before > self._horizon_us)
        if not jumps.size:
            return _FAR_US
        spans = self._waiting.group_by("controller").agg(
            pl.col("polled_us").min().alias("first"), pl.col("polled_us").max().alias("last")
        )
        expected = {at for at in range(len(self._controllers)) if any(mask >> at & 1 for mask in self._reported)}
        is_known = spans["controller"].is_in(list(expected)).to_numpy()
        firsts = np.sort(spans["first"].to_numpy()[~is_known])
        lasts = np.sort(spans["last"].to_numpy())
        at_us = before[jumps]
        known_count = len(expected) + np.searchsorted(firsts, at_us, "right")
        ahead_count = len(lasts) - np.searchsorted(lasts, at_us, "right")
        minority_jumps = np.flatnonzero(2 * ahead_count < known_count)
        return int(at_us[minority_jumps[0]]) if minority_jumps.size else _FAR_US

    # ---- both

    def _cells(self, polled_us: Ints) -> Iterator[tuple[int, int]]:
        """Yield the index range of each flush's polls: one poll time, or a left-open step of the grid."""
        if not polled_us.size:
            return
        cell = polled_us if not self._flush_us else -((self.started_us - polled_us) // self._flush_us)
        edges = np.flatnonzero(np.diff(cell)) + 1
        yield from zip([0, *edges.tolist()], [*edges.tolist(), len(cell)], strict=True)

    def _count(self, polls: _Ordered, low: int, high: int) -> None:
        """Mark polls as counted; those without a value may still arrive."""
        measured = low + np.flatnonzero(polls.is_measured[low:high])
        times, masks = _masks(polls.polled_us[measured], polls.controller[measured])
        for time_us, mask in zip(times, masks, strict=True):
            self._seen.add(time_us, mask)

    def _flush(self, polls: _Ordered, low: int, high: int) -> Flush:
        moves = {}
        for direction, volumes in polls.volumes.items():
            at = low + np.flatnonzero(~np.isnan(volumes[low:high]))
            if at.size:
                start_s, end_s = self._seconds(polls.began_us[at]), self._seconds(polls.ceased_us[at])
                moves[direction] = Moves(start_s, end_s, volumes[at])
        until_us = int(polls.ceased_us[low:high].max())
        until_s = (until_us - self.started_us) / 1e6
        return Flush(moves, until_s, self.plain(), self._seconds(_union(polls, low, high)))

    def _pop_events(self) -> tuple[tuple[tuple[int, str], ...], tuple[str, ...]]:
        """Return the queued events once, and clear the queue."""
        refused, events = tuple(self._notes), (*self._events, *(["refused"] if self._notes else []))
        self._notes, self._events = [], []
        return refused, events

    def final(self, until_us: int) -> Flush:
        """Return the flush that reports the end of the run."""
        refused, notes = self._pop_events()
        until_s = (until_us - self.started_us) / 1e6
        return Flush({}, until_s, self.plain(), np.empty((0, 2)), (*notes, "end"), refused)

    def _seconds(self, times_us: Ints) -> Reals:
        seconds: Reals = (times_us - self.started_us) / 1e6
        return seconds


def _first_of_each(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep one poll per controller and instant: a value takes precedence over a gap, then the first one."""
    ordered = rows.sort("is_gap", maintain_order=True)
    return ordered.unique(["controller", "polled_us"], keep="first", maintain_order=True)


def _masks(polled_us: Ints, controller: Ints) -> tuple[list[int], list[int]]:
    """Return the distinct instants in order, each with a bit mask of its controllers."""
    times, at = np.unique(polled_us, return_inverse=True)
    if not times.size:
        return [], []
    bits = np.zeros((len(times), int(controller.max()) + 1), np.bool_)
    bits[at, controller] = True
    packed = np.packbits(bits, axis=1, bitorder="little")
    return times.tolist(), [int.from_bytes(row.tobytes(), "little") for row in packed]


def _union(polls: _Ordered, low: int, high: int) -> Ints:
    """Merge the measured times into disjoint intervals (k, 2) [us], in order."""
    measured = low + np.flatnonzero(polls.is_measured[low:high])
    if not measured.size:
        return np.empty((0, 2), np.int64)
    order = np.argsort(polls.began_us[measured], kind="stable")
    began, ceased = polls.began_us[measured][order], np.maximum.accumulate(polls.ceased_us[measured][order])
    starts = np.flatnonzero(np.concatenate([[True], began[1:] > ceased[:-1]]))
    return np.stack([began[starts], ceased[np.append(starts[1:], len(began)) - 1]], axis=1)
