"""Attribution: division of a file system's traffic among the runs that were active.

- `explanation` (`explain_traffic`, `explain_traffics`, `Explanation`): Bytes of each run, by the signature of its
  application.
- `likely_bytes` (`estimate_likely_bytes`, `spread_evenly`): Unexplained bytes of each run, by when it was active.
- `placement` (`place_bursts`, `take_bytes`, `batch_disjoint`): Times of a run's bursts, where the traffic has room.
- `runs` (`Runs`, `WindowedRuns`, `RunBytes`): Runs with the bursts of their signatures, and bytes by run and step.
- `server_counts` (`distribute_counts`): Bytes that servers counted for a run, on the steps of the traffic.
- `slowdowns` (`estimate_slowdowns`, `estimate_slope`, `find_interference`): Delay of bursts through contention, and the
  runs that caused it.
"""
