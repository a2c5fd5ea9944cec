"""How near signatures come to the truth: a row for each, with IOSI's yardsticks (section 6.3) and ours."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from studies.signatures.sites import Drawn, Truth
from transforms.signatures.signature import Signature
from transforms.signatures.similarity import burst_errors, correlation, cross_correlation, volume_ratio

SCHEMA = {
    "application": pl.String,
    "method": pl.String,
    "outcome": pl.String,
    "sample_count": pl.Int64,
    "burst_count": pl.Int64,
    "cross_correlation": pl.Float64,
    "correlation": pl.Float64,
    "volume_ratio": pl.Float64,
    "missed_count": pl.Int64,
    "false_count": pl.Int64,
    "duration_ratio": pl.Float64,
}


def scored(drawn: Drawn, method: str, found: Sequence[Signature]) -> pl.DataFrame:
    """Return a row for each application; NULL where there is no signature, whose bursts are all missed."""
    counts = drawn.sets.offsets[1:] - drawn.sets.offsets[:-1]
    rows = [
        {
            "application": application.name,
            "method": method,
            "outcome": one.outcome,
            "sample_count": int(count),
            "burst_count": len(truth.bursts),
            **_yardsticks(one, truth),
        }
        for application, count, truth, one in zip(drawn.applications, counts, drawn.truths, found, strict=True)
    ]
    return pl.DataFrame(rows, SCHEMA).with_columns(pl.selectors.float().fill_nan(None))


def _yardsticks(found: Signature, truth: Truth) -> dict[str, float | int]:
    if found.outcome != "extracted":
        return {"missed_count": len(truth.bursts), "false_count": 0}
    missed, false = burst_errors(found.bursts, truth.bursts)
    return {
        "cross_correlation": cross_correlation(found.bytes_per_s, truth.bytes_per_s),
        "correlation": correlation(found.bytes_per_s, truth.bytes_per_s),
        "volume_ratio": volume_ratio(found.bytes_per_s, truth.bytes_per_s),
        "missed_count": missed,
        "false_count": false,
        "duration_ratio": found.duration_s / len(truth.bytes_per_s),
    }
