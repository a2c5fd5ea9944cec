"""`iosig deploy`: schedule the nightly run with Prefect, systemd or cron."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iosig.cli.options import GlobalOptions, name_option
from iosig.warehouse.errors import UsageError
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from iosig.settings.model import Settings

_UNIT = """\
[Unit]
Description=iosig: the nightly release of {warehouse}
After=network-online.target remote-fs.target
Wants=network-online.target

[Service]
User={user}
EnvironmentFile=-/etc/default/iosig
ExecStart={command}
# only iosig receives the signal, and ends its runs and its Prefect server
KillMode=mixed
TimeoutStopSec=120
Restart=on-failure
RestartSec=60
Nice=10
UMask=0027
NoNewPrivileges={no_new_privileges}
PrivateTmp=yes
ProtectSystem=full

[Install]
WantedBy=multi-user.target
"""


@click.command("deploy")
@click.option(
    "--work-pool",
    metavar="NAME",
    help="Deploy the flows to this work pool of a Prefect server: PREFECT_API_URL, else that of `iosig serve`.",
)
@click.option(
    "--print",
    "printed",
    type=click.Choice(["systemd", "cron"]),
    help="Print a systemd unit of `iosig serve`, or a cron line of `iosig run`, instead.",
)
@name_option
@click.pass_obj
def deploy_command(warehouse: GlobalOptions, work_pool: str | None, printed: str | None, name: str | None) -> int:
    """Schedule the nightly run on a Prefect work pool, under systemd, or from cron.

    The settings define the schedule. A work pool gets one deployment per flow: nightly, land, backfill, maintain,
    report. Deployments are named after the warehouse's folder, and never replace those of another warehouse.
    """
    settings = warehouse.settings()
    if (work_pool is None) == (printed is None):
        raise UsageError("Pass either --work-pool NAME or --print systemd or cron.")
    if printed == "systemd":
        click.echo(_unit(warehouse, settings, name), nl=False)
    elif printed == "cron":
        schedule = settings.schedule
        command = [*_iosig(warehouse), "run", "--inline", "--lock-timeout", f"{schedule.lock_timeout_s:.0f}"]
        # in a crontab a percent sign ends the line
        line = shlex.join(command).replace("%", r"\%")
        click.echo(f"CRON_TZ={schedule.time_zone}\n{schedule.cron} {line}")
    elif work_pool:
        _deploy(warehouse, settings, work_pool, name)
    return 0


def _deploy(warehouse: GlobalOptions, settings: Settings, work_pool: str, name: str | None) -> None:
    from iosig.flows.prefect_server import PrefectServer, read_api_url

    if not read_api_url():
        server = PrefectServer.for_warehouse(warehouse.store, settings)
        server.require_running()
        os.environ.update(server.client_environment())
    # Prefect reads its environment when it is imported
    from iosig.flows.deployments import FLOWS, deploy, free_names

    names = free_names(warehouse.store, name)
    deploy(warehouse.store, settings.schedule, work_pool, names)
    click.echo(f"On the work pool {work_pool}:")
    for key, flow in FLOWS.items():
        click.echo(f"  {flow.name}/{names[key]}")
    if path := warehouse.settings_path:
        click.echo(f"Set IOSIG_SETTINGS={path.resolve()} in the environment of its workers.", err=True)


def _unit(warehouse: GlobalOptions, settings: Settings, name: str | None) -> str:
    serve = [*_iosig(warehouse), "serve", *(["--name", name] if name else [])]
    # systemd quoting: characters that systemd would expand are doubled
    command = " ".join(f'"{part}"' if set(part) & set(" '\t;") else part for part in map(_escape_unit_text, serve))
    return _UNIT.format(
        command=command,
        user=_owner(warehouse.store),
        warehouse=_escape_unit_text(warehouse.store.address),
        # NoNewPrivileges would prevent a set-group-id sendmail from writing to the mail queue
        no_new_privileges="no" if settings.alerts.mail_to else "yes",
    )


def _owner(store: Store) -> str:
    """Return the owner of the warehouse's folder, the only user who can write it; by default the current user."""
    try:
        user_id = store.root.stat().st_uid
    except OSError:
        user_id = os.geteuid()
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def _escape_unit_text(text: str) -> str:
    if "\n" in text:
        raise UsageError("A systemd unit cannot contain a path with a line break.")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")


def _iosig(warehouse: GlobalOptions) -> list[str]:
    program = shutil.which("iosig") or str(Path(sys.executable).with_name("iosig"))
    settings = ["--settings", str(warehouse.settings_path.resolve())] if warehouse.settings_path else []
    return [program, "--warehouse", warehouse.store.address, *settings]
