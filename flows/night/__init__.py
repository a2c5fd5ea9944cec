"""The night: its order, inline and under Prefect.

- `deployment` (`nightly`, `serve`): The nightly flow under Prefect: the same steps as inline, as a handful of
  chunky tasks.
- `order` (`run_inline`): The night's order: which step follows which, inline or under Prefect alike.
"""
