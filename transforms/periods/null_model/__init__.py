"""Null-model method (`null_tested`): periods that a memoryless process rarely produces.

- `bursts` (`find_bursts`): Where in its cycles a periodic signal has its bursts, and how wide they are.
- `comb` (`find_best_combs`): Lines in a spectrum that are multiples of one frequency, and their significance.
- `detection` (`detect`): The method: tests, windows, extents and refinement.
- `extent` (`locate_by_phases`, `locate_by_cycles`): Where a known period begins and ends.
- `few_cycles` (`combine_evidence`): Combined evidence of combs and smoothed phases for few cycles.
- `fundamental` (`refine_fundamental`): The exact frequency of a comb, lowered where its lines are multiples.
- `gaps` (`assess_regularity`): Test whether gaps between phases are more regular than exponential ones.
- `intervals` (`Intervals`, `ScaledSignals`): Intervals of scaled signals, and signals without measurement gaps.
- `params` (`NullModelParams`, `SEARCH`): The user's settings, and the constants of the search.
- `phases` (`find_phases`, `merge_phases`): Runs of samples above a threshold.
- `refinement` (`refine_periods`): Period and standard error from the sharpest folded profile.
- `segments` (`find_segments`): Several periods in one signal: consecutive ones, or a fast one on a slow one.
- `smoothed` (`assess_running_means`): The gap test on running means, for phases that noise hides or splits.
"""
