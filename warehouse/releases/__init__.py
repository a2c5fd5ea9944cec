"""Publish, read and maintain releases: immutable, named sets of table snapshots.

- `catalogue` (`open_transaction`, `replace`, `tag`): The Iceberg catalogue: versions of published tables, in an SQLite
  file next to them or on a server.
- `catalogue_choice` (`agree`, `take_over`): Selection of a warehouse's catalogue: the SQLite file, or one on a server.
- `checksums` (`read`, `write`, `find_problem`, `changing_catalogue`): Checksum documents, in one format for all files.
- `retention` (`clear`, `read_closed_days`): Retention of raw polls: old ones are deleted once their days are published.
- `conversion` (`convert_file`, `convert_landed`, `convert_job_io`): Conversion of files of commit 18b5d00.
- `database` (`SqlTables`): Catalogues in an SQL database.
- `expiring` (`expire`, `pin`, `maintain`): Expiry of old releases and deferred deletion of their files.
- `export` (`export_table`, `write_table`, `write_csv`, `json_text`): Export of a release's tables to plain files,
  Parquet or CSV.
- `multi_table_transaction` (`TransactionalCatalogue`, `Change`): Transactions over several tables.
- `holds` (`roll_back`, `end`, `in_force`): Rollbacks in force: data that later runs exclude until the operator ends the
  rollback.
- `links` (`link_latest`, `members`): `latest/`: the current release as plain files.
- `locations` (`get_location`, `metadata_locations`, `parse_part`): Locations of files, and the naming scheme.
- `losses` (`losses`, `add`, `settle`): Data that a repair could not restore, recorded for the next run.
- `manifest_repair` (`rebuild_manifests`): Rebuilding damaged manifests from the cached index of data files.
- `publishing` (`publish`, `rollback`, `complete`, `Draft`): Publication of built tables as a release, atomically.
- `reading` (`open_release`): Reading a release with DuckDB, read-only.
- `releases` (`Release`, `find`, `current`, `list_published_tables`): The release history and its queries.
- `relocating` (`relocate`): Rewriting the paths in Iceberg metadata after a warehouse was moved or copied.
- `repairing` (`repair`): Repair of damaged files: rebuild, restore an intact release, or set aside.
- `rest` (`open_rest_catalogue`, `claim`, `RestTables`): Catalogues on an Iceberg REST server.
- `seals` (`seal`, `require_sound`): Seals: the SHA-256 of every file that a release added.
- `sentences` (`sentence`, `description`): DuckDB's error messages, rephrased in terms of the release's tables and
  columns.
- `servers` (`Server`, `get_server`, `register`): Servers that keep a warehouse's catalogue.
- `snapshots` (`write_snapshot`, `rewrite_manifests`, `commit`): Snapshots of Iceberg tables and their manifests.
- `statements` (`require_reading`, `find_described_table`): Validation of queries: one read-only statement.
- `redirects` (`supersede`, `remove`): Replacement of a kept release by one that lacks some data.
- `upgrading` (`upgrade`, `needs`): Upgrading a warehouse of commit 18b5d00 to the current format.
- `verifying` (`verify`, `Damage`): Comparison of a warehouse's files with their checksums.
- `views` (`VIEWS`, `list_views`, `find_example`): Views of default answers, and an example query for each table.
- `whole_release` (`export_folder`, `export_database`): A release as plain files, or as one DuckDB file.
"""
