"""Compute throughput, i.e. bytes per second over time, from requests, intervals and stripes.

- `even_values` (`Grid`, `bin_requests`, `Instants`, `sample_at`): Bytes in bins of a grid, and rates at instants.
- `exact_sums` (`running_sums`, `split_into_limbs`): Sums without rounding errors.
- `intervals` (`StepParams`, `resample_intervals`): Resample irregular intervals, as in series and polls.
- `requests` (`Requests`, `Steps`, `step_function`): Throughput of requests as a step function.
- `request_phases` (`RequestPhases`, `request_phases`): Phases of I/O in a trace.
- `signals` (`SignalParams`, `choose_grids`, `choose_basis`): Choose the measurement that becomes a run's signal.
- `striping` (`Layouts`, `Extents`, `split_requests`): Find the storage targets of requests to striped files.
"""
