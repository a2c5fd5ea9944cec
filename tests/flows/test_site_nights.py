"""All tables after nights with faults equal the tables of an undisturbed warehouse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from iosig.settings.model import Settings
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases import publishing, releases
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store.store import Store
from tests.flows.faulty_machines import ROOT, USER, disk
from tests.flows.refusing_gate import REFUSED_WHILE, install_refusing_gate
from tests.flows.simulated_site import Site, contents, counters, drawn, open_again, refused, undisturbed
from tests.nights import run_night
from tests.servers import MariaDb, free_port, listens, mariadb, wait_until
from tests.warehouse.sources.lmt_tables import MARIADB_TABLES

_PATIENCE_S = 600.0
#: enough nights that each kind of fault occurs on a separate night
_NIGHTS = 15


@pytest.mark.long
@pytest.mark.usefixtures("quick_checks")
def test_nights_with_faults_in_one_process_equal_an_undisturbed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "inbox", {0: "corrected", 1: "hostile", 2: "killed"}, seed=23)
    store = Store(tmp_path / "warehouse")
    settings = Settings.model_validate({"schedule": {"inbox": str(site.folder)}})
    for _ in range(4):
        if site.night() == "killed":
            with monkeypatch.context() as patched:
                patched.setattr(publishing, "_commit", _killed)
                with pytest.raises(KeyboardInterrupt):
                    run_night(store, settings)
        run_night(store, settings)
    with pytest.raises(NothingToDo):
        run_night(store, settings)
    assert contents(store) == contents(undisturbed(site, tmp_path / "other"))
    assert verify(store) == []
    found = [(row["source_file"], row["line"]) for row in refused(store).iter_rows(named=True)]
    assert len(found) == len(set(found)) == 3


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


# ---- with a real Prefect server


@dataclass
class Servers:
    """A Prefect server, a worker and a webhook for notifications, private to the test, on the loopback interface."""

    folder: Path
    port: int = field(default_factory=free_port)
    notices: list[dict[str, Any]] = field(default_factory=list)
    webhook_port: int = 0
    server: subprocess.Popen[bytes] | None = None
    worker: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def environment(self) -> dict[str, str]:
        known = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        known |= {"PREFECT_HOME": str(self.folder / "prefect"), "PREFECT_API_URL": self.url}
        known |= {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1", "PREFECT_WORKER_QUERY_SECONDS": "2"}
        known |= {"PYTHONPATH": f"{self.folder / 'site'}{os.pathsep}{ROOT}", REFUSED_WHILE: str(self.gate)}
        return known | {"IOSIG_WEBHOOK_URL": f"http://127.0.0.1:{self.webhook_port}/"}

    @property
    def gate(self) -> Path:
        return self.folder / "gate-fails"

    def run(self, *words: object) -> None:
        subprocess.run([*map(str, words)], env=self.environment, cwd=ROOT, check=True, capture_output=True)

    def start_server(self) -> None:
        command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(self.port)]
        with (self.folder / "server.log").open("ab") as log:
            self.server = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(lambda: listens(self.port), "Prefect's server")

    def kill_server(self) -> None:
        """Kill it with all its children."""
        assert self.server is not None
        os.killpg(self.server.pid, signal.SIGKILL)
        self.server.wait()

    def start_worker(self) -> None:
        """Start a worker without root's capabilities to bypass permissions, and with the hook of the gate."""
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "iosig", "--type", "process"]
        with (self.folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                command, env=self.environment, cwd=ROOT, stdout=log, stderr=log, preexec_fn=USER._limit,
                start_new_session=True,
            )  # fmt: skip

    def stop(self) -> None:
        for process in (self.worker, self.server):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    # ---- flow runs

    def begin(self) -> Any:
        """Start a night through the deployment, and return the id of its flow run."""
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            (deployment,) = (found for found in client.read_deployments() if found.name.startswith("nightly-"))
            return client.create_flow_run_from_deployment(deployment.id).id

    def state_of(self, run_id: Any) -> Any:
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            return client.read_flow_run(run_id).state

    def end(self, run_id: Any) -> Any:
        """Wait until a night is over, and return its final state."""
        deadline = time.monotonic() + _PATIENCE_S
        while not (state := self.state_of(run_id)).is_final():
            assert time.monotonic() < deadline, state
            time.sleep(1.0)
        return state

    def wait_for(self, run_id: Any) -> None:
        """Wait until a night is running."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self.state_of(run_id).is_running():
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def kill_night(self) -> None:
        """Kill the process of the running flow, and all its descendants."""
        assert self.worker is not None
        own = [process for process in _descendants(self.worker.pid) if process != self.worker.pid]
        for process in own:
            with_no_more = Path(f"/proc/{process}")
            if with_no_more.exists():
                os.kill(process, signal.SIGKILL)


def _descendants(process: int) -> list[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [process, *(one for child in children for one in _descendants(int(child)))]


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Start a server, a work pool, a worker, and a webhook."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    folder.mkdir()
    install_refusing_gate(folder / "site")
    running = Servers(folder)
    with HTTPServer(("127.0.0.1", 0), _webhook_of(running.notices)) as webhook:
        running.webhook_port = webhook.server_port
        threading.Thread(target=webhook.serve_forever, daemon=True).start()
        try:
            running.start_server()
            running.run(sys.executable, "-m", "prefect", "work-pool", "create", "iosig", "--type", "process")
            running.start_worker()
            with temporary_settings({PREFECT_API_URL: running.url}):
                yield running
        finally:
            running.stop()
            webhook.shutdown()


def _webhook_of(notices: list[dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            notices.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Webhook


@pytest.mark.long
@pytest.mark.parametrize("seed", [int(os.environ.get("IOSIG_TEST_SEED", "7"))])
def test_nights_with_faults_on_a_prefect_server_equal_an_undisturbed_run(seed: int, tmp_path: Path) -> None:
    site = Site(tmp_path / "inbox", drawn(seed, _NIGHTS), seed)
    began = time.monotonic()
    with (
        disk(tmp_path / "disk", 1 << 30) as small,
        mariadb() as lmt,
        servers(tmp_path / "servers") as running,
    ):
        for statement in MARIADB_TABLES:
            lmt.run(statement, database="filesystem_scratch")
        store = Store(small.folder / "warehouse")
        store.root.mkdir()
        schedule = f'inbox = "{site.folder}"\nretry_count = 1\nretry_delay_s = 1.0\nlock_timeout_s = 300.0\n'
        schedule += f'databases = ["{lmt.url}"]\n'
        (store.root / "iosig.toml").write_text(f"[schedule]\n{schedule}")
        main = [sys.executable, "-c", "from iosig.cli import main; main()"]
        running.run(*main, "--warehouse", store.root, "deploy", "--work-pool", "iosig")
        for number, counted in enumerate(counters(seed, _NIGHTS)):
            fault = site.night()
            _count(lmt, number, counted)
            if fault == "database down":
                lmt.stop()
            states = _night(running, small.folder, fault, [*main, "--warehouse", store.root])
            if fault == "database down":
                lmt.start()
            print(f"| {number} | {fault} | {', '.join(states)} | {time.monotonic() - began:.0f} s |")
        told = Counter((notice["problem"], notice["state"]) for notice in running.notices)
        print(told)
        assert contents(store) == contents(undisturbed(site, tmp_path / "other", lmt.url))
        assert verify(store, is_all=True) == []
        assert len(releases.history(store)) == _NIGHTS
        assert not (store.root / "lock.json").exists()
        found = [(row["source_file"], row["line"]) for row in refused(store).iter_rows(named=True)]
        assert len(found) == len(set(found)) == 3
        assert told["gate", "begun"] == told["gate", "over"] == 1
        assert told["run", "begun"] == told["run", "over"] == 1
        assert all(told[problem, "begun"] - told[problem, "over"] in (0, 1) for problem, _ in told)
    open_again(site.folder)


def _count(lmt: MariaDb, number: int, counted: list[tuple[datetime, list[tuple[int, int]]]]) -> None:
    """Let LMT record the counters of a day."""
    instants = [(number * len(counted) + place + 1, at, totals) for place, (at, totals) in enumerate(counted)]
    stamps = [(ts_id, f"{at:%F %T}") for ts_id, at, _ in instants]
    rows = [(ost, ts_id, *total) for ts_id, _, totals in instants for ost, total in enumerate(totals, 1)]
    lmt.run("insert into TIMESTAMP_INFO values (%s, %s)", *stamps, database="filesystem_scratch")
    lmt.run("insert into OST_DATA values (%s, %s, %s, %s, 0)", *rows, database="filesystem_scratch")


def _night(running: Servers, folder: Path, fault: str | None, command: list[Any]) -> list[str]:
    """Run a night with its fault, and again if the fault stopped it; return the final state of each run."""
    ballast = folder / "ballast"
    if fault == "disk full":
        ballast.write_bytes(b"")
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        with ballast.open("wb") as file:
            file.write(b"\0" * (free - (128 << 10)))
    if fault == "gate fails":
        running.gate.touch()
    run_id = running.begin()
    others: list[Any] = [running.begin()] if fault == "two at once" else []
    if fault == "two at once":
        inline = subprocess.Popen(
            [*map(str, command), "run", "--inline", "--lock-timeout", "300"], env=running.environment, cwd=ROOT,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=USER._limit,
        )  # fmt: skip
        assert inline.wait(_PATIENCE_S) in (0, 5)
    if fault in ("server restarts", "killed"):
        running.wait_for(run_id)
        time.sleep(2.0)
        if fault == "killed":
            running.kill_night()
        else:
            running.kill_server()
            time.sleep(2.0)
            running.start_server()
    ended = [running.end(each) for each in (run_id, *others)]
    ballast.unlink(missing_ok=True)
    running.gate.unlink(missing_ok=True)
    if not all(state.is_completed() for state in ended):
        again = running.end(running.begin())
        assert again.is_completed(), again
        ended.append(again)
    return [f"{state.name} ({state.message})" if state.message else str(state.name) for state in ended]
