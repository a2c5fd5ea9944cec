"""Stopping in order, and the end of a process at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from flows.stopping import Stop, stopped_by_signals


def test_a_signal_may_set_it_whatever_the_wait_is_about() -> None:
    for _ in range(300):
        stop = Stop()
        before = signal.signal(signal.SIGALRM, lambda *_, stop=stop: stop.set())
        try:
            signal.setitimer(signal.ITIMER_REAL, 5e-4)
            while not stop.is_set():
                stop.wait(1e-5)
        finally:
            signal.signal(signal.SIGALRM, before)


def test_one_signal_stops_in_order_and_the_next_one_at_once() -> None:
    stop, before = Stop(), signal.getsignal(signal.SIGTERM)
    with stopped_by_signals(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == before


_LEAVING = """
import atexit, sys, threading, time
from flows.stopping import left_at_once

class Told:
    def __del__(self):
        print("taken apart")

told = Told()
left_at_once(lambda: {code})
atexit.register(print, "what a module does at its end")
threading.Thread(target=lambda: (time.sleep(0.2), print("a thread ended"))).start()
print("said")
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("code", "ends_with", "last"), [(5, 5, []), (None, 3, ["taken apart"])], ids=["at once", "as ever"]
)
def test_a_process_that_is_left_at_once_takes_nothing_apart(code: int | None, ends_with: int, last: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LEAVING.format(code=code)], capture_output=True, text=True, check=False
    )
    told = ["said", "a thread ended", "what a module does at its end", *last]
    assert (ended.returncode, ended.stdout.splitlines(), ended.stderr) == (ends_with, told, "")
