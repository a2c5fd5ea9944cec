"""Read Recorder's traces: raw, as text, or as Parquet.

- `calls`: Construction of the rows of calls, requests and the run from any form of a trace.
- `files` (`open_trace`, `list_trace_files`, `is_in_archive`): Access to the files of a trace in a folder, an archive or
  a single file.
- `grammar`: Conversion of Recorder's grammars (`.cfg`), Sequitur rules, to a rank's calls.
- `parquet`: Recorder's Parquet export (recorder2parquet): one file per rank, one row per call.
- `raw` (`open_run`): Raw Recorder 2.5 traces: metadata, call signatures (`.cst`).
- `requests` (`list_forms`, `find_nested`): Derivation of requests from calls: file, offset, bytes.
- `signatures` (`SignedRank`, `open_signed_run`, `select_outer_calls`): Traces without a row per call.
- `source`: The format: every traced call, from the raw trace, its text or its Parquet export.
- `text`: Output of recorder2text: one file per rank, one line per call.
"""
