"""Read polls of storage controllers: CSV, Parquet, and the formats of LMT and TOKIO.

- `csv`: Polls as delimited text with a header; other columns are ignored.
- `grids`: Conversion of polls in arrays of times by targets to rows.
- `h5lmt`: pyLMT archives (`.h5lmt`): server-side throughput of a Lustre file system, one file per day.
- `hdf5`: Reader of HDF5 archives of Lustre throughput, which runs in a child process.
- `lmt_connections` (`create_engine_for_url`): Connections to the server of an LMT database, each with time limits.
- `lmt_cursors` (`Cursor`): Read position in an LMT database.
- `lmt_database` (`read_url`): LMT databases: cumulative counters of each Lustre target.
- `lmt_following` (`NewPolls`, `create_engine`, `read_on`): Incremental reading of LMT databases that are being written.
- `lmt_queries`: Queries of an LMT database, and conversion of its readings to polls.
- `lustre_stats`: `lctl get_param obdfilter.*.stats llite.*.stats`: cumulative bytes of targets and mounts, as polls.
- `mmperfmon`: Output of `mmperfmon query` for GPFS: bytes and operations per time bucket.
- `parquet`: Polls as Parquet, with the published column names or a mapping.
- `polls`: Conversion of any table of polls, with inference of missing intervals.
- `tokio`: TOKIO time series archives (`.hdf5`): throughput per storage target. Times are LEFT edges, -0.0 is missing.
"""
