"""Read DFTracer's traces: one JSON line per call, one file per process.

- `calls` (`parse_cells`, `request_bytes`): Classification of DFTracer's events, and computation of the bytes of reads
  and writes.
- `files` (`read_lines`, `collect_calls`): The files of a trace: their calls, and metadata about their processes.
- `lines` (`blocks`, `read_with_duckdb`, `read_one_by_one`): Parsing of lines, many at once or one by one.
- `nesting` (`IN_ORDER`, `Nesting`): Detection of nested calls, so that bytes are counted once.
- `run` (`read_run`): Construction of the rows of requests, files and the run.
- `source`: The format: one JSON line per call, one file per process.
"""
