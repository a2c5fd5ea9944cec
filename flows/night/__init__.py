"""The night: its order, inline and under Prefect.

- `deployment` (`nightly`, `serve`): The nightly flow under Prefect: the same steps as inline.
- `executors` (`Executor`, `Inline`, `with_child`): Who does pieces of work: this process.
- `order` (`run_inline`, `STEPS`, `Night`): The night's order: which step follows which.
"""
