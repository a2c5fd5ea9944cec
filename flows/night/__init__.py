"""The night: its order, inline and under Prefect.

- `backfill` (`backfill`, `chunks`): Many days made anew, some at a time, each time with a release.
- `deployment` (`nightly`, `serve`): The nightly flow under Prefect: the same steps as inline.
- `executors` (`Executor`, `Inline`, `with_child`): Who does pieces of work: this process.
- `order` (`run_inline`, `STEPS`, `Night`): The night's order: which step follows which.
"""
