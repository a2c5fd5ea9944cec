"""The study itself: plants patterns and clocks, asks for them, and keeps a row for each answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from studies.networks.planted import PLANTED, drawn_shape, drawn_system, planted, planted_network
from transforms.networks.clock_skew import offsets
from transforms.networks.network import Network
from transforms.networks.patterns import PATTERNS, Pattern, patterns

#: requests of a planted system at most: it bounds the time of the study
MOST_REQUESTS = 1 << 15
#: ranks, files that all open, and by how much ranks leave an open at different times [s]
SKEW_SETTINGS = tuple(product((16, 256, 4096), (1, 3, 8), (1e-4, 5e-4)))
#: clocks are apart by so much [s]
SKEW_RANGE_S = 0.05
#: what the streams of random numbers are for
_SKEW = len(PLANTED)

#: told of each planted network and set of clocks that is done: how many are, and of how many
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class StudyParams:
    """How much is planted: systems of each pattern, and sets of clocks of each setting."""

    seed_count: int = 100
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it.

    answers: a row for each planted system: planted, seed, rank_count, named (a pattern, or the outcome), told_count
    and right_count, the causes that were told and those of them that were planted. clocks: a row for each setting:
    rank_count, file_count, jitter_s, error_ratio, the largest error of any rank by the range of the clocks, over all
    seeds, and median_error_ratio.
    """

    params: StudyParams
    answers: pl.DataFrame
    clocks: pl.DataFrame


def study(params: StudyParams, told: Told = lambda done, count: None) -> Results:
    """Plant patterns and clocks, and ask for them. The same seed gives the same results."""
    count = params.seed_count * (len(PATTERNS) + len(SKEW_SETTINGS))
    rows: dict[str, list[dict[str, object]]] = {"answers": [], "clocks": []}
    for done, (name, row) in enumerate(_answers(params), start=1):
        rows[name].append(row)
        told(done, count)
    clocks = (
        pl.DataFrame(rows["clocks"])
        .group_by("rank_count", "file_count", "jitter_s", maintain_order=True)
        .agg(pl.col("error_ratio").max(), pl.col("error_ratio").median().alias("median_error_ratio"))
    )
    return Results(params, pl.DataFrame(rows["answers"]), clocks)


def _answers(params: StudyParams) -> Iterator[tuple[str, dict[str, object]]]:
    for pattern, number in product(PATTERNS, range(params.seed_count)):
        yield "answers", _named(pattern, params.seed + number)
    for setting, number in product(SKEW_SETTINGS, range(params.seed_count)):
        yield "clocks", _recovered(*setting, params.seed + number)


def _named(pattern: Pattern, seed: int) -> dict[str, object]:
    generator = np.random.default_rng([seed, PLANTED.index(pattern)])
    system = drawn_system(pattern, generator, drawn_shape(generator, MOST_REQUESTS))
    found = patterns(planted_network(system, generator, 1)).filter("is_whole", hop=0, metric="time").row(0, named=True)
    causes = np.array(found["cause_nodes"], dtype=np.int64)
    return {
        "planted": pattern,
        "seed": seed,
        "rank_count": system.shape.rank_count,
        "named": found["pattern"] or found["outcome"],
        "told_count": len(causes),
        "right_count": int(system.is_cause[causes].sum()),
    }


def _recovered(rank_count: int, file_count: int, jitter_s: float, seed: int) -> dict[str, object]:
    generator = np.random.default_rng([seed, _SKEW, rank_count, file_count, round(jitter_s * 1e6)])
    ahead_s = generator.uniform(-SKEW_RANGE_S / 2, SKEW_RANGE_S / 2, rank_count)
    ended_s = np.arange(1, file_count + 1)[:, None] + generator.uniform(0, jitter_s, (file_count, rank_count))
    opens = pl.DataFrame(
        {
            "file": np.repeat(np.arange(file_count), rank_count),
            "rank": np.tile(np.arange(rank_count), file_count),
            "collective_open_count": np.ones(file_count * rank_count, dtype=np.int64),
            "open_ended_s": (ended_s + ahead_s).ravel(),
        }
    )
    found = offsets(opens, rank_count)
    assert found.offset_s is not None
    errors = np.abs(found.offset_s - (ahead_s - np.median(ahead_s)))
    return {
        "rank_count": rank_count,
        "file_count": file_count,
        "jitter_s": jitter_s,
        "error_ratio": float(errors.max() / np.ptp(ahead_s)),
    }


#: the draws of the figure's networks: those in which the eye sees most plainly what the pattern is
_EXAMPLES: dict[Pattern, int] = {"circular": 0, "striped": 0, "noisy": 0, "outlier": 1000}


def example(pattern: Pattern) -> Network:
    """Return a planted network that is small enough for a figure."""
    generator = np.random.default_rng([_EXAMPLES[pattern], len(PLANTED) + 2, PLANTED.index(pattern)])
    return planted(pattern, generator, 128, 8, 4, 60, 1)
