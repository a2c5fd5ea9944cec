"""Encode the population page: the classes of all runs over time and as fractions, their periods, and groups of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from iosig.reports.site.packing import Content, columns, pack_document

_MAX_GROUPS = 50
#: bin edges of periods: four per octave, from a second to a day
_PERIOD_EDGES_S = np.exp2(np.arange(0, 16.75, 0.25))
_VOLUME_EDGES_BYTES = np.exp2(np.arange(10, 61))


@dataclass(frozen=True, slots=True)
class PopulationFrames:
    """Input of the population page: statistics of all runs.

    days: ended_on, direction, label, run_count. shares: direction, label, run_ratio, bytes_ratio, periodic_ratio.
    groups: applications by bytes moved. periods_s, volumes_bytes: values per run, by direction.
    """

    days: pl.DataFrame
    shares: pl.DataFrame
    groups: pl.DataFrame
    periods_s: dict[str, pl.Series]
    volumes_bytes: dict[str, pl.Series]


def contents(frames: PopulationFrames) -> Content:
    """Encode all population statistics as one data file."""
    return pack_document(
        "population",
        {
            "days": columns(frames.days),
            "shares": columns(frames.shares),
            "groups": columns(frames.groups.head(_MAX_GROUPS)),
            "periods": _count_by_bin(frames.periods_s, _PERIOD_EDGES_S),
            "volumes": _count_by_bin(frames.volumes_bytes, _VOLUME_EDGES_BYTES),
        },
    )


def _count_by_bin(values: dict[str, pl.Series], edges: Any) -> dict[str, Any]:
    """Return the number of values in each histogram bin; out-of-range values are in the outermost bins."""
    inner = np.nextafter(edges[-1], 0)
    counts = {
        name: np.histogram(np.clip(positive.to_numpy(), edges[0], inner), edges)[0].tolist()
        for name, series in values.items()
        for positive in [series.drop_nulls().filter(series.drop_nulls() > 0)]
    }
    return {"edges": [float(f"{edge:.5g}") for edge in edges], "counts": counts}
