"""Repeat the evaluation of IOSI (FAST'14, section 6) on sites with their default drift, and measure what it states.

The paper's runs are not available. Simulated sites have the paper's applications, in production, with the differences
between runs that simulated sites have by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.studies.signatures.methods import DEFAULT, Method, sweep_methods
from iosig.studies.signatures.sites import IOR, LEVELS, S3D, LabeledSamples, SiteSetting
from iosig.studies.signatures.timing import fit_growth
from iosig.transforms.signatures.methods import DEFAULT_METHODS
from iosig.transforms.signatures.preprocessing import merge_node_counts
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.synthetic.site import SiteParams
from iosig.transforms.synthetic.workload import Application, bursts

if TYPE_CHECKING:
    from iosig.studies.signatures.running import Results

#: name of the experiments, and prefix of those with a varied parameter
PUBLISHED = "published"
SCALING = "published weak scaling"
#: the paper's methods, in addition to iosig's defaults
_METHODS = ("iosi", "iosi_filtered", "iosi_raw", "dtw")
#: activity of others in the paper's production system, which it does not quantify
_PRODUCTION = ("calm", "busy")
_APPLICATIONS = (*IOR, S3D.name)
#: level at which parameters are varied
_MIDDLE = "busy"
#: node counts of Figure 20, relative to the smallest
_FACTORS = (1, 2, 4)
#: bursts of the smallest run in Figure 20; their number, times and volumes are ours
_SCALED_VOLUMES_GB, _SCALED_PEAK_GB_PER_S = [60.0] * 5, 2.6
#: duration, start of the first burst, and interval of the smallest run [s]
_SCALED_TIMES_S = (900.0, 120.0, 160.0)


def build_default_setting(level: str, days: float) -> SiteSetting:
    """Return the setting of a site at a level, with the drift that simulated sites have by default."""
    return SiteSetting(foreign_level=LEVELS[level], drift_ratio=SiteParams().drift_ratio, days=days)


@dataclass(frozen=True, slots=True)
class ScalingSetting:
    """A site on which one application runs on three node counts, as in Figure 20: weak scaling at constant peaks."""

    site: SiteSetting

    def draw(self, seed: int) -> LabeledSamples:
        """Simulate a site, and merge the runs of all node counts into one set."""
        applications = tuple(_scale_application(factor) for factor in _FACTORS)
        samples = replace(self.site, applications=applications).draw(seed)
        merged = merge_node_counts([samples.sets.get_set(place) for place in range(len(applications))])
        return LabeledSamples(applications[:1], SampleSets.concatenate([merged]))


def _scale_application(factor: int) -> Application:
    """Return the application on more nodes: all times and volumes grow with the node count, the peak rate does not."""
    duration_s, first_s, every_s = (factor * time_s for time_s in _SCALED_TIMES_S)
    volumes = [factor * volume for volume in _SCALED_VOLUMES_GB]
    planned = bursts(first_s, every_s, volumes, [_SCALED_PEAK_GB_PER_S], "write")
    return Application(f"scaled_{factor}", "ana", "prj101", 160 * factor, duration_s, planned)


def list_queries(methods: Sequence[Method], level: str) -> tuple[tuple[str, float, Method], ...]:
    """Return the (experiment, value, method) of a site with the paper's applications at a level."""
    queries = [(PUBLISHED, 0.0, method) for method in methods if method.name in (*_METHODS, *DEFAULT_METHODS)]
    if level == _MIDDLE:
        queries += [(f"{PUBLISHED} {name}", value, method) for name, value, method in sweep_methods("iosi")]
    return tuple(queries)


def list_scaling_queries(methods: Sequence[Method]) -> tuple[tuple[str, float, Method], ...]:
    """Return the (experiment, value, method) of a site with one application on several node counts."""
    return tuple((SCALING, 0.0, method) for method in methods if method.name in ("iosi", *DEFAULT_METHODS))


# ---- measures


def measure(results: Results) -> dict[str, dict[str, float | int]]:
    """Measure what IOSI's section 6 states: named numbers by subject, for the results that were computed."""
    return dict(_iterate_measures(results))


def _iterate_measures(results: Results) -> Iterator[tuple[str, dict[str, float | int]]]:
    if {"iosi", "dtw"} <= set(results.times["method"]):
        yield "times", _measure_times(results.times)
    scores = results.answers.filter(pl.col("experiment").str.starts_with(PUBLISHED)).with_columns(
        pl.col("cross_correlation", "correlation", "volume_ratio").fill_null(0.0)
    )
    if scores.is_empty():
        return
    published = scores.filter(pl.col("level").is_in(_PRODUCTION), experiment=PUBLISHED)
    for method in ("iosi", "iosi_filtered", "iosi_raw", "dtw", DEFAULT):
        means = _average(published.filter(pl.col("application").is_in(_APPLICATIONS), method=method))
        yield f"accuracy_{method}", _range_of(means, ("cross_correlation", "correlation", "volume_ratio"))
        yield f"bursts_{method}", _count_bursts(published.filter(method=method))
    for method in ("iosi", "iosi_filtered", DEFAULT):
        yield f"advantage_of_{method}", _compare_with_dtw(published, method)
    yield "volume", _count_low_volumes(published)
    for name in dict.fromkeys(name for name, _, _ in sweep_methods("iosi")):
        swept = scores.filter(pl.col("application").is_in(_APPLICATIONS), experiment=f"{PUBLISHED} {name}")
        yield name, _find_best_value(swept)
    for method in ("iosi", DEFAULT):
        scaled = scores.filter(pl.col("level").is_in(_PRODUCTION), experiment=SCALING, method=method)
        yield f"weak_scaling_{method}", _average_scaling(scaled)
    yield "drift", {"drift_ratio": SiteParams().drift_ratio, "seed_count": results.params.seed_count}


def _average(rows: pl.DataFrame) -> pl.DataFrame:
    """Average the scores over seeds, by level and application."""
    return rows.group_by("level", "application", maintain_order=True).agg(
        pl.col("cross_correlation", "correlation", "volume_ratio").mean()
    )


def _range_of(rows: pl.DataFrame, names: Sequence[str]) -> dict[str, float | int]:
    """Return minimum, mean and maximum of columns, as `low_<name>`, `mean_<name>` and `high_<name>`."""
    ends: Mapping[str, pl.Expr] = {
        f"{end}_{name}": getattr(pl.col(name), function)()
        for name in names
        for end, function in (("low", "min"), ("mean", "mean"), ("high", "max"))
    }
    return _to_numbers(rows.select(**ends))


def _compare_with_dtw(published: pl.DataFrame, method: str) -> dict[str, float | int]:
    """Divide a method's mean scores by those of DTW, by level and application."""
    rows = published.filter(pl.col("application").is_in(_APPLICATIONS))
    ours, others = (_average(rows.filter(method=name)) for name in (method, "dtw"))
    joined = ours.join(others, on=("level", "application"), suffix="_dtw")
    names = ("cross_correlation", "correlation")
    ratios = joined.select(**{name: pl.col(name) / pl.col(f"{name}_dtw") for name in names})
    return _range_of(ratios, names)


def _count_bursts(rows: pl.DataFrame) -> dict[str, float | int]:
    """Count missed and false bursts of the IOR jobs together, and missed ones of S3D: means over sites."""
    ior = rows.filter(pl.col("application").is_in(IOR)).group_by("level", "seed").agg(
        pl.col("missed_count", "false_count").sum()
    )  # fmt: skip
    s3d = rows.filter(application=S3D.name)
    return {
        "burst_count": int(rows.filter(pl.col("application").is_in(IOR)).unique("application")["burst_count"].sum()),
        **_to_numbers(ior.select(missed_count=pl.col("missed_count").mean(), false_count=pl.col("false_count").mean())),
        **_to_numbers(s3d.select(s3d_missed_count=pl.col("missed_count").mean())),
    }


def _count_low_volumes(published: pl.DataFrame) -> dict[str, float | int]:
    """Count the applications and levels in which IOSI's mean volume is too low, and DTW's too high."""
    means = {
        method: _average(published.filter(pl.col("application").is_in(_APPLICATIONS), method=method))["volume_ratio"]
        for method in ("iosi", "iosi_filtered", "dtw")
    }
    return {
        "case_count": len(means["iosi"]),
        "iosi_low_count": int((means["iosi"] < 1.0).sum()),
        "iosi_filtered_low_count": int((means["iosi_filtered"] < 1.0).sum()),
        "dtw_high_count": int((means["dtw"] > 1.0).sum()),
    }


def _find_best_value(swept: pl.DataFrame) -> dict[str, float | int]:
    """Return the value of a parameter with the highest mean correlation, and the means of all values.

    Values are named in percent: `correlation_50` is the mean correlation at 0.5.
    """
    means = swept.group_by("value").agg(pl.col("cross_correlation", "correlation").mean()).sort("value")
    best, best_cross = (
        means.sort(name, descending=True, maintain_order=True)["value"][0]
        for name in ("correlation", "cross_correlation")
    )
    by_value = {
        f"correlation_{100 * value:.0f}": number for value, number in means.select("value", "correlation").rows()
    }
    return {"best": best, "best_by_cross_correlation": best_cross, **by_value}


def _average_scaling(rows: pl.DataFrame) -> dict[str, float | int]:
    return _to_numbers(
        rows.select(pl.col("cross_correlation", "correlation", "volume_ratio", "missed_count", "burst_count").mean())
    )


def _measure_times(times: pl.DataFrame) -> dict[str, float | int]:
    """Return the exponents of the growth with the length of samples, and where DTW becomes slower than IOSI."""
    exponents = fit_growth(times)
    by_samples = times.filter(by="samples").pivot("method", index="value", values="seconds").sort("value")
    slower = by_samples.filter(pl.col("dtw") > pl.col("iosi"))["value"]
    growth = np.polyfit(np.log(by_samples["value"].to_numpy()), np.log(by_samples["iosi"].to_numpy()), 1)[0]
    return {
        "iosi_exponent": exponents["iosi"],
        "dtw_exponent": exponents["dtw"],
        "iosi_sample_exponent": float(growth),
        "dtw_slower_from": int(slower[0]) if len(slower) else 0,
    }


def _to_numbers(frame: pl.DataFrame) -> dict[str, float | int]:
    return dict(frame.row(0, named=True))
