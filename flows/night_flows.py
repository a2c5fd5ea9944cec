"""The flows that publish releases: nightly, and backfill, which has a nested flow run for each range of days.

Every work item is a task run, named by its step and day.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from datetime import date
from functools import partial
from typing import Annotated, Any

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.utilities.annotations import quote
from pydantic import Field

from iosig.answers.time_shifts import check_release
from iosig.flows import executors
from iosig.flows.backfill import backfill as backfill_ranges
from iosig.flows.flow_runs import run_in_warehouse, run_name
from iosig.flows.nightly import begin_run, build
from iosig.flows.schedule import ReadyItem
from iosig.flows.selection import select_steps
from iosig.flows.steps.items import ItemResult
from iosig.flows.steps.plan import Selection, require_order
from iosig.flows.steps.run import Run
from iosig.flows.tasks import execute_item, get_retry_options, land, maintain, plan_run, publish, report
from iosig.settings.model import Settings
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.printable import one_line
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store, lock_warehouse


@flow(name="iosig-nightly", flow_run_name=partial(run_name, "nightly"))
def nightly(
    since: date | None = None,
    until: date | None = None,
    lock_timeout_s: float | None = None,
    select: list[str] | None = None,
    exclude: list[str] | None = None,
) -> Any:
    """Land the inbox, then stage, cut samples, transform, check and release; None if there was nothing to do.

    Args:
        since: Recompute the UTC days from this one on.
        until: Recompute the UTC days up to this one.
        lock_timeout_s: Maximum time to wait for the warehouse lock [s]; by default that of the settings.
        select: Compute only these steps or tables: NAME, NAME+, +NAME. Nothing lands then.
        exclude: Leave these steps or tables out. Nothing lands then.
    """

    def work(store: Store, settings: Settings) -> Release | None:
        require_order(since, until)
        selection = select_steps(store, select or [], exclude or []) if select or exclude else None
        landed = None if selection else land_inputs(store, settings)
        return compute(store, settings, since, until, lock_timeout_s, selection, after=landed)

    return run_in_warehouse(work)


def land_inputs(store: Store, settings: Settings) -> State[Any]:
    """Land new inputs, and return the state of the task run."""
    landed: State[Any] = land.with_options(**get_retry_options(settings))(store, settings, return_state=True)
    landed.result()
    return landed


def compute(
    store: Store,
    settings: Settings,
    since: date | None,
    until: date | None,
    lock_timeout_s: float | None,
    selection: Selection | None = None,
    kind: str = "run",
    after: State[Any] | None = None,
) -> Release | None:
    """Execute a plan and publish its release; None if there was nothing to do.

    kind: kind of the release. after: state of the preceding task run, which Prefect's graph links to this one.
    """
    schedule, retries = settings.schedule, get_retry_options(settings)
    with lock_warehouse(store, schedule.lock_timeout_s if lock_timeout_s is None else lock_timeout_s):
        waits = [after] if after else []
        plan_state = plan_run(store, settings, since, until, selection, kind, wait_for=waits, return_state=True)
        plan = plan_state.result()
        if plan is None:
            return None
        with executors.open_engine(settings, store.root, schedule.step_timeout_s) as engine:
            run = begin_run(store, settings, plan)
            last = _build(run, engine, retries, plan_state)
        release: Release | None = publish.with_options(**retries)(quote(run), wait_for=last)
        if release is None:
            return None
        maintain.with_options(**retries)(store, settings)
    for warning in check_release(store, settings, release):
        get_run_logger().warning(warning)
    if settings.report.output is not None:
        # the release remains valid even if writing its pages fails
        report(store, settings, release, return_state=True)
    return release


def _build(
    run: Run, engine: executors.Engine, retries: Mapping[str, Any], plan_state: State[Any]
) -> list[PrefectFuture[Any]]:
    """Execute the work items of a run as task runs linked to their inputs; return the last task run in a list."""
    task_runs: dict[str, PrefectFuture[Any]] = {}

    def start(ready: ReadyItem) -> Future[ItemResult]:
        upstream: list[Any] = [task_runs[name] for name in ready.upstream() if name in task_runs]
        named_task = execute_item.with_options(name=ready.item.step, task_run_name=one_line(ready.item.name), **retries)
        task_run = runner.submit(
            named_task,
            {"ready": quote(ready), "root": run.store.root, "engine": quote(engine)},
            wait_for=upstream or [plan_state],
        )
        task_runs[ready.item.name] = task_run
        future: Future[ItemResult] = Future()
        task_run.add_done_callback(partial(_settle, future))
        return future

    # one thread for each work item in progress, and one for checks, which have their own worker
    runner: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=engine.worker_count + 1)
    with runner:
        for _ in build(run, engine, start):
            pass
    return list(task_runs.values())[-1:]


def _settle(future: Future[ItemResult], task_run: PrefectFuture[Any]) -> None:
    """Copy the outcome of a completed task run to a future."""
    try:
        task_run.wait()
        outcome = task_run.state.result(raise_on_failure=False)
    except BaseException as error:
        outcome = error
    if isinstance(outcome, ItemResult):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)


# ---- many days


@flow(name="iosig-backfill", flow_run_name=partial(run_name, "backfill"))
def backfill(
    since: date, until: date, chunk_days: Annotated[int, Field(ge=1, le=9999)] = 7, lock_timeout_s: float | None = None
) -> Any:
    """Recompute days from landed inputs, range by range, with a release for each; return the ids of the releases.

    A run that was stopped continues after the last release that it published, if its parameters are the same.

    Args:
        since: The first UTC day.
        until: The last UTC day.
        chunk_days: Number of days in a release.
        lock_timeout_s: Maximum time to wait for the warehouse lock [s]; by default that of the settings.
    """

    def work(store: Store, settings: Settings) -> list[str]:
        def run_days(first: date, last: date) -> Release:
            release: Release | None = compute_days(first, last, lock_timeout_s)
            if release is None:
                raise NothingToDo(f"No landed input has data of {first} to {last}.")
            return release

        land_inputs(store, settings)
        release_ids = []
        for days in backfill_ranges(store, settings, since, until, chunk_days, run_days):
            release_id = days.release.release_id if days.release else None
            get_run_logger().info(
                "%s to %s: %s", days.since, days.until, release_id or "nothing to do, or already done"
            )
            release_ids += [release_id] if release_id else []
        return release_ids

    return run_in_warehouse(work)


@flow(name="iosig-backfill-days", flow_run_name="{since} to {until}")
def compute_days(since: date, until: date, lock_timeout_s: float | None = None) -> Any:
    """Recompute days, and publish one release of kind `backfill`; None if there was nothing to do."""

    def work(store: Store, settings: Settings) -> Release | None:
        return compute(store, settings, since, until, lock_timeout_s, kind="backfill")

    return run_in_warehouse(work, is_notified=False)
