"""The network of a traced run, from its landed requests: nodes, edges with their histograms, clocks, patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import polars as pl

from iosig.estimates.columns import floats
from iosig.estimates.networks.events import EventNetwork
from iosig.estimates.networks.layers import LAYER_NAMES, USUAL_LAYERS, LayerName, Members, Seen, members, used
from iosig.estimates.networks.stripes import on_targets
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

#: rows that are taken up at a time: bounds the memory, whatever the trace
_CHUNK_ROWS = 1 << 18
#: a trace that tells of less than this share of the bytes is said to be partial
_WHOLE_RATIO = 0.995
#: the module that reaches storage, where it is traced
LOWEST_MODULE = "POSIX"
#: the module of request events
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
class Asked:
    """What a network is asked for: its layers, outermost first, and the module whose requests it is made of.

    layers: None for ranks, hosts and targets, of which those that the trace tells. module: None for POSIX, or for
    the one that moved most where that was not traced.
    """

    layers: tuple[str, ...] | None = None
    module: str | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A network, or why there is none, with what was found in it.

    outcome: as in `network_runs`. module, request_count: what it was made of. covered_ratio: the share of the
    module's counted bytes that these requests moved; None if nothing was counted. skew: of the ranks' clocks.
    patterns: of `iosig.transforms.networks.patterns`. bottlenecks: rows of `network_bottlenecks` without the trace's
    own columns. notes: sentences for people.
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


def network_of_trace(
    landed: Mapping[str, Sequence[pl.LazyFrame]], asked: Asked, params: NetworkParams, process_count: int | None
) -> Made:
    """Make the network of a traced run from its landed rows, by table.

    landed: those of `request_events`, if the trace has any; else of `trace_requests`, `trace_files`, `trace_records`.

    Raises UsageError if the layers or the module that are asked for are not in the trace.
    """
    events = landed.get(REQUEST_EVENTS.name, ())
    if events:
        return _of_events(events, asked, params, process_count)
    files, records = (
        pl.concat(
            [
                frames.empty(table).select(columns),
                *pl.collect_all(found.select(columns) for found in landed[table.name]),
            ]
        )
        for table, columns in ((TRACE_FILES, OF_FILES), (TRACE_RECORDS, OF_RECORDS))
    )
    return network_of(landed[TRACE_REQUESTS.name], files, records, asked, params, process_count)


def network_of(
    requests: Sequence[pl.LazyFrame],
    files: pl.DataFrame,
    records: pl.DataFrame,
    asked: Asked,
    params: NetworkParams,
    process_count: int | None = None,
) -> Made:
    """Make the network of a traced run.

    requests: rows of `trace_requests`, read twice, some rows at a time; files, records: rows of `trace_files` and
    `trace_records`. process_count: of the run, if it is known; else the ranks that are seen.

    Raises UsageError if the layers or the module that are asked for are not in the trace.
    """
    told = _told(requests)
    modules = _modules(told, asked)
    if not modules:
        return Made("no_requests", notes=("The trace has no single requests.",))
    told = told.filter(pl.col("module").is_in(modules))
    rows = told.select(_SUMMED).row(0, named=True)
    source = _Requests(requests, modules)
    # where all ranks are told of together, no single one is a node
    is_single = rows["rank_high"] >= 0
    rank_high = max(rows["rank_high"], (process_count or 0) - 1 if is_single else -1)
    hosts, numbers = (told[name].explode().unique().to_list() for name in ("hosts", "file_numbers"))
    seen = Seen(hosts, modules, numbers, files, rows["rank_low"], rank_high)
    names = _layer_names(asked, seen)
    covered_ratio = _covered(records, modules, rows["moved_bytes"])
    made = Made("no_layers", None, ", ".join(modules), rows["request_count"], covered_ratio)
    if len(names) < 2:
        return replace(made, notes=("The trace tells of one layer only.",))
    skew = _skew(records, max(seen.rank_high + 1, process_count or 0))
    layers = [members(name, seen, params) for name in names]
    counted = _Counted(layers, span_of(rows["start_s"], rows["end_s"], skew, params), skew, process_count)
    for chunk in source.chunks():
        counted.add(chunk, on_targets(chunk, files) if "target" in names else ())
    network = without_idle(counted.counter.result())
    made = replace(made, outcome="built", network=network, skew=skew, negative_time_count=_negative_count(network))
    return replace(
        made,
        patterns=classify_patterns(network),
        bottlenecks=_placed(counted.finder.result(), source, files, layers),
        notes=_notes(made, network, skew) + _layer_notes(names, asked, is_single=is_single),
    )


def _of_events(events: Sequence[pl.LazyFrame], asked: Asked, params: NetworkParams, process_count: int | None) -> Made:
    if asked.layers or asked.module:
        raise UsageError("A trace of request events has its own layers: give neither layers nor a module.")
    found = EventNetwork(events, params, process_count)
    if len(found.numbers) < 2:
        return Made("no_layers", notes=("The trace tells of one layer only.",))
    members = found.members()
    network = without_idle(found.network(members))
    made = Made("built", network, module=EVENTS, request_count=found.request_count, skew=found.skew)
    if network.edges.is_empty():
        why = "No event has a counterpart, with the same rank and request, in the layer before or behind."
        return replace(made, outcome="no_layers", network=None, notes=(why,))
    made = replace(made, negative_time_count=_negative_count(network))
    notes = _notes(made, network, found.skew)
    if found.unmatched_count:
        are = "1 event has" if found.unmatched_count == 1 else f"{found.unmatched_count:,} events have"
        notes += (f"{are} no counterpart in the layer before or behind.",)
    return replace(made, patterns=classify_patterns(network), bottlenecks=found.bottlenecks(members), notes=notes)


# ---- what there is


#: what is told of requests, some together
TOLD = {
    "request_count": pl.len(),
    "moved_bytes": pl.col("request_bytes").sum(),
    "rank_low": pl.col("rank").min(),
    "rank_high": pl.col("rank").max(),
    "start_s": pl.col("start_s").min(),
    "end_s": pl.col("end_s").max(),
}


def _told(requests: Sequence[pl.LazyFrame]) -> pl.DataFrame:
    """Return of each module its requests, bytes, ranks, time, hosts and files."""
    if not requests:
        return pl.DataFrame()
    return (
        pl.concat(requests)
        .group_by("module")
        .agg(
            **TOLD,
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


def _modules(told: pl.DataFrame, asked: Asked) -> list[str]:
    """Return the modules whose requests are taken: all where they are a layer, else one."""
    known: list[str] = told["module"].to_list() if told.width else []
    if asked.module is not None:
        if known and asked.module not in known:
            raise UsageError(f"The trace has no requests of {asked.module}, but of {', '.join(known)}.")
        return [asked.module] if known else []
    if "module" in (asked.layers or ()) or not known:
        return known
    if LOWEST_MODULE in known:
        return [LOWEST_MODULE]
    return [told.sort("moved_bytes", "module", descending=[True, False])["module"][0]]


def _layer_names(asked: Asked, seen: Seen) -> tuple[LayerName, ...]:
    if asked.layers is None:
        has_hosts = any(host is not None for host in seen.hosts)
        usual = tuple(name for name in USUAL_LAYERS if name != "host" or has_hosts)
        return usual if seen.is_storage_known or not seen.is_file_known else (*usual[:-1], "file")
    known: dict[str, LayerName] = {name: name for name in LAYER_NAMES}
    if len(asked.layers) < 2 or len(set(asked.layers)) < len(asked.layers) or not set(asked.layers) <= set(known):
        raise UsageError(f"Name two or more different layers, outermost first, of {', '.join(known)}.")
    return tuple(known[name] for name in asked.layers)


@dataclass(frozen=True, slots=True)
class _Requests:
    """The landed requests of some modules, some rows at a time."""

    rows: Sequence[pl.LazyFrame]
    modules: Sequence[str]

    def _lazy(self) -> pl.LazyFrame:
        return pl.concat(self.rows).filter(pl.col("module").is_in(self.modules))

    def chunks(self) -> Iterator[pl.DataFrame]:
        rows = self._lazy().select(NEEDED)
        yield from rows.collect_batches(chunk_size=_CHUNK_ROWS, maintain_order=True, engine="streaming")

    def of(self, numbers: Sequence[int]) -> pl.DataFrame:
        """Return the rows of some requests, by their numbers."""
        return self._lazy().filter(pl.col("request").is_in(numbers)).select(NEEDED).collect(engine="streaming")


def _skew(records: pl.DataFrame, process_count: int) -> Skew:
    opens = records.filter(pl.col("module") == "MPIIO").select(
        "rank", "collective_open_count", "open_end_s", file="file_number"
    )
    return estimate_skew(opens, process_count)


def span_of(start_s: float, end_s: float, skew: Skew, params: NetworkParams) -> Reals:
    """Return the edges of the time windows: all requests lie within them, whatever their rank's clock."""
    if skew.offset_s is not None:
        start_s, end_s = (
            start_s - max(float(skew.offset_s.max()), 0.0),
            end_s - min(float(skew.offset_s.min()), 0.0),
        )
    return window_edges(min(0.0, start_s), end_s, params.window_count)


# ---- counting


class _Counted:
    """Requests as they are counted: on the edges of each hop, and the largest and the longest."""

    def __init__(self, layers: Sequence[Members], window_edges_s: Reals, skew: Skew, process_count: int | None) -> None:
        self.layers = layers
        self.finder = BottleneckFinder(process_count=process_count)
        self._skew = skew
        kind: TimeKind = "service_time"
        self.counter = EdgeCounter(
            tuple(member.layer for member in layers), (kind,) * (len(layers) - 1), window_edges_s
        )

    def add(self, chunk: pl.DataFrame, pieces: Iterable[pl.DataFrame]) -> None:
        """Count requests; `pieces` are the same, cut by storage targets, if that is a layer."""
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
        self.counter.add(Transfers(hop, source.nodes(rows), target.nodes(rows), at_s, *measures_of(rows)))


def measures_of(rows: pl.DataFrame) -> tuple[Reals, Reals, Reals, Bools]:
    """Return the service time [s], size [bytes] and bandwidth [bytes/s] of requests (n), and whether each is a read.

    The bandwidth is NaN where the service time is not positive.
    """
    size_bytes = floats(rows["request_bytes"])
    time_s: Reals = (rows["end_s"] - rows["start_s"]).to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        bandwidth = np.where(time_s > 0, size_bytes / time_s, np.nan)
    return time_s, size_bytes, bandwidth, (rows["direction"] == "read").to_numpy()


def without_idle(network: Network) -> Network:
    """Return a network without the nodes that have no edge; those of ranks stay."""
    kept = used(network.layers, network.edges)
    layers, edges = list(network.layers), network.edges
    for number, nodes in kept.items():
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


# ---- what is said of it


def _covered(records: pl.DataFrame, modules: Sequence[str], moved_bytes: float) -> float | None:
    counted = records.filter(pl.col("module").is_in(modules)).select(
        pl.sum_horizontal(pl.col("read_bytes", "written_bytes").sum())
    )
    total = float(counted.item() or 0)
    return min(moved_bytes / total, 1.0) if total > 0 else None


def _placed(found: pl.DataFrame, source: _Requests, files: pl.DataFrame, layers: Sequence[Members]) -> pl.DataFrame:
    """Return bottlenecks with the nodes that they were between: the outermost one and the innermost one."""
    rows = source.of(found["request"].unique().to_list())
    # a request on several targets is told with the first
    pieces = pl.concat([rows.clear(), *on_targets(rows, files)])
    first = pieces.unique("request", keep="first", maintain_order=True)
    nodes = first.select("request", "start_s")
    for side, member in (("source", layers[0]), ("target", layers[-1])):
        labels = member.layer.labels.gather(member.nodes(first)).alias(f"{side}_node")
        nodes = nodes.with_columns(pl.lit(member.layer.name).alias(f"{side}_layer"), labels)
    return found.join(nodes, on="request", how="left", maintain_order="left").select(
        "metric", "bottleneck", "source_layer", "source_node", "target_layer", "target_node", "start_s", "value",
        "median_value", "score", "share_ratio",
    )  # fmt: skip


def _notes(made: Made, network: Network, skew: Skew) -> tuple[str, ...]:
    """Return what was measured and how well, in sentences."""
    asked = "1 request" if made.request_count == 1 else f"{made.request_count:,} requests"
    notes = [f"{asked} of {'the program' if made.module == EVENTS else made.module}."]
    if made.covered_ratio is not None and made.covered_ratio < _WHOLE_RATIO:
        notes.append(f"They are {made.covered_ratio:.2%} of the bytes that were counted: the trace is partial.")
    notes += [
        f"{layer.group_size} consecutive {layer.name}s are drawn as one."
        for layer in network.layers
        if layer.group_size > 1
    ]
    if skew.offset_s is not None and skew.range_s is not None:
        files = "1 file" if skew.file_count == 1 else f"{skew.file_count} files"
        notes.append(
            f"Clocks were set by collective opens of {files}; they were up to {value_text('time', skew.range_s)} apart."
        )
    if made.negative_time_count:
        notes.append(
            f"{made.negative_time_count:,} times are negative, by clocks that differ: they are drawn as the lowest."
        )
    return tuple(notes)


def _layer_notes(names: Sequence[LayerName], asked: Asked, *, is_single: bool) -> tuple[str, ...]:
    notes = []
    if not is_single:
        notes.append("The trace tells of all ranks together, not of single ones.")
    if asked.layers is None and "host" not in names:
        notes.append("The trace names no hosts.")
    if "module" in names:
        notes.append("What one module asks of another is in both.")
    return tuple(notes)
