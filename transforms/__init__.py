"""Provide the computations (HOW) as pure functions on arrays and frames, without files, clock, log or engine.

- `advice` (`Advice`, `AdviceParams`, `Choice`, `advise`): Choose partition and start time for minimum contention.
- `arrays` (`Ragged`, `cut`, `Reals`): Ragged arrays: many pieces of different lengths in one flat array.
- `attribution/`: Attribution: division of a file system's traffic among the runs that were active.
- `classes` (`ClassParams`, `classify`, `grid_sections`): Job classes by the time of I/O within a run.
- `counters` (`CounterParams`, `compute_deltas`, `find_edge_gaps`, `order_scrapes`): Deltas of counters between scrapes.
- `demands` (`Demand`, `Demands`, `draw_stratified`): I/O demands of runs, and bytes moved at a position in a signature.
- `exact_series` (`Grids`, `Intervals`, `distribute_to_grids`): Counter deltas on the steps of a run's grid.
- `extrapolation/`: Extrapolation of traces to rank counts that were not run, from traces at several rank counts.
- `findings/`: I/O problems of traced runs, found by rules, with evidence and remedies.
- `forecast/`: Forecasts of load: running and waiting jobs, and traffic that is still unknown.
- `inference` (`infer_classes`, `infer_periods`): Classes and periods of runs, inferred from signatures.
- `job_keys` (`parse_keys`, `to_regex`): Extract job ids from the job keys of servers.
- `joint/`: Joint extraction of signatures, from samples without the traffic of other applications.
- `networks/`: Networks of nodes that exchange data, window by window, and the patterns in them.
- `periods/`: Detection of I/O periods by several methods, with their confidence.
- `predictions/`: Online prediction: the period of a running application, its changes, and the next burst.
- `sample_checks` (`RunSamples`, `correlate_samples`): Comparison of two samples of the same runs on different steps.
- `signatures/`: The I/O of an application without interference, estimated from server-side samples of its runs.
- `synthetic/`: Simulated sites: planned I/O, its contention on shared storage, and the polls that record it.
- `throughput/`: Bytes per second over time, from requests, intervals and stripes.
- `traces/`: Compressed traces of the calls of all ranks, and totals computed without expansion.
- `time_shifts` (`find_time_shift`, `TimeShift`, `TimeShiftParams`): Detection of clocks that differ by whole hours.
- `unattributed_patterns/`: Recurring bursts in residual traffic, and whether logged runs explain them.
"""
