"""The study itself: plants patterns and clocks, asks for them, and keeps a row for each answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.networks.planted import PLANTED, drawn_shape, drawn_system, planted, planted_network
from iosig.studies.pieces import Told, nobody, worked
from iosig.studies.study import SeedParams
from iosig.transforms.networks.clock_skew import estimate_skew
from iosig.transforms.networks.network import Network
from iosig.transforms.networks.patterns import PATTERNS, Pattern, classify_patterns

#: requests of a planted system at most: it bounds the time of the study
MOST_REQUESTS = 1 << 15
#: ranks, files that all open, and by how much ranks leave an open at different times [s]
SKEW_SETTINGS = tuple(product((16, 256, 4096), (1, 3, 8), (1e-4, 5e-4)))
#: clocks are apart by so much [s]
SKEW_RANGE_S = 0.05
#: what the streams of random numbers are for
_SKEW = len(PLANTED)

#: how much is planted: systems of each pattern, and sets of clocks of each setting
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it.

    answers: a row for each planted system: planted, seed, rank_count, matched (a pattern, or the outcome), told_count
    and right_count, the causes that were told and those of them that were planted. clocks: a row for each setting:
    rank_count, file_count, jitter_s, error_ratio, the largest error of any rank by the range of the clocks, over all
    seeds, and median_error_ratio.
    """

    params: StudyParams
    answers: pl.DataFrame
    clocks: pl.DataFrame


def study(params: StudyParams, told: Told = nobody) -> Results:
    """Plant patterns and clocks, and ask for them. The same seed gives the same results."""
    seeds = range(params.seed, params.seed + params.seed_count)
    systems = [partial(_named, pattern, seed) for pattern, seed in product(PATTERNS, seeds)]
    clocks = [partial(_recovered, *setting, seed) for setting, seed in product(SKEW_SETTINGS, seeds)]
    rows = worked(lambda planted_and_asked: planted_and_asked(), [*systems, *clocks], 1, told)
    errors = pl.DataFrame(rows[len(systems) :]).group_by("rank_count", "file_count", "jitter_s", maintain_order=True)
    return Results(
        params,
        pl.DataFrame(rows[: len(systems)]),
        errors.agg(pl.col("error_ratio").max(), pl.col("error_ratio").median().alias("median_error_ratio")),
    )


def _named(pattern: Pattern, seed: int) -> dict[str, object]:
    generator = np.random.default_rng([seed, PLANTED.index(pattern)])
    system = drawn_system(pattern, generator, drawn_shape(generator, MOST_REQUESTS))
    found = (
        classify_patterns(planted_network(system, generator, 1))
        .filter("is_whole_run", hop=0, metric="time")
        .row(0, named=True)
    )
    causes = np.array(found["cause_nodes"], dtype=np.int64)
    return {
        "planted": pattern,
        "seed": seed,
        "rank_count": system.shape.rank_count,
        "matched": found["pattern"] or found["outcome"],
        "told_count": len(causes),
        "right_count": int(system.is_cause[causes].sum()),
    }


def _recovered(rank_count: int, file_count: int, jitter_s: float, seed: int) -> dict[str, object]:
    generator = np.random.default_rng([seed, _SKEW, rank_count, file_count, round(jitter_s * 1e6)])
    ahead_s = generator.uniform(-SKEW_RANGE_S / 2, SKEW_RANGE_S / 2, rank_count)
    end_s = np.arange(1, file_count + 1)[:, None] + generator.uniform(0, jitter_s, (file_count, rank_count))
    opens = pl.DataFrame(
        {
            "file": np.repeat(np.arange(file_count), rank_count),
            "rank": np.tile(np.arange(rank_count), file_count),
            "collective_open_count": np.ones(file_count * rank_count, dtype=np.int64),
            "open_end_s": (end_s + ahead_s).ravel(),
        }
    )
    found = estimate_skew(opens, rank_count)
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
