"""The nightly flow under Prefect: the same steps as inline, as a handful of chunky tasks.

A piece of work that is done has left a mark in the plan's folder; that is the cache, so it holds inline
too, and it cannot outlive the files that it speaks of. A task that finds all its work done says `Cached`.
"""

from __future__ import annotations

import logging
from datetime import date
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.schedules import Cron
from prefect.states import Completed

from flows.night import executors
from flows.night.order import STEPS, Night, Step, land_new, open_night
from flows.settings import Settings, load
from flows.steps import release as releasing
from flows.steps.plan import Plan, make_plan
from warehouse.errors import NothingToDo
from warehouse.releases.reading import opened
from warehouse.releases.releases import Release, published
from warehouse.store.store import Store, locked


@task(cache_policy=NO_CACHE)
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
    """Do one step of the night."""
    logger = get_run_logger()
    pieces = 0
    for piece in night.do(step):
        logger.info("%s: %s rows", piece.name, piece.row_count)
        pieces += 1
    return pieces if pieces else Completed(name="Cached", message="All of it was done before.", data=0)


@task(name="release", cache_policy=NO_CACHE)
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


@flow(name="iosig-nightly", flow_run_name="nightly-{warehouse}", validate_parameters=False)
def nightly(
    warehouse: str, settings_path: str | None = None, since: date | None = None, until: date | None = None
) -> Release | None:
    """Land the inbox, then stage, cut samples, transform, check and release; None if there was nothing to do."""
    store = Store(Path(warehouse))
    settings = load(Path(settings_path) if settings_path else None, store.root)
    land(store, settings)
    with locked(store):
        plan = plan_run(store, settings, since, until)
        if plan is None:
            return None
        with executors.with_child(settings.engine.worker_count) as executor:
            night = open_night(store, settings, plan, executor)
            for step in STEPS:
                _ = do_step(night, step)
            return publish(night)


def serve(store: Store, settings_path: Path | None, cron: str, time_zone: str) -> None:
    """Serve the nightly flow on its schedule from this process, until it is stopped."""
    nightly.serve(
        name="nightly",
        schedule=Cron(cron, timezone=time_zone),
        limit=1,
        parameters={
            "warehouse": str(store.root.resolve()),
            "settings_path": str(settings_path.resolve()) if settings_path else None,
        },
    )
