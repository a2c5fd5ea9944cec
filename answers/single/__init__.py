"""Analyze one input without a warehouse, with the same code as the nightly flow.

- `classes` (`ClassResult`, `classify_input`, `signal_intervals`): Classes.
- `explanation` (`explain_input`, `Explanation`): How an input is read, without landing it.
- `networks` (`NetworkInput`, `read_network`): The network of a traced run.
- `one_input` (`open_input`, `PollInput`, `TraceInput`): Reading one input.
- `periods` (`Query`, `find_periods`, `PeriodResult`): Periods.
- `throughput` (`By`): Throughput of a traced run by rank, host, file or storage target.
"""
