"""Releases: immutable, named sets of snapshots, and how they are read.

- `catalogue`: The Iceberg catalogue: versions of published tables, in an SQLite file beside them.
- `export` (`write_csv`, `export_table`): Plain files out of a release: Parquet that carries units and docs, or CSV.
- `reading` (`opened`, `published`, `require_reading`): Reading a release: DuckDB over its Parquet files, read-only.
- `releases` (`Release`, `find`, `day_of`, `current`): Releases: named, immutable sets of snapshots.
"""
