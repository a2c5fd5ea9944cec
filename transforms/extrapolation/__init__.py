"""Extrapolation of traces to rank counts that were not run, from traces at several rank counts.

- `count_models` (`CountFamily`, `fit_count_model`): Exact models of one number over the rank count n.
- `evaluation` (`evaluate_trace`): Evaluation of a program's models at a rank count.
- `extrapolating` (`extrapolate_to`, `ExtrapolationParams`): Extrapolation as in ScalaIOExtrap, from traces at four or
  more rank counts.
- `iteration_models` (`Families`, `fit_field`): Exact models of a number over ranks, iterations and rank counts.
- `mesh_models` (`fit_mesh`): Exact models for square and cubic meshes, in sqrt(n) and cbrt(n).
- `rank_list_models` (`fit_rank_lists`): Exact models of a class's rank lists.
- `rank_models`: Exact models of a number over ranks and rank counts.
- `rank_pieces`: Pieces of rank lists on which a number is linear.
- `result` (`FittedTrace`, `ExtrapolatedTrace`): Fitted models, and the result of an extrapolation.
- `structures` (`match_classes`): Comparison of the structures of compressed traces (paper, section 3.2.1).
- `time_models` (`extrapolate_histograms`): Extrapolation of times by ScalaTrace's four types of curves.

"The paper" is X. Luo et al., HPC I/O Trace Extrapolation, ESPT 2015, DOI 10.1145/2832106.2832108.
"""
