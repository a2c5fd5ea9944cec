"""Servers that tests start: on the loopback alone, in folders of their own, gone when the test is."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "of the test alone"
_PATIENCE_S = 60.0
_ROOT = Path(__file__).resolve().parent.parent


def free_port() -> int:
    """Return a port of the loopback that nobody listens at just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def wait_until(is_up: Callable[[], bool], what: str) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + _PATIENCE_S
    while not is_up():
        assert time.monotonic() < deadline, f"{what} did not come up"
        time.sleep(0.05)


def listens(port: int) -> bool:
    """Return whether anybody listens at a port of the loopback."""
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class PostgreSql:
    """A PostgreSQL server of a test's own, which asks for a password."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Where it is, without the password."""
        return f"postgresql://iosig@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder}
        told = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self.process = subprocess.Popen(
            [_postgresql("postgres"), "-D", self.folder / "data", *told], stderr=subprocess.DEVNULL, **_as_nobody()
        )
        wait_until(lambda: listens(self.port) and self._answers(), "PostgreSQL")

    def _answers(self) -> bool:
        import psycopg2

        try:
            psycopg2.connect(self.uri, password=PASSWORD).close()
        except psycopg2.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """End it at once, as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        # its children end when they see that it is gone
        wait_until(lambda: not listens(self.port), "the end of PostgreSQL")


def _postgresql(program: str) -> str:
    found = shutil.which(program) or next(
        (str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))), None
    )
    if found is None:
        pytest.skip(f"{program} is not on this machine (Debian: postgresql)")
    return found


def _as_nobody() -> dict[str, Any]:
    """Return how to start a server that refuses to be root's."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}


@contextmanager
def postgresql() -> Iterator[PostgreSql]:
    """Start a PostgreSQL server; skips where there is none, or no library for it."""
    pytest.importorskip("psycopg2", reason="the extra `postgresql` is not installed")
    initdb = _postgresql("initdb")
    folder = Path(tempfile.mkdtemp(prefix="iosig-postgresql-"))
    try:
        secret = folder / "secret"
        secret.write_text(PASSWORD)
        if os.getuid() == 0:
            for path in (folder, secret):
                shutil.chown(path, "postgres", "postgres")
        told = ["-D", folder / "data", "-U", "iosig", "-A", "scram-sha-256", "--pwfile", secret, "-N", "--no-locale"]
        subprocess.run([initdb, *told], check=True, capture_output=True, cwd=folder, **_as_nobody())
        server = PostgreSql(folder, free_port())
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class MariaDb:
    """A MariaDB server of a test's own, with one database, as a site's LMT has one."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where the database is."""
        return f"mysql://root@127.0.0.1:{self.port}/filesystem_scratch"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        told = {"datadir": self.folder / "data", "port": self.port, "socket": self.folder / "socket"}
        told |= {"pid-file": self.folder / "pid", "bind-address": "127.0.0.1"}
        words = [f"--{name}={value}" for name, value in told.items()]
        more = ["--user=mysql"] if os.getuid() == 0 else []
        self.process = subprocess.Popen(
            [_mariadb("mariadbd"), "--no-defaults", *words, *more, "--skip-grant-tables", "--skip-networking=0"],
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: listens(self.port) and self.run("select 1") == [(1,)], "MariaDB")

    def run(self, statement: str, *rows: Any, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run a statement, with each of some rows if any are given; return what it gives: nothing without a server."""
        import pymysql

        try:
            connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root", database=database)
        except pymysql.err.OperationalError:
            return []
        with connection, connection.cursor() as cursor:
            cursor.executemany(statement, rows) if rows else cursor.execute(statement)
            connection.commit()
            return list(cursor.fetchall())

    def stop(self) -> None:
        """End it at once, as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def _mariadb(program: str) -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"{program} is not on this machine (Debian: mariadb-server)")
    return found


@contextmanager
def mariadb() -> Iterator[MariaDb]:
    """Start a MariaDB server; skips where there is none."""
    _mariadb("mariadbd")
    folder = Path(tempfile.mkdtemp(prefix="iosig-mariadb-"))
    try:
        if os.getuid() == 0:
            shutil.chown(folder, "mysql", "mysql")
        told = [f"--datadir={folder / 'data'}", "--skip-test-db", "--auth-root-authentication-method=normal"]
        more = ["--user=mysql"] if os.getuid() == 0 else []
        install = [_mariadb("mariadb-install-db"), "--no-defaults", *told, *more]
        subprocess.run(install, check=True, capture_output=True, cwd=folder)
        server = MariaDb(folder, free_port())
        server.start()
        try:
            server.run("create database filesystem_scratch")
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Dask:
    """A Dask scheduler of a test's own, and workers of one core each."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]
    folder: Path

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start one more worker, under a nanny that starts it again where it ends."""
        told = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder)]
        worker = _dask("worker", self.address, "--host", "127.0.0.1", *told, **environment)
        self.workers.append(worker)
        return worker

    def stop(self) -> None:
        """End all of them."""
        for process in (*self.workers, self.scheduler):
            with suppress(ProcessLookupError):
                # a nanny's worker is of its group
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _dask(*told: str, **environment: str) -> subprocess.Popen[bytes]:
    given = os.environ | {"PYTHONPATH": str(_ROOT), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2"} | environment
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *told], env=given, cwd=_ROOT, start_new_session=True, stderr=subprocess.DEVNULL
    )


@contextmanager
def dask(worker_count: int) -> Iterator[Dask]:
    """Start a Dask scheduler and workers; skips where Dask is not installed."""
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    port = free_port()
    told = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-jupyter"]
    folder = Path(tempfile.mkdtemp(prefix="iosig-dask-"))
    cluster = Dask(f"tcp://127.0.0.1:{port}", _dask("scheduler", *told), [], folder)
    try:
        wait_until(lambda: listens(port), "Dask's scheduler")
        for _ in range(worker_count):
            cluster.add_worker()
        if worker_count:
            _wait_for_workers(cluster)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_workers(cluster: Dask) -> None:
    from distributed import Client

    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(len(cluster.workers), timeout=_PATIENCE_S)
