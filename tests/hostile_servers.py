"""Servers on the loopback that behave badly: they stay silent, drip, or redirect to another server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DRIP_S = 0.05


@contextmanager
def tcp_server(start: bytes = b"", drip: bytes | None = None) -> Iterator[int]:
    """Accept connections, send `start`, then nothing, or `drip` again and again; yields the port."""
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(start)
            while not over.wait(DRIP_S):
                if drip is not None:
                    connection.sendall(drip)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        over.set()
        listener.shutdown(socket.SHUT_RDWR)


@dataclass
class Recorded:
    """An HTTP server, and the requests that reached it: method, path and headers in lower case."""

    url: str
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def http_server(answer: Callable[[str], tuple[int, dict[str, str], bytes]]) -> Iterator[Recorded]:
    """Answer each path with a status, headers and a body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            recorded.requests.append((self.command, self.path, headers))
            status, told, body = answer(self.path)
            self.send_response(status)
            for name, value in (told | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recorded = Recorded(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield recorded
    finally:
        server.shutdown()
        server.server_close()
