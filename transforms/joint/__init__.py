"""Signatures found together: samples less what other applications' runs explain of them, and what is made of these.

- `cleaning` (`cleaned`, `Cleaned`): Samples less what other applications' runs were given of them.
- `envelope` (`extract`, `Envelopes`): Signatures of cleaned samples: what was clean counts most.
- `finding` (`find`, `Found`): Samples cleaned and extracted anew, and whether held-out runs are predicted better.
- `fitting` (`fitted`, `Given`): What all applications do at once, from the traffic that their runs made together.
- `shared` (`Shared`, `Known`): A file system's traffic, the runs that were there, and what is known of applications.
- `slowing` (`usual_cost`, `alone`): What runs at work cost each other, and samples as they were without that.
"""
