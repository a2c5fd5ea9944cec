"""Where work items run: in this process, in processes of this machine, or on Dask workers.

All three are executors as `concurrent.futures` defines them. Importing Great Expectations takes seconds. A
dedicated worker process imports it once a run, while inputs land and are staged, and executes all checks.
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
    # the process that checks starts before this one imports what steps need
    from iosig.flows.steps.items import ItemResult, WorkItem
    from iosig.settings.model import Settings

_Params = ParamSpec("_Params")
_Answer = TypeVar("_Answer")

#: Items that read fewer bytes run in this process if no worker is idle: to start one takes a second.
SMALL_BYTES = 1 << 20


class InlineExecutor(Executor):
    """Calls functions at once, in the thread that submits them."""

    def submit(
        self, fn: Callable[_Params, _Answer], /, *args: _Params.args, **kwargs: _Params.kwargs
    ) -> Future[_Answer]:
        """Call a function, and return a future that is done."""
        future: Future[_Answer] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass
class Engine:
    """Executes the work items of a run.

    executor: for items that read many bytes. checks: for items that need Great Expectations. timeout_s: time limit of
    an item [s]; with one, no item runs in this process, where nothing could end it.
    """

    executor: Executor = field(default_factory=InlineExecutor)
    checks: Executor = field(default_factory=InlineExecutor)
    worker_count: int = 1
    timeout_s: float | None = None

    def submit(self, item: WorkItem, root: Path) -> Future[ItemResult]:
        """Start a work item in the warehouse of that root."""
        from iosig.flows.steps.items import execute

        if item.is_check:
            return self.checks.submit(execute, item, root)
        if self._runs_here(item, root):
            return InlineExecutor().submit(execute, item, root)
        return self.executor.submit(execute, item, root)

    def _runs_here(self, item: WorkItem, root: Path) -> bool:
        if not isinstance(self.executor, ProcessExecutor) or self.timeout_s is not None:
            return False
        # other chunks are executed in parallel to a chunk
        if item.is_chunk or self.executor.has_idle_process:
            return False
        return item.is_smaller_than(root, SMALL_BYTES)

    def run(self, item: WorkItem, root: Path) -> ItemResult:
        """Execute a work item within the time limit. Raises MachineFault if it takes longer; then its process ends."""
        future = self.submit(item, root)
        try:
            return future.result(self.timeout_s)
        except TimeoutError as error:
            if future.done():
                # the item's own error, such as that of a connection
                raise
            for executor in (self.executor, self.checks):
                if isinstance(executor, ProcessExecutor):
                    executor.kill()
            raise TimedOut(
                f"{item.name} took longer than {self.timeout_s:g} s (schedule.step_timeout_s), and was terminated."
            ) from error

    @property
    def remote(self) -> Executor | None:
        """The executor if its workers run on other machines, which can land files, too."""
        return None if isinstance(self.executor, InlineExecutor | ProcessExecutor) else self.executor

    def preload(self, *modules: str) -> None:
        """Have the processes of this machine, if there are any, import modules without waiting for it."""
        if isinstance(self.executor, ProcessExecutor):
            self.executor.preload(*modules)


class TimedOut(MachineFault):
    """A work item took longer than the settings allow."""


def _preload() -> None:
    """Import what checks need, in the process that executes them."""
    with processes.freeze_gc():
        from iosig.expectations import gate

        gate.preload()


@contextmanager
def open_engine(settings: Settings, root: Path, timeout_s: float | None = None) -> Iterator[Engine]:
    """Open the executor of work items that the settings select; it is closed with the block.

    timeout_s: time limit of a work item [s].
    """
    engine = settings.engine
    if engine.executor == "inline":
        yield Engine(timeout_s=timeout_s)
    elif engine.executor == "processes":
        with with_processes(engine.worker_count, timeout_s) as pool:
            yield pool
    else:
        # job scripts, and functions that a scheduler passes on
        settings.require_own_file(f"engine.executor = '{engine.executor}'")
        from iosig.flows import dask_workers

        with dask_workers.connect_workers(engine, settings.slurm, root) as workers:
            yield Engine(workers, workers, workers.worker_count, timeout_s)


@contextmanager
def remote_executor(settings: Settings, root: Path) -> Iterator[Executor | None]:
    """Open the workers of other machines that the settings name; None if they name none."""
    if settings.engine.executor in ("dask", "slurm"):
        with open_engine(settings, root) as engine:
            yield engine.remote
    else:
        yield None


@contextmanager
def with_processes(worker_count: int | None = None, timeout_s: float | None = None) -> Iterator[Engine]:
    """Open processes of this machine, and one that checks, which starts at once.

    worker_count: the number of processes, that of the cores if None.
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
