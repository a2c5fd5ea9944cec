"""Compute rows of published tables from frames: signals, classes, periods, attribution, networks.

A function takes frames of staged tables, calls `transforms`, and returns rows that meet a contract. The steps of the
nightly flow and the answers to single inputs share it.

- `attribution` (`ActiveRuns`, `Traffic`, `TrafficAttribution`, `compute_slowdowns`): Bytes of each run in shared
  traffic.
- `classes` (`series_classes`, `trace_classes`): Classes: the part of its run in which a subject does its I/O.
- `columns` (`floats`, `ints`, `epoch_s`, `ragged`, `list_column`): Frame columns as arrays, and arrays as columns.
- `networks/`: Graphs of the transfers in traced runs, from landed requests.
- `periods` (`summarize_signals`, `get_params`, `rows_from`, `segments_from`): Periods of the I/O of subjects.
- `sample_sets` (`build_sample_sets`, `get_params`): Sample sets of rows with samples, and the parameters of methods.
- `signals` (`make_signals`): Bytes per second of traced runs, by module and direction.
- `signatures/`: Extraction of signatures from many sample sets, and the signatures in a release.
- `staging` (`engine`, `stage_jobs`, `stage_polls`): The staging models, run on landed tables.
- `subjects` (`Subjects`, `series_subjects`, `build_trace_subjects`): Signals as input of classes and periods.
"""
