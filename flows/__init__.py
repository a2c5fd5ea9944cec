"""The flows: landing and the nightly run, its plan and its steps, backfill, deployments, notifications.

- `nightly` (`run_inline`, `build`, `publish`): The nightly flow without Prefect.
- `steps/`: The steps: declarations, and functions that execute one work item.
- `schedule` (`Schedule`, `execute`, `Durations`): The order of work items, and the remaining time of a run.
- `executors` (`Engine`, `open_engine`, `with_processes`): Where work items run, by setting.
- `dask_workers` (`connect_workers`, `Workers`): An executor over Dask workers.
- `selection` (`select_steps`): Steps by names and graph operators, as dbt selects models.
- `backfill` (`backfill`, `day_ranges`): Recomputing many days, a range at a time, with a release each.
- `night_flows` (`nightly`, `backfill`, `compute`): The Prefect flows that publish releases.
- `upkeep_flows` (`land`, `maintain`, `report`): The Prefect flows around the nights.
- `tasks` (`plan_run`, `execute_item`, `publish`): The tasks of the flows.
- `flow_runs` (`run_in_warehouse`, `put_into_environment`): The warehouse of a flow run, and faults as its states.
- `deployments` (`FLOWS`, `serve`, `deploy`): The flows as deployments: served, or on a work pool.
- `prefect_server` (`PrefectServer`): The Prefect server of a warehouse: its address, its password, its process.
- `notifications` (`telling`, `tell`): Notices of problems, once when they begin and once when they end.
- `report` (`after_release`): The report of a release of the nightly flow.
- `forget` (`find`, `forget`): Removing a landing, or all data of a user, from every release that is kept.
- `own_data` (`OwnData`, `find`): The data of a user, and the names of that user elsewhere.
- `lineage` (`lineage`, `lineage_of`, `columns_of`): From which tables and columns each table is computed.
- `faults` (`machine_fault`): Exceptions of libraries as one sentence with a remedy.
- `demo/`: The demo's site.
"""
