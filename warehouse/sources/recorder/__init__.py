"""Recorder's traces: raw, as text, or as Parquet.

- `calls`: Builds the rows of calls, requests and the run from any form of a trace.
- `files` (`open_trace`, `list_trace_files`, `is_in_archive`): The files of one trace, wherever they are.
- `grammar`: Recorder's grammars (`.cfg`): unfolds a rank's Sequitur rules into calls.
- `parquet`: Recorder's Parquet export (recorder2parquet): one file per rank, one row per call.
- `raw` (`open_run`): Raw Recorder 2.5 traces: metadata, call signatures (`.cst`).
- `requests` (`list_forms`, `find_nested`): Derives requests from calls: file, offset, bytes.
- `signatures` (`SignedRank`, `open_signed_run`, `select_outer_calls`): Traces without a row per call.
- `source`: The format: every traced call, from the raw trace, its text or its Parquet export.
- `text`: Output of recorder2text: one file per rank, one line per call.
"""
