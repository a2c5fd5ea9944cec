"""The tables of networks: who talked to whom in a traced run, what that looked like, and which requests held it up."""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Table

_HOP = (c.ENDED_ON.optional(), c.TRACE_ID, c.HOP, c.SOURCE_LAYER, c.TARGET_LAYER)
_WINDOW = (c.WINDOW_BEGAN_S, c.WINDOW_CEASED_S)

NETWORK_RUNS = Table(
    name="network_runs",
    layer="transforms",
    grain="one row per traced run, with what its network is made of, or why it has none",
    key=("trace_id",),
    columns=(
        c.ENDED_ON.optional(),
        c.TRACE_ID,
        c.SOURCE_FILE,
        c.NETWORK_OUTCOME,
        c.REASON.optional(),
        c.MODULE_OF_NETWORK.optional(),
        c.COVERED_RATIO.optional(),
        c.REQUEST_COUNT,
        c.LAYERS.optional(),
        c.GROUP_SIZES.optional(),
        c.NODE_COUNTS.optional(),
        c.WINDOW_COUNT.optional(),
        c.WINDOW_S.optional(),
        c.NEGATIVE_COUNT.optional(),
        c.SKEW_OUTCOME.optional(),
        c.SKEW_FILE_COUNT.optional(),
        c.SKEW_RANGE_S.optional(),
        c.SKEW_SPREAD_S.optional(),
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
        c.SOURCE_NODE,
        c.TARGET_NODE,
        c.WINDOW,
        *_WINDOW,
        c.TIME_KIND,
        c.TRANSFER_COUNT,
        c.READ_BYTES,
        c.WRITTEN_BYTES,
        c.TIMED_COUNT,
        c.TRANSFER_TIME_S,
        c.LONGEST_S,
        c.TIME_BINS,
        c.TIME_COUNTS,
        c.SIZE_BINS,
        c.SIZE_COUNTS,
        c.BANDWIDTH_BINS,
        c.BANDWIDTH_COUNTS,
    ),
    partition="ended_on",
)

NETWORK_PATTERNS = Table(
    name="network_patterns",
    layer="transforms",
    grain="one row per traced run, pair of layers, metric and time window, and one for all windows together",
    key=("trace_id", "hop", "metric", "is_whole", "window_began_s"),
    columns=(
        *_HOP,
        c.NETWORK_METRIC,
        c.IS_WHOLE,
        *_WINDOW,
        c.PATTERN_OUTCOME,
        c.PATTERN.optional(),
        c.ACTIVE_NODE_COUNT,
        c.TRANSFER_COUNT,
        c.NODE_SPREAD.optional(),
        c.EDGE_SPREAD.optional(),
        c.BAND_RATIO.optional(),
        c.NODES_PER_BAND.optional(),
        c.OUTLIER_SCORE.optional(),
        c.CAUSES.optional(),
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
        c.NETWORK_METRIC,
        c.BOTTLENECK_NUMBER,
        c.SOURCE_LAYER,
        c.SOURCE_NODE,
        c.TARGET_LAYER,
        c.TARGET_NODE,
        c.BEGAN_S,
        c.REQUEST_VALUE,
        c.MEDIAN_VALUE,
        c.REQUEST_SCORE,
        c.SHARE_RATIO,
    ),
    partition="ended_on",
)
