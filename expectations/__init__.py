"""IS IT GOOD: the suites of every published table, and the gate that decides on a release.

- `docs` (`of_release`, `of_refusal`, `build`): The local Data Docs: what the checks say of a release, as pages.
- `gate` (`check`, `decide`, `preload`): The gate: holds a table to its suite, and decides on the release.
- `sentences` (`happened`, `what_to_do`): Sentences: what happened where an expectation does not hold.
- `suites` (`rules`, `rule`, `parameters`): Suites: what a table is expected to be, and how each rule is judged.
- `summing` (`summed`): Summing up: what the checks of days say of a release as a whole.
"""
