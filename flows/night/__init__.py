"""The night: its order, inline and under Prefect.

- `deployment` (`nightly`, `serve`): The nightly flow under Prefect: the same steps as inline, as a handful of
  chunky tasks.
- `executors` (`Executor`, `Inline`, `with_child`, `done`): Who does pieces of work: this process, and a child for
  those that need Great Expectations.
- `order` (`run_inline`, `STEPS`, `Night`): The night's order: which step follows which, inline or under Prefect alike.
"""
