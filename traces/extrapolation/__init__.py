"""Compression and extrapolation of Recorder traces, and the records of extrapolations.

- `compressing` (`compress_trace`, `keep_apart`, `call_total`): Compression of Recorder traces.
- `extrapolating` (`Asked`, `extrapolate_traces`): Extrapolation of Recorder traces: from their files to the models.
- `records` (`land_if_there`, `metadata`): Records of extrapolations, built from the models' results.
- `view` (`read`, `refuse_unusable`, `recorder_forms`, `batches`): Compressed traces as requests, as servers see them.
"""
