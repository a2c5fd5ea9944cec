"""Declare the steps of a run, and define the functions that execute their work items.

A run builds its tables in a folder of its own, one Parquet file per table and day. A work item with a completion marker
is not executed again, so a killed run resumes and publishes the same release. Each module declares its steps after
their functions; `order` lists them.

- `attribution` (`attribute`): Attribution of a file system's traffic to runs.
- `checks` (`check_rows`, `make_check_step`, `hold`, `decide`): Validation of every built table against its suite.
- `classes` (`classify`): Classes: the part of a run in which most of its I/O takes place.
- `counters` (`end_days`, `stage_counters`, `sum_unattributed`): Increments of server counters, by day.
- `exact_checks` (`check_runs`, `against`): Comparison of signatures with per-job counters.
- `exact_samples` (`take_samples`, `build_samples`, `rates_on_grids`): Exact samples, from per-job counters.
- `inference` (`infer`): The class and period of every run, measured or inferred from a signature.
- `items` (`WorkItem`, `Chunk`, `StepContext`, `execute`): Work items as data: the files that each reads and writes.
- `joint` (`make_signatures`, `is_due`, `select_due_subjects`): Joint signatures, fitted at an interval.
- `landed_checks` (`validate_landed`, `make_landed_check`): Validation of landed rows, where a step reads them.
- `metadata_periods` (`grid_rows`, `metadata_rows`, `make_columns`): Periods of metadata calls in traced runs.
- `metadata_rates` (`rate_rows`): Rates of metadata operations over a run.
- `networks` (`make_networks`, `join_networks`): Networks: the transfers of each traced run, by time window.
- `node_periods` (`node_rows`): Period and lag of each node in traced runs.
- `order` (`STEPS`, `WORK_STEPS`, `with_checks`): The steps of a run, in the order in which ready work items start.
- `periods` (`find`): Periods of runs and applications.
- `plan` (`Plan`, `make_plan`): The plan of a run: the days that new or replaced landings make stale.
- `predictions` (`land_journal`, `stage_predictions`): Landing of the journal of predictions.
- `release` (`release`): Atomic publication of the built and validated tables.
- `run` (`Run`): A plan being executed: files of landings, of the base release and of built tables.
- `samples` (`count_applications`, `join_io`, `cut_samples`): Samples: the traffic of a file system during each run.
- `signature_checks` (`check_signatures`, `none_if_nan`): Comparison of signatures with traces.
- `signatures` (`gather_sets`, `extract_signatures`, `carry`): Signatures: the I/O of applications that run alone.
- `stage` (`stage_jobs`, `stage_polls`, `gather_extrapolations`): Deduplicated, validated inputs.
- `step` (`Step`, `Input`, `read_built`, `read_landed`, `read_live`, `read_released`): Declarations of steps and inputs.
- `subjects` (`compute_counted_samples`, `select_applications`): The runs and applications with signals to analyze.
- `trace_samples` (`sample_traces`, `build_samples`): Samples from traces, compared with polls.
- `traces` (`stage_traces`, `trace_signals`): Traced runs joined with their jobs, and the counters of each module.
- `unattributed_patterns` (`find_patterns`): Recurring patterns in unattributed traffic.
"""
