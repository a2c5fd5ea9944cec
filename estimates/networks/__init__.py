"""Build networks of traced runs from landed requests.

The network of a run is the graph of its transfers: nodes are ranks, hosts, files or storage targets, in layers, and
edges between neighboring layers are transfers.

- `events`: The network of a trace of request events, matched request by request between layers.
- `layers`: The layers of a network and their nodes.
- `builder` (`Query`, `build_trace_network`, `NetworkResult`): The network of one traced run.
- `stripes` (`split_by_target`): Splits requests at stripe boundaries.
- `batch_networks` (`build_batch`): Networks of many small traced runs in one batch.
"""
