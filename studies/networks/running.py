"""Plant patterns and clock offsets, detect them, and keep one row per result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.networks.planted import PLANTED, build_network, draw_shape, plant_network, plant_pattern
from iosig.studies.study import SeedParams
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.networks.clock_skew import estimate_skew
from iosig.transforms.networks.network import Network
from iosig.transforms.networks.patterns import PATTERNS, Pattern, classify_patterns

#: maximum number of requests of a planted system, which bounds the duration of the study
MAX_REQUESTS = 1 << 15
#: number of ranks and of collectively opened files, and jitter of the open's end between ranks [s]
SKEW_SETTINGS = tuple(product((16, 256, 4096), (1, 3, 8), (1e-4, 5e-4)))
#: range of the clock offsets [s]
SKEW_RANGE_S = 0.05
#: index of the random stream for clock offsets
_SKEW = len(PLANTED)

#: number of systems per pattern and of sets of clocks per setting, and seeds
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """Detected patterns and recovered clock offsets.

    answers: one row per system: planted, seed, rank_count, matched (pattern or outcome), told_count and right_count
    (number of reported causes, and of reported causes that were planted). clocks: one row per setting: rank_count,
    file_count, jitter_s, error_ratio and median_error_ratio (maximum and median over seeds of the largest rank error,
    relative to the range of the clocks).
    """

    params: StudyParams
    answers: pl.DataFrame
    clocks: pl.DataFrame


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Plant patterns and clock offsets and detect them; the same seed gives the same results."""
    systems = [partial(_evaluate_pattern, *item) for item in product(PATTERNS, params.seeds)]
    clocks = [partial(_evaluate_clocks, *setting, seed) for setting, seed in product(SKEW_SETTINGS, params.seeds)]
    rows = map_work_items(lambda run: run(), [*systems, *clocks], 1, report_progress)
    errors = pl.DataFrame(rows[len(systems) :]).group_by("rank_count", "file_count", "jitter_s", maintain_order=True)
    return Results(
        params,
        pl.DataFrame(rows[: len(systems)]),
        errors.agg(pl.col("error_ratio").max(), pl.col("error_ratio").median().alias("median_error_ratio")),
    )


def _evaluate_pattern(pattern: Pattern, seed: int) -> dict[str, object]:
    generator = np.random.default_rng([seed, PLANTED.index(pattern)])
    system = plant_pattern(pattern, generator, draw_shape(generator, MAX_REQUESTS))
    row = (
        classify_patterns(build_network(system, generator, 1))
        .filter("is_whole_run", hop=0, metric="time")
        .row(0, named=True)
    )
    causes = np.array(row["cause_nodes"], dtype=np.int64)
    return {
        "planted": pattern,
        "seed": seed,
        "rank_count": system.shape.rank_count,
        "matched": row["pattern"] or row["outcome"],
        "told_count": len(causes),
        "right_count": int(system.is_cause[causes].sum()),
    }


def _evaluate_clocks(rank_count: int, file_count: int, jitter_s: float, seed: int) -> dict[str, object]:
    generator = np.random.default_rng([seed, _SKEW, rank_count, file_count, round(jitter_s * 1e6)])
    skew_s = generator.uniform(-SKEW_RANGE_S / 2, SKEW_RANGE_S / 2, rank_count)
    end_s = np.arange(1, file_count + 1)[:, None] + generator.uniform(0, jitter_s, (file_count, rank_count))
    opens = pl.DataFrame(
        {
            "file": np.repeat(np.arange(file_count), rank_count),
            "rank": np.tile(np.arange(rank_count), file_count),
            "collective_open_count": np.ones(file_count * rank_count, dtype=np.int64),
            "open_end_s": (end_s + skew_s).ravel(),
        }
    )
    clocks = estimate_skew(opens, rank_count)
    assert clocks.offset_s is not None
    errors = np.abs(clocks.offset_s - (skew_s - np.median(skew_s)))
    return {
        "rank_count": rank_count,
        "file_count": file_count,
        "jitter_s": jitter_s,
        "error_ratio": float(errors.max() / np.ptp(skew_s)),
    }


#: seeds of the figure's networks, chosen for visually clear patterns
_EXAMPLES: dict[Pattern, int] = {"circular": 0, "striped": 0, "noisy": 0, "outlier": 1000}


def plant_example(pattern: Pattern) -> Network:
    """Return a planted network small enough for a figure."""
    generator = np.random.default_rng([_EXAMPLES[pattern], len(PLANTED) + 2, PLANTED.index(pattern)])
    return plant_network(pattern, generator, 128, 8, 4, 60, 1)
