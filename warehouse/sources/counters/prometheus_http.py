"""Fetch storage counters, as scraped, from a Prometheus server's HTTP API.

`query_range` is unsuitable: at each of its own steps it returns the last value within five minutes. So a counter that
has disappeared seems to continue, and no value has the time of its scrape. `query` with a range, `metric[3600s]`,
returns the samples themselves. Prometheus 3 excludes a sample at the very start of a range, and earlier versions
include it, so this module drops it.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.external.deadlines import DEFAULT_TIMEOUTS, Timeouts
from iosig.warehouse.external.http import RequestError, RequestTimeoutError, Response, fetch
from iosig.warehouse.sources.counters import metrics, prometheus_json
from iosig.warehouse.sources.protocol import Batch, Reading
from iosig.warehouse.sources.rows.json_items import items

#: environment variable that contains a bearer token, for servers behind an authenticating proxy
TOKEN_VARIABLE = "IOSIG_PROMETHEUS_TOKEN"
#: metrics by exporter; HPE's and GSI's lustre_exporter and DDN's lustrefs-exporter use the same names
PRESETS = {
    preset: tuple(name for name in metrics.COLUMNS if name.startswith(f"{preset}_")) for preset in ("lustre", "gpfs")
}
_REMEDY = "Check that Prometheus is running, and that the address is that of its web page."
_MAX_MESSAGE_CHARS = 300
_MAX_ERROR_BYTES = 1 << 16


class ResponseTooLargeError(InputRefused):
    """Raised when the server refuses a response of this size or duration; a smaller range may succeed."""


@dataclass(frozen=True, slots=True)
class Server:
    """Connection parameters of a Prometheus server.

    url: address without credentials. matchers: additional label matchers (`job="lustre"`).
    """

    url: str
    matchers: str = ""
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    authorization: str | None = None

    @classmethod
    def from_url(cls, url: str, matchers: str, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> Server:
        """Parse a URL; credentials are the URL's user and password or, without these, a token from the environment."""
        split = urlsplit(url)
        if split.scheme not in ("http", "https") or not split.hostname:
            raise UsageError(
                f"{_strip_user(url)} is not the address of a Prometheus server, such as http://127.0.0.1:9090."
            )
        credentials = f"{unquote(split.username)}:{unquote(split.password or '')}" if split.username else None
        token = os.environ.get(TOKEN_VARIABLE)
        authorization = (
            f"Basic {b64encode(credentials.encode()).decode()}" if credentials else f"Bearer {token}" if token else None
        )
        return cls(_strip_user(url).rstrip("/"), matchers, timeouts, authorization)

    def read(self, names: Sequence[str], since_s: int, until_s: int, reading: Reading) -> list[Batch]:
        """Fetch metrics in the range (since_s, until_s], in whole seconds since 1970; empty if the server has none.

        Raises InputRefused if the server does not respond, TooMuch if a smaller request may succeed.
        """
        with tempfile.TemporaryDirectory(prefix="iosig-") as folder:
            series = (item for name in names for item in self._series(name, since_s, until_s, Path(folder) / "answer"))
            return [*prometheus_json.read_series(series, reading)]

    def _series(self, name: str, since_s: int, until_s: int, answer: Path) -> Iterator[object]:
        """Yield the series of a metric; only one metric's response is on disk at a time."""
        selector = ",".join(filter(None, (f"__name__={json.dumps(name)}", self.matchers)))
        self._query({"query": f"{{{selector}}}[{until_s - since_s}s]", "time": str(until_s)}, answer)
        for item in items(answer, "data.result", _REMEDY):
            points = item.get("values") if isinstance(item, dict) else None
            # points are in time order
            while isinstance(points, list) and points and _is_not_after(points[0], since_s):
                del points[0]
            if points != []:
                yield item

    def _query(self, parameters: dict[str, str], answer: Path) -> None:
        """Query the server and write its response to a file."""
        # with several Prometheus servers behind one address (Thanos), all must respond
        query = urlencode(parameters | {"partial_response": "false"})
        url = f"{self.url}/api/v1/query?{query}"
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if self.authorization:
            headers["Authorization"] = self.authorization
        try:
            with answer.open("wb") as file:
                received = fetch("GET", url, self.timeouts, file, headers=headers)
        except RequestTimeoutError as error:
            remedy = f"{_REMEDY} Otherwise raise live.timeout_s or live.total_timeout_s in the settings."
            raise InputRefused(f"{self.url} {error}.", remedy) from error
        except RequestError as error:
            raise InputRefused(f"{self.url} {error}.", _REMEDY) from error
        if not 200 <= received.status < 300:
            raise self._build_refusal(received, answer)

    def _build_refusal(self, received: Response, answer: Path) -> InputRefused:
        message = received.reason
        with suppress(ValueError, KeyError, TypeError, zlib.error, OSError):
            body = answer.read_bytes()[:_MAX_ERROR_BYTES]
            is_packed = received.headers.get("Content-Encoding") == "gzip"
            message = json.loads(zlib.decompressobj(31).decompress(body, _MAX_ERROR_BYTES) if is_packed else body)[
                "error"
            ]
        reason = f"{self.url} answered {received.status}: {' '.join(str(message).split())[:_MAX_MESSAGE_CHARS]}."
        if received.status in (401, 403):
            return InputRefused(reason, f"Set {TOKEN_VARIABLE}, or give the user and password in the URL.")
        # the request has too many samples, or timed out in the server or a proxy
        if received.status in (413, 422, 503, 504):
            return ResponseTooLargeError(reason, "Set prometheus.chunk_s lower.")
        return InputRefused(reason, _REMEDY)


def _is_not_after(point: object, since_s: int) -> bool:
    return isinstance(point, list) and bool(point) and isinstance(point[0], int | float) and point[0] <= since_s


def _strip_user(url: str) -> str:
    split = urlsplit(url)
    return urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2]))
