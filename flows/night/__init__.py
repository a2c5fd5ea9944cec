"""The night: its order, inline and under Prefect.

- `backfill` (`backfill`, `chunks`): Many days made anew, some at a time, each time with a release.
- `deployment` (`nightly`, `serve`): The nightly flow under Prefect: the same steps as inline.
- `executors` (`Executor`, `opened`, `Inline`, `with_child`): Who does pieces of work, as the settings say.
- `forgetting` (`find`, `forget`): A landing, or all that is a user's, goes out of every release that is kept.
- `order` (`run_inline`, `STEPS`, `Night`): The night's order: which step follows which.
- `own_data` (`OwnData`, `find`): What is a user's, and what names the user elsewhere.
- `pace` (`Pace`): How long a night has to go.
- `workers` (`connected`, `Workers`): Workers of Dask: pieces done by processes of other machines.
"""
