"""Ways of forecasting: ours, and what one would do without it. Each returns expected, low and high rates (steps)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from iosig.studies.forecast.told import Now
from iosig.transforms.arrays import Reals
from iosig.transforms.forecast.forecasting import ForecastParams, forecast
from iosig.transforms.forecast.unknown_traffic import AnalogueParams, TrafficHistory

Rates = tuple[Reals, Reals, Reals]
_LOW, _HIGH = 0.1, 0.9


def ours(now: Now, params: ForecastParams | None = None) -> Rates:
    """Forecast by jobs, and by what was not known after times alike."""
    known = (now.level_bytes_per_s, now.hour)
    found = forecast(now.demands, now.coming, now.application, now.past, known, params=params)
    return found.expected_bytes_per_s, found.low_bytes_per_s, found.high_bytes_per_s


def without_jobs(now: Now, params: ForecastParams | None = None) -> Rates:
    """Forecast by what flowed after times alike, whoever did it."""
    nobody = now.coming.without_jobs()
    known = (float(now.whole_past.mean_levels(3600.0)[-1]), now.hour)
    found = forecast(now.demands, nobody, now.application[:0], now.whole_past, known, params=params)
    return found.expected_bytes_per_s, found.low_bytes_per_s, found.high_bytes_per_s


def as_ever(now: Now) -> Rates:
    """Expect what the past was like at any time."""
    flat = AnalogueParams(level_error=1e6, hour_error=1e6)
    return without_jobs(now, replace(ForecastParams(), analogues=flat))


def goes_on(now: Now) -> Rates:
    """Expect that the last hour goes on, and that it changes as it did in the past."""
    past = now.whole_past
    levels = past.mean_levels(3600.0)
    changes = _after(past) - levels[: len(_after(past)), None]
    low, high = np.nanquantile(changes, (_LOW, _HIGH), axis=0)
    level = float(levels[-1])
    return np.full(past.horizon, level), np.maximum(level + low, 0.0), np.maximum(level + high, 0.0)


def _after(past: TrafficHistory) -> Reals:
    return past.unknown_after()


#: the ways by name, with what they are
WAYS: dict[str, tuple[str, Callable[[Now], Rates]]] = {
    "forecast": (
        "running and waiting jobs, and unknown traffic after similar times: `iosig forecast`",
        ours,
    ),
    "without jobs": ("all traffic after similar times", without_jobs),
    "as it goes": ("persistence of the last hour; its range comes from past changes after each hour", goes_on),
    "as ever": ("climatology: all traffic of the past", as_ever),
}
