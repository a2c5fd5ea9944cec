"""The periods of one input: as the night would give them, or of a window and at a sampling frequency of one's own.

Without a window, a sampling frequency or a first phase to skip, the rows are those of the night. With them a traced
run's throughput is cut and sampled anew: FTIO's methods see it at instants, as their paper says, ours and AUTOPERIOD
see the bytes in each step; series and polls get steps of that length.
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

from iosig.answers.documents import Document, Part, columns_of
from iosig.answers.single.one_input import PollInput, SeriesInput, TraceInput, opened
from iosig.estimates.periods import judged_of, params_of, rows_from, segments_from
from iosig.estimates.subjects import Subjects, series_subjects, traced_requests, traced_subjects
from iosig.settings.model import Settings
from iosig.streams.landing import Told
from iosig.transforms.arrays import Ints, Ragged, Reals, concatenate_pieces, cut, pieces_of
from iosig.transforms.periods import windows
from iosig.transforms.periods.interface.detections import Detections, Segments, gather
from iosig.transforms.periods.interface.even_signals import EvenSignals, group_by_length
from iosig.transforms.periods.search import (
    METHODS,
    PeriodParams,
    Periods,
    find_periods as find_by_method,
    measure_periodicity,
)
from iosig.transforms.throughput import even_values
from iosig.transforms.throughput.intervals import StepParams
from iosig.transforms.throughput.requests import Requests, Steps, step_function
from iosig.warehouse.contracts.periods import PERIODS
from iosig.warehouse.contracts.traces import TRACE_REQUESTS
from iosig.warehouse.errors import UsageError

if TYPE_CHECKING:
    from iosig.transforms.periods.ftio_0_0_9 import CompatibleParams
    from iosig.transforms.periods.ftio_outliers import Method

#: those that sample at instants
_OF_INSTANTS = ("dft", "autocorrelation", "merged")
#: those that look for outliers in a spectrum, and the ways to find them, by their options' names
_OF_OUTLIERS = ("dft", "merged")
_OUTLIERS: Mapping[str, Method] = {
    "z-score": "z_score",
    "dbscan": "dbscan",
    "forest": "isolation_forest",
    "lof": "local_outlier_factor",
    "peaks": "find_peaks",
}
#: FTIO 0.0.9's wavelet mode
WAVELET = "ftio-wavelet"
#: FTIO 0.0.9's own default
_FTIO_HZ = 10.0
#: samples of a signal: a gigabyte for all that is made of them
_MOST_SAMPLES = 1 << 24
#: later times of a series are seconds since 1970
_EPOCH_S = 1e9


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: a direction, samples per second, a window in seconds, and a method or `all`.

    The window is since 1970 where `is_window_utc`, else on the input's own clock; None is all of the time. outliers:
    how FTIO's methods tell which frequencies stand out; None is by the Z-score, as of the night.
    """

    direction: str | None = None
    sampling_hz: float | None = None
    window: tuple[float, float] | None = None
    is_window_utc: bool = False
    skip_first_phase: bool = False
    method: str = "null_tested"
    outliers: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the night's own signals will do."""
        return self.sampling_hz is None and self.window is None and not self.skip_first_phase

    @property
    def methods(self) -> tuple[str, ...]:
        """Those of the night's methods that are wanted."""
        if self.method == "all":
            return METHODS
        return (self.method,) if self.method in METHODS else ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """One signal to be drawn, with one method's answer for it; segments: all of its periods, if there are several."""

    title: str
    direction: str
    method: str
    signals: EvenSignals
    detections: Detections
    has_utc_clock: bool
    segments: Segments | None = None


@dataclass(frozen=True, slots=True)
class FoundPeriods:
    """What one input tells: rows of `periods`, how many rows could not be read, and the signal that moves most.

    segments: rows of `period_segments`. zero_s: of inputs whose clock is known, its zero in seconds since 1970, else
    None. drawn: None where nothing was moved. outliers: how those that stand out of a spectrum were told.
    """

    name: str
    rows: pl.DataFrame
    refused_count: int
    zero_s: float | None
    drawn: tuple[Drawn, ...]
    outliers: str
    segments: pl.DataFrame

    def segments_of(self, row: Mapping[str, Any]) -> pl.DataFrame:
        """Return the segments of a row of `periods`, in order of time."""
        return self.segments.filter(pl.col(name).eq_missing(pl.lit(row[name])) for name in PERIODS.key)

    def outliers_of(self, method: str) -> str | None:
        """Return how a method's outliers were told; None for one that looks for none."""
        return self.outliers if method in _OF_OUTLIERS else None

    def method_text(self, method: str) -> str:
        """Return a method's name, with how its outliers were told if that was another way than the night's."""
        way = self.outliers_of(method)
        return method if way in (None, "z-score") else f"{method} ({way})"

    def document(self) -> PeriodsDocument:
        """Return the rows for programs, each with its segments."""
        rows = []
        for row in self.rows.to_dicts():
            segments = self.segments_of(row).drop(_SUBJECT_OF_SEGMENT).to_dicts()
            rows.append({**row, "outliers": self.outliers_of(row["method"]), "segments": segments})
        return PeriodsDocument(name=self.name, periods=rows)


#: columns that a segment shares with its row
_SUBJECT_OF_SEGMENT = (
    "cluster", "subject_kind", "subject_id", "started_at", "ended_on", "filesystem", "direction", "basis", "method",
)  # fmt: skip


class _SegmentRow(
    Part, extra="allow", json_schema_extra=columns_of("period_segments", but=_SUBJECT_OF_SEGMENT, are_nullable=True)
):
    """A row of `period_segments`, without its subject."""


class _PeriodRow(Part, extra="allow", json_schema_extra=columns_of("periods")):
    """A row of `periods`."""

    # the command knows methods that no night uses
    method: str
    outliers: str | None = Field(description="how frequencies that stand out were found")
    segments: list[_SegmentRow] = Field(description="its periods, in order of time")


class PeriodsDocument(Document, title="iosig period"):
    """How often bursts come."""

    format: Literal["iosig-periods/1"] = "iosig-periods/1"
    name: str = Field(description="the input")
    periods: list[_PeriodRow] = Field(description="a row for each subject, direction and method")


@dataclass(frozen=True)
class _Signals:
    """Subjects as they are to be judged: by ours and AUTOPERIOD, by FTIO's methods, and exactly if that is known."""

    binned: Subjects
    instants: Subjects
    requests: Requests | None
    zero_s: float | None

    @cached_property
    def steps(self) -> Steps | None:
        """The throughput, exactly."""
        return None if self.requests is None else step_function(self.requests)


def find_periods(path: Path, settings: Settings, told: Told, asked: Asked) -> FoundPeriods:
    """Find the periods in one input: a row for each subject, direction and method.

    Raises InputRefused if it tells of no bytes over time, UsageError where what is asked for does not fit it.
    """
    params = _params(settings, asked)
    with opened(path, settings, told) as found:
        signals = _of_trace(found, settings, asked) if isinstance(found, TraceInput) else _of_rows(found, asked)
    answers = list(_answers(signals, params, asked))
    rows = pl.concat(rows_from(subjects.keys, judged, answer) for subjects, judged, answer in answers)
    ordered = rows.sort("subject_id", "direction", nulls_last=True, maintain_order=True)
    segments = pl.concat(segments_from(subjects.keys, answer) for subjects, _, answer in answers)
    drawn = _drawn(found.name, answers, signals.zero_s)
    way = asked.outliers or "z-score"
    return FoundPeriods(found.name, ordered, found.refused_count, signals.zero_s, drawn, way, segments)


def _params(settings: Settings, asked: Asked) -> PeriodParams:
    """Return the night's parameters, with another way to find outliers where one is asked for."""
    params = params_of(settings.periods, asked.methods)
    if asked.outliers is None:
        return params
    if params.dft is None:
        raise UsageError(f"--outliers has no meaning with --method {asked.method}: use it with dft, merged or all.")
    return replace(params, dft=replace(params.dft, method=_OUTLIERS[asked.outliers]))


def _answers(signals: _Signals, params: PeriodParams, asked: Asked) -> Iterator[tuple[Subjects, pl.DataFrame, Periods]]:
    for subjects, methods in (
        (signals.binned, [name for name in params.methods if name not in _OF_INSTANTS]),
        (signals.instants, [name for name in params.methods if name in _OF_INSTANTS]),
    ):
        if methods:
            wanted = replace(params, methods=tuple(methods))
            judged = judged_of(subjects, signals.steps)
            made = find_by_method(subjects.samples, subjects.sampling_hz, subjects.start_s, wanted, signals.steps)
            yield from ((subjects, judged, answer) for answer in made)
    if asked.method in ("ftio", "all", WAVELET):
        yield signals.binned, judged_of(signals.binned, signals.steps), _compatible(signals, asked)


# ---- traces


def _of_trace(found: TraceInput, settings: Settings, asked: Asked) -> _Signals:
    subjects = _directed(
        traced_subjects(found.jobs, found.counters, found.signals, settings.traces.max_interval_ratio), asked
    )
    # those without bytes have edges to FTIO; to all others they are nothing
    requests = traced_requests(subjects.keys, found.signals, found.landed[TRACE_REQUESTS.name], with_empty=True)
    (started_at,) = found.jobs["started_at"]
    zero_s = started_at.timestamp() if started_at else None
    if asked.is_plain:
        return _Signals(subjects, subjects, requests, zero_s)
    steps = step_function(requests)
    low, high = _bounds(asked, zero_s)
    start_s, end_s = np.maximum(subjects.start_s, low), np.minimum(subjects.end_s, high)
    if asked.skip_first_phase:
        start_s = windows.find_first_phases(steps, start_s, end_s).skip_first(start_s)
    hz = np.full(len(start_s), asked.sampling_hz) if asked.sampling_hz else subjects.sampling_hz
    count = _sample_counts(end_s - start_s, hz)
    inside = windows.clip_steps(steps, start_s, end_s).requests()
    bins = even_values.bin_requests(inside, even_values.Grid(start_s, 1.0 / hz, count))
    points = even_values.sample_at(steps, even_values.Instants(start_s, hz, count))
    return _Signals(
        Subjects(subjects.keys, Ragged(bins.bytes_per_s, bins.grid.offsets), hz, start_s),
        Subjects(subjects.keys, points, hz, start_s),
        requests,
        zero_s,
    )


def _sample_counts(duration_s: Reals, hz: Reals) -> Ints:
    """Return N = floor(dt f_s) of the paper, or refuse what no memory holds."""
    # a whole number of samples may miss it by rounding
    count = np.floor(np.maximum(duration_s, 0.0) * hz + 1e-9)
    if (count > _MOST_SAMPLES).any():
        raise UsageError(f"{count.max():,.0f} samples are too many: {_MOST_SAMPLES:,} at most. Lower --sampling-hz.")
    return count.astype(np.int64)


# ---- series and polls


def _of_rows(found: SeriesInput | PollInput, asked: Asked) -> _Signals:
    """Return series, or a file system's polls all together, on even steps."""
    if isinstance(found, PollInput):
        zero_s, rows = _poll_intervals(found.rows)
    else:
        zero_s, rows = None, found.rows
    is_utc = zero_s is not None or bool((rows["time_s"] >= _EPOCH_S).all())
    start_s, end_s = _bounds(asked, zero_s if zero_s is not None else 0.0 if is_utc else None)
    within = rows.with_columns(
        left_s=pl.max_horizontal(pl.col("time_s") - pl.col("interval_s"), pl.lit(start_s)),
        time_s=pl.min_horizontal("time_s", pl.lit(end_s)),
    ).filter(pl.col("time_s") > pl.col("left_s"))
    trimmed = within.with_columns(interval_s=pl.col("time_s") - pl.col("left_s"))
    params = StepParams(interval_s=1.0 / asked.sampling_hz if asked.sampling_hz else None)
    subjects = series_subjects(trimmed, params)
    if isinstance(found, PollInput):
        subjects = replace(subjects, keys=_of_filesystems(subjects.keys, zero_s or 0.0))
    subjects = _directed(subjects, asked)
    if asked.skip_first_phase:
        subjects = _without_first_phase(subjects)
    return _Signals(subjects, subjects, None, zero_s if zero_s is not None else 0.0 if is_utc else None)


def _poll_intervals(polls: pl.DataFrame) -> tuple[float, pl.DataFrame]:
    """Return when the first poll's interval began, in seconds since 1970, and rows as of series, from there on."""
    summed = (
        polls.unpivot(
            ["read_bytes_per_s", "write_bytes_per_s"],
            index=["filesystem", "polled_at", "interval_s"],
            variable_name="direction",
            value_name="bytes_per_s",
        )
        .group_by("filesystem", "polled_at", "interval_s", "direction")
        # Controllers that did not report are not known; the others' bytes are.
        .agg(pl.when(pl.col("bytes_per_s").is_not_null().any()).then(pl.col("bytes_per_s").sum()))
        .with_columns(time_s=pl.col("polled_at").dt.epoch("us") / 1e6)
    )
    zero_s = float(summed.select((pl.col("time_s") - pl.col("interval_s")).min()).item())
    rows = summed.select(
        pl.lit(None, pl.Date).alias("ended_on"),
        pl.col("filesystem").alias("subject_id"),
        pl.col("direction").str.strip_suffix("_bytes_per_s"),
        pl.col("time_s") - zero_s,
        "interval_s",
        "bytes_per_s",
    )
    return zero_s, rows


def _of_filesystems(keys: pl.DataFrame, zero_s: float) -> pl.DataFrame:
    return keys.with_columns(
        pl.col("subject_id").alias("filesystem"),
        basis=pl.lit("polled"),
        started_at=pl.lit(datetime.fromtimestamp(zero_s, UTC)).cast(pl.Datetime("us", "UTC")),
    )


def _without_first_phase(subjects: Subjects) -> Subjects:
    """Return signals that begin with their second phase."""
    start_s = subjects.start_s.copy()
    for place, group in group_by_length(subjects.samples, subjects.sampling_hz, subjects.start_s):
        start_s[place] = windows.find_first_phases_of_signals(group).skip_first(group.start_s)
    first = np.rint((start_s - subjects.start_s) * subjects.sampling_hz).astype(np.int64)
    begin, end = subjects.samples.offsets[:-1] + first, subjects.samples.offsets[1:] - 1
    return replace(subjects, samples=cut(subjects.samples.values, begin, end), start_s=start_s)


# ---- both


def _bounds(asked: Asked, zero_s: float | None) -> tuple[float, float]:
    """Return the window that is asked for, on the input's own clock."""
    start_s, end_s = asked.window or (-math.inf, math.inf)
    if not asked.is_window_utc:
        return start_s, end_s
    if zero_s is None:
        raise UsageError("The input's clock is not known to be UTC: give the window in its own seconds, as A:B.")
    return start_s - zero_s, end_s - zero_s


def _directed(subjects: Subjects, asked: Asked) -> Subjects:
    """Return the subjects of the direction that is asked for."""
    if asked.direction is None:
        return subjects
    at = np.flatnonzero((subjects.keys["direction"] == asked.direction).to_numpy())
    offsets = subjects.samples.offsets
    return Subjects(
        subjects.keys[at],
        cut(subjects.samples.values, offsets[at], offsets[at + 1] - 1),
        subjects.sampling_hz[at],
        subjects.start_s[at],
    )


def _compatible(signals: _Signals, asked: Asked) -> Periods:
    """Return what FTIO 0.0.9 would say: of requests as it samples them itself, else of the samples as they are."""
    # No other method needs it, nor most calls.
    from iosig.transforms.periods import ftio_0_0_9

    subjects, segments = signals.binned, None
    is_wavelet = asked.method == WAVELET
    if signals.requests is not None:
        start_s, end_s = _bounds(asked, signals.zero_s)
        params = ftio_0_0_9.CompatibleParams(
            sampling_hz=asked.sampling_hz or _FTIO_HZ,
            window_start_s=start_s if math.isfinite(start_s) else 0.0,
            window_end_s=end_s if math.isfinite(end_s) else 0.0,
        )
        if is_wavelet:
            found, segments = _wavelet(ftio_0_0_9.sum_bandwidth(signals.requests), params)
        else:
            found = ftio_0_0_9.detect(ftio_0_0_9.sum_bandwidth(signals.requests), params)
    elif is_wavelet:
        found, segments = _wavelet(subjects, None)
    else:
        groups = list(group_by_length(subjects.samples, subjects.sampling_hz, subjects.start_s))
        parts = [ftio_0_0_9.detect_in_samples(group) for _, group in groups]
        found = gather(parts, [place for place, _ in groups])
    none = np.full(found.signal_count, np.nan)
    measured = measure_periodicity(found, subjects.samples, subjects.sampling_hz, subjects.start_s, signals.steps)
    return Periods(WAVELET if is_wavelet else "ftio", found, none, measured, segments)


def _wavelet(found: Steps | Subjects, params: CompatibleParams | None) -> tuple[Detections, Segments]:
    """Return what FTIO 0.0.9's wavelet mode would say of requests, or of samples as they are."""
    from iosig.transforms.periods import ftio_wavelet

    if isinstance(found, Steps):
        return ftio_wavelet.detect(found, params)
    groups = list(group_by_length(found.samples, found.sampling_hz, found.start_s))
    parts = [(place, ftio_wavelet.detect_in_samples(group)) for place, group in groups]
    order = np.argsort(np.concatenate([place for place, _ in parts]), kind="stable")
    segments = pieces_of(concatenate_pieces([own for _, (_, own) in parts]), order)
    return gather([detections for _, (detections, _) in parts], [place for place, _ in parts]), segments


def _drawn(name: str, answers: list[tuple[Subjects, pl.DataFrame, Periods]], zero_s: float | None) -> tuple[Drawn, ...]:
    """Return the signal that moves most, with each method's answer."""
    if not answers:
        return ()
    subjects = answers[0][0]
    counts, owner = subjects.samples.counts, subjects.samples.owner
    volume = np.bincount(owner, np.nan_to_num(subjects.samples.values), len(counts)) / subjects.sampling_hz
    if not len(volume) or not volume.max() > 0:
        return ()
    key = subjects.keys.row(int(volume.argmax()), named=True)
    # a file's own name tells it: where it lies does not
    own = PurePath(name).name or name
    title = own if key["subject_id"] == name else f"{key['subject_id']} in {own}"
    return tuple(_drawn_by(title, one, answer, key, zero_s) for one, _, answer in answers)


def _drawn_by(title: str, subjects: Subjects, answer: Periods, key: dict[str, Any], zero_s: float | None) -> Drawn:
    """Return one subject's signal, with one method's answer."""
    at = next(place for place, one in enumerate(subjects.keys.iter_rows(named=True)) if one == key)
    values = subjects.samples.values[subjects.samples.offsets[at] : subjects.samples.offsets[at + 1]]
    shift = zero_s or 0.0
    signals = EvenSignals.from_samples(values, subjects.sampling_hz[at], subjects.start_s[at] + shift)
    found = answer.detections.select(np.array([at]))
    refined = answer.refined_confidence[[at]]
    moved = replace(
        found,
        # as it is told in the table
        confidence=np.where(np.isfinite(refined), refined, found.confidence),
        window_start_s=found.window_start_s + shift,
        window_end_s=found.window_end_s + shift,
    )
    segments = answer.segments and answer.segments.select_signal(at, shift)
    return Drawn(title, key["direction"], answer.method, signals, moved, zero_s is not None, segments)
