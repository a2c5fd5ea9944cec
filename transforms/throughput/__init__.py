"""Throughput: bytes per second over time, from requests, intervals and stripes.

- `even_values` (`Grid`, `binned`, `Instants`, `at_instants`): From throughput to evenly spaced values: bytes in bins.
- `exact_sums` (`running_sums`, `limbs`): Sums without rounding.
- `intervals` (`StepParams`, `stepped`): From intervals of any length, as series and polls have them, to even steps.
- `requests` (`Requests`, `Steps`, `step_function`): From requests to throughput.
- `request_phases` (`RequestPhases`, `request_phases`): Phases of I/O in a trace.
- `signals` (`SignalParams`, `grids`, `choose_basis`): Which measurement of a traced run becomes its signal.
- `striping` (`Layouts`, `Extents`, `split`): Where the bytes of a striped file lie: the storage target of a request.
"""
