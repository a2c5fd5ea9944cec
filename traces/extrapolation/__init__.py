"""Compression and extrapolation of Recorder traces, and the records that are made of it.

- `compressing` (`compressed`, `keep_apart`, `call_total`): Recorder traces compressed: one as it is.
- `extrapolating` (`Asked`, `extrapolated`): Extrapolation of Recorder traces: from their files to the models.
- `records` (`land_if_there`, `metadata`): Records of extrapolations: made of what the models gave.
- `view` (`read`, `used`, `recorder_forms`, `batches`): Compressed traces, read and seen from the servers' side.
"""
