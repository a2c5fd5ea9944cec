"""`iosig serve`: run the nightly schedule."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from iosig.cli.options import GlobalOptions, name_option
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from iosig.settings.model import Settings
    from iosig.warehouse.interrupts import Stop


@click.command("serve")
@click.option("--cron", help="Cron line. Default: that of the settings.")
@name_option
@click.pass_obj
def serve_command(warehouse: GlobalOptions, cron: str | None, name: str | None) -> int:
    """Run the nightly schedule: Prefect deployments that land the inbox and publish a release, until stopped.

    Needs no worker. Uses the Prefect server of PREFECT_API_URL; without that variable it starts a server of its own
    on 127.0.0.1, which requires the password in `prefect/password` of the warehouse. Ctrl-C or SIGTERM ends it, and
    cancels a run in progress; the next run continues that. `iosig deploy` creates the same deployments on a work pool.
    """
    from iosig.warehouse.interrupts import Stop, stop_on_signals

    store, path = Store(warehouse.store.root.resolve()), warehouse.settings_path
    settings_path, settings, stop = path and path.resolve(), warehouse.settings(), Stop()
    schedule = settings.schedule.model_copy(update={"cron": _valid(cron)} if cron else {})
    with stop_on_signals(stop), _server(store, settings, stop) as check:
        if stop.is_set():
            return 0
        # Prefect reads settings and imports modules from the working directory, which other users may be able to write
        working_directory = os.getcwd()
        os.chdir("/")
        # Prefect reads its environment when it is imported
        from iosig.flows.deployments import FLOWS, free_names, serve
        from iosig.flows.flow_runs import WORKING_DIRECTORY

        os.environ[WORKING_DIRECTORY] = working_directory
        names = free_names(store, name)
        nightly = f"{FLOWS['nightly'].name}/{names['nightly']}"
        click.echo(f"Serving {nightly} at `{schedule.cron}` ({schedule.time_zone}).", err=True)
        serve(store, settings_path, schedule, names, stop, check)
    return 0


def _valid(cron: str) -> str:
    from iosig.settings.values import cron_line

    try:
        return cron_line(cron)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--cron") from error


@contextmanager
def _server(store: Store, settings: Settings, stop: Stop) -> Iterator[Callable[[], None]]:
    """Run the warehouse's own Prefect server unless PREFECT_API_URL names another; yields a check that it runs."""
    from iosig.flows.prefect_server import PrefectServer, read_api_url

    if read_api_url():
        yield lambda: None
        return
    server = PrefectServer.for_warehouse(store, settings)
    with server.start_in_background(stop) as require_alive:
        os.environ.update(server.client_environment())
        click.echo(f"Prefect: {server.ui_url} (password: see {server.password_file})", err=True)
        yield require_alive
