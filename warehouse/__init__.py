"""Read inputs into a warehouse (sources, store), define its tables (contracts) and publish them (releases).

- `errors` (`InputRefused`, `UsageError`, `NothingToDo`, `IosigError`): Errors that a user can fix.
- `placing` (`atomic_write`, `sweep_temporaries`): Atomic creation of files and folders.
- `engine_paths` (`duckdb_path`, `scan_parquet`, `sqlite_uri`): Paths in the form that each engine reads literally.
- `printable` (`printable`, `one_line`): Safe display of text from external sources.
- `interrupts` (`Stop`, `stop_on_signals`, `forward_interrupts`, `reraise_signal_errors`): Interruption by signals.
- `processes` (`ProcessExecutor`, `pool`, `in_order`, `workers`, `WorkerLost`): Worker processes of this machine.
- `renames` (`present_names`, `rename_settings`): Public names of commit 18b5d00, and those that replaced them.
- `contracts/`: Definitions of all columns and tables, each in one place.
- `external/`: External programs and servers: each call has a time limit.
- `following/`: Following files that grow.
- `releases/`: Releases: immutable, named sets of snapshots, and functions that read them.
- `sources/`: Input formats, one package per family; each module with a `SOURCE` defines a format that iosig can land.
- `store/`: Contents of a warehouse folder: landed inputs, built tables, the journal of followed inputs.
"""
