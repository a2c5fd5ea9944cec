"""What searches say of signals on which nothing was set: claims, power, false alarms, holes and ticks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
from scipy.stats import beta

from iosig.studies.periods import oracles
from iosig.studies.periods.memoryless import HOLES, SAMPLE_COUNTS, TICKS, Generator, Trap, generators
from iosig.studies.periods.methods import Method
from iosig.studies.periods.rhythms import ERRORS, RHYTHMS, Rhythm
from iosig.transforms.arrays import Bools, Reals
from iosig.transforms.periods.interface.even_signals import EvenSignals

#: signals of one period that are drawn at a time
_RHYTHM_CHUNK = 10
#: a claim is right if its period is so near to the true one, and good if it is as near as this
_RIGHT, _GOOD = 0.2, 0.03
#: how sure it is that a rate of false alarms is no lower than is told
_SURETY = 0.999
#: columns of what is counted
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
#: the group of what who knows more says
BOUNDS = "bounds"


@dataclass(frozen=True, slots=True)
class Piece:
    """Signals of one kind: how many, and the seed of their random numbers. sample_count: of generators only."""

    subject: Subject
    group: str
    sample_count: int
    count: int
    seed: np.random.SeedSequence
    methods: tuple[Method, ...]


def rhythm_pieces(count: int, seed: int, methods: Sequence[Method]) -> Iterator[Piece]:
    """Yield the work on signals with a period: so many of each kind, of which some share a period.

    Only the first method is asked how sure it is of what it tells.
    """
    for place, rhythm in enumerate(RHYTHMS):
        for number, first in enumerate(range(0, count, _RHYTHM_CHUNK)):
            own = np.random.SeedSequence(seed, spawn_key=(10, place, number))
            yield Piece(rhythm, rhythm.group, 0, min(_RHYTHM_CHUNK, count - first), own, tuple(methods))
    for place, rhythm in enumerate(ERRORS):
        for number, first in enumerate(range(0, count, _RHYTHM_CHUNK)):
            own = np.random.SeedSequence(seed, spawn_key=(13, place, number))
            yield Piece(rhythm, rhythm.group, 0, min(_RHYTHM_CHUNK, count - first), own, tuple(methods[:1]))


def memoryless_pieces(count: int, seed: int, methods: Sequence[Method]) -> Iterator[Piece]:
    """Yield the work on signals without one: so many of each generator and length."""
    for (place, generator), samples in product(enumerate(generators()), SAMPLE_COUNTS):
        own = np.random.SeedSequence(seed, spawn_key=(11, place, samples))
        yield Piece(generator, generator.kind, samples, count, own, tuple(methods))


def trap_pieces(count: int, seed: int, methods: Sequence[Method]) -> Iterator[Piece]:
    """Yield the work on holes and ticks: so many signals of each."""
    for place, (group, trap) in enumerate([*(("holes", one) for one in HOLES), *(("ticks", one) for one in TICKS)]):
        own = np.random.SeedSequence(seed, spawn_key=(12, place))
        yield Piece(trap, group, trap.sample_count, count, own, tuple(methods))


def counted(piece: Piece) -> pl.DataFrame:
    """Return a row for each method: how many claims it made, and how many of them are right."""
    rates, period = _drawn(piece)
    signals = EvenSignals(rates, np.ones(len(rates)), np.zeros(len(rates)))
    name = piece.subject.name if isinstance(piece.subject, Rhythm) else piece.subject.label
    rows = []
    for method in piece.methods:
        found = method.detect(signals)
        error = np.abs(found.period_s / period - 1.0)
        is_right = error <= _RIGHT
        told = found.details_or_nan.period_error_s / period
        are = (found.is_periodic, is_right, error <= _GOOD, is_right & (error <= told), is_right & (error <= 2 * told))
        counts = [int(np.count_nonzero(each)) for each in are]
        rows.append((piece.group, name, piece.sample_count, method.name, piece.count, *counts))
    if isinstance(piece.subject, Rhythm) and piece.group == "power":
        rows += [(BOUNDS, name, 0, *bound) for bound in _bounds(piece.subject, rates, period, piece.seed)]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _bounds(rhythm: Rhythm, rates: Reals, period: Reals, seed: np.random.SeedSequence) -> Iterator[tuple[object, ...]]:
    """Yield what who knows more says of the signals of a rhythm: a name, and counts of signals, claims, good ones."""
    if oracles.has_noise_alone(rhythm):
        # numbers of its own: the nulls are no signals that others are asked
        generator = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1)))
        found, claims = oracles.by_shape(rhythm, rates, generator)
        errors = np.abs(found / period - 1.0)
        for null, claimed in claims.items():
            yield null, *_counts(claimed, errors)
    else:
        _, starts = rhythm.planted(np.random.default_rng(seed), len(rates))
        errors = np.abs(oracles.by_bursts(starts) / period - 1.0)
        yield oracles.BURSTS, *_counts(np.ones(len(rates), dtype=np.bool_), errors)


def _counts(claimed: Bools, errors: Reals) -> tuple[int, ...]:
    near = (np.count_nonzero(claimed & (errors <= limit)) for limit in (np.inf, _RIGHT, _GOOD))
    # nobody told an error
    return len(claimed), *map(int, near), 0, 0


def _drawn(piece: Piece) -> tuple[Reals, Reals]:
    """Return signals, and their true periods; NaN where they have none."""
    generator = np.random.default_rng(piece.seed)
    if isinstance(piece.subject, Rhythm):
        return piece.subject.draw(generator, piece.count)
    if isinstance(piece.subject, Trap):
        return piece.subject.draw(generator, piece.count), np.full(piece.count, np.nan)
    return piece.subject.draw(generator, piece.count, piece.sample_count), np.full(piece.count, np.nan)


def summed(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return all rows, those of one kind, length and method as one, in order."""
    rows = pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA)
    keys = ("group", "name", "sample_count", "method")
    return rows.group_by(keys, maintain_order=True).agg(pl.exclude(keys).sum())


def with_rates(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with shares: claims of all, right ones of all, good ones of all claims, surely so many.

    And of those that are right the shares whose error is no larger than is told, and than twice that.
    """
    claims, draws = (rows[name].cast(pl.Float64).to_numpy() for name in ("claim_count", "draw_count"))
    least = np.where(claims > 0, beta.ppf(1 - _SURETY, np.maximum(claims, 1e-9), draws - claims + 1), 0.0)
    return rows.with_columns(
        claim_ratio=pl.col("claim_count") / pl.col("draw_count"),
        right_ratio=pl.col("right_count") / pl.col("draw_count"),
        good_ratio=pl.when(pl.col("claim_count") > 0).then(pl.col("good_count") / pl.col("claim_count")),
        one_error_ratio=pl.when(pl.col("right_count") > 0).then(pl.col("one_error_count") / pl.col("right_count")),
        two_errors_ratio=pl.when(pl.col("right_count") > 0).then(pl.col("two_errors_count") / pl.col("right_count")),
        least_ratio=pl.Series(least, dtype=pl.Float64),
    )
