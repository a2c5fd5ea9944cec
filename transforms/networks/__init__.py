"""Networks: who moved how much to whom, window by window, and what that looks like.

- `bottlenecks` (`BottleneckFinder`): Single requests that hold a run up: far larger, or far longer.
- `clock_skew` (`offsets`, `Skew`, `corrected`, `merged`): How ranks' clocks differ.
- `counting` (`EdgeCounter`, `window_edges`, `merged`): From streams of transfers to a network: histograms.
- `hop_sums`: What is kept of one pair of layers while transfers stream by: edges, histograms, totals and a timeline.
- `latencies` (`RequestMatcher`): Latencies between layers: events of one request, seen in several layers.
- `log_bins`: Logarithmic bins of values, four to an octave, found from the bits of the numbers.
- `network` (`Network`, `Layer`, `NetworkParams`): A run's I/O as a network: nodes in layers.
- `patterns` (`patterns`, `Pattern`): What the eye sees in a network's rings, named by statistics.
- `rings` (`layout`, `Ring`, `RadialLayout`, `shortest_ends`): Where a network's nodes and edges are drawn.
- `rows` (`run_row`, `bottleneck_rows`, `edge_rows`, `pattern_rows`): Networks as rows of tables.
- `side_by_side` (`Networks`, `Layers`, `counted`): Networks of many small runs, found in the same arrays.
"""
