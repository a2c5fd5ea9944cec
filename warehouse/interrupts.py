"""Handle interruption by signals in an orderly way, and exit a process fast."""

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
    """Stop flag with an interruptible wait, safe to set in a signal handler.

    A `threading.Event` is not safe there, because the interrupted wait may hold its lock.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._woken: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        """Return whether a stop was requested."""
        return self._is_set

    def set(self) -> None:
        """Request a stop and wake up the waiting thread."""
        self._is_set = True
        self._woken.put(None)

    def wait(self, timeout_s: float) -> None:
        """Wait for the timeout, or until a stop is requested."""
        with suppress(Empty):
            self._woken.get(timeout=timeout_s)


@contextmanager
def stop_on_signals(stop: Stop) -> Iterator[None]:
    """Request a stop on Ctrl-C or SIGTERM; a second signal ends the process immediately."""

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
def forward_interrupts(interrupt: Callable[[], None], give_up: Callable[[], None] | None = None) -> Iterator[None]:
    """Forward Ctrl-C to a library call that may not check for signals; main thread only.

    interrupt: runs in another thread. Any exception that the library then raises becomes a KeyboardInterrupt. give_up:
    runs in that thread if the block has not ended within two seconds.
    """
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    interrupts: list[int] = []

    def heed() -> None:
        while signals := os.read(receiver, 1):
            if signals[0] == signal.SIGINT:
                interrupt()
                # the end of the block closes the pipe, which then becomes readable
                if give_up is not None and not select.select([receiver], [], [], _PATIENCE_S)[0]:
                    give_up()

    heeding = threading.Thread(target=heed, name="interrupts", daemon=True)
    heeding.start()
    woken = signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    # must not raise during cleanup
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    except Exception:
        if not interrupts:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(woken)
        os.close(sender)
        heeding.join()
        os.close(receiver)
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def reraise_signal_errors() -> Iterator[None]:
    """Re-raise a signal handler's exception that DuckDB has replaced by "Query interrupted".

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
    """Call the Python handlers of the signals that a wakeup pipe has received."""
    with suppress(BlockingIOError):
        for number in os.read(received, select.PIPE_BUF):
            handler = signal.getsignal(number)
            if callable(handler):
                handler(number, None)


def is_interrupt(error: Exception) -> bool:
    """Return whether an error is DuckDB's report of Ctrl-C."""
    return type(error).__name__ == "InterruptException" or str(error) == "Query interrupted"


def exit_immediately(code: Callable[[], int | None]) -> None:
    """Exit this process without the interpreter's teardown, which can take a second of CPU time.

    Threads are joined first, and exit handlers registered after this call still run. code: called last; returns the
    exit code, or None to request a regular exit.
    """
    # exit handlers run in reverse order of registration
    atexit.register(_leave, code)


def _leave(code: Callable[[], int | None]) -> None:
    exit_code = code()
    if exit_code is None:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(exit_code)
