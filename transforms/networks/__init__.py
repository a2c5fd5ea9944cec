"""Networks: who moved how much to whom, window by window, and what that looks like.

- `batches` (`NetworkBatch`, `LayerBatch`, `TransferBatch`): Networks of many runs in the same arrays.
- `bottlenecks` (`BottleneckFinder`): Single requests that hold a run up: far larger, or far longer.
- `clock_skew` (`offsets`, `Skew`, `corrected`, `merged`): How ranks' clocks differ.
- `counting` (`EdgeCounter`, `BatchCounter`, `window_edges`, `merged`): Aggregate transfers into networks.
- `latencies` (`RequestMatcher`): Latencies between layers: events of one request, seen in several layers.
- `log_bins`: Logarithmic bins of values, four to an octave, found from the bits of the numbers.
- `network` (`Network`, `Layer`, `NetworkParams`): A run's I/O as a network: nodes in layers.
- `patterns` (`patterns`, `Pattern`): What the eye sees in a network's rings, named by statistics.
- `rings` (`layout`, `Ring`, `RadialLayout`, `shortest_ends`): Where a network's nodes and edges are drawn.
- `rows` (`run_row`, `bottleneck_rows`, `edge_rows`, `pattern_rows`): Networks as rows of tables.
"""
