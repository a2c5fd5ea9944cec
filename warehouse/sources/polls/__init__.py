"""Polls of storage controllers: CSV, Parquet, LMT's and TOKIO's own forms.

- `csv`: Polls as delimited text with a header; other columns than ours are left alone.
- `grids`: Polls that come as a grid of times and targets: its edges, its gaps, its rows.
- `h5lmt`: pyLMT archives (`.h5lmt`): server-side throughput of a Lustre file system, a day a file.
- `hdf5`: What the HDF5 archives of Lustre throughput hold, read by h5py; runs in a child process, see `child`.
- `lmt_connections` (`engine_of`): Connections to the server of an LMT database, each with time limits.
- `lmt_cursors` (`Cursor`): How far an LMT database was read.
- `lmt_database` (`read_url`): LMT databases: cumulative counters of each Lustre target.
- `lmt_following` (`NewPolls`, `engine_of`, `read_on`): LMT databases that are being written.
- `lmt_queries`: LMT databases: cumulative byte counters of every Lustre target.
- `mmperfmon`: What `mmperfmon query` prints of GPFS: bytes and operations a bucket of time.
- `parquet`: Polls as Parquet, with the published column names or a mapping; other columns than ours are left alone.
- `polls`: Polls in any table: from its columns to landed polls, and the interval where the table does not say it.
- `tokio`: TOKIO time series archives (`.hdf5`): throughput per storage target. Times are LEFT edges, -0.0 is missing.
"""
