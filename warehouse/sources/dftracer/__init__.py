"""DFTracer's traces: a JSON line for each call, a file for each process.

- `calls` (`typed`, `request_bytes`): What DFTracer's events are: reads and writes with their bytes.
- `files` (`sifted`, `taken`): Files of a DFTracer trace: their calls, and what each says about its processes.
- `lines` (`blocks`, `quick`, `careful`): Lines of DFTracer's files: many at once, or one by one.
- `nesting` (`IN_ORDER`, `Nesting`): Calls within calls: what one layer hands to the next is counted once.
- `run` (`landed`): What a DFTracer trace becomes: rows of its requests, of its files, and of the run itself.
- `source`: DFTracer traces: what a run's processes called, a JSON line for each call, a file for each process.
"""
