"""How transfers that share a bandwidth slow each other down: weighted processor sharing, event by event.

The fluid model of a shared storage system: at every instant the active transfers get the max-min fair
rates that their own peaks, their weights and the system's capacity allow. A chain is what one job does,
one step after the other: it computes, then transfers, then computes again; a transfer that takes longer
delays all that follow. That gives both effects that IOSI names (Liu et al., FAST'14, section 4): bursts
are stretched (scaling) and shifted (drift), and no byte is lost.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from iosig.transforms.arrays import Ints, Reals

#: a transfer that would end within this time is over: floating-point time could not step any closer
_DONE_S = 1e-6


@dataclass(frozen=True, slots=True)
class Chains:
    """Chains of steps, each a wait and then a transfer.

    start_s (n): when each chain begins, 0 or later. offsets (n + 1): chain i has the steps offsets[i] to
    offsets[i + 1]. Per step: wait_s, volume_bytes (0: the step only marks an instant), peak_bytes_per_s
    (what it reaches alone), weight (its share when bandwidth is short, and how much it disturbs others),
    channel (which of the totals it counts in: 0, 1, ...).
    """

    start_s: Reals
    offsets: Ints
    wait_s: Reals
    volume_bytes: Reals
    peak_bytes_per_s: Reals
    weight: Reals
    channel: Ints


@dataclass(frozen=True, slots=True)
class Pipe:
    """What is shared: its capacity, and the share of speed that each other transfer's weight costs.

    Disks that serve several streams seek between them (IOSI, section 1): with others of total weight w
    active, a transfer's peak falls to peak / (1 + seek_loss_ratio * w).
    """

    capacity_bytes_per_s: float
    seek_loss_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class Shared:
    """When every transfer ran, and all of them together.

    start_s, end_s (steps): NaN where the horizon came first. moved_bytes (steps): by the horizon.
    at_s (events), moved_total_bytes (events, channels): all bytes moved by then; between events they grow
    linearly. served_event, served_step, served_bytes (m): what a step moved between the event before and that one;
    what it moved at the event itself has a row of its own.
    """

    start_s: Reals
    end_s: Reals
    moved_bytes: Reals
    at_s: Reals
    moved_total_bytes: Reals
    served_event: Ints
    served_step: Ints
    served_bytes: Reals

    def volumes(self, edges_s: Reals) -> Reals:
        """Return the bytes moved between neighbouring instants (edges - 1, channels)."""
        totals = [np.interp(edges_s, self.at_s, column) for column in self.moved_total_bytes.T]
        return np.diff(np.stack(totals, axis=1), axis=0)


def fair_rates(peaks: list[float], weights: list[float], pipe: Pipe) -> list[float]:
    """Return the max-min fair rates of active transfers: each its peak, or its weight's share if that is less."""
    total_weight = sum(weights)
    loss = pipe.seek_loss_ratio
    limits = [peak / (1.0 + loss * (total_weight - own)) for peak, own in zip(peaks, weights, strict=True)]
    left = pipe.capacity_bytes_per_s
    if sum(limits) <= left:
        return limits
    rates = [0.0] * len(limits)
    for index in sorted(range(len(limits)), key=lambda i: limits[i] / weights[i]):
        rates[index] = min(limits[index], left * weights[index] / total_weight)
        left -= rates[index]
        total_weight -= weights[index]
    return rates


def share(chains: Chains, pipe: Pipe, until_s: float) -> Shared:
    """Run all chains through the pipe until the horizon."""
    run = _Run.of(chains)
    totals = [0.0] * (int(chains.channel.max(initial=0)) + 1)
    events, moved = [0.0], [list(totals)]
    now = 0.0
    while (then := run.next_event_s(now)) <= until_s:
        run.advance(then - now, totals, len(events))
        now = then
        run.finish_done(now, totals, len(events))
        run.begin_due(now)
        run.set_rates(pipe)
        events.append(now)
        moved.append(list(totals))
    run.advance(until_s - now, totals, len(events))
    events.append(until_s)
    moved.append(totals)
    return run.result(np.array(events), np.array(moved))


@dataclass(slots=True)
class _Run:
    """The state of all chains at an instant; plain lists, since few transfers are active at a time."""

    wait_s: list[float]
    peak: list[float]
    weight: list[float]
    channel: list[int]
    is_last: list[bool]
    volume: list[float]
    remaining: list[float]
    started: Reals
    ended: Reals
    due: list[tuple[float, int]]
    active: list[int] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    served: list[tuple[int, int, float]] = field(default_factory=list)

    @classmethod
    def of(cls, chains: Chains) -> _Run:
        """Return the state before anything has begun."""
        count = len(chains.wait_s)
        sizes = np.diff(chains.offsets)
        first, last = chains.offsets[:-1][sizes > 0], chains.offsets[1:][sizes > 0] - 1
        is_last = np.zeros(count, dtype=np.bool_)
        is_last[last] = True
        due_s = chains.start_s[sizes > 0] + chains.wait_s[first]
        due = list(zip(due_s.tolist(), first.tolist(), strict=True))
        heapq.heapify(due)
        volume: list[float] = chains.volume_bytes.tolist()
        return cls(
            chains.wait_s.tolist(), chains.peak_bytes_per_s.tolist(), chains.weight.tolist(),
            chains.channel.tolist(), is_last.tolist(), volume, list(volume),
            np.full(count, np.nan), np.full(count, np.nan), due,
        )  # fmt: skip

    def next_event_s(self, now: float) -> float:
        """Return when the next transfer begins or ends; infinity when none is left."""
        ends = [now + self.remaining[step] / rate for step, rate in zip(self.active, self.rates, strict=True)]
        begins = self.due[0][0] if self.due else np.inf
        return max(now, min([begins, *ends]))

    def advance(self, lasting_s: float, totals: list[float], event: int) -> None:
        """Move what the active transfers move in that time, until the event of that number."""
        for step, rate in zip(self.active, self.rates, strict=True):
            moved = min(rate * lasting_s, self.remaining[step])
            self.remaining[step] -= moved
            totals[self.channel[step]] += moved
            self.served.append((event, step, moved))

    def begin_due(self, now: float) -> None:
        """Begin every transfer that is due; one without volume is over at once."""
        while self.due and self.due[0][0] <= now:
            at, step = heapq.heappop(self.due)
            self.started[step] = at
            if self.volume[step] > 0:
                self.active.append(step)
            else:
                self.end(step, at)

    def finish_done(self, now: float, totals: list[float], event: int) -> None:
        """End every transfer of which nothing is left to speak of; the rest of it moves at once."""
        still: list[int] = []
        for step, rate in zip(self.active, self.rates, strict=True):
            if self.remaining[step] > rate * _DONE_S:
                still.append(step)
                continue
            totals[self.channel[step]] += self.remaining[step]
            self.served.append((event, step, self.remaining[step]))
            self.remaining[step] = 0.0
            self.end(step, now)
        self.active = still

    def end(self, step: int, at: float) -> None:
        """Note a step's end and when the chain's next one is due."""
        self.ended[step] = at
        if not self.is_last[step]:
            heapq.heappush(self.due, (at + self.wait_s[step + 1], step + 1))

    def set_rates(self, pipe: Pipe) -> None:
        """Share the pipe among the transfers that are active now."""
        peaks, weights = [self.peak[i] for i in self.active], [self.weight[i] for i in self.active]
        self.rates = fair_rates(peaks, weights, pipe)

    def result(self, events_s: Reals, totals: Reals) -> Shared:
        """Return all that came of it."""
        moved = np.array(self.volume) - np.array(self.remaining)
        events, steps, served = zip(*self.served, strict=True) if self.served else ((), (), ())
        return Shared(
            self.started, self.ended, moved, events_s, totals,
            np.array(events, dtype=np.int64), np.array(steps, dtype=np.int64), np.array(served, dtype=np.float64),
        )  # fmt: skip
