"""Bursts that are to begin next: of jobs that run, by their signatures, and of followed ones, as was predicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from iosig.answers.advice.inputs import Rates, RunningJob, utc
from iosig.transforms.forecast.forecasting import ForecastParams
from iosig.transforms.predictions.predictor import EPOCH_S
from iosig.warehouse.store.journal import Journal, JournalFault
from iosig.warehouse.store.store import Store

#: predictions that are older tell nothing of now; of so many rows the latest are read
_OLDEST = timedelta(hours=1)
_MOST_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class Burst:
    """A burst that is to begin: when, within which range (None: nobody says), and what it moves.

    basis: `signature`, of a job that runs, or `prediction`, of one that is followed. Where a burst is under way,
    starts_at lies behind, and expected_bytes are what is left of it.
    """

    job_id: str
    application_id: str | None
    starts_at: datetime
    earliest_at: datetime | None
    latest_at: datetime | None
    expected_bytes: float | None
    basis: str


def coming_bursts(running: Iterable[RunningJob], at: datetime) -> list[Burst]:
    """Return the next burst of each job that runs and has a signature, the first one first."""
    found = []
    for job in running:
        if not job.is_running or job.signature is None:
            continue
        told = next_burst(job.signature.rates, job.elapsed_s)
        if told is not None:
            starts_at = at + timedelta(seconds=told[0] - job.elapsed_s)
            found.append(Burst(job.name, job.application_id, starts_at, None, None, told[1], "signature"))
    return sorted(found, key=_place)


def next_burst(rates: Rates, elapsed_s: float) -> tuple[float, float] | None:
    """Return when the burst begins that is next or under way, since the run's start [s], and what is left of it [B].

    A burst is a stretch above a tenth of the peak; None where none is to come.
    """
    is_high = np.concatenate([[False], rates.bytes_per_s > ForecastParams().burst_ratio * rates.peak_bytes_per_s])
    turns = np.flatnonzero(np.diff(np.append(is_high, False)))
    begins_s, ends_s = rates.edges_s[turns[::2]], rates.edges_s[turns[1::2]]
    place = int(np.searchsorted(ends_s, elapsed_s, side="right"))
    if place == len(ends_s):
        return None
    edges = np.array([max(begins_s[place], elapsed_s), ends_s[place]])
    return float(begins_s[place]), float(np.diff(rates.cumulative_bytes(edges))[0])


def followed_bursts(store: Store, at: datetime) -> dict[str | None, list[Burst]]:
    """Return the next bursts of what is followed, as they were predicted last, by file system."""
    if not store.journal.is_file():
        return {}
    try:
        with Journal(store.journal) as journal:
            rows, _ = journal.rows_after(max(0, journal.last_sequence() - _MOST_ROWS), _MOST_ROWS)
    except JournalFault:
        # who may not write to it cannot open it: signatures know of bursts, too
        return {}
    found: dict[str | None, list[Burst]] = {}
    for row in _latest(rows.to_dicts(), at):
        found.setdefault(row["filesystem"], []).append(_predicted(row))
    return {name: sorted(bursts, key=_place) for name, bursts in found.items()}


def _latest(rows: Sequence[dict[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """Return the last row of each input and direction that goes on and has a burst to come, on the clock of all."""
    last = {(row["followed_id"], row["direction"]): row for row in rows}
    return [
        row
        for row in last.values()
        if not row["is_final"]
        and row["next_burst_start_s"] is not None
        and row["next_burst_start_s"] >= EPOCH_S
        and timedelta(0) <= at - utc(row["predicted_at"]) <= _OLDEST
    ]


def _predicted(row: dict[str, Any]) -> Burst:
    def instant(name: str) -> datetime | None:
        return None if row[name] is None else datetime.fromtimestamp(row[name], UTC)

    starts_at = instant("next_burst_start_s")
    assert starts_at is not None
    edges = (instant("next_burst_earliest_s"), instant("next_burst_latest_s"))
    return Burst(row["subject_id"], None, starts_at, *edges, row["next_burst_bytes"], "prediction")


def _place(burst: Burst) -> tuple[datetime, str]:
    return burst.starts_at, burst.job_id
