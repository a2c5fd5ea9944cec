"""Latencies between layers: events of one request, seen in several layers, become the transfers between these.

Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13), section IV.A. Events
belong together by the rank that made the request and the request's id, "unique per request per MPI rank". Between the
outermost layer and the next one, a latency is from the start of the request to the start of the next layer's first
event for it; further inward, from the start of a send to the end of the receive that answers it; and at the innermost
layer, how long a write took. Clocks that differ make latencies negative: these stay so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints

#: what crossed each hop; what is not known is NULL
TRANSFERS = pl.Schema(
    {
        "hop": pl.Int32(),
        "source": pl.String(),
        "target": pl.String(),
        "rank": pl.Int64(),
        "at_s": pl.Float64(),
        "time_s": pl.Float64(),
        "size_bytes": pl.Float64(),
        "duration_s": pl.Float64(),
        "is_read": pl.Boolean(),
    }
)
_EVENTS = (
    "layer_number",
    "node",
    "rank",
    "request_id",
    "event_kind",
    "peer",
    "began_s",
    "ceased_s",
    "event_bytes",
    "direction",
)
#: what a transfer has from the event at its end
_OF_ANSWER = ["request", "node", "began_s", "ceased_s", "event_bytes", "direction"]
#: fewer events than these are not worth a pass
_PASS_ROWS = 1 << 19
#: which ends of sends and receives say the other end: both, one of them, none
_PEERS_TOLD = ((True, True), (True, False), (False, True), (False, False))


class RequestMatcher:
    """Matches events across layers, as they come, with bounded memory.

    layer_numbers: the layers that are to be connected, outermost first; events of others are left alone. horizon_s:
    events may come late by as much, in any order, without a change of the result; and of one request, no event begins
    later than that after the one before: what does, counts as another request's. most_pending_count: of more events
    than these that wait for others, the requests with the oldest are given up, with what was found of them so far.
    """

    def __init__(
        self, layer_numbers: Sequence[int], *, horizon_s: float = 60.0, most_pending_count: int = 2_000_000
    ) -> None:
        if len(layer_numbers) < 2 or sorted(set(layer_numbers)) != list(layer_numbers):
            raise ValueError("layer_numbers are two or more, rising")
        if not horizon_s > 0 or most_pending_count < 1:
            raise ValueError("horizon_s and most_pending_count are above 0")
        self._layer_numbers = tuple(layer_numbers)
        self._horizon_s = horizon_s
        self._most_pending_count = most_pending_count
        self._waiting: list[pl.DataFrame] = []
        self._waiting_count = 0
        self._pass_count = min(_PASS_ROWS, most_pending_count)
        self._latest_s = -np.inf
        #: by layer: requests without an answer in the next layer, first events there without a request, sends without
        #: a receive and receives without a send
        self.unmatched_count: Ints = np.zeros(len(layer_numbers), dtype=np.int64)
        #: requests that were given up for want of room
        self.given_up_count = 0

    def add(self, events: pl.DataFrame) -> pl.DataFrame:
        """Take events (rows of `request_events`, or their columns) and return the transfers (TRANSFERS) of those done.

        Events without a request's id belong to none. Mostly nothing is returned: many events are matched at a time.
        """
        known = events.lazy().select(_EVENTS).filter(pl.col("request_id").is_not_null())
        placed = known.filter(pl.col("layer_number").is_in(self._layer_numbers)).collect()
        if not placed.is_empty():
            self._waiting.append(placed)
            self._waiting_count += placed.height
            self._latest_s = max(self._latest_s, float(placed.select(pl.col("began_s").max()).item()))
        # Each pass looks at all that waits: only twice as many are worth the next one.
        if self._waiting_count < self._pass_count:
            return TRANSFERS.to_frame()
        found = self._matched(self._latest_s - 2 * self._horizon_s)
        self._pass_count = min(max(_PASS_ROWS, 2 * self._waiting_count), self._waiting_count + self._most_pending_count)
        return found

    def finish(self) -> pl.DataFrame:
        """Return the transfers (TRANSFERS) of all requests that still wait."""
        return self._matched(np.inf)

    def _matched(self, done_s: float) -> pl.DataFrame:
        """Match the requests whose last event began before `done_s`, and keep the others waiting."""
        if not self._waiting:
            return TRANSFERS.to_frame()
        events = _by_request(pl.concat(self._waiting), self._horizon_s)
        last_s = events.group_by("request").agg(pl.len(), pl.col("began_s").max()).sort("began_s", "request")
        is_done = last_s["began_s"].to_numpy() < done_s
        # So many requests, the oldest first, must go for the others to have room.
        later_count = last_s["len"].cast(pl.Int64).reverse().cum_sum().reverse()
        is_over = (later_count > self._most_pending_count).to_numpy()
        self.given_up_count += int((is_over & ~is_done).sum())
        gone = np.zeros(last_s.height, dtype=np.bool_)
        gone[last_s["request"].to_numpy()] = is_done | is_over
        is_gone = pl.Series(gone).gather(events["request"])
        waiting = events.filter(~is_gone).drop("request")
        self._waiting, self._waiting_count = ([waiting], waiting.height) if waiting.height else ([], 0)
        return self._transfers(events.filter(is_gone))

    def _transfers(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the transfers of whole requests; `request` numbers these."""
        layers = [events.filter(pl.col("layer_number") == number) for number in self._layer_numbers]
        requests = _first(layers[0])
        hops = [self._first_hop(requests, layers[1])]
        hops += [self._inner_hop(hop, layers[hop], layers[hop + 1]) for hop in range(1, len(layers) - 1)]
        hops.append(_written(len(layers) - 1, layers[-1]))
        return _finished(pl.concat(hops), requests)

    def _first_hop(self, requests: pl.DataFrame, next_layer: pl.DataFrame) -> pl.DataFrame:
        answers = _first(next_layer)
        pairs = requests.join(answers.select(_OF_ANSWER), on="request", how="inner", suffix="_in")
        self.unmatched_count[0] += requests.height - pairs.height
        self.unmatched_count[1] += answers.height - pairs.height
        return _crossed(0, pairs, pl.col("began_s_in") - pl.col("began_s"))

    def _inner_hop(self, hop: int, outer: pl.DataFrame, inner: pl.DataFrame) -> pl.DataFrame:
        sends = outer.filter(pl.col("event_kind") == "send").with_row_index("send")
        receives = inner.filter(pl.col("event_kind") == "receive").with_row_index("receive")
        pairs = _paired(sends, receives)
        self.unmatched_count[hop] += sends.height - pairs.height
        self.unmatched_count[hop + 1] += receives.height - pairs.height
        return _crossed(hop, pairs, pl.col("ceased_s_in") - pl.col("began_s"))


def _by_request(events: pl.DataFrame, horizon_s: float) -> pl.DataFrame:
    """Add `request`, the number of the request from 0; a pause longer than the horizon parts two."""
    keys = ["rank", "request_id"]
    spans = (
        events.group_by(keys)
        .agg(is_long=pl.col("began_s").max() - pl.col("began_s").min() > horizon_s)
        .with_row_index("request")
    )
    # Joining the keys alone spares copying all the rest.
    numbers = events.select(keys).join(spans, on=keys, how="left", maintain_order="left")
    numbered = events.with_columns(numbers.select("request", "is_long"))
    if not spans["is_long"].any():
        return numbered.drop("is_long")
    long = numbered.filter("is_long").sort("request", "began_s", maintain_order=True)
    is_new = (pl.col("request") != pl.col("request").shift()) | (pl.col("began_s").diff() > horizon_s)
    parted = long.with_columns(request=(is_new.fill_null(True).cum_sum() + (spans.height - 1)).cast(pl.UInt32))
    both = pl.concat([numbered.filter(~pl.col("is_long")), parted]).drop("is_long")
    return both.with_columns(request=pl.col("request").rank("dense") - 1)


#: columns that number events as they came
_OF_ARRIVAL = ("send", "receive")


def _first(events: pl.DataFrame) -> pl.DataFrame:
    """Return the first event of each request."""
    earliest = events.group_by("request").agg(pl.col("began_s").min())
    first = events.join(earliest, on=["request", "began_s"], how="semi")
    return first if first.height == earliest.height else _ordered(first).unique("request", maintain_order=True)


def _ordered(events: pl.DataFrame) -> pl.DataFrame:
    """Return events by request and time; of those that began at once, the order in which they came must not matter."""
    ordered = events.sort("request", "began_s")
    is_tied = (pl.col("request") == pl.col("request").shift()) & (pl.col("began_s") == pl.col("began_s").shift())
    if not ordered.select(is_tied.any()).item():
        return ordered
    return events.sort("request", "began_s", *sorted(set(events.columns) - {"request", "began_s", *_OF_ARRIVAL}))


def _paired(sends: pl.DataFrame, receives: pl.DataFrame) -> pl.DataFrame:
    """Return each send with its receive (columns with the ending _in): the first with the first, and so on.

    Both say the nodes at their ends, or only one of them does, or none; those that say most are matched first.
    """
    found: list[pl.DataFrame] = []
    for send_tells, receive_tells in _PEERS_TOLD:
        sent = sends.filter(pl.col("peer").is_not_null() == send_tells)
        received = receives.filter(pl.col("peer").is_not_null() == receive_tells)
        if sent.is_empty() or received.is_empty():
            continue
        if found:
            # What is matched is not asked again.
            sent = sent.join(pl.concat(pairs.select("send") for pairs in found), on="send", how="anti")
            received = received.join(pl.concat(pairs.select("receive") for pairs in found), on="receive", how="anti")
        # A node that one side does not tell is not asked of the other either.
        told = [*(["source"] if receive_tells else []), *(["target"] if send_tells else [])]
        left = _placed(sent.rename({"node": "source", "peer": "target"}), told)
        right = _placed(received.rename({"peer": "source", "node": "target"}), told)
        pairs = left.join(right, on=["request", "place", *told], how="inner", suffix="_in")
        found.append(pairs.select("send", "receive"))
    matched = pl.concat([pl.DataFrame(schema={"send": pl.UInt32, "receive": pl.UInt32}), *found])
    answers = receives.select(pl.col(_OF_ANSWER).name.suffix("_in"))[matched["receive"]]
    return pl.concat([sends.select("rank", *_OF_ANSWER)[matched["send"]], answers], how="horizontal")


def _placed(events: pl.DataFrame, told: Sequence[str]) -> pl.DataFrame:
    """Add `place`, the number by time of the event among those of one request between the same nodes."""
    of = ["request", *told]
    is_alone = events.select(pl.struct(of).is_unique()).to_series()
    if is_alone.all():
        return events.with_columns(place=pl.lit(0, pl.Int64))
    several = _ordered(events.filter(~is_alone)).with_columns(place=pl.int_range(pl.len()).over(of))
    return pl.concat([events.filter(is_alone).with_columns(place=pl.lit(0, pl.Int64)), several])


def _crossed(hop: int, pairs: pl.DataFrame, time_s: pl.Expr) -> pl.DataFrame:
    return pairs.select(
        "request",
        hop=pl.lit(hop, pl.Int32),
        source="node",
        target="node_in",
        rank="rank",
        at_s="began_s",
        time_s=time_s,
        size_bytes=pl.coalesce("event_bytes_in", "event_bytes"),
        duration_s=pl.col("ceased_s_in") - pl.col("began_s_in"),
        direction=pl.coalesce("direction_in", "direction"),
    )


def _written(hop: int, innermost: pl.DataFrame) -> pl.DataFrame:
    """Return the writes at the innermost layer, as transfers from the node to its device."""
    lasted = pl.col("ceased_s") - pl.col("began_s")
    return innermost.filter(pl.col("event_kind") == "write").select(
        "request",
        hop=pl.lit(hop, pl.Int32),
        source="node",
        target=pl.coalesce("peer", "node"),
        rank="rank",
        at_s="began_s",
        time_s=lasted,
        size_bytes="event_bytes",
        duration_s=lasted,
        direction=pl.coalesce("direction", pl.lit("write")),
    )


def _finished(transfers: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
    """Fill in from the request what the events themselves do not tell.

    Of a request that crossed a hop in several pieces, no piece has the whole request's size.
    """
    asked = requests.select("request", asked_bytes="event_bytes", asked_direction="direction")
    known = transfers.join(asked, on="request", how="left", maintain_order="left")
    is_whole = pl.len().over("request", "hop") == 1
    return (
        known.with_columns(
            size_bytes=pl.coalesce("size_bytes", pl.when(is_whole).then("asked_bytes")),
            is_read=(pl.coalesce("direction", "asked_direction") == "read").fill_null(False),
        )
        .select(TRANSFERS.names())
        .cast(dict(TRANSFERS.items()))
    )
