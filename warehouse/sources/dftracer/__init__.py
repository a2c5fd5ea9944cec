"""DFTracer's traces: one JSON line per call, one file per process.

- `calls` (`parse_cells`, `request_bytes`): Classifies DFTracer's events, and computes the bytes of reads and writes.
- `files` (`read_lines`, `collect_calls`): Files of a DFTracer trace: their calls, and metadata about their processes.
- `lines` (`blocks`, `read_with_duckdb`, `read_one_by_one`): Lines of DFTracer's files: many at once, or one by one.
- `nesting` (`IN_ORDER`, `Nesting`): Detects nested calls, so that bytes are counted once.
- `run` (`read_run`): Builds the rows of requests, files, and the run.
- `source`: The format: one JSON line per call, one file per process.
"""
