"""TMIO's traces, complete or growing.

- `following` (`TmioFeed`): Follows a growing TMIO trace from any position.
- `parts`: Parses flushes per mode from JSON, JSON Lines or MessagePack.
- `requests`: Derives requests and totals from flushes, and checks them against each other.
- `source` (`sniff`): The format, FTIO's input: I/O phases of each rank.
- `stream`: Splits arriving JSON Lines or MessagePack into flushes.
"""
