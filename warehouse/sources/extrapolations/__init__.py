"""Extrapolations, as `iosig extrapolate` records them, and compressed traces as files.

- `compressed_traces` (`write`, `is_compressed_trace`, `read`, `page`): Compressed traces as files of their own:
  Parquet with a row for each node, in a documented form for other tools.
- `record` (`FieldModel`, `GivenTrace`, `Record`, `RefusedField`): The record of an extrapolation: from which
  traces, to which rank count, what came of it and why; one JSON object.
- `source` (`batch`): Extrapolations: the record that `iosig extrapolate` makes, as JSON or within the extrapolated
  trace's own file.
"""
