"""Read time series of the bytes of one subject, a job or a node.

- `source`: Series of one subject (a job, a node): times and a byte counter, or times and rates, as text or CSV.
"""
