"""The study itself: draws traces and noise, asks every method, and keeps a row for each answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.stats import binomtest

from iosig.studies.periods import PARTS, unseen
from iosig.studies.periods.methods import METHODS, Method, Sampling
from iosig.studies.periods.scenarios import SAMPLING_HZ, Null, Setting, nulls, settings
from iosig.studies.periods.semi_synthetic import Applications, Library, applications, library
from iosig.studies.pieces import Told, nobody, worked
from iosig.transforms.arrays import Ragged, Reals
from iosig.transforms.periods.interface.detections import Detections, gather
from iosig.transforms.periods.interface.even_signals import EvenSignals, group_by_length
from iosig.transforms.periods.periodicity import characterize_steps

#: traces, and signals of noise, that are drawn and searched at a time: it bounds a worker's memory
TRACE_CHUNK = 100
DRAW_CHUNK = 1000
#: what the streams of random numbers are for: no two have a number in common
_LIBRARY, _TRACES, _NOISE, _EXAMPLES = range(4)
#: FTIO's further metrics of what is seen of traces; NaN, but for R_IO, without a period
_METRICS = ("sigma_vol", "sigma_time", "periodicity_score", "r_io")
#: how sure the interval around a rate of false alarms is
_SURETY = 0.95


@dataclass(frozen=True, slots=True)
class StudyParams:
    """How much is drawn.

    trace_count: of each setting (section III-A: 100). draw_count: signals of each noise. worker_count: processes, as
    many as there are cores if None; the results are the same for any. unseen_count: of each kind of signals on which
    nothing was set. parts: which results are wanted, all if there are none.
    """

    trace_count: int = 100
    draw_count: int = 1000
    seed: int = 0
    worker_count: int | None = None
    unseen_count: int = 100
    parts: tuple[str, ...] = ()

    def wants(self, part: str) -> bool:
        """Return whether a result is wanted."""
        return part in (self.parts or PARTS)


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it.

    answers: a row for each trace and method: experiment, value, noise_level, trace, method, outcome, true_period_s,
    period_s, error_ratio, confidence, false_alarm_probability, sigma_vol, sigma_time, periodicity_score, r_io,
    true_io_ratio; NULL where there is no answer. alarms: a row for each noise and method: kind, noise, method,
    draw_count, alarm_count, alarm_ratio, and low_ratio and high_ratio, the interval (Clopper and Pearson's) that holds
    the true rate with 95 % confidence. unseen: what is counted of signals on which nothing was set, with the columns of
    `unseen.with_rates`.
    """

    params: StudyParams
    methods: tuple[Method, ...]
    answers: pl.DataFrame
    alarms: pl.DataFrame
    unseen: pl.DataFrame


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of work: some traces of one setting, or signals of one noise."""

    subject: Setting | Null
    place: int
    chunk: int
    count: int
    seed: int
    methods: tuple[Method, ...]

    def generator(self, stream: int) -> np.random.Generator:
        """Return this piece's own stream of random numbers."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stream, self.place, self.chunk)))


def study(
    params: StudyParams,
    methods: Sequence[Method] = METHODS,
    traced: Sequence[Setting] | None = None,
    noises: Sequence[Null] | None = None,
    told: Told = nobody,
) -> Results:
    """Draw the traces of all settings and all noise, ask the methods, and return their answers in order."""
    # the noise first, of which a piece takes longest
    silent = list(_pieces(nulls() if noises is None else noises, params.draw_count, DRAW_CHUNK, params.seed, methods))
    drawn = list(
        _pieces(settings() if traced is None else traced, params.trace_count, TRACE_CHUNK, params.seed, methods)
    )
    if not params.wants("traces"):
        silent, drawn = [], []
    others = list(_unseen(params, methods))
    pieces: list[_Piece | unseen.Piece] = [*silent, *drawn, *others]
    found = worked(_work, pieces, params.worker_count, told)
    alarms, rest = found[: len(silent)], found[len(silent) :]
    answers, counts = rest[: len(drawn)], rest[len(drawn) :]
    rates = unseen.with_rates(unseen.summed(counts))
    return Results(params, tuple(methods), _joined(answers), _with_rates(_joined(alarms)), rates)


def _unseen(params: StudyParams, methods: Sequence[Method]) -> Iterator[unseen.Piece]:
    """Yield the work on signals on which nothing was set: by the default method alone where there are very many."""
    count, seed = params.unseen_count, params.seed
    if params.wants("rhythms"):
        yield from unseen.rhythm_pieces(count, seed, methods)
    if params.wants("memoryless"):
        yield from unseen.memoryless_pieces(count, seed, methods[:1])
    if params.wants("traps"):
        yield from unseen.trap_pieces(count, seed, methods[:1])


def _pieces(
    subjects: Sequence[Setting | Null], count: int, chunk: int, seed: int, methods: Sequence[Method]
) -> Iterator[_Piece]:
    for place, subject in enumerate(subjects):
        for number, first in enumerate(range(0, count, chunk)):
            yield _Piece(subject, place, number, min(chunk, count - first), seed, tuple(methods))


def _work(piece: _Piece | unseen.Piece) -> pl.DataFrame:
    if isinstance(piece, unseen.Piece):
        return unseen.counted(piece)
    return (
        _trace_rows(piece, piece.subject) if isinstance(piece.subject, Setting) else _alarm_rows(piece, piece.subject)
    )


def _joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(frames) if frames else pl.DataFrame()


# ---- traces


def _trace_rows(piece: _Piece, setting: Setting) -> pl.DataFrame:
    """Return a row for each trace and method."""
    drawn = _drawn(setting, piece.count, piece.generator(_TRACES), piece.seed)
    steps = drawn.steps()
    samples: dict[Sampling, Ragged] = {
        "bins": drawn.bins(SAMPLING_HZ),
        "instants": drawn.instants(SAMPLING_HZ, steps),
    }
    frames = []
    for method in piece.methods:
        found = searched(method, samples[method.sampling])
        columns = {
            "experiment": setting.experiment,
            "value": setting.value,
            "noise_level": setting.params.noise_level,
            "trace": piece.chunk * TRACE_CHUNK + np.arange(piece.count),
            "method": method.name,
            "outcome": found.outcome,
            "true_period_s": drawn.period_s,
            "period_s": found.period_s,
            "error_ratio": np.abs(found.period_s - drawn.period_s) / drawn.period_s,
            "confidence": found.confidence,
            "false_alarm_probability": found.false_alarm_probability,
            "true_io_ratio": drawn.io_ratio,
        }
        metrics = characterize_steps(steps, drawn.window_start_s, drawn.window_end_s, found.frequency_hz)
        columns |= {name: getattr(metrics, name) for name in _METRICS}
        frames.append(pl.DataFrame(columns))
    return _nulled(pl.concat(frames))


def _library(seed: int) -> Library:
    """Return what the traces of all settings are made of: the paper's phases, too, were traced once."""
    return library(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_LIBRARY,))))


def example(setting: Setting, seed: int) -> Reals:
    """Return the mean rates of a setting's trace, in bytes per second."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_EXAMPLES,)))
    return _drawn(setting, 1, generator, seed).bins(SAMPLING_HZ).values


def _drawn(setting: Setting, count: int, generator: np.random.Generator, seed: int) -> Applications:
    found = applications(setting.params, count, generator, _library(seed))
    return found.cut(generator) if setting.is_cut else found


def searched(method: Method, samples: Ragged) -> Detections:
    """Return what a method finds in signals of many lengths (n)."""
    count = len(samples.offsets) - 1
    places, parts = [], []
    for place, signals in group_by_length(samples, np.full(count, SAMPLING_HZ), np.zeros(count)):
        places.append(place)
        parts.append(method.detect(signals))
    return gather(parts, places)


def _nulled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.selectors.float().fill_nan(None))


# ---- noise


def _alarm_rows(piece: _Piece, null: Null) -> pl.DataFrame:
    """Return a row for each method: of how many signals it called how many periodic."""
    values = null.draw(piece.generator(_NOISE), piece.count)
    signals = EvenSignals(values, np.full(piece.count, SAMPLING_HZ), np.zeros(piece.count))
    counts = [int(method.detect(signals).is_periodic.sum()) for method in piece.methods]
    names = [method.name for method in piece.methods]
    return pl.DataFrame({"method": names, "draw_count": piece.count, "alarm_count": counts}).select(
        pl.lit(null.kind).alias("kind"), pl.lit(null.label).alias("noise"), pl.all()
    )


def _with_rates(alarms: pl.DataFrame) -> pl.DataFrame:
    """Add up the pieces of each noise and method, and add the rate and its interval."""
    if alarms.is_empty():
        return alarms
    summed = alarms.group_by("kind", "noise", "method", maintain_order=True).agg(
        pl.col("draw_count", "alarm_count").sum()
    )
    low, high = np.array(
        [
            interval(alarm_count, draw_count)
            for alarm_count, draw_count in summed.select("alarm_count", "draw_count").rows()
        ]
    ).T
    return summed.with_columns(
        alarm_ratio=pl.col("alarm_count") / pl.col("draw_count"), low_ratio=pl.Series(low), high_ratio=pl.Series(high)
    )


def interval(alarm_count: int, draw_count: int) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a rate, which holds the true one with 95 % confidence at least."""
    found = binomtest(alarm_count, draw_count).proportion_ci(_SURETY, method="exact")
    return float(found.low), float(found.high)
