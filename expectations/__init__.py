"""IS IT GOOD: the suites of every published table, and the gate that decides on a release.

- `docs`: The local Data Docs: Great Expectations' own account of a run's checks, as pages that need no network.
- `gate`: The gate: holds a table to its suite, takes out the rows that break a rule, and decides on the release.
- `suites`: Suites: what a table is expected to be.
"""
