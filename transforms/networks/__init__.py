"""Networks: graphs of the transfers between nodes (processes, hosts, storage targets) of a run, and their patterns.

- `batches` (`NetworkBatch`, `LayerBatch`, `TransferBatch`): Networks of many runs in shared arrays.
- `bottlenecks` (`BottleneckFinder`): Individual requests that are much larger or longer than the others.
- `clock_skew` (`estimate_skew`, `center_skew`, `Skew`, `correct_times`, `merge_opens`): Offsets of the ranks' clocks.
- `counting` (`EdgeCounter`, `BatchCounter`, `window_edges`, `merge_windows`): Aggregation of transfers into networks.
- `latencies` (`RequestMatcher`): Latencies between layers, from events of one request in several layers.
- `log_bins` (`bin_numbers`, `lower_edges`): Logarithmic histogram bins, four per octave.
- `network` (`Network`, `Layer`, `NetworkParams`): Layers of nodes, and histograms on the edges between them.
- `node_statistics` (`count_cells`, `make_nodes`, `summarize_nodes`): Histograms and quantiles of source nodes.
- `patterns` (`classify_patterns`, `Pattern`): Classification of circular, striped, noisy and outlier patterns.
- `rings` (`compute_layout`, `Ring`, `RadialLayout`, `unwrap_end_angles`): Radial layout with few edge crossings.
- `rows` (`run_row`, `bottleneck_rows`, `edge_rows`, `pattern_rows`): Conversion of networks to table rows.
"""
