"""Find the periods of the I/O of subjects, and return them as rows of published tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.estimates.columns import list_column
from iosig.estimates.subjects import KEYS, Subjects
from iosig.settings.model import PeriodSettings
from iosig.transforms.arrays import Ragged, Reals, places_within
from iosig.transforms.periods import search, windows
from iosig.transforms.periods.search import PeriodParams, Periods
from iosig.transforms.throughput.requests import Steps
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.periods import NODE_PERIODS, PERIOD_SEGMENTS, PERIODS

if TYPE_CHECKING:
    from iosig.transforms.periods.autocorrelation import AutocorrelationParams
    from iosig.transforms.periods.autoperiod_analysis import AutoperiodParams
    from iosig.transforms.periods.ftio import DftParams
    from iosig.transforms.periods.null_model.params import NullModelParams

DEFAULT_METHOD = "null_tested"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the three tables of periods, which are computed together."""

    periods: pl.DataFrame
    segments: pl.DataFrame
    nodes: pl.DataFrame = field(default_factory=partial(frames.empty, NODE_PERIODS))

    @classmethod
    def concat(cls, parts: Iterable[Rows]) -> Rows:
        """Concatenate rows; without parts the frames are empty."""
        all_parts = [cls(frames.empty(PERIODS), frames.empty(PERIOD_SEGMENTS)), *parts]
        names = [column.name for column in fields(cls)]
        return cls(*(pl.concat([getattr(part, name) for part in all_parts]) for name in names))


def params_of(settings: PeriodSettings, methods: Sequence[str] | None = None) -> PeriodParams:
    """Convert settings to the parameters of some methods; by default, of the methods that are published."""
    wanted = settings.methods if methods is None else methods
    return PeriodParams(
        methods=tuple(wanted),
        max_missing_ratio=settings.max_missing_ratio,
        # parameters import their method, so those of unused methods are skipped
        null_tested=_make_null_model_params(settings) if "null_tested" in wanted else None,
        dft=_dft(settings) if {"dft", "merged"} & set(wanted) else None,
        autocorrelation=_autocorrelation(settings) if {"autocorrelation", "merged"} & set(wanted) else None,
        autoperiod=_autoperiod(settings) if "autoperiod" in wanted else None,
    )


def _make_null_model_params(settings: PeriodSettings) -> NullModelParams:
    from iosig.transforms.periods.null_model.params import NullModelParams

    return NullModelParams(false_alarm_probability=settings.false_alarm_level, window_levels=settings.window_levels)


def _dft(settings: PeriodSettings) -> DftParams:
    from iosig.transforms.periods.ftio import DftParams
    from iosig.transforms.periods.ftio_outliers import OutlierParams

    return DftParams(outliers=OutlierParams(z_threshold=settings.z_score, tolerance=settings.tolerance))


def _autocorrelation(settings: PeriodSettings) -> AutocorrelationParams:
    from iosig.transforms.periods.autocorrelation import AutocorrelationParams

    return AutocorrelationParams(min_height=settings.autocorrelation_height)


def _autoperiod(settings: PeriodSettings) -> AutoperiodParams:
    from iosig.transforms.periods.autoperiod_analysis import AutoperiodParams

    return AutoperiodParams(confidence=settings.autoperiod_confidence)


def rows_of(subjects: Subjects, params: PeriodParams, steps: Steps | None = None) -> Rows:
    """Find periods of subjects with each method.

    steps: exact throughput of the subjects, if known. A subject without a signal has rows with an outcome only.
    """
    answers = search.find_periods(subjects.samples, subjects.sampling_hz, subjects.start_s, params, steps)
    summaries = summarize_signals(subjects, steps)
    rows = [frames.empty(PERIODS), *(rows_from(subjects.keys, summaries, answer) for answer in answers)]
    segments = [frames.empty(PERIOD_SEGMENTS), *(segments_from(subjects.keys, answer) for answer in answers)]
    order = (*KEYS[1:7], "method")
    return Rows(
        pl.concat(rows).sort(*order, nulls_last=True, maintain_order=True),
        pl.concat(segments).sort(*order, "segment", nulls_last=True, maintain_order=True),
    )


def summarize_signals(subjects: Subjects, steps: Steps | None) -> pl.DataFrame:
    """Return sampling frequency, missing ratio, mean and abstraction error of each subject's signal."""
    counts = subjects.samples.counts
    owner = subjects.samples.owner
    is_known = np.isfinite(subjects.samples.values)
    known = np.bincount(owner[is_known], minlength=len(counts))
    total = np.bincount(owner[is_known], subjects.samples.values[is_known], len(counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.where(counts > 0, 1.0 - known / counts, np.nan)
        mean = np.where(known > 0, total / known, np.nan)
    lost = np.full(len(counts), np.nan)
    if steps is not None:
        volume = windows.clip_steps(steps, subjects.start_s, subjects.end_s).volume_bytes
        np.divide(np.abs(total / subjects.sampling_hz - volume), volume, out=lost, where=volume > 0)
    return pl.DataFrame(
        {
            "sampling_hz": np.where(counts > 0, subjects.sampling_hz, np.nan),
            "sample_count": counts,
            "missing_ratio": missing,
            "mean_bytes_per_s": mean,
            "abstraction_error": lost,
        }
    )


def rows_from(keys: pl.DataFrame, summaries: pl.DataFrame, answer: Periods) -> pl.DataFrame:
    """Return rows of `periods` with one method's results; summaries: from `summarize_signals`."""
    detections, measured, listed = answer.detections, answer.periodicity, answer.detections.candidates
    lists = {
        "candidates": listed.frequency_hz,
        "candidate_amplitudes_bytes_per_s": listed.amplitude_bytes_per_s,
        "candidate_phases_rad": listed.phase_rad,
    }
    columns: dict[str, Reals | pl.Series] = {
        "found_outcome": pl.Series(detections.outcome.tolist(), dtype=pl.String),
        "window_start_s": detections.window_start_s,
        "window_end_s": detections.window_end_s,
        "frequency_hz": detections.frequency_hz,
        "period_s": detections.period_s,
        "period_error_s": detections.details_or_nan.period_error_s,
        "window_bytes_ratio": detections.details_or_nan.window_bytes_ratio,
        "burst_width_s": answer.burst_width_s,
        "duty_ratio": np.minimum(answer.burst_width_s * detections.frequency_hz, 1.0),
        "confidence": detections.confidence,
        "refined_confidence": answer.refined_confidence,
        "false_alarm_probability": detections.false_alarm_probability,
        "r_io": measured.r_io,
        "b_io_bytes_per_s": measured.b_io_bytes_per_s,
        "sigma_vol": measured.sigma_vol,
        "sigma_time": measured.sigma_time,
        "periodicity_score": measured.periodicity_score,
        "bytes_per_period": measured.bytes_per_period,
        **{name: list_column(Ragged(values, listed.offsets)) for name, values in lists.items()},
    }
    has_times = pl.col("untold").is_null()
    numbers = [name for name in (*summaries.columns, *columns) if name != "found_outcome"]
    return (
        pl.concat([keys, summaries, pl.DataFrame(columns)], how="horizontal")
        .with_columns(pl.col(pl.Float64).fill_nan(None))
        .with_columns(
            pl.when(has_times).then(pl.col(numbers)),
            method=pl.lit(answer.method),
            is_default=pl.lit(answer.method == DEFAULT_METHOD),
            outcome=pl.coalesce("untold", "found_outcome"),
        )
        .select(PERIODS.column_names)
    )


def segments_from(keys: pl.DataFrame, answer: Periods) -> pl.DataFrame:
    """Return rows of `period_segments` with one method's results."""
    segments = answer.segments
    if segments is None:
        return frames.empty(PERIOD_SEGMENTS)
    columns = pl.DataFrame(
        {
            "segment": places_within(segments.counts) + 1,
            "is_main": segments.is_main,
            "window_start_s": segments.start_s,
            "window_end_s": segments.end_s,
            "frequency_hz": segments.frequency_hz,
            "period_s": 1.0 / segments.frequency_hz,
            "period_error_s": segments.period_error_s,
            "confidence": segments.confidence,
            "segment_bytes": segments.volume_bytes,
            "burst_width_s": segments.burst_width_s,
            "duty_ratio": np.minimum(segments.burst_width_s * segments.frequency_hz, 1.0),
            "false_alarm_probability": segments.false_alarm_probability,
        }
    )
    rows = pl.concat([keys[segments.owner], columns.with_columns(pl.col(pl.Float64).fill_nan(None))], how="horizontal")
    # subjects without a valid signal have no result, regardless of their samples
    return (
        rows.filter(pl.col("untold").is_null())
        .with_columns(method=pl.lit(answer.method))
        .select(PERIOD_SEGMENTS.column_names)
    )
