"""The nightly flow under Prefect: the same steps as inline, as a handful of chunky tasks.

A piece of work that is done has left a mark in the plan's folder; that is the cache, so it holds inline
too, and it cannot outlive the files that it speaks of. A task that finds all its work done says `Cached`.

What an operator can mend is a failed flow with one sentence, not a stack; what passes by itself is tried again.
"""

from __future__ import annotations

import logging
import os
from datetime import date
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.schedules import Cron
from prefect.states import Completed, Failed

from flows.faults import machine_fault
from flows.night import executors
from flows.night.order import STEPS, Night, Step, land_new, open_night
from flows.report.nightly import after_release
from flows.settings import ScheduleSettings, Settings, load
from flows.steps import release as releasing
from flows.steps.plan import Plan, make_plan, require_order
from flows.watch.notices import telling
from warehouse.errors import GateFailed, IosigError, MachineFault, NothingToDo, UsageError
from warehouse.printable import one_line
from warehouse.releases.reading import opened
from warehouse.releases.releases import Release, published
from warehouse.releases.servers import agree
from warehouse.store.store import Store, locked

FLOW = "iosig-nightly"


def _passes(_: object, __: object, state: State[Any]) -> bool:
    """Whether to try again: what the machine or a server did not give may be there later."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, MachineFault | OSError)


@task(cache_policy=NO_CACHE, retry_condition_fn=_passes)
def land(store: Store, settings: Settings) -> int:
    """Land what is new in the inbox and the journal of predictions; returns the landings that are new."""
    logger = get_run_logger()
    new_count = 0
    for arrival in land_new(store, settings):
        logger.log(logging.WARNING if arrival.has_refusals else logging.INFO, "%s", arrival.line())
        new_count += arrival.landed is not None and arrival.landed.is_new
    return new_count


@task(name="plan", cache_policy=NO_CACHE)
def plan_run(store: Store, settings: Settings, since: date | None, until: date | None) -> Plan | None:
    """Find what is stale; None if nothing is."""
    try:
        agree(store, settings.catalogue.server())
        releasing.complete(store)
        plan = make_plan(store, settings, since, until)
        for day in plan.late_days:
            get_run_logger().warning("Polls of %s came too late: its earlier ones are gone, it stays as it is.", day)
        return plan
    except NothingToDo as nothing:
        get_run_logger().info("%s", nothing)
        return None


@task(cache_policy=NO_CACHE, task_run_name="{step.name}")
def do_step(night: Night, step: Step) -> Any:
    """Do one step of the night; what an operator can mend is told in a sentence."""
    logger = get_run_logger()
    pieces = 0
    try:
        for piece in night.do(step):
            logger.info("%s: %s rows", one_line(piece.name), piece.row_count)
            pieces += 1
    except IosigError as error:
        return _failed(error)
    night.adopt(step)
    return pieces if pieces else Completed(name="Cached", message="All of it was done before.", data=0)


def _failed(error: IosigError) -> State[Any]:
    return Failed(message=str(error).partition("\n")[0], data=error)


@task(name="release", cache_policy=NO_CACHE, retry_condition_fn=_passes)
def publish(night: Night) -> Release:
    """Publish the release and tell of it in an artifact."""
    release = night.release()
    with opened(night.run.store, release) as connection:
        table = [
            {"table": name, "rows": connection.sql(f'select count(*) from "{name}"').fetchall()[0][0]}
            for name in (table.name for table in published())
        ]
    create_table_artifact(key="iosig-release", table=table, description=f"{release.release_id} ({release.verdict})")
    for name, count in night.maintain().lines():
        get_run_logger().info("%s: %s", name, count)
    return release


def _run_name() -> str:
    folder = flow_run.parameters.get("warehouse") or os.environ.get("IOSIG_WAREHOUSE") or "nowhere"
    return f"nightly-{Path(folder).name}"


@flow(name=FLOW, flow_run_name=_run_name)
def nightly(
    warehouse: str | None = None,
    settings_path: str | None = None,
    since: date | None = None,
    until: date | None = None,
    wait_s: float | None = None,
) -> Any:
    """Land the inbox, then stage, cut samples, transform, check and release; None if there was nothing to do.

    warehouse: its folder; that of IOSIG_WAREHOUSE if not given. since, until: compute these days anew. wait_s: how long
    to wait for another run on the same warehouse; what the settings say if not given.
    """
    try:
        store = _warehouse(warehouse)
        require_order(since, until)
        settings = load(Path(settings_path) if settings_path else None, store.root)
        with telling(store, settings, get_run_logger().warning):
            return _night(store, settings, since, until, wait_s)
    except GateFailed as error:
        create_markdown_artifact(key="iosig-gate", markdown=str(error), description="Why nothing was released")
        return _failed(error)
    except IosigError as error:
        return _failed(error)
    except Exception as error:
        fault = machine_fault(error, Path(warehouse or os.environ.get("IOSIG_WAREHOUSE") or ""))
        if fault is None:
            raise
        return _failed(fault)


def _night(
    store: Store, settings: Settings, since: date | None, until: date | None, wait_s: float | None
) -> Release | None:
    schedule = settings.schedule
    retries: dict[str, Any] = {
        "retries": schedule.retry_count,
        "retry_delay_seconds": [schedule.retry_delay_s * 2**place for place in range(schedule.retry_count)],
    }
    timed_step = do_step.with_options(timeout_seconds=schedule.step_timeout_s)
    land.with_options(**retries)(store, settings)
    with locked(store, schedule.wait_s if wait_s is None else wait_s):
        plan = plan_run(store, settings, since, until)
        if plan is None:
            return None
        with executors.opened(settings, store.root) as executor:
            night = open_night(store, settings, plan, executor)
            for step in STEPS:
                outcome = timed_step(night, step, return_state=True).result(raise_on_failure=False)
                if isinstance(outcome, Exception):
                    raise outcome
            release: Release = publish.with_options(**retries)(night)
    if told := after_release(store, settings, release):
        get_run_logger().info("%s: %s", *told)
    return release


def _warehouse(folder: str | None) -> Store:
    folder = folder or os.environ.get("IOSIG_WAREHOUSE")
    if not folder:
        raise UsageError("Set the deployment's parameter `warehouse`, or IOSIG_WAREHOUSE where the worker runs.")
    return Store.named(folder)


# ---- deployments


def deployment_name(store: Store) -> str:
    """Return what a warehouse's deployment is called if nothing is said: after its folder."""
    return f"nightly-{store.root.resolve().name}"


def serve(store: Store, settings_path: Path | None, schedule: ScheduleSettings, name: str | None = None) -> None:
    """Serve the nightly flow on its schedule from this process, until it is stopped."""
    name = _own_name(store, name)
    nightly.serve(
        name=name,
        schedule=Cron(schedule.cron, timezone=schedule.time_zone),
        limit=1,
        parameters=_parameters(store, settings_path),
    )


def deploy(
    store: Store, settings_path: Path | None, schedule: ScheduleSettings, work_pool: str, name: str | None = None
) -> str:
    """Put the nightly flow of a warehouse on a work pool of the Prefect server; returns the deployment's name."""
    name = _own_name(store, name)
    source = nightly.from_source(str(Path(__file__).resolve().parents[2]), "flows/night/deployment.py:nightly")
    source.deploy(  # type: ignore[union-attr]
        name=name,
        work_pool_name=work_pool,
        schedule=Cron(schedule.cron, timezone=schedule.time_zone),
        parameters=_parameters(store, settings_path),
        concurrency_limit=1,
        print_next_steps=False,
    )
    return name


def _parameters(store: Store, settings_path: Path | None) -> dict[str, Any]:
    return {
        "warehouse": store.address,
        "settings_path": str(settings_path.resolve()) if settings_path else None,
    }


def _own_name(store: Store, name: str | None) -> str:
    """Return the name of a deployment that is nobody else's; raise UsageError where it is another warehouse's."""
    name = name or deployment_name(store)
    with get_client(sync_client=True) as client:
        try:
            found = client.read_deployment_by_name(f"{FLOW}/{name}")
        except ObjectNotFound:
            return name
    other = found.parameters.get("warehouse")
    if other != store.address:
        raise UsageError(f"There is a deployment {name} of another warehouse ({other}): give this one its --name.")
    return name
