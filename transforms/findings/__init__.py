"""Findings: I/O problems that rules detect in traced runs, each with its evidence and a remedy.

- `facts` (`TraceFrames`, `compute_facts`, `upper_layers`): Facts that rules test, one row per traced run.
- `finding` (`apply_rules`): Outcome of every rule for every run.
- `finding_files` (`find_files`): Files that a finding concerns.
- `rank_times` (`RankTimes`, `compute_rank_times`, `spread_evenly`): Bytes by rank and time, as a heat map.
- `request_facts` (`sizes_and_order`, `distinct_bytes`, `count_crossings`, `count_movers`): Facts from
  individual requests.
- `rules` (`Rule`, `make_rules`): Conditions, evidence and remedies.
- `thresholds` (`Thresholds`): Thresholds of the rules.
"""
