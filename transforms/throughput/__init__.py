"""Throughput: bytes per second over time, from requests, intervals and stripes.

- `even_values` (`Grid`, `binned`, `Instants`, `at_instants`): From throughput to evenly spaced values: bytes in
  bins, values at instants.
- `exact_sums` (`running_sums`, `limbs`): Sums without rounding: floats are taken apart into whole multiples of
  fixed powers of two, and those are added.
- `intervals` (`StepParams`, `stepped`): From intervals of any length, as series and polls have them, to even steps:
  what a spectrum needs.
- `requests` (`Requests`, `Steps`, `step_function`): From requests to throughput: how many bytes a second
  all requests together move, at every instant.
- `request_phases` (`RequestPhases`, `request_phases`): Phases of I/O in a trace: what is separated by more than a
  gap in which nothing is active.
- `signals` (`SignalParams`, `grids`, `choose_basis`): Which measurement of a traced run becomes its signal, and on
  which grid.
- `striping` (`Layouts`, `Extents`, `split`): Where the bytes of a striped file lie: the storage target of a
  request, and its pieces on several.
"""
