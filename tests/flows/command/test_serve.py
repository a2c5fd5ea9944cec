"""`iosig serve`: the Prefect server that it has beside itself ends with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import is_over, wait_until


def children_of(process: int) -> list[int]:
    """Return the processes that a process has started, in any of its threads."""
    told = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(child) for each in told for child in each.split()]


@pytest.mark.slow
def test_no_server_is_left_of_a_killed_one(tmp_path: Path) -> None:
    script = "from flows.command import program; program()"
    command = [sys.executable, "-c", script, "--warehouse", str(tmp_path / "warehouse"), "serve"]
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    environment |= {"PREFECT_HOME": str(tmp_path / "prefect")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as serving:
        wait_until(lambda: bool(children_of(serving.pid)), "a server")
        (server,) = children_of(serving.pid)
        serving.kill()
    wait_until(lambda: is_over(server), "the server's end")
