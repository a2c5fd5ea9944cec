"""Evaluate methods on signals that none was tuned on: claims, power, false alarms, holes and ticks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
from scipy.stats import beta

from iosig.studies.periods import oracles
from iosig.studies.periods.memoryless import HOLES, SAMPLE_COUNTS, TICKS, Generator, Trap, list_generators
from iosig.studies.periods.methods import Method
from iosig.studies.periods.rhythms import ERRORS, RHYTHMS, Rhythm
from iosig.transforms.arrays import Bools, Reals
from iosig.transforms.periods.interface.even_signals import EvenSignals

#: number of signals with the same period in a work item
_RHYTHM_CHUNK = 10
#: maximum relative error of a right claim, and of a good one
_RIGHT_ERROR, _GOOD_ERROR = 0.2, 0.03
#: confidence level of the lower bound of a false-alarm rate
_CONFIDENCE_LEVEL = 0.999
#: columns of the counts
SCHEMA: dict[str, type[pl.DataType]] = {
    "group": pl.String,
    "name": pl.String,
    "sample_count": pl.Int64,
    "method": pl.String,
    "draw_count": pl.Int64,
    "claim_count": pl.Int64,
    "right_count": pl.Int64,
    "good_count": pl.Int64,
    "one_error_count": pl.Int64,
    "two_errors_count": pl.Int64,
}
Subject = Rhythm | Generator | Trap
#: group of the oracles' results
BOUNDS = "bounds"


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Signals of one kind to draw and search; sample_count is only used for generators."""

    subject: Subject
    group: str
    sample_count: int
    count: int
    seed: np.random.SeedSequence
    methods: tuple[Method, ...]


def build_rhythm_items(count: int, seed: int, methods: Sequence[Method]) -> Iterator[WorkItem]:
    """Yield items of periodic signals, `count` of each kind, in chunks that share a period.

    Only the first method is evaluated on reported errors.
    """
    for place, rhythm in enumerate(RHYTHMS):
        for number, first in enumerate(range(0, count, _RHYTHM_CHUNK)):
            item_seed = np.random.SeedSequence(seed, spawn_key=(10, place, number))
            yield WorkItem(rhythm, rhythm.group, 0, min(_RHYTHM_CHUNK, count - first), item_seed, tuple(methods))
    for place, rhythm in enumerate(ERRORS):
        for number, first in enumerate(range(0, count, _RHYTHM_CHUNK)):
            item_seed = np.random.SeedSequence(seed, spawn_key=(13, place, number))
            yield WorkItem(rhythm, rhythm.group, 0, min(_RHYTHM_CHUNK, count - first), item_seed, tuple(methods[:1]))


def build_memoryless_items(count: int, seed: int, methods: Sequence[Method]) -> Iterator[WorkItem]:
    """Yield items of memoryless signals, `count` of each generator and length."""
    for (place, generator), samples in product(enumerate(list_generators()), SAMPLE_COUNTS):
        item_seed = np.random.SeedSequence(seed, spawn_key=(11, place, samples))
        yield WorkItem(generator, generator.kind, samples, count, item_seed, tuple(methods))


def build_trap_items(count: int, seed: int, methods: Sequence[Method]) -> Iterator[WorkItem]:
    """Yield items of signals with holes or ticks, `count` of each."""
    for place, (group, trap) in enumerate([*(("holes", case) for case in HOLES), *(("ticks", case) for case in TICKS)]):
        item_seed = np.random.SeedSequence(seed, spawn_key=(12, place))
        yield WorkItem(trap, group, trap.sample_count, count, item_seed, tuple(methods))


def count_claims(item: WorkItem) -> pl.DataFrame:
    """Count each method's claims, right claims, good claims, and claims within one and two reported errors.

    A claim is a reported period; `_RIGHT_ERROR` and `_GOOD_ERROR` define right and good ones.
    """
    rates, period = _draw_signals(item)
    signals = EvenSignals(rates, np.ones(len(rates)), np.zeros(len(rates)))
    name = item.subject.name if isinstance(item.subject, Rhythm) else item.subject.label
    rows = []
    for method in item.methods:
        detections = method.detect(signals)
        error = np.abs(detections.period_s / period - 1.0)
        is_right = error <= _RIGHT_ERROR
        reported_error = detections.details_or_nan.period_error_s / period
        conditions = (
            detections.is_periodic,
            is_right,
            error <= _GOOD_ERROR,
            is_right & (error <= reported_error),
            is_right & (error <= 2 * reported_error),
        )
        counts = [int(np.count_nonzero(condition)) for condition in conditions]
        rows.append((item.group, name, item.sample_count, method.name, item.count, *counts))
    if isinstance(item.subject, Rhythm) and item.group == "power":
        rows += [(BOUNDS, name, 0, *bound) for bound in _evaluate_bounds(item.subject, rates, period, item.seed)]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _evaluate_bounds(
    rhythm: Rhythm, rates: Reals, period: Reals, seed: np.random.SeedSequence
) -> Iterator[tuple[object, ...]]:
    """Yield the counts of the oracles on a rhythm's signals."""
    if oracles.is_noise_only(rhythm):
        # an independent stream: the null signals are not shared with other methods
        generator = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1)))
        periods, claims = oracles.match_burst_shape(rhythm, rates, generator)
        errors = np.abs(periods / period - 1.0)
        for null, is_claimed in claims.items():
            yield null, *_count_near(is_claimed, errors)
    else:
        _, starts = rhythm.draw_starts(np.random.default_rng(seed), len(rates))
        errors = np.abs(oracles.fit_burst_times(starts) / period - 1.0)
        yield oracles.BURSTS, *_count_near(np.ones(len(rates), dtype=np.bool_), errors)


def _count_near(is_claimed: Bools, errors: Reals) -> tuple[int, ...]:
    counts = (np.count_nonzero(is_claimed & (errors <= limit)) for limit in (np.inf, _RIGHT_ERROR, _GOOD_ERROR))
    # the oracles report no error
    return len(is_claimed), *map(int, counts), 0, 0


def _draw_signals(item: WorkItem) -> tuple[Reals, Reals]:
    """Draw signals, and their true periods; NaN for aperiodic ones."""
    generator = np.random.default_rng(item.seed)
    if isinstance(item.subject, Rhythm):
        return item.subject.draw(generator, item.count)
    if isinstance(item.subject, Trap):
        return item.subject.draw(generator, item.count), np.full(item.count, np.nan)
    return item.subject.draw(generator, item.count, item.sample_count), np.full(item.count, np.nan)


def sum_counts(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Sum counts with the same group, name, length and method, in order of appearance."""
    rows = pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA)
    keys = ("group", "name", "sample_count", "method")
    return rows.group_by(keys, maintain_order=True).agg(pl.exclude(keys).sum())


def add_rates(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the ratios of claims, right and good ones, and a lower confidence bound of the claim ratio.

    Columns one_error_ratio, two_errors_ratio: fractions of right claims with an error within one and two reported
    errors.
    """
    claims, draws = (rows[name].cast(pl.Float64).to_numpy() for name in ("claim_count", "draw_count"))
    lower_bound = np.where(
        claims > 0, beta.ppf(1 - _CONFIDENCE_LEVEL, np.maximum(claims, 1e-9), draws - claims + 1), 0.0
    )
    return rows.with_columns(
        claim_ratio=pl.col("claim_count") / pl.col("draw_count"),
        right_ratio=pl.col("right_count") / pl.col("draw_count"),
        good_ratio=pl.when(pl.col("claim_count") > 0).then(pl.col("good_count") / pl.col("claim_count")),
        one_error_ratio=pl.when(pl.col("right_count") > 0).then(pl.col("one_error_count") / pl.col("right_count")),
        two_errors_ratio=pl.when(pl.col("right_count") > 0).then(pl.col("two_errors_count") / pl.col("right_count")),
        least_ratio=pl.Series(lower_bound, dtype=pl.Float64),
    )
