"""The Prefect server of a warehouse keeps its password private and never sends it to servers of other users."""

from __future__ import annotations

import base64
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from iosig.flows import prefect_server
from iosig.flows.prefect_server import CREDENTIALS, PrefectServer, hide_credentials, is_own_listener, read_api_url
from iosig.settings.model import Settings
from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.store.store import Store
from tests.servers import free_port


@dataclass
class Listener:
    """An HTTP server on the loopback interface: its status, and the authorization headers that it received."""

    port: int = 0
    status: int = 200
    received: list[str] = field(default_factory=list)


@pytest.fixture
def listener() -> Iterator[Listener]:
    found = Listener()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            password = self.headers.get("Authorization")
            found.received += [password] if password else []
            self.send_response(found.status if password else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


@pytest.fixture
def server(tmp_path: Path) -> PrefectServer:
    server = PrefectServer(tmp_path / "warehouse" / "prefect", free_port())
    server.create_password()
    return server


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_port_comes_from_settings_and_folder_from_the_warehouse(tmp_path: Path) -> None:
    settings = Settings.model_validate({"schedule": {"server_port": 4321}})
    server = PrefectServer.for_warehouse(Store(tmp_path / "warehouse"), settings)
    assert server.api_url == "http://127.0.0.1:4321/api"
    assert server.folder == tmp_path.resolve() / "warehouse" / "prefect"
    assert PrefectServer.for_warehouse(Store(tmp_path), Settings()).port == 4200


class TestPassword:
    def test_password_file_is_private_whatever_the_umask(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            server = PrefectServer(tmp_path / "prefect", 4200)
            server.create_password()
        finally:
            os.umask(before)
        assert (mode(server.folder), mode(server.password_file)) == (0o700, 0o600)
        user, password = server.auth_string().split(":")
        assert user == "iosig"
        assert len(password) >= 40
        assert [path.name for path in server.folder.iterdir()] == ["password"]

    def test_password_is_stable_and_differs_between_warehouses(self, server: PrefectServer, tmp_path: Path) -> None:
        before = server.auth_string()
        server.create_password()
        assert server.auth_string() == before
        other = PrefectServer(tmp_path / "other", 4200)
        other.create_password()
        assert other.auth_string() != before

    def test_concurrent_creation_yields_one_password(self, tmp_path: Path) -> None:
        server = PrefectServer(tmp_path / "prefect", 4200)

        def create(_: int) -> str:
            server.create_password()
            return server.auth_string()

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(create, range(32)))) == 1

    def test_password_readable_by_others_is_refused(self, server: PrefectServer) -> None:
        server.password_file.chmod(0o640)
        with pytest.raises(UsageError, match=r"Other users can read the password in .* Remove the file"):
            server.auth_string()

    def test_empty_password_is_refused(self, server: PrefectServer) -> None:
        server.password_file.write_text("")
        with pytest.raises(UsageError, match=r"is empty\. Remove it"):
            server.auth_string()

    def test_missing_password_asks_for_the_first_start(self, tmp_path: Path) -> None:
        with pytest.raises(MachineFault, match=r"never started.*iosig serve"):
            PrefectServer(tmp_path, 4200).auth_string()

    def test_credentials_are_hidden_from_child_processes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in CREDENTIALS:
            monkeypatch.setenv(name, "secret")
        hide_credentials()
        script = "import os; print([name for name, value in os.environ.items() if value == 'secret'])"
        found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert found.stdout == "[]\n"


class TestState:
    def test_server_that_accepts_the_password_is_running(self, server: PrefectServer, listener: Listener) -> None:
        running = PrefectServer(server.folder, listener.port)
        assert running.state() == "running"
        running.require_running()
        assert base64.b64decode(listener.received[0].removeprefix("Basic ")).decode() == server.auth_string()

    @pytest.mark.parametrize(
        ("status", "state", "sentence"),
        [
            (401, "password refused", r"does not accept the password in .*prefect/password"),
            (404, "port in use", r"Port \d+ of 127\.0\.0\.1 is in use.*server_port"),
        ],
    )
    def test_server_that_refuses_the_password_is_distinguished(
        self, server: PrefectServer, listener: Listener, status: int, state: str, sentence: str
    ) -> None:
        listener.status = status
        other = PrefectServer(server.folder, listener.port)
        assert other.state() == state
        with pytest.raises(MachineFault, match=sentence):
            other.require_running()

    def test_server_that_is_down_is_reported(self, server: PrefectServer) -> None:
        assert server.state() == "not running"
        with pytest.raises(MachineFault, match=r"does not answer. Start it with `iosig serve`"):
            server.require_running()

    def test_server_of_another_user_never_receives_the_password(
        self, server: PrefectServer, listener: Listener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(prefect_server, "is_own_listener", lambda _: False)
        assert PrefectServer(server.folder, listener.port).state() == "port in use"
        assert listener.received == []

    def test_owner_of_a_listening_port_is_detected(self, listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
        assert is_own_listener(listener.port)
        if os.geteuid() != 0:
            pytest.skip("a listener of root counts as own: only root can try another user")
        script = "import os, socket, sys; os.setuid(65534); s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); "
        script += "print(s.getsockname()[1], flush=True); sys.stdin.read()"
        with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert not is_own_listener(int(other.stdout.readline()))
            other.communicate(b"")

    def test_proxy_is_bypassed(
        self, server: PrefectServer, listener: Listener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listener.port}")
        assert server.state() == "not running"
        assert listener.received == []
        assert "127.0.0.1" in server.client_environment()["no_proxy"].split(",")


class TestStart:
    def test_port_in_use_is_reported_in_one_sentence(self, server: PrefectServer) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", server.port))
            other.listen()
            with pytest.raises(MachineFault, match=rf"^Port {server.port} of 127\.0\.0\.1 is in use.*server_port"):
                server.start_in_background(Stop()).__enter__()

    def test_failing_server_names_its_log(self, server: PrefectServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(prefect_server, "_PREFECT", "import sys; sys.exit('no database')")
        with pytest.raises(MachineFault, match=r"did not start. Its messages are in .*server\.log"):
            server.start_in_background(Stop()).__enter__()
        assert (server.folder / "server.log").read_text() == "no database\n"

    def test_stop_during_startup_ends_the_server(self, server: PrefectServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(prefect_server, "_PREFECT", "import time; time.sleep(60)")
        stop = Stop()
        stop.set()
        with server.start_in_background(stop) as require_alive:
            require_alive()
        with pytest.raises(MachineFault, match="The Prefect server ended"):
            require_alive()


@pytest.mark.parametrize("url", ["http://[", "foo", "ftp://host/api", "http://", "http://host:none/api"])
def test_invalid_api_url_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    with pytest.raises(UsageError, match="is not a URL such as"):
        read_api_url()


def test_missing_api_url_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert read_api_url() is None
    monkeypatch.setenv("PREFECT_API_URL", "https://prefect.example.org/api")
    assert read_api_url() == "https://prefect.example.org/api"
