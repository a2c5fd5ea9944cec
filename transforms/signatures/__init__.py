"""Signatures: what an application does to storage when it is alone, from the samples of its runs.

- `averages`: The mean, the median and low quantiles of preprocessed samples: what a signature method has to beat.
- `borne_out` (`borne_out`): Bursts that runs bear out: how much likelier each rate is with a burst than without.
- `bursts` (`Bursts`, `bursts_of`): Bursts of signatures, and how any curve's are found by one rule.
- `iosi` (`IosiParams`, `iosi_of_each`): IOSI: signatures from what the samples of an application's runs share.
- `iosi_clique`: Common bursts by clustering on a grid: CLIQUE as IOSI adapts it.
- `iosi_crests`: Crests and troughs of smoothed samples: where one burst ends and the next begins.
- `left_out` (`are_usual`, `are_outliers`): Which runs of a set are left out, and why.
- `methods` (`SignatureParams`, `MethodSignatures`, `extract`, `chosen`): Signatures of applications, by every method.
- `preprocessing` (`over_node_counts`, `partial`): Samples of one application brought to one form: 1-s points.
- `robust` (`robust`): Our own estimator of signatures: align the runs at each burst.
- `robust_alignment`: Alignment: when each run reaches each burst of a template.
- `robust_quantiles` (`weighted_quantiles`): Weighted quantiles across runs, point by point.
- `robust_template`: Templates: the bursts that aligned runs have in common.
- `robust_timeline`: Timelines: when an application would reach each of its bursts alone, from when its runs did.
- `sample_sets` (`SampleSets`, `SampleSet`): Sample sets: the runs of one application.
- `signature` (`Signature`): Signatures: what a method makes of one sample set, in one form for all methods.
- `similarity` (`correlation`, `cross_correlation`, `burst_errors`, `difference`): How alike two signatures are.
- `stretched` (`stretched`): Stretched runs: all brought to one duration, of which a low quantile is the signature.
- `time_warping` (`dtw`): Dynamic time warping: the baseline that IOSI is compared with.
- `trust` (`Judge`, `chosen`): Trust: what an honest judge would expect a signature's correlation with the truth to be.
- `warped` (`warped_of_each`): Warped runs: where in each one each moment of the application is, by overlaps.
"""
