"""The study itself: draws sites, forecasts days that are held out by every way, and looks what came."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.forecast.told import HELD_OUT_DAYS, HORIZON, PAST_DAYS, STEP_S, History, history, now
from iosig.studies.forecast.ways import WAYS
from iosig.studies.pieces import Told, nobody, worked
from iosig.studies.sites import FAMILIES, LEVELS
from iosig.studies.study import SeedParams
from iosig.transforms.arrays import Reals

#: forecasts are made every two hours of the day that is held out, as long as all of what comes is known
EVERY_S = 7200.0
_DAY_S = 86_400.0


#: how much is drawn: sites of each family and level
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it: a row each site, way, instant and step: what was expected, with the range, and what came."""

    params: StudyParams
    steps: pl.DataFrame


def study(params: StudyParams, told: Told = nobody) -> Results:
    """Draw and judge all sites."""
    kinds = list(product(FAMILIES, LEVELS))
    # of one seed all families would have the same jobs
    pieces = [
        (family, level, params.seed + place * params.seed_count + number)
        for place, (family, level) in enumerate(kinds)
        for number in range(params.seed_count)
    ]
    return Results(params, pl.concat(worked(judged, pieces, params.worker_count, told)))


def judged(piece: tuple[str, str, int]) -> pl.DataFrame:
    """Return what all ways foretell of one site, and what came."""
    family, level, seed = piece
    site = history(family, level, seed)
    last_s = (PAST_DAYS + HELD_OUT_DAYS) * _DAY_S - HORIZON * STEP_S
    rows = []
    for at_s in np.arange(PAST_DAYS * _DAY_S, last_s + 1.0, EVERY_S).tolist():
        known, came = now(site, at_s), _came(site, at_s)
        for way, (_, foretell) in WAYS.items():
            expected, low, high = foretell(known)
            values = {"expected": expected, "low": low, "high": high, "came": came}
            rows.append(pl.DataFrame({"way": [way] * HORIZON, "at_s": at_s, "step": np.arange(HORIZON)} | values))
    return pl.concat(rows).with_columns(family=pl.lit(family), level=pl.lit(level), seed=pl.lit(seed))


def _came(site: History, at_s: float) -> Reals:
    """Return what flowed in the steps after an instant."""
    first, count = int(at_s / site.interval_s), int(STEP_S / site.interval_s)
    rows = site.total_bytes[first : first + HORIZON * count].reshape(HORIZON, count)
    came: Reals = rows.sum(axis=1) / STEP_S
    return came


def summed(steps: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return how good forecasts are, by what is named.

    held: how many steps had what came in the range; below, above: beneath and over it. width: of the range, over the
    mean of what came. error: how far the expected rate was off, over that. score: the interval score of Gneiting and
    Raftery (2007, doi:10.1198/016214506000001437, section 6.2), over that: the width, and ten times what is beyond it.
    """
    low, high, came = (pl.col(name) for name in ("low", "high", "came"))
    beyond = (low - came).clip(0) + (came - high).clip(0)
    mean = came.mean()
    return steps.group_by(names, maintain_order=True).agg(
        count=pl.len(),
        held=came.is_between(low, high).mean(),
        below=(came < low).mean(),
        above=(came > high).mean(),
        width=(high - low).mean() / mean,
        error=(pl.col("expected") - came).abs().mean() / mean,
        bias=(pl.col("expected") - came).mean() / mean,
        score=(high - low + 10 * beyond).mean() / mean,
    )
