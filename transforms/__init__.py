"""HOW: pure functions on arrays and frames. No files, no clock, no log, no engine.

- `advice` (`Advice`, `AdviceParams`, `Choice`, `advise`): Partition and start time with least contention.
- `arrays` (`Ragged`, `cut`, `Reals`): Ragged arrays: many pieces of different lengths in one flat array.
- `attribution/`: Attribution: division of a file system's traffic among the runs that were active.
- `classes` (`ClassParams`, `classify`, `grid_sections`): Job classes by the time of I/O within a run.
- `counters` (`CounterParams`, `compute_deltas`, `find_edge_gaps`, `order_scrapes`): Deltas of counters between scrapes.
- `demands` (`Demand`, `Demands`, `draw_stratified`): I/O demands of runs, and bytes moved at a position in a signature.
- `exact_series` (`Grids`, `Intervals`, `distribute_to_grids`): Counter deltas on the steps of a run's grid.
- `extrapolation/`: Extrapolation: a trace at a rank count that nobody ran, from traces at several.
- `findings/`: Findings: what a traced run's I/O is at odds with, by rules, each with its evidence.
- `forecast/`: Forecasts of load: running and waiting jobs, and traffic that is still unknown.
- `inference` (`infer_classes`, `infer_periods`): Classes and periods of runs, inferred from signatures.
- `job_keys` (`parse_keys`, `to_regex`): Extraction of job ids from the job keys of servers.
- `joint/`: Joint extraction of signatures: from samples less the traffic that other applications' runs explain.
- `networks/`: Networks: who moved how much to whom, window by window, and what that looks like.
- `periods/`: Periods: how often an application does its I/O, by every method, and how sure that is.
- `predictions/`: Online prediction: the period of a running application, its changes, and the next burst.
- `sample_checks` (`RunSamples`, `correlate_samples`): Comparison of two samples of the same runs on different steps.
- `signatures/`: The I/O of an application without interference, estimated from server-side samples of its runs.
- `synthetic/`: Synthetic sites: what users mean to do, what storage makes of it, and what a poll daemon sees.
- `throughput/`: Throughput: bytes per second over time, from requests, intervals and stripes.
- `traces/`: Traces: every rank's calls, compressed, and what they add up to without being expanded.
- `time_shifts` (`find_time_shift`, `TimeShift`, `TimeShiftParams`): Detection of clocks that differ by whole hours.
- `unattributed_patterns/`: Recurring bursts in residual traffic, and whether logged runs explain them.
"""
