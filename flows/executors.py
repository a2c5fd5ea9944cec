"""Run work items in this process, in processes of this machine, or on Dask workers.

All three are executors as `concurrent.futures` defines them. Checks need Great Expectations, which takes seconds to
import. A dedicated worker process imports it once per run, while inputs land and are staged, and executes all checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from iosig.warehouse import processes
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.processes import ProcessExecutor

if TYPE_CHECKING:
    # imported lazily: the process for checks must start before this process imports the dependencies of steps
    from iosig.flows.steps.items import ItemResult, WorkItem
    from iosig.settings.model import Settings

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

#: items that read fewer bytes run in this process if no worker is idle, since starting one takes a second
SMALL_BYTES = 1 << 20


class InlineExecutor(Executor):
    """Calls functions at once, in the thread that submits them."""

    def submit(
        self, fn: Callable[_Params, _Result], /, *args: _Params.args, **kwargs: _Params.kwargs
    ) -> Future[_Result]:
        """Call a function, and return a completed future."""
        future: Future[_Result] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass
class Engine:
    """Executes the work items of a run.

    executor: for items that read many bytes. checks: for items that need Great Expectations. timeout_s: time limit of
    an item [s]; if it is set, no item runs in this process, where nothing could interrupt it.
    """

    executor: Executor = field(default_factory=InlineExecutor)
    checks: Executor = field(default_factory=InlineExecutor)
    worker_count: int = 1
    timeout_s: float | None = None

    def submit(self, item: WorkItem, root: Path) -> Future[ItemResult]:
        """Start a work item in the warehouse at `root`."""
        from iosig.flows.steps.items import execute

        if item.is_check:
            return self.checks.submit(execute, item, root)
        if self._runs_here(item, root):
            return InlineExecutor().submit(execute, item, root)
        return self.executor.submit(execute, item, root)

    def _runs_here(self, item: WorkItem, root: Path) -> bool:
        if not isinstance(self.executor, ProcessExecutor) or self.timeout_s is not None:
            return False
        # chunks run in parallel with other chunks
        if item.is_chunk or self.executor.has_idle_process:
            return False
        return item.is_smaller_than(root, SMALL_BYTES)

    def run(self, item: WorkItem, root: Path) -> ItemResult:
        """Execute a work item. If it exceeds the time limit, its process is killed and MachineFault is raised."""
        future = self.submit(item, root)
        try:
            return future.result(self.timeout_s)
        except TimeoutError as error:
            if future.done():
                # a timeout that the item itself raised, such as that of a connection
                raise
            for executor in (self.executor, self.checks):
                if isinstance(executor, ProcessExecutor):
                    executor.kill()
            raise WorkTimeoutError(
                f"{item.name} took longer than {self.timeout_s:g} s (schedule.step_timeout_s), and was terminated."
            ) from error

    @property
    def remote(self) -> Executor | None:
        """The executor if its workers run on other machines, which can also land files; otherwise None."""
        return None if isinstance(self.executor, InlineExecutor | ProcessExecutor) else self.executor

    def preload(self, *modules: str) -> None:
        """Start importing modules in the processes of this machine, if any, and return at once."""
        if isinstance(self.executor, ProcessExecutor):
            self.executor.preload(*modules)


class WorkTimeoutError(MachineFault):
    """A work item took longer than the settings allow."""


def _preload() -> None:
    """Import the dependencies of checks in the process that executes checks."""
    with processes.freeze_gc():
        from iosig.expectations import gate

        gate.preload()


@contextmanager
def open_engine(settings: Settings, root: Path, timeout_s: float | None = None) -> Iterator[Engine]:
    """Open the executor that the settings select for the duration of the block.

    timeout_s: time limit of a work item [s].
    """
    engine = settings.engine
    if engine.executor == "inline":
        yield Engine(timeout_s=timeout_s)
    elif engine.executor == "processes":
        with with_processes(engine.worker_count, timeout_s) as pool:
            yield pool
    else:
        # this executor runs job scripts, and functions that a scheduler forwards
        settings.require_own_file(f"engine.executor = '{engine.executor}'")
        from iosig.flows import dask_workers

        with dask_workers.connect_workers(engine, settings.slurm, root) as workers:
            yield Engine(workers, workers, workers.worker_count, timeout_s)


@contextmanager
def remote_executor(settings: Settings, root: Path) -> Iterator[Executor | None]:
    """Open the workers on other machines that the settings select; yield None if all workers run on this machine."""
    if settings.engine.executor in ("dask", "slurm"):
        with open_engine(settings, root) as engine:
            yield engine.remote
    else:
        yield None


@contextmanager
def with_processes(worker_count: int | None = None, timeout_s: float | None = None) -> Iterator[Engine]:
    """Open a pool of processes on this machine, and one process for checks, which starts at once.

    worker_count: the number of processes; None for the number of cores.
    """
    count = processes.workers(worker_count)
    executor = ProcessExecutor(count) if count > 1 or timeout_s is not None else InlineExecutor()
    checks = ProcessExecutor(1)
    preloaded = checks.submit(_preload)
    try:
        yield Engine(executor, checks, count, timeout_s)
    finally:
        if not preloaded.done():
            checks.kill()
        checks.shutdown()
        executor.shutdown()
