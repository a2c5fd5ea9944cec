"""Build the network of a trace of request events, with latencies between layers matched request by request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count, pairwise

import numpy as np
import polars as pl

from iosig.estimates.columns import floats
from iosig.estimates.networks.layers import Members, build_named_layer, build_rank_layer
from iosig.transforms.arrays import Ints
from iosig.transforms.networks import clock_skew
from iosig.transforms.networks.bottlenecks import BottleneckFinder
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.latencies import RequestMatcher
from iosig.transforms.networks.network import Network, NetworkParams, TimeKind, Transfers

#: rows per chunk
_CHUNK_ROWS = 1 << 18
_DEVICES = "device"
#: number of largest requests per metric that are kept with their origin
_KEPT_REQUESTS = 10
_KEPT_SCHEMA = {
    "event": pl.Int64,
    "rank": pl.Int64,
    "request_id": pl.String,
    "start_s": pl.Float64,
    "size": pl.Float64,
    "time": pl.Float64,
}


class EventNetwork:
    """Builds the network of a traced run from request events, which record one request in several layers.

    events: rows of `request_events`, scanned several times in chunks. process_count: number of processes of the run; if
    None, the network has only the ranks that occur.
    """

    def __init__(self, events: Sequence[pl.LazyFrame], params: NetworkParams, process_count: int | None) -> None:
        self._events, self._params = events, params
        self.layers = self._summarize_layers().sort("layer_number")
        self.numbers: list[int] = self.layers["layer_number"].to_list()
        self.rank_high = max(int(self.layers["rank_high"][0] or 0), (process_count or 0) - 1)
        self.skew = self._skew()
        #: number of requests without a match in the next layer, and of events in that layer without a request
        self.unmatched_count = 0
        #: number of requests of the program
        self.request_count = 0
        self.finder = BottleneckFinder(process_count=process_count)
        self._kept_requests = pl.DataFrame(schema=_KEPT_SCHEMA)

    def _lazy(self) -> pl.LazyFrame:
        return pl.concat(self._events)

    def _summarize_layers(self) -> pl.DataFrame:
        """Return number, name, highest rank and time range of each layer."""
        return (
            self._lazy()
            .group_by("layer_number")
            .agg(
                pl.col("layer").min(),
                rank_high=pl.col("rank").max(),
                start_s=pl.col("start_s").min(),
                end_s=pl.col("end_s").max(),
            )
            .collect(engine="streaming")
        )

    def _chunks(self) -> Iterator[pl.DataFrame]:
        # rows are in chronological order, so the events of one request are close together
        yield from self._lazy().collect_batches(chunk_size=_CHUNK_ROWS, maintain_order=True, engine="streaming")

    def _skew(self) -> clock_skew.Skew:
        opens = clock_skew.merge_opens(clock_skew.select_opens(chunk, self.numbers[0]) for chunk in self._chunks())
        skew = clock_skew.estimate_skew(opens, self.rank_high + 1)
        is_centered = skew.offset_s is not None and self._params.clock_center == "causal" and len(self.numbers) > 1
        return self._center(skew) if is_centered else skew

    def _center(self, skew: clock_skew.Skew) -> clock_skew.Skew:
        """Move the common clock of the ranks to where no request is received before it is sent."""
        matcher = RequestMatcher(self.numbers[:2])
        for chunk in self._chunks():
            matcher.add(clock_skew.correct_events(chunk, skew, self.numbers[0]))
        matcher.finish()
        rounding_s = 4 * float(np.spacing(np.abs(floats(self.layers["end_s"])).max()))
        return clock_skew.center_skew(skew, matcher.min_forward_s, matcher.min_backward_s, rounding_s)

    def members(self) -> list[Members]:
        """Return the layers, outermost first; if the trace has device writes, devices follow the storage nodes."""
        nodes = self._lazy().group_by("layer_number").agg(pl.col("node").unique()).collect(engine="streaming")
        labels = dict(nodes.iter_rows())
        writes = pl.col("event_kind") == "write"
        devices = (
            self._lazy()
            .filter(writes, pl.col("layer_number") == self.numbers[-1])
            .select(pl.coalesce("peer", "node").unique())
            .collect(engine="streaming")
            .to_series()
        )
        layers = [build_rank_layer(0, self.rank_high, self._params)]
        for number, name in self.layers.select("layer_number", "layer").rows()[1:]:
            layers.append(_build_layer(_make_unique(name, layers), labels[number], self._params))
        if devices.is_empty():
            return layers
        return [*layers, _build_layer(_make_unique(_DEVICES, layers), devices.to_list(), self._params)]

    def network(self, members: Sequence[Members]) -> Network:
        """Count all transfers between these layers, and collect the largest and slowest requests."""
        kinds: list[TimeKind] = ["latency"] * (len(self.numbers) - 1)
        if len(members) > len(self.numbers):
            kinds.append("write_time")
        shift = 0.0 if self.skew.offset_s is None else float(np.abs(self.skew.offset_s).max())
        start_s, end_s = float(self.layers["start_s"].min()), float(self.layers["end_s"].max())  # type: ignore[arg-type]
        edges_s = window_edges(min(start_s - shift, 0.0), end_s + shift, self._params.window_count)
        counter = EdgeCounter(tuple(member.layer for member in members), tuple(kinds), edges_s)
        for transfers in self._transfers():
            for hop, pair in enumerate(pairwise(members)):
                rows = transfers.filter(pl.col("hop") == hop)
                if not rows.is_empty():
                    counter.add(_build_transfers(hop, rows, *pair))
        return counter.result()

    def _transfers(self) -> Iterator[pl.DataFrame]:
        matcher = RequestMatcher(self.numbers)
        for chunk in self._chunks():
            aligned = clock_skew.correct_events(chunk, self.skew, self.numbers[0])
            self._weigh(aligned)
            yield matcher.add(aligned)
        yield matcher.finish()
        self.unmatched_count = int(matcher.unmatched_count.sum())

    def _weigh(self, events: pl.DataFrame) -> None:
        """Add requests of the program to the candidates for bottlenecks."""
        requests = events.filter(pl.col("layer_number") == self.numbers[0], pl.col("event_kind") == "request")
        if requests.is_empty():
            return
        timed = requests.select(
            "event", "rank", "request_id", "start_s", size="event_bytes", time=pl.col("end_s") - pl.col("start_s")
        )
        self.request_count += timed.height
        request: Ints = timed["event"].to_numpy()
        self.finder.add("size", floats(timed["size"]), request)
        self.finder.add("time", floats(timed["time"]), request)
        candidates = pl.concat([self._kept_requests, timed])
        largest = [
            candidates.drop_nulls(name).sort(name, "event", descending=[True, False]) for name in ("size", "time")
        ]
        self._kept_requests = pl.concat([rows.head(_KEPT_REQUESTS) for rows in largest]).unique("event")

    def bottlenecks(self, members: Sequence[Members]) -> pl.DataFrame:
        """Return outlier requests as rows of `network_bottlenecks`, without the columns of the trace."""
        outliers = self.finder.result()
        outer, outlier_requests = (
            members[0],
            self._kept_requests.join(outliers, left_on="event", right_on="request", how="semi"),
        )
        nodes = outlier_requests.join(
            self._find_receivers(outlier_requests), on=["rank", "request_id"], how="left", maintain_order="left"
        ).select(
            "event",
            "start_s",
            source_layer=pl.lit(outer.layer.name),
            source_node=outer.layer.labels.gather(outer.nodes(outlier_requests)),
            target_layer=pl.lit(members[1].layer.name),
            target_node=pl.col("node").fill_null("unknown node"),
        )
        return outliers.join(nodes, left_on="request", right_on="event", how="left", maintain_order="left")

    def _find_receivers(self, requests: pl.DataFrame) -> pl.DataFrame:
        """Return the node of the next layer that first received each of a few requests."""
        same = self._lazy().join(requests.lazy().select("rank", "request_id"), on=["rank", "request_id"], how="semi")
        firsts = (
            same.filter(pl.col("layer_number") == self.numbers[1])
            .sort("start_s", "event")
            .group_by("rank", "request_id", maintain_order=True)
            .agg(pl.col("node").first())
        )
        return firsts.collect(engine="streaming")


def _make_unique(name: str, layers: Sequence[Members]) -> str:
    """Make a layer name unique by a number, since the trace's own layers may be named `rank` or `device`."""
    names = {member.layer.name for member in layers}
    numbered = (f"{name} {number}" for number in count(2))
    return next(candidate for candidate in chain([name], numbered) if candidate not in names)


def _build_layer(name: str, labels: Sequence[str], params: NetworkParams) -> Members:
    return build_named_layer(name, pl.DataFrame({"label": pl.Series(labels, dtype=pl.String)}), ("label",), params)


def _build_transfers(hop: int, rows: pl.DataFrame, source: Members, target: Members) -> Transfers:
    duration_s, size_bytes = floats(rows["duration_s"]), floats(rows["size_bytes"])
    with np.errstate(divide="ignore", invalid="ignore"):
        bandwidth = np.where(duration_s > 0, size_bytes / duration_s, np.nan)
    return Transfers(
        hop,
        source.nodes(rows.select("rank", label="source")),
        target.nodes(rows.select("rank", label="target")),
        floats(rows["at_s"]),
        floats(rows["time_s"]),
        size_bytes,
        bandwidth,
        rows["is_read"].to_numpy(),
    )
