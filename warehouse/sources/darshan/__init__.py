"""Darshan's logs.

- `counters`: Maps Darshan's counters to our columns, and sums the additive ones.
- `layout`: The structure of a Darshan log, checked without Darshan's library: finds and locates damage.
- `library`: Bindings of Darshan's own library from the `darshan` wheel.
- `reading`: Reads a Darshan log into arrays in a child process, see `child`.
- `rows`: Builds rows of the trace tables from the child's arrays.
- `source`: The format: counters per I/O layer, heat maps, and, with DXT, every read and write.
- `stripes`: Maps file offsets to Lustre targets (OSTs), from Darshan's LUSTRE module.
"""
