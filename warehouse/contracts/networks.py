"""Tables of networks: the nodes and transfers of a traced run, their patterns, and the requests that delayed it."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_BINS = (
    "Non-empty logarithmic bins of {}, ascending: bin k is from 2^(k/4) to 2^((k+1)/4) {}; -32767 is zero, -32768 "
    "negative."
)
_SOURCE_LAYER = Column("source_layer", "text", "The outer layer of the edge: rank, host, file and so on.")
_TARGET_LAYER = Column("target_layer", "text", "The inner layer of the edge: host, target, file system and so on.")
_SOURCE_NODE = Column(
    "source_node", "text", "The outer node of the edge; for large numbers of ranks, a range such as 128-255."
)
_TARGET_NODE = Column(
    "target_node", "text", "The inner node of the edge; a storage target is named by its number, such as OST 12."
)
_TRANSFER_COUNT = Column("transfer_count", "int", "Transfers: requests, or their pieces, from one node to another.")
_NETWORK_METRIC = Column(
    "metric",
    "text",
    "Metric: the time, size or bandwidth of transfers.",
    choices=("time", "size", "bandwidth"),
)
_HOP = (
    c.ENDED_ON.optional(),
    c.TRACE_ID,
    Column(
        "hop",
        "int",
        "Number of the edge's pair of layers: 0 is from the outermost layer to the next one inward.",
        low=0,
    ),
    _SOURCE_LAYER,
    _TARGET_LAYER,
)
_WINDOW = (c.WINDOW_START_S, c.WINDOW_END_S)

NETWORK_RUNS = Table(
    name="network_runs",
    layer="transforms",
    grain="one row per traced run, with the properties of its network, or the reason for none",
    key=("trace_id",),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.SOURCE_FILE,
        Column(
            "outcome",
            "text",
            (
                "Whether the run has a network, or the reason why not: no single requests in the trace (no_requests), "
                "no requests that can be placed in two layers (no_layers), or unusable content (refused)."
            ),
            choices=("built", "no_requests", "no_layers", "refused"),
        ),
        c.REASON.optional(),
        Column("network_modules", "text", "Modules of the network's requests.", nullable=True),
        c.COVERED_RATIO.optional(),
        c.REQUEST_COUNT,
        Column("layers", "text", "The layers, outermost first, as a JSON list.", nullable=True),
        Column("group_sizes", "ints", "Members per node of each layer.", unit="members", low=1, nullable=True),
        Column("node_counts", "ints", "Nodes of each layer.", unit="nodes", low=0, nullable=True),
        Column("window_count", "int", "Time windows of the run.", nullable=True),
        Column("window_s", "real", "The length of a time window.", low=0, nullable=True),
        Column(
            "negative_time_count",
            "int",
            "Number of negative times, which are caused by wrong clocks.",
            unit="transfers",
            nullable=True,
        ),
        Column(
            "skew_outcome",
            "text",
            (
                "Whether the ranks' clocks were aligned, or the reason why not: no file was opened collectively by all "
                "ranks (no_collective_open), the trace lacks the times of the ranks (no_times), or it has a single "
                "rank (one_rank)."
            ),
            choices=("corrected", "no_collective_open", "no_times", "one_rank"),
            nullable=True,
        ),
        Column("skew_file_count", "int", "Collectively opened files used to compare the ranks' clocks.", nullable=True),
        Column(
            "skew_range_s",
            "real",
            "Difference between the first and the last of the ranks' clocks.",
            low=0,
            nullable=True,
        ),
        Column(
            "skew_spread_s",
            "real",
            (
                "Disagreement of the files on a rank's clock: median of the ranks' robust standard deviations; NULL "
                "with one file."
            ),
            low=0,
            nullable=True,
        ),
    ),
    partition="ended_on",
)

NETWORK_EDGES = Table(
    name="network_edges",
    layer="transforms",
    grain="one row per traced run, edge between two nodes, and time window with transfers",
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
            (
                "Meaning of the times: duration of requests (service_time), time from an event in one layer to its "
                "counterpart in the next (latency), or duration of storing (write_time)."
            ),
            choices=("service_time", "latency", "write_time"),
        ),
        _TRANSFER_COUNT,
        c.READ_BYTES,
        c.WRITTEN_BYTES,
        Column("timed_count", "int", "Transfers with a known, non-negative time.", unit="transfers"),
        Column("transfer_time_s", "real", "Sum of the times of these transfers.", low=0),
        Column("max_transfer_time_s", "real", "Longest of these times.", low=0),
        Column("time_bins", "ints", _BINS.format("the times", "seconds"), low=-32768, high=32767),
        Column("time_counts", "ints", "Number of transfers in each of time_bins.", unit="transfers", low=1),
        Column("size_bins", "ints", _BINS.format("the sizes", "bytes"), low=-32768, high=32767),
        Column("size_counts", "ints", "Number of transfers in each of size_bins.", unit="transfers", low=1),
        Column("bandwidth_bins", "ints", _BINS.format("bytes by time", "bytes per second"), low=-32768, high=32767),
        Column("bandwidth_counts", "ints", "Number of transfers in each of bandwidth_bins.", unit="transfers", low=1),
    ),
    partition="ended_on",
)

NETWORK_PATTERNS = Table(
    name="network_patterns",
    layer="transforms",
    grain="one row per traced run, pair of layers, metric and time window, and one for the whole run",
    key=("trace_id", "hop", "metric", "is_whole_run", "window_start_s"),
    columns=(
        *_HOP,
        _NETWORK_METRIC,
        Column("is_whole_run", "bool", "Whether the row is of the whole run."),
        *_WINDOW,
        Column(
            "outcome",
            "text",
            (
                "Whether a pattern was named, or the reason why not: too few active nodes (too_few_nodes), too few "
                "transfers with a known value (too_few_transfers), or no pattern matches (no_match)."
            ),
            choices=("matched", "too_few_nodes", "too_few_transfers", "no_match"),
        ),
        Column(
            "pattern",
            "text",
            (
                "Distribution of the values around the ring: similar at all nodes (circular), in bands of neighbors "
                "(striped), scattered (noisy), or high at a few nodes (outlier); Sigovan et al., Figure 6."
            ),
            choices=("circular", "striped", "noisy", "outlier"),
            nullable=True,
        ),
        Column("active_node_count", "int", "Outer nodes with transfers of known value."),
        _TRANSFER_COUNT,
        Column(
            "node_spread",
            "real",
            (
                "Spread of the nodes' means: robust standard deviation, minus the part explained by the number of "
                "transfers."
            ),
            nullable=True,
        ),
        Column(
            "edge_spread",
            "real",
            "Spread of the values within a node: median of the nodes' robust standard deviations.",
            nullable=True,
        ),
        Column(
            "band_ratio",
            "real",
            "The share of the variance between nodes that bands of neighbors explain.",
            nullable=True,
        ),
        Column(
            "nodes_per_band",
            "real",
            "Mean number of nodes from one band of high values to the next along the ring.",
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
    grain="one row per traced run and single request with an outlying size or time",
    key=("trace_id", "metric", "bottleneck"),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        _NETWORK_METRIC,
        Column("bottleneck", "int", "Rank of the request among the bottlenecks, from 0.", low=0),
        _SOURCE_LAYER,
        _SOURCE_NODE,
        _TARGET_LAYER,
        _TARGET_NODE,
        c.START_S,
        Column("value", "real", "The request's size in bytes or time in seconds, depending on the metric.", low=0),
        Column("median_value", "real", "The median of all requests, estimated from the bins.", low=0),
        Column(
            "score",
            "real",
            "Distance of the request above the median, in robust standard deviations (in octaves).",
            low=0,
        ),
        Column(
            "share_ratio", "real", "The request's share of all bytes or of the total time, depending on the metric."
        ),
    ),
    partition="ended_on",
)
