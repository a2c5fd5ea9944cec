"""What the study of forecasts shows: the values of its page (`page.md`), and its figure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl

from iosig.studies.forecast.figures import draw_ranges
from iosig.studies.forecast.running import EVERY_S, Results, summed
from iosig.studies.forecast.told import HORIZON, PAST_DAYS, STEP_S
from iosig.studies.forecast.ways import WAYS
from iosig.studies.pages import by_name, percent
from iosig.studies.sites import FAMILIES, LEVELS

_OURS = "forecast"
_STEPS_PER_HOUR = 6


def document(results: Results) -> dict[str, list[dict[str, object]]]:
    """Return the results as plain values."""
    return {"sites": summed(results.steps, "way", "family", "level", "seed").to_dicts()}


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    steps, ours = results.steps, results.steps.filter(way=_OURS)
    hours = steps.with_columns(hour=pl.col("step") // _STEPS_PER_HOUR + 1)
    held = [f"{percent(share)} ({level})" for level, share in summed(ours, "level").select("level", "held").rows()]
    return {
        **{"params": results.params, "WAYS": WAYS, "FAMILIES": FAMILIES, "LEVELS": LEVELS},
        **{"EVERY_S": EVERY_S, "HORIZON": HORIZON, "PAST_DAYS": PAST_DAYS, "STEP_S": STEP_S},
        "every": by_name(summed(steps, "way"), "way"),
        "first_hour": by_name(summed(steps.filter(pl.col("step") < _STEPS_PER_HOUR), "way"), "way"),
        "held_by_level": ", ".join(held),
        "ways": summed(steps, "level", "way"),
        "hours": summed(hours, "hour", "way").sort("hour", maintain_order=True),
        "families": summed(ours, "family", "level"),
        "instants": steps["at_s"].n_unique(),
    }


def figures(results: Results) -> dict[str, Callable[[Path], None]]:
    """Return what draws each figure of the page."""
    return {"ranges": partial(draw_ranges, summed(results.steps, "level", "way", "family", "seed"))}
