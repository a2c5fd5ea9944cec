"""Predict the next bursts: of running jobs from their signatures, of followed inputs from their predictions."""

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

#: maximum age of predictions
#: maximum number of journal rows to read
_MAX_AGE = timedelta(hours=1)
_MAX_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class Burst:
    """Expected burst with its start, range of the start (None if unknown) and volume.

    basis: `signature` of a running job, or `prediction` for a followed one. For a burst in progress, starts_at is past
    and expected_bytes is the remaining volume.
    """

    job_id: str
    application_id: str | None
    starts_at: datetime
    earliest_at: datetime | None
    latest_at: datetime | None
    expected_bytes: float | None
    basis: str


def predict_bursts(running: Iterable[RunningJob], at: datetime) -> list[Burst]:
    """Return the next burst of each running job with a signature, in chronological order."""
    bursts = []
    for job in running:
        if not job.is_running or job.signature is None:
            continue
        burst = next_burst(job.signature.rates, job.elapsed_s)
        if burst is not None:
            start_s, remaining_bytes = burst
            starts_at = at + timedelta(seconds=start_s - job.elapsed_s)
            bursts.append(Burst(job.name, job.application_id, starts_at, None, None, remaining_bytes, "signature"))
    return sorted(bursts, key=_sort_key)


def next_burst(rates: Rates, elapsed_s: float) -> tuple[float, float] | None:
    """Return start [s since the run's start] and remaining volume [B] of the current or next burst.

    A burst is an interval in which the rate exceeds `ForecastParams.burst_ratio` times the peak. Returns None if there
    are no more bursts.
    """
    is_high = np.concatenate([[False], rates.bytes_per_s > ForecastParams().burst_ratio * rates.peak_bytes_per_s])
    edges_of_bursts = np.flatnonzero(np.diff(np.append(is_high, False)))
    begins_s, ends_s = rates.edges_s[edges_of_bursts[::2]], rates.edges_s[edges_of_bursts[1::2]]
    place = int(np.searchsorted(ends_s, elapsed_s, side="right"))
    if place == len(ends_s):
        return None
    edges = np.array([max(begins_s[place], elapsed_s), ends_s[place]])
    return float(begins_s[place]), float(np.diff(rates.cumulative_bytes(edges))[0])


def read_predictions(store: Store, at: datetime) -> dict[str | None, list[Burst]]:
    """Return the next bursts of followed inputs by file system, from the latest predictions."""
    if not store.journal.is_file():
        return {}
    try:
        with Journal(store.journal) as journal:
            rows, _ = journal.rows_after(max(0, journal.last_sequence() - _MAX_ROWS), _MAX_ROWS)
    except JournalFault:
        # opening needs write permission; without it, bursts come from signatures only
        return {}
    by_filesystem: dict[str | None, list[Burst]] = {}
    for row in _latest(rows.to_dicts(), at):
        by_filesystem.setdefault(row["filesystem"], []).append(_parse_row(row))
    return {name: sorted(bursts, key=_sort_key) for name, bursts in by_filesystem.items()}


def _latest(rows: Sequence[dict[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """Select the last prediction of each active input and direction with a next burst in UTC."""
    last = {(row["followed_id"], row["direction"]): row for row in rows}
    return [
        row
        for row in last.values()
        if not row["is_final"]
        and row["next_burst_start_s"] is not None
        and row["next_burst_start_s"] >= EPOCH_S
        and timedelta(0) <= at - utc(row["predicted_at"]) <= _MAX_AGE
    ]


def _parse_row(row: dict[str, Any]) -> Burst:
    def instant(name: str) -> datetime | None:
        return None if row[name] is None else datetime.fromtimestamp(row[name], UTC)

    starts_at = instant("next_burst_start_s")
    assert starts_at is not None
    edges = (instant("next_burst_earliest_s"), instant("next_burst_latest_s"))
    return Burst(row["subject_id"], None, starts_at, *edges, row["next_burst_bytes"], "prediction")


def _sort_key(burst: Burst) -> tuple[datetime, str]:
    return burst.starts_at, burst.job_id
