"""Draw traces and noise, run every method, and keep one row per result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.stats import binomtest

from iosig.studies.periods import PARTS, unseen
from iosig.studies.periods.methods import METHODS, Method, Sampling
from iosig.studies.periods.scenarios import SAMPLING_HZ, Null, Setting, list_nulls, list_settings
from iosig.studies.periods.semi_synthetic import Applications, Library, draw_applications, draw_library
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.arrays import Ragged, Reals
from iosig.transforms.periods.interface.detections import Detections, gather
from iosig.transforms.periods.interface.even_signals import EvenSignals, group_by_length
from iosig.transforms.periods.periodicity import characterize_steps

#: traces and noise signals per work item, to bound the memory of a worker
TRACE_CHUNK = 100
DRAW_CHUNK = 1000
#: independent random streams
_LIBRARY, _TRACES, _NOISE, _EXAMPLES = range(4)
#: further metrics of FTIO; all except R_IO are NaN without a period
_METRICS = ("sigma_vol", "sigma_time", "periodicity_score", "r_io")
#: confidence level of the interval of a false-alarm rate
_CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class StudyParams:
    """Sample sizes, and the results to compute.

    trace_count: traces per setting (section III-A: 100). draw_count: signals per noise. worker_count: processes, one
    per core if None. unseen_count: signals of each kind that no method was tuned on. parts: results to compute, all if
    empty.
    """

    trace_count: int = 100
    draw_count: int = 1000
    seed: int = 0
    worker_count: int | None = None
    unseen_count: int = 100
    parts: tuple[str, ...] = ()

    def wants(self, part: str) -> bool:
        """Return whether the study computes a part of the results."""
        return part in (self.parts or PARTS)


@dataclass(frozen=True, slots=True)
class Results:
    """Detections in traces, false alarms in noise, and counts on validation signals.

    answers: one row per trace and method: experiment, value, noise_level, trace, method, outcome, true_period_s,
    period_s, error_ratio, confidence, false_alarm_probability, sigma_vol, sigma_time, periodicity_score, r_io,
    true_io_ratio; NULL without an answer. alarms: one row per noise and method: kind, noise, method, draw_count,
    alarm_count, alarm_ratio, and low_ratio and high_ratio, the 95 % Clopper-Pearson interval. unseen: counts with the
    columns of `unseen.add_rates`.
    """

    params: StudyParams
    methods: tuple[Method, ...]
    answers: pl.DataFrame
    alarms: pl.DataFrame
    unseen: pl.DataFrame


@dataclass(frozen=True, slots=True)
class _WorkItem:
    """Traces of one setting, or noise signals of one kind, to draw and search."""

    subject: Setting | Null
    place: int
    chunk: int
    count: int
    seed: int
    methods: tuple[Method, ...]

    def generator(self, stream: int) -> np.random.Generator:
        """Return a random generator that is independent of all other items and streams."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stream, self.place, self.chunk)))


def study(
    params: StudyParams,
    methods: Sequence[Method] = METHODS,
    trace_settings: Sequence[Setting] | None = None,
    noises: Sequence[Null] | None = None,
    report_progress: ReportProgress = ignore_progress,
) -> Results:
    """Draw all traces and noise, run the methods, and return their results in a fixed order."""
    # the noise items take the longest, so they start first
    noise_items = list(
        _build_items(list_nulls() if noises is None else noises, params.draw_count, DRAW_CHUNK, params.seed, methods)
    )
    trace_items = list(
        _build_items(
            list_settings() if trace_settings is None else trace_settings,
            params.trace_count,
            TRACE_CHUNK,
            params.seed,
            methods,
        )
    )
    if not params.wants("traces"):
        noise_items, trace_items = [], []
    validation_items = list(_build_validation_items(params, methods))
    items: list[_WorkItem | unseen.WorkItem] = [*noise_items, *trace_items, *validation_items]
    results = map_work_items(_process_item, items, params.worker_count, report_progress)
    alarms, other_results = results[: len(noise_items)], results[len(noise_items) :]
    answers, counts = other_results[: len(trace_items)], other_results[len(trace_items) :]
    rates = unseen.add_rates(unseen.sum_counts(counts))
    return Results(params, tuple(methods), _concat(answers), _add_rates(_concat(alarms)), rates)


def _build_validation_items(params: StudyParams, methods: Sequence[Method]) -> Iterator[unseen.WorkItem]:
    """Yield the items of signals that no method was tuned on; the default method only, for kinds with many signals."""
    count, seed = params.unseen_count, params.seed
    if params.wants("rhythms"):
        yield from unseen.build_rhythm_items(count, seed, methods)
    if params.wants("memoryless"):
        yield from unseen.build_memoryless_items(count, seed, methods[:1])
    if params.wants("traps"):
        yield from unseen.build_trap_items(count, seed, methods[:1])


def _build_items(
    subjects: Sequence[Setting | Null], count: int, chunk: int, seed: int, methods: Sequence[Method]
) -> Iterator[_WorkItem]:
    for place, subject in enumerate(subjects):
        for number, first in enumerate(range(0, count, chunk)):
            yield _WorkItem(subject, place, number, min(chunk, count - first), seed, tuple(methods))


def _process_item(item: _WorkItem | unseen.WorkItem) -> pl.DataFrame:
    if isinstance(item, unseen.WorkItem):
        return unseen.count_claims(item)
    return _trace_rows(item, item.subject) if isinstance(item.subject, Setting) else _alarm_rows(item, item.subject)


def _concat(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(frames) if frames else pl.DataFrame()


# ---- traces


def _trace_rows(item: _WorkItem, setting: Setting) -> pl.DataFrame:
    """Return one row per trace and method of a work item."""
    traces = _draw_traces(setting, item.count, item.generator(_TRACES), item.seed)
    steps = traces.steps()
    samples: dict[Sampling, Ragged] = {
        "bins": traces.bins(SAMPLING_HZ),
        "instants": traces.instants(SAMPLING_HZ, steps),
    }
    frames = []
    for method in item.methods:
        detections = search_signals(method, samples[method.sampling])
        columns = {
            "experiment": setting.experiment,
            "value": setting.value,
            "noise_level": setting.params.noise_level,
            "trace": item.chunk * TRACE_CHUNK + np.arange(item.count),
            "method": method.name,
            "outcome": detections.outcome,
            "true_period_s": traces.period_s,
            "period_s": detections.period_s,
            "error_ratio": np.abs(detections.period_s - traces.period_s) / traces.period_s,
            "confidence": detections.confidence,
            "false_alarm_probability": detections.false_alarm_probability,
            "true_io_ratio": traces.io_ratio,
        }
        metrics = characterize_steps(steps, traces.window_start_s, traces.window_end_s, detections.frequency_hz)
        columns |= {name: getattr(metrics, name) for name in _METRICS}
        frames.append(pl.DataFrame(columns))
    return _nan_to_null(pl.concat(frames))


def _draw_library(seed: int) -> Library:
    """Draw the library of phases that all settings share, since the paper also traced its phases only once."""
    return draw_library(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_LIBRARY,))))


def draw_example(setting: Setting, seed: int) -> Reals:
    """Return the mean rates of one trace of a setting [B/s]."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_EXAMPLES,)))
    return _draw_traces(setting, 1, generator, seed).bins(SAMPLING_HZ).values


def _draw_traces(setting: Setting, count: int, generator: np.random.Generator, seed: int) -> Applications:
    traces = draw_applications(setting.params, count, generator, _draw_library(seed))
    if setting.window == "io_time":
        return traces.narrow_to_io()
    return traces.crop(generator) if setting.window == "cut" else traces


def search_signals(method: Method, samples: Ragged) -> Detections:
    """Apply a method to signals of different lengths (n)."""
    count = len(samples.offsets) - 1
    places, parts = [], []
    for place, signals in group_by_length(samples, np.full(count, SAMPLING_HZ), np.zeros(count)):
        places.append(place)
        parts.append(method.detect(signals))
    return gather(parts, places)


def _nan_to_null(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.selectors.float().fill_nan(None))


# ---- noise


def _alarm_rows(item: _WorkItem, null: Null) -> pl.DataFrame:
    """Count the signals of one kind of noise that each method reports as periodic."""
    values = null.draw(item.generator(_NOISE), item.count)
    signals = EvenSignals(values, np.full(item.count, SAMPLING_HZ), np.zeros(item.count))
    counts = [int(method.detect(signals).is_periodic.sum()) for method in item.methods]
    names = [method.name for method in item.methods]
    return pl.DataFrame({"method": names, "draw_count": item.count, "alarm_count": counts}).select(
        pl.lit(null.kind).alias("kind"), pl.lit(null.label).alias("noise"), pl.all()
    )


def _add_rates(alarms: pl.DataFrame) -> pl.DataFrame:
    """Sum the counts over work items, and add the rate with its interval."""
    if alarms.is_empty():
        return alarms
    totals = alarms.group_by("kind", "noise", "method", maintain_order=True).agg(
        pl.col("draw_count", "alarm_count").sum()
    )
    low, high = np.array(
        [
            compute_rate_interval(alarm_count, draw_count)
            for alarm_count, draw_count in totals.select("alarm_count", "draw_count").rows()
        ]
    ).T
    return totals.with_columns(
        alarm_ratio=pl.col("alarm_count") / pl.col("draw_count"), low_ratio=pl.Series(low), high_ratio=pl.Series(high)
    )


def compute_rate_interval(alarm_count: int, draw_count: int) -> tuple[float, float]:
    """Return the 95 % Clopper-Pearson interval of a rate."""
    limits = binomtest(alarm_count, draw_count).proportion_ci(_CONFIDENCE_LEVEL, method="exact")
    return float(limits.low), float(limits.high)
