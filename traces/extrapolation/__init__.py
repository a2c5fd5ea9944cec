"""Compression and extrapolation of Recorder traces, and the records of extrapolations.

- `compressing` (`compressed`, `keep_apart`, `call_total`): Compression of Recorder traces.
- `extrapolating` (`Asked`, `extrapolated`): Extrapolation of Recorder traces: from their files to the models.
- `records` (`land_if_there`, `metadata`): Records of extrapolations, built from the models' results.
- `view` (`read`, `used`, `recorder_forms`, `batches`): Compressed traces as requests, seen from the servers' side.
"""
