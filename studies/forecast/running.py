"""Simulate sites, forecast held-out days by every method (way), and compare with the actual rates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.forecast.history import HELD_OUT_DAYS, HORIZON, PAST_DAYS, STEP_S, History, build_history, observe_at
from iosig.studies.forecast.ways import WAYS
from iosig.studies.sites import FAMILIES, LEVELS
from iosig.studies.study import SeedParams
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.arrays import Reals
from iosig.transforms.synthetic.workload import DAY_S

#: interval between forecasts on the held-out day, up to the last one with a known horizon [s]
INTERVAL_S = 7200.0


#: number of sites per family and level, and seeds
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """Forecast and actual rates: one row per site, method (`way`), instant and step."""

    params: StudyParams
    steps: pl.DataFrame


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Simulate and evaluate all sites."""
    combinations = list(product(FAMILIES, LEVELS))
    # families with the same seed would have the same jobs
    items = [
        (family, level, params.seed + place * params.seed_count + number)
        for place, (family, level) in enumerate(combinations)
        for number in range(params.seed_count)
    ]
    return Results(params, pl.concat(map_work_items(evaluate_site, items, params.worker_count, report_progress)))


def evaluate_site(item: tuple[str, str, int]) -> pl.DataFrame:
    """Forecast the rates of one site by all ways at all instants; return them with the actual rates."""
    family, level, seed = item
    site = build_history(family, level, seed)
    last_s = (PAST_DAYS + HELD_OUT_DAYS) * DAY_S - HORIZON * STEP_S
    rows = []
    for at_s in np.arange(PAST_DAYS * DAY_S, last_s + 1.0, INTERVAL_S).tolist():
        state, actual = observe_at(site, at_s), _compute_actual_rates(site, at_s)
        for way, (_, forecast) in WAYS.items():
            expected, low, high = forecast(state)
            values = {"expected": expected, "low": low, "high": high, "came": actual}
            rows.append(pl.DataFrame({"way": [way] * HORIZON, "at_s": at_s, "step": np.arange(HORIZON)} | values))
    return pl.concat(rows).with_columns(family=pl.lit(family), level=pl.lit(level), seed=pl.lit(seed))


def _compute_actual_rates(site: History, at_s: float) -> Reals:
    """Return the actual rates over the horizon after an instant [B/s]."""
    first, count = int(at_s / site.interval_s), int(STEP_S / site.interval_s)
    rows = site.total_bytes[first : first + HORIZON * count].reshape(HORIZON, count)
    rates: Reals = rows.sum(axis=1) / STEP_S
    return rates


def summarize_steps(steps: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Compute the scores of forecasts, grouped by `names`.

    Columns held, below, above: fractions of steps within, below and above the interval. The others are relative to the
    mean actual rate. width: mean width of the interval. error, bias: absolute and signed error of the expected rate.
    score: interval score of Gneiting and Raftery (2007, doi:10.1198/016214506000001437, section 6.2): the width plus
    ten times the excess.
    """
    low, high, actual = (pl.col(name) for name in ("low", "high", "came"))
    excess = (low - actual).clip(0) + (actual - high).clip(0)
    mean = actual.mean()
    return steps.group_by(names, maintain_order=True).agg(
        count=pl.len(),
        held=actual.is_between(low, high).mean(),
        below=(actual < low).mean(),
        above=(actual > high).mean(),
        width=(high - low).mean() / mean,
        error=(pl.col("expected") - actual).abs().mean() / mean,
        bias=(pl.col("expected") - actual).mean() / mean,
        score=(high - low + 10 * excess).mean() / mean,
    )
