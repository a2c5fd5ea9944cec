"""The steps of a run: declarations, and functions that execute one work item each.

A run builds its tables in a folder of its own, one Parquet file per table and day. A work item whose completion marker
is there is not executed again, so a run that was killed continues, and ends in the same release. Each module declares
its steps after their functions; `order` lists them.

- `attribution` (`attribute`): Attribution: whose bytes a file system's traffic was.
- `checks` (`checked`, `check_of`, `hold`, `decide`): Checks: every built table is held to its suite.
- `classes` (`classify`): Classes: when in its run each subject does its I/O.
- `counters` (`end_days`, `stage_counters`, `tell_unassigned`): Counters: what entries of servers rose by, by day.
- `exact_checks` (`check_runs`, `against`): Signatures against what servers counted.
- `exact_samples` (`take_samples`, `samples_of`, `rates_on_grids`): Exact samples, from counters by job.
- `inference` (`infer`): The class and period of every run, measured or inferred from a signature.
- `items` (`WorkItem`, `Chunk`, `StepContext`, `execute`): Work items as data: which files each reads and writes.
- `joint` (`make_signatures`, `is_due`, `asked`): Signatures found together, where that is due, beside the plain ones.
- `metadata_periods` (`grid_rows`, `metadata_rows`, `columns_of`): Periods of metadata calls of traced runs.
- `metadata_rates` (`rate_rows`): When in its run a job works on names and attributes, and how often.
- `networks` (`make_networks`, `join_networks`): Networks: the communication of each traced run by window.
- `node_periods` (`node_rows`): Periods of each node of traced runs, and by how much a node is late.
- `order` (`STEPS`, `WORK_STEPS`, `with_checks`): The steps of a run, in the order in which ready work items start.
- `periods` (`find`): Periods: how often each does its I/O.
- `plan` (`Plan`, `make_plan`): What a run has to do: the days that new or replaced landings make stale.
- `predictions` (`land_journal`, `stage_predictions`): Predictions: what the journal holds is landed.
- `release` (`release`): The release: all that was built and checked becomes visible at once.
- `run` (`Run`): A plan being executed: files of landings, of the base release and of built tables.
- `samples` (`count_applications`, `join_io`, `cut_samples`): Samples: each run's piece of its file system's traffic.
- `signature_checks` (`check_signatures`, `known`): Signatures against the truth.
- `signatures` (`gather_sets`, `extract_signatures`, `carry`): Signatures: the I/O of each application.
- `stage` (`stage_jobs`, `stage_polls`, `gather_extrapolations`): Stage: one truth per thing.
- `step` (`Step`, `Input`, `built`, `landed`, `live`, `released`, `in_chunks`): Steps as declarations.
- `subjects` (`counted_samples`, `of_applications`): Whose signals are judged.
- `traces` (`stage_traces`, `trace_signals`): Traces: each traced run joined with its job, its modules counted.
- `unattributed_patterns` (`find_patterns`): What stays unexplained and comes again, and whose runs were there.
"""
