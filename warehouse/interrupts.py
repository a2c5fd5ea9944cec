"""Stopping in order: what goes on until a signal comes, with what it has begun; and the end of a process, at once."""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

_PATIENCE_S = 2.0


class Stop:
    """Whether to stop, and a wait that ends then; it may be set in a signal's handler.

    An event of `threading` may not: its lock may be held by the very wait that the signal interrupts.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._woken: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        """Return whether to stop."""
        return self._is_set

    def set(self) -> None:
        """Let whoever waits go on, and stop."""
        self._is_set = True
        self._woken.put(None)

    def wait(self, timeout_s: float) -> None:
        """Wait that long, or until it is set."""
        with suppress(Empty):
            self._woken.get(timeout=timeout_s)


@contextmanager
def stopped_by_signals(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the work in order; whoever cannot wait sends a second one."""

    def end(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupted_by(interrupt: Callable[[], None], give_up: Callable[[], None] | None = None) -> Iterator[None]:
    """Have Ctrl-C reach what this block does in a library that may not look for it; in the main thread alone.

    interrupt: called by another thread. What the library raises then is a KeyboardInterrupt here. give_up: called by
    that thread where the block has not ended two seconds later.
    """
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    interrupts: list[int] = []

    def heed() -> None:
        while signals := os.read(told, 1):
            if signals[0] == signal.SIGINT:
                interrupt()
                # the block's end closes the pipe, which is readable then
                if give_up is not None and not select.select([told], [], [], _PATIENCE_S)[0]:
                    give_up()

    heeding = threading.Thread(target=heed, name="interrupts", daemon=True)
    heeding.start()
    woken = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    # nothing is raised in the middle of what is tidied up
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    except Exception:
        if not interrupts:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(woken)
        os.close(tell)
        heeding.join()
        os.close(told)
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def signal_errors_kept() -> Iterator[None]:
    """Raise what a signal handler raised, where DuckDB replaced it by "Query interrupted".

    DuckDB runs handlers in the middle of a query and drops their exception, such as Prefect's on SIGTERM. Python runs
    handlers in the main thread only, so this does nothing in other threads. Do not decorate a flow with it: Prefect
    resolves a flow's annotations in the module of the decorated function.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received, send = os.pipe()
    os.set_blocking(received, False)
    os.set_blocking(send, False)
    before = signal.set_wakeup_fd(send, warn_on_full_buffer=False)
    try:
        yield
    except Exception as error:
        if is_interrupt(error):
            _call_handlers(received)
        raise
    finally:
        signal.set_wakeup_fd(before)
        os.close(send)
        os.close(received)


def _call_handlers(received: int) -> None:
    """Call the handlers of the signals whose numbers a wakeup pipe holds."""
    with suppress(BlockingIOError):
        for number in os.read(received, select.PIPE_BUF):
            handler = signal.getsignal(number)
            if callable(handler):
                handler(number, None)


def is_interrupt(error: Exception) -> bool:
    """Return whether an error is how DuckDB tells of Ctrl-C."""
    return type(error).__name__ == "InterruptException" or str(error) == "Query interrupted"


def left_at_once(code: Callable[[], int | None]) -> None:
    """Have this process end without taking apart what it imported, which takes up to a second of a core.

    All else that its end brings is done before: threads are waited for, and modules that are imported after this do
    what they do then. code: with what it ends, asked for at the end; None lets it end as ever.
    """
    # what is registered first comes last
    atexit.register(_leave, code)


def _leave(code: Callable[[], int | None]) -> None:
    found = code()
    if found is None:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(found)
