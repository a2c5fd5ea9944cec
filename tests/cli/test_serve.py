"""`iosig serve` and a work pool as separate processes publish by schedule and API, behind a password."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from iosig.flows.prefect_server import PrefectServer
from iosig.settings.model import Settings
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.refusing_gate import REFUSED_WHILE, install_refusing_gate
from tests.nights import Cli, write_small_site
from tests.servers import free_port, is_over, wait_until

ROOT = Path(__file__).resolve().parents[2]
#: modules are not imported from the working directory, as with the installed command
IOSIG = [sys.executable, "-P", "-c", "from iosig.cli import program; program()"]
_TIMEOUT_S = 240.0


def processes_of(process: int) -> list[int]:
    """Return a process and all of its descendants, started by any of its threads."""
    try:
        lists = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    children = [int(child) for line in lists for child in line.split()]
    return [process, *(one for child in children for one in processes_of(child))]


def bytes_of(process: int, what: str) -> bytes:
    """Return a process's command line or environment; empty if the process has ended."""
    try:
        return Path(f"/proc/{process}/{what}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@dataclass
class Site:
    """A site with a warehouse, an inbox and a private Prefect server, which processes of the test serve."""

    folder: Path
    port: int

    @property
    def store(self) -> Store:
        return Store(self.folder / "warehouse")

    @property
    def server(self) -> PrefectServer:
        return PrefectServer(self.store.root / "prefect", self.port)

    @property
    def releases(self) -> list[Release]:
        return releases.history(self.store)

    @property
    def environment(self) -> dict[str, str]:
        known = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "IOSIG_"))}
        path = os.pathsep.join((str(self.folder / "hook"), str(ROOT)))
        known |= {"PYTHONPATH": path, REFUSED_WHILE: str(self.folder / "refuse"), "HOME": str(self.folder)}
        return known | {"PREFECT_RUNNER_POLL_FREQUENCY": "2", "PREFECT_WORKER_QUERY_SECONDS": "2"}

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def iosig(self, *words: object) -> list[str]:
        return [*IOSIG, "--warehouse", str(self.store.root), *map(str, words)]

    def call(self, *words: object, **variables: str) -> tuple[int, str]:
        """Call the command, and return its exit code and standard error."""
        command, environment = self.iosig(*words), self.environment | variables
        ended = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stderr

    @contextmanager
    def running(self, command: list[str], **variables: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command in a folder with a foreign package `flows`; the block's end kills all its processes."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, env=self.environment | variables, cwd=self.folder, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        try:
            yield process
        finally:
            for number in processes_of(process.pid):
                if not is_over(number):
                    os.kill(number, signal.SIGKILL)
            process.wait()

    @contextmanager
    def served(self, *words: object) -> Iterator[subprocess.Popen[bytes]]:
        """Run `iosig serve` with a log file, and wait until it serves."""
        (self.folder / "log").unlink(missing_ok=True)
        with self.running(self.iosig("serve", *words)) as process:
            wait_until(lambda: "Serving iosig-nightly/" in self.log or process.poll() is not None, "iosig serve")
            assert process.poll() is None, self.log
            yield process

    # ---- the server's API

    def ask(self, path: str, document: Any = None) -> Any:
        """Post a document to the API, or get a resource without one; retry a busy server, as clients do."""
        auth = tuple(self.server.auth_string().split(":"))
        method, body = ("GET", {}) if document is None else ("POST", {"json": document})
        for _ in range(30):
            answer = httpx.request(method, f"{self.server.api_url}/{path}", auth=auth, timeout=30.0, **body)
            if answer.status_code != 503:
                break
            time.sleep(1.0)
        answer.raise_for_status()
        return answer.json()

    def start_run(self, name: str = "nightly-warehouse", **parameters: Any) -> str:
        deployment = self.deployment(name)
        run = self.ask(f"deployments/{deployment['id']}/create_flow_run", {"parameters": parameters})
        return str(run["id"])

    def deployment(self, name: str = "nightly-warehouse") -> Any:
        wait_until(lambda: self._is_there(name), f"the deployment {name}")
        return self.ask(f"deployments/name/iosig-nightly/{name}")

    def _is_there(self, name: str) -> bool:
        try:
            self.ask(f"deployments/name/iosig-nightly/{name}")
        except httpx.HTTPStatusError:
            return False
        return True

    def state_of(self, run_id: str) -> Any:
        return self.ask(f"flow_runs/{run_id}")["state"]

    def end_of(self, run_id: str) -> Any:
        """Wait until a run has ended, and return its last state."""
        deadline = time.monotonic() + _TIMEOUT_S
        while (state := self.state_of(run_id))["type"] not in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"):
            assert time.monotonic() < deadline, (state, self.log)
            time.sleep(1.0)
        return state

    def log_of(self, run_id: str) -> str:
        """Return a run's log as stored by the server."""
        lines = self.ask("logs/filter", {"logs": {"flow_run_id": {"any_": [run_id]}}})
        return "\n".join(line["message"] for line in lines)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A small site with files in the inbox; its folder contains a foreign package `flows`."""
    site = Site(tmp_path, free_port())
    write_small_site(tmp_path / "inbox")
    site.store.root.mkdir()
    schedule = f'inbox = "{tmp_path / "inbox"}"\nserver_port = {site.port}\ncron = "0 0 29 2 *"\n'
    (site.store.root / "iosig.toml").write_text(f"[schedule]\n{schedule}")
    (tmp_path / "iosig").mkdir()
    (tmp_path / "iosig" / "__init__.py").write_text("raise RuntimeError('the package of the folder was imported')\n")
    install_refusing_gate(tmp_path / "hook")
    return site


def write_later_job(site: Site) -> None:
    """Put the log of one more job into the inbox."""
    lines = (site.folder / "inbox" / "jobs.sacct").read_text().splitlines()
    later = lines[-1].replace("103|", "104|")
    (site.folder / "inbox" / "later.sacct").write_text(f"{lines[0]}\n{later}\n")


def require_secret(site: Site, process: subprocess.Popen[bytes], clients: list[int]) -> None:
    """Require that only the server and its clients know the password, and only from their environment."""
    password = site.server.auth_string().split(":")[1].encode()
    own = processes_of(process.pid)
    assert [number for number in own if password in bytes_of(number, "cmdline")] == []
    allowed = {number for number in own if b"runpy.run_module" in bytes_of(number, "cmdline")} | set(clients)
    assert {number for number in own if password in bytes_of(number, "environ")} <= allowed
    files = [path for path in site.folder.rglob("*") if path.is_file() and path != site.server.password_file]
    assert [path for path in files if password in path.read_bytes()] == []


def engines_of(process: subprocess.Popen[bytes]) -> list[int]:
    return [number for number in processes_of(process.pid) if b"prefect.engine" in bytes_of(number, "cmdline")]


@pytest.mark.slow
def test_serve_publishes_by_schedule_and_api(site: Site) -> None:
    with site.served("--cron", "* * * * *") as process:
        begun = datetime.now()
        for auth in (None, ("iosig", "guess"), ("iosig", "")):
            answer = httpx.post(f"{site.server.api_url}/flow_runs/filter", json={}, auth=auth)
            assert answer.status_code == 401, auth
        wait_until(lambda: bool(engines_of(process)), "a run by schedule", _TIMEOUT_S)
        wait_until(lambda: site.store.landed.is_dir(), "the landing", _TIMEOUT_S)
        require_secret(site, process, engines_of(process))
        wait_until(lambda: len(site.releases) == 1, "a release by schedule", _TIMEOUT_S)
        assert datetime.now() - begun < timedelta(minutes=4)
        write_later_job(site)
        run_id = site.start_run()
        assert site.end_of(run_id)["type"] == "COMPLETED", site.log
        assert len(site.releases) == 2
        require_secret(site, process, engines_of(process))
        parameters = site.deployment()["parameter_openapi_schema"]["properties"]
        assert set(parameters) == {"since", "until", "lock_timeout_s", "select", "exclude"}
        own = processes_of(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert [number for number in own if not is_over(number)] == []
    assert "Traceback" not in site.log
    assert not (site.folder / ".prefect").exists(), "the user's own Prefect is left alone"


@pytest.mark.long
class TestRefusedRuns:
    def test_refused_release_fails_the_run_with_one_sentence(self, site: Site) -> None:
        (site.folder / "refuse").touch()
        with site.served():
            run_id = site.start_run()
            state = site.end_of(run_id)
            time.sleep(5.0)
            kept = site.log_of(run_id)
        sentence = "No release was published: 1 critical check failed."
        assert (state["type"], state["message"]) == ("FAILED", sentence)
        for log in (kept, site.log):
            assert sentence in log
            assert "Traceback" not in log
            assert "NoneType" not in log
        assert site.releases == []

    def test_run_with_an_unknown_parameter_does_nothing(self, site: Site, tmp_path: Path) -> None:
        with site.served():
            for name in ("warehouse", "settings_path", "sendmail"):
                run_id = site.start_run(**{name: str(tmp_path / "other")})
                assert site.end_of(run_id)["type"] in ("FAILED", "CRASHED")
        assert site.releases == []
        assert not (tmp_path / "other").exists()


@pytest.mark.long
class TestShutdown:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_running_flow_is_cancelled_and_the_next_run_continues(self, site: Site, number: int) -> None:
        with site.served() as process:
            run_id = site.start_run()
            wait_until(lambda: site.store.landed.is_dir(), "the landing", _TIMEOUT_S)
            # as from a terminal: the whole foreground process group receives Ctrl-C
            signaled = os.killpg if number == signal.SIGINT else os.kill
            signaled(process.pid, number)
            assert process.wait(60) == 0
        assert "Traceback" not in site.log
        with site.served():
            assert site.state_of(run_id)["type"] == "CANCELLED"
            assert site.end_of(site.start_run())["type"] == "COMPLETED"
        assert len(site.releases) == 1

    def test_serve_exits_with_6_when_its_server_ends(self, site: Site) -> None:
        with site.served() as process:
            (server,) = [one for one in processes_of(process.pid) if b"runpy" in bytes_of(one, "cmdline")]
            os.kill(server, signal.SIGKILL)
            assert process.wait(120) == 6
        assert "iosig: The Prefect server ended." in site.log
        assert "Traceback" not in site.log

    def test_server_ends_when_serve_is_killed(self, site: Site) -> None:
        with site.running(site.iosig("serve")) as process:
            wait_until(lambda: len(processes_of(process.pid)) > 1, "a server")
            server = processes_of(process.pid)[1]
            process.kill()
            process.wait()
            wait_until(lambda: is_over(server), "the server's end")


@pytest.mark.long
def test_worker_publishes_deployed_flows(site: Site) -> None:
    prefect = [sys.executable, "-P", "-m", "prefect"]
    with site.served("--name", "own") as process:
        code, said = site.call("deploy", "--work-pool", "pool")
        assert (code, said.count("\n")) == (2, 1)
        assert "No work pool pool" in said
        assert "prefect work-pool create --type process pool" in said
        client = {"PREFECT_API_URL": site.server.api_url, "PREFECT_API_AUTH_STRING": site.server.auth_string()}
        command = [*prefect, "work-pool", "create", "--type", "process", "pool"]
        subprocess.run(command, env=site.environment | client, check=True, capture_output=True)
        assert site.call("deploy", "--work-pool", "pool") == (0, "")
        wrong = client | {"PREFECT_API_AUTH_STRING": "iosig:guess"}
        code, said = site.call("deploy", "--work-pool", "pool", **wrong)
        assert (code, said.count("\n")) == (6, 1)
        assert "does not accept the credentials" in said
        with site.running([*prefect, "worker", "start", "--pool", "pool"], **client) as worker:
            run_id = site.start_run()
            wait_until(lambda: site.store.landed.is_dir(), "the landing", _TIMEOUT_S)
            require_secret(site, worker, processes_of(worker.pid)[:1] + engines_of(worker))
            assert site.end_of(run_id)["type"] == "COMPLETED", site.log
            (site.folder / "refuse").touch()
            refused = site.start_run(since="2026-03-02")
            assert site.end_of(refused)["message"].startswith("No release was published")
            time.sleep(5.0)
            assert "Traceback" not in site.log_of(refused)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert len(site.releases) == 1
    assert "Traceback" not in site.log


def test_port_in_use_is_reported_in_one_sentence(cli: Cli, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        (tmp_path / "iosig.toml").write_text(f"[schedule]\nserver_port = {other.getsockname()[1]}\n")
        code, out, err = cli("--warehouse", tmp_path, "serve")
    assert (code, out, err.count("\n")) == (6, "", 1)
    assert "is in use" in err


# ---- systemd


def unit_of(site: Site) -> dict[str, str]:
    """Print a site's unit with the installed command, and return the values that its lines set."""
    program = Path(sys.executable).with_name("iosig")
    if not program.exists():
        pytest.skip("the command is not installed beside Python")
    command = [str(program), "--warehouse", str(site.store.root), "deploy", "--print", "systemd"]
    printed = subprocess.run(command, env=site.environment, capture_output=True, text=True, check=True).stdout
    (site.folder / "iosig.service").write_text(printed)
    return dict(line.split("=", 1) for line in printed.splitlines() if "=" in line and not line.startswith("#"))


@pytest.mark.long
def test_command_line_of_the_systemd_unit_publishes(site: Site) -> None:
    command = shlex.split(unit_of(site)["ExecStart"])
    with site.running(command) as process:
        wait_until(lambda: "Serving iosig-nightly/" in site.log or process.poll() is not None, "the unit's command")
        assert site.end_of(site.start_run())["type"] == "COMPLETED", site.log
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert len(site.releases) == 1
    assert "Traceback" not in site.log


def test_systemd_unit_is_valid(site: Site) -> None:
    unit = unit_of(site)
    assert unit["User"] == site.store.root.owner()
    assert unit["EnvironmentFile"] == "-/etc/default/iosig"
    assert unit["KillMode"] == "mixed"
    assert "password" not in str(unit).lower()
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on this machine")
    command = ["systemd-analyze", "verify", str(site.folder / "iosig.service")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert [line for line in found.stderr.splitlines() if "iosig.service" in line] == []


def test_systemd_unit_allows_new_privileges_for_mail(site: Site, cli: Cli) -> None:
    assert "NoNewPrivileges=yes" in cli("--warehouse", site.store.root, "deploy", "--print", "systemd")[1]
    with (site.store.root / "iosig.toml").open("a") as file:
        file.write('[alerts]\nmail_to = ["ops@example.org"]\n')
    assert "NoNewPrivileges=no" in cli("--warehouse", site.store.root, "deploy", "--print", "systemd")[1]
    assert Settings().alerts.mail_to == []
