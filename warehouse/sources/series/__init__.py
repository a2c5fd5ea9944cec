"""Read time series of the bytes of one subject, a job or a node.

- `clustercockpit`: `data.json` of ClusterCockpit's job archives: rates of a job's nodes.
- `source`: Series of one subject (a job, a node): times and a byte counter, or times and rates, as text or CSV.
"""
