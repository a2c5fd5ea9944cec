"""Execute calls on the workers of a Dask scheduler, on machines that can access the warehouse.

The scheduler receives each call as a function with its arguments. A work item consists of paths, days and settings; its
tables are in the warehouse. Dask repeats a call if its worker is lost, and reports a call that has killed several
workers. Every call is refused on a worker that has another version of the program.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import socket
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from iosig.flows.steps.items import WorkItem
from iosig.settings.model import EngineSettings, SlurmSettings
from iosig.warehouse import processes
from iosig.warehouse.errors import MachineFault, MissingExtra, UsageError
from iosig.warehouse.placing import make_folder
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from distributed import Client, Security

_Answer = TypeVar("_Answer")

#: libraries whose results may depend on the version
_LIBRARIES = ("duckdb", "numpy", "polars", "pyarrow", "scipy")
_PACKAGES = ("estimates", "expectations", "flows", "settings", "sql", "streams", "transforms", "warehouse")
#: time limit for reaching the scheduler, for its first worker, and for fetching a result that is ready [s]
_PATIENCE_S = 30.0
#: warehouses that this process has accessed, by root and connection
_SEEN: set[tuple[Path, str]] = set()
#: maximum number of attempts of a call that ends its worker
TRIES = 3
#: configuration of Dask with Slurm; docs/many-machines.md lists the same settings as environment variables
CONFIGURATION: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": TRIES - 1,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
#: environment of workers: Dask's default returns freed memory at once, which doubles the time of items with many small
#: arrays
ENVIRONMENT = processes.ALLOCATION
#: priority of checks in Dask; other items run first
_CHECK_PRIORITY = -1


@cache
def program() -> str:
    """Identify this version of iosig by a digest of its source and the versions of Python and of its libraries."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    paths = (path.relative_to(root) for package in _PACKAGES for path in (root / package).rglob("*"))
    for name in sorted(filter(_is_text, paths)):
        digest.update(f"{name} ".encode() + (root / name).read_bytes())
    libraries = " ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    return f"iosig {version('iosig')} ({digest.hexdigest()[:12]}), Python {platform.python_version()}, {libraries}"


def _is_text(name: Path) -> bool:
    # the default warehouse is not part of the program
    return name.suffix in {".py", ".sql", ".json"} and name.parts[:2] != ("warehouse", "data")


# ---- the executor


@dataclass(frozen=True, slots=True)
class _Origin:
    """The warehouse and the program version that a worker must share with the calling process.

    root: the warehouse's folder. url: of a warehouse in an object store; each machine then has its own cache. token: a
    file that exists in the warehouse while the connection lasts.
    """

    root: Path
    url: str | None
    token: str
    program: str

    def start_count(self, call_id: str) -> int:
        """Return the number of workers that have started a call."""
        return len(self._store().files.matching(f"{self.token}.{call_id}.*"))

    def call(self, call_id: str, function: Callable[..., _Answer], *args: Any) -> _Answer:
        """Call a function on a worker; the warehouse's root among its arguments becomes the worker's own.

        A file in the warehouse records the start. Raises UsageError on a worker with another program, MachineFault on
        one that does not see the warehouse.
        """
        if program() != self.program:
            raise UsageError(
                f"The worker on {socket.gethostname()} runs other versions. Here: {self.program}; there: "
                f"{program()}. Install the same versions on both, and restart the workers."
            )
        store = self._store()
        if (store.root, self.token) not in _SEEN:
            if not store.has(self.token):
                raise MachineFault(
                    f"The worker on {socket.gethostname()} does not see {self.url or self.root}: workers need the "
                    "warehouse's file system at the same path, or its object store."
                )
            _SEEN.add((store.root, self.token))
        store.files.put(f"{self.token}.{call_id}.{uuid.uuid4().hex}", b"")
        return function(
            *(store.root if isinstance(argument, Path) and argument == self.root else argument for argument in args)
        )

    def _store(self) -> Store:
        return Store.locate(self.url) if self.url else Store(self.root)


class Workers(Executor):
    """Calls functions on the workers of a Dask scheduler, which see the warehouse."""

    def __init__(self, client: Client, origin: _Origin) -> None:
        self._client, self._origin = client, origin

    @property
    def worker_count(self) -> int:
        """Number of calls that run concurrently."""
        counts: dict[str, int] = self._client.nthreads()
        return max(1, sum(counts.values()))

    def submit(self, fn: Callable[..., _Answer], /, *args: Any, **kwargs: Any) -> Future[_Answer]:
        """Call a function on a worker; the scheduler's logs and pages show the name of the work item."""
        item = next((argument for argument in args if isinstance(argument, WorkItem)), None)
        name = repr(item.name) if item else f"A call of {fn.__name__}"
        call_id, attempts = uuid.uuid4().hex, count(1)
        call = partial(self._origin.call, call_id, partial(fn, **kwargs))
        args = tuple(argument.absolute() if isinstance(argument, Path) else argument for argument in args)
        priority = _CHECK_PRIORITY if item and item.is_check else 0
        future: Future[_Answer] = Future()

        def submit_call() -> None:
            key = f"{item.name if item else fn.__name__}-{uuid.uuid4().hex}"
            try:
                if self._client.status != "running":
                    raise MachineFault(_SCHEDULER_LOST)
                dask_future = self._client.submit(call, *args, pure=False, priority=priority, key=key)
                dask_future.add_done_callback(settle)
            except Exception as error:
                future.set_exception(error)

        def start() -> None:
            # Submit in the client's own thread: there the connection cannot be lost between check and submission.
            # A call submitted after the client has cancelled its calls would never return.
            self._client.loop.add_callback(submit_call)

        def settle(dask_future: Any) -> None:
            try:
                try:
                    future.set_result(_get_result(name, dask_future))
                except processes.WorkerLost:
                    # Dask also blames the calls that waited on a lost worker
                    if self._origin.start_count(call_id) >= TRIES or next(attempts) >= TRIES:
                        raise
                    start()
            except Exception as error:
                # includes errors of store and scheduler: a future without an outcome would block its caller forever
                future.set_exception(error)

        start()
        return future


_SCHEDULER_LOST = "The Dask scheduler no longer answers. Completed items are kept: restart it, and run again."


def _get_result(name: str, future: Any) -> Any:
    """Return the result of a call; raise faults of workers and of the scheduler with a remedy."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    if future.cancelled():
        # The loop of a closed client never returns a result, and all clients share one callback thread.
        raise MachineFault(_SCHEDULER_LOST)
    try:
        return future.result(_PATIENCE_S)
    except KilledWorker as error:
        raise processes.WorkerLost(
            f"{name} ended {error.allowed_failures + 1} workers, one after the other; they may have run out of memory. "
            "Completed items are kept: run again, with more memory for each worker."
        ) from error
    except (CancelledError, CommClosedError, TimeoutError) as error:
        raise MachineFault(_SCHEDULER_LOST) from error


# ---- connections


@contextmanager
def connect_workers(engine: EngineSettings, slurm: SlurmSettings, root: Path) -> Iterator[Workers]:
    """Connect to the workers of a running scheduler, or start workers with Slurm, as the settings select."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtra(f"engine.executor = '{engine.executor}'", "dask") from error
    with _scheduler(engine, slurm, root) as address:
        try:
            client = distributed.Client(address, timeout=_PATIENCE_S)
        except (OSError, TimeoutError) as error:
            raise MachineFault(f"No Dask scheduler answers at {address}: start `dask scheduler` there.") from error
        with client:
            _require_worker(client, engine, slurm)
            client.forward_logging(level="WARNING")
            with _origin(Store(root.absolute())) as origin:
                yield Workers(client, origin)


@contextmanager
def _origin(store: Store) -> Iterator[_Origin]:
    """Create the file that proves to a worker that it accesses this warehouse; remove it afterwards."""
    token = f"builds/{uuid.uuid4().hex}.workers"
    store.files.put(token, b"")
    try:
        yield _Origin(store.root, store.url, token, program())
    finally:
        store.files.remove(token, *store.files.matching(f"{token}.*"))


def _require_worker(client: Client, engine: EngineSettings, slurm: SlurmSettings) -> None:
    """Wait for the first worker, longer if Slurm starts it. Raises MachineFault if none starts."""
    if engine.executor == "dask":
        try:
            # a script may start the workers and the nightly run simultaneously
            client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError as error:
            raise MachineFault(
                f"The Dask scheduler {engine.scheduler} has no workers: start `dask worker {engine.scheduler}`."
            ) from error
        return
    try:
        client.wait_for_workers(1, timeout=slurm.start_timeout_s)
    except TimeoutError as error:
        raise MachineFault(
            f"Slurm did not start a worker within {slurm.start_timeout_s:.0f} s. `squeue` shows why its jobs are "
            "waiting; set slurm.log_folder to keep their output."
        ) from error


@contextmanager
def _scheduler(engine: EngineSettings, slurm: SlurmSettings, root: Path) -> Iterator[Any]:
    if engine.executor == "dask":
        yield engine.scheduler
        return
    if shutil.which("sbatch") is None:
        raise UsageError("engine.executor = 'slurm' needs Slurm's sbatch on this machine.")
    import dask
    from dask_jobqueue import SLURMCluster

    # the first landing creates the warehouse
    make_folder(root)
    with (
        TemporaryDirectory(dir=root, prefix=".workers-", ignore_cleanup_errors=True) as private,
        dask.config.set(CONFIGURATION),
        SLURMCluster(
            queue=slurm.partition,
            account=slurm.account,
            walltime=slurm.walltime,
            cores=slurm.worker_count,
            processes=slurm.worker_count,
            memory=slurm.memory,
            interface=slurm.interface,
            job_extra_directives=slurm.directives,
            job_script_prologue=[*_export_configuration(), *slurm.prologue],
            log_directory=str(slurm.log_folder or private),
            security=_security(Path(private)),
            scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        ) as cluster,
    ):
        cluster.scale(jobs=slurm.job_count)
        yield cluster


def _export_configuration() -> Iterator[str]:
    """Yield the shell commands that configure Dask for a worker."""
    for name, value in CONFIGURATION.items():
        yield f"export DASK_{name.upper().replace('.', '__').replace('-', '_')}={value}"
    for name, value in ENVIRONMENT.items():
        yield f"export {name}={value}"


def _security(folder: Path) -> Security:
    """Create certificates for this run in a folder that only this user can read, from which workers load them."""
    from distributed import Security

    credentials = Security.temporary()
    paths = {}
    for name, text in {
        "ca_file": credentials.tls_ca_file,
        "cert": credentials.tls_worker_cert,
        "key": credentials.tls_worker_key,
    }.items():
        path = folder / name
        path.touch(0o600)
        path.write_text(text)
        paths[name] = str(path)
    of_roles = {
        f"tls_{role}_{name}": paths[name] for role in ("client", "scheduler", "worker") for name in ("cert", "key")
    }
    return Security(require_encryption=True, tls_ca_file=paths["ca_file"], **of_roles)
