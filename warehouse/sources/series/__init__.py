"""One job's or node's own series of bytes.

- `source`: Series of one subject (a job, a node): times and a byte counter, or times and rates, as text or CSV.
"""
