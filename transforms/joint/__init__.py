"""Joint extraction of signatures: from samples minus the traffic that runs of other applications explain.

- `cleaning` (`clean_samples`, `CleanedSamples`): Samples minus the traffic attributed to other applications.
- `contention` (`estimate_contention_cost`, `remove_contention`): Slowdown of runs by concurrent I/O, and its removal
  from samples.
- `envelope` (`extract_envelopes`, `Envelopes`): Signatures of cleaned samples by weighted quantiles.
- `extraction` (`extract_jointly`, `JointResult`): Joint signatures, validated on held-out runs.
- `fitting` (`fit_traffic`, `FittedTraffic`): Curves of all applications, fitted together by sparse non-negative
  regression.
- `shared_traffic` (`SharedTraffic`, `KnownSignatures`): Traffic of a file system, its runs, and known signatures.
"""
