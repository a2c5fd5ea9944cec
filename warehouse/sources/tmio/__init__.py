"""Read TMIO's traces, complete or growing.

- `following` (`TmioFeed`): Incremental reading of a growing trace, from any position on.
- `parts`: Parsing of flushes, mode by mode, from JSON, JSON Lines or MessagePack.
- `requests`: Derivation of requests and totals from flushes, and their comparison.
- `source` (`sniff`): The format, FTIO's input: I/O phases of each rank.
- `stream`: Splitting of arriving JSON Lines or MessagePack into flushes.
"""
