"""Joint extraction of signatures: from samples less the traffic that other applications' runs explain.

- `cleaning` (`clean_samples`, `CleanedSamples`): Samples less the traffic attributed to other applications.
- `contention` (`estimate_contention_cost`, `remove_contention`): How much concurrent I/O slows runs, and its removal.
- `envelope` (`extract_envelopes`, `Envelopes`): Signatures of cleaned samples by weighted quantiles.
- `extraction` (`extract_jointly`, `JointResult`): Joint signatures, validated on held-out runs.
- `fitting` (`fit_traffic`, `FittedTraffic`): Curves of all applications at once, by sparse non-negative regression.
- `shared_traffic` (`SharedTraffic`, `KnownSignatures`): Traffic of a file system, its runs, and known signatures.
"""
