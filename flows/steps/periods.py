"""Periods: how often each job, series, traced run or application does its I/O, by every method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.flows.arrays import list_column
from iosig.flows.settings import PeriodSettings
from iosig.flows.steps import subjects
from iosig.flows.steps.node_periods import node_rows
from iosig.flows.steps.pieces import Given
from iosig.flows.steps.run import Work, built, landed_of_traces, undated
from iosig.flows.steps.subjects import KEYS, Subjects
from iosig.transforms.arrays import Ragged, Reals, places_within
from iosig.transforms.periods import finding, windows
from iosig.transforms.periods.finding import PeriodParams, Periods
from iosig.transforms.throughput.requests import Steps, step_function
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.periods import MEASURED_PERIODS, NODE_PERIODS, PERIOD_SEGMENTS, PERIODS
from iosig.warehouse.contracts.samples import EXACT_SAMPLES
from iosig.warehouse.contracts.series import SERIES_INTERVALS
from iosig.warehouse.contracts.traces import TRACE_COUNTERS, TRACE_JOBS, TRACE_REQUESTS, TRACE_SIGNALS
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.store.manifests import Landing, Part, scans
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from iosig.transforms.periods.autocorrelation import AutocorrelationParams
    from iosig.transforms.periods.autoperiod import AutoperiodParams
    from iosig.transforms.periods.controlled import ControlledParams
    from iosig.transforms.periods.ftio import DftParams

DEFAULT_METHOD = "controlled"
#: requests that are worked on at a time
_REQUESTS_AT_A_TIME = 5_000_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of `periods`, of `period_segments`, and of `node_periods`."""

    periods: pl.DataFrame
    segments: pl.DataFrame
    nodes: pl.DataFrame = field(default_factory=partial(frames.empty, NODE_PERIODS))

    @classmethod
    def joined(cls, parts: Iterable[Rows]) -> Rows:
        """Return all rows of several."""
        found = [cls(frames.empty(PERIODS), frames.empty(PERIOD_SEGMENTS)), *parts]
        names = [column.name for column in fields(cls)]
        return cls(*(pl.concat([getattr(each, name) for each in found]) for name in names))


def find(given: Given) -> int:
    """Find the periods of counted runs, series and traced runs that ended on a day; without one, of applications too.

    Returns the rows.
    """
    settings = given.settings.periods
    params = params_of(settings)
    pieces = []
    if given.files(EXACT_SAMPLES):
        counted = subjects.job_subjects(subjects.counted_samples(given))
        pieces.append(rows_of(counted, params_of(settings, settings.server_methods)))
    if given.files(SERIES_INTERVALS):
        pieces.append(rows_of(subjects.series_subjects(given.frame(SERIES_INTERVALS)), params))
    if given.files(TRACE_SIGNALS):
        pieces += _of_traces(given, params)
    if given.days == (None,):
        applications, kept = subjects.of_applications(given, PERIODS)
        pieces += [Rows(kept, _segments_of(given, kept), _kept_nodes(given, kept)), rows_of(applications, params)]
    found = Rows.joined(pieces)
    given.write_days(found.periods, MEASURED_PERIODS)
    given.write_days(found.segments, PERIOD_SEGMENTS)
    given.write_days(found.nodes, NODE_PERIODS)
    return found.periods.height


def _segments_of(given: Given, kept: pl.DataFrame) -> pl.DataFrame:
    """Return the segments that the release before has of rows of `periods` that stay as they are."""
    files = given.released(PERIOD_SEGMENTS)
    found = frames.widened(read_parquet(files), PERIOD_SEGMENTS) if files else frames.empty(PERIOD_SEGMENTS)
    return found.join(kept, on=PERIODS.key, how="semi", nulls_equal=True, maintain_order="left")


def params_of(settings: PeriodSettings, methods: Sequence[str] | None = None) -> PeriodParams:
    """Return the settings of periods as parameters of some methods, or of those that are to be published."""
    wanted = settings.methods if methods is None else methods
    return PeriodParams(
        methods=tuple(wanted),
        max_missing_ratio=settings.max_missing_ratio,
        # A method's parameters import the method: those of the others are left out.
        controlled=_controlled(settings) if "controlled" in wanted else None,
        dft=_dft(settings) if {"dft", "merged"} & set(wanted) else None,
        autocorrelation=_autocorrelation(settings) if {"autocorrelation", "merged"} & set(wanted) else None,
        autoperiod=_autoperiod(settings) if "autoperiod" in wanted else None,
    )


def _controlled(settings: PeriodSettings) -> ControlledParams:
    from iosig.transforms.periods.controlled import ControlledParams

    return ControlledParams(false_alarm_probability=settings.false_alarm_level, window_levels=settings.window_levels)


def _dft(settings: PeriodSettings) -> DftParams:
    from iosig.transforms.periods.ftio import DftParams
    from iosig.transforms.periods.ftio_outliers import OutlierParams

    return DftParams(outliers=OutlierParams(z_threshold=settings.z_score, tolerance=settings.tolerance))


def _autocorrelation(settings: PeriodSettings) -> AutocorrelationParams:
    from iosig.transforms.periods.autocorrelation import AutocorrelationParams

    return AutocorrelationParams(least_height=settings.autocorrelation_height)


def _autoperiod(settings: PeriodSettings) -> AutoperiodParams:
    from iosig.transforms.periods.autoperiod import AutoperiodParams

    return AutoperiodParams(confidence=settings.autoperiod_confidence)


def _of_traces(given: Given, params: PeriodParams) -> Iterator[Rows]:
    """Yield the periods of traced runs, some at a time: their requests are read anew, for a step blurs short bursts."""
    jobs, counters, signals = map(given.frame, (TRACE_JOBS, TRACE_COUNTERS, TRACE_SIGNALS))
    parts = given.parts(TRACE_REQUESTS)
    for trace_ids in _groups(parts, jobs["trace_id"]):
        is_one = pl.col("trace_id").is_in(trace_ids.implode())
        own = signals.filter(is_one)
        found = subjects.traced_subjects(
            jobs.filter(is_one), counters.filter(is_one), own, given.settings.traces.max_interval_ratio
        )
        wanted = set(trace_ids)
        moved = [(landed, part) for landed, part in parts if landed.trace_id in wanted]
        requests = scans(Store(given.root), TRACE_REQUESTS, moved)
        rows = rows_of(found, params, step_function(subjects.traced_requests(found.keys, own, requests)))
        yield replace(rows, nodes=node_rows(found, rows.periods, own, requests, params))


def _groups(parts: Sequence[tuple[Landing, Part]], trace_ids: pl.Series) -> Iterator[pl.Series]:
    """Yield traced runs that have about so many requests together as are worked on at a time."""
    counts = pl.DataFrame(
        [(landing.trace_id, part.row_count) for landing, part in parts],
        schema={"trace_id": pl.String, "row_count": pl.Int64},
        orient="row",
    )
    summed = counts.group_by("trace_id").agg(pl.col("row_count").sum())
    placed = trace_ids.to_frame().join(summed, on="trace_id", how="left", maintain_order="left")
    group = pl.col("row_count").fill_null(0).cum_sum() // _REQUESTS_AT_A_TIME
    for _, rows in placed.with_columns(group=group).group_by("group", maintain_order=True):
        yield rows["trace_id"]


# ---- rows


def _kept_nodes(given: Given, kept: pl.DataFrame) -> pl.DataFrame:
    """Return the nodes that the release before has of traced runs whose rows of `periods` stay as they are."""
    files = given.released(NODE_PERIODS)
    found = frames.widened(read_parquet(files), NODE_PERIODS) if files else frames.empty(NODE_PERIODS)
    runs = kept.filter(subject_kind="trace").select(pl.col("subject_id").alias("trace_id"), "direction")
    return found.join(runs, on=["trace_id", "direction"], how="semi", maintain_order="left")


def rows_of(found: Subjects, params: PeriodParams, steps: Steps | None = None) -> Rows:
    """Return what each method says of each subject.

    steps: the subjects' throughput exactly, if it is known. A subject whose bytes are not known over time has rows
    that say why, and nothing else.
    """
    answers = finding.find(found.samples, found.sampling_hz, found.started_s, params, steps)
    judged = judged_of(found, steps)
    rows = [frames.empty(PERIODS), *(rows_from(found.keys, judged, answer) for answer in answers)]
    segments = [frames.empty(PERIOD_SEGMENTS), *(segments_from(found.keys, answer) for answer in answers)]
    order = (*KEYS[1:7], "method")
    return Rows(
        pl.concat(rows).sort(*order, nulls_last=True, maintain_order=True),
        pl.concat(segments).sort(*order, "segment", nulls_last=True, maintain_order=True),
    )


def judged_of(found: Subjects, steps: Steps | None) -> pl.DataFrame:
    """Return what was judged of each subject: how it is sampled, what is missing, and what sampling lost."""
    counts = found.samples.counts
    owner = found.samples.owner
    is_known = np.isfinite(found.samples.values)
    known = np.bincount(owner[is_known], minlength=len(counts))
    total = np.bincount(owner[is_known], found.samples.values[is_known], len(counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.where(counts > 0, 1.0 - known / counts, np.nan)
        mean = np.where(known > 0, total / known, np.nan)
    lost = np.full(len(counts), np.nan)
    if steps is not None:
        volume = windows.clipped(steps, found.started_s, found.ended_s).volume_bytes
        np.divide(np.abs(total / found.sampling_hz - volume), volume, out=lost, where=volume > 0)
    return pl.DataFrame(
        {
            "sampling_hz": np.where(counts > 0, found.sampling_hz, np.nan),
            "sample_count": counts,
            "missing_ratio": missing,
            "mean_bytes_per_s": mean,
            "abstraction_error": lost,
        }
    )


def rows_from(keys: pl.DataFrame, judged: pl.DataFrame, answer: Periods) -> pl.DataFrame:
    """Return rows of `periods` of one method's answer for subjects, of which `judged_of` says what was judged."""
    found, measured, listed = answer.detections, answer.periodicity, answer.detections.candidates
    lists = {
        "candidates": listed.frequency_hz,
        "candidate_amplitudes_bytes_per_s": listed.amplitude_bytes_per_s,
        "candidate_phases_rad": listed.phase_rad,
    }
    columns: dict[str, Reals | pl.Series] = {
        "found_outcome": pl.Series(found.outcome.tolist(), dtype=pl.String),
        "window_start_s": found.window_start_s,
        "window_end_s": found.window_end_s,
        "frequency_hz": found.frequency_hz,
        "period_s": found.period_s,
        "period_error_s": found.told.period_error_s,
        "window_bytes_ratio": found.told.window_bytes_ratio,
        "burst_width_s": answer.burst_width_s,
        "duty_ratio": np.minimum(answer.burst_width_s * found.frequency_hz, 1.0),
        "confidence": found.confidence,
        "refined_confidence": answer.refined_confidence,
        "false_alarm_probability": found.false_alarm_probability,
        "r_io": measured.r_io,
        "b_io_bytes_per_s": measured.b_io_bytes_per_s,
        "sigma_vol": measured.sigma_vol,
        "sigma_time": measured.sigma_time,
        "periodicity_score": measured.periodicity_score,
        "bytes_per_period": measured.bytes_per_period,
        **{name: list_column(Ragged(values, listed.offsets)) for name, values in lists.items()},
    }
    told = pl.col("untold").is_null()
    numbers = [name for name in (*judged.columns, *columns) if name != "found_outcome"]
    return (
        pl.concat([keys, judged, pl.DataFrame(columns)], how="horizontal")
        .with_columns(pl.col(pl.Float64).fill_nan(None))
        .with_columns(
            pl.when(told).then(pl.col(numbers)),
            method=pl.lit(answer.method),
            is_default=pl.lit(answer.method == DEFAULT_METHOD),
            outcome=pl.coalesce("untold", "found_outcome"),
        )
        .select(PERIODS.column_names)
    )


def segments_from(keys: pl.DataFrame, answer: Periods) -> pl.DataFrame:
    """Return rows of `period_segments` of one method's answer for subjects."""
    found = answer.segments
    if found is None:
        return frames.empty(PERIOD_SEGMENTS)
    columns = pl.DataFrame(
        {
            "segment": places_within(found.counts) + 1,
            "is_main": found.is_main,
            "window_start_s": found.started_s,
            "window_end_s": found.ended_s,
            "frequency_hz": found.frequency_hz,
            "period_s": 1.0 / found.frequency_hz,
            "period_error_s": found.period_error_s,
            "confidence": found.confidence,
            "segment_bytes": found.volume_bytes,
            "burst_width_s": found.burst_width_s,
            "duty_ratio": np.minimum(found.burst_width_s * found.frequency_hz, 1.0),
            "false_alarm_probability": found.false_alarm_probability,
        }
    )
    rows = pl.concat([keys[found.owner], columns.with_columns(pl.col(pl.Float64).fill_nan(None))], how="horizontal")
    # what has no signal to be judged has no answer either, whatever its samples look like
    return (
        rows.filter(pl.col("untold").is_null())
        .with_columns(method=pl.lit(answer.method))
        .select(PERIOD_SEGMENTS.column_names)
    )


WORK = Work(
    "periods",
    find,
    reads=(built(*subjects.JUDGED), undated(PERIODS, PERIOD_SEGMENTS, NODE_PERIODS), landed_of_traces(TRACE_REQUESTS)),
    writes=(MEASURED_PERIODS, PERIOD_SEGMENTS, NODE_PERIODS),
    daily=lambda plan: plan.judged_days,
)
