"""Define the Prefect tasks of the flows: landing, planning, work items, publication, maintenance, the report.

A complete work item has a marker in the run's folder, which runs without Prefect use, too. If an earlier flow run
has completed an item, its task run ends in state `Cached`. Transient faults are retried as configured.
"""

from __future__ import annotations

import logging
from concurrent.futures import BrokenExecutor
from datetime import date
from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.events import emit_event
from prefect.states import Completed

from iosig.flows import executors
from iosig.flows.flow_runs import make_failed_state
from iosig.flows.nightly import land_new, publish as publish_run
from iosig.flows.report import write_report
from iosig.flows.schedule import ReadyItem
from iosig.flows.steps import release as releasing
from iosig.flows.steps.plan import Plan, Selection, make_plan
from iosig.flows.steps.run import Run
from iosig.settings.model import Settings
from iosig.warehouse.errors import IosigError, MachineFault, NothingToDo
from iosig.warehouse.interrupts import reraise_signal_errors
from iosig.warehouse.printable import one_line
from iosig.warehouse.releases.catalogue_choice import agree
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.store.store import Store

#: name of the event that announces a published release
PUBLISHED = "iosig.release.published"
#: maximum number of inputs in the artifact that lists new landings
_MAX_LISTED = 1000


def get_retry_options(settings: Settings) -> dict[str, Any]:
    """Return the task options that configure retries: their number, and delays that double each time."""
    schedule = settings.schedule
    delays_s = [schedule.retry_delay_s * 2**place for place in range(schedule.retry_count)]
    return {"retries": schedule.retry_count, "retry_delay_seconds": delays_s}


def _is_transient(_: object, __: object, state: State[Any]) -> bool:
    """Return whether to retry a task: faults of the machine, a server or a worker may be temporary."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, MachineFault | OSError | BrokenExecutor) and not isinstance(
        error, executors.WorkTimeoutError
    )


@task(task_run_name="land", cache_policy=NO_CACHE, retry_condition_fn=_is_transient)
@reraise_signal_errors()
def land(store: Store, settings: Settings) -> int:
    """Land new files of the inbox and the journal of predictions; return the number of new landings.

    Files land on the machine of the flow. With Slurm, workers for each check of the inbox would have to queue.
    """
    logger = get_run_logger()
    new_count, rows = 0, list[dict[str, Any]]()
    for arrival in land_new(store, settings):
        logger.log(logging.WARNING if arrival.has_refusals else logging.INFO, "%s", arrival.line())
        is_new = arrival.landed is not None and arrival.landed.is_new
        new_count += is_new
        if (is_new or arrival.has_refusals) and len(rows) < _MAX_LISTED:
            rows.append({"input": one_line(arrival.shown_name), "rows": arrival.row_count, "result": arrival.line()})
    if rows:
        create_table_artifact(
            key="iosig-land", table=rows, description=f"Inputs that landed or were refused: {len(rows)}"
        )
    return new_count


@task(name="plan", task_run_name="plan", cache_policy=NO_CACHE)
@reraise_signal_errors()
def plan_run(
    store: Store, settings: Settings, since: date | None, until: date | None, selection: Selection | None, kind: str
) -> Plan | None:
    """Plan the days and tables to recompute; None if all are up to date."""
    try:
        agree(store, settings.catalogue.server())
        releasing.complete(store)
        plan = make_plan(store, settings, since, until, kind=kind, selection=selection)
        for warning in plan.warnings:
            get_run_logger().warning("%s.", warning)
        return plan
    except NothingToDo as nothing:
        get_run_logger().info("%s", nothing)
        return None


@task(name="work item", cache_policy=NO_CACHE, retry_condition_fn=_is_transient)
def execute_item(ready: ReadyItem, root: Path, engine: executors.Engine) -> Any:
    """Execute a work item and wait for it; return a failed state with one sentence if an IosigError occurs."""
    if ready.is_cached:
        return Completed(name="Cached", message="An earlier run has completed it.", data=ready.make_cached_result())
    try:
        result = engine.run(ready.item, root)
    except IosigError as error:
        return make_failed_state(error)
    get_run_logger().info("%s rows", result.row_count)
    return result


@task(name="release", task_run_name="release", cache_policy=NO_CACHE, retry_condition_fn=_is_transient)
@reraise_signal_errors()
def publish(run: Run) -> Release | None:
    """Publish the release, list its tables in an artifact, and emit an event that may trigger other flows.

    Returns None if selected steps have changed no table.
    """
    try:
        release = publish_run(run)
    except NothingToDo as nothing:
        get_run_logger().info("%s", nothing)
        return None
    with open_release(run.store, release, metric=None) as connection:
        table = [
            {"table": name, "rows": connection.sql(f'select count(*) from "{name}"').fetchall()[0][0]}
            for name in (table.name for table in list_published_tables())
        ]
    create_table_artifact(key="iosig-release", table=table, description=f"{release.release_id} ({release.verdict})")
    warehouse = {"prefect.resource.id": f"iosig.warehouse.{run.store.root.name}", "iosig.warehouse": run.store.address}
    emit_event(
        PUBLISHED,
        resource=warehouse,
        payload={"release_id": release.release_id, "verdict": release.verdict, "dates": list(release.dates)},
    )
    return release


@task(task_run_name="maintain", cache_policy=NO_CACHE, retry_condition_fn=_is_transient)
@reraise_signal_errors()
def maintain(store: Store, settings: Settings) -> releasing.FreedSpace:
    """Expire the releases that the settings do not keep, and remove files that are no longer needed."""
    freed = releasing.maintain(store, settings)
    for name, count in freed.lines() or [("nothing to remove", 0)]:
        get_run_logger().info("%s: %s", name, count)
    return freed


@task(task_run_name="report", cache_policy=NO_CACHE, retry_condition_fn=_is_transient)
@reraise_signal_errors()
def report(store: Store, settings: Settings, release: Release) -> str:
    """Write the pages of a release into the folder of the settings; return the path of the first page."""
    written = write_report(store, settings, release)
    get_run_logger().info("%s: %s new files", written.page, written.new_count)
    return str(written.page)
