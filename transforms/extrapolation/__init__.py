"""Extrapolation: a trace at a rank count that nobody ran, from traces at several.

- `aligned_loops`: Loops of one iteration put back where a trace has what is in them only once, and another one has
  the loop.
- `count_models` (`CountFamily`): Exact models of one number over the rank count n: what stays, grows with n, or is
  shared out among n.
- `evaluation`: The models of a program's trace evaluated at a rank count: its compressed trace, no larger at a
  million ranks.
- `extrapolating` (`extrapolated_at`, `ExtrapolationParams`, `fitted_trace`): ScalaIOExtrap: from traces at four or
  more rank counts, the exact trace at one that nobody ran.
- `fitted_traces` (`FittedTrace`): Traces of one program at several rank counts as models over n: what an
  extrapolation evaluates.
- `iteration_models` (`Families`): Exact models of a number over ranks, iterations and rank counts: both dimensions
  of the paper's section 3.2.3.
- `rank_list_models`: Exact models of a class's ranks: rank lists whose starts, strides and counts are each a model
  in n.
- `rank_models`: Exact models of a number over ranks and rank counts: the column dimension of the paper's section
  3.2.3.
- `rank_pieces`: Ranks in pieces on which a number grows evenly along each dimension: where it turns, and by groups
  of ranks.
- `rank_tiles`: Which ranks are taken by classes: each by one, and what is left, without more than a byte for each
  rank.
- `result` (`Extrapolated`): What an extrapolation comes to: a compressed trace with the models behind it, or the
  fields that have none.
- `rounded_models`: What programs round: floor(k/n), ceil(k/n), their multiples of n, k mod n; and which of them
  give known numbers.
- `structures`: The structure of compressed traces: what must be the same at all rank counts (paper, section 3.2.1).
- `time_models`: Times at a rank count that nobody ran, by ScalaTrace's four curve fits over those that were [1,
  section 2].
- `transitions`: How often each call of a class follows each other one: in closed form, whatever the loops' lengths.
"""
