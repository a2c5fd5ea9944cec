"""Find periods that a memoryless process rarely produces: the null-model method (`null_tested`).

- `bursts` (`find_bursts`): Locate the bursts of a periodic signal within its cycles, and measure their width.
- `comb` (`find_best_combs`): Find combs, i.e. spectral lines at the multiples of one frequency, and their significance.
- `detection` (`detect`): Detect periods: tests, windows, extents and refinement.
- `extent` (`locate_by_phases`, `locate_by_cycles`): Locate where a known period begins and ends.
- `few_cycles` (`combine_evidence`): Combine the evidence of combs and smoothed phases for few cycles.
- `fundamental` (`refine_fundamental`): Refine the frequency of a comb, and lower it if all its lines are multiples of a
lower frequency.
- `gaps` (`assess_regularity`): Test whether gaps between phases are more regular than exponential ones.
- `intervals` (`Intervals`, `ScaledSignals`): Intervals of scaled signals, and signals without measurement gaps.
- `params` (`NullModelParams`, `SEARCH`): The user's settings, and the constants of the search.
- `phases` (`find_phases`, `merge_phases`): Runs of samples above a threshold.
- `refinement` (`refine_periods`): Refine a period to the sharpest folded profile, and estimate its standard error.
- `segments` (`find_segments`): Find several periods in one signal: consecutive ones, or a fast one on a slow one.
- `smoothed` (`assess_running_means`): Apply the gap test to running means, for phases that noise hides or splits.
"""
