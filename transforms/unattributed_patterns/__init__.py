"""Find recurring bursts in a file system's residual traffic, and determine whether logged runs explain these patterns.

- `ambiguity` (`AmbiguityParams`, `find_ambiguous`, `may_be_strays`): Patterns that may not be an application of their
  own.
- `burst_pairs` (`BurstPairs`, `PairScan`, `count_neighbors`): Pairs of bursts that recur at a fixed distance.
- `clustering` (`Cluster`, `ClusterScan`): Clusters of bursts of equal volume, width and shape.
- `cooccurrence` (`Cooccurrence`, `Runs`, `compute_cooccurrence`, `find_start_aligned`): Find the application with runs
that coincide with a pattern, and the p-value of the coincidence.
- `finding` (`find_patterns`): Recurring patterns in residual traffic.
- `lagged_bursts` (`LaggedBursts`, `find_lagged_bursts`): Bursts that follow those of a cluster at a fixed lag.
- `matching` (`PatternSummary`, `match_patterns`): Identity of patterns between two windows of days.
- `patterns` (`DetectedPattern`, `Pattern`, `PatternParams`): The result types and all parameters.
- `residual` (`compute_residual`, `compute_proportional_residual`, `resample_polls`, `choose_step_s`): Traffic without
  background and explained bytes.
- `residual_bursts` (`ResidualBursts`, `find_bursts`): Bursts in residual traffic.
- `rhythms` (`Rhythm`, `estimate_period`, `subtract_rhythm`): Periodic I/O of logged applications within their runs.
- `search` (`PatternSearch`): Split clusters by owner, and combine the parts to patterns.
- `trains` (`Train`, `find_train`): Periodic burst trains that outlast every logged run.
"""
