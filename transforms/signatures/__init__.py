"""Estimate signatures, i.e. the I/O of an application without interference, from server-side samples of its runs.

- `averages`: Take the mean, the median and low quantiles of preprocessed samples: baselines for other methods.
- `burst_evidence` (`find_supported_bursts`): Log-likelihood ratio of a burst against background traffic.
- `bursts` (`Bursts`, `detect_bursts`): Bursts of signatures, and one rule that detects them in any curve.
- `elastic` (`extract_elastic`): The `elastic` method: elastic alignment of runs by dynamic programming.
- `expected_correlation` (`RunSummary`, `select_method`): Estimate a calibrated confidence, published as
`expected_correlation`.
- `iosi` (`IosiParams`, `extract_iosi`, `trace_iosi`): IOSI: signatures from the common bursts of samples, and the
  intermediate results.
- `iosi_bursts` (`SegmentedSamples`, `BurstTable`): The bursts of samples, as points of CLIQUE's plane.
- `iosi_clique`: Common bursts by grid-based clustering: CLIQUE as adapted by IOSI.
- `iosi_crests`: Segmentation of smoothed samples into bursts at low troughs.
- `methods` (`SignatureParams`, `MethodSignatures`, `extract_signatures`): Extraction by every method.
- `outliers` (`select_typical_runs`, `detect_outliers`): Selection of the runs of a set by duration and volume.
- `preprocessing` (`preprocess`, `merge_node_counts`, `truncate_runs`): Convert samples to points of 1 s and equal
duration, and subtract the background.
- `robust` (`extract_robust`): The `robust` method: alignment of the runs at each burst, low envelope.
- `robust_alignment`: Find when each run starts each burst of a template.
- `robust_quantiles` (`weighted_quantiles`): Weighted quantiles across runs.
- `robust_template`: Find the bursts that aligned runs have in common, by a binomial test.
- `robust_timeline`: Estimate when an application without interference reaches each burst, by quantile regression.
- `sample_sets` (`SampleSets`, `SampleSet`): The runs of one application with their samples.
- `signature` (`Signature`): The result of a method for one sample set.
- `similarity` (`correlation`, `cross_correlation`, `count_burst_errors`, `compare_signatures`): Comparison of
  signatures.
- `time_normalized` (`extract_time_normalized`): The `time_normalized` method: runs resampled to one duration, low
quantile.
- `time_warping` (`extract_dtw`): The `dtw` method, the baseline that IOSI is compared with.
"""
