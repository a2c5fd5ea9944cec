"""`iosig serve`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from flows.command.options import name_option
from warehouse.errors import UsageError
from warehouse.store.store import Store

_PATIENCE_S = 90.0
#: Prefect's own command, which ends when who started it does, whatever became of that: then the system closes its input
_PREFECT = """
import os, runpy, signal, sys, threading
def end_with_parent():
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=end_with_parent, daemon=True).start()
runpy.run_module("prefect", run_name="__main__", alter_sys=True)
"""


@click.command("serve")
@click.option("--cron", help="Cron line, instead of the settings' one.")
@name_option
@click.pass_obj
def serve_command(obj: tuple[Store, Path | None], cron: str | None, name: str | None) -> int:
    """Run the nightly schedule: a Prefect deployment that lands the inbox and makes a release, until stopped.

    Needs no worker. Uses the Prefect server of PREFECT_API_URL; without one it runs a server of its own
    beside itself, on this machine only. `iosig deploy` makes the same deployment for a work pool.
    """
    from flows.settings import load

    store, settings_path = obj
    schedule = load(settings_path, store.root).schedule
    with _server():
        # Prefect reads its environment when it is imported.
        from flows.night.deployment import serve

        serve(store, settings_path, schedule.model_copy(update={"cron": cron or schedule.cron}), name)
    return 0


@contextmanager
def _server() -> Iterator[None]:
    """Have a Prefect server while the block runs: a temporary one, as Prefect starts by itself, schedules nothing."""
    if os.environ.get("PREFECT_API_URL"):
        yield
        return
    port = _free_port()
    command = [sys.executable, "-c", _PREFECT, "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    unheard = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=unheard, stderr=unheard) as process:
        try:
            _await(process, f"http://127.0.0.1:{port}/api")
            os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
            yield
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _await(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise UsageError("The Prefect server did not start. Start one (`prefect server start`) and set PREFECT_API_URL.")
