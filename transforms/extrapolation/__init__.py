"""Extrapolation: a trace at a rank count that nobody ran, from traces at several.

- `aligned_loops`: Loops of one iteration put back where a trace has what is in them only once, and another one has
  the loop.
- `count_models` (`CountFamily`): Exact models of one number over the rank count n: what stays, grows with n, or is
  shared out among n, and what programs round.
- `evaluation`: The models of a program's trace evaluated at a rank count: its compressed trace, no larger at a
  million ranks.
- `extrapolating` (`extrapolated_at`, `ExtrapolationParams`, `fitted_trace`): ScalaIOExtrap: from traces at four or
  more rank counts, the exact trace at one that nobody ran.
- `iteration_models` (`Families`): Exact models of a number over ranks, iterations and rank counts: both dimensions
  of the paper's section 3.2.3.
- `rank_list_models`: Exact models of a class's ranks: rank lists whose starts, strides and counts are each a model
  in n.
- `rank_models`: Exact models of a number over ranks and rank counts: the column dimension of the paper's section
  3.2.3.
- `rank_pieces`: Ranks in pieces on which a number grows evenly along each dimension.
- `result` (`FittedTrace`, `Extrapolated`): What an extrapolation evaluates, models over n, and what it comes to: a
  compressed trace, or the fields that have none.
- `structures`: The structure of compressed traces: what must be the same at all rank counts (paper, section 3.2.1).
- `time_models`: Times at a rank count that nobody ran, by ScalaTrace's four curve fits over those that were [1,
  section 2].
"""
