"""`iosig deploy`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from flows.command.options import name_option
from warehouse.errors import UsageError
from warehouse.store.store import Store

_UNIT = """\
[Unit]
Description=iosig: the nightly release of {warehouse}
After=network-online.target remote-fs.target
Wants=network-online.target

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=60
Nice=10
UMask=0027
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=full

[Install]
WantedBy=multi-user.target
"""


@click.command("deploy")
@click.option("--work-pool", metavar="NAME", help="Put the nightly flow on this work pool of PREFECT_API_URL's server.")
@click.option(
    "--print",
    "printed",
    type=click.Choice(["systemd", "cron"]),
    help="Print a systemd unit of `iosig serve`, or a cron line of `iosig run`, instead.",
)
@name_option
@click.pass_obj
def deploy_command(obj: tuple[Store, Path | None], work_pool: str | None, printed: str | None, name: str | None) -> int:
    """Have the night run by itself: on a Prefect work pool, under systemd, or from cron.

    The schedule is that of the settings. A deployment is named after the warehouse's folder, and never takes the
    place of another warehouse's.
    """
    from flows.settings import load

    store, settings_path = obj
    schedule = load(settings_path, store.root).schedule
    if (work_pool is None) == (printed is None):
        raise UsageError("Say where to: --work-pool NAME, or --print systemd or cron.")
    if printed == "systemd":
        click.echo(_unit(store, settings_path, name), nl=False)
    elif printed == "cron":
        run = [*_iosig(store, settings_path), "run", "--inline", "--wait", f"{schedule.wait_s:.0f}"]
        # in a crontab a percent sign ends the line
        line = shlex.join(run).replace("%", r"\%")
        click.echo(f"CRON_TZ={schedule.time_zone}\n{schedule.cron} {line}")
    elif work_pool:
        if not os.environ.get("PREFECT_API_URL"):
            raise UsageError("Set PREFECT_API_URL to the server that has the work pool.")
        from flows.night.deployment import FLOW, deploy

        click.echo(f"{FLOW}/{deploy(store, settings_path, schedule, work_pool, name)} is on the work pool {work_pool}.")
    return 0


def _unit(store: Store, settings_path: Path | None, name: str | None) -> str:
    serve = [*_iosig(store, settings_path), "serve", *(["--name", name] if name else [])]
    # systemd's own quoting: what it would expand is doubled
    command = " ".join(f'"{part}"' if set(part) & set(" '\t") else part for part in map(_escaped, serve))
    return _UNIT.format(command=command, warehouse=_escaped(store.address))


def _escaped(text: str) -> str:
    if "\n" in text:
        raise UsageError("A path with a line break has no place in a unit.")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")


def _iosig(store: Store, settings_path: Path | None) -> list[str]:
    found = shutil.which("iosig") or str(Path(sys.executable).with_name("iosig"))
    settings = ["--settings", str(settings_path.resolve())] if settings_path else []
    return [found, "--warehouse", store.address, *settings]
