"""Find the periods of one input: as in the nightly flow, or for a time window and sampling frequency.

Without a window, a sampling frequency or a first phase to skip, the rows equal those of the nightly flow. Otherwise a
traced run's throughput is clipped and resampled; series and polls get steps of that length. FTIO's methods search a
window as requested, and its open ends from the first and to the last I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from iosig.answers.documents import Document, Part, make_columns_schema
from iosig.answers.single.one_input import PollInput, SeriesInput, TraceInput, open_input
from iosig.estimates.periods import (
    Window,
    count_samples,
    get_params,
    rows_from,
    search_subjects,
    segments_from,
    summarize_signals,
    trace_autoperiod,
)
from iosig.estimates.subjects import Subjects, build_trace_subjects, collect_trace_requests, series_subjects
from iosig.reports.answer_tables import MAX_ROWS, render_table
from iosig.reports.texts import duration_text, ratio_text
from iosig.settings.model import Settings
from iosig.settings.periods import PeriodSettings
from iosig.streams.landing import ReadOptions
from iosig.transforms.arrays import Ints, Ragged, Reals, concatenate_pieces, cut, pieces_of
from iosig.transforms.periods import windows
from iosig.transforms.periods.interface.detections import Detections, Segments, gather
from iosig.transforms.periods.interface.even_signals import EvenSignals, group_by_length
from iosig.transforms.periods.search import METHODS, PeriodParams, Periods, Sampling, measure_periodicity
from iosig.transforms.throughput import even_values
from iosig.transforms.throughput.intervals import StepParams
from iosig.transforms.throughput.requests import Requests, Steps, step_function
from iosig.warehouse.contracts.metrics import Metric
from iosig.warehouse.contracts.periods import PERIODS
from iosig.warehouse.contracts.traces import TRACE_REQUESTS
from iosig.warehouse.errors import InputRefused, UsageError

if TYPE_CHECKING:
    from iosig.reports.panels import Picture
    from iosig.reports.periods.view import PeriodView
    from iosig.transforms.periods.autoperiod import SearchSteps
    from iosig.transforms.periods.ftio_0_0_9 import CompatibleParams

#: methods that test the spectrum for outliers
OUTLIER_METHODS = ("dft", "merged")
#: FTIO 0.0.9's wavelet mode
WAVELET = "ftio-wavelet"
_FTIO_0_0_9 = ("ftio", WAVELET)
#: FTIO 0.0.9's own default
_FTIO_HZ = 10.0
#: endings of the rates of polls, by metric
_POLLED: dict[Metric, str] = {"bytes": "bytes_per_s", "operations": "iops"}
#: maximum samples of a signal: bounds memory to about 1 GB
_MAX_SAMPLES = 1 << 24
#: series with times from this value on are in seconds since 1970 [s]
_EPOCH_S = 1e9


@dataclass(frozen=True, slots=True)
class Query:
    """Options of a period search: direction, sampling frequency, window in seconds, and a method or `all`.

    window: since 1970 if `is_window_utc`, else on the input's clock; None selects all times. sampling_hz: `auto` is the
    inverse of the shortest time between two changes of a trace's rate. metric: what polls are analyzed for.
    """

    direction: str | None = None
    sampling_hz: float | Literal["auto"] | None = None
    window: tuple[float, float] | None = None
    is_window_utc: bool = False
    skip_first_phase: bool = False
    method: str = "null_tested"
    metric: Metric = "bytes"

    @property
    def is_plain(self) -> bool:
        """Whether the signals of the nightly flow can be used unchanged."""
        return self.sampling_hz is None and self.window is None and not self.skip_first_phase

    @property
    def given_hz(self) -> float | None:
        """Requested sampling frequency, if it is a number."""
        return None if self.sampling_hz == "auto" else self.sampling_hz

    @property
    def methods(self) -> tuple[str, ...]:
        """Requested methods of the nightly flow, without FTIO 0.0.9 and its wavelet mode."""
        if self.method == "all":
            return METHODS
        return (self.method,) if self.method in METHODS else ()


@dataclass(frozen=True, slots=True)
class DrawnSignal:
    """A signal with the result of one method, for the figure.

    segments: all periods, if there are several. steps: intermediate results of AUTOPERIOD.
    """

    title: str
    direction: str
    method: str
    signals: EvenSignals
    detections: Detections
    has_utc_clock: bool
    segments: Segments | None = None
    metric: Metric = "bytes"
    steps: SearchSteps | None = None


@dataclass(frozen=True, slots=True)
class PeriodResult:
    """Result of a period search: rows of `periods`, count of unreadable rows, and the signal with the largest volume.

    segments: rows of `period_segments`. zero_s: zero of the input's clock in seconds since 1970, None if unknown.
    drawn: empty if nothing was moved. settings: those of the search.
    """

    name: str
    rows: pl.DataFrame
    refused_count: int
    zero_s: float | None
    drawn: tuple[DrawnSignal, ...]
    settings: PeriodSettings
    segments: pl.DataFrame

    def segments_of(self, row: Mapping[str, Any]) -> pl.DataFrame:
        """Select the segments of a row of `periods`, in chronological order."""
        return self.segments.filter(pl.col(name).eq_missing(pl.lit(row[name])) for name in PERIODS.key)

    def outliers_of(self, method: str) -> str | None:
        """Return the test of outliers of a method; None for methods without one."""
        return self.settings.outliers if method in OUTLIER_METHODS else None

    def method_text(self, method: str) -> str:
        """Return a method's name, with its test of outliers unless that is the Z-score alone."""
        test, merge = self.outliers_of(method), self.settings.outlier_merge
        if test in (None, "z_score"):
            return method
        return f"{method} ({test})" if merge == "none" else f"{method} ({test}, {merge})"

    def draw(self) -> Picture:
        """Draw the signal with the largest volume and the result of each method; raises UsageError if nothing moved."""
        from iosig.reports.periods.picture import draw, draw_all

        if not self.drawn:
            raise UsageError("Nothing to draw: the input moved no bytes, or has no times of transfers.")
        views = [self._build_view(signal) for signal in self.drawn]
        return draw_all(views) if len(views) > 1 else draw(views[0])

    def _build_view(self, signal: DrawnSignal) -> PeriodView:
        from iosig.reports.periods.view import build_view

        return build_view(
            signal.signals,
            signal.detections,
            title=signal.title,
            direction=signal.direction,
            method=self.method_text(signal.method),
            has_utc_clock=signal.has_utc_clock,
            steps=signal.steps,
            has_z_score=self.outliers_of(signal.method) in (None, "z_score"),
            segments=signal.segments,
            metric=signal.metric,
        )

    def _repr_html_(self) -> str:
        """Return the result of each method as a table, which notebooks show."""
        return render_table(
            f"Periods of {self.name}",
            ("subject", "direction", "method", "outcome", "period", "false-alarm probability", "confidence"),
            [
                (
                    row["subject_id"],
                    row["direction"],
                    self.method_text(row["method"]),
                    row["outcome"],
                    None if row["period_s"] is None else duration_text(row["period_s"]),
                    _format_ratio(row["false_alarm_probability"]),
                    _format_ratio(row["confidence"]),
                )
                for row in self.rows.head(MAX_ROWS).iter_rows(named=True)
            ],
            self.rows.height,
        )

    def build_document(self) -> PeriodsDocument:
        """Build the JSON document: rows with their segments."""
        rows = []
        for row in self.rows.to_dicts():
            segments = self.segments_of(row).drop(_SUBJECT_OF_SEGMENT).to_dicts()
            rows.append({**row, "outliers": self.outliers_of(row["method"]), "segments": segments})
        return PeriodsDocument(name=self.name, periods=rows)


def _format_ratio(value: float | None) -> str | None:
    return None if value is None else ratio_text(value)


#: columns that a segment shares with its row
_SUBJECT_OF_SEGMENT = (
    "cluster", "subject_kind", "subject_id", "started_at", "ended_on", "filesystem", "direction", "metric", "basis",
    "method",
)  # fmt: skip


class _SegmentRow(
    Part,
    extra="allow",
    json_schema_extra=make_columns_schema("period_segments", exclude=_SUBJECT_OF_SEGMENT, are_nullable=True),
):
    """A row of `period_segments`, without its subject."""


class _PeriodRow(Part, extra="allow", json_schema_extra=make_columns_schema("periods")):
    """Columns of the published table `periods`, with segments."""

    # the command has methods that the nightly flow does not have
    method: str
    outliers: str | None = Field(description="test of outliers in the spectrum")
    segments: list[_SegmentRow] = Field(description="its periods, in order of time")


class PeriodsDocument(Document, title="iosig period"):
    """Periods of the I/O of one input."""

    format: Literal["iosig-periods/1"] = "iosig-periods/1"
    name: str = Field(description="the input")
    periods: list[_PeriodRow] = Field(description="a row for each subject, direction and method")


@dataclass(frozen=True)
class _Signals:
    """Binned signals of the window on the input's clock, and exact requests if known."""

    binned: Subjects
    requests: Requests | None
    zero_s: float | None
    window: Window

    @cached_property
    def steps(self) -> Steps | None:
        """Exact throughput as a step function; None without requests."""
        return None if self.requests is None else step_function(self.requests)


def find_periods(path: Path, settings: Settings, read_options: ReadOptions, query: Query) -> PeriodResult:
    """Find the periods in one input: one row per subject, direction and method.

    Raises InputRefused if the input has no bytes over time, UsageError if the options do not fit it.
    """
    params = _params(settings, query)
    with open_input(path, settings, read_options) as one_input:
        if query.metric == "operations" and not isinstance(one_input, PollInput):
            raise UsageError("--metric operations is for polls: a series or trace is analyzed for its bytes.")
        signals = (
            _read_trace_signals(one_input, settings, query)
            if isinstance(one_input, TraceInput)
            else _read_row_signals(one_input, query)
        )
    results = list(_answers(signals, params, query))
    rows = pl.concat(rows_from(subjects.keys, summaries, answer, params) for subjects, summaries, answer in results)
    ordered = rows.sort("subject_id", "direction", nulls_last=True, maintain_order=True)
    segments = pl.concat(segments_from(subjects.keys, answer) for subjects, _, answer in results)
    drawn = _build_drawn_signals(one_input.name, results, signals.zero_s, params)
    return PeriodResult(
        one_input.name, ordered, one_input.refused_count, signals.zero_s, drawn, settings.periods, segments
    )


def _params(settings: Settings, query: Query) -> PeriodParams:
    """Return the parameters of the nightly flow."""
    if query.sampling_hz == "auto" and query.method in (*_FTIO_0_0_9, "all"):
        raise UsageError(f"--sampling-hz auto is none of FTIO 0.0.9's: use it with one of {', '.join(METHODS)}.")
    return get_params(settings.periods, query.methods)


def _answers(signals: _Signals, params: PeriodParams, query: Query) -> Iterator[tuple[Subjects, pl.DataFrame, Periods]]:
    yield from search_subjects(signals.binned, params, signals.steps, signals.window)
    if query.method in (*_FTIO_0_0_9, "all"):
        sampling: Sampling = "bins" if signals.requests is None else "instants"
        yield signals.binned, summarize_signals(signals.binned, signals.steps, sampling), _run_ftio(signals, query)


# ---- traces


def _read_trace_signals(trace: TraceInput, settings: Settings, query: Query) -> _Signals:
    subjects = _select_direction(
        build_trace_subjects(trace.jobs, trace.counters, trace.signals, settings.traces.max_interval_ratio), query
    )
    # FTIO uses the edges of requests without bytes; other methods ignore them
    requests = collect_trace_requests(subjects.keys, trace.signals, trace.landed[TRACE_REQUESTS.name], with_empty=True)
    (started_at,) = trace.jobs["started_at"]
    zero_s = started_at.timestamp() if started_at else None
    low, high = _bounds(query, zero_s)
    if query.is_plain:
        return _Signals(subjects, requests, zero_s, (low, high))
    steps = step_function(requests)
    start_s, end_s = np.maximum(subjects.start_s, low), np.minimum(subjects.end_s, high)
    if query.skip_first_phase:
        start_s = windows.find_first_phases(steps, start_s, end_s).skip_first(start_s)
    hz = np.full(len(start_s), query.given_hz) if query.given_hz else subjects.sampling_hz
    if query.sampling_hz == "auto":
        shortest_s = windows.find_smallest_changes(windows.clip_steps(steps, start_s, end_s))
        hz = np.where(np.isnan(shortest_s), hz, 1.0 / shortest_s)
    count = _sample_counts(end_s - start_s, hz)
    inside = windows.clip_steps(steps, start_s, end_s).requests()
    bins = even_values.bin_requests(inside, even_values.Grid(start_s, 1.0 / hz, count))
    binned = Subjects(subjects.keys, Ragged(bins.bytes_per_s, bins.grid.offsets), hz, start_s)
    return _Signals(binned, requests, zero_s, (low, high))


def _sample_counts(duration_s: Reals, hz: Reals) -> Ints:
    """Return the sample counts; raises UsageError above `_MAX_SAMPLES`."""
    count = np.maximum(duration_s, 0.0) * hz
    if (count > _MAX_SAMPLES).any():
        raise UsageError(
            f"{count.max():,.0f} samples exceed the maximum of {_MAX_SAMPLES:,}. Pass a lower --sampling-hz."
        )
    return count_samples(duration_s, hz)


# ---- series and polls


def _read_row_signals(one_input: SeriesInput | PollInput, query: Query) -> _Signals:
    """Resample series, or the summed polls of each file system, to even steps."""
    if query.sampling_hz == "auto":
        raise UsageError(
            "--sampling-hz auto requires a trace with requests. Leave it out: rows have steps of their own."
        )
    if isinstance(one_input, PollInput):
        zero_s, rows = _poll_intervals(one_input, query.metric)
    else:
        zero_s, rows = None, one_input.rows
    is_utc = zero_s is not None or bool((rows["time_s"] >= _EPOCH_S).all())
    start_s, end_s = _bounds(query, zero_s if zero_s is not None else 0.0 if is_utc else None)
    within = rows.with_columns(
        left_s=pl.max_horizontal(pl.col("time_s") - pl.col("interval_s"), pl.lit(start_s)),
        time_s=pl.min_horizontal("time_s", pl.lit(end_s)),
    ).filter(pl.col("time_s") > pl.col("left_s"))
    trimmed = within.with_columns(interval_s=pl.col("time_s") - pl.col("left_s"))
    params = StepParams(interval_s=1.0 / query.given_hz if query.given_hz else None)
    subjects = series_subjects(trimmed, params)
    if isinstance(one_input, PollInput):
        subjects = replace(subjects, keys=_label_filesystems(subjects.keys, query.metric, zero_s or 0.0))
    subjects = _select_direction(subjects, query)
    if query.skip_first_phase:
        subjects = _without_first_phase(subjects)
    clock_s = zero_s if zero_s is not None else 0.0 if is_utc else None
    return _Signals(subjects, None, clock_s, (start_s, end_s))


def _poll_intervals(polls: PollInput, metric: Metric) -> tuple[float, pl.DataFrame]:
    """Return the start of the first poll [s since 1970], and polls summed per file system as series relative to it.

    Raises InputRefused if the polls have no values of the metric.
    """
    columns = {f"{direction}_{_POLLED[metric]}": direction for direction in ("read", "write")}
    if metric == "operations" and not polls.rows.select(pl.col(*columns).is_not_null().any()).row(0).count(True):
        raise InputRefused(
            f"{polls.name} has no operations per second.", "Map its columns read_iops and write_iops (docs/formats.md)."
        )
    summed = (
        polls.rows.unpivot(
            list(columns),
            index=["filesystem", "polled_at", "interval_s"],
            variable_name="direction",
            value_name="bytes_per_s",
        )
        .group_by("filesystem", "polled_at", "interval_s", "direction")
        # sum the controllers that reported; NULL only if none did
        .agg(pl.when(pl.col("bytes_per_s").is_not_null().any()).then(pl.col("bytes_per_s").sum()))
        .with_columns(time_s=pl.col("polled_at").dt.epoch("us") / 1e6)
    )
    zero_s = float(summed.select((pl.col("time_s") - pl.col("interval_s")).min()).item())
    rows = summed.select(
        pl.lit(None, pl.Date).alias("ended_on"),
        pl.col("filesystem").alias("subject_id"),
        pl.col("direction").replace_strict(columns),
        pl.col("time_s") - zero_s,
        "interval_s",
        "bytes_per_s",
    )
    return zero_s, rows


def _label_filesystems(keys: pl.DataFrame, metric: Metric, zero_s: float) -> pl.DataFrame:
    return keys.with_columns(
        pl.col("subject_id").alias("filesystem"),
        basis=pl.lit("polled"),
        metric=pl.lit(metric),
        started_at=pl.lit(datetime.fromtimestamp(zero_s, UTC)).cast(pl.Datetime("us", "UTC")),
    )


def _without_first_phase(subjects: Subjects) -> Subjects:
    """Remove the first phase of each signal."""
    start_s = subjects.start_s.copy()
    for place, group in group_by_length(subjects.samples, subjects.sampling_hz, subjects.start_s):
        start_s[place] = windows.find_first_phases_of_signals(group).skip_first(group.start_s)
    first = np.rint((start_s - subjects.start_s) * subjects.sampling_hz).astype(np.int64)
    begin, end = subjects.samples.offsets[:-1] + first, subjects.samples.offsets[1:] - 1
    intervals = subjects.intervals
    if intervals is not None:
        is_before = intervals.right_s - intervals.interval_s / 2 < start_s[intervals.owner]
        intervals = replace(intervals, bytes_per_s=np.where(is_before, np.nan, intervals.bytes_per_s))
    samples = cut(subjects.samples.values, begin, end)
    return replace(subjects, samples=samples, start_s=start_s, intervals=intervals)


# ---- both


def _bounds(query: Query, zero_s: float | None) -> tuple[float, float]:
    """Return the requested window on the input's clock."""
    start_s, end_s = query.window or (-math.inf, math.inf)
    if not query.is_window_utc:
        return start_s, end_s
    if zero_s is None:
        raise UsageError("The input's clock is not known to be UTC: pass the window in its own seconds, as A:B.")
    return start_s - zero_s, end_s - zero_s


def _select_direction(subjects: Subjects, query: Query) -> Subjects:
    """Select the subjects of the requested direction."""
    if query.direction is None:
        return subjects
    at = np.flatnonzero((subjects.keys["direction"] == query.direction).to_numpy())
    offsets = subjects.samples.offsets
    return Subjects(
        subjects.keys[at],
        cut(subjects.samples.values, offsets[at], offsets[at + 1] - 1),
        subjects.sampling_hz[at],
        subjects.start_s[at],
        subjects.intervals and pieces_of(subjects.intervals, at),
    )


def _run_ftio(signals: _Signals, query: Query) -> Periods:
    """Run FTIO 0.0.9 on requests with its own sampling, else on the given samples."""
    # imported here, since most calls do not need it
    from iosig.transforms.periods import ftio_0_0_9

    subjects, segments = signals.binned, None
    is_wavelet = query.method == WAVELET
    if signals.requests is not None:
        start_s, end_s = _bounds(query, signals.zero_s)
        params = ftio_0_0_9.CompatibleParams(
            sampling_hz=query.given_hz or _FTIO_HZ,
            window_start_s=start_s if math.isfinite(start_s) else 0.0,
            window_end_s=end_s if math.isfinite(end_s) else 0.0,
        )
        if is_wavelet:
            detections, segments = _wavelet(ftio_0_0_9.sum_bandwidth(signals.requests), params)
        else:
            detections = ftio_0_0_9.detect(ftio_0_0_9.sum_bandwidth(signals.requests), params)
    elif is_wavelet:
        detections, segments = _wavelet(subjects, None)
    else:
        groups = list(group_by_length(subjects.samples, subjects.sampling_hz, subjects.start_s))
        parts = [ftio_0_0_9.detect_in_samples(group) for _, group in groups]
        detections = gather(parts, [place for place, _ in groups])
    none = np.full(detections.signal_count, np.nan)
    measured = measure_periodicity(detections, subjects.samples, subjects.sampling_hz, subjects.start_s, signals.steps)
    return Periods(WAVELET if is_wavelet else "ftio", detections, none, measured, segments)


def _wavelet(signals: Steps | Subjects, params: CompatibleParams | None) -> tuple[Detections, Segments]:
    """Run the wavelet mode of FTIO 0.0.9 on requests, or on samples."""
    from iosig.transforms.periods import ftio_wavelet

    if isinstance(signals, Steps):
        return ftio_wavelet.detect(signals, params)
    groups = list(group_by_length(signals.samples, signals.sampling_hz, signals.start_s))
    parts = [(place, ftio_wavelet.detect_in_samples(group)) for place, group in groups]
    order = np.argsort(np.concatenate([place for place, _ in parts]), kind="stable")
    segments = pieces_of(concatenate_pieces([part for _, (_, part) in parts]), order)
    return gather([detections for _, (detections, _) in parts], [place for place, _ in parts]), segments


def _build_drawn_signals(
    name: str, results: list[tuple[Subjects, pl.DataFrame, Periods]], zero_s: float | None, params: PeriodParams
) -> tuple[DrawnSignal, ...]:
    """Return the signal with the largest volume, with the result of each method."""
    if not results:
        return ()
    subjects = results[0][0]
    counts, owner = subjects.samples.counts, subjects.samples.owner
    volume = np.bincount(owner, np.nan_to_num(subjects.samples.values), len(counts)) / subjects.sampling_hz
    if not len(volume) or not volume.max() > 0:
        return ()
    key = subjects.keys.row(int(volume.argmax()), named=True)
    # use the file name without its folder as title
    file_name = PurePath(name).name or name
    title = file_name if key["subject_id"] == name else f"{key['subject_id']} in {file_name}"
    return tuple(
        _build_drawn_signal(title, method_subjects, answer, key, zero_s, params)
        for method_subjects, _, answer in results
    )


def _build_drawn_signal(
    title: str, subjects: Subjects, answer: Periods, key: dict[str, Any], zero_s: float | None, params: PeriodParams
) -> DrawnSignal:
    """Return one subject's signal with the result of one method."""
    at = next(place for place, row in enumerate(subjects.keys.iter_rows(named=True)) if row == key)
    values = subjects.samples.values[subjects.samples.offsets[at] : subjects.samples.offsets[at + 1]]
    shift = zero_s or 0.0
    signals = EvenSignals.from_samples(values, subjects.sampling_hz[at], subjects.start_s[at] + shift)
    detections = answer.detections.select(np.array([at]))
    refined = answer.refined_confidence[[at]]
    shifted = replace(
        detections,
        # as in the table
        confidence=np.where(np.isfinite(refined), refined, detections.confidence),
        window_start_s=detections.window_start_s + shift,
        window_end_s=detections.window_end_s + shift,
    )
    segments = answer.segments and answer.segments.select_signal(at, shift)
    is_searched = answer.method == "autoperiod" and str(detections.outcome[0]) in ("periodic", "aperiodic")
    steps = trace_autoperiod(subjects, at, params) if is_searched else None
    return DrawnSignal(
        title, key["direction"], answer.method, signals, shifted, zero_s is not None, segments, key["metric"], steps
    )
