"""The columns of networks: which node talked to which, and what was remarkable about it."""

from warehouse.contracts.types import Column

HOP = Column("hop", "int", "The place of the edge's layers: 0 from the outermost layer to the next one inward.", low=0)
SOURCE_LAYER = Column("source_layer", "text", "The outer layer of the edge: rank, host, file and so on.")
TARGET_LAYER = Column("target_layer", "text", "The inner layer of the edge: host, target, file system and so on.")
SOURCE_NODE = Column(
    "source_node", "text", "The outer node of the edge; where ranks are many, a range of them, such as 128-255."
)
TARGET_NODE = Column(
    "target_node", "text", "The inner node of the edge; a storage target is called by its number, such as OST 12."
)
WINDOW = Column("time_window", "int", "The number of the time window, from 0.", low=0)
WINDOW_BEGAN_S = Column("window_began_s", "real", "Where the time window begins, from the run's start on.", unit="s")
WINDOW_CEASED_S = Column("window_ceased_s", "real", "Where the time window ends, from the run's start on.", unit="s")
TIME_KIND = Column(
    "time_kind",
    "text",
    "What the times are: how long requests took (service_time), from an event in one layer to its answer in the next "
    "(latency), or how long storing took (write_time).",
    choices=("service_time", "latency", "write_time"),
)
TRANSFER_COUNT = Column(
    "transfer_count", "int", "Transfers: requests, or their pieces, from one node to another.", unit="transfers", low=0
)
TIMED_COUNT = Column(
    "timed_count", "int", "Those of them whose time is known and not negative.", unit="transfers", low=0
)
TRANSFER_TIME_S = Column("transfer_time_s", "real", "The sum of the times of these timed_count.", unit="s", low=0)
LONGEST_S = Column("longest_s", "real", "The longest of these times.", unit="s", low=0)
_BINS = (
    "The log bins of {} that hold any, rising: bin k from 2^(k/4) to 2^((k+1)/4) {}; -32767 holds zero, -32768 what is "
    "negative."
)
TIME_BINS = Column("time_bins", "ints", _BINS.format("the times", "seconds"), low=-32768, high=32767)
TIME_COUNTS = Column("time_counts", "ints", "Transfers in each of time_bins.", unit="transfers", low=1)
SIZE_BINS = Column("size_bins", "ints", _BINS.format("the sizes", "bytes"), low=-32768, high=32767)
SIZE_COUNTS = Column("size_counts", "ints", "Transfers in each of size_bins.", unit="transfers", low=1)
BANDWIDTH_BINS = Column(
    "bandwidth_bins", "ints", _BINS.format("bytes by time", "bytes per second"), low=-32768, high=32767
)
BANDWIDTH_COUNTS = Column("bandwidth_counts", "ints", "Transfers in each of bandwidth_bins.", unit="transfers", low=1)

NETWORK_METRIC = Column(
    "metric",
    "text",
    "What is looked at: the time of transfers, their size, or their bandwidth.",
    choices=("time", "size", "bandwidth"),
)
IS_WHOLE = Column("is_whole", "bool", "Whether the row is of all time windows together.")
PATTERN_OUTCOME = Column(
    "outcome",
    "text",
    "Whether there is a pattern to name, and if not, why: too few nodes are active (too_few_nodes), too few transfers "
    "have a known value (too_few_transfers), or none of the patterns' statistics is met (none_fits).",
    choices=("named", "too_few_nodes", "too_few_transfers", "none_fits"),
)
PATTERN = Column(
    "pattern",
    "text",
    "What the values look like around the ring: alike at all nodes (circular), in bands of neighbours (striped), "
    "scattered (noisy), or high at a few nodes (outlier); Sigovan et al., Figure 6.",
    choices=("circular", "striped", "noisy", "outlier"),
)
ACTIVE_NODE_COUNT = Column(
    "active_node_count", "int", "Outer nodes with transfers whose value is known.", unit="nodes", low=0
)
NODE_SPREAD = Column(
    "node_spread",
    "real",
    "How far the nodes' means lie apart: their robust standard deviation, less what the number of their transfers "
    "explains.",
    unit="octaves",
    low=0,
)
EDGE_SPREAD = Column(
    "edge_spread",
    "real",
    "How far values of one node lie apart: the median of the nodes' robust standard deviations.",
    unit="octaves",
    low=0,
)
BAND_RATIO = Column(
    "band_ratio",
    "real",
    "The share of the variance between nodes that bands of neighbours explain.",
    unit="1",
    low=0,
    high=1,
)
NODES_PER_BAND = Column(
    "nodes_per_band",
    "real",
    "Nodes along the ring from one band of high values to the next, on the average.",
    unit="nodes",
    low=0,
)
OUTLIER_SCORE = Column(
    "outlier_score",
    "real",
    "The highest robust score of a node: its distance above the median in deviations.",
    unit="1",
)
CAUSES = Column("cause_nodes", "text", "The nodes that cause the pattern, the strongest first, as a JSON list.")

BOTTLENECK_NUMBER = Column("bottleneck", "int", "The place of the request among the bottlenecks, from 0.", low=0)
REQUEST_VALUE = Column("value", "real", "The request's size in bytes, or its time in seconds, by the metric.", low=0)
MEDIAN_VALUE = Column("median_value", "real", "The median of all requests, as their bins tell it.", low=0)
REQUEST_SCORE = Column(
    "score",
    "real",
    "How many robust standard deviations, in octaves, the request lies above the median.",
    unit="1",
    low=0,
)
SHARE_RATIO = Column(
    "share_ratio", "real", "The request's share of all bytes, or of all time, by the metric.", unit="1", low=0, high=1
)

NETWORK_OUTCOME = Column(
    "outcome",
    "text",
    "Whether there is a network, and if not, why: the trace has no single requests (no_requests), none of those it "
    "has can be placed in two layers (no_layers), or what it holds makes none (refused).",
    choices=("made", "no_requests", "no_layers", "refused"),
)
MODULE_OF_NETWORK = Column("network_modules", "text", "The modules whose requests the network is made of.")
LAYERS = Column("layers", "text", "The layers, outermost first, as a JSON list.")
GROUP_SIZES = Column("group_sizes", "ints", "How many members of each layer are one node.", unit="members", low=1)
NODE_COUNTS = Column("node_counts", "ints", "Nodes of each layer.", unit="nodes", low=0)
WINDOW_COUNT = Column("window_count", "int", "Time windows of the run.", unit="windows", low=0)
WINDOW_S = Column("window_s", "real", "The length of a time window.", unit="s", low=0)
REQUEST_COUNT = Column(
    "request_count",
    "int",
    "Requests that the network is made of; of a followed run, all so far.",
    unit="requests",
    low=0,
)
SKEW_OUTCOME = Column(
    "skew_outcome",
    "text",
    "Whether ranks' clocks were set alike, and if not, why: no file was opened by all ranks together, in a call that "
    "waits for all (no_collective_open), when is not told of each rank (no_times), or there is one rank (one_rank).",
    choices=("corrected", "no_collective_open", "no_times", "one_rank"),
)
SKEW_FILE_COUNT = Column(
    "skew_file_count", "int", "Files by whose opens the ranks' clocks were compared.", unit="files", low=0
)
SKEW_RANGE_S = Column(
    "skew_range_s", "real", "How far the first and the last of the ranks' clocks were apart.", unit="s", low=0
)
SKEW_SPREAD_S = Column(
    "skew_spread_s",
    "real",
    "How far the files disagree on a rank's clock: the median of the ranks' robust standard deviations; NULL with "
    "one file.",
    unit="s",
    low=0,
)
NEGATIVE_COUNT = Column(
    "negative_count", "int", "Times below zero, which no clock that is right can give.", unit="transfers", low=0
)
