"""A Prometheus server asked by its HTTP API for counters of storage, as it scraped them.

`query_range` is not asked: it makes values at steps of its own, each the last one within five minutes, so that a
counter that has gone seems to stay, and none has the time of its scrape. `query` with a range, `metric[3600s]`, gives
the samples themselves. Prometheus 3 leaves out a sample at the very start of a range, earlier ones do not: here it is
dropped.
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
from iosig.warehouse.external.http import Answer, RequestFailed, TimedOut, fetch
from iosig.warehouse.sources.counters import metrics, prometheus_json
from iosig.warehouse.sources.protocol import Batch, Reading
from iosig.warehouse.sources.rows.json_items import items

#: environment variable with a bearer token, for servers behind one who asks for it
TOKEN_VARIABLE = "IOSIG_PROMETHEUS_TOKEN"
#: the metrics of exporters: HPE's and GSI's lustre_exporter and DDN's lustrefs-exporter call them the same
PRESETS = {
    preset: tuple(name for name in metrics.COLUMNS if name.startswith(f"{preset}_")) for preset in ("lustre", "gpfs")
}
_REMEDY = "Look whether Prometheus is up, and whether the address is that of its web page."
_SAID_CHARS = 300
_SAID_BYTES = 1 << 16


class TooMuch(InputRefused):
    """An answer that a server does not give, for it would be too long, or take too long: less may be asked for."""


@dataclass(frozen=True, slots=True)
class Server:
    """A Prometheus server: its URL without credentials, label matchers (`job="lustre"`), time limits, credentials."""

    url: str
    matchers: str = ""
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    authorization: str | None = None

    @classmethod
    def of(cls, url: str, matchers: str, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> Server:
        """Return the server of a URL, whose user and password, else a token of the environment, are its credentials."""
        split = urlsplit(url)
        if split.scheme not in ("http", "https") or not split.hostname:
            raise UsageError(f"{_without_user(url)} is no address of a Prometheus server, as http://127.0.0.1:9090.")
        given = f"{unquote(split.username)}:{unquote(split.password or '')}" if split.username else None
        token = os.environ.get(TOKEN_VARIABLE)
        told = f"Basic {b64encode(given.encode()).decode()}" if given else f"Bearer {token}" if token else None
        return cls(_without_user(url).rstrip("/"), matchers, timeouts, told)

    def read(self, names: Sequence[str], since_s: int, until_s: int, reading: Reading) -> list[Batch]:
        """Return what some metrics say in (since_s, until_s], whole seconds since 1970; nothing if they are not there.

        Raises InputRefused where the server does not answer, TooMuch where less may be asked for.
        """
        with tempfile.TemporaryDirectory(prefix="iosig-") as folder:
            series = (item for name in names for item in self._series(name, since_s, until_s, Path(folder) / "answer"))
            return [*prometheus_json.read_series(series, reading)]

    def _series(self, name: str, since_s: int, until_s: int, answer: Path) -> Iterator[object]:
        """Yield the series of a metric, a document at a time: no more than one metric's answer is on disk at once."""
        selector = ",".join(filter(None, (f"__name__={json.dumps(name)}", self.matchers)))
        self._ask({"query": f"{{{selector}}}[{until_s - since_s}s]", "time": str(until_s)}, answer)
        for item in items(answer, "data.result", _REMEDY):
            points = item.get("values") if isinstance(item, dict) else None
            # they come in the order of time
            while isinstance(points, list) and points and _is_until(points[0], since_s):
                del points[0]
            if points != []:
                yield item

    def _ask(self, asks: dict[str, str], answer: Path) -> None:
        """Write what the server answers to a query into a file."""
        # of several Prometheus behind one address (Thanos) all have to answer
        query = urlencode(asks | {"partial_response": "false"})
        url = f"{self.url}/api/v1/query?{query}"
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if self.authorization:
            headers["Authorization"] = self.authorization
        try:
            with answer.open("wb") as file:
                received = fetch("GET", url, self.timeouts, file, headers=headers)
        except TimedOut as error:
            remedy = f"{_REMEDY} Otherwise raise live.timeout_s or live.total_timeout_s in the settings."
            raise InputRefused(f"{self.url} {error}.", remedy) from error
        except RequestFailed as error:
            raise InputRefused(f"{self.url} {error}.", _REMEDY) from error
        if not 200 <= received.status < 300:
            raise self._refused(received, answer)

    def _refused(self, received: Answer, answer: Path) -> InputRefused:
        said = received.reason
        with suppress(ValueError, KeyError, TypeError, zlib.error, OSError):
            body = answer.read_bytes()[:_SAID_BYTES]
            is_packed = received.headers.get("Content-Encoding") == "gzip"
            said = json.loads(zlib.decompressobj(31).decompress(body, _SAID_BYTES) if is_packed else body)["error"]
        reason = f"{self.url} answered {received.status}: {' '.join(str(said).split())[:_SAID_CHARS]}."
        if received.status in (401, 403):
            return InputRefused(reason, f"Set {TOKEN_VARIABLE}, or give the user and password in the URL.")
        # too many samples at once, or a time-out of the server's own or of one before it
        if received.status in (413, 422, 503, 504):
            return TooMuch(reason, "Set prometheus.chunk_s lower.")
        return InputRefused(reason, _REMEDY)


def _is_until(point: object, since_s: int) -> bool:
    return isinstance(point, list) and bool(point) and isinstance(point[0], int | float) and point[0] <= since_s


def _without_user(url: str) -> str:
    split = urlsplit(url)
    return urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2]))
