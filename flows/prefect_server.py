"""Run and query the Prefect server of a warehouse, which `iosig serve` starts.

It listens only on the loopback interface, and requires a password, since any local user can connect there. Its
database, log and password are in a folder of the warehouse that only its owner can read.
"""

from __future__ import annotations

import base64
import errno
import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from iosig.settings.model import Settings
from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.interrupts import Stop
from iosig.warehouse.placing import make_folder, sync_to_disk
from iosig.warehouse.store.store import Store

HOST = "127.0.0.1"
_FOLDER, _PASSWORD_FILE, _LOG = "prefect", "password", "server.log"
_USER = "iosig"
#: environment variables with the credentials of Prefect's clients
CREDENTIALS = ("PREFECT_API_AUTH_STRING", "PREFECT_API_KEY")
_START_TIMEOUT_S, _STOP_TIMEOUT_S, _REQUEST_TIMEOUT_S, _EXIT_WAIT_S = 120.0, 15.0, 5.0, 1.0
_POLL_INTERVAL_S = 0.25
#: state of a listening socket in /proc/net/tcp
_LISTEN = "0A"
#: runs `prefect` until the process that started it ends, which closes its standard input
_PREFECT = """
import os, runpy, signal, sys, threading
def end_with_parent():
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=end_with_parent, daemon=True).start()
runpy.run_module("prefect", run_name="__main__", alter_sys=True)
"""

ServerState = Literal["running", "not running", "password refused", "port in use"]


@dataclass(frozen=True, slots=True)
class PrefectServer:
    """The address of a warehouse's Prefect server, and the folder of its database, log and password."""

    folder: Path
    port: int

    @classmethod
    def for_warehouse(cls, store: Store, settings: Settings) -> PrefectServer:
        """Return the server of a warehouse, whether or not it is running."""
        return cls(store.root.resolve() / _FOLDER, settings.schedule.server_port)

    @property
    def ui_url(self) -> str:
        """Address of the user interface."""
        return f"http://{HOST}:{self.port}"

    @property
    def api_url(self) -> str:
        """Address of the API, in the format of PREFECT_API_URL."""
        return f"{self.ui_url}/api"

    @property
    def password_file(self) -> Path:
        """The file that contains `user:password`, in the format of PREFECT_API_AUTH_STRING."""
        return self.folder / _PASSWORD_FILE

    def auth_string(self) -> str:
        """Read `user:password`. Raises MachineFault if it does not exist yet, UsageError if other users can read it."""
        try:
            with self.password_file.open() as file:
                status, text = os.fstat(file.fileno()), file.read().strip()
        except FileNotFoundError as error:
            raise MachineFault(
                f"The Prefect server of this warehouse was never started: {self.password_file} does not exist. "
                "Start it with `iosig serve`, or set PREFECT_API_URL to another server."
            ) from error
        if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid not in (0, os.geteuid()):
            raise UsageError(
                f"Other users can read the password in {self.password_file}. Remove the file: the next `iosig serve` "
                "creates a new password."
            )
        if not text:
            raise UsageError(f"{self.password_file} is empty. Remove it: the next `iosig serve` creates a password.")
        return text

    def create_password(self) -> None:
        """Create the folder and a password unless they exist; only their owner can read them."""
        make_folder(self.folder.parent)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if self.password_file.exists():
            return
        temporary = self.folder / f".{_PASSWORD_FILE}.{secrets.token_hex(4)}.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "w") as file:
                file.write(f"{_USER}:{secrets.token_urlsafe(32)}\n")
            sync_to_disk(temporary)
            # a link, unlike a rename, never replaces a password that another process has created first
            with suppress(FileExistsError):
                os.link(temporary, self.password_file)
        finally:
            temporary.unlink()
        sync_to_disk(self.folder)

    def client_environment(self) -> dict[str, str]:
        """Environment variables of Prefect's clients: the server's address and password, and a private folder."""
        direct = {*os.environ.get("no_proxy", os.environ.get("NO_PROXY", "")).split(","), HOST} - {""}
        return {
            "PREFECT_API_URL": self.api_url,
            "PREFECT_API_AUTH_STRING": self.auth_string(),
            "PREFECT_HOME": str(self.folder),
            "no_proxy": ",".join(sorted(direct)),
        }

    def describe_state(self) -> str | None:
        """State of the server as text, or why it is unknown; None if this user has no server for this warehouse."""
        if not os.access(self.password_file, os.R_OK):
            return None
        try:
            return self.state()
        except (MachineFault, UsageError) as error:
            return str(error)

    def state(self) -> ServerState:
        """Query the server with the password, which is never sent to a server of another user."""
        if self._status_of("/api/health") is None:
            return "not running"
        if not is_own_listener(self.port):
            return "port in use"
        token = base64.b64encode(self.auth_string().encode()).decode()
        status = self._status_of("/api/admin/version", {"Authorization": f"Basic {token}"})
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return "password refused"
        return "running" if status == HTTPStatus.OK else "port in use"

    def require_running(self) -> None:
        """Raise MachineFault unless the server runs and accepts the password."""
        state = self.state()
        if state == "not running":
            raise MachineFault(
                f"The Prefect server of this warehouse ({self.api_url}) does not answer. Start it with `iosig serve`, "
                "or set PREFECT_API_URL to another server."
            )
        if state == "password refused":
            raise MachineFault(
                f"The server at {self.api_url} does not accept the password in {self.password_file}. It may belong to "
                "another warehouse: set another `server_port` in [schedule] of the settings."
            )
        if state == "port in use":
            raise _port_in_use(self.port)

    @contextmanager
    def start_in_background(self, stop: Stop) -> Iterator[Callable[[], None]]:
        """Run the server during the block, and yield a check that raises MachineFault once it has ended.

        The block begins when the server answers, or at once when `stop` is set. The server ends with this process,
        however that ends.
        """
        self.create_password()
        environment = self._server_environment()
        _require_free_port(self.port)
        command = [sys.executable, "-c", _PREFECT, "server", "start"]
        with (self.folder / _LOG).open("wb") as log:
            # Ctrl-C reaches the foreground group; the server must outlive the runs, which report to it
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self.folder,
                process_group=0,
            )
        try:
            self._wait_until_running(process, stop)
            try:
                yield lambda: self._require_alive(process)
            except Exception:
                # the server's end may explain a client's error, such as a refused connection
                self._require_alive(process, _EXIT_WAIT_S)
                raise
        finally:
            _end(process)

    def _server_environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in CREDENTIALS}
        return inherited | {
            "PREFECT_HOME": str(self.folder),
            "PREFECT_SERVER_API_HOST": HOST,
            "PREFECT_SERVER_API_PORT": str(self.port),
            "PREFECT_SERVER_API_AUTH_STRING": self.auth_string(),
            "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": f"{self.ui_url},http://localhost:{self.port}",
            # the user may not be allowed to write to the installed package
            "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(self.folder / "ui"),
            "PREFECT_SERVER_UI_API_URL": self.api_url,
            "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        }

    def _wait_until_running(self, process: subprocess.Popen[bytes], stop: Stop) -> None:
        for _ in range(int(_START_TIMEOUT_S / _POLL_INTERVAL_S)):
            if stop.is_set() or process.poll() is not None:
                break
            if self._status_of("/api/health") == HTTPStatus.OK and process.poll() is None:
                self.require_running()
                return
            stop.wait(_POLL_INTERVAL_S)
        if not stop.is_set():
            raise MachineFault(f"The Prefect server did not start. Its messages are in {self.folder / _LOG}.")

    def _require_alive(self, process: subprocess.Popen[bytes], wait_s: float = 0.0) -> None:
        """Raise MachineFault if the server's process ends within `wait_s`.

        The server closes its connections before its process ends, so a client's error can precede the end.
        """
        with suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            raise MachineFault(f"The Prefect server ended. Its messages are in {self.folder / _LOG}.")

    def _status_of(self, path: str, headers: Mapping[str, str] = MappingProxyType({})) -> int | None:
        """Return the HTTP status of a path, None if no HTTP server answers; proxies are bypassed."""
        connection = HTTPConnection(HOST, self.port, timeout=_REQUEST_TIMEOUT_S)
        try:
            connection.request("GET", path, headers=dict(headers))
            return connection.getresponse().status
        except (OSError, HTTPException):
            return None
        finally:
            connection.close()


def read_api_url() -> str | None:
    """Return PREFECT_API_URL, None if it is not set. Raises UsageError for a URL that Prefect's import would reject."""
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        return None
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise UsageError(f"PREFECT_API_URL ({url}) is not a URL such as http://HOST:4200/api.")
    return url


def hide_credentials() -> None:
    """Remove Prefect's credentials from this process's environment, which other programs inherit.

    Prefect reads them when it is imported, and passes them to the processes of its runs.
    """
    for name in CREDENTIALS:
        os.environ.pop(name, None)


def is_own_listener(port: int) -> bool:
    """Return whether all listeners at a local port belong to this user or root; True if they cannot be determined."""
    try:
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return True
    port_suffix = f":{port:04X}"
    listeners = [fields for line in lines if (fields := line.split())[1].endswith(port_suffix) and fields[3] == _LISTEN]
    # field 7 is the user id
    return all(int(fields[7]) in (0, os.geteuid()) for fields in listeners)


def _require_free_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise MachineFault(f"Port {port} of {HOST} cannot be opened: {error.strerror}.") from error
            raise _port_in_use(port) from error


def _port_in_use(port: int) -> MachineFault:
    return MachineFault(
        f"Port {port} of {HOST} is in use, by another program or `iosig serve` of another warehouse. Stop it, or set "
        "another `server_port` in [schedule] of the settings."
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server; one that does not end in time is killed."""
    with process:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
