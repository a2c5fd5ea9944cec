"""Signatures: what an application does to storage when it is alone, from the samples of its runs.

- `averages`: The mean, the median and low quantiles of preprocessed samples: what a signature method has to beat.
- `curve_bursts` (`bursts_of`): Bursts of any signature curve, by one rule: so that all methods and the truth are
  counted alike.
- `envelopes`: Weighted quantiles across runs: a low one is what traffic that only adds cannot raise.
- `extracting` (`SignatureParams`, `Signatures`, `extract`): Signatures of applications, by every method: one answer
  for each sample set and method.
- `iosi` (`IosiParams`, `iosi`): IOSI: an application's signature from what the samples of its runs have in common.
- `iosi_clique`: Common bursts by clustering on a grid: CLIQUE as IOSI adapts it.
- `iosi_crests`: Crests and troughs of smoothed samples: where one burst ends and the next begins.
- `iosi_wavelets`: Discrete Meyer wavelets: the smooth part of samples, from which bursts stand out.
- `left_out`: Usual runs: those of a set that take about as long as most.
- `outliers` (`are_outliers`): Runs that are plainly unlike the others of their application, by the local outlier
  factor.
- `preprocessing` (`over_node_counts`, `partial`): Samples of one application brought to one form: 1-s points, equal
  lengths, less noise.
- `robust` (`RobustParams`, `robust`): Our own estimator of signatures: align the runs at each burst, then take a
  low envelope across them.
- `robust_alignment`: Alignment: when each run reaches each burst of a template.
- `robust_bursts`: Common bursts: where so many runs are busy at once that others alone would hardly make them so.
- `robust_timeline`: Timelines: when an application would reach each of its bursts alone, from when its runs did.
- `sample_sets` (`SampleSets`, `SampleSet`): Sample sets: the runs of one application, each with the traffic that
  storage servers saw while it ran.
- `signature` (`Extracted`, `SignatureBursts`): What a method makes of one sample set: a signature, in one form for
  all methods.
- `similarity` (`correlation`, `cross_correlation`, `burst_errors`, `difference`): How alike two signatures are:
  correlation, volume, and bursts missed and false.
- `time_warping` (`dtw`): Dynamic time warping: the baseline that IOSI is compared with.
"""
