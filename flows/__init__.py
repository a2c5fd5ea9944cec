"""Land inputs, plan and execute nightly runs and backfills, deploy them with Prefect, and send notifications.

- `nightly` (`run_inline`, `build`, `publish`): The nightly flow without Prefect.
- `steps/`: The steps: declarations, and functions that execute one work item.
- `schedule` (`Schedule`, `execute`, `Durations`): The order of work items, and the remaining time of a run.
- `executors` (`Engine`, `open_engine`, `with_processes`): Where work items run, by setting.
- `dask_workers` (`connect_workers`, `Workers`): An executor over Dask workers.
- `selection` (`select_steps`): Selection of steps by names and graph operators, as dbt selects models.
- `backfill` (`backfill`, `day_ranges`): Recomputation of many days, range by range, with a release for each range.
- `night_flows` (`nightly`, `backfill`, `compute`): The Prefect flows that publish releases.
- `upkeep_flows` (`land`, `maintain`, `report`): The Prefect flows that run between the nightly runs.
- `tasks` (`plan_run`, `execute_item`, `publish`): The tasks of the flows.
- `flow_runs` (`run_in_warehouse`, `put_into_environment`): The warehouse of a flow run; faults as states of the run.
- `deployments` (`FLOWS`, `serve`, `deploy`): The flows as deployments: served, or on a work pool.
- `prefect_server` (`PrefectServer`): The address, password and process of a warehouse's Prefect server.
- `notifications` (`telling`, `tell`): Notices of problems, one when a problem begins and one when it ends.
- `report` (`after_release`): The report on a release, written by the nightly flow.
- `forget` (`find`, `forget`): Removal of a landing, or of all data of a user, from every kept release.
- `own_data` (`OwnData`, `find`): The data of a user, and the names of that user elsewhere.
- `lineage` (`lineage`, `get_lineage`, `get_column_lineage`): The tables and columns from which each table is computed.
- `faults` (`machine_fault`): Translation of library exceptions into one sentence with a remedy.
- `demo/`: Simulated logs for the demo.
"""
