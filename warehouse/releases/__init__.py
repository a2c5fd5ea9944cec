"""Releases: immutable, named sets of snapshots, and how they are read.

- `catalogue`: The Iceberg catalogue: versions of published tables, in an SQLite file beside them.
- `export` (`export_table`, `write_table`, `write_csv`, `json_text`): Plain files out of a release: Parquet or CSV.
- `reading` (`opened`, `published`): Reading a release: DuckDB over its Parquet files, read-only.
- `releases` (`Release`, `find`, `day_of`, `current`): Releases: named, immutable sets of snapshots.
- `sentences` (`sentence`, `description`): What DuckDB says, in the words of the release's tables and columns.
- `statements` (`require_reading`, `described_table`): What a query may be: one statement that reads.
- `whole_release` (`export_folder`, `export_database`): A release as plain files, or as one DuckDB file.
"""
