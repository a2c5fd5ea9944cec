"""Polls of storage controllers: CSV, Parquet, LMT's and TOKIO's own forms.

- `csv`: Polls as delimited text with a header; other columns are ignored.
- `grids`: Polls on a grid of times and targets.
- `h5lmt`: pyLMT archives (`.h5lmt`): server-side throughput of a Lustre file system, a day a file.
- `hdf5`: Reads HDF5 archives of Lustre throughput in a child process, see `child`.
- `lmt_connections` (`engine_of`): Connections to the server of an LMT database, each with time limits.
- `lmt_cursors` (`Cursor`): Read position in an LMT database.
- `lmt_database` (`read_url`): LMT databases: cumulative counters of each Lustre target.
- `lmt_following` (`NewPolls`, `engine_of`, `read_on`): LMT databases that are being written.
- `lmt_queries`: LMT databases: cumulative byte counters of every Lustre target.
- `mmperfmon`: Output of `mmperfmon query` for GPFS: bytes and operations per time bucket.
- `parquet`: Polls as Parquet, with the published column names or a mapping.
- `polls`: Converts any table of polls, and infers missing intervals.
- `tokio`: TOKIO time series archives (`.hdf5`): throughput per storage target. Times are LEFT edges, -0.0 is missing.
"""
