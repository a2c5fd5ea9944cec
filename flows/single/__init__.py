"""One input, no warehouse: read and judged as the night would.

- `classes` (`Classified`, `classify_input`, `signal_intervals`): The classes of one input, as the night would give
  them.
- `networks` (`NetworkInput`, `network_input`): The network of one input, no warehouse: read as the night would read
  it, ready to be shown.
- `one_input` (`opened`, `PollInput`, `TraceInput`): One input, no warehouse: a file or a folder read as the night
  would read it, ready to be computed with.
- `periods` (`Asked`, `find_periods`, `FoundPeriods`): The periods of one input: as the night would give them, or of
  a window and at a sampling frequency of one's own.
- `throughput` (`By`): The throughput of a traced run, told apart by rank, host, file or storage target, straight
  from its requests.
"""
