"""Findings: what a traced run's I/O is at odds with, by rules, each with its evidence and what helps.

- `facts` (`TraceFrames`, `facts_of`, `upper_layers`): Facts of traced runs, a row each: what rules are asked of.
- `finding` (`of_facts`): What is found in traced runs: every rule asked of every run.
- `finding_files` (`files_of`): In which files a finding lies.
- `rank_times` (`RankTimes`, `rank_times`, `spread`): Bytes by rank and time: what a heat map shows.
- `request_facts` (`sizes_and_order`, `distinct_bytes`, `on_stripes`, `movers`): What single requests tell of a run.
- `rules` (`Rule`, `rules`): The rules: when, by which numbers, and what helps.
- `thresholds` (`Thresholds`): Above what a rule speaks.
"""
