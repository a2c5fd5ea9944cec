"""Test orderly interruption and immediate termination of a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import duckdb
import pytest

from iosig.warehouse.interrupts import Stop, forward_interrupts, is_interrupt, reraise_signal_errors, stop_on_signals


def test_stop_can_be_set_by_a_signal_during_wait() -> None:
    for _ in range(300):
        stop = Stop()
        before = signal.signal(signal.SIGALRM, lambda *_, stop=stop: stop.set())
        try:
            signal.setitimer(signal.ITIMER_REAL, 5e-4)
            while not stop.is_set():
                stop.wait(1e-5)
        finally:
            signal.signal(signal.SIGALRM, before)


def test_first_signal_stops_in_order_and_second_kills() -> None:
    stop, before = Stop(), signal.getsignal(signal.SIGTERM)
    with stop_on_signals(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == before


def test_interrupt_ends_a_running_query() -> None:
    """Whether DuckDB itself stops while it streams a result depends on its version."""
    connection, before = duckdb.connect(), (signal.set_wakeup_fd(-1), signal.getsignal(signal.SIGINT))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), forward_interrupts(connection.interrupt):
        connection.execute("select count(*) from range(100000000000), range(10) where 1 = random()").fetchall()
    assert (signal.set_wakeup_fd(before[0]), signal.getsignal(signal.SIGINT)) == (-1, before[1])


def test_uninterrupted_query_returns_or_raises_normally() -> None:
    connection = duckdb.connect()
    with forward_interrupts(connection.interrupt):
        assert connection.execute("select 1").fetchall() == [(1,)]
    with pytest.raises(duckdb.CatalogException), forward_interrupts(connection.interrupt):
        connection.execute("from nothing")


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (RuntimeError("Query interrupted"), True),
        (duckdb.InterruptException("INTERRUPT Error: Interrupted!"), True),
        (RuntimeError("A query"), False),
        (duckdb.ProgrammingError("Interrupted"), False),
    ],
)
def test_interrupts_are_distinguished_from_faults(error: Exception, is_one: bool) -> None:
    assert is_interrupt(error) == is_one


class Terminated(BaseException):
    """The exception that a handler raises."""


def raise_terminated(*_: object) -> None:
    raise Terminated


def divide_after_alarm(divisor: int) -> float:
    signal.raise_signal(signal.SIGALRM)
    return 1 / divisor


class TestSignalErrorsKept:
    @pytest.mark.slow
    def test_query_raises_exception_of_signal_handler(self) -> None:
        connection, before = duckdb.connect(), signal.signal(signal.SIGALRM, raise_terminated)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(Terminated), reraise_signal_errors():
                # of bounded duration, in case a version of DuckDB ignores signals
                connection.sql("select sum(a.range * b.range) from range(1000000) a, range(10000) b").fetchall()
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_interrupt_without_a_signal_is_not_changed(self) -> None:
        with pytest.raises(RuntimeError, match="Query interrupted"), reraise_signal_errors():
            raise RuntimeError("Query interrupted")

    def test_other_error_after_a_signal_is_not_changed(self) -> None:
        before = signal.signal(signal.SIGALRM, lambda *_: None)
        try:
            with pytest.raises(ZeroDivisionError), reraise_signal_errors():
                divide_after_alarm(0)
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_wakeup_file_descriptor_is_restored(self) -> None:
        before = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(before)
        with reraise_signal_errors():
            pass
        after = signal.set_wakeup_fd(before)
        assert after == before


_LEAVING = """
import atexit, sys, threading, time
from iosig.warehouse.interrupts import exit_immediately

class Told:
    def __del__(self):
        print("taken apart")

told = Told()
exit_immediately(lambda: {code})
atexit.register(print, "what a module does at its end")
threading.Thread(target=lambda: (time.sleep(0.2), print("a thread ended"))).start()
print("said")
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("code", "ends_with", "last"), [(5, 5, []), (None, 3, ["taken apart"])], ids=["at once", "as ever"]
)
def test_immediate_exit_skips_destructors(code: int | None, ends_with: int, last: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LEAVING.format(code=code)], capture_output=True, text=True, check=False
    )
    told = ["said", "a thread ended", "what a module does at its end", *last]
    assert (ended.returncode, ended.stdout.splitlines(), ended.stderr) == (ends_with, told, "")
