"""Read and write the contents of a warehouse folder: landed inputs, built tables, the journal of followed inputs.

- `buckets` (`compute_bucket`, `split_parquet`): Hash buckets for a large table that is not partitioned by day.
- `files` (`Files`, `Folder`, `FileChecksum`): The file interface that every warehouse back end implements.
- `forgetting` (`leave`, `remove`): Rewriting a landing without some of its rows.
- `form` (`require_form`, `mark_form`): The format version of a warehouse.
- `journal` (`Journal`, `State`, `Range`): The journal of followed inputs: predictions and resumable state.
- `landing` (`land`, `LandingResult`, `land_batches`): Landing: writing the rows of an input to tables exactly once.
- `ledger` (`read`, `Ledger`, `LandedIndex`): The ledger, a data frame with a row per landing.
- `lots` (`Lot`, `Outcome`): Small traces that land together, in files of a useful size.
- `manifests` (`Landing`, `Part`, `in_folder`): Manifests: the metadata of each landing.
- `models` (`expose`, `expose_parts`, `select`, `expose_frame`): Running the SQL models, one SELECT per file.
- `positions` (`Position`, `position`): Read positions of inputs that continue, such as databases.
- `pseudonyms` (`Names`, `open_names`): Pseudonyms for users, jobs and files in a private warehouse.
- `objects` (`Objects`, `file_system`): Files of a warehouse in an object store.
- `state` (`put_state`, `mend`): State documents, each with a copy.
- `store` (`Store`, `write_parquet`, `put_document`, `lock_warehouse`): Layout of a warehouse and its write functions.
- `time_ranges` (`TimeRange`): The time range of the landed rows.
"""
