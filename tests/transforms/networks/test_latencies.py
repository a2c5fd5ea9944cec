"""Latencies between layers: examples, any order of events, any number of layers, and the naive implementation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.networks.clock_skew import correct_events, estimate_skew, select_opens
from iosig.transforms.networks.latencies import TRANSFERS, RequestMatcher
from tests import request_event_files
from tests.budget import examples
from tests.naive.networks import latencies as naive
from tests.naive.networks.latencies import Event

SCHEMA = {
    "layer_number": pl.Int64,
    "node": pl.String,
    "rank": pl.Int64,
    "request_id": pl.String,
    "event_kind": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "peer": pl.String,
    "event_bytes": pl.Float64,
    "direction": pl.String,
}
HORIZON_S = 100.0


def frame(events: Sequence[Event]) -> pl.DataFrame:
    assert [field.name for field in fields(Event)] == list(SCHEMA)
    return pl.DataFrame([astuple(event) for event in events], schema=SCHEMA, orient="row")


def match(
    events: Sequence[Event], layers: Sequence[int] = (0, 1, 2), piece: int = 1000, horizon_s: float = HORIZON_S
) -> tuple[list[tuple[object, ...]], list[int]]:
    matcher = RequestMatcher(layers, horizon_s=horizon_s)
    parts = [matcher.add(part) for part in frame(events).iter_slices(piece)]
    transfers = pl.concat([*parts, matcher.finish()])
    assert transfers.schema == TRANSFERS
    return sorted(transfers.rows(), key=repr), matcher.unmatched_count.tolist()


#: A write of rank 3 through I/O node "io" to two storage nodes.
WRITE = (
    Event(0, "3", 3, "a", "request", 1.0, 9.0, None, 100.0, "write"),
    Event(1, "io", 3, "a", "receive", 1.5, 2.0, "3"),
    Event(1, "io", 3, "a", "send", 2.0, 2.5, "s0", 60.0),
    Event(1, "io", 3, "a", "send", 2.25, 2.75, "s1"),
    Event(2, "s0", 3, "a", "receive", 2.5, 3.0, "io", 59.0),
    Event(2, "s1", 3, "a", "receive", 2.0, 2.125, "io"),
    Event(2, "s0", 3, "a", "write", 3.0, 7.0, None, 59.0),
)


def test_request_is_matched_through_three_layers() -> None:
    transfers, unmatched = match(WRITE)
    assert transfers == [
        (0, "3", "io", 3, 1.0, 0.5, 100.0, 0.5, False),
        (1, "io", "s0", 3, 2.0, 1.0, 59.0, 0.5, False),
        # The clock of s1 is behind: the latency is negative. The size of a part of a request is unknown.
        (1, "io", "s1", 3, 2.25, -0.125, None, 0.125, False),
        (2, "s0", "s0", 3, 3.0, 4.0, 59.0, 4.0, False),
    ]
    assert unmatched == [0, 0, 0]


def test_size_of_a_request_applies_to_a_single_transfer() -> None:
    transfers, _ = match([WRITE[0], WRITE[1], WRITE[3], WRITE[5]])
    assert [row[6] for row in transfers] == [100.0, 100.0]


def test_requests_without_response_are_counted() -> None:
    transfers, unmatched = match([WRITE[0], *WRITE[4:]])
    assert [row[0] for row in transfers] == [2]
    assert unmatched == [1, 0, 2]


def test_responses_without_request_are_counted() -> None:
    transfers, unmatched = match(WRITE[1:4])
    assert (transfers, unmatched) == ([], [0, 3, 0])


def test_earliest_response_is_matched() -> None:
    later = Event(1, "other", 3, "a", "queue", 1.75, 1.8)
    transfers, _ = match([WRITE[0], later, WRITE[1]])
    assert [row[2] for row in transfers] == ["io"]


def test_sends_between_the_same_nodes_match_in_order() -> None:
    sends = [Event(1, "io", 0, "r", "send", float(t), t + 0.5, "s") for t in (1, 2, 3)]
    receives = [Event(2, "s", 0, "r", "receive", t + 0.1, t + 0.25, "io") for t in (3, 1, 2)]
    transfers, unmatched = match([*receives, *sends])
    assert [row[4:6] for row in transfers] == [(1.0, 0.25), (2.0, 0.25), (3.0, 0.25)]
    # The first event at the I/O node has no request.
    assert unmatched == [0, 1, 0]


@pytest.mark.parametrize(("send_peer", "receive_peer"), [("s", "io"), ("s", None), (None, "io"), (None, None)])
def test_peer_may_be_unknown_on_either_side(send_peer: str | None, receive_peer: str | None) -> None:
    send = Event(1, "io", 0, "r", "send", 1.0, 1.5, send_peer)
    receive = Event(2, "s", 0, "r", "receive", 1.0, 2.0, receive_peer)
    assert [row[:6] for row in match([send, receive])[0]] == [(1, "io", "s", 0, 1.0, 1.0)]


def test_different_nodes_do_not_match() -> None:
    send = Event(1, "io", 0, "r", "send", 1.0, 1.5, "s")
    receive = Event(2, "other", 0, "r", "receive", 1.0, 2.0, "io")
    assert match([send, receive]) == ([], [0, 2, 1])


def test_request_ids_are_unique_per_rank() -> None:
    events = [Event(0, str(rank), rank, "1", "request", 1.0 + rank, 5.0, None, 8.0, "read") for rank in range(3)] + [
        Event(1, "io", rank, "1", "receive", 1.25 + rank, 2.0) for rank in range(3)
    ]
    transfers, _ = match(events, (0, 1))
    assert [(row[1], row[5], row[8]) for row in transfers] == [(str(rank), 0.25, True) for rank in range(3)]


def test_matching_works_for_two_or_five_layers() -> None:
    two = [Event(3, "0", 0, "r", "request", 1.0, 2.0), Event(7, "s", 0, "r", "write", 1.5, 1.75, "sda", 4.0)]
    assert match(two, (3, 7)) == (
        [
            (0, "0", "s", 0, 1.0, 0.5, 4.0, 0.25, False),
            (1, "s", "sda", 0, 1.5, 0.25, 4.0, 0.25, False),
        ],
        [0, 0],
    )
    five = [Event(0, "0", 0, "r", "request", 0.0, 9.0, None, 4.0, "write"), Event(1, "1", 0, "r", "send", 1.0, 2.0)]
    five += [Event(n, str(n), 0, "r", "receive", n, n + 0.5) for n in (2, 3, 4)]
    five += [Event(n, str(n), 0, "r", "send", n + 0.5, n + 0.75) for n in (2, 3)]
    transfers, unmatched = match(five, (0, 1, 2, 3, 4))
    assert [(row[0], row[5], row[6]) for row in transfers] == [
        (0, 1.0, 4.0),
        (1, 1.5, 4.0),
        (2, 1.0, 4.0),
        (3, 1.0, 4.0),
    ]
    assert unmatched == [0] * 5


def test_events_of_other_layers_are_ignored() -> None:
    assert match([*WRITE, Event(5, "x", 3, "a", "receive", 1.0, 2.0)]) == match(WRITE)


def test_events_without_request_id_are_ignored() -> None:
    assert match([Event(0, "3", 3, None, "open", 0.5, 0.75), *WRITE]) == match(WRITE)


def test_late_event_starts_another_request() -> None:
    late = [WRITE[0], Event(1, "io", 3, "a", "receive", 1.5 + HORIZON_S, 103.0)]
    assert match(late) == ([], [1, 1, 0])
    assert len(match(late, horizon_s=2 * HORIZON_S)[0]) == 1


def test_completed_requests_do_not_remain_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iosig.transforms.networks.latencies._MIN_PASS_ROWS", 4)
    matcher = RequestMatcher((0, 1), horizon_s=1.0)
    counts = []
    for start in range(0, 400, 4):
        events = [Event(0, "0", 0, str(n), "request", float(n), n + 1.0) for n in range(start, start + 4)]
        events += [Event(1, "io", 0, str(n), "receive", n + 0.5, n + 1.0) for n in range(start, start + 4)]
        counts.append(matcher.add(frame(events)).height)
    assert sum(counts) > 380
    assert max(counts) < 20
    assert sum(counts) + matcher.finish().height == 400
    assert matcher.dropped_count == 0


def test_oldest_requests_beyond_the_limit_are_dropped() -> None:
    matcher = RequestMatcher((0, 1), horizon_s=1e6, max_pending_count=10)
    requests = [Event(0, "0", 0, str(n), "request", float(n), n + 1.0) for n in range(100)]
    answers = [Event(1, "io", 0, str(n), "receive", n + 0.5, n + 1.0) for n in range(100)]
    transfers = [matcher.add(part) for part in frame(requests).iter_slices(5)]
    transfers += [matcher.add(part) for part in frame(answers).iter_slices(5)]
    transfers = pl.concat([*transfers, matcher.finish()])
    assert 0 < transfers.height <= 20
    assert (transfers["time_s"] == 0.5).all()
    assert matcher.unmatched_count.tolist() == [100 - transfers.height] * 2
    assert matcher.dropped_count > 0


@pytest.mark.parametrize("layers", [(), (0,), (1, 0), (0, 0)])
def test_single_or_unsorted_layers_are_rejected(layers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="ascending"):
        RequestMatcher(layers)


@pytest.mark.parametrize("arguments", [{"horizon_s": 0.0}, {"horizon_s": float("nan")}, {"max_pending_count": 0}])
def test_nonpositive_limits_are_rejected(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        RequestMatcher((0, 1), **arguments)  # type: ignore[arg-type]


def test_empty_input_has_no_transfers() -> None:
    assert match([]) == ([], [0, 0, 0])


# ---- properties


def _event(place: tuple[int, float], rest: tuple[object, ...]) -> Event:
    (_, began), (layer, node, rank, request, kind, lasts, peer, size, direction) = place, rest
    return Event(layer, node, rank, request, kind, began, began + lasts, peer, size, direction)  # type: ignore[arg-type, operator]


_REST = st.tuples(
    st.integers(0, 3),
    st.sampled_from(["a", "b"]),
    st.integers(0, 1),
    st.sampled_from(["0", "1", "01", None]),
    st.sampled_from(["request", "send", "send", "receive", "receive", "write", "open"]),
    st.sampled_from([0.0, 0.25, 2.0]),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, 0.0, 64.0]),
    st.sampled_from([None, "read", "write"]),
)
#: Events that begin at different times, as the order of simultaneous events is undefined.
EVENTS = st.lists(_REST, max_size=30).flatmap(
    lambda rests: st.permutations(range(len(rests))).map(
        lambda order: [_event((0, place * 1.5), rest) for place, rest in zip(order, rests, strict=True)]
    )
)
LAYERS = st.sampled_from([(0, 1), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3), (0, 3)])
QUICK = settings(max_examples=examples(25), deadline=None)


@QUICK
@given(EVENTS, LAYERS, st.sampled_from([2.0, 10.0, 1000.0]))
def test_latencies_match_naive_implementation(events: list[Event], layers: tuple[int, ...], horizon_s: float) -> None:
    transfers, unmatched = match(events, layers, horizon_s=horizon_s)
    assert (transfers, unmatched) == naive.transfers(events, layers, horizon_s)


@QUICK
@given(EVENTS, LAYERS, st.integers(1, 7), st.randoms(use_true_random=False))
def test_order_and_chunks_do_not_matter_within_the_horizon(
    events: list[Event], layers: tuple[int, ...], piece: int, chance: object
) -> None:
    horizon_s = 4.0
    late = sorted(events, key=lambda event: event.start_s + chance.uniform(0, horizon_s))  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("iosig.transforms.networks.latencies._MIN_PASS_ROWS", 1)
        streamed = match(late, layers, piece, horizon_s)
    assert streamed == match(events, layers, horizon_s=horizon_s)


@QUICK
@given(EVENTS, st.randoms(use_true_random=False))
def test_order_of_simultaneous_events_does_not_matter(events: list[Event], chance: object) -> None:
    at_once = [
        Event(*astuple(event)[:5], event.start_s // 6, event.start_s // 6 + 1.0, *astuple(event)[7:])
        for event in events
    ]
    shuffled = list(at_once)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert match(at_once, (0, 1, 2, 3)) == match(shuffled, (0, 1, 2, 3))


# ---- planted traces


def test_planted_latencies_are_recovered() -> None:
    plan = request_event_files.Plan(rank_count=32, slow_storage_node=1, skew_s=0.05)
    events = request_event_files.landed(request_event_files.planted(plan))
    skew = estimate_skew(select_opens(events), plan.rank_count)
    matcher = RequestMatcher((0, 1, 2))
    raw = pl.concat([matcher.add(events), matcher.finish()])
    again = RequestMatcher((0, 1, 2))
    transfers = pl.concat([again.add(correct_events(events, skew, 0)), again.finish()])
    request_count = plan.rank_count * plan.requests_per_rank
    # Uncorrected clocks make latencies negative; corrected clocks do not.
    assert (raw["time_s"] < 0).sum() > request_count // 4
    assert (transfers["time_s"] < 0).sum() == 0
    first, inner, write = (transfers.filter(pl.col("hop") == hop) for hop in range(3))
    assert (first.height, inner.height, write.height) == (request_count, 2 * request_count, 2 * request_count)
    assert np.abs(first["time_s"].to_numpy() - plan.first_latency_s).max() < plan.open_jitter_s
    assert inner["time_s"].to_numpy() == pytest.approx(plan.inner_latency_s)
    slow = pl.col("source") == "1"
    assert write.filter(slow)["time_s"].to_numpy() == pytest.approx(10 * plan.write_time_s)
    assert write.filter(~slow)["time_s"].to_numpy() == pytest.approx(plan.write_time_s)
    assert [part["size_bytes"].sum() for part in (first, inner, write)] == [request_count * plan.request_bytes] * 3
    assert again.unmatched_count.tolist() == [0, 0, 0]
