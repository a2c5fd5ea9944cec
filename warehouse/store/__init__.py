"""What lies in a warehouse's folder: landed inputs, built tables, the journal of what is followed.

- `journal` (`Journal`, `State`, `Range`): The journal of what is followed: predictions, and the state to go on
  from, come into it together or not at all.
- `landing` (`Landing`, `Part`, `Landed`, `land_batches`): Landing: an input becomes landed tables once, whole or
  not at all, with its refused rows beside it.
- `models` (`expose`, `expose_parts`, `select`, `expose_frame`): Running the SQL models: one SELECT a file,
  its inputs exposed by name, its result held to the contract.
- `store` (`Store`, `write_parquet`, `write_json`, `locked`): The warehouse's folder: where things lie, and how a
  file comes into being whole or not at all.
"""
