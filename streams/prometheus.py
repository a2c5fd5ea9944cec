"""Land new samples from a Prometheus server, in time windows that each land atomically."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from iosig.settings.model import Settings
from iosig.streams.landing import Arrival, ReadOptions, make_reading, names_in
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.sources.counters import prometheus
from iosig.warehouse.sources.counters.prometheus_http import PRESETS, ResponseTooLargeError, Server
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.store.positions import Position, position
from iosig.warehouse.store.store import Store

#: minimum length of a window, which is halved if a response is too large [s]
_MIN_WINDOW_S = 60
_DAY_S = 86_400


def land_prometheus(
    store: Store, settings: Settings, url: str, read_options: ReadOptions, *, since: datetime | None = None
) -> Iterator[Arrival]:
    """Land new samples of a Prometheus server, since the last query or from an instant on.

    Each time window is queried and landed separately and advances the read position, so a kill loses at most one
    window. Raises UsageError for an invalid address; a server error is reported as an arrival.
    """
    server = Server.from_url(url, settings.prometheus.matchers, settings.live.params(Timeouts))
    reading = make_reading(prometheus.SOURCE, settings, read_options)
    query = _PrometheusQuery(store, settings, server, reading)
    now_s = time.time()
    until_s = int(now_s - settings.prometheus.delay_s)
    at_s = int(now_s - _DAY_S * settings.live.backfill_days)
    start_position = query.position()
    if since is not None:
        at_s = int(since.timestamp())
    elif start_position.cursor is not None:
        at_s = start_position.cursor["until_s"]
    try:
        yield from query.pieces(at_s, until_s, has_any=start_position.last() is not None)
    except InputRefused as refusal:
        yield Arrival(server.url, None, refusal)


@dataclass(frozen=True, slots=True)
class _PrometheusQuery:
    """A Prometheus server, the metrics to query, and the warehouse in which samples land."""

    store: Store
    settings: Settings
    server: Server
    reading: Reading

    def position(self) -> Position:
        """Return the end of the last query, shared by all metrics, so that adding a metric lands nothing twice."""
        return position(self.store, f"{self.server.url} {self.server.matchers}")

    @property
    def _names(self) -> tuple[str, ...]:
        """Metrics to query, from the presets and the site's settings."""
        configured = (metric for column, metric in self.reading.columns.items() if column.startswith("total_"))
        return tuple(
            dict.fromkeys(
                [*(name for preset in self.settings.prometheus.presets for name in PRESETS[preset]), *configured]
            )
        )

    def pieces(self, at_s: int, until_s: int, *, has_any: bool) -> Iterator[Arrival]:
        """Query and land consecutive windows between two times in seconds.

        has_any: whether samples of the server have landed before; if not, raises InputRefused if all windows are empty.
        """
        chunk_s, is_new = self.settings.prometheus.chunk_s, False
        while at_s < until_s:
            to_s = min(at_s + chunk_s, until_s)
            try:
                arrival = self._piece(at_s, to_s)
            except ResponseTooLargeError:
                if to_s - at_s <= _MIN_WINDOW_S:
                    raise
                chunk_s = max(_MIN_WINDOW_S, (to_s - at_s) // 2)
                continue
            at_s, is_new = to_s, is_new or arrival is not None
            if arrival is not None:
                yield arrival
        if not is_new and not has_any:
            raise InputRefused(
                f"{self.server.url} has no metrics of storage bytes or operations.",
                "Name the site's metrics (counters.columns), or check prometheus.presets and prometheus.matchers.",
            )
        if not is_new:
            yield Arrival(self.server.url, None, None)

    def _piece(self, since_s: int, until_s: int) -> Arrival | None:
        """Land the samples of one window; None where it has no samples."""
        start_position, cursor = self.position(), {"until_s": until_s}
        with apply_limits(self.settings.limits.params(Limits)):
            batches = self.server.read(self._names, since_s, until_s, self.reading)
        if not batches:
            # before the first landing, the metric names may be wrong
            if start_position.landing_id is not None:
                start_position.move(cursor)
            return None
        name = f"{self.server.url} {datetime.fromtimestamp(until_s, UTC):%Y%m%dT%H%M%SZ}"
        names = names_in(self.store, self.settings)
        landed = start_position.land(name, prometheus.SOURCE.name, batches, cursor, names)
        return Arrival(name, landed, None)
