"""The study itself: draws sites, tells classes and periods of all runs by every way, and of their own bytes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies import sites
from iosig.studies.attribution.ways import known_jobs
from iosig.studies.pieces import Told as Heard, nobody, worked
from iosig.studies.population.ways import WAYS, truth
from iosig.studies.sites import FAMILIES, LEVELS, Transfers, made, seen, signed, started
from iosig.studies.study import SeedParams

#: how much is drawn: sites of each family and level
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it.

    runs: a row each run with a class, direction and way that tells of it: family, level, seed, direction, way; label
    and period_s as the way tells them, true_label and true_period_s as its own bytes do; has_signature: whether its
    application has one; expected correlation: the expected correlation of that. moved_bytes: its own.
    """

    params: StudyParams
    runs: pl.DataFrame


def study(params: StudyParams, told: Heard = nobody) -> Results:
    """Draw and judge all sites."""
    pieces = list(product(FAMILIES, LEVELS, params.seeds))
    return Results(params, pl.concat(worked(judged, pieces, params.worker_count, told)))


def judged(piece: tuple[str, str, int]) -> pl.DataFrame:
    """Return what all ways tell of the runs of one site: rows of `runs`."""
    family, level, seed = piece
    site = made(family, level, seed, sites.DAYS)
    jobs = started(site)
    found = []
    for direction, one in seen(site).items():
        known, moved = signed(one), Transfers.of(site, jobs, direction)
        own = truth(one, moved).rows.rename({"label": "true_label", "period_s": "true_period_s"})
        own = own.with_columns(
            has_signature=pl.Series(known_jobs(one.logged, known)),
            expected_correlation=known.expected_correlation[one.logged.application],
            moved_bytes=np.bincount(moved.job, moved.volume_bytes, own.height),
        ).filter(pl.col("true_label").is_not_null() & pl.Series(one.logged.is_complete))
        key = {"family": family, "level": level, "seed": seed, "direction": direction}
        for way, (_, tell) in WAYS.items():
            told = own.join(tell(one, known).rows, on="job", how="inner", maintain_order="left").drop("job")
            found.append(told.with_columns(pl.lit(value).alias(name) for name, value in (key | {"way": way}).items()))
    return pl.concat(found)
