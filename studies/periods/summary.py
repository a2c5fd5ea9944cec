"""Summarize the results by method, and compare them with the statements of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from iosig.studies.periods.running import Results

KINDS = ("white", "red", "bursts")
#: column labels of the groups of traces
GROUPS = {
    "sigma_0": "sigma = 0",
    "desynchronization": "delays",
    "variability": "sigma/mu ≤ 0.5",
    "cut": "cut",
    "io_time": "I/O time",
}
_IN_GROUP = {
    "sigma_0": pl.col("experiment") == "compute_time",
    "desynchronization": (pl.col("experiment") == "desynchronization") & (pl.col("value") > 0),
    "variability": (pl.col("experiment") == "variability") & pl.col("value").is_between(0, 0.5, closed="right"),
    "cut": pl.col("experiment") == "cut",
    "io_time": pl.col("experiment") == "io_time",
}


def alarm_summary(results: Results) -> pl.DataFrame:
    """Return the maximum false-alarm rate of each method, by kind of noise.

    Columns: method, and white, red, bursts; NULL if no noise of that kind was drawn.
    """
    alarms, methods = results.alarms, [method.name for method in results.methods]
    highest = [
        [alarms.filter((pl.col("method") == name) & (pl.col("kind") == kind))["alarm_ratio"].max() for name in methods]
        for kind in KINDS
    ]
    return pl.DataFrame(
        {"method": methods} | {kind: pl.Series(row, dtype=pl.Float64) for kind, row in zip(KINDS, highest, strict=True)}
    )


def error_summary(results: Results) -> pl.DataFrame:
    """Return detection rate and errors by method and group: method, group, found_ratio, mean_error, median_error.

    Errors are over the traces in which a period was found.
    """
    rows = []
    for method in results.methods:
        for group, is_in in _IN_GROUP.items():
            rows_in_group = results.answers.filter((pl.col("method") == method.name) & is_in)
            errors = rows_in_group["error_ratio"].drop_nulls()
            rows.append(
                {
                    "method": method.name,
                    "group": group,
                    "found_ratio": len(errors) / rows_in_group.height if rows_in_group.height else None,
                    "mean_error": errors.mean(),
                    "median_error": errors.median(),
                }
            )
    schema = {"method": pl.String, "group": pl.String, "found_ratio": pl.Float64, "mean_error": pl.Float64}
    return pl.DataFrame(rows, schema | {"median_error": pl.Float64})


# ---- the paper's statements


@dataclass(frozen=True, slots=True)
class Statement:
    """A number stated in section III-A, and the statistic of our results with which it is compared.

    key: its name among the measures. experiment, low, high: the experiment, and the range of values (inclusive) that
    the number covers. statistic: over all results in this range; if is_highest, its maximum over settings.
    """

    key: str
    text: str
    stated: str
    experiment: str
    statistic: pl.Expr
    low: float = 0.0
    high: float = float("inf")
    is_highest: bool = False

    def evaluate(self, answers: pl.DataFrame) -> float | None:
        """Compute the statistic on a method's results; None without results."""
        rows = answers.filter(experiment=self.experiment).filter(pl.col("value").is_between(self.low, self.high))
        if rows.is_empty():
            return None
        by_setting = rows.group_by("value", "noise_level").agg(statistic=self.statistic)
        value = by_setting["statistic"].max() if self.is_highest else rows.select(self.statistic).item()
        return None if value is None else float(value)  # type: ignore[arg-type]


_ERROR = pl.col("error_ratio")
_R_IO_ERROR = (pl.col("r_io") - pl.col("true_io_ratio")).abs() / pl.col("true_io_ratio")
_CONFIDENCE, _SCORE = pl.col("confidence").median(), pl.col("periodicity_score").median()


_IS_UNSURE = (pl.col("confidence") < 0.6).fill_null(value=True).mean()


def _highest_statement(
    key: str, text: str, stated: str, experiment: str, statistic: pl.Expr, high: float = float("inf")
) -> Statement:
    return Statement(key, text, stated, experiment, statistic, 0.0, high, is_highest=True)


def _variability_statement(
    key: str, text: str, stated: str, statistic: pl.Expr, low: float = 0.0, high: float = float("inf")
) -> Statement:
    return Statement(key, text, stated, "variability", statistic, low, high)


STATEMENTS: tuple[Statement, ...] = (
    _highest_statement("error_without_variation", "highest error, sigma = 0", "< 1 %", "compute_time", _ERROR.max()),
    _highest_statement(
        "mean_error_of_delays", "highest mean error of any delay", "≤ 11 %", "desynchronization", _ERROR.mean()
    ),
    _highest_statement(
        "median_error_of_delays", "highest median error of any delay", "≤ 11 %", "desynchronization", _ERROR.median()
    ),
    _highest_statement(
        "third_quartile_of_delays",
        "highest third quartile of any delay",
        "≤ 17 %",
        "desynchronization",
        _ERROR.quantile(0.75, "linear"),
    ),
    _highest_statement(
        "median_error_up_to_half",
        "highest median error, sigma/mu up to 0.5",
        "< 5.5 %",
        "variability",
        _ERROR.median(),
        0.5,
    ),
    _highest_statement(
        "median_error", "highest median error of any sigma/mu", "< 33 %", "variability", _ERROR.median()
    ),
    _variability_statement(
        "far_errors", "traces with an error above 200 %, any sigma/mu", "0.8 %", (_ERROR > 2).sum() / pl.len()
    ),
    _variability_statement(
        "unsure_from_half",
        "traces with confidence below 60 % or none, sigma/mu from 0.5 to below 1",
        "16 %",
        _IS_UNSURE,
        0.5,
        0.95,
    ),
    _variability_statement(
        "unsure_from_one", "traces with confidence below 60 % or none, sigma/mu from 1", "27 %", _IS_UNSURE, 1.0
    ),
    _variability_statement("confidence_of_even", "median confidence, sigma/mu < 0.55", "96 %", _CONFIDENCE, 0.0, 0.54),
    _variability_statement("confidence_of_varied", "median confidence, sigma/mu = 2", "63 %", _CONFIDENCE, 2.0),
    _variability_statement("score_without_variation", "median periodicity score, sigma = 0", "98 %", _SCORE, 0.0, 0.0),
    _variability_statement(
        "score_of_half", "median periodicity score, sigma/mu = 0.5 to 0.6 (paper: 0.55)", "67 %", _SCORE, 0.5, 0.6
    ),
    _variability_statement("score_of_varied", "median periodicity score, sigma/mu = 2", "57 %", _SCORE, 2.0),
    _highest_statement(
        "median_error_of_r_io",
        "highest median error of R_IO, any sigma/mu",
        "< 10 %",
        "variability",
        _R_IO_ERROR.median(),
    ),
    _highest_statement(
        "highest_error_of_r_io", "highest error of R_IO, any sigma/mu", "< 10 %", "variability", _R_IO_ERROR.max()
    ),
)


def evaluate_statements(results: Results) -> list[tuple[str, str, list[float | None]]]:
    """Return each statement's text, the paper's number, and each method's number."""
    by_method = [results.answers.filter(pl.col("method") == method.name) for method in results.methods]
    return [(line.text, line.stated, [line.evaluate(rows) for rows in by_method]) for line in STATEMENTS]


def measure(results: Results) -> dict[str, dict[str, float | None]]:
    """Return each statement's number by method; empty if no traces were drawn."""
    if results.answers.is_empty():
        return {}
    by_method = {method.name: results.answers.filter(method=method.name) for method in results.methods}
    return {line.key: {name: line.evaluate(rows) for name, rows in by_method.items()} for line in STATEMENTS} | {
        "traces": {"trace_count": results.params.trace_count}
    }
