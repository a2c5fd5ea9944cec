"""Who does pieces of work: this process, several where there are many, and a child for those that check.

Great Expectations takes seconds of one core to import. In a child it runs beside the landing and the staging; in a
thread of this process it would only slow them down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from iosig.warehouse import processes
from iosig.warehouse.errors import MachineFault

if TYPE_CHECKING:
    # what starts a child imports little itself: both import what they need side by side
    from iosig.flows.steps.pieces import Done, Piece
    from iosig.settings.model import Settings

_PATIENCE_S = 2.0
#: so many pieces of a kind are worth processes, which take a second to start; and so many where they are there already
_MANY, _SEVERAL = 4, 2


class Executor(Protocol):
    """Who does pieces of work, in whatever process or machine sees the warehouse."""

    def begin(self, root: Path, piece: Piece) -> Future[Done]:
        """Begin a piece, in the warehouse of that root."""

    def each(self, root: Path, pieces: Sequence[Piece]) -> Iterator[Done]:
        """Do pieces of which none waits for another, and yield each as it ends."""

    def end(self) -> None:
        """Be told that nothing more will be asked."""


class Inline:
    """Does pieces in this process, at once."""

    def begin(self, root: Path, piece: Piece) -> Future[Done]:
        """Do a piece."""
        ended: Future[Done] = Future()
        ended.set_result(piece.do(root))
        return ended

    def each(self, root: Path, pieces: Sequence[Piece]) -> Iterator[Done]:
        """Do one piece after the other."""
        yield from (self.begin(root, piece).result() for piece in pieces)

    def end(self) -> None:
        """Do nothing."""


class _BesideChild(Inline):
    """Does pieces in this process, and many of a kind in several, which stay: each takes a second to start.

    Those that check go to a child, which does one after the other meanwhile.
    """

    def __init__(self, connection: Connection, waiting: ThreadPoolExecutor, worker_count: int | None) -> None:
        self._connection = connection
        self._waiting = waiting
        self._worker_count = processes.workers(worker_count)
        self._pool = processes.Pool(self._worker_count)

    def begin(self, root: Path, piece: Piece) -> Future[Done]:
        """Do a piece, or have it done."""
        if piece.is_check:
            return self._waiting.submit(self._ask, root, piece)
        with processes.offered(self._pool):
            return super().begin(root, piece)

    def each(self, root: Path, pieces: Sequence[Piece]) -> Iterator[Done]:
        """Do few pieces one after the other, many in several processes, a bounded number under way."""
        is_there = self._pool.has_begun or processes.are_shared()
        if len(pieces) < (_SEVERAL if is_there else _MANY) or self._worker_count == 1:
            yield from super().each(root, pieces)
            return
        # what is of no day takes longest: at the end one process would be at it, and none at anything else
        first = sorted(pieces, key=lambda piece: piece.days != (None,))
        with processes.pool(self._worker_count, self._pool) as pool:
            yield from _as_they_end(pool, root, first)

    def end(self) -> None:
        """Let the child and the processes end while this one goes on."""
        self._connection.close()
        self._pool.end()

    def _ask(self, root: Path, piece: Piece) -> Done:
        try:
            self._connection.send((root, piece))
            result: Done | BaseException = self._connection.recv()
        except (EOFError, OSError) as error:
            raise MachineFault(
                "The process that checks ended before it answered; the system may have run out of memory. Run again."
            ) from error
        if isinstance(result, BaseException):
            raise result
        return result


def _as_they_end(pool: processes.Workers, root: Path, pieces: Sequence[Piece]) -> Iterator[Done]:
    under_way: set[Future[Done]] = set()
    for piece in pieces:
        under_way.add(pool.begin(piece.do, root))
        if len(under_way) >= pool.worker_count * processes.AHEAD:
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in ended)
    yield from (future.result() for future in under_way)


def _answer(connection: Connection) -> None:
    """Do pieces until nobody listens any more."""
    processes.ending_at_once()
    # what is imported is not looked through again after each check, either
    with processes.kept():
        from iosig.expectations import gate

        gate.preload()
    with suppress(EOFError, OSError):
        while True:
            connection.send(_done(*connection.recv()))


def _done(root: Path, piece: Piece) -> Done | Exception:
    """Do a piece; an error is raised again where the piece was begun."""
    try:
        return piece.do(root)
    except Exception as error:
        return error


@contextmanager
def opened(settings: Settings, root: Path) -> Iterator[Executor]:
    """Open who does the pieces of a night, as the settings say; what was started for it ends with the block."""
    engine = settings.engine
    if engine.runner == "inline":
        yield Inline()
    elif engine.runner == "processes":
        with with_child(engine.worker_count) as executor:
            yield executor
    else:
        # job scripts, and functions that a scheduler passes on
        settings.require_own_file(f"engine.runner = '{engine.runner}'")
        from iosig.flows import dask_workers

        with dask_workers.connected(engine, settings.slurm, root) as found, processes.done_by(found.calls(root)):
            yield found


@contextmanager
def helped(settings: Settings, root: Path) -> Iterator[None]:
    """Have many calls of a block be done by workers of other machines, where the settings say so."""
    with ExitStack() as stack:
        if settings.engine.runner in ("dask", "slurm"):
            stack.enter_context(opened(settings, root))
        yield


@contextmanager
def with_child(worker_count: int | None = None) -> Iterator[Executor]:
    """Start a child that does the pieces that check; it ends with the block, whatever it is doing.

    worker_count: processes that do many pieces of a kind, as many as there are cores if None.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs,), name="iosig-checks", daemon=True)
    with processes.uninterrupted():
        process.start()
    # The child has its own copy: when it ends, reading here ends too.
    theirs.close()
    # One thread: calls keep their order, and so do answers.
    waiting = ThreadPoolExecutor(1, "checks")
    executor = _BesideChild(ours, waiting, worker_count)
    try:
        yield executor
    finally:
        executor.end()
        waiting.shutdown(wait=False, cancel_futures=True)
        # An idle child ends by itself and tidies up; a busy one is not waited for.
        process.join(_PATIENCE_S)
        process.kill()
        process.join()
