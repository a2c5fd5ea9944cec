"""Attribution: division of a file system's traffic among the runs that were active.

- `explanation` (`explain_traffic`, `explain_traffics`, `Explanation`): Bytes of each run that the signature of its
  application explains.
- `likely_bytes` (`estimate_likely_bytes`, `spread_evenly`): Unexplained bytes that each run probably moved, inferred
  from when it was active.
- `placement` (`place_bursts`, `take_bytes`, `batch_disjoint`): Times at which a run's bursts fit into the traffic.
- `runs` (`Runs`, `WindowedRuns`, `RunBytes`): Runs with the bursts of their signatures, and bytes by run and step.
- `server_counts` (`distribute_counts`): Bytes that servers counted for a run, distributed over the traffic's steps.
- `slowdowns` (`estimate_slowdowns`, `estimate_slope`, `find_interference`): Delay of bursts due to contention, and the
  runs that caused it.
"""
