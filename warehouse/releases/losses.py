"""Record losses, the data that a repair could not restore, for the next run.

Days with damaged released files are computed again, even without new landings. Landings that were set aside count as
removed, so their inputs are new when they land again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from iosig.warehouse.store.state import put_state, read_state
from iosig.warehouse.store.store import Store

_NAME = "losses.json"
_Day = date | None


@dataclass(frozen=True, slots=True)
class Losses:
    """Days to compute again (None: rows without a day), and the ids of landings that were set aside."""

    days: frozenset[_Day] = field(default=frozenset())
    landing_ids: frozenset[str] = field(default=frozenset())

    def __or__(self, other: Losses) -> Losses:
        return Losses(self.days | other.days, self.landing_ids | other.landing_ids)

    def __sub__(self, other: Losses) -> Losses:
        return Losses(self.days - other.days, self.landing_ids - other.landing_ids)


def losses(store: Store) -> Losses:
    """Return the losses that no run has processed yet."""
    document: dict[str, list[str]] | None = read_state(store, _NAME)
    if document is None:
        return Losses()
    days = frozenset(date.fromisoformat(day) if day else None for day in document["days"])
    return Losses(days, frozenset(document["landings"]))


def add(store: Store, new: Losses) -> None:
    """Record losses for the next run."""
    _write(store, losses(store) | new)


def settle(store: Store, settled: Losses) -> None:
    """Remove the losses that a run has processed from the record."""
    _write(store, losses(store) - settled)


def _write(store: Store, remaining: Losses) -> None:
    if remaining != losses(store):
        days = sorted(day.isoformat() if day else "" for day in remaining.days)
        document = {"days": days, "landings": sorted(remaining.landing_ids)}
        put_state(store, _NAME, document if remaining != Losses() else None)
