"""Find the periods of the I/O of subjects, and return them as rows of published tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.estimates.columns import list_column
from iosig.estimates.subjects import KEYS, Intervals, Subjects
from iosig.settings.periods import PeriodSettings
from iosig.transforms.arrays import Ints, Ragged, Reals, cut, places_within
from iosig.transforms.periods import search, windows
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.search import IntervalSampling, PeriodParams, Periods, Sampling
from iosig.transforms.throughput import even_values
from iosig.transforms.throughput.requests import Steps
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.periods import NODE_PERIODS, PERIOD_SEGMENTS, PERIODS

if TYPE_CHECKING:
    from iosig.transforms.periods.autocorrelation import AutocorrelationParams
    from iosig.transforms.periods.autoperiod import SearchSteps
    from iosig.transforms.periods.autoperiod_analysis import AutoperiodParams
    from iosig.transforms.periods.autoperiod_periodogram import UnevenSignals
    from iosig.transforms.periods.ftio import DftParams
    from iosig.transforms.periods.null_model.params import NullModelParams

DEFAULT_METHOD = "null_tested"
#: a window of time [s]; open ends are infinite
Window = tuple[float, float]
#: instants lie behind the edges of samples by this share of a sample, since bins of a heat map share these edges
_INSTANT_SHIFT = 1e-6


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


def get_params(settings: PeriodSettings, methods: Sequence[str] | None = None) -> PeriodParams:
    """Convert settings to the parameters of some methods; by default, of the methods that are published."""
    chosen = settings.methods if methods is None else methods
    return PeriodParams(
        methods=tuple(chosen),
        max_missing_ratio=settings.max_missing_ratio,
        sampling=settings.sampling,
        interval_sampling=settings.autoperiod_sampling,
        # parameters import their method, so those of unused methods are skipped
        null_tested=_make_null_model_params(settings) if "null_tested" in chosen else None,
        dft=_dft(settings) if {"dft", "merged"} & set(chosen) else None,
        autocorrelation=_autocorrelation(settings) if {"autocorrelation", "merged"} & set(chosen) else None,
        autoperiod=_autoperiod(settings) if "autoperiod" in chosen else None,
    )


def _make_null_model_params(settings: PeriodSettings) -> NullModelParams:
    from iosig.transforms.periods.null_model.params import NullModelParams

    return NullModelParams(false_alarm_probability=settings.false_alarm_level, window_levels=settings.window_levels)


def _dft(settings: PeriodSettings) -> DftParams:
    from iosig.transforms.periods.ftio import DftParams
    from iosig.transforms.periods.ftio_outliers import OutlierParams

    thresholds = OutlierParams(z_threshold=settings.z_score, tolerance=settings.tolerance)
    return DftParams(settings.outliers, thresholds, settings.outlier_merge)


def _autocorrelation(settings: PeriodSettings) -> AutocorrelationParams:
    from iosig.transforms.periods.autocorrelation import AutocorrelationParams

    return AutocorrelationParams(min_height=settings.autocorrelation_height)


def _autoperiod(settings: PeriodSettings) -> AutoperiodParams:
    from iosig.transforms.periods.autoperiod_analysis import CONFIDENCE, AutoperiodParams

    significance = settings.autoperiod_significance
    confidence = settings.autoperiod_confidence or CONFIDENCE[significance]
    # the test has a rank for this confidence only with enough permutations
    min_count = math.ceil(confidence / (1.0 - confidence)) if significance == "permutation_test" else 0
    return AutoperiodParams(significance, confidence, max(AutoperiodParams().permutation_count, min_count))


def serialize_params(method: str, params: PeriodParams) -> str | None:
    """Return the parameters of a method as JSON; None for the reproductions of FTIO 0.0.9, which have none."""
    names = ("dft", "autocorrelation") if method == "merged" else (method,)
    values = {name: asdict(value) for name in names if (value := getattr(params, name, None)) is not None}
    return json.dumps(values, sort_keys=True) if values else None


def find_rows(subjects: Subjects, params: PeriodParams, steps: Steps | None = None) -> Rows:
    """Find periods of subjects with each method.

    steps: exact throughput of the subjects, if known. A subject without a signal has rows with an outcome only.
    """
    results = list(search_subjects(subjects, params, steps))
    rows = [
        frames.empty(PERIODS),
        *(rows_from(searched.keys, summaries, answer, params) for searched, summaries, answer in results),
    ]
    segments = [
        frames.empty(PERIOD_SEGMENTS),
        *(segments_from(searched.keys, answer) for searched, _, answer in results),
    ]
    order = (*KEYS[1:8], "method")
    return Rows(
        pl.concat(rows).sort(*order, nulls_last=True, maintain_order=True),
        pl.concat(segments).sort(*order, "segment", nulls_last=True, maintain_order=True),
    )


def search_subjects(
    subjects: Subjects,
    params: PeriodParams,
    steps: Steps | None = None,
    window: Window | None = None,
) -> Iterator[tuple[Subjects, pl.DataFrame, Periods]]:
    """Search subjects with each method; yield the searched signals, their summary, and the periods, by method.

    FTIO's methods search the time from the first to the last I/O, or the requested window; the others all of the
    subject's time.

    steps: exact throughput of the subjects, if known. window: requested window, whose open ends are infinite.
    """
    whole_methods = tuple(name for name in params.methods if name not in search.FTIO_METHODS)
    has_intervals = "autoperiod" in whole_methods and params.interval_sampling == "intervals"
    intervals = subjects.intervals if has_intervals else None
    if intervals is not None:
        whole_methods = tuple(name for name in whole_methods if name != "autoperiod")
    if whole_methods:
        yield from _search(subjects, replace(params, methods=whole_methods, sampling="bins"), steps)
    if intervals is not None:
        yield _search_intervals(subjects, intervals, params)
    methods = tuple(name for name in params.methods if name in search.FTIO_METHODS)
    if methods:
        open_ends = tuple(not np.isfinite(end) for end in window or (-np.inf, np.inf))
        sampling: Sampling = "bins" if steps is None else params.sampling
        prepared = (
            _cut_to_io(subjects, open_ends, params.max_missing_ratio)
            if steps is None
            else _resample_io(subjects, steps, open_ends, sampling)
        )
        yield from _search(prepared, replace(params, methods=methods, sampling=sampling), steps)


def _search(
    subjects: Subjects, params: PeriodParams, steps: Steps | None
) -> Iterator[tuple[Subjects, pl.DataFrame, Periods]]:
    summaries = summarize_signals(subjects, steps, params.sampling)
    has_io = np.zeros(len(subjects.sampling_hz), dtype=np.bool_) if steps is None else steps.volume_bytes > 0
    for answer in search.find_periods(subjects.samples, subjects.sampling_hz, subjects.start_s, params, steps):
        # instants can miss all I/O
        is_unseen = has_io & (answer.detections.outcome == "no_io")
        yield subjects, summaries, replace(answer, detections=answer.detections.reject(is_unseen, "aperiodic"))


def _search_intervals(
    subjects: Subjects, intervals: Intervals, params: PeriodParams
) -> tuple[Subjects, pl.DataFrame, Periods]:
    """Search the intervals as measured with AUTOPERIOD."""
    signals = _to_uneven_signals(intervals)
    answer = search.find_uneven_periods(signals, subjects.samples, subjects.sampling_hz, subjects.start_s, params)
    summaries = summarize_signals(subjects, None, "intervals")
    return subjects, summaries.with_columns(sample_count=pl.Series(signals.counts)), answer


def _to_uneven_signals(intervals: Intervals) -> UnevenSignals:
    from iosig.transforms.periods.autoperiod_periodogram import UnevenSignals

    return UnevenSignals.from_intervals(
        intervals.right_s, intervals.interval_s, Ragged(intervals.bytes_per_s, intervals.offsets)
    )


def trace_autoperiod(subjects: Subjects, place: int, params: PeriodParams) -> SearchSteps:
    """Return the intermediate results of AUTOPERIOD in one subject that was searched, at an index.

    The samples are those that `search_subjects` searches with these parameters.
    """
    from iosig.transforms.periods import autoperiod, autoperiod_analysis

    autoperiod_params = params.autoperiod or autoperiod_analysis.AutoperiodParams()
    if subjects.intervals is not None and params.interval_sampling == "intervals":
        intervals = _to_uneven_signals(subjects.intervals).select(np.array([place]))
        analysis = autoperiod_analysis.analyze(intervals, autoperiod_params)
    else:
        values = subjects.samples.values[subjects.samples.offsets[place] : subjects.samples.offsets[place + 1]]
        signals = EvenSignals.from_samples(values, subjects.sampling_hz[place], subjects.start_s[place])
        analysis = autoperiod_analysis.analyze_even(signals, autoperiod_params)
    return autoperiod.trace_search(analysis, autoperiod_params)


def _cut_to_io(subjects: Subjects, open_ends: tuple[bool, ...], max_missing_ratio: float) -> Subjects:
    """Cut signals at the open ends to the time from the first to the last sample with I/O.

    Signals that are mostly missing stay whole, because their first and last I/O are unknown.
    """
    samples = subjects.samples
    first, last = windows.find_io_samples(samples)
    missing_counts = np.bincount(samples.owner[np.isnan(samples.values)], minlength=len(first))
    is_cut = missing_counts <= max_missing_ratio * samples.counts
    first = np.where(is_cut & open_ends[0], first, 0)
    last = np.where(is_cut & open_ends[1], last, samples.counts - 1)
    begin = samples.offsets[:-1]
    return replace(
        subjects,
        samples=cut(samples.values, begin + first, begin + last),
        start_s=subjects.start_s + first / subjects.sampling_hz,
    )


def _resample_io(subjects: Subjects, steps: Steps, open_ends: tuple[bool, ...], sampling: Sampling) -> Subjects:
    """Sample throughput from the first to the last I/O: N = floor(dt f_s) samples, as in FTIO's paper."""
    hz = subjects.sampling_hz
    first_s, last_s = windows.find_io_range(steps)
    has_io = ~np.isnan(first_s) & (subjects.samples.counts > 0)
    start_s, end_s = subjects.start_s, subjects.end_s
    if open_ends[0]:
        start_s = np.where(has_io, np.fmax(start_s, first_s), start_s)
    if open_ends[1]:
        # the whole samples of a subject may end within one sample of its last I/O
        end_s = np.where(has_io, np.fmin(end_s + 1.0 / hz, last_s), end_s)
    count = np.maximum(count_samples(end_s - start_s, hz), has_io)
    if sampling == "instants":
        samples = even_values.sample_at(steps, even_values.Instants(start_s + _INSTANT_SHIFT / hz, hz, count))
    else:
        bins = even_values.bin_requests(steps.requests(), even_values.Grid(start_s, 1.0 / hz, count))
        samples = Ragged(bins.bytes_per_s, bins.grid.offsets)
    return replace(subjects, samples=samples, start_s=start_s)


def count_samples(duration_s: Reals, hz: Reals) -> Ints:
    """Return the number of whole samples in each duration, N = floor(dt f_s), as in FTIO's paper."""
    # tolerate rounding errors for whole numbers of samples
    counts: Ints = np.floor(np.maximum(duration_s, 0.0) * hz + 1e-9).astype(np.int64)
    return counts


def summarize_signals(subjects: Subjects, steps: Steps | None, sampling: Sampling | IntervalSampling) -> pl.DataFrame:
    """Return sampling, missing ratio, mean and abstraction error of each subject's signal."""
    counts = subjects.samples.counts
    owner = subjects.samples.owner
    is_known = np.isfinite(subjects.samples.values)
    known_counts = np.bincount(owner[is_known], minlength=len(counts))
    total = np.bincount(owner[is_known], subjects.samples.values[is_known], len(counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.where(counts > 0, 1.0 - known_counts / counts, np.nan)
        mean = np.where(known_counts > 0, total / known_counts, np.nan)
    lost = np.full(len(counts), np.nan)
    if steps is not None:
        volume = windows.clip_steps(steps, subjects.start_s, subjects.end_s).volume_bytes
        np.divide(np.abs(total / subjects.sampling_hz - volume), volume, out=lost, where=volume > 0)
    return pl.DataFrame(
        {
            "sampling_hz": np.where(counts > 0, subjects.sampling_hz, np.nan),
            "sampling": pl.Series([sampling if count else None for count in counts.tolist()], dtype=pl.String),
            "sample_count": counts,
            "missing_ratio": missing,
            "mean_bytes_per_s": mean,
            "abstraction_error": lost,
        }
    )


def rows_from(keys: pl.DataFrame, summaries: pl.DataFrame, answer: Periods, params: PeriodParams) -> pl.DataFrame:
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
            is_default=pl.lit(answer.method == DEFAULT_METHOD) & (pl.col("metric") == "bytes"),
            outcome=pl.coalesce("untold", "found_outcome"),
            method_parameters=pl.when(has_times).then(pl.lit(serialize_params(answer.method, params), pl.String)),
        )
        .pipe(frames.separate_metrics, PERIODS)
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
        .pipe(frames.separate_metrics, PERIOD_SEGMENTS)
    )
