"""Define the input and the result of all period searches.

- `detections` (`Detections`, `Segments`, `gather`): Results of a search, in one form for all methods.
- `even_signals` (`EvenSignals`, `group_by_length`): Evenly sampled signals of one length.
"""
