"""Networks: who talked to whom in a traced run, what that looked like, and which requests held it up."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_BINS = (
    "The log bins of {} that hold any, rising: bin k from 2^(k/4) to 2^((k+1)/4) {}; -32767 holds zero, -32768 what is "
    "negative."
)
_SOURCE_LAYER = Column("source_layer", "text", "The outer layer of the edge: rank, host, file and so on.")
_TARGET_LAYER = Column("target_layer", "text", "The inner layer of the edge: host, target, file system and so on.")
_SOURCE_NODE = Column(
    "source_node", "text", "The outer node of the edge; where ranks are many, a range of them, such as 128-255."
)
_TARGET_NODE = Column(
    "target_node", "text", "The inner node of the edge; a storage target is called by its number, such as OST 12."
)
_TRANSFER_COUNT = Column("transfer_count", "int", "Transfers: requests, or their pieces, from one node to another.")
_NETWORK_METRIC = Column(
    "metric",
    "text",
    "What is looked at: the time of transfers, their size, or their bandwidth.",
    choices=("time", "size", "bandwidth"),
)
_HOP = (
    c.ENDED_ON.optional(),
    c.TRACE_ID,
    Column("hop", "int", "The place of the edge's layers: 0 from the outermost layer to the next one inward.", low=0),
    _SOURCE_LAYER,
    _TARGET_LAYER,
)
_WINDOW = (c.WINDOW_START_S, c.WINDOW_END_S)

NETWORK_RUNS = Table(
    name="network_runs",
    layer="transforms",
    grain="one row per traced run, with what its network is made of, or why it has none",
    key=("trace_id",),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.SOURCE_FILE,
        Column(
            "outcome",
            "text",
            "Whether there is a network, and if not, why: the trace has no single requests (no_requests), none of "
            "those it has can be placed in two layers (no_layers), or what it holds makes none (refused).",
            choices=("built", "no_requests", "no_layers", "refused"),
        ),
        c.REASON.optional(),
        Column("network_modules", "text", "The modules whose requests the network is made of.", nullable=True),
        c.COVERED_RATIO.optional(),
        c.REQUEST_COUNT,
        Column("layers", "text", "The layers, outermost first, as a JSON list.", nullable=True),
        Column(
            "group_sizes", "ints", "How many members of each layer are one node.", unit="members", low=1, nullable=True
        ),
        Column("node_counts", "ints", "Nodes of each layer.", unit="nodes", low=0, nullable=True),
        Column("window_count", "int", "Time windows of the run.", nullable=True),
        Column("window_s", "real", "The length of a time window.", low=0, nullable=True),
        Column(
            "negative_time_count",
            "int",
            "Times below zero, which no clock that is right can give.",
            unit="transfers",
            nullable=True,
        ),
        Column(
            "skew_outcome",
            "text",
            "Whether ranks' clocks were set alike, and if not, why: no file was opened by all ranks together, in a "
            "call that waits for all (no_collective_open), when is not told of each rank (no_times), or there is one "
            "rank (one_rank).",
            choices=("corrected", "no_collective_open", "no_times", "one_rank"),
            nullable=True,
        ),
        Column("skew_file_count", "int", "Files by whose opens the ranks' clocks were compared.", nullable=True),
        Column(
            "skew_range_s",
            "real",
            "How far the first and the last of the ranks' clocks were apart.",
            low=0,
            nullable=True,
        ),
        Column(
            "skew_spread_s",
            "real",
            "How far the files disagree on a rank's clock: the median of the ranks' robust standard deviations; NULL "
            "with one file.",
            low=0,
            nullable=True,
        ),
    ),
    partition="ended_on",
)

NETWORK_EDGES = Table(
    name="network_edges",
    layer="transforms",
    grain="one row per traced run, edge between two nodes, and time window in which anything crossed it",
    key=("trace_id", "hop", "source_node", "target_node", "time_window"),
    columns=(
        *_HOP,
        _SOURCE_NODE,
        _TARGET_NODE,
        Column("time_window", "int", "The number of the time window, from 0.", low=0),
        *_WINDOW,
        Column(
            "time_kind",
            "text",
            "What the times are: how long requests took (service_time), from an event in one layer to its answer in "
            "the next (latency), or how long storing took (write_time).",
            choices=("service_time", "latency", "write_time"),
        ),
        _TRANSFER_COUNT,
        c.READ_BYTES,
        c.WRITTEN_BYTES,
        Column("timed_count", "int", "Those of them whose time is known and not negative.", unit="transfers"),
        Column("transfer_time_s", "real", "The sum of the times of these timed_count.", low=0),
        Column("max_transfer_time_s", "real", "The longest of these times.", low=0),
        Column("time_bins", "ints", _BINS.format("the times", "seconds"), low=-32768, high=32767),
        Column("time_counts", "ints", "Transfers in each of time_bins.", unit="transfers", low=1),
        Column("size_bins", "ints", _BINS.format("the sizes", "bytes"), low=-32768, high=32767),
        Column("size_counts", "ints", "Transfers in each of size_bins.", unit="transfers", low=1),
        Column("bandwidth_bins", "ints", _BINS.format("bytes by time", "bytes per second"), low=-32768, high=32767),
        Column("bandwidth_counts", "ints", "Transfers in each of bandwidth_bins.", unit="transfers", low=1),
    ),
    partition="ended_on",
)

NETWORK_PATTERNS = Table(
    name="network_patterns",
    layer="transforms",
    grain="one row per traced run, pair of layers, metric and time window, and one for all windows together",
    key=("trace_id", "hop", "metric", "is_whole_run", "window_start_s"),
    columns=(
        *_HOP,
        _NETWORK_METRIC,
        Column("is_whole_run", "bool", "Whether the row is of all time windows together."),
        *_WINDOW,
        Column(
            "outcome",
            "text",
            "Whether there is a pattern to name, and if not, why: too few nodes are active (too_few_nodes), too few "
            "transfers have a known value (too_few_transfers), or none of the patterns' statistics is met (no_match).",
            choices=("matched", "too_few_nodes", "too_few_transfers", "no_match"),
        ),
        Column(
            "pattern",
            "text",
            "What the values look like around the ring: alike at all nodes (circular), in bands of neighbours "
            "(striped), scattered (noisy), or high at a few nodes (outlier); Sigovan et al., Figure 6.",
            choices=("circular", "striped", "noisy", "outlier"),
            nullable=True,
        ),
        Column("active_node_count", "int", "Outer nodes with transfers whose value is known."),
        _TRANSFER_COUNT,
        Column(
            "node_spread",
            "real",
            "How far the nodes' means lie apart: their robust standard deviation, less what the number of their "
            "transfers explains.",
            nullable=True,
        ),
        Column(
            "edge_spread",
            "real",
            "How far values of one node lie apart: the median of the nodes' robust standard deviations.",
            nullable=True,
        ),
        Column(
            "band_ratio",
            "real",
            "The share of the variance between nodes that bands of neighbours explain.",
            nullable=True,
        ),
        Column(
            "nodes_per_band",
            "real",
            "Nodes along the ring from one band of high values to the next, on the average.",
            unit="nodes",
            low=0,
            nullable=True,
        ),
        Column(
            "outlier_score",
            "real",
            "The highest robust score of a node: its distance above the median in deviations.",
            nullable=True,
        ),
        Column(
            "cause_nodes",
            "text",
            "The nodes that cause the pattern, the strongest first, as a JSON list.",
            nullable=True,
        ),
    ),
    partition="ended_on",
)

NETWORK_BOTTLENECKS = Table(
    name="network_bottlenecks",
    layer="transforms",
    grain="one row per traced run and single request that stands out by its size or time",
    key=("trace_id", "metric", "bottleneck"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        _NETWORK_METRIC,
        Column("bottleneck", "int", "The place of the request among the bottlenecks, from 0.", low=0),
        _SOURCE_LAYER,
        _SOURCE_NODE,
        _TARGET_LAYER,
        _TARGET_NODE,
        c.START_S,
        Column("value", "real", "The request's size in bytes, or its time in seconds, by the metric.", low=0),
        Column("median_value", "real", "The median of all requests, as their bins tell it.", low=0),
        Column(
            "score",
            "real",
            "How many robust standard deviations, in octaves, the request lies above the median.",
            low=0,
        ),
        Column("share_ratio", "real", "The request's share of all bytes, or of all time, by the metric."),
    ),
    partition="ended_on",
)
