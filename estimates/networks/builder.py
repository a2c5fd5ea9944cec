"""Build the graph of transfers of a traced run from its landed requests, and analyze it.

Nodes are ranks, hosts, files or storage targets, in layers; edges are transfers, counted in histograms. The analysis
finds clock skew, patterns and bottlenecks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import polars as pl

from iosig.estimates.columns import floats
from iosig.estimates.networks.events import EventNetwork
from iosig.estimates.networks.layers import (
    DEFAULT_LAYERS,
    LAYER_NAMES,
    LayerName,
    Members,
    RequestSources,
    build_layer,
    find_used_nodes,
)
from iosig.estimates.networks.stripes import split_by_target
from iosig.reports.networks.texts import value_text
from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.networks.bottlenecks import BottleneckFinder
from iosig.transforms.networks.clock_skew import Skew, correct_times, estimate_skew
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.log_bins import NEGATIVE
from iosig.transforms.networks.network import METRICS, Layer, Network, NetworkParams, TimeKind, Transfers
from iosig.transforms.networks.patterns import classify_patterns
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.events import REQUEST_EVENTS
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_RECORDS, TRACE_REQUESTS
from iosig.warehouse.errors import UsageError

#: rows per chunk, which bounds memory use independently of the size of the trace
_CHUNK_ROWS = 1 << 18
#: minimum fraction of the counted bytes that requests cover; below this, a note states that the trace is partial
_COMPLETE_RATIO = 0.995
#: the default module: its requests reach storage
LOWEST_MODULE = "POSIX"
#: module name of request events
EVENTS = "EVENTS"
OF_FILES = ["file_number", "path", "mount", "filesystem_kind", "stripe_bytes", "osts"]
OF_RECORDS = [
    "module", "file_number", "rank", "collective_open_count", "open_end_s", "read_bytes", "written_bytes",
]  # fmt: skip
NEEDED = (
    "request", "module", "rank", "host", "file_number", "direction", "offset_bytes", "request_bytes", "start_s",
    "end_s", "ost",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Query:
    """Selection of layers, outermost first, and of the module of the requests.

    layers: None for ranks, hosts and targets, if the trace has them. module: None for POSIX, or for the module with the
    largest volume if POSIX was not traced.
    """

    layers: tuple[str, ...] | None = None
    module: str | None = None


@dataclass(frozen=True, slots=True)
class NetworkResult:
    """A network with its analysis, or an outcome without a network.

    outcome: as in `network_runs`. module, request_count: module and number of the requests. covered_ratio: fraction of
    the module's counted bytes that the requests cover; None without counters. skew: skew of the ranks' clocks.
    patterns: from `iosig.transforms.networks.patterns`. bottlenecks: rows of `network_bottlenecks` without the columns
    that identify the trace. notes: remarks for users.
    """

    outcome: str
    network: Network | None = None
    module: str | None = None
    request_count: int = 0
    covered_ratio: float | None = None
    skew: Skew | None = None
    negative_time_count: int = 0
    patterns: pl.DataFrame = field(default_factory=pl.DataFrame)
    bottlenecks: pl.DataFrame = field(default_factory=pl.DataFrame)
    notes: tuple[str, ...] = ()


def build_trace_network(
    landed: Mapping[str, Sequence[pl.LazyFrame]], query: Query, params: NetworkParams, process_count: int | None
) -> NetworkResult:
    """Build the network of a traced run from its landed rows, keyed by table.

    landed: rows of `request_events` if the trace has any, else of `trace_requests`, `trace_files`, `trace_records`.

    Raises UsageError if the trace does not have the requested layers or module.
    """
    events = landed.get(REQUEST_EVENTS.name, ())
    if events:
        return _build_from_events(events, query, params, process_count)
    files, records = (
        pl.concat(
            [
                frames.empty(table).select(columns),
                *pl.collect_all(lazy_rows.select(columns) for lazy_rows in landed[table.name]),
            ]
        )
        for table, columns in ((TRACE_FILES, OF_FILES), (TRACE_RECORDS, OF_RECORDS))
    )
    return build_network(landed[TRACE_REQUESTS.name], files, records, query, params, process_count)


def build_network(
    requests: Sequence[pl.LazyFrame],
    files: pl.DataFrame,
    records: pl.DataFrame,
    query: Query,
    params: NetworkParams,
    process_count: int | None = None,
) -> NetworkResult:
    """Build the network of a traced run from its requests.

    requests: rows of `trace_requests`, scanned twice in chunks. files, records: rows of `trace_files` and
    `trace_records`. process_count: number of processes of the run; if None, the network has only the ranks that occur.

    Raises UsageError if the trace does not have the requested layers or module.
    """
    by_module = _aggregate_by_module(requests)
    modules = _select_modules(by_module, query)
    if not modules:
        return NetworkResult("no_requests", notes=("The trace has no single requests.",))
    by_module = by_module.filter(pl.col("module").is_in(modules))
    rows = by_module.select(_SUMMED).row(0, named=True)
    source = _Requests(requests, modules)
    # records shared by all ranks do not identify single ranks
    is_single = rows["rank_high"] >= 0
    rank_high = max(rows["rank_high"], (process_count or 0) - 1 if is_single else -1)
    hosts, numbers = (by_module[name].explode().unique().to_list() for name in ("hosts", "file_numbers"))
    sources = RequestSources(hosts, modules, numbers, files, rows["rank_low"], rank_high)
    names = _layer_names(query, sources)
    covered_ratio = _compute_coverage(records, modules, rows["moved_bytes"])
    result = NetworkResult("no_layers", None, ", ".join(modules), rows["request_count"], covered_ratio)
    if len(names) < 2:
        return replace(result, notes=("The trace has only one layer.",))
    skew = _skew(records, max(sources.rank_high + 1, process_count or 0))
    layers = [build_layer(name, sources, params) for name in names]
    counter = _RequestCounter(
        layers, compute_window_edges(rows["start_s"], rows["end_s"], skew, params), skew, process_count
    )
    for chunk in source.chunks():
        counter.add(chunk, split_by_target(chunk, files) if "target" in names else ())
    network = remove_idle_nodes(counter.counter.result())
    result = replace(result, outcome="built", network=network, skew=skew, negative_time_count=_negative_count(network))
    return replace(
        result,
        patterns=classify_patterns(network),
        bottlenecks=_add_nodes(counter.finder.result(), source, files, layers),
        notes=_notes(result, network, skew) + _layer_notes(names, query, is_single=is_single),
    )


def _build_from_events(
    events: Sequence[pl.LazyFrame], query: Query, params: NetworkParams, process_count: int | None
) -> NetworkResult:
    if query.layers or query.module:
        raise UsageError("A trace of request events has its own layers: pass neither layers nor a module.")
    event_network = EventNetwork(events, params, process_count)
    if len(event_network.numbers) < 2:
        return NetworkResult("no_layers", notes=("The trace has only one layer.",))
    members = event_network.members()
    network = remove_idle_nodes(event_network.network(members))
    result = NetworkResult(
        "built", network, module=EVENTS, request_count=event_network.request_count, skew=event_network.skew
    )
    if network.edges.is_empty():
        reason = "No event has a counterpart with the same rank and request in an adjacent layer."
        return replace(result, outcome="no_layers", network=None, notes=(reason,))
    result = replace(result, negative_time_count=_negative_count(network))
    notes = _notes(result, network, event_network.skew)
    if event_network.unmatched_count:
        are = "1 event has" if event_network.unmatched_count == 1 else f"{event_network.unmatched_count:,} events have"
        notes += (f"{are} no counterpart in an adjacent layer.",)
    return replace(
        result, patterns=classify_patterns(network), bottlenecks=event_network.bottlenecks(members), notes=notes
    )


# ---- selection


#: expressions that aggregate groups of requests
REQUEST_AGGREGATES = {
    "request_count": pl.len(),
    "moved_bytes": pl.col("request_bytes").sum(),
    "rank_low": pl.col("rank").min(),
    "rank_high": pl.col("rank").max(),
    "start_s": pl.col("start_s").min(),
    "end_s": pl.col("end_s").max(),
}


def _aggregate_by_module(requests: Sequence[pl.LazyFrame]) -> pl.DataFrame:
    """Aggregate requests by module: count, bytes, ranks, time range, hosts and files."""
    if not requests:
        return pl.DataFrame()
    return (
        pl.concat(requests)
        .group_by("module")
        .agg(
            **REQUEST_AGGREGATES,
            hosts=pl.col("host").unique(),
            file_numbers=pl.col("file_number").unique(),
        )
        .sort("module")
        .collect(engine="streaming")
    )


_SUMMED = (
    pl.col("request_count", "moved_bytes").sum(),
    pl.col("rank_low", "start_s").min(),
    pl.col("rank_high", "end_s").max(),
)


def _select_modules(by_module: pl.DataFrame, query: Query) -> list[str]:
    """Select the modules to use: all if modules are a layer, else one."""
    available: list[str] = by_module["module"].to_list() if by_module.width else []
    if query.module is not None:
        if available and query.module not in available:
            raise UsageError(f"The trace has no requests of {query.module}, only of {', '.join(available)}.")
        return [query.module] if available else []
    if "module" in (query.layers or ()) or not available:
        return available
    if LOWEST_MODULE in available:
        return [LOWEST_MODULE]
    return [by_module.sort("moved_bytes", "module", descending=[True, False])["module"][0]]


def _layer_names(query: Query, sources: RequestSources) -> tuple[LayerName, ...]:
    if query.layers is None:
        has_hosts = any(host is not None for host in sources.hosts)
        defaults = tuple(name for name in DEFAULT_LAYERS if name != "host" or has_hosts)
        return defaults if sources.is_storage_known or not sources.is_file_known else (*defaults[:-1], "file")
    names: dict[str, LayerName] = {name: name for name in LAYER_NAMES}
    if len(query.layers) < 2 or len(set(query.layers)) < len(query.layers) or not set(query.layers) <= set(names):
        raise UsageError(f"Pass two or more different layers, outermost first, of {', '.join(names)}.")
    return tuple(names[name] for name in query.layers)


@dataclass(frozen=True, slots=True)
class _Requests:
    """Chunked access to the landed requests of the selected modules."""

    rows: Sequence[pl.LazyFrame]
    modules: Sequence[str]

    def _lazy(self) -> pl.LazyFrame:
        return pl.concat(self.rows).filter(pl.col("module").is_in(self.modules))

    def chunks(self) -> Iterator[pl.DataFrame]:
        rows = self._lazy().select(NEEDED)
        yield from rows.collect_batches(chunk_size=_CHUNK_ROWS, maintain_order=True, engine="streaming")

    def select(self, numbers: Sequence[int]) -> pl.DataFrame:
        """Select requests by number."""
        return self._lazy().filter(pl.col("request").is_in(numbers)).select(NEEDED).collect(engine="streaming")


def _skew(records: pl.DataFrame, process_count: int) -> Skew:
    opens = records.filter(pl.col("module") == "MPIIO").select(
        "rank", "collective_open_count", "open_end_s", file="file_number"
    )
    return estimate_skew(opens, process_count)


def compute_window_edges(start_s: float, end_s: float, skew: Skew, params: NetworkParams) -> Reals:
    """Return the edges of time windows that contain all requests after clock correction."""
    if skew.offset_s is not None:
        start_s, end_s = (
            start_s - max(float(skew.offset_s.max()), 0.0),
            end_s - min(float(skew.offset_s.min()), 0.0),
        )
    return window_edges(min(0.0, start_s), end_s, params.window_count)


# ---- counting


class _RequestCounter:
    """Accumulates requests chunk by chunk: counts on the edges of each hop, and candidates for bottlenecks.

    A hop is a pair of neighboring layers.
    """

    def __init__(self, layers: Sequence[Members], window_edges_s: Reals, skew: Skew, process_count: int | None) -> None:
        self.layers = layers
        self.finder = BottleneckFinder(process_count=process_count)
        self._skew = skew
        kind: TimeKind = "service_time"
        self.counter = EdgeCounter(
            tuple(member.layer for member in layers), (kind,) * (len(layers) - 1), window_edges_s
        )

    def add(self, chunk: pl.DataFrame, pieces: Iterable[pl.DataFrame]) -> None:
        """Count a chunk of requests; pieces: the same requests split by storage target, if targets are a layer."""
        request: Ints = chunk["request"].to_numpy()
        self.finder.add("size", floats(chunk["request_bytes"]), request)
        self.finder.add("time", (chunk["end_s"] - chunk["start_s"]).to_numpy(), request)
        striped = [hop for hop, pair in enumerate(pairwise(self.layers)) if any(m.layer.name == "target" for m in pair)]
        for hop in range(len(self.layers) - 1):
            if hop not in striped:
                self._count(hop, chunk)
        for piece in pieces:
            for hop in striped:
                self._count(hop, piece)

    def _count(self, hop: int, rows: pl.DataFrame) -> None:
        source, target = self.layers[hop], self.layers[hop + 1]
        at_s = correct_times(rows["start_s"].to_numpy(), rows["rank"].cast(pl.Int64).to_numpy(), self._skew)
        self.counter.add(Transfers(hop, source.nodes(rows), target.nodes(rows), at_s, *measure_requests(rows)))


def measure_requests(rows: pl.DataFrame) -> tuple[Reals, Reals, Reals, Bools]:
    """Return service time [s], size [B], bandwidth [B/s] and read flag of requests (n each).

    The bandwidth is NaN if the service time is not positive.
    """
    size_bytes = floats(rows["request_bytes"])
    time_s: Reals = (rows["end_s"] - rows["start_s"]).to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        bandwidth = np.where(time_s > 0, size_bytes / time_s, np.nan)
    return time_s, size_bytes, bandwidth, (rows["direction"] == "read").to_numpy()


def remove_idle_nodes(network: Network) -> Network:
    """Remove nodes without an edge, except ranks."""
    used_nodes = find_used_nodes(network.layers, network.edges)
    layers, edges = list(network.layers), network.edges
    for number, nodes in used_nodes.items():
        if len(nodes) == layers[number].node_count:
            continue
        layer = layers[number]
        member_count = min(len(nodes) * layer.group_size, layer.member_count)
        layers[number] = Layer(layer.name, layer.labels.gather(nodes), layer.group_size, member_count)
        place = np.zeros(layer.node_count, dtype=np.int32)
        place[nodes] = np.arange(len(nodes), dtype=np.int32)
        edges = edges.with_columns(
            pl.when(pl.col("hop") == hop).then(pl.Series(place).gather(edges[end].clip(0, len(place) - 1)))
            .otherwise(end).alias(end)
            for hop, end in ((number, "source"), (number - 1, "target"))
        )  # fmt: skip
    return replace(network, layers=tuple(layers), edges=edges)


def _negative_count(network: Network) -> int:
    return int(
        network.counts.filter(pl.col("bin") == NEGATIVE, pl.col("metric") == METRICS.index("time"))["count"].sum()
    )


# ---- results


def _compute_coverage(records: pl.DataFrame, modules: Sequence[str], moved_bytes: float) -> float | None:
    counted = records.filter(pl.col("module").is_in(modules)).select(
        pl.sum_horizontal(pl.col("read_bytes", "written_bytes").sum())
    )
    total = float(counted.item() or 0)
    return min(moved_bytes / total, 1.0) if total > 0 else None


def _add_nodes(
    bottlenecks: pl.DataFrame, source: _Requests, files: pl.DataFrame, layers: Sequence[Members]
) -> pl.DataFrame:
    """Add the outermost and the innermost node of each bottleneck request."""
    rows = source.select(bottlenecks["request"].unique().to_list())
    # a request on several targets is reported with the first one
    pieces = pl.concat([rows.clear(), *split_by_target(rows, files)])
    first = pieces.unique("request", keep="first", maintain_order=True)
    nodes = first.select("request", "start_s")
    for side, member in (("source", layers[0]), ("target", layers[-1])):
        labels = member.layer.labels.gather(member.nodes(first)).alias(f"{side}_node")
        nodes = nodes.with_columns(pl.lit(member.layer.name).alias(f"{side}_layer"), labels)
    return bottlenecks.join(nodes, on="request", how="left", maintain_order="left").select(
        "metric", "bottleneck", "source_layer", "source_node", "target_layer", "target_node", "start_s", "value",
        "median_value", "score", "share_ratio",
    )  # fmt: skip


def _notes(result: NetworkResult, network: Network, skew: Skew) -> tuple[str, ...]:
    """Describe the data and their limits for users."""
    request_text = "1 request" if result.request_count == 1 else f"{result.request_count:,} requests"
    notes = [f"{request_text} of {'the program' if result.module == EVENTS else result.module}."]
    if result.covered_ratio is not None and result.covered_ratio < _COMPLETE_RATIO:
        notes.append(f"They cover {result.covered_ratio:.2%} of the counted bytes: the trace is partial.")
    notes += [
        f"{layer.group_size} consecutive {layer.name}s are drawn as one."
        for layer in network.layers
        if layer.group_size > 1
    ]
    if skew.offset_s is not None and skew.range_s is not None:
        files = "1 file" if skew.file_count == 1 else f"{skew.file_count} files"
        notes.append(
            f"Clocks were aligned by collective opens of {files}; they differed by up to "
            f"{value_text('time', skew.range_s)}."
        )
    if skew.shift_s:
        notes.append(
            f"The ranks' common clock was moved by {value_text('time', abs(skew.shift_s))}: no request is received "
            "before it is sent."
        )
    if result.negative_time_count:
        notes.append(
            f"{result.negative_time_count:,} times are negative because clocks differ: they are drawn as the lowest."
        )
    return tuple(notes)


def _layer_notes(names: Sequence[LayerName], query: Query, *, is_single: bool) -> tuple[str, ...]:
    notes = []
    if not is_single:
        notes.append("The trace has records shared by all ranks, not of single ranks.")
    if query.layers is None and "host" not in names:
        notes.append("The trace names no hosts.")
    if "module" in names:
        notes.append("Requests from one module to another are counted in both.")
    return tuple(notes)
