"""What lies in a warehouse's folder: landed inputs, built tables, the journal of what is followed.

- `buckets` (`bucket_of`, `split_parquet`): A large table that has no days lies in several files.
- `files` (`Files`, `Folder`, `Sealed`): Files by their names: all that a warehouse asks of what keeps them.
- `forgetting` (`leave`, `remove`): A landing is written once more without some of its rows.
- `form` (`require_form`, `mark_form`): The number of a warehouse's form.
- `journal` (`Journal`, `State`, `Range`): The journal of what is followed: predictions, and the state to go on from.
- `landing` (`land`, `Landed`, `land_batches`): Landing: an input becomes landed tables once.
- `ledger` (`read`, `Ledger`, `Known`): The ledger: every landing as a row.
- `lots` (`Lot`, `Outcome`): Small traces that are landed together, in files of a useful size.
- `manifests` (`Landing`, `Part`, `in_folder`): Manifests: what each landing is.
- `models` (`expose`, `expose_parts`, `select`, `expose_frame`): Running the SQL models: one SELECT a file.
- `positions` (`Position`, `position`): How far an input that goes on was read.
- `pseudonyms` (`Names`, `names_of`): Names of users, jobs and files where none are to land in the clear.
- `objects` (`Objects`, `file_system`): Files of a warehouse in an object store.
- `state` (`put_state`, `mend`): State documents, each with a copy.
- `store` (`Store`, `write_parquet`, `put_document`, `locked`): Where things lie, and how they are written.
- `time_ranges` (`TimeRange`): The time range of what lands.
"""
