"""IS IT GOOD: the suites of every published table, and the gate that decides on a release."""
