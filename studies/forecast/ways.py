"""Forecast traffic by `iosig forecast` and by baselines; each returns expected, low and high rates (steps)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from iosig.studies.forecast.history import SiteState
from iosig.transforms.arrays import Reals
from iosig.transforms.forecast.forecasting import ForecastParams, forecast
from iosig.transforms.forecast.unknown_traffic import AnalogueParams, TrafficHistory

Rates = tuple[Reals, Reals, Reals]
_LOW, _HIGH = 0.1, 0.9


def forecast_site(state: SiteState, params: ForecastParams | None = None) -> Rates:
    """Forecast from jobs and from the unattributed traffic at similar times."""
    now = (state.level_bytes_per_s, state.hour)
    result = forecast(state.demands, state.coming, state.application, state.past, now, params=params)
    return result.expected_bytes_per_s, result.low_bytes_per_s, result.high_bytes_per_s


def forecast_without_jobs(state: SiteState, params: ForecastParams | None = None) -> Rates:
    """Forecast from the total traffic at similar times, without jobs."""
    no_jobs = state.coming.without_jobs()
    now = (float(state.whole_past.mean_levels(3600.0)[-1]), state.hour)
    result = forecast(state.demands, no_jobs, state.application[:0], state.whole_past, now, params=params)
    return result.expected_bytes_per_s, result.low_bytes_per_s, result.high_bytes_per_s


def forecast_climatology(state: SiteState) -> Rates:
    """Forecast from the distribution of all past traffic, regardless of the time."""
    flat = AnalogueParams(level_error=1e6, hour_error=1e6)
    return forecast_without_jobs(state, replace(ForecastParams(), analogues=flat))


def forecast_persistence(state: SiteState) -> Rates:
    """Forecast the rate of the last hour; the interval follows from past changes of this rate."""
    past = state.whole_past
    levels = past.mean_levels(3600.0)
    changes = _after(past) - levels[: len(_after(past)), None]
    low, high = np.nanquantile(changes, (_LOW, _HIGH), axis=0)
    level = float(levels[-1])
    return np.full(past.horizon, level), np.maximum(level + low, 0.0), np.maximum(level + high, 0.0)


def _after(past: TrafficHistory) -> Reals:
    return past.compute_unknown_rates()


#: description and implementation of each way
WAYS: dict[str, tuple[str, Callable[[SiteState], Rates]]] = {
    "forecast": (
        "running and waiting jobs, and unknown traffic after similar times: `iosig forecast`",
        forecast_site,
    ),
    "without jobs": ("all traffic after similar times", forecast_without_jobs),
    "persistence": (
        "persistence of the last hour; its range comes from past changes after each hour",
        forecast_persistence,
    ),
    "as ever": ("climatology: all traffic of the past", forecast_climatology),
}
