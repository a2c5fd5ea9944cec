"""HOW: pure functions on arrays and frames. No files, no clock, no log, no engine.

- `advice` (`Advice`, `Choice`, `AdviceParams`): Where to start an application and when.
- `arrays` (`Ragged`, `cut`, `Reals`): Ragged arrays: many pieces of different lengths in one flat array.
- `attribution/`: Attribution: division of a file system's traffic among the runs that were active.
- `classes` (`ClassParams`, `classify`, `grid_sections`): When in its run a job does its I/O.
- `counters` (`CounterParams`, `Rises`, `rises`, `edge_gaps`, `timed_scrapes`): What entries moved between scrapes.
- `demands` (`Demand`, `Demands`, `draw_stratified`): I/O demands of runs, and bytes moved at a position in a signature.
- `exact_series` (`Grids`, `Intervals`, `on_grids`): What rose between scrapes, on the even steps of a run's grid.
- `extrapolation/`: Extrapolation: a trace at a rank count that nobody ran, from traces at several.
- `findings/`: Findings: what a traced run's I/O is at odds with, by rules, each with its evidence.
- `forecast/`: Forecasts of load: running and waiting jobs, and traffic that is still unknown.
- `inference` (`inferred_classes`, `inferred_periods`): Classes and periods of runs, inferred from signatures.
- `job_keys` (`expression`, `read_keys`): What servers call a job, and which id of the scheduler's stands in it.
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
