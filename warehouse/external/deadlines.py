"""Limit the time that a server may stay silent, and the total time of a request."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of one request [s]: for connecting, for each wait for data, and in total.

    The total bounds a server that sends one byte at a time.
    """

    timeout_s: float = 300.0
    total_timeout_s: float = 3600.0


DEFAULT_TIMEOUTS = Timeouts()


class Deadline:
    """Shuts a socket down after a time limit, regardless of the code that reads from it, with or without TLS.

    A socket's own timeout restarts with each byte, so it does not end a transfer of one byte at a time.
    """

    def __init__(self, connected: socket.socket, limit_s: float) -> None:
        # A duplicate stays valid when TLS takes over the original's descriptor.
        self._socket = connected.dup()
        self._lock = threading.Lock()
        self.is_expired = False
        self._timer = threading.Timer(limit_s, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _expire(self) -> None:
        with self._lock, suppress(OSError):
            self.is_expired = True
            self._socket.shutdown(socket.SHUT_RDWR)

    def cancel(self) -> None:
        """Cancel the time limit; the socket stays open, and its owner closes it."""
        self._timer.cancel()
        with self._lock:
            self._socket.close()
