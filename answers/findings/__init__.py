"""What traced runs say of their I/O, and what is wrong with it, of a release or of one input.

- `query` (`TracedRun`, `of_input`, `of_release`): Findings, layers, sizes, order and heat maps of traced runs.
"""
