"""Determine the time range of an input's rows: the first and the last instant, in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.sources.protocol import Batch

if TYPE_CHECKING:
    import polars as pl

#: columns with the time of an event, in order of precedence; other time columns contain expected or planned times
_TIMES = (("polled_at",), ("scraped_at",), ("observed_at",), ("started_at", "ended_at"))
#: times of series below this value are relative to the series' own start, not seconds since 1970
_EPOCH_FROM_S = 1e9


@dataclass(slots=True)
class TimeRange:
    """Time range of the rows seen so far; None if they have no times."""

    first: datetime | None = None
    last: datetime | None = None

    def observe(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield batches unchanged, and extend the range by their times."""
        for batch in batches:
            for instants in _instants(batch):
                self._extend(instants)
            yield batch

    def texts(self) -> dict[str, str | None]:
        """Format `first_at` and `last_at` in ISO 8601."""
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
