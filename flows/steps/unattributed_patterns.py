"""Find recurring patterns in the unattributed traffic of file systems, and applications that may cause them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, floats
from iosig.flows.steps.items import Day, StepContext, TableFile
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, read_released
from iosig.transforms.arrays import Reals
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO, EXPLAINED_MINUTES, UNATTRIBUTED_PATTERNS
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import POLLED_TRAFFIC, TICKS
from iosig.warehouse.contracts.samples import FILESYSTEM_RUNS
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.store.store import write_parquet

if TYPE_CHECKING:
    from iosig.transforms.unattributed_patterns.cooccurrence import Cooccurrence, Runs
    from iosig.transforms.unattributed_patterns.matching import PatternSummary
    from iosig.transforms.unattributed_patterns.patterns import Pattern

#: number of latest days of polls that are searched, to bound memory use
WINDOW_DAYS = 14
#: minimum polled time needed to search for recurrences [s]
_MIN_POLLED_S = 6 * 3600.0
_MINUTE_S = 60.0
#: maximum number of days between an attributed minute and the end of its run
_MAX_DAYS_TO_RUN_END = 31
_ID_DIGITS = 12
#: columns that identify a pattern
_SAID = ("filesystem", "direction", "pattern_id", "known_since_at")


def find_patterns(context: StepContext) -> int:
    """Find recurring patterns in the unexplained traffic of each file system. Returns the number of rows."""
    with context.engine() as connection:
        context.expose(connection, TICKS, ATTRIBUTED_IO, JOBS)
        polls, explained, runs = (
            context.compute(connection, table) for table in (POLLED_TRAFFIC, EXPLAINED_MINUTES, FILESYSTEM_RUNS)
        )
    released = _read_base_patterns(context)
    pieces = [frames.empty(UNATTRIBUTED_PATTERNS)]
    for values, own_polls in polls.partition_by("filesystem", "direction", as_dict=True).items():
        key = dict(zip(("filesystem", "direction"), values, strict=True))
        residual = _compute_residual_bytes(own_polls, explained.filter(**key))
        rows = _rows(residual, runs.filter(filesystem=key["filesystem"]), released.filter(**key), key)
        pieces.append(
            frames.add_missing_columns(
                rows.with_columns(pl.lit(value).alias(name) for name, value in key.items()), UNATTRIBUTED_PATTERNS
            )
        )
    rows = pl.concat(pieces).sort(UNATTRIBUTED_PATTERNS.key)
    write_parquet(rows, UNATTRIBUTED_PATTERNS, context.path(UNATTRIBUTED_PATTERNS))
    return rows.height


# ---- residual traffic


@dataclass(frozen=True, slots=True)
class Residual:
    """Unattributed bytes in each step, NaN without measurement. start_s: start of the first step."""

    volume_bytes: Reals
    start_s: float
    step_s: float

    @property
    def is_long(self) -> bool:
        """Whether the polls are long enough for a pattern to recur."""
        return bool(np.isfinite(self.volume_bytes).sum() * self.step_s >= _MIN_POLLED_S)


def _compute_residual_bytes(polls: pl.DataFrame, explained: pl.DataFrame) -> Residual:
    """Compute the unexplained bytes in consecutive steps; the first step starts at a full minute.

    polls, explained: rows of `polled_traffic` and `explained_minutes` of one file system and direction.
    """
    from iosig.transforms.unattributed_patterns.residual import choose_step_s, compute_residual, resample_polls

    edge_s, interval_s = epoch_s(polls["polled_at"]), floats(polls["interval_s"])
    step_s = choose_step_s(float(np.median(interval_s)))
    stretch_s = max(_MINUTE_S, step_s)
    start_s = float(np.floor((edge_s[0] - interval_s[0]) / stretch_s) * stretch_s)
    traffic = resample_polls(edge_s, interval_s, floats(polls["moved_bytes"]), start_s, step_s)
    stretch = (np.arange(len(traffic)) * step_s / stretch_s + 1e-9).astype(np.int64)
    count = int(stretch.max(initial=-1)) + 1
    place = np.ceil((epoch_s(explained["minute_at"]) - start_s) / stretch_s - 1e-9).astype(np.int64) - 1
    is_within = (place >= 0) & (place < count)
    attributed: Reals = np.bincount(place[is_within], floats(explained["attributed_bytes"])[is_within], count).astype(
        np.float64
    )
    return Residual(compute_residual(traffic, attributed, stretch, step_s), start_s, step_s)


# ---- who was there


def _runs(rows: pl.DataFrame, residual: Residual) -> tuple[Runs, list[str]]:
    """Return the runs that overlap the polls, with times in steps, and the ids of the applications.

    rows: rows of `filesystem_runs` for one file system.
    """
    from iosig.transforms.unattributed_patterns.cooccurrence import Runs

    count = len(residual.volume_bytes)
    started = (epoch_s(rows["started_at"]) - residual.start_s) / residual.step_s
    ended = np.nan_to_num((epoch_s(rows["ended_at"]) - residual.start_s) / residual.step_s, nan=float(count))
    is_overlapping = (ended > 0) & (started < count)
    names = rows.filter(pl.Series(is_overlapping, dtype=pl.Boolean))["application_id"]
    application = names.rank("dense").cast(pl.Int64).to_numpy() - 1
    return Runs(application, started[is_overlapping], ended[is_overlapping]), names.unique().sort().to_list()


# ---- rows


def _rows(
    residual: Residual, filesystem_runs: pl.DataFrame, released: pl.DataFrame, key: dict[str, str]
) -> pl.DataFrame:
    """Return the patterns of one file system and direction, or one row that states why none was found."""
    if not residual.is_long:
        return pl.DataFrame({"outcome": ["too_short"]})
    from iosig.transforms.unattributed_patterns import finding

    runs, names = _runs(filesystem_runs, residual)
    patterns = finding.find_patterns(residual.volume_bytes, residual.step_s, runs)
    if not patterns:
        return pl.DataFrame({"outcome": ["no_pattern"]})
    rows = [
        _describe_pattern(candidate.pattern, residual) | _describe_cause(candidate.cooccurrence, names)
        for candidate in patterns
    ]
    schema = {name: dtype for name, dtype in frames.schema(UNATTRIBUTED_PATTERNS).items() if name not in _SAID}
    return _assign_ids(pl.DataFrame(rows, schema=schema), released, key)


def _describe_pattern(pattern: Pattern, residual: Residual) -> dict[str, object]:
    """Describe a pattern's occurrences, volumes and period as values of columns."""
    begun_s, occurrence_durations_s = (
        residual.start_s + pattern.started * residual.step_s,
        (pattern.ended - pattern.started) * residual.step_s,
    )
    first_run_started_at, last_run_ended_at = (
        datetime.fromtimestamp(float(start_s), UTC) for start_s in (begun_s[0], begun_s[-1])
    )
    return {
        "first_occurrence_at": first_run_started_at,
        "last_occurrence_at": last_run_ended_at,
        "occurrence_count": len(begun_s),
        "occurrence_bytes": float(np.median(pattern.volume_bytes)),
        "occurrence_duration_s": float(np.median(occurrence_durations_s)),
        "occurrence_burst_count": pattern.burst_count,
        "period_s": pattern.period * residual.step_s if pattern.is_train else None,
        "false_alarm_probability": pattern.period_p_value if pattern.is_train else None,
        "occurrence_starts_s": (begun_s - begun_s[0]).tolist(),
        "occurrence_durations_s": occurrence_durations_s.tolist(),
        "occurrence_volumes_bytes": pattern.volume_bytes.tolist(),
        "pattern_step_s": residual.step_s,
        "pattern_bytes_per_s": (pattern.signature_bytes / residual.step_s).tolist(),
    }


def _describe_cause(cooccurrence: Cooccurrence, names: Sequence[str]) -> dict[str, object]:
    """Describe the application that may cause a pattern; only the outcome if no application ran."""
    if cooccurrence.application < 0:
        return {"outcome": cooccurrence.outcome}
    return {
        "outcome": cooccurrence.outcome,
        "application_id": names[cooccurrence.application],
        "covered_occurrence_count": cooccurrence.covered_count,
        "application_run_count": cooccurrence.run_count,
        "covering_run_count": cooccurrence.covering_run_count,
        "p_value": cooccurrence.p_value,
    }


# ---- ids


def _read_base_patterns(context: StepContext) -> pl.DataFrame:
    """Return the patterns of the base release."""
    files = context.list_base_files(UNATTRIBUTED_PATTERNS)
    patterns = (
        frames.add_missing_columns(read_parquet(files), UNATTRIBUTED_PATTERNS)
        if files
        else frames.empty(UNATTRIBUTED_PATTERNS)
    )
    return patterns.filter(pl.col("pattern_id").is_not_null())


def _assign_ids(rows: pl.DataFrame, before: pl.DataFrame, key: dict[str, str]) -> pl.DataFrame:
    """Add pattern ids: those of matching patterns in the base release, or new ones."""
    from iosig.transforms.unattributed_patterns.matching import match_patterns

    matches = match_patterns(list(_summarize_patterns(rows)), list(_summarize_patterns(before)))
    # an earlier id stays reserved for its pattern, even if another pattern now begins where that one did
    used_ids = set(before["pattern_id"])
    ids, since = [], []
    for place, (first_run_started_at, volume) in zip(
        matches, rows.select("first_occurrence_at", "occurrence_bytes").iter_rows(), strict=True
    ):
        identity = (*key.values(), first_run_started_at.isoformat(), f"{volume:.6g}")
        ids.append(before["pattern_id"][place] if place >= 0 else _new_id(identity, used_ids))
        used_ids.add(ids[-1])
        since.append(before["known_since_at"][place] if place >= 0 else first_run_started_at)
    return rows.with_columns(pattern_id=pl.Series(ids), known_since_at=pl.Series(since, dtype=pl.Datetime("us", "UTC")))


def _new_id(identity: Sequence[str], used_ids: set[str]) -> str:
    """Derive a unique id from the values that identify a pattern."""
    attempt = 0
    while True:
        # the first attempt hashes the values alone, as in earlier releases
        text = "\n".join((*identity, str(attempt))) if attempt else "\n".join(identity)
        pattern_id = hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]
        if pattern_id not in used_ids:
            return pattern_id
        attempt += 1


def _summarize_patterns(rows: pl.DataFrame) -> Iterator[PatternSummary]:
    """Summarize published patterns, to recognize them in later runs."""
    from iosig.transforms.unattributed_patterns.matching import PatternSummary

    for first_run_started_at, occurrence_starts_s, volume, lasting_s in rows.select(
        "first_occurrence_at", "occurrence_starts_s", "occurrence_bytes", "occurrence_duration_s"
    ).iter_rows():
        yield PatternSummary(
            first_run_started_at.timestamp() + np.array(occurrence_starts_s), volume, max(lasting_s, 1.0)
        )


# ---- inputs


def _window(run: Run) -> tuple[date, date] | None:
    """Return the first and the last day that are searched; None without polls."""
    days = [file.day for file in run.live(TICKS) if file.day is not None]
    return (max(days) - timedelta(days=WINDOW_DAYS - 1), max(days)) if days else None


def _read(run: Run, _: Day) -> Iterator[TableFile]:
    """Yield the polls of the last days, their attribution, and the jobs that may overlap them."""
    window = _window(run)
    if window is None:
        return
    first, last = window
    for table, until in (
        (TICKS, last),
        (ATTRIBUTED_IO, last + timedelta(days=_MAX_DAYS_TO_RUN_END)),
        (JOBS, last + timedelta(days=_MAX_DAYS_TO_RUN_END)),
    ):
        yield from (file for file in run.live(table) if file.day is None or first <= file.day <= until)


STEP = Step(
    "unnamed patterns",
    find_patterns,
    reads=(Input((TICKS, ATTRIBUTED_IO, JOBS), _read), read_released(UNATTRIBUTED_PATTERNS)),
    writes=(UNATTRIBUTED_PATTERNS,),
)
