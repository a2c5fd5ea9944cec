"""Compute latencies between layers by matching the events that belong to the same request in several layers.

The method follows Sigovan et al., "A Visual Network Analysis Method for Large Scale Parallel I/O Systems" (IPDPS'13),
section IV.A. Events belong to the same request if rank and request id agree; the id is "unique per request per MPI
rank". Latencies are defined as follows:

- outermost layer to the next: from the start of the request to the start of its first event in the next layer;
- further inward: from the start of a send to the end of the corresponding receive;
- innermost layer: duration of the write.

Clock differences can make latencies negative. `clock_skew` corrects the clocks beforehand; the latencies themselves are
not changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints

#: columns of transfers; unknown values are NULL
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
    "start_s",
    "end_s",
    "event_bytes",
    "direction",
)
#: columns that a transfer takes from the event in the inner layer
_ANSWER_COLUMNS = ["request", "node", "start_s", "end_s", "event_bytes", "direction"]
#: minimum number of pending events that triggers a matching pass
_MIN_PASS_ROWS = 1 << 19
#: whether the send and the receive name their peers; combinations in the order in which they are matched
_PEER_COMBINATIONS = ((True, True), (True, False), (False, True), (False, False))


class RequestMatcher:
    """Streaming matcher of events across layers, with bounded memory.

    Parameters
    ----------
    layer_numbers
        Two or more layers to connect, from outermost to innermost, ascending; events of other layers are ignored.
    horizon_s
        Maximum delay with which an event may arrive. Within this time, the order of events does not change the result.
        A longer pause between events with the same request id starts another request.
    max_pending_count
        Maximum number of events that wait for others. Beyond this number, the oldest requests are completed with the
        events available so far.

    Attributes
    ----------
    unmatched_count : (layers,)
        Number of unmatched events of each layer: requests without a response in the next layer, first events in the
        second layer without a request, sends without a receive, and receives without a send.
    dropped_count
        Number of requests that were completed early to limit memory.
    min_forward_s, min_backward_s
        Shortest time from the start of a request to the start of its first event in the next layer, and from the end of
        this event to the end of the request [s]; inf without a match. Both are positive if the clocks of the layers
        agree.

    Raises
    ------
    ValueError
        If layer numbers do not ascend, or a limit is not positive.
    """

    def __init__(
        self, layer_numbers: Sequence[int], *, horizon_s: float = 60.0, max_pending_count: int = 2_000_000
    ) -> None:
        if len(layer_numbers) < 2 or sorted(set(layer_numbers)) != list(layer_numbers):
            raise ValueError("layer_numbers must be two or more numbers in ascending order")
        if not horizon_s > 0 or max_pending_count < 1:
            raise ValueError("horizon_s and max_pending_count must be positive")
        self._layer_numbers = tuple(layer_numbers)
        self._horizon_s = horizon_s
        self._max_pending_count = max_pending_count
        self._pending: list[pl.DataFrame] = []
        self._pending_count = 0
        self._pass_count = min(_MIN_PASS_ROWS, max_pending_count)
        self._latest_s = -np.inf
        self.unmatched_count: Ints = np.zeros(len(layer_numbers), dtype=np.int64)
        self.dropped_count = 0
        self.min_forward_s, self.min_backward_s = np.inf, np.inf

    def add(self, events: pl.DataFrame) -> pl.DataFrame:
        """Add events and return the transfers of completed requests.

        Parameters
        ----------
        events
            Rows of `request_events`; rows without a request id are ignored.

        Returns
        -------
        TRANSFERS
            Transfers; empty for most calls, since matching works on many events at a time.
        """
        identified = events.lazy().select(_EVENTS).filter(pl.col("request_id").is_not_null())
        selected = identified.filter(pl.col("layer_number").is_in(self._layer_numbers)).collect()
        if not selected.is_empty():
            self._pending.append(selected)
            self._pending_count += selected.height
            self._latest_s = max(self._latest_s, float(selected.select(pl.col("start_s").max()).item()))
        # Each pass processes all pending events; waiting until their number has doubled bounds the total time.
        if self._pending_count < self._pass_count:
            return TRANSFERS.to_frame()
        transfers = self._match(self._latest_s - 2 * self._horizon_s)
        self._pass_count = min(
            max(_MIN_PASS_ROWS, 2 * self._pending_count), self._pending_count + self._max_pending_count
        )
        return transfers

    def finish(self) -> pl.DataFrame:
        """Return the transfers (TRANSFERS) of all pending requests."""
        return self._match(np.inf)

    def _match(self, before_s: float) -> pl.DataFrame:
        """Match the requests with a last event that began before `before_s`; other requests remain pending."""
        if not self._pending:
            return TRANSFERS.to_frame()
        events = _number_requests(pl.concat(self._pending), self._horizon_s)
        last_s = events.group_by("request").agg(pl.len(), pl.col("start_s").max()).sort("start_s", "request")
        is_done = last_s["start_s"].to_numpy() < before_s
        # The oldest requests are dropped until the others fit into the limit.
        later_count = last_s["len"].cast(pl.Int64).reverse().cum_sum().reverse()
        is_dropped = (later_count > self._max_pending_count).to_numpy()
        self.dropped_count += int((is_dropped & ~is_done).sum())
        is_completed_request = np.zeros(last_s.height, dtype=np.bool_)
        is_completed_request[last_s["request"].to_numpy()] = is_done | is_dropped
        is_completed = pl.Series(is_completed_request).gather(events["request"])
        pending = events.filter(~is_completed).drop("request")
        self._pending, self._pending_count = ([pending], pending.height) if pending.height else ([], 0)
        return self._match_layers(events.filter(is_completed))

    def _match_layers(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the transfers of completed requests; the column `request` is the number of the request."""
        layers = [events.filter(pl.col("layer_number") == number) for number in self._layer_numbers]
        requests = _first_events(layers[0])
        hops = [self._first_hop(requests, layers[1])]
        hops += [self._inner_hop(hop, layers[hop], layers[hop + 1]) for hop in range(1, len(layers) - 1)]
        hops.append(_storage_writes(len(layers) - 1, layers[-1]))
        return _fill_from_requests(pl.concat(hops), requests)

    def _first_hop(self, requests: pl.DataFrame, next_layer: pl.DataFrame) -> pl.DataFrame:
        responses = _first_events(next_layer)
        pairs = requests.join(responses.select(_ANSWER_COLUMNS), on="request", how="inner", suffix="_in")
        self.unmatched_count[0] += requests.height - pairs.height
        self.unmatched_count[1] += responses.height - pairs.height
        if not pairs.is_empty():
            self.min_forward_s = min(self.min_forward_s, _find_min(pairs["start_s_in"] - pairs["start_s"]))
            self.min_backward_s = min(self.min_backward_s, _find_min(pairs["end_s"] - pairs["end_s_in"]))
        return _build_hop_transfers(0, pairs, pl.col("start_s_in") - pl.col("start_s"))

    def _inner_hop(self, hop: int, outer: pl.DataFrame, inner: pl.DataFrame) -> pl.DataFrame:
        sends = outer.filter(pl.col("event_kind") == "send").with_row_index("send")
        receives = inner.filter(pl.col("event_kind") == "receive").with_row_index("receive")
        pairs = _pair_sends(sends, receives)
        self.unmatched_count[hop] += sends.height - pairs.height
        self.unmatched_count[hop + 1] += receives.height - pairs.height
        return _build_hop_transfers(hop, pairs, pl.col("end_s_in") - pl.col("start_s"))


def _find_min(times_s: pl.Series) -> float:
    """Return the minimum of finite times; inf without any."""
    return float(times_s.to_numpy().min(initial=np.inf, where=np.isfinite(times_s.to_numpy())))


def _number_requests(events: pl.DataFrame, horizon_s: float) -> pl.DataFrame:
    """Assign request numbers from 0 (`request`); a pause longer than the horizon starts another request."""
    keys = ["rank", "request_id"]
    spans = (
        events.group_by(keys)
        .agg(is_long=pl.col("start_s").max() - pl.col("start_s").min() > horizon_s)
        .with_row_index("request")
    )
    # A join of the keys alone does not copy the other columns.
    numbers = events.select(keys).join(spans, on=keys, how="left", maintain_order="left")
    numbered = events.with_columns(numbers.select("request", "is_long"))
    if not spans["is_long"].any():
        return numbered.drop("is_long")
    long_events = numbered.filter("is_long").sort("request", "start_s", maintain_order=True)
    is_new = (pl.col("request") != pl.col("request").shift()) | (pl.col("start_s").diff() > horizon_s)
    split_events = long_events.with_columns(
        request=(is_new.fill_null(True).cum_sum() + (spans.height - 1)).cast(pl.UInt32)
    )
    all_events = pl.concat([numbered.filter(~pl.col("is_long")), split_events]).drop("is_long")
    return all_events.with_columns(request=pl.col("request").rank("dense") - 1)


#: columns that depend on the order in which events arrived
_ARRIVAL_COLUMNS = ("send", "receive")


def _first_events(events: pl.DataFrame) -> pl.DataFrame:
    """Select the first event of each request."""
    earliest = events.group_by("request").agg(pl.col("start_s").min())
    first = events.join(earliest, on=["request", "start_s"], how="semi")
    return first if first.height == earliest.height else _sort_events(first).unique("request", maintain_order=True)


def _sort_events(events: pl.DataFrame) -> pl.DataFrame:
    """Sort events by request, time and all other columns, so that the order of arrival has no influence."""
    ordered = events.sort("request", "start_s")
    is_tied = (pl.col("request") == pl.col("request").shift()) & (pl.col("start_s") == pl.col("start_s").shift())
    if not ordered.select(is_tied.any()).item():
        return ordered
    return events.sort("request", "start_s", *sorted(set(events.columns) - {"request", "start_s", *_ARRIVAL_COLUMNS}))


def _pair_sends(sends: pl.DataFrame, receives: pl.DataFrame) -> pl.DataFrame:
    """Pair sends with receives (suffix _in) of the same request and nodes, in chronological order.

    Either side may or may not name its peer. Events that name their peer are matched first.
    """
    pair_lists: list[pl.DataFrame] = []
    for send_has_peer, receive_has_peer in _PEER_COMBINATIONS:
        open_sends = sends.filter(pl.col("peer").is_not_null() == send_has_peer)
        open_receives = receives.filter(pl.col("peer").is_not_null() == receive_has_peer)
        if open_sends.is_empty() or open_receives.is_empty():
            continue
        if pair_lists:
            matched = pl.concat(pair_lists)
            open_sends = open_sends.join(matched, on="send", how="anti")
            open_receives = open_receives.join(matched, on="receive", how="anti")
        # Nodes are compared only where both sides know them.
        node_columns = [*(["source"] if receive_has_peer else []), *(["target"] if send_has_peer else [])]
        left = _number_by_time(open_sends.rename({"node": "source", "peer": "target"}), node_columns)
        right = _number_by_time(open_receives.rename({"peer": "source", "node": "target"}), node_columns)
        pairs = left.join(right, on=["request", "place", *node_columns], how="inner", suffix="_in")
        pair_lists.append(pairs.select("send", "receive"))
    matched = pl.concat([pl.DataFrame(schema={"send": pl.UInt32, "receive": pl.UInt32}), *pair_lists])
    responses = receives.select(pl.col(_ANSWER_COLUMNS).name.suffix("_in"))[matched["receive"]]
    return pl.concat([sends.select("rank", *_ANSWER_COLUMNS)[matched["send"]], responses], how="horizontal")


def _number_by_time(events: pl.DataFrame, node_columns: Sequence[str]) -> pl.DataFrame:
    """Assign numbers (`place`) to the events of a request between the same nodes, in chronological order."""
    keys = ["request", *node_columns]
    is_unique = events.select(pl.struct(keys).is_unique()).to_series()
    if is_unique.all():
        return events.with_columns(place=pl.lit(0, pl.Int64))
    several = _sort_events(events.filter(~is_unique)).with_columns(place=pl.int_range(pl.len()).over(keys))
    return pl.concat([events.filter(is_unique).with_columns(place=pl.lit(0, pl.Int64)), several])


def _build_hop_transfers(hop: int, pairs: pl.DataFrame, time_s: pl.Expr) -> pl.DataFrame:
    return pairs.select(
        "request",
        hop=pl.lit(hop, pl.Int32),
        source="node",
        target="node_in",
        rank="rank",
        at_s="start_s",
        time_s=time_s,
        size_bytes=pl.coalesce("event_bytes_in", "event_bytes"),
        duration_s=pl.col("end_s_in") - pl.col("start_s_in"),
        direction=pl.coalesce("direction_in", "direction"),
    )


def _storage_writes(hop: int, innermost: pl.DataFrame) -> pl.DataFrame:
    """Return the writes at the innermost layer as transfers from a node to its device."""
    duration_s = pl.col("end_s") - pl.col("start_s")
    return innermost.filter(pl.col("event_kind") == "write").select(
        "request",
        hop=pl.lit(hop, pl.Int32),
        source="node",
        target=pl.coalesce("peer", "node"),
        rank="rank",
        at_s="start_s",
        time_s=duration_s,
        size_bytes="event_bytes",
        duration_s=duration_s,
        direction=pl.coalesce("direction", pl.lit("write")),
    )


def _fill_from_requests(transfers: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
    """Fill unknown sizes and directions of transfers from their requests.

    The size of a request is used only if the request crossed the hop in a single transfer.
    """
    defaults = requests.select("request", request_bytes="event_bytes", request_direction="direction")
    joined = transfers.join(defaults, on="request", how="left", maintain_order="left")
    is_single = pl.len().over("request", "hop") == 1
    return (
        joined.with_columns(
            size_bytes=pl.coalesce("size_bytes", pl.when(is_single).then("request_bytes")),
            is_read=(pl.coalesce("direction", "request_direction") == "read").fill_null(False),
        )
        .select(TRANSFERS.names())
        .cast(dict(TRANSFERS.items()))
    )
