"""Summarize the scores by mean and spread, evaluate the targets, and find the best method by application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from iosig.studies.pages import format_short
from iosig.studies.signatures.methods import DEFAULT
from iosig.studies.signatures.running import Results
from iosig.studies.signatures.sites import IOR, LEVELS

METRICS = ("cross_correlation", "correlation", "volume_ratio")
#: metrics where higher is better
SIMILARITIES = METRICS[:2]
_WORDS = {"cross_correlation": "cross-correlation", "correlation": "correlation"}
#: labels of the groups of applications with a common target
GROUPS = {IOR: "IOR_A to C", ("s3d", "flash"): "S3D-like, irregular"}
_KEYS = ("experiment", "value", "level", "application", "method")
#: target ratio of seeds (18 of 20) with all bursts found and no false burst
_CLEAN_RATIO = 18 / 20
_MAX_VOLUME_ERROR = 0.1
#: allowed loss of the selected signatures relative to the best single method
_MAX_LOSS = 0.01


def summarize(answers: pl.DataFrame) -> pl.DataFrame:
    """Summarize the scores by experiment, value, level, application and method.

    Columns: these, seed_count, answered_ratio (fraction of seeds with a signature), and for each metric its mean,
    standard deviation and quartiles (mean_*, sd_*, low_*, high_*); clean_ratio (no missed and no false burst), and mean
    missed and false bursts. A missing signature counts as one without I/O: its metrics are 0 and all bursts are missed.
    """
    none_is_zero = answers.with_columns(pl.col(METRICS).fill_null(0.0))
    spreads = [
        expression
        for name in METRICS
        for expression in (
            pl.col(name).mean().alias(f"mean_{name}"),
            pl.col(name).std().alias(f"sd_{name}"),
            pl.col(name).quantile(0.25, "linear").alias(f"low_{name}"),
            pl.col(name).quantile(0.75, "linear").alias(f"high_{name}"),
        )
    ]
    return none_is_zero.group_by(_KEYS, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("seed_count"),
        (pl.col("outcome") == "extracted").mean().alias("answered_ratio"),
        *spreads,
        ((pl.col("missed_count") == 0) & (pl.col("false_count") == 0)).mean().alias("clean_ratio"),
        pl.col("missed_count", "false_count").mean().name.prefix("mean_"),
        pl.col("duration_ratio").mean().alias("mean_duration_ratio"),
    )


def average_applications(summed: pl.DataFrame) -> pl.DataFrame:
    """Average all columns of means over applications, by experiment, value, level and method.

    summed: a frame returned by `summarize`.
    """
    keys = [key for key in _KEYS if key != "application"]
    means = pl.selectors.starts_with("mean_") | pl.selectors.by_name("answered_ratio", "clean_ratio")
    return summed.group_by(keys, maintain_order=True).agg(means.mean())


def summarize_drift(results: Results) -> pl.DataFrame:
    """Return mean similarities of the drift experiment by value, application and method, including the bounds."""
    columns = ["value", "application", "method", *(f"mean_{name}" for name in SIMILARITIES)]
    answers = summarize(results.select("drift")).select(columns)
    return pl.concat([answers, results.bounds.select(columns)]).sort("value", maintain_order=True)


# ---- targets


@dataclass(frozen=True, slots=True)
class Target:
    """A target and the achieved value; is_reached is None if it was not studied."""

    text: str
    wanted: str
    found: str
    is_reached: bool | None


@dataclass(frozen=True, slots=True)
class _Aim:
    """Minimum mean cross-correlation and correlation of a method, for some applications at a level."""

    level: str
    applications: tuple[str, ...]
    cross_correlation: float
    correlation: float


_IRREGULAR = ("s3d", "flash")
_AIMS = (
    _Aim("calm", IOR, 0.98, 0.97),
    _Aim("busy", IOR, 0.96, 0.94),
    _Aim("stormy", IOR, 0.88, 0.80),
    _Aim("calm", _IRREGULAR, 0.95, 0.90),
    _Aim("busy", _IRREGULAR, 0.92, 0.86),
)
#: the published method, and ours
_IOSI = ("iosi", "iosi_filtered")
#: accuracy of IOSI as measured by its authors (section 6.3): ranges of cross-correlation and correlation
PAPER_RANGES = {"cross_correlation": (0.72, 0.95), "correlation": (0.66, 0.94)}


def evaluate_targets(results: Results, default: str = DEFAULT) -> list[Target]:
    """Return all targets with the achieved values."""
    summed = summarize(results.select("levels"))
    return [
        *(_build_similarity_target(summed, aim, default) for aim in _AIMS),
        *(_build_lead_target(summed, level, default) for level in LEVELS),
        *(_build_clean_target(summed, level, name, default) for level in ("calm", "busy") for name in IOR),
        *(_build_volume_target(summed, level, default) for level in ("calm", "busy")),
        *(_build_paper_target(summed, method, name) for method in _IOSI for name in SIMILARITIES),
        *(_build_dtw_target(summed, method) for method in _IOSI),
    ]


def _rows(summed: pl.DataFrame, method: str, level: str, applications: Sequence[str]) -> pl.DataFrame:
    return summed.filter(
        (pl.col("method") == method) & (pl.col("level") == level) & pl.col("application").is_in(list(applications))
    )


def _build_similarity_target(summed: pl.DataFrame, aim: _Aim, default: str) -> Target:
    text = f"{default}, {GROUPS[aim.applications]}, {aim.level}: lowest mean"
    required = f"≥ {format_short(aim.cross_correlation)}/{format_short(aim.correlation)}"
    rows = _rows(summed, default, aim.level, aim.applications)
    if rows.is_empty():
        return Target(text, required, "-", None)
    minimum = [float(rows[f"mean_{name}"].min()) for name in SIMILARITIES]  # type: ignore[arg-type]
    is_reached = minimum[0] >= aim.cross_correlation and minimum[1] >= aim.correlation
    return Target(text, required, "/".join(map(format_short, minimum)), is_reached)


def _build_lead_target(summed: pl.DataFrame, level: str, default: str) -> Target:
    """Check that a method's means are within a margin of any other method's, for every application."""
    text = f"{default}, {level}: means within {format_short(_MAX_LOSS)} of the best method's or above"
    at_level = summed.filter(pl.col("level") == level)
    other_rows = at_level.filter(pl.col("method") != default)
    method_rows = at_level.filter(pl.col("method") == default)
    if method_rows.is_empty() or other_rows.is_empty():
        return Target(text, "all", "-", None)
    best = other_rows.group_by("application").agg(pl.col(f"mean_{name}").max() for name in SIMILARITIES)
    joined = method_rows.join(best, on="application", suffix="_other")
    wins = [
        is_won
        for name in SIMILARITIES
        for is_won in (joined[f"mean_{name}"] > joined[f"mean_{name}_other"] - _MAX_LOSS).to_list()
    ]
    return Target(text, f"{len(wins)} of {len(wins)}", f"{sum(wins)} of {len(wins)}", all(wins))


def _build_clean_target(summed: pl.DataFrame, level: str, application: str, default: str) -> Target:
    text = f"{default}, {application}, {level}: seeds with exactly the true bursts"
    rows = _rows(summed, default, level, [application])
    if rows.is_empty():
        return Target(text, "≥ 90 %", "-", None)
    ratio = float(rows["clean_ratio"].item())
    return Target(text, f"≥ {100 * _CLEAN_RATIO:.0f} %", f"{100 * ratio:.0f} %", ratio >= _CLEAN_RATIO)


def _build_volume_target(summed: pl.DataFrame, level: str, default: str) -> Target:
    text = f"{default}, {level}: mean volume / true volume"
    required = f"{1 - _MAX_VOLUME_ERROR:g} to {1 + _MAX_VOLUME_ERROR:g}"
    ratios = summed.filter((pl.col("method") == default) & (pl.col("level") == level))["mean_volume_ratio"]
    if ratios.is_empty():
        return Target(text, required, "-", None)
    low, high = float(ratios.min()), float(ratios.max())  # type: ignore[arg-type]
    is_reached = low >= 1 - _MAX_VOLUME_ERROR and high <= 1 + _MAX_VOLUME_ERROR
    return Target(text, required, f"{low:.2f} to {high:.2f}", is_reached)


def _build_paper_target(summed: pl.DataFrame, method: str, name: str) -> Target:
    """Check that a method reaches the range of IOSI's paper on IOR jobs; higher counts as reached."""
    low, high = PAPER_RANGES[name]
    text = f"{method}, IOR_A to C, calm, busy: means of {_WORDS[name]}"
    rows = summed.filter(
        (pl.col("method") == method) & pl.col("application").is_in(IOR) & pl.col("level").is_in(["calm", "busy"])
    )
    required = f"{format_short(low)} to {format_short(high)}"
    if rows.is_empty():
        return Target(text, required, "-", None)
    minimum, maximum = float(rows[f"mean_{name}"].min()), float(rows[f"mean_{name}"].max())  # type: ignore[arg-type]
    return Target(text, required, f"{format_short(minimum)} to {format_short(maximum)}", minimum >= low)


def _build_dtw_target(summed: pl.DataFrame, method: str) -> Target:
    text = f"dtw, IOR_A to C, all levels: means below {method}'s"
    ior_rows = summed.filter(pl.col("application").is_in(IOR))
    iosi, dtw = (ior_rows.filter(pl.col("method") == name) for name in (method, "dtw"))
    joined = iosi.join(dtw, on=["level", "application"], suffix="_dtw")
    if joined.is_empty():
        return Target(text, "all", "-", None)
    lower = [
        is_lower
        for name in SIMILARITIES
        for is_lower in (joined[f"mean_{name}_dtw"] < joined[f"mean_{name}"]).to_list()
    ]
    return Target(text, f"{len(lower)} of {len(lower)}", f"{sum(lower)} of {len(lower)}", all(lower))


# ---- tables of pairs


def find_best_methods(summed: pl.DataFrame, level: str, name: str) -> dict[str, str]:
    """Return each application's method with the highest mean of a metric at a level."""
    rows = summed.filter(pl.col("level") == level).sort(f"mean_{name}", descending=True, maintain_order=True)
    firsts = rows.unique("application", keep="first", maintain_order=True)
    return dict(firsts.select("application", "method").rows())


#: cells of `Table.pivot`: cross-correlation/correlation; volume, and seeds with exactly the true bursts; missed bursts,
#: and false bursts
SIMILARITY_CELL = "{mean_cross_correlation:.}/{mean_correlation:.}"
VOLUME_CELL = "{mean_volume_ratio:.2f}, {clean_ratio:%0}"
BURST_CELL = "{mean_missed_count:.1f}, {mean_false_count:.1f}"


def format_spread(row: dict[str, Any]) -> str:
    """Format both similarities with their standard deviations."""
    parts = []
    for name in SIMILARITIES:
        deviation = row[f"sd_{name}"]
        parts.append(format_short(row[f"mean_{name}"]) + ("" if deviation is None else f" ± {format_short(deviation)}"))
    return ", ".join(parts)
