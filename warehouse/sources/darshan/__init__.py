"""Read Darshan's logs.

- `counters`: Mapping of Darshan's counters to iosig's columns, and sums of the additive ones.
- `layout`: Check of a log's structure without Darshan's library, which finds and locates damage.
- `library`: Bindings of Darshan's own library from the `darshan` wheel.
- `reading`: Reader of a log into arrays, which runs in a child process.
- `rows`: Conversion of the child's arrays to rows of the trace tables.
- `source`: The format: counters per I/O layer, heat maps, and, with DXT, every read and write.
- `stripes`: Mapping of file offsets to Lustre targets (OSTs), from Darshan's LUSTRE module.
"""
