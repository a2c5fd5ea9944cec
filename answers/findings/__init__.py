"""Query the I/O findings of traced runs, from a release or from one input.

- `query` (`TracedRun`, `analyze_input`, `analyze_release`): Analysis of traced runs.
"""
