"""Simulate the contention of transfers that share a bandwidth, by event-driven weighted processor sharing.

The shared storage system is a fluid model: at any time, the active transfers get the max-min fair rates that their
peaks, weights and the system's capacity allow. A chain is the sequence of steps of one job, each a computation and then
a transfer; a slow transfer delays all later steps. This reproduces both effects that IOSI describes (Liu et al.,
FAST'14, section 4): bursts are stretched (scaling) and shifted (drift), and their volume is preserved.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from iosig.transforms.arrays import Ints, Reals

#: remaining time at which a transfer counts as complete; shorter steps would vanish in floating-point times
_COMPLETION_S = 1e-6


@dataclass(frozen=True, slots=True)
class Chains:
    """Chains of steps; each step is a wait followed by a transfer.

    Attributes
    ----------
    start_s : (n,)
        Start of each chain, nonnegative [s].
    offsets : (n + 1,)
        Chain i has the steps offsets[i] to offsets[i + 1].
    wait_s : (steps,)
        Wait before the transfer [s].
    volume_bytes : (steps,)
        0 for steps that only mark a time.
    peak_bytes_per_s : (steps,)
        Rate without contention.
    weight : (steps,)
        Weight in the division of limited bandwidth, and in the disturbance of other transfers.
    channel : (steps,)
        Index of the total toward which the transfer counts.
    """

    start_s: Reals
    offsets: Ints
    wait_s: Reals
    volume_bytes: Reals
    peak_bytes_per_s: Reals
    weight: Reals
    channel: Ints


@dataclass(frozen=True, slots=True)
class SharedBandwidth:
    """Shared bandwidth: its capacity, and the loss of speed per unit weight of other transfers.

    Disks that serve several streams seek between them (IOSI, section 1): with other transfers of total weight w, the
    peak of a transfer is reduced to peak / (1 + seek_loss_ratio * w).
    """

    capacity_bytes_per_s: float
    seek_loss_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class SharingResult:
    """Times of all transfers, and the totals over time.

    Attributes
    ----------
    start_s, end_s : (steps,)
        Start and end of each transfer [s]; NaN if beyond the horizon.
    moved_bytes : (steps,)
        Bytes moved until the horizon.
    at_s : (events,)
        Times of events [s].
    moved_total_bytes : (events, channels)
        Cumulative bytes; linear between events.
    served_event, served_step, served_bytes : (m,)
        Bytes that a step moved between the previous event and the given one. Bytes moved at the event itself are in a
        separate row.
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
        """Compute the bytes moved between adjacent times, shape (edges - 1, channels)."""
        totals = [np.interp(edges_s, self.at_s, column) for column in self.moved_total_bytes.T]
        return np.diff(np.stack(totals, axis=1), axis=0)


def fair_rates(peaks: list[float], weights: list[float], bandwidth: SharedBandwidth) -> list[float]:
    """Compute the max-min fair rates of active transfers.

    Parameters
    ----------
    peaks, weights
        Peak [bytes/s] and weight of each transfer.
    bandwidth
        Shared bandwidth.

    Returns
    -------
    list[float]
        Rate of each transfer [bytes/s]: its reduced peak, or, if that is less, its part of the capacity by weight.
    """
    total_weight = sum(weights)
    loss = bandwidth.seek_loss_ratio
    limits = [peak / (1.0 + loss * (total_weight - weight)) for peak, weight in zip(peaks, weights, strict=True)]
    remaining = bandwidth.capacity_bytes_per_s
    if sum(limits) <= remaining:
        return limits
    rates = [0.0] * len(limits)
    for index in sorted(range(len(limits)), key=lambda i: limits[i] / weights[i]):
        rates[index] = min(limits[index], remaining * weights[index] / total_weight)
        remaining -= rates[index]
        total_weight -= weights[index]
    return rates


def simulate_sharing(chains: Chains, bandwidth: SharedBandwidth, until_s: float) -> SharingResult:
    """Simulate all chains on the shared bandwidth up to a horizon.

    Parameters
    ----------
    chains
        Steps of all chains.
    bandwidth
        Shared bandwidth.
    until_s
        Horizon [s].

    Returns
    -------
    SharingResult
        Times and volumes of all steps.
    """
    simulation = _Simulation.from_chains(chains)
    totals = [0.0] * (int(chains.channel.max(initial=0)) + 1)
    events, moved_bytes = [0.0], [list(totals)]
    now_s = 0.0
    while (next_s := simulation.next_event_s(now_s)) <= until_s:
        simulation.advance(next_s - now_s, totals, len(events))
        now_s = next_s
        simulation.complete_transfers(now_s, totals, len(events))
        simulation.start_due(now_s)
        simulation.set_rates(bandwidth)
        events.append(now_s)
        moved_bytes.append(list(totals))
    simulation.advance(until_s - now_s, totals, len(events))
    events.append(until_s)
    moved_bytes.append(totals)
    return simulation.result(np.array(events), np.array(moved_bytes))


@dataclass(slots=True)
class _Simulation:
    """State of all chains at one time; it consists of plain lists, since few transfers are active at a time."""

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
    def from_chains(cls, chains: Chains) -> _Simulation:
        """Create the initial state, in which all chains wait."""
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

    def next_event_s(self, now_s: float) -> float:
        """Time at which the next transfer starts or ends; infinity without transfers."""
        ends = [now_s + self.remaining[step] / rate for step, rate in zip(self.active, self.rates, strict=True)]
        begins = self.due[0][0] if self.due else np.inf
        return max(now_s, min([begins, *ends]))

    def advance(self, duration_s: float, totals: list[float], event: int) -> None:
        """Move data of the active transfers for a duration that ends at event number `event`."""
        for step, rate in zip(self.active, self.rates, strict=True):
            moved_bytes = min(rate * duration_s, self.remaining[step])
            self.remaining[step] -= moved_bytes
            totals[self.channel[step]] += moved_bytes
            self.served.append((event, step, moved_bytes))

    def start_due(self, now_s: float) -> None:
        """Start all transfers that are due, and end those without volume immediately."""
        while self.due and self.due[0][0] <= now_s:
            at, step = heapq.heappop(self.due)
            self.started[step] = at
            if self.volume[step] > 0:
                self.active.append(step)
            else:
                self.end(step, at)

    def complete_transfers(self, now_s: float, totals: list[float], event: int) -> None:
        """End all transfers that are nearly complete, and move their remainder."""
        active: list[int] = []
        for step, rate in zip(self.active, self.rates, strict=True):
            if self.remaining[step] > rate * _COMPLETION_S:
                active.append(step)
                continue
            totals[self.channel[step]] += self.remaining[step]
            self.served.append((event, step, self.remaining[step]))
            self.remaining[step] = 0.0
            self.end(step, now_s)
        self.active = active

    def end(self, step: int, at: float) -> None:
        """Record a step's end, and schedule the next step of its chain."""
        self.ended[step] = at
        if not self.is_last[step]:
            heapq.heappush(self.due, (at + self.wait_s[step + 1], step + 1))

    def set_rates(self, bandwidth: SharedBandwidth) -> None:
        """Divide the bandwidth among the active transfers."""
        peaks, weights = [self.peak[i] for i in self.active], [self.weight[i] for i in self.active]
        self.rates = fair_rates(peaks, weights, bandwidth)

    def result(self, events_s: Reals, totals: Reals) -> SharingResult:
        """Collect times and volumes of all steps."""
        moved_bytes = np.array(self.volume) - np.array(self.remaining)
        events, steps, served = zip(*self.served, strict=True) if self.served else ((), (), ())
        return SharingResult(
            self.started, self.ended, moved_bytes, events_s, totals,
            np.array(events, dtype=np.int64), np.array(steps, dtype=np.int64), np.array(served, dtype=np.float64),
        )  # fmt: skip
