"""Time range of an input's rows: the first and the last instant, in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.sources.protocol import Batch

if TYPE_CHECKING:
    import polars as pl

#: the columns that say when something happened, by precedence; others say when it is expected, or was planned
_TIMES = (("polled_at",), ("scraped_at",), ("observed_at",), ("started_at", "ended_at"))
#: times of series that are smaller count from a start of their own
_EPOCH_FROM_S = 1e9


@dataclass(slots=True)
class TimeRange:
    """The first and last instant of rows, as far as they were seen; None where they have none."""

    first: datetime | None = None
    last: datetime | None = None

    def watched(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield batches, and extend the range by the times of each."""
        for batch in batches:
            for instants in _instants(batch):
                self._extend(instants)
            yield batch

    def texts(self) -> dict[str, str | None]:
        """Return `first_at` and `last_at` in ISO 8601."""
        return {
            "first_at": self.first.isoformat() if self.first else None,
            "last_at": self.last.isoformat() if self.last else None,
        }

    def _extend(self, instants: pl.Series) -> None:
        first, last = instants.min(), instants.max()
        if isinstance(first, datetime) and isinstance(last, datetime):
            self.first = min(self.first or first, first)
            self.last = max(self.last or last, last)


def _instants(batch: Batch) -> Iterator[pl.Series]:
    import polars as pl

    if batch.table == SERIES:
        dated = batch.rows.filter(pl.col("time_s") >= _EPOCH_FROM_S)["time_s"]
        yield pl.Series([datetime.fromtimestamp(float(at), UTC) for at in (dated.min(), dated.max()) if at is not None])  # type: ignore[arg-type]
        return
    names = next((names for names in _TIMES if set(names) & set(batch.rows.columns)), ())
    yield from (batch.rows[name] for name in names if isinstance(batch.rows.schema.get(name), pl.Datetime))
