"""The part of Prometheus' HTTP API that is asked for, which tells of samples that a test has written down."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_QUERY = re.compile(r'\{__name__="([^"]+)"(?:,(\w+)="([^"]*)")?\}\[(\d+)s\]')


@dataclass
class FakePrometheus:
    """Series by labels, each with instants [s] and values; and what goes wrong.

    is_open: whether a range leaves its own start out, as since version 3. most_samples: more at once are refused.
    """

    url: str = ""
    series: list[tuple[dict[str, str], list[tuple[float, str]]]] = field(default_factory=list)
    is_open: bool = True
    most_samples: int | None = None
    status: int = 200
    cut_bytes: int = 0
    token: str | None = None
    queries: list[dict[str, str]] = field(default_factory=list)

    def add(self, name: str, values: dict[float, str], **labels: str) -> None:
        """Let a series have values at instants, beside those it has."""
        told = {"__name__": name, "instance": "oss1:9169", "component": "ost", "target": "fs1-OST0001", **labels}
        known = next((points for known, points in self.series if known == told), None)
        if known is None:
            self.series.append((told, known := []))
        known.extend(values.items())

    def answer(self, query: str, at_s: float) -> tuple[int, dict[str, Any]]:
        """Return what is answered: status and document."""
        if self.status != 200:
            return self.status, {"status": "error", "errorType": "internal", "error": "it is\nbroken"}
        match = _QUERY.fullmatch(query)
        if match is None:
            return 400, {"status": "error", "errorType": "bad_data", "error": f"cannot parse {query}"}
        name, label, value, length_s = match.groups()
        found = []
        for labels, points in self.series:
            own = [[at, text] for at, text in points if self._is_in(at, at_s - int(length_s), at_s)]
            if labels["__name__"] == name and own and (label is None or labels.get(label) == value):
                found.append({"metric": labels, "values": own})
        if self.most_samples is not None and sum(len(one["values"]) for one in found) > self.most_samples:
            said = "query processing would load too many samples into memory in query execution"
            return 422, {"status": "error", "errorType": "execution", "error": said}
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": found}}

    def _is_in(self, at: float, first: float, last: float) -> bool:
        return (first < at if self.is_open else first <= at) and at <= last


@contextmanager
def fake_prometheus() -> Iterator[FakePrometheus]:
    """Start a server on the loopback."""
    fake = FakePrometheus()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            split = urlsplit(self.path)
            told = {name: value for name, (value,) in parse_qs(split.query).items()}
            fake.queries.append(told)
            if fake.token is not None and self.headers["Authorization"] != fake.token:
                status, document = 401, {}
            else:
                status, document = fake.answer(told["query"], float(told["time"]))
            content = gzip.compress(json.dumps(document).encode())
            self.send_response(status)
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(content[: len(content) - fake.cut_bytes])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
