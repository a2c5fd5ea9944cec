"""Build the networks of many small traced runs in one batch, with the same results as `build_network`.

Small networks are expensive because of the overhead of many tiny frames. Here, all runs share frames with a column
`run`. Runs with special properties (large layers, windows that are not increasing) are left to `build_network`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from iosig.estimates.columns import floats
from iosig.estimates.networks.builder import (
    LOWEST_MODULE,
    NEEDED,
    OF_FILES,
    OF_RECORDS,
    REQUEST_AGGREGATES,
    compute_window_edges,
    measure_requests,
)
from iosig.estimates.networks.layers import sort_naturally
from iosig.estimates.networks.stripes import split_by_target
from iosig.transforms.arrays import Ints, Reals, offsets_of
from iosig.transforms.networks.batches import LayerBatch, NetworkBatch, TransferBatch
from iosig.transforms.networks.bottlenecks import BOTTLENECK_SCHEMA, BottleneckFinder
from iosig.transforms.networks.clock_skew import Skew, estimate_skew_by_run
from iosig.transforms.networks.counting import BatchCounter, has_equal_windows
from iosig.transforms.networks.log_bins import NEGATIVE
from iosig.transforms.networks.network import METRICS, NetworkParams, TimeKind
from iosig.transforms.networks.patterns import classify_batch_patterns
from iosig.transforms.networks.rows import (
    batch_edge_rows,
    batch_pattern_rows,
    bottleneck_rows,
    network_values,
    run_rows,
    run_values,
)
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.networks import NETWORK_BOTTLENECKS, NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_RUNS
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_RECORDS, TRACE_REQUESTS

#: maximum number of request pieces in memory; larger networks are built one by one, in chunks
_MAX_PIECES = 1 << 18
_FILE = ["run", "file_number"]
_KIND: TimeKind = "service_time"
#: required columns by table
COLUMNS = {TRACE_REQUESTS: NEEDED, TRACE_FILES: OF_FILES, TRACE_RECORDS: OF_RECORDS}


class TooManyPiecesError(Exception):
    """Raised if a batch exceeds `_MAX_PIECES`; the caller uses smaller batches."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Rows of the network tables, with the index `run` in place of the columns that identify the run.

    left: indices of the runs that must be built one by one.
    """

    rows: Mapping[Table, pl.DataFrame]
    left: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Run:
    """Properties of a run before its requests are counted; number: index in the input."""

    number: int
    module: str
    request_count: int
    covered_ratio: float | None
    skew: Skew
    process_count: int | None
    rank_low: int
    rank_count: int
    has_hosts: bool
    has_targets: bool
    window_edges_s: Reals

    @property
    def names(self) -> tuple[str, ...]:
        return ("rank", *["host"] * self.has_hosts, "target" if self.has_targets else "file")


def build_batch(
    landed: Mapping[Table, pl.DataFrame], process_counts: Sequence[int | None], params: NetworkParams
) -> BatchResult:
    """Build the networks of runs (n) from landed rows (`COLUMNS`) with the index of their `run`.

    process_counts: number of processes per run (n), None if unknown. Raises TooManyPiecesError.
    """
    by_run = _select_modules(landed[TRACE_REQUESTS])
    files, remaining = landed[TRACE_FILES], _many_members(landed, by_run, process_counts, params)
    runs = list(_runs(landed, by_run.filter(~pl.col("run").is_in(remaining)), process_counts, params))
    remaining |= {run.number for run in runs if not has_equal_windows(run.window_edges_s)}
    runs = [run for run in runs if run.number not in remaining]
    silent_numbers = sorted(set(range(len(process_counts))) - remaining - {run.number for run in runs})
    lines = [run_values("no_requests") for _ in silent_numbers]
    if not runs:
        return BatchResult(
            {NETWORK_RUNS: _add_run_numbers(run_rows(lines), silent_numbers)} if silent_numbers else {},
            sorted(remaining),
        )
    requests = _Requests.build(landed[TRACE_REQUESTS], files, runs)
    networks = requests.count()
    rows = {
        NETWORK_RUNS: _add_run_numbers(
            run_rows([*_lines(runs, networks), *lines]), [*(run.number for run in runs), *silent_numbers]
        ),
        NETWORK_EDGES: batch_edge_rows(networks),
        NETWORK_PATTERNS: batch_pattern_rows(networks, classify_batch_patterns(networks)),
        NETWORK_BOTTLENECKS: bottleneck_rows(requests.bottlenecks()),
    }
    numbers = np.array([run.number for run in runs])
    for table in (NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_BOTTLENECKS):
        rows[table] = rows[table].with_columns(pl.Series("run", numbers[rows[table]["run"].to_numpy()]))
    return BatchResult(rows, sorted(remaining))


def _add_run_numbers(lines: pl.DataFrame, numbers: Sequence[int]) -> pl.DataFrame:
    return lines.with_columns(pl.Series("run", numbers, dtype=pl.Int64)).sort("run")


# ---- selection


def _select_modules(requests: pl.DataFrame) -> pl.DataFrame:
    """Select the module of each run, and aggregate its requests."""
    return (
        requests.group_by("run", "module")
        .agg(
            **REQUEST_AGGREGATES,
            host_count=pl.col("host").n_unique(),
            has_hosts=pl.col("host").is_not_null().any(),
            has_files=pl.col("file_number").is_not_null().any(),
        )
        .sort(
            "run",
            pl.col("module") == LOWEST_MODULE,
            "moved_bytes",
            "module",
            descending=[False, True, True, False],
        )
        .unique("run", keep="first", maintain_order=True)
    )


def _many_members(
    landed: Mapping[Table, pl.DataFrame],
    by_run: pl.DataFrame,
    process_counts: Sequence[int | None],
    params: NetworkParams,
) -> set[int]:
    """Return the runs that may exceed `max_node_count` in a layer, or have inconsistent metadata."""
    files = landed[TRACE_FILES]
    target_count = pl.len() + pl.col("osts").list.len().sum()
    by_files = files.group_by("run").agg(
        is_many=(target_count > params.max_node_count) | pl.col("file_number").is_duplicated().any()
    )
    rank_count = pl.col("rank_high") - pl.min_horizontal("rank_low", 0) + 1
    by_requests = by_run.filter((rank_count > params.max_node_count) | (pl.col("host_count") > params.max_node_count))
    large = {*by_files.filter("is_many")["run"], *by_requests["run"]}
    max_count = params.max_node_count
    return large | {n for n, count in enumerate(process_counts) if count is not None and not 1 <= count <= max_count}


def _runs(
    landed: Mapping[Table, pl.DataFrame],
    by_run: pl.DataFrame,
    process_counts: Sequence[int | None],
    params: NetworkParams,
) -> Iterator[_Run]:
    records = landed[TRACE_RECORDS].join(by_run.select("run", taken="module"), on="run")
    is_taken = pl.col("module") == pl.col("taken")
    counted_bytes = dict(
        records.filter(is_taken)
        .group_by("run")
        .agg(pl.sum_horizontal(pl.col("read_bytes", "written_bytes").sum()))
        .iter_rows()
    )
    rows = by_run.to_dicts()
    counts = [process_counts[row["run"]] for row in rows]
    rank_highs = [
        max(row["rank_high"], (count or 0) - 1 if row["rank_high"] >= 0 else -1)
        for row, count in zip(rows, counts, strict=True)
    ]
    sizes = [max(high + 1, count or 0) for high, count in zip(rank_highs, counts, strict=True)]
    skews = _skews(records, by_run, sizes)
    targets = _with_targets(landed, by_run)
    for row, high, count, skew in zip(rows, rank_highs, counts, skews, strict=True):
        low = min(row["rank_low"], 0)
        total = float(counted_bytes.get(row["run"]) or 0)
        yield _Run(
            number=row["run"],
            module=row["module"],
            request_count=row["request_count"],
            covered_ratio=min(row["moved_bytes"] / total, 1.0) if total > 0 else None,
            skew=skew,
            process_count=count,
            rank_low=low,
            rank_count=high - low + 1,
            has_hosts=row["has_hosts"],
            has_targets=row["run"] in targets or not row["has_files"],
            window_edges_s=compute_window_edges(row["start_s"], row["end_s"], skew, params),
        )


def _skews(records: pl.DataFrame, by_run: pl.DataFrame, sizes: Sequence[int]) -> list[Skew]:
    """Estimate the clock skew of the runs (n); sizes: process counts."""
    places = by_run.select("run").with_row_index("place").cast(pl.Int64)
    opens = records.filter(pl.col("module") == "MPIIO").join(places, on="run")
    return estimate_skew_by_run(
        opens.select("rank", "collective_open_count", "open_end_s", run="place", file="file_number"), sizes
    )


def _with_targets(landed: Mapping[Table, pl.DataFrame], by_run: pl.DataFrame) -> set[int]:
    """Return the runs with a known storage location of any used file."""
    used = _of_modules(landed[TRACE_REQUESTS], by_run.select("run", "module")).select(_FILE).unique()
    has_storage = pl.any_horizontal(pl.col("mount", "filesystem_kind", "osts").is_not_null())
    return set(landed[TRACE_FILES].filter(has_storage).join(used, on=_FILE, how="semi")["run"])


def _of_modules(requests: pl.DataFrame, modules: pl.DataFrame) -> pl.DataFrame:
    return requests.join(modules, on=["run", "module"], how="semi", maintain_order="left")


# ---- counting


@dataclass(frozen=True, slots=True)
class _Requests:
    """Requests of renumbered runs, with layers and nodes.

    whole: requests ordered by run, with the label `host`. pieces: the same requests, split by target in the innermost
    layer, with its label `end`.
    """

    runs: Sequence[_Run]
    whole: pl.DataFrame
    pieces: pl.DataFrame
    files: pl.DataFrame
    layers: LayerBatch
    #: node by layer and label, for layers with labels
    nodes: pl.DataFrame

    @classmethod
    def build(cls, requests: pl.DataFrame, files: pl.DataFrame, runs: Sequence[_Run]) -> _Requests:
        """Renumber the runs, split their requests, and build the layers."""
        numbers = pl.DataFrame(
            {
                "number": [run.number for run in runs],
                "module": [run.module for run in runs],
                "has_targets": [run.has_targets for run in runs],
                "place": np.arange(len(runs)),
            }
        )
        selected = requests.join(
            numbers, left_on=["run", "module"], right_on=["number", "module"], maintain_order="left"
        )
        of_files = files.join(numbers.select("number", "place"), left_on="run", right_on="number")
        requests_by_run = selected.with_columns(run="place").drop("place").sort("run", maintain_order=True)
        requests_by_run = requests_by_run.with_columns(pl.col("host").fill_null("unknown host"))
        of_files = (
            of_files.with_columns(run="place").drop("place").with_row_index("file_key").cast({"file_key": pl.Int64})
        )
        pieces = _pieces(requests_by_run, of_files)
        layers, nodes = _layers(runs, requests_by_run, pieces)
        return cls(runs, requests_by_run, pieces, of_files, layers, nodes)

    def count(self) -> NetworkBatch:
        """Count the requests on the edges between layers."""
        first, last = self.layers.first[:-1], self.layers.first[1:] - 1
        inner = self._transfers(self.pieces, self._outer(self.pieces), self._nodes(self.pieces, last, "end"))
        has_hosts = np.array([run.has_hosts for run in self.runs])
        hosted = self.whole.filter(pl.Series(has_hosts).gather(self.whole["run"]))
        outer = self._transfers(hosted, self._ranks(hosted), self._nodes(hosted, first + 1, "host"))
        columns = [np.concatenate(pair) for pair in zip(outer, inner, strict=True)]
        counter = BatchCounter(self.layers, np.stack([run.window_edges_s for run in self.runs]))
        counter.add(TransferBatch(*columns))
        return counter.result()

    def _transfers(self, rows: pl.DataFrame, source: Ints, target: Ints) -> Sequence[Any]:
        run: Ints = rows["run"].to_numpy()
        at_s = rows["start_s"].to_numpy() - self._ahead_s(run, rows["rank"].to_numpy())
        return run, source, target, at_s, *measure_requests(rows)

    def _ahead_s(self, run: Ints, rank: Ints) -> Reals:
        """Return the clock offset of each request's rank [s]."""
        rank_offsets = [np.zeros(0) if item.skew.offset_s is None else item.skew.offset_s for item in self.runs]
        first, all_s = offsets_of([len(item) for item in rank_offsets]), np.concatenate([*rank_offsets, np.zeros(1)])
        is_known = (rank >= 0) & (rank < np.diff(first)[run])
        offsets_s: Reals = np.where(is_known, all_s[np.where(is_known, first[run] + rank, 0)], 0.0)
        return offsets_s

    def _ranks(self, rows: pl.DataFrame) -> Ints:
        run = rows["run"].to_numpy()
        lows = np.array([item.rank_low for item in self.runs])
        nodes: Ints = self.layers.first_node[self.layers.first[run]] + rows["rank"].to_numpy() - lows[run]
        return nodes

    def _outer(self, rows: pl.DataFrame) -> Ints:
        """Return the node of the layer before the innermost one: the host, or the rank if hosts are unknown."""
        has_hosts = np.array([run.has_hosts for run in self.runs])[rows["run"].to_numpy()]
        hosts = self._nodes(rows, self.layers.first[1:] - 2, "host")
        return np.where(has_hosts, hosts, self._ranks(rows))

    def _nodes(self, rows: pl.DataFrame, layer: Ints, label: str) -> Ints:
        """Look up nodes by the label in a column, -1 if unknown; layer: layer index per run."""
        keys = pl.DataFrame({"layer": layer[rows["run"].to_numpy()], "label": rows[label]})
        joined = keys.join(self.nodes, on=["layer", "label"], how="left", maintain_order="left")
        nodes: Ints = joined["node"].fill_null(-1).to_numpy()
        return nodes

    # ---- individual requests

    def bottlenecks(self) -> pl.DataFrame:
        """Return the bottleneck requests with their outermost and innermost nodes, as `build_network` does."""
        bottlenecks_found = pl.DataFrame(
            list(self._find_bottlenecks()), schema={"run": pl.Int64(), **BOTTLENECK_SCHEMA}, orient="row"
        )
        rows = self.whole.join(
            bottlenecks_found.select("run", "request"), on=["run", "request"], how="semi", maintain_order="left"
        )
        # a request on several targets is reported with the first one
        first = _pieces(rows, self.files).unique(["run", "request"], keep="first", maintain_order=True)
        run = first["run"].to_numpy()
        names = pl.Series(self.layers.names, dtype=pl.String)
        nodes = first.select(
            "run",
            "request",
            "start_s",
            source_layer=pl.lit("rank"),
            source_node=self.layers.labels.gather(self._ranks(first)),
            target_layer=names.gather(self.layers.first[1:][run] - 1),
            target_node="end",
        )
        return bottlenecks_found.join(nodes, on=["run", "request"], how="left", maintain_order="left").select(
            "run", "metric", "bottleneck", "source_layer", "source_node", "target_layer", "target_node", "start_s",
            "value", "median_value", "score", "share_ratio",
        )  # fmt: skip

    def _find_bottlenecks(self) -> Iterator[tuple[object, ...]]:
        bounds = np.searchsorted(self.whole["run"].to_numpy(), np.arange(len(self.runs) + 1))
        request: Ints = self.whole["request"].to_numpy()
        sizes, times = floats(self.whole["request_bytes"]), (self.whole["end_s"] - self.whole["start_s"]).to_numpy()
        for number, run in enumerate(self.runs):
            run_slice = slice(bounds[number], bounds[number + 1])
            finder = BottleneckFinder(process_count=run.process_count)
            finder.add("size", sizes[run_slice], request[run_slice])
            finder.add("time", times[run_slice], request[run_slice])
            yield from ((number, *row) for row in finder.rows())


def _pieces(requests: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """Split requests as they reach the innermost layer, and add its label as `end`.

    Raises TooManyPiecesError.
    """
    keyed = requests.drop("file_number").with_columns(file_number=_keys(requests, files))
    file_labels = files.select("file_key", "path", "mount", "filesystem_kind", number="file_number")
    number = pl.Series("number", requests["file_number"])
    path = pl.coalesce("path", pl.format("file {}", pl.col("number"))).fill_null("unknown file")
    on_files = (
        keyed.with_columns(number)
        .filter(~pl.col("has_targets"))
        .join(file_labels.drop("number"), left_on="file_number", right_on="file_key", how="left", maintain_order="left")
        .with_columns(end=path)
    )
    striped = files.drop("file_number").rename({"file_key": "file_number"})
    cut, count = [keyed.clear()], 0
    for piece in split_by_target(keyed.filter("has_targets"), striped):
        count += piece.height
        if count > _MAX_PIECES:
            raise TooManyPiecesError
        cut.append(piece.select(keyed.columns))
    system = pl.coalesce("mount", "filesystem_kind").fill_null("unknown storage")
    on_them = (
        pl.concat(cut, how="vertical_relaxed")
        .join(file_labels, left_on="file_number", right_on="file_key", how="left", maintain_order="left")
        .with_columns(end=pl.coalesce(pl.format("OST {}", "ost"), system))
    )
    columns = [*keyed.columns, "end"]
    return pl.concat([on_them.select(columns), on_files.select(columns)], how="vertical_relaxed")


def _keys(requests: pl.DataFrame, files: pl.DataFrame) -> pl.Series:
    """Return the key of each request's file, NULL without a row in `trace_files`."""
    keys = files.select(*_FILE, "file_key")
    return requests.select(_FILE).join(keys, on=_FILE, how="left", maintain_order="left")["file_key"]


def _layers(runs: Sequence[_Run], requests: pl.DataFrame, pieces: pl.DataFrame) -> tuple[LayerBatch, pl.DataFrame]:
    """Build the layers of all runs, and the lookup from layer and label to node."""
    names = [run.names for run in runs]
    first = offsets_of([len(layer_names) for layer_names in names])
    has_hosts = pl.Series([run.has_hosts for run in runs])
    hosts = requests.filter(has_hosts.gather(requests["run"])).select("run", label="host").unique()
    ends = pieces.select("run", label="end").unique()
    labeled = pl.concat(
        [
            hosts.select("label", layer=pl.Series(first[hosts["run"].to_numpy()] + 1)),
            ends.select("label", layer=pl.Series(first[ends["run"].to_numpy() + 1] - 1)),
        ]
    )
    order = sort_naturally(labeled["label"].unique())
    places = pl.DataFrame({"label": pl.Series(order, dtype=pl.String), "place": np.arange(len(order))})
    ranks = _rank_labels(runs, first)
    nodes = (
        pl.concat([ranks, labeled.join(places, on="label").select("layer", "place", "label")])
        .sort("layer", "place")
        .with_columns(node=pl.int_range(pl.len(), dtype=pl.Int64))
    )
    layer_count = int(first[-1])
    kinds: list[TimeKind | None] = [
        _KIND if n + 1 < len(layer_names) else None for layer_names in names for n in range(len(layer_names))
    ]
    first_node = offsets_of(np.bincount(nodes["layer"].to_numpy(), minlength=layer_count))
    layers = LayerBatch(
        tuple(name for layer_names in names for name in layer_names), tuple(kinds), first, first_node, nodes["label"]
    )
    return layers, nodes.select("layer", "label", "node")


def _rank_labels(runs: Sequence[_Run], first: Ints) -> pl.DataFrame:
    """Return the nodes of all ranks, including ranks without requests."""
    counts = np.array([run.rank_count for run in runs])
    run = np.repeat(np.arange(len(runs)), counts)
    place = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)
    rank = pl.Series(place + np.array([item.rank_low for item in runs])[run])
    label = pl.when(pl.col("rank") == -1).then(pl.lit("all ranks")).otherwise(pl.col("rank").cast(pl.String))
    return pl.DataFrame({"layer": first[run], "place": place, "rank": rank}).select("layer", "place", label=label)


# ---- results


def _lines(runs: Sequence[_Run], networks: NetworkBatch) -> Iterator[dict[str, object]]:
    """Yield the values of each run's row in `network_runs`."""
    layers, counts = networks.layers, networks.counts
    is_negative = (pl.col("bin") == NEGATIVE) & (pl.col("metric") == METRICS.index("time"))
    negative = counts.filter(is_negative)
    run_of_edge = layers.run[layers.find_layers(networks.source)]
    negative_counts = np.bincount(run_of_edge[negative["edge"].to_numpy()], negative["count"].to_numpy(), len(runs))
    node_counts = np.diff(layers.first_node)
    for number, run in enumerate(runs):
        run_node_counts = node_counts[layers.first[number] : layers.first[number + 1]].tolist()
        yield run_values(
            "built",
            module=run.module,
            request_count=run.request_count,
            covered_ratio=run.covered_ratio,
            skew=run.skew,
            negative_time_count=int(negative_counts[number]),
        ) | network_values(run.names, [1] * len(run_node_counts), run_node_counts, run.window_edges_s)
