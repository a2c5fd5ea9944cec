"""Releases: immutable, named sets of snapshots, and how they are read.

- `catalogue` (`changed_at_once`, `replace`, `tag`): The Iceberg catalogue: versions of published tables, in an SQLite
  file beside them or on a server.
- `catalogue_choice` (`agree`, `take_over`): Which catalogue a warehouse has: the SQLite file, or one on a server.
- `checksums` (`read`, `write`, `problem_of`, `changing_catalogue`): Checksum documents, one form for all files.
- `clearing` (`clear`, `closed_days`): Clearing: raw polls of days that are long published go.
- `conversion` (`convert_file`, `convert_landed`, `convert_job_io`): Files of commit 18b5d00 written again.
- `database` (`SqlTables`): Catalogues in an SQL database.
- `expiring` (`expire`, `pin`, `maintain`): Releases that nobody needs any more go, and their files later.
- `export` (`export_table`, `write_table`, `write_csv`, `json_text`): Plain files out of a release: Parquet or CSV.
- `gathering` (`Gathering`, `Change`): Changes of several tables, gathered before any of them is made.
- `holds` (`roll_back`, `end`, `in_force`): Rollbacks in force: what later runs exclude until the operator ends it.
- `links` (`link_latest`, `members`): `latest/`: the current release as plain files.
- `locations` (`location_of`, `metadata_locations`, `part_of`): Where files lie, and what their names say.
- `losses` (`losses`, `add`, `settle`): What a repair could not restore, for the next run to know.
- `manifest_repair` (`rebuild_manifests`): Damaged manifests are written again from the list of data files.
- `publishing` (`publish`, `rollback`, `complete`, `Draft`): What a run built becomes a release, all tables at once.
- `reading` (`opened`): Reading a release: DuckDB over its Parquet files, read-only.
- `releases` (`Release`, `find`, `current`, `published`): Releases: named, immutable sets of snapshots.
- `relocating` (`relocate`): Metadata of a moved or copied warehouse get the folder in which it lies now.
- `repairing` (`repair`): Damaged files are written again, restored by going back to a whole release, or set aside.
- `rest` (`opened`, `claim`, `RestTables`): Catalogues on an Iceberg REST server.
- `seals` (`seal`, `require_sound`): The SHA-256 of every file that a release added.
- `sentences` (`sentence`, `description`): What DuckDB says, in the words of the release's tables and columns.
- `servers` (`Server`, `server_of`, `register`): Servers that keep a warehouse's catalogue.
- `snapshots` (`write_snapshot`, `rewrite_manifests`, `commit`): Snapshots of Iceberg tables and their manifests.
- `statements` (`require_reading`, `described_table`): What a query may be: one statement that reads.
- `superseding` (`supersede`, `remove`): A kept release gives way to one that was made without some data.
- `upgrading` (`upgrade`, `needs`): A warehouse of commit 18b5d00 becomes one of this form.
- `verifying` (`verify`, `Damage`): Which files of a warehouse differ from what was written.
- `whole_release` (`export_folder`, `export_database`): A release as plain files, or as one DuckDB file.
"""
