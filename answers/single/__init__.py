"""One input, no warehouse: read and judged as the night would.

- `classes` (`Classified`, `classify_input`, `signal_intervals`): The classes of one input.
- `networks` (`NetworkInput`, `network_input`): The network of one input, no warehouse.
- `one_input` (`opened`, `PollInput`, `TraceInput`): One input, read as the night would.
- `periods` (`Asked`, `find_periods`, `FoundPeriods`): The periods of one input: as the night would give them.
- `throughput` (`By`): The throughput of a traced run, told apart by rank, host, file or storage target.
"""
