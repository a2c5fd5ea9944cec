"""Compress and extrapolate Recorder traces, and keep records of extrapolations.

- `compression` (`compress_trace`, `keep_apart`, `call_total`): Compression of Recorder traces.
- `extrapolating` (`ExtrapolationRequest`, `extrapolate_traces`): From Recorder traces to another rank count.
- `records` (`land_if_there`, `metadata`): Records of extrapolations, built from the models' results.
- `view` (`read`, `refuse_unusable`, `recorder_forms`, `batches`): Compressed traces as requests that servers receive.
"""
