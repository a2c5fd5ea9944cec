"""Extrapolation: a trace at a rank count that nobody ran, from traces at several.

- `count_models` (`CountFamily`): Exact models of one number over the rank count n.
- `evaluation`: The models of a program's trace evaluated at a rank count: its compressed trace.
- `extrapolating` (`extrapolated_at`, `ExtrapolationParams`): ScalaIOExtrap: from traces at four or more rank counts.
- `iteration_models` (`Families`): Exact models of a number over ranks, iterations and rank counts.
- `rank_list_models`: Exact models of a class's ranks: rank lists whose starts.
- `rank_models`: Exact models of a number over ranks and rank counts.
- `rank_pieces`: Ranks in pieces on which a number grows evenly along each dimension.
- `result` (`FittedTrace`, `Extrapolated`): What an extrapolation evaluates, models over n, and what it comes to.
- `structures`: The structure of compressed traces: what must be the same at all rank counts (paper, section 3.2.1).
- `time_models`: Times at a rank count that nobody ran, by ScalaTrace's four curve fits.
"""
