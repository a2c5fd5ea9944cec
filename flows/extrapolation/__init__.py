"""Compression and extrapolation of Recorder traces, and the records that are made of it.

- `compressing` (`compressed`, `keep_apart`, `call_total`): Recorder traces compressed: one as it is, or several of
  one program as extrapolation takes them.
- `extrapolating` (`Asked`, `extrapolated`): Extrapolation of Recorder traces: from their files to the models, a
  trace at another rank count, and its record.
- `records` (`land_if_there`, `metadata`): Records of extrapolations: made of what the models gave, kept in the
  trace's own file, landed in a warehouse.
- `view` (`read`, `refused`, `recorder_forms`, `batches`, `spans`): Compressed traces, read and seen from the servers'
  side: all ranks' requests as those of one traced run.
"""
