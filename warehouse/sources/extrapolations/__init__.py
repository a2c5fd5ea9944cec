"""Extrapolations, as `iosig extrapolate` records them, and compressed traces as files.

- `compressed_traces` (`write`, `is_compressed_trace`, `read`, `page`): Compressed traces as files of their own.
- `record` (`FieldModel`, `GivenTrace`, `Record`, `RefusedField`): The record of an extrapolation: from which traces.
- `source` (`batch`): Extrapolations: the record that `iosig extrapolate` makes.
"""
