"""Deploy the flows: serve them from this process, or create deployments on a work pool of a Prefect server.

Each run imports its flow by module name, and reads the paths of its warehouse and settings file from its environment.
Parameters are days, names and numbers; none names a file or a program.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import start_blocking_portal
from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.types.entrypoint import EntrypointType

from iosig.flows.flow_runs import WAREHOUSE, put_into_environment
from iosig.flows.night_flows import backfill, nightly
from iosig.flows.prefect_server import hide_credentials
from iosig.flows.upkeep_flows import land, maintain, report
from iosig.settings.model import ScheduleSettings
from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

#: the flows that are deployed, each with the prefix of its default name
FLOWS: Mapping[str, Flow[Any, Any]] = {
    "nightly": nightly, "land": land, "backfill": backfill, "maintain": maintain, "report": report,
}  # fmt: skip
_CHECK_INTERVAL_S = 1.0


def run(store: Store, settings_path: Path | None, **parameters: Any) -> Release | None:
    """Run the nightly flow with these parameters in this process; None if there was nothing to do."""
    put_into_environment(store, settings_path)
    release: Release | None = nightly(**parameters)
    return release


def deployment_names(store: Store, name: str | None = None) -> dict[str, str]:
    """Return the deployments' names by flow; by default, they combine the flow with the warehouse's folder."""
    folder = store.root.resolve().name
    return {flow: name or f"{flow}-{folder}" for flow in FLOWS}


def serve(
    store: Store,
    settings_path: Path | None,
    schedule: ScheduleSettings,
    names: Mapping[str, str],
    stop: Stop,
    check: Callable[[], object],
) -> None:
    """Run the flows on their schedules in processes of this machine until `stop`; runs in progress are cancelled.

    check: called once per second; an exception that it raises ends `serve`.
    """
    hide_credentials()
    put_into_environment(store, settings_path)
    # a run that became due while no process served it starts late
    runner = Runner(name=names["nightly"], limit=1, pause_on_shutdown=False)
    with start_blocking_portal() as portal:
        # Ctrl-C in a terminal reaches all processes: runs inherit this mask, and the runner ends them
        portal.call(signal.pthread_sigmask, signal.SIG_BLOCK, {signal.SIGINT})
        for deployment in _deployments(store, schedule, names):
            # an earlier process may have paused the deployment
            deployment.paused = False
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


def deploy(store: Store, schedule: ScheduleSettings, work_pool: str, names: Mapping[str, str]) -> None:
    """Create or update the deployments of a warehouse's flows on a work pool of the Prefect server."""
    hide_credentials()
    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(work_pool)
        except ObjectNotFound as error:
            raise UsageError(
                f"No work pool {work_pool} on {client.api_url}. Create it with "
                f"`prefect work-pool create --type process {work_pool}`."
            ) from error
    for deployment in _deployments(store, schedule, names):
        deployment.job_variables = {"env": {WAREHOUSE: store.address}}
        deployment.apply(work_pool_name=work_pool)


def _deployments(store: Store, schedule: ScheduleSettings, names: Mapping[str, str]) -> list[RunnerDeployment]:
    """Build the deployments, tagged with the warehouse."""
    crons = {"nightly": schedule.cron, "land": schedule.land_cron}
    return [
        RunnerDeployment.from_flow(
            flow,
            names[key],
            schedule=Cron(cron, timezone=schedule.time_zone) if (cron := crons.get(key)) else None,
            concurrency_limit=1,
            entrypoint_type=EntrypointType.MODULE_PATH,
            tags=[store.address],
        )
        for key, flow in FLOWS.items()
    ]


def free_names(store: Store, name: str | None) -> dict[str, str]:
    """Choose the deployments' names. Raises UsageError if another warehouse uses one of these names.

    Raises MachineFault or UsageError unless a Prefect server answers and accepts the credentials.
    """
    names = deployment_names(store, name)
    with get_client(sync_client=True) as client:
        _require_api(client)
        for key, flow in FLOWS.items():
            _require_free(client, store, f"{flow.name}/{names[key]}")
    return names


def _require_free(client: SyncPrefectClient, store: Store, full_name: str) -> None:
    try:
        deployment = client.read_deployment_by_name(full_name)
    except ObjectNotFound:
        return
    # deployments of earlier versions have the warehouse as a parameter
    owners = [*deployment.tags, deployment.parameters.get("warehouse")]
    if store.address not in owners:
        raise UsageError(f"The deployment {full_name} belongs to another warehouse ({owners[0]}). Pass another --name.")


def _require_api(client: SyncPrefectClient) -> None:
    """Raise MachineFault or UsageError unless a Prefect server answers and accepts the credentials.

    If no server answers at all, the client's exception propagates, and `machine_fault` translates it.
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
        f"PREFECT_API_URL ({client.api_url}) is not the API of a Prefect server, such as http://HOST:4200/api."
    )
