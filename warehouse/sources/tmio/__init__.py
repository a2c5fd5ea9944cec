"""TMIO's traces, whole or while they grow.

- `following` (`TmioFeed`): A followed TMIO trace: what its program has flushed since, from any position on.
- `parts`: What the flushes of a TMIO trace say of each mode, out of JSON, JSON Lines or MessagePack.
- `requests`: From the flushes of a TMIO trace to its requests, its totals and what they disagree about.
- `source` (`sniff`): TMIO traces, FTIO's input: JSON, JSON Lines or MessagePack with the I/O phases of each rank.
- `stream`: TMIO's flushes out of JSON Lines or MessagePack that arrive in pieces of any size.
"""
