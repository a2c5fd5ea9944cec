"""What the study's answers say: a row for each method, and the paper's own statements beside what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from studies.periods.running import Results

KINDS = ("white", "red", "bursts")
#: the groups of traces of the tables, in words
GROUPS = {
    "sigma_0": "sigma = 0",
    "desynchronization": "delays",
    "variability": "sigma/mu ≤ 0.5",
    "cut": "cut",
}
_IN_GROUP = {
    "sigma_0": pl.col("experiment") == "compute_time",
    "desynchronization": (pl.col("experiment") == "desynchronization") & (pl.col("value") > 0),
    "variability": (pl.col("experiment") == "variability") & pl.col("value").is_between(0, 0.5, closed="right"),
    "cut": pl.col("experiment") == "cut",
}


def alarm_summary(results: Results) -> pl.DataFrame:
    """Return a row for each method: the highest rate of false alarms among the noises of each kind.

    Columns: method, and white, red, bursts: NULL where none of that kind was drawn.
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
    """Return a row for each method and group: method, group, found_ratio, mean_error, median_error.

    Errors are of the traces in which a period was found; found_ratio is their share.
    """
    rows = []
    for method in results.methods:
        for group, is_in in _IN_GROUP.items():
            chosen = results.answers.filter((pl.col("method") == method.name) & is_in)
            errors = chosen["error_ratio"].drop_nulls()
            rows.append(
                {
                    "method": method.name,
                    "group": group,
                    "found_ratio": len(errors) / chosen.height if chosen.height else None,
                    "mean_error": errors.mean(),
                    "median_error": errors.median(),
                }
            )
    schema = {"method": pl.String, "group": pl.String, "found_ratio": pl.Float64, "mean_error": pl.Float64}
    return pl.DataFrame(rows, schema | {"median_error": pl.Float64})


# ---- the paper's statements


@dataclass(frozen=True, slots=True)
class Statement:
    """A number that section III-A states, and how it is found in one method's answers; is_ratio: shown in percent."""

    text: str
    stated: str
    found: Callable[[pl.DataFrame], float | None]
    is_ratio: bool = True


def _all(answers: pl.DataFrame, experiment: str, low: float = 0.0, high: float = float("inf")) -> pl.DataFrame:
    return answers.filter((pl.col("experiment") == experiment) & pl.col("value").is_between(low, high))


def _highest(answers: pl.DataFrame, of_setting: pl.Expr) -> float | None:
    """Return the highest value that any setting has of a statistic."""
    if answers.is_empty():
        return None
    found = answers.group_by("value", "noise_level").agg(of_setting.alias("found"))["found"].max()
    return None if found is None else float(found)  # type: ignore[arg-type]


def _median(answers: pl.DataFrame, column: str) -> float | None:
    found = answers[column].median()
    return None if found is None else float(found)  # type: ignore[arg-type]


def _share(answers: pl.DataFrame, is_so: pl.Expr) -> float | None:
    return answers.select(is_so.sum()).item() / answers.height if answers.height else None


_ERROR = pl.col("error_ratio")
STATEMENTS: tuple[Statement, ...] = (
    Statement("highest error, sigma = 0", "< 1 %", lambda rows: _highest(_all(rows, "compute_time"), _ERROR.max())),
    Statement(
        "highest mean error of any delay",
        "≤ 11 %",
        lambda rows: _highest(_all(rows, "desynchronization"), _ERROR.mean()),
    ),
    Statement(
        "highest median error of any delay",
        "≤ 11 %",
        lambda rows: _highest(_all(rows, "desynchronization"), _ERROR.median()),
    ),
    Statement(
        "highest third quartile of any delay",
        "≤ 17 %",
        lambda rows: _highest(_all(rows, "desynchronization"), _ERROR.quantile(0.75, "linear")),
    ),
    Statement(
        "highest median error, sigma/mu up to 0.5",
        "< 5.5 %",
        lambda rows: _highest(_all(rows, "variability", 0.0, 0.5), _ERROR.median()),
    ),
    Statement(
        "highest median error of any sigma/mu",
        "< 33 %",
        lambda rows: _highest(_all(rows, "variability"), _ERROR.median()),
    ),
    Statement(
        "traces with an error above 200 %, any sigma/mu",
        "0.8 %",
        lambda rows: _share(_all(rows, "variability"), _ERROR > 2),
    ),
    Statement(
        "median confidence, sigma/mu < 0.55",
        "96 %",
        lambda rows: _median(_all(rows, "variability", 0.0, 0.54), "confidence"),
    ),
    Statement(
        "median confidence, sigma/mu = 2", "63 %", lambda rows: _median(_all(rows, "variability", 2.0), "confidence")
    ),
    Statement(
        "median periodicity score, sigma = 0",
        "98 %",
        lambda rows: _median(_all(rows, "variability", 0.0, 0.0), "periodicity_score"),
    ),
    Statement(
        "median periodicity score, sigma/mu = 0.5 to 0.6 (paper: 0.55)",
        "67 %",
        lambda rows: _median(_all(rows, "variability", 0.5, 0.6), "periodicity_score"),
    ),
    Statement(
        "median periodicity score, sigma/mu = 2",
        "57 %",
        lambda rows: _median(_all(rows, "variability", 2.0), "periodicity_score"),
    ),
    Statement(
        "highest median error of R_IO, any sigma/mu",
        "< 10 %",
        lambda rows: _highest(
            _all(rows, "variability"),
            ((pl.col("r_io") - pl.col("true_io_ratio")).abs() / pl.col("true_io_ratio")).median(),
        ),
    ),
)


def statements(results: Results) -> list[tuple[str, str, list[float | None]]]:
    """Return the paper's statements: the words, the number that the paper states, and each method's."""
    by_method = [results.answers.filter(pl.col("method") == method.name) for method in results.methods]
    return [(line.text, line.stated, [line.found(rows) for rows in by_method]) for line in STATEMENTS]
