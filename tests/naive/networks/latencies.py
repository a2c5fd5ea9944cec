"""Naive implementation of `iosig.transforms.networks.latencies`: request by request, with all events in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a request in a layer."""

    layer_number: int
    node: str
    rank: int
    request_id: str | None
    event_kind: str
    start_s: float
    end_s: float
    peer: str | None = None
    event_bytes: float | None = None
    direction: str | None = None


#: Hop, source, target, rank, at_s, time_s, size_bytes, duration_s, is_read.
Transfer = tuple[int, str, str, int, float, float, float | None, float, bool]


def _time(event: Event) -> tuple[float, float, str]:
    return event.start_s, event.end_s, repr(event)


def requests(events: Sequence[Event], horizon_s: float) -> list[list[Event]]:
    """Split events by rank and request id, and at pauses longer than the horizon."""
    by_key: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for event in events:
        if event.request_id is not None:
            by_key[event.rank, event.request_id].append(event)
    found = []
    for together in by_key.values():
        together.sort(key=_time)
        current = [together[0]]
        for event in together[1:]:
            if event.start_s - current[-1].start_s > horizon_s:
                found.append(current)
                current = []
            current.append(event)
        found.append(current)
    return found


def _pairs(sends: list[Event], receives: list[Event]) -> list[tuple[Event, Event]]:
    """Match events with known peers first; of several matches, the earliest send with the earliest receive."""
    sends, receives = sorted(sends, key=_time), sorted(receives, key=_time)
    found = []
    for send_tells, receive_tells in ((True, True), (True, False), (False, True), (False, False)):
        for send in list(sends):
            if (send.peer is not None) != send_tells:
                continue
            for receive in receives:
                if (receive.peer is not None) != receive_tells:
                    continue
                if (send_tells and send.peer != receive.node) or (receive_tells and receive.peer != send.node):
                    continue
                found.append((send, receive))
                sends.remove(send)
                receives.remove(receive)
                break
    return found


def transfers(
    events: Sequence[Event], layer_numbers: Sequence[int], horizon_s: float
) -> tuple[list[Transfer], list[int]]:
    """Return all transfers, sorted, and the number of unmatched events of each layer."""
    found: list[Transfer] = []
    unmatched = [0] * len(layer_numbers)
    of_layers = [event for event in events if event.layer_number in layer_numbers]
    for together in requests(of_layers, horizon_s):
        layers = [[event for event in together if event.layer_number == number] for number in layer_numbers]
        request = min(layers[0], key=_time) if layers[0] else None
        crossings = _crossed(layers, request, unmatched)
        pieces = Counter(hop for hop, *_ in crossings)
        for hop, outer, inner, target, time_s in crossings:
            size = inner.event_bytes if inner.event_bytes is not None else outer.event_bytes
            if size is None and request is not None and pieces[hop] == 1:
                size = request.event_bytes
            direction = inner.direction or outer.direction
            if direction is None and outer is inner:
                direction = "write"
            if direction is None and request is not None:
                direction = request.direction
            lasted = inner.end_s - inner.start_s
            found.append(
                (hop, outer.node, target, outer.rank, outer.start_s, time_s, size, lasted, direction == "read")
            )
    return sorted(found, key=repr), unmatched


def _crossed(
    layers: list[list[Event]], request: Event | None, unmatched: list[int]
) -> list[tuple[int, Event, Event, str, float]]:
    found: list[tuple[int, Event, Event, str, float]] = []
    answer = min(layers[1], key=_time) if layers[1] else None
    if request is not None and answer is not None:
        found.append((0, request, answer, answer.node, answer.start_s - request.start_s))
    elif request is not None:
        unmatched[0] += 1
    elif answer is not None:
        unmatched[1] += 1
    for hop in range(1, len(layers) - 1):
        sends = [event for event in layers[hop] if event.event_kind == "send"]
        receives = [event for event in layers[hop + 1] if event.event_kind == "receive"]
        pairs = _pairs(sends, receives)
        unmatched[hop] += len(sends) - len(pairs)
        unmatched[hop + 1] += len(receives) - len(pairs)
        found += [(hop, send, receive, receive.node, receive.end_s - send.start_s) for send, receive in pairs]
    for event in layers[-1]:
        if event.event_kind == "write":
            target = event.node if event.peer is None else event.peer
            found.append((len(layers) - 1, event, event, target, event.end_s - event.start_s))
    return found
