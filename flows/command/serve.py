"""`iosig serve`."""

from __future__ import annotations

from pathlib import Path

import click

from warehouse.store import Store


@click.command("serve")
@click.option("--cron", help="Cron line, instead of the settings' one.")
@click.pass_obj
def serve_command(obj: tuple[Store, Path | None], cron: str | None) -> int:
    """Run the nightly schedule: a Prefect deployment that lands the inbox and makes a release, until stopped.

    Needs no worker; set PREFECT_API_URL to use a server of your own. `prefect.yaml` has the same deployment
    for a work pool.
    """
    from flows.nightly import serve
    from flows.settings import load

    store, settings_path = obj
    schedule = load(settings_path, store.root).schedule
    serve(store, settings_path, cron or schedule.cron, schedule.time_zone)
    return 0
