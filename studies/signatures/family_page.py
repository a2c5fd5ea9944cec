"""Build the tables of the families: mean scores of each family, and over all families."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from iosig.studies.pages import Table, format_short
from iosig.studies.signatures.calibration import HELD_OUT, cross_validate
from iosig.studies.signatures.families import FAMILIES, REAL, Family
from iosig.studies.signatures.figures import draw_expected_correlation
from iosig.studies.signatures.methods import LACKING, ORACLES
from iosig.studies.signatures.running import FAMILY, Results
from iosig.studies.signatures.scores import CHOSEN
from iosig.studies.signatures.sites import IOR
from iosig.studies.signatures.summary import SIMILARITIES, summarize

#: groups of applications that are averaged together
_GROUPS = {"IOR_A to C": IOR, "s3d": ("s3d",), "flash": ("flash",)}
_KNOWN_IN_TIME = [family.name for family in FAMILIES if family.has_known_time_scale]


#: methods shown for each family; the table of all families shows the others, too
_MAIN = (HELD_OUT, CHOSEN, "elastic", "robust", "quantile", *(method.name for method in ORACLES))


def select_families(results: Results) -> pl.DataFrame:
    """Return the results of the families, with the family's name as `family`."""
    name = pl.col("experiment").str.strip_prefix(FAMILY)
    return results.answers.filter(pl.col("experiment").str.starts_with(FAMILY)).with_columns(family=name)


def _collect_answers(results: Results) -> pl.DataFrame:
    """Return the results of the families, including those selected with weights of other families."""
    answers = select_families(results)
    held_out_rows = cross_validate(answers).filter(method=HELD_OUT).drop("told")
    return pl.concat([held_out_rows, answers.filter(pl.col("method") != LACKING.name)])


def family_values(results: Results) -> dict[str, object] | None:
    """Compute the template variables of the families; None if they were not studied."""
    if select_families(results).is_empty():
        return None
    answers, predictions = _collect_answers(results), _predict_correlations(results)
    columns = ("family", "runs drift by", "others cost", "others do", "runs do", "polls", "also")
    return {
        "described": Table(columns, [_describe_family(family) for family in FAMILIES]),
        "known_in_time": _KNOWN_IN_TIME,
        "overall": _average_groups(answers),
        "GROUPS": list(_GROUPS),
        "aims": _build_target_table(answers),
        "each": _summarize_families(answers.filter(pl.col("method").is_in(_MAIN)).with_columns(value=pl.lit(0.0))),
        "real": _compute_real_gains(answers),
        "drifting": _summarize_families(answers.filter(_IS_DRIFTING, pl.col("method").is_in(_DRIFTING))),
        "expected_correlation": None if predictions.is_empty() else _build_calibration_table(predictions),
    }


def _predict_correlations(results: Results) -> pl.DataFrame:
    """Return the results with the correlation predicted by weights of all other families."""
    return cross_validate(select_families(results)).drop_nulls("told")


def draw_calibration(results: Results, path: Path) -> None:
    """Plot the correlation predicted by weights of all other families against the actual one."""
    predictions = _predict_correlations(results)
    median_error = predictions.select(
        (pl.col("told") - pl.col("correlation").fill_null(0.0).clip(0.0)).abs().median()
    ).item()
    title = f"Expected correlation with other families' weights: median error {median_error:.2f}"
    draw_expected_correlation(predictions, title).write(path)


def _build_calibration_table(predictions: pl.DataFrame) -> Table:
    """Tabulate predicted and actual correlation in ten bins, and by family for the selected signatures."""
    rows = predictions.filter(pl.col("method") != HELD_OUT).with_columns(
        bin=(pl.col("told") * 10).floor().clip(0, 9).cast(pl.Int64)
    )
    cells = [
        (f"{number / 10:g} to {(number + 1) / 10:g}", *_format_means(bin_rows))
        for (number,), bin_rows in rows.group_by("bin", maintain_order=True)
    ]
    families = [
        (str(name), *_format_means(bin_rows))
        for (name,), bin_rows in predictions.filter(method=HELD_OUT).group_by("family", maintain_order=True)
    ]
    return Table(("all methods; chosen answers", "expected", "actual", "signatures"), [*sorted(cells), *families])


def _format_means(rows: pl.DataFrame) -> tuple[str, str, str]:
    predicted, actual = (rows[name].fill_null(0.0).clip(0.0).to_numpy().mean() for name in ("told", "correlation"))
    return f"{predicted:.2f}", f"{actual:.2f}", f"{rows.height:,}"


_AIMS = {
    "calm": {"IOR_A to C": (0.97, 0.94), "s3d": (0.93, 0.88)},
    "busy": {"IOR_A to C": (0.95, 0.91), "s3d": (0.92, 0.86)},
    "stormy": {"IOR_A to C": (0.90, 0.82), "s3d": (0.88, 0.80)},
}


def _build_target_table(answers: pl.DataFrame) -> Table:
    """Tabulate the targets, the selected signatures with other families' weights, and the better oracle."""
    summed = summarize(answers.filter(pl.col("family").is_in(_KNOWN_IN_TIME)))
    rows = []
    for level, aims in _AIMS.items():
        for group, aim in aims.items():
            group_rows = summed.filter(pl.col("application").is_in(list(_GROUPS[group])), level=level)
            means = group_rows.group_by("method").agg(pl.col(f"mean_{name}").mean() for name in SIMILARITIES)
            means_by_method = {row[0]: row[1:] for row in means.rows()}
            oracles = [means_by_method[method.name] for method in ORACLES if method.name in means_by_method]
            bound = [max(values) for values in zip(*oracles, strict=True)] if oracles else []
            rows.append((f"{level}, {group}", _pair(aim), _pair(means_by_method.get(HELD_OUT, ())), _pair(bound)))
    return Table(("held-out families", "wanted", "found", "oracle"), rows)


def _pair(values: Sequence[float]) -> str:
    return "/".join(map(format_short, values)) or "-"


#: methods shown for families in which the time scale of runs is unknown
_DRIFTING = (CHOSEN, "elastic", "robust")
_IS_DRIFTING = pl.col("family").is_in([family.name for family in FAMILIES if not family.has_known_time_scale])


def _summarize_families(answers: pl.DataFrame) -> pl.DataFrame:
    return summarize(answers).with_columns(family=pl.col("experiment").str.strip_prefix(FAMILY))


def _compute_real_gains(answers: pl.DataFrame) -> pl.DataFrame:
    """Return the gain over the quantile on measured traffic, with its standard error over pieces."""
    rows = answers.filter(pl.col("method").is_in([HELD_OUT, "quantile"]), family=REAL.name)
    correlation, is_ours = pl.col("correlation").fill_null(0.0), pl.col("method") == HELD_OUT
    gains = rows.group_by("level", "application", "value", maintain_order=True).agg(
        gain=correlation.filter(is_ours).mean() - correlation.filter(~is_ours).mean()
    )
    error = (pl.col("gain").std() / pl.len().sqrt()).fill_null(0.0)
    return gains.group_by("level", "application", maintain_order=True).agg(pl.col("gain").mean(), error=error)


def _describe_family(family: Family) -> tuple[str, ...]:
    jitter = f" ± {100 * family.jitter_ratio:g} %" if family.jitter_ratio else ""
    cost = {"fair": "capacity of {:g} peaks, fairly shared", "seeks": "seeks, {:g} a peak", "latency": "{:g} s a peak"}
    return (
        family.name,
        f"{family.drift}, {100 * family.drift_ratio:g} %",
        cost[family.contention].format(family.contention_size),
        family.foreign.replace("_", " "),
        family.program,
        f"{family.interval_s:g} s{jitter}",
        _describe_mechanism(family),
    )


def _describe_mechanism(family: Family) -> str:
    mechanisms = (
        (family.drain_s > 0, f"a cache drains in {family.drain_s:g} s"),
        (family.clock_s > 0, f"clocks differ by up to {family.clock_s:g} s"),
        (family.limit_ratio < math.inf, f"runs stop at {family.limit_ratio:g} of the undisturbed duration"),
        (family.array_size > 1, f"arrays of {family.array_size}"),
    )
    return ", ".join(text for is_present, text in mechanisms if is_present) or "-"


def _average_groups(answers: pl.DataFrame) -> pl.DataFrame:
    """Return the means over families with a known time scale, by level, method and group of applications."""
    groups = {name: group for group, names in _GROUPS.items() for name in names}
    summed = summarize(answers.filter(pl.col("family").is_in(_KNOWN_IN_TIME)))
    return (
        summed.with_columns(group=pl.col("application").replace_strict(groups))
        .group_by("level", "method", "group", maintain_order=True)
        .agg(pl.selectors.numeric().mean())
        .sort("level", maintain_order=True)
    )
