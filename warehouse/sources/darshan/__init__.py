"""Darshan's logs.

- `counters`: Darshan's counters: which of them can be added, and which columns of ours they are.
- `layout`: The structure of a Darshan log, checked without Darshan's library: what damage there is, and where.
- `library`: Darshan's own library, as the `darshan` wheel brings it, called without that package.
- `reading`: What a Darshan log holds, as arrays, read by Darshan's own library: runs in a child process, see `child`.
- `rows`: Rows of the trace tables from a Darshan log: what the child reads of it, put into our columns.
- `source`: Darshan logs: what a run's I/O layers counted, when they moved bytes, and, with DXT, every read and write.
- `stripes`: On which Lustre targets (OSTs) a file's bytes lie, as Darshan's LUSTRE module tells it.
"""
