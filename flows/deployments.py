"""The nightly flow under Prefect: every work item is a task run, named by its step and day.

A complete work item has a marker in the run's folder, which serves runs without Prefect, too. A task run whose item
an earlier flow run has completed ends as `Cached`.

A fault that the operator can fix fails the flow run with one sentence and no traceback; transient faults are retried.

The flow finds its warehouse and settings file in the environment of its process (IOSIG_WAREHOUSE, IOSIG_SETTINGS):
whoever may start a run on the Prefect server can choose days, but neither a settings file nor a program.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Future
from datetime import date
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import start_blocking_portal
from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.deployments.runner import RunnerDeployment
from prefect.events import emit_event
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.futures import PrefectFuture
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.states import Completed, Failed
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.types.entrypoint import EntrypointType
from prefect.utilities.annotations import quote

from iosig.answers.time_shifts import released_warnings
from iosig.flows import executors
from iosig.flows.faults import machine_fault
from iosig.flows.nightly import begin_run, build, land_new, publish as publish_run
from iosig.flows.notifications import telling
from iosig.flows.prefect_server import hide_credentials
from iosig.flows.report import after_release
from iosig.flows.schedule import ReadyItem
from iosig.flows.selection import select_steps
from iosig.flows.steps import release as releasing
from iosig.flows.steps.items import ItemResult
from iosig.flows.steps.plan import Plan, Selection, make_plan, require_order
from iosig.flows.steps.run import Run
from iosig.settings.model import ScheduleSettings, Settings, load
from iosig.warehouse.errors import GateFailed, IosigError, MachineFault, NothingToDo, UsageError
from iosig.warehouse.interrupts import Stop, signal_errors_kept
from iosig.warehouse.printable import one_line
from iosig.warehouse.releases.catalogue_choice import agree
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release, published
from iosig.warehouse.store.store import Store, locked

FLOW = "iosig-nightly"
#: the event of a published release
PUBLISHED = "iosig.release.published"
#: where a run finds its warehouse and its settings file
WAREHOUSE, SETTINGS = "IOSIG_WAREHOUSE", "IOSIG_SETTINGS"
#: the working directory of `iosig serve`, to which paths in the settings are relative
WORKING_DIRECTORY = "IOSIG_WORKING_DIRECTORY"
_CHECK_INTERVAL_S = 1.0


class _WithoutTraceback(logging.Filter):
    """Drop what the engines log of an `IosigError` with a traceback: the failed state, logged too, has its sentence."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop it also where a task has returned its failed state: then the traceback is empty."""
        if not isinstance(record.exc_info, tuple):
            return True
        error = record.exc_info[1]
        return error is not None and not isinstance(error, IosigError)


for _name in ("prefect.task_runs", "prefect.flow_runs", "prefect.engine"):
    logging.getLogger(_name).addFilter(_WithoutTraceback())


def _is_transient(_: object, __: object, state: State[Any]) -> bool:
    """Whether to try again: what the machine, a server or a worker did not give may be there later."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, MachineFault | OSError | BrokenExecutor) and not isinstance(error, executors.TimedOut)


@task(cache_policy=NO_CACHE, retry_condition_fn=_is_transient)
@signal_errors_kept()
def land(store: Store, settings: Settings) -> int:
    """Land what is new in the inbox and the journal of predictions; returns the landings that are new."""
    logger = get_run_logger()
    new_count = 0
    for arrival in land_new(store, settings):
        logger.log(logging.WARNING if arrival.has_refusals else logging.INFO, "%s", arrival.line())
        new_count += arrival.landed is not None and arrival.landed.is_new
    return new_count


@task(name="plan", cache_policy=NO_CACHE)
@signal_errors_kept()
def plan_run(
    store: Store, settings: Settings, since: date | None, until: date | None, selection: Selection | None
) -> Plan | None:
    """Find what is stale; None if nothing is."""
    try:
        agree(store, settings.catalogue.server())
        releasing.complete(store)
        plan = make_plan(store, settings, since, until, selection=selection)
        for warning in plan.warnings:
            get_run_logger().warning("%s.", warning)
        return plan
    except NothingToDo as nothing:
        get_run_logger().info("%s", nothing)
        return None


@task(name="work item", cache_policy=NO_CACHE, retry_condition_fn=_is_transient)
def execute_item(ready: ReadyItem, root: Path, engine: executors.Engine) -> Any:
    """Execute a work item and wait for it; an error of the operator's is one sentence."""
    if ready.is_cached:
        return Completed(name="Cached", message="An earlier run has completed it.", data=ready.cached_result())
    try:
        result = engine.run(ready.item, root)
    except IosigError as error:
        return _failed(error)
    get_run_logger().info("%s rows", result.row_count)
    return result


def _failed(error: IosigError) -> State[Any]:
    return Failed(message=str(error).partition("\n")[0], data=error)


@task(name="release", cache_policy=NO_CACHE, retry_condition_fn=_is_transient)
@signal_errors_kept()
def publish(run: Run) -> Release | None:
    """Publish the release, list its tables in an artifact, and emit an event that may trigger other flows.

    Returns None if the tables of a selection are as they were.
    """
    try:
        release = publish_run(run)
    except NothingToDo as nothing:
        get_run_logger().info("%s", nothing)
        return None
    with opened(run.store, release) as connection:
        table = [
            {"table": name, "rows": connection.sql(f'select count(*) from "{name}"').fetchall()[0][0]}
            for name in (table.name for table in published())
        ]
    create_table_artifact(key="iosig-release", table=table, description=f"{release.release_id} ({release.verdict})")
    warehouse = {"prefect.resource.id": f"iosig.warehouse.{run.store.root.name}", "iosig.warehouse": run.store.address}
    emit_event(
        PUBLISHED,
        resource=warehouse,
        payload={"release_id": release.release_id, "verdict": release.verdict, "dates": list(release.dates)},
    )
    for name, count in releasing.maintain(run.store, run.settings).lines():
        get_run_logger().info("%s: %s", name, count)
    return release


def _run_name() -> str:
    return f"nightly-{Path(os.environ.get(WAREHOUSE) or 'nowhere').name}"


@flow(name=FLOW, flow_run_name=_run_name)
def nightly(
    since: date | None = None,
    until: date | None = None,
    wait_s: float | None = None,
    select: list[str] | None = None,
    exclude: list[str] | None = None,
) -> Any:
    """Land the inbox, then stage, cut samples, transform, check and release; None if there was nothing to do.

    since, until: recompute these days. wait_s: maximum time to wait for the warehouse lock [s]; the settings' if None.
    select, exclude: names of steps or tables with graph operators; with any nothing lands, and only these are computed.
    """
    hide_credentials()
    try:
        os.chdir(os.environ.get(WORKING_DIRECTORY, "."))
        store = _warehouse()
        require_order(since, until)
        settings = load(Path(os.environ[SETTINGS]) if os.environ.get(SETTINGS) else None, store.root)
        with telling(store, settings, get_run_logger().warning), signal_errors_kept():
            selection = select_steps(store, select or [], exclude or []) if select or exclude else None
            return _night(store, settings, since, until, wait_s, selection)
    except GateFailed as error:
        create_markdown_artifact(key="iosig-gate", markdown=str(error), description="Why nothing was released")
        return _failed(error)
    except IosigError as error:
        return _failed(error)
    except Exception as error:
        fault = machine_fault(error, Path(os.environ.get(WAREHOUSE) or ""))
        if fault is None:
            raise
        return _failed(fault)


def _night(
    store: Store,
    settings: Settings,
    since: date | None,
    until: date | None,
    wait_s: float | None,
    selection: Selection | None,
) -> Release | None:
    schedule = settings.schedule
    retries: dict[str, Any] = {
        "retries": schedule.retry_count,
        "retry_delay_seconds": [schedule.retry_delay_s * 2**place for place in range(schedule.retry_count)],
    }
    if selection is None:
        land.with_options(**retries)(store, settings)
    with locked(store, schedule.wait_s if wait_s is None else wait_s):
        plan = plan_run(store, settings, since, until, selection)
        if plan is None:
            return None
        with executors.opened(settings, store.root, schedule.step_timeout_s) as engine:
            run = begin_run(store, settings, plan)
            _build(run, engine, retries)
        release: Release | None = publish.with_options(**retries)(run)
    if release is None:
        return None
    for warning in released_warnings(store, settings, release):
        get_run_logger().warning(warning)
    if told := after_release(store, settings, release):
        get_run_logger().info("%s: %s", *told)
    return release


def _build(run: Run, engine: executors.Engine, retries: Mapping[str, Any]) -> None:
    """Execute the work items of a run as task runs that show what they waited for."""
    begun: dict[str, PrefectFuture[Any]] = {}

    def start(ready: ReadyItem) -> Future[ItemResult]:
        named = execute_item.with_options(name=ready.item.step, task_run_name=one_line(ready.item.name), **retries)
        task_run = runner.submit(
            named,
            {"ready": quote(ready), "root": run.store.root, "engine": quote(engine)},
            wait_for=[begun[name] for name in ready.upstream if name in begun],
        )
        begun[ready.item.name] = task_run
        future: Future[ItemResult] = Future()
        task_run.add_done_callback(partial(_settle, future))
        return future

    # a thread for each work item that is under way, and one for checks, which have a worker of their own
    runner: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=engine.worker_count + 1)
    with runner:
        for _ in build(run, engine, start):
            pass


def _settle(future: Future[ItemResult], task_run: PrefectFuture[Any]) -> None:
    """Give a future the outcome of a task run that has ended."""
    try:
        task_run.wait()
        outcome = task_run.state.result(raise_on_failure=False)
    except BaseException as error:
        outcome = error
    if isinstance(outcome, ItemResult):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)


def _warehouse() -> Store:
    folder = os.environ.get(WAREHOUSE)
    if not folder:
        raise UsageError(f"Set {WAREHOUSE} in the environment of the worker, or deploy again with `iosig deploy`.")
    return Store.named(folder)


def run(store: Store, settings_path: Path | None, **parameters: Any) -> Release | None:
    """Run the flow with these parameters in this process; None if there was nothing to do."""
    _put_into_environment(store, settings_path)
    release: Release | None = nightly(**parameters)
    return release


def _put_into_environment(store: Store, settings_path: Path | None) -> None:
    os.environ[WAREHOUSE] = store.address
    if settings_path is not None:
        os.environ[SETTINGS] = str(settings_path.resolve())


# ---- deployments


def deployment_name(store: Store) -> str:
    """Return the default name of a warehouse's deployment: that of its folder."""
    return f"nightly-{store.root.resolve().name}"


def serve(
    store: Store,
    settings_path: Path | None,
    schedule: ScheduleSettings,
    name: str,
    stop: Stop,
    check: Callable[[], object],
) -> None:
    """Run the nightly flow on its schedule in processes of this machine until `stop`; runs in progress are cancelled.

    check: called each second; what it raises ends the serving.
    """
    hide_credentials()
    _put_into_environment(store, settings_path)
    deployment = _deployment(store, schedule, name)
    # a pause of an earlier process is over
    deployment.paused = False
    # a run that was due while nothing served it starts late
    runner = Runner(name=name, limit=1, pause_on_shutdown=False)
    with start_blocking_portal() as portal:
        # Ctrl-C of a terminal reaches all processes: runs inherit this mask, and are ended by the runner
        portal.call(signal.pthread_sigmask, signal.SIG_BLOCK, {signal.SIGINT})
        portal.call(runner.aadd_deployment, deployment)
        serving = portal.start_task_soon(runner.start)
        try:
            while not stop.is_set() and not serving.done():
                check()
                stop.wait(_CHECK_INTERVAL_S)
        finally:
            if runner.started:
                portal.call(runner.astop)
            elif not serving.done():
                serving.cancel()
    if not serving.cancelled():
        serving.result()


def deploy(store: Store, schedule: ScheduleSettings, work_pool: str, name: str) -> None:
    """Create or update the deployment of a warehouse's nightly flow on a work pool of the Prefect server."""
    hide_credentials()
    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(work_pool)
        except ObjectNotFound as error:
            raise UsageError(
                f"There is no work pool {work_pool} on {client.api_url}. Create it with "
                f"`prefect work-pool create --type process {work_pool}`."
            ) from error
    deployment = _deployment(store, schedule, name)
    deployment.job_variables = {"env": {WAREHOUSE: store.address}}
    deployment.apply(work_pool_name=work_pool)


def _deployment(store: Store, schedule: ScheduleSettings, name: str) -> RunnerDeployment:
    """Describe the deployment, whose tag is the warehouse. Each run imports the flow by the name of its module."""
    return RunnerDeployment.from_flow(
        nightly,
        name,
        schedule=Cron(schedule.cron, timezone=schedule.time_zone),
        concurrency_limit=1,
        entrypoint_type=EntrypointType.MODULE_PATH,
        tags=[store.address],
    )


def free_name(store: Store, name: str | None) -> str:
    """Return the deployment's name. Raises UsageError if another warehouse has a deployment of that name.

    Raises MachineFault or UsageError unless the Prefect server answers, is one, and accepts the credentials.
    """
    name = name or deployment_name(store)
    with get_client(sync_client=True) as client:
        _require_api(client)
        try:
            known = client.read_deployment_by_name(f"{FLOW}/{name}")
        except ObjectNotFound:
            return name
    # deployments of earlier versions have the warehouse as a parameter
    owners = [*known.tags, known.parameters.get("warehouse")]
    if store.address not in owners:
        raise UsageError(f"The deployment {name} belongs to another warehouse ({owners[0]}). Pass another --name.")
    return name


def _require_api(client: SyncPrefectClient) -> None:
    """Raise MachineFault or UsageError unless a Prefect server answers and accepts the credentials.

    A server that does not answer at all is `machine_fault`'s: the client's own exception passes.
    """
    try:
        client.read_work_pools(limit=1)
    except PrefectHTTPStatusError as error:
        if error.response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise MachineFault(
                f"The Prefect server at {client.api_url} does not accept the credentials. Set PREFECT_API_AUTH_STRING "
                "to its `user:password`, or PREFECT_API_KEY for Prefect Cloud."
            ) from error
        if error.response.is_server_error:
            raise MachineFault(
                f"The Prefect server at {client.api_url} fails: {error.response.status_code}."
            ) from error
        raise _no_api(client) from error
    except (ValueError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise _no_api(client) from error


def _no_api(client: SyncPrefectClient) -> UsageError:
    return UsageError(
        f"PREFECT_API_URL ({client.api_url}) is not the API of a Prefect server: as http://HOST:4200/api."
    )
