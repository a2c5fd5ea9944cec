"""Networks of traced runs, built from landed requests.

- `events`: The network of a trace of request events: latencies between layers, matched request by request.
- `layers`: The layers of a network and their nodes.
- `making` (`Query`, `network_of_trace`, `NetworkResult`): The network of one traced run.
- `stripes` (`split_by_target`): Splits requests at stripe boundaries.
- `together` (`build_batch`): Networks of many small traced runs in one batch.
"""
