"""Who holds tables to their suites: this process, or a child that has imported Great Expectations meanwhile.

The import takes seconds of one core. In a child it runs beside the landing and the staging; in a thread of
this process it would only slow them down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import polars as pl

    from expectations.gate import Checked
    from warehouse.contracts import Table


_PATIENCE_S = 2.0


class Checker(Protocol):
    """What a run needs of the room of checks."""

    def check(self, table: Table, frame: pl.DataFrame, parameters: Mapping[str, float]) -> Future[Checked]:
        """Begin to hold a table to its suite."""

    def build_docs(self, validations: Sequence[Mapping[str, Any]], into: Path) -> Path:
        """Write the Data Docs."""

    def end(self) -> None:
        """Be told that nothing more will be asked."""


class InProcess:
    """Checks in this process, at once."""

    def check(self, table: Table, frame: pl.DataFrame, parameters: Mapping[str, float]) -> Future[Checked]:
        """Hold a table to its suite."""
        found: Future[Checked] = Future()
        found.set_result(_check(table, frame, parameters))
        return found

    def build_docs(self, validations: Sequence[Mapping[str, Any]], into: Path) -> Path:
        """Write the Data Docs."""
        return _build_docs(validations, into)

    def end(self) -> None:
        """Do nothing."""


def _check(table: Table, frame: pl.DataFrame, parameters: Mapping[str, float]) -> Checked:
    from expectations import gate

    return gate.check(table, frame, parameters)


def _build_docs(validations: Sequence[Mapping[str, Any]], into: Path) -> Path:
    from expectations import docs

    return docs.build(validations, into)


class _InChild:
    """Checks in a child process, which answers one call after the other while this one goes on."""

    def __init__(self, connection: Connection, waiting: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._waiting = waiting

    def check(self, table: Table, frame: pl.DataFrame, parameters: Mapping[str, float]) -> Future[Checked]:
        """Have a table held to its suite."""
        return self._waiting.submit(self._call, _check, table, frame, parameters)

    def build_docs(self, validations: Sequence[Mapping[str, Any]], into: Path) -> Path:
        """Have the Data Docs written."""
        path: Path = self._waiting.submit(self._call, _build_docs, validations, into).result()
        return path

    def end(self) -> None:
        """Let the child end while this process goes on: it takes most of a second."""
        self._connection.close()

    def _call(self, function: Callable[..., Any], *arguments: object) -> Any:
        try:
            self._connection.send((function, arguments))
            result = self._connection.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError("The process that checks ended before it answered; run again.") from error
        if isinstance(result, BaseException):
            raise result
        return result


def _answer(connection: Connection) -> None:
    """Answer calls until nobody listens any more."""
    from expectations import gate

    gate.preload()
    while True:
        try:
            function, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            connection.send(function(*arguments))
        except Exception as error:
            # It is raised again where the call was made.
            connection.send(error)


@contextmanager
def in_child() -> Iterator[Checker]:
    """Start a child that checks; it ends with the block, whatever it is doing."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs,), name="iosig-checks", daemon=True)
    process.start()
    # The child has its own copy: when it ends, reading here ends too.
    theirs.close()
    # One thread: calls keep their order, and so do answers.
    waiting = ThreadPoolExecutor(1, "checks")
    try:
        yield _InChild(ours, waiting)
    finally:
        waiting.shutdown(wait=False, cancel_futures=True)
        ours.close()
        # An idle child ends by itself and tidies up; a busy one is not waited for.
        process.join(_PATIENCE_S)
        process.kill()
        process.join()
