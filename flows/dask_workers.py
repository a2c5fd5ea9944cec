"""Workers of Dask: pieces of work done by processes of other machines that see the warehouse.

What goes through the scheduler is a path: a piece lies in the warehouse, and so do the arguments of calls that a piece
hands on; a worker reads them there, and writes what it makes there. Only what is small goes through the scheduler
itself where the warehouse is an object store, which takes a while for each answer. Dask does anew what a lost worker
was at, and names what took several workers with it. A worker that is not the same program is refused, by every call.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import shutil
import socket
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from iosig.settings.model import EngineSettings, SlurmSettings
from iosig.warehouse import processes
from iosig.warehouse.errors import MachineFault, MissingExtra, UsageError
from iosig.warehouse.placing import make_folder
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from distributed import Client, Security

_Answer = TypeVar("_Answer")

#: by another version of these, other numbers may come
_LIBRARIES = ("duckdb", "numpy", "polars", "pyarrow", "scipy")
_ROOMS = ("expectations", "flows", "sql", "transforms", "warehouse")
_PATIENCE_S = 30.0
#: the folders of copies of object stores that this process has seen a warehouse in
_SEEN: set[Path] = set()
#: calls that are no longer go through the scheduler themselves
_SMALL_BYTES = 64 << 10
#: a piece that so many workers ended with is not begun again
TRIES = 3
#: how Dask is set where it is ours to set, as the variables of docs/many-machines.md do elsewhere
CONFIGURATION: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": TRIES - 1,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
#: what workers begin with, beside Dask's own: Dask has each give back at once what memory it does not use just now, and
#: pieces that make many small arrays took twice as long
ENVIRONMENT = processes.ALLOCATION
#: Dask's number for what others go before
_IN_THE_BACKGROUND = -1
#: the folder of a plan in which calls lie
_CALLS = "calls"
#: where calls lie that are of no plan: what opens one removes it
_APART = "builds/apart"


@cache
def program() -> str:
    """Return what tells this program from every other: its own text, Python's version, those of what computes."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[1]
    found = (path.relative_to(root) for room in _ROOMS for path in (root / room).rglob("*"))
    for name in sorted(filter(_is_text, found)):
        digest.update(f"{name} ".encode() + (root / name).read_bytes())
    libraries = " ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    return f"iosig {version('iosig')} ({digest.hexdigest()[:12]}), Python {platform.python_version()}, {libraries}"


def _is_text(name: Path) -> bool:
    # the default warehouse is no part of the program
    return name.suffix in {".py", ".sql", ".json"} and name.parts[:2] != ("warehouse", "data")


# ---- calls


@dataclass(frozen=True, slots=True)
class Call:
    """A call that any worker can do: where its function and arguments lie, and which program is to do it.

    url: of a warehouse in an object store; there each machine has a folder of copies of its own. content: the function
    and its arguments themselves, where they are small and lie in no folder; nothing lies at their place then.
    """

    root: Path
    place: str
    program: str
    url: str | None
    content: bytes | None = None

    @classmethod
    def of(cls, root: Path, folder: str, function: Callable[..., Any], *args: Any) -> Call:
        """Put a function and its arguments into a folder of the warehouse; what is small need not go into a store."""
        place = f"{folder}/{_CALLS}/{uuid.uuid4().hex}.pickle"
        store, content = Store(root), pickle.dumps((function, args))
        if store.url is None:
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_bytes(content)
        elif len(content) <= _SMALL_BYTES:
            return cls(root, place, program(), store.url, content)
        else:
            store.files.put(place, content)
        return cls(root, place, program(), store.url)

    def undo(self) -> None:
        """Remove what it was put into the warehouse as."""
        if self.content is None:
            Store(self.root).files.remove(self.place)

    def __call__(self) -> Any:
        """Do it, on a worker; what it hands on in its turn is done by all workers."""
        if program() != self.program:
            raise UsageError(
                f"The worker on {socket.gethostname()} is another program. Here: {self.program}; there: {program()}. "
                "Install the same on both, and start the workers anew."
            )
        store = Store.named(self.url) if self.url else Store(self.root)
        content = self._found(store)
        if content is None:
            raise MachineFault(
                f"The worker on {socket.gethostname()} does not see {self.url or self.root}: workers need the "
                "warehouse's file system at the same place, or its object store."
            )
        function, args = pickle.loads(content)
        with processes.done_by(_Others(store.root, str(Path(self.place).parents[1]))):
            return function(*(store.root if isinstance(each, Path) and each == self.root else each for each in args))

    def _found(self, store: Store) -> bytes | None:
        """Return the function and its arguments, None where the warehouse is not seen."""
        if self.content is None:
            return store.files.content(self.place)
        if store.root not in _SEEN and store.exists:
            _SEEN.add(store.root)
        return self.content if store.root in _SEEN else None


class _Calls:
    """All workers of a scheduler, for calls that are handed on to them."""

    def __init__(self, client: Client, root: Path, folder: str) -> None:
        self._client, self._root, self._folder = client, root.absolute(), folder

    @property
    def worker_count(self) -> int:
        """How many calls are done at a time."""
        return max(1, _threads(self._client))

    def begin(self, function: Callable[..., _Answer], *args: Any) -> Future[_Answer]:
        """Have a function called by one of them."""
        call = Call.of(self._root, self._folder, function, *args)
        begun = self._client.submit(call, pure=False)

        def answer() -> Any:
            try:
                return _answered(f"A call of {function.__name__}", begun)
            finally:
                call.undo()

        return _Waiting(answer)


class _CallsOfFlow(_Calls):
    """The same, for the flow itself: it has nothing else to do meanwhile."""

    def begin(self, function: Callable[..., _Answer], *args: Any) -> Future[_Answer]:
        """Have a function called by one of them."""
        begun = super().begin(function, *args)
        # the plan needs Iceberg, whose import takes a second
        processes.imported("iosig.warehouse.releases.catalogue")
        return begun


class _Others:
    """All workers, for a piece that one of them does: it waits for them, and is no worker then."""

    def __init__(self, root: Path, folder: str) -> None:
        self._root, self._folder = root, folder
        self._calls: _Calls | None = None

    @property
    def worker_count(self) -> int:
        """How many calls are done at a time."""
        from distributed import get_client

        return max(1, _threads(get_client()))

    def begin(self, function: Callable[..., _Answer], *args: Any) -> Future[_Answer]:
        """Have a function called by one of them."""
        from distributed import get_client, secede

        if self._calls is None:
            # its place is another's from now on: with one worker, they would wait for each other
            secede()
            self._calls = _Calls(get_client(), self._root, self._folder)
        return self._calls.begin(function, *args)


def _threads(client: Client) -> int:
    return sum(client.nthreads().values())


# ---- the executor


class Workers(Executor):
    """Executes work items on the workers of a Dask scheduler."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def worker_count(self) -> int:
        """How many work items are executed at a time."""
        return max(1, _threads(self._client))

    def submit(self, fn: Callable[..., _Answer], /, *args: Any, **kwargs: Any) -> Future[_Answer]:
        """Have a function called with a work item and the warehouse's root, which workers see at the same place."""
        item, root = args
        root = root.absolute()
        call = Call.of(root, item.folder, fn, item, root)
        priority = _IN_THE_BACKGROUND if item.is_check else 0
        # its name, so that the scheduler's logs and pages show it
        key = f"{item.name}-{Path(call.place).stem}"
        begun = self._client.submit(call, pure=False, priority=priority, key=key)
        future: Future[_Answer] = Future()
        begun.add_done_callback(lambda done: _settle(future, repr(item.name), done))
        return future

    def calls(self, root: Path) -> processes.Workers:
        """Return them as who calls functions, beside the pieces of a plan: landing, for instance."""
        return _CallsOfFlow(self._client, root, _APART)


def _settle(future: Future[Any], name: str, done: Any) -> None:
    try:
        future.set_result(_answered(name, done))
    except Exception as error:
        future.set_exception(error)


def _answered(name: str, future: Any) -> Any:
    """Return what came of a call; raise what an operator can do something about."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    try:
        return future.result()
    except KilledWorker as error:
        raise processes.WorkerLost(
            f"{name} ended {error.allowed_failures + 1} workers that were at it, one after the other; they may have "
            "run out of memory. All else of its step is done, and stays: run again, with more memory for each worker."
        ) from error
    except (CancelledError, CommClosedError, TimeoutError) as error:
        raise MachineFault(
            "The Dask scheduler does not answer any more. What was done stays: start it, and run again."
        ) from error


class _Waiting(Future[_Answer]):
    """What is waited for where its result is asked for."""

    def __init__(self, answer: Callable[[], _Answer]) -> None:
        super().__init__()
        self._answer = answer

    def result(self, timeout: float | None = None) -> _Answer:
        """Return what came of it."""
        return self._answer()


# ---- who they are


@contextmanager
def connected(engine: EngineSettings, slurm: SlurmSettings, root: Path) -> Iterator[Workers]:
    """Open the workers that the settings name: those of a scheduler that is there, or those that Slurm starts."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtra(f"engine.runner = '{engine.runner}'", "dask") from error
    with _scheduler(engine, slurm, root) as address:
        try:
            client = distributed.Client(address, timeout=_PATIENCE_S)
        except (OSError, TimeoutError) as error:
            raise MachineFault(f"No Dask scheduler answers at {address}: start `dask scheduler` there.") from error
        with client:
            _require_worker(client, engine, slurm)
            client.forward_logging(level="WARNING")
            yield Workers(client)


def _require_worker(client: Client, engine: EngineSettings, slurm: SlurmSettings) -> None:
    """Raise MachineFault where nobody works; the first worker is waited for, those of Slurm's jobs for longer."""
    if engine.runner == "dask":
        try:
            # who starts the workers and the night in one script need not know how long workers take to begin
            client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError as error:
            raise MachineFault(
                f"The Dask scheduler {engine.scheduler} has no workers: start `dask worker {engine.scheduler}`."
            ) from error
        return
    try:
        client.wait_for_workers(1, timeout=slurm.wait_s)
    except TimeoutError as error:
        raise MachineFault(
            f"Slurm started no worker within {slurm.wait_s:.0f} s. `squeue` says what its jobs wait for, and "
            "slurm.log_folder where what they say is to be kept."
        ) from error


@contextmanager
def _scheduler(engine: EngineSettings, slurm: SlurmSettings, root: Path) -> Iterator[Any]:
    if engine.runner == "dask":
        yield engine.scheduler
        return
    if shutil.which("sbatch") is None:
        raise UsageError("engine.runner = 'slurm' needs Slurm's sbatch on this machine.")
    import dask
    from dask_jobqueue import SLURMCluster

    # what lands first may come before the warehouse
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
            job_script_prologue=[*_exported(), *slurm.prologue],
            log_directory=str(slurm.log_folder or private),
            security=_security(Path(private)),
            scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        ) as cluster,
    ):
        cluster.scale(jobs=slurm.job_count)
        yield cluster


def _exported() -> Iterator[str]:
    """Yield the lines of the shell that set Dask for a worker."""
    for name, value in CONFIGURATION.items():
        yield f"export DASK_{name.upper().replace('.', '__').replace('-', '_')}={value}"
    for name, value in ENVIRONMENT.items():
        yield f"export {name}={value}"


def _security(folder: Path) -> Security:
    """Return what lets nobody in who is not of this run: keys that workers see in a folder, and this user alone."""
    from distributed import Security

    made = Security.temporary()
    written = {}
    for name, text in {"ca_file": made.tls_ca_file, "cert": made.tls_worker_cert, "key": made.tls_worker_key}.items():
        path = folder / name
        path.touch(0o600)
        path.write_text(text)
        written[name] = str(path)
    of_roles = {
        f"tls_{role}_{name}": written[name] for role in ("client", "scheduler", "worker") for name in ("cert", "key")
    }
    return Security(require_encryption=True, tls_ca_file=written["ca_file"], **of_roles)
