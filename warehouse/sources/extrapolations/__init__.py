"""Read extrapolations recorded by `iosig extrapolate`, and read and write files of compressed traces.

- `compressed_traces` (`write`, `is_compressed_trace`, `read`, `render_page`): Parquet files of compressed traces.
- `record` (`FieldModel`, `GivenTrace`, `Record`, `RefusedField`): The record of an extrapolation.
- `source` (`batch`): Extrapolations: the record that `iosig extrapolate` makes.
"""
