"""Networks of traced runs, out of landed requests.

- `events`: The network of a trace of request events: latencies between layers, matched request by request.
- `layers`: The layers of a traced run's network: which nodes there are.
- `making` (`Asked`, `network_of_trace`, `Made`): The network of a traced run, from its landed requests: nodes.
- `stripes` (`on_targets`): Landed requests on storage targets: each request cut where its file's stripes end.
- `together` (`rows_together`): Networks of many small traced runs, made together, in rows of the published tables.
"""
