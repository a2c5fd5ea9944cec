"""WHERE: contracts, sources, the store, and releases.

- `errors` (`InputRefused`, `UsageError`, `NothingToDo`, `IosigError`): What can go wrong that a user can mend.
- `placing` (`moved_into_place`, `sweep_temporaries`): How a file or a folder comes into being: whole or not at all.
- `engine_paths` (`duckdb_path`, `scan_parquet`, `sqlite_uri`): Paths in the form that each engine reads literally.
- `printable` (`printable`, `one_line`): Text from outside as it may be shown.
- `interrupts` (`Stop`, `stopped_by_signals`, `interrupted_by`, `signal_errors_kept`): Orderly interruption by signals.
- `processes` (`ProcessExecutor`, `pool`, `in_order`, `workers`, `WorkerLost`): Worker processes of this machine.
- `renames` (`present_names`, `settings_renamed`): Public names of commit 18b5d00, and those that replaced them.
- `contracts/`: Contracts: each column once, each table once.
- `external/`: External programs and servers: each call has a time limit.
- `following/`: Following files that grow.
- `releases/`: Releases: immutable, named sets of snapshots, and how they are read.
- `sources/`: Input formats, a room a family; a module here that has a `SOURCE` is a format that iosig can land.
- `store/`: What lies in a warehouse's folder: landed inputs, built tables, the journal of what is followed.
"""
