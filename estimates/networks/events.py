"""The network of a trace of request events: latencies between layers, matched request by request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count, pairwise

import numpy as np
import polars as pl

from iosig.estimates.columns import floats
from iosig.estimates.networks.layers import Members, named, ranks
from iosig.transforms.arrays import Ints
from iosig.transforms.networks import clock_skew
from iosig.transforms.networks.bottlenecks import BottleneckFinder
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.latencies import RequestMatcher
from iosig.transforms.networks.network import Network, NetworkParams, TimeKind, Transfers

#: rows that are taken up at a time
_CHUNK_ROWS = 1 << 18
_DEVICES = "device"
#: of so many requests per chunk and metric it is remembered who made them
_REMEMBERED = 10
_REMEMBERED_SCHEMA = {
    "event": pl.Int64,
    "rank": pl.Int64,
    "request_id": pl.String,
    "start_s": pl.Float64,
    "size": pl.Float64,
    "time": pl.Float64,
}


class EventNetwork:
    """What a trace of request events tells of its network.

    events: rows of `request_events`, read three times, some rows at a time. process_count: of the run, if it is
    known; else the ranks that are seen.
    """

    def __init__(self, events: Sequence[pl.LazyFrame], params: NetworkParams, process_count: int | None) -> None:
        self._events, self._params = events, params
        self.layers = self._told().sort("layer_number")
        self.numbers: list[int] = self.layers["layer_number"].to_list()
        self.rank_high = max(int(self.layers["rank_high"][0] or 0), (process_count or 0) - 1)
        self.skew = self._skew()
        #: requests that were not seen in the next layer, and what was seen there of no request
        self.unmatched_count = 0
        #: requests of the program
        self.request_count = 0
        self.finder = BottleneckFinder(process_count=process_count)
        self._remembered = pl.DataFrame(schema=_REMEMBERED_SCHEMA)

    def _lazy(self) -> pl.LazyFrame:
        return pl.concat(self._events)

    def _told(self) -> pl.DataFrame:
        """Return of each layer its number, name, highest rank and time."""
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
        # They landed by time: the events of one request are not far apart.
        yield from self._lazy().collect_batches(chunk_size=_CHUNK_ROWS, maintain_order=True, engine="streaming")

    def _skew(self) -> clock_skew.Skew:
        opens = clock_skew.merge_opens(clock_skew.select_opens(chunk, self.numbers[0]) for chunk in self._chunks())
        return clock_skew.estimate_skew(opens, self.rank_high + 1)

    def members(self) -> list[Members]:
        """Return the layers, outermost first; behind the storage nodes their devices, if writes are told of."""
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
        found = [ranks(0, self.rank_high, self._params)]
        for number, name in self.layers.select("layer_number", "layer").rows()[1:]:
            found.append(_labelled(_another(name, found), labels[number], self._params))
        if devices.is_empty():
            return found
        return [*found, _labelled(_another(_DEVICES, found), devices.to_list(), self._params)]

    def network(self, members: Sequence[Members]) -> Network:
        """Count all transfers between these layers, and look for requests that stand out."""
        kinds: list[TimeKind] = ["latency"] * (len(self.numbers) - 1)
        if len(members) > len(self.numbers):
            kinds.append("write_time")
        shift = 0.0 if self.skew.offset_s is None else float(np.abs(self.skew.offset_s).max())
        start_s, end_s = float(self.layers["start_s"].min()), float(self.layers["end_s"].max())  # type: ignore[arg-type]
        edges_s = window_edges(min(start_s - shift, 0.0), end_s + shift, self._params.window_count)
        counter = EdgeCounter(tuple(member.layer for member in members), tuple(kinds), edges_s)
        for found in self._transfers():
            for hop, pair in enumerate(pairwise(members)):
                rows = found.filter(pl.col("hop") == hop)
                if not rows.is_empty():
                    counter.add(_transfers_of(hop, rows, *pair))
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
        """Take requests of the program up among those that may stand out."""
        asked = events.filter(pl.col("layer_number") == self.numbers[0], pl.col("event_kind") == "request")
        if asked.is_empty():
            return
        timed = asked.select(
            "event", "rank", "request_id", "start_s", size="event_bytes", time=pl.col("end_s") - pl.col("start_s")
        )
        self.request_count += timed.height
        request: Ints = timed["event"].to_numpy()
        self.finder.add("size", floats(timed["size"]), request)
        self.finder.add("time", floats(timed["time"]), request)
        known = pl.concat([self._remembered, timed])
        largest = [known.drop_nulls(name).sort(name, "event", descending=[True, False]) for name in ("size", "time")]
        self._remembered = pl.concat([rows.head(_REMEMBERED) for rows in largest]).unique("event")

    def bottlenecks(self, members: Sequence[Members]) -> pl.DataFrame:
        """Return the requests that stand out as rows of `network_bottlenecks`, but the trace's own columns."""
        found = self.finder.result()
        outer, known = members[0], self._remembered.join(found, left_on="event", right_on="request", how="semi")
        nodes = known.join(self._answered(known), on=["rank", "request_id"], how="left", maintain_order="left").select(
            "event",
            "start_s",
            source_layer=pl.lit(outer.layer.name),
            source_node=outer.layer.labels.gather(outer.nodes(known)),
            target_layer=pl.lit(members[1].layer.name),
            target_node=pl.col("node").fill_null("unknown node"),
        )
        return found.join(nodes, left_on="request", right_on="event", how="left", maintain_order="left")

    def _answered(self, asked: pl.DataFrame) -> pl.DataFrame:
        """Return the node of the next layer that took up each of a few requests."""
        same = self._lazy().join(asked.lazy().select("rank", "request_id"), on=["rank", "request_id"], how="semi")
        firsts = (
            same.filter(pl.col("layer_number") == self.numbers[1])
            .sort("start_s", "event")
            .group_by("rank", "request_id", maintain_order=True)
            .agg(pl.col("node").first())
        )
        return firsts.collect(engine="streaming")


def _another(name: str, known: Sequence[Members]) -> str:
    """Return a name that no layer has yet: ranks and devices are called so whatever the trace's own layers are."""
    taken = {member.layer.name for member in known}
    numbered = (f"{name} {number}" for number in count(2))
    return next(shown for shown in chain([name], numbered) if shown not in taken)


def _labelled(name: str, labels: Sequence[str], params: NetworkParams) -> Members:
    return named(name, pl.DataFrame({"label": pl.Series(labels, dtype=pl.String)}), ("label",), params)


def _transfers_of(hop: int, rows: pl.DataFrame, source: Members, target: Members) -> Transfers:
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
