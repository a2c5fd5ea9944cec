"""Define the flows that run between nightly runs: landing, maintenance, and the report on a release."""

from __future__ import annotations

from functools import partial
from typing import Any

from prefect import flow

from iosig.flows import tasks
from iosig.flows.flow_runs import run_in_warehouse, run_name
from iosig.settings.model import Settings
from iosig.warehouse.releases import releases
from iosig.warehouse.store.store import Store, lock_warehouse


@flow(name="iosig-land", flow_run_name=partial(run_name, "land"))
def land() -> Any:
    """Land new files of the inbox and the other inputs of the settings; returns the number of new landings."""

    def work(store: Store, settings: Settings) -> int:
        count: int = tasks.land.with_options(**tasks.get_retry_options(settings))(store, settings)
        return count

    return run_in_warehouse(work)


@flow(name="iosig-maintain", flow_run_name=partial(run_name, "maintain"))
def maintain(lock_timeout_s: float | None = None) -> Any:
    """Expire the releases that the settings do not keep, and remove their files, as every night does.

    The settings alone decide which releases are kept, so retention is no parameter.

    Args:
        lock_timeout_s: Maximum time to wait for the warehouse lock [s]; by default that of the settings.
    """

    def work(store: Store, settings: Settings) -> None:
        with lock_warehouse(store, settings.schedule.lock_timeout_s if lock_timeout_s is None else lock_timeout_s):
            tasks.maintain.with_options(**tasks.get_retry_options(settings))(store, settings)

    return run_in_warehouse(work)


@flow(name="iosig-report", flow_run_name=partial(run_name, "report"))
def report(release: str | None = None) -> Any:
    """Write the report of a release, the current one by default, into the folder that the settings name.

    Folder and pseudonyms are the operator's choice, so they are no parameters.

    Args:
        release: Id of the release.
    """

    def work(store: Store, settings: Settings) -> str:
        chosen = releases.find(store, release)
        page: str = tasks.report.with_options(**tasks.get_retry_options(settings))(store, settings, chosen)
        return page

    return run_in_warehouse(work)
