"""Networks: who moved how much to whom, window by window, and what that looks like.

- `bottlenecks` (`BottleneckFinder`): Single requests that hold a run up: far larger, or far longer, than what a
  process usually asks for.
- `clock_skew` (`offsets`, `Skew`, `corrected`, `merged`): How ranks' clocks differ, by opens that end for all ranks
  at once; never by calls that do not wait.
- `counting` (`EdgeCounter`, `window_edges`, `merged`): From streams of transfers to a network: histograms, sums and
  a timeline, edge by edge and window by window.
- `hop_sums`: What is kept of one pair of layers while transfers stream by: edges, histograms, totals and a
  timeline.
- `latencies` (`RequestMatcher`): Latencies between layers: events of one request, seen in several layers, become
  the transfers between these.
- `log_bins`: Logarithmic bins of values, four to an octave, found from the bits of the numbers.
- `network` (`Network`, `Layer`, `NetworkParams`): A run's I/O as a network: nodes in layers, and on each edge
  histograms of what crossed it, window by window.
- `patterns` (`patterns`, `Pattern`): What the eye sees in a network's rings, named by statistics: circular,
  striped, noisy, outlier, or none of these.
- `rings` (`layout`, `Ring`, `RadialLayout`, `shortest_ends`): Where a network's nodes and edges are drawn:
  concentric rings of ring segments, and ways between them.
- `rows` (`run_row`, `bottleneck_rows`, `edge_rows`, `pattern_rows`): Networks as rows of tables: edges window by
  window, patterns, bottleneck requests, and a line on each run.
"""
