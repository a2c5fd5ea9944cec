"""Stopping in order."""

from __future__ import annotations

import os
import signal

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
