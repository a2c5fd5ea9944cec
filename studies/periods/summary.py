"""What the study's answers say: a row for each method, and the paper's own statements beside what was found."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from iosig.studies.periods.running import Results

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
    """A number that section III-A states, and how it is found in one method's answers.

    experiment, low, high: in which answers, the ends of the value included. found: the statistic, of all of them
    together or, if is_highest, the highest that any setting has.
    """

    text: str
    stated: str
    experiment: str
    found: pl.Expr
    low: float = 0.0
    high: float = float("inf")
    is_highest: bool = False

    def of(self, answers: pl.DataFrame) -> float | None:
        """Return what is found in a method's answers; None where there is none."""
        chosen = answers.filter(experiment=self.experiment).filter(pl.col("value").is_between(self.low, self.high))
        if chosen.is_empty():
            return None
        by_setting = chosen.group_by("value", "noise_level").agg(found=self.found)
        found = by_setting["found"].max() if self.is_highest else chosen.select(self.found).item()
        return None if found is None else float(found)  # type: ignore[arg-type]


_ERROR = pl.col("error_ratio")
_R_IO_ERROR = (pl.col("r_io") - pl.col("true_io_ratio")).abs() / pl.col("true_io_ratio")
_CONFIDENCE, _SCORE = pl.col("confidence").median(), pl.col("periodicity_score").median()


def _highest(text: str, stated: str, experiment: str, found: pl.Expr, high: float = float("inf")) -> Statement:
    return Statement(text, stated, experiment, found, 0.0, high, is_highest=True)


def _varied(text: str, stated: str, found: pl.Expr, low: float = 0.0, high: float = float("inf")) -> Statement:
    return Statement(text, stated, "variability", found, low, high)


STATEMENTS: tuple[Statement, ...] = (
    _highest("highest error, sigma = 0", "< 1 %", "compute_time", _ERROR.max()),
    _highest("highest mean error of any delay", "≤ 11 %", "desynchronization", _ERROR.mean()),
    _highest("highest median error of any delay", "≤ 11 %", "desynchronization", _ERROR.median()),
    _highest("highest third quartile of any delay", "≤ 17 %", "desynchronization", _ERROR.quantile(0.75, "linear")),
    _highest("highest median error, sigma/mu up to 0.5", "< 5.5 %", "variability", _ERROR.median(), 0.5),
    _highest("highest median error of any sigma/mu", "< 33 %", "variability", _ERROR.median()),
    _varied("traces with an error above 200 %, any sigma/mu", "0.8 %", (_ERROR > 2).sum() / pl.len()),
    _varied("median confidence, sigma/mu < 0.55", "96 %", _CONFIDENCE, 0.0, 0.54),
    _varied("median confidence, sigma/mu = 2", "63 %", _CONFIDENCE, 2.0),
    _varied("median periodicity score, sigma = 0", "98 %", _SCORE, 0.0, 0.0),
    _varied("median periodicity score, sigma/mu = 0.5 to 0.6 (paper: 0.55)", "67 %", _SCORE, 0.5, 0.6),
    _varied("median periodicity score, sigma/mu = 2", "57 %", _SCORE, 2.0),
    _highest("highest median error of R_IO, any sigma/mu", "< 10 %", "variability", _R_IO_ERROR.median()),
)


def statements(results: Results) -> list[tuple[str, str, list[float | None]]]:
    """Return the paper's statements: the words, the number that the paper states, and each method's."""
    by_method = [results.answers.filter(pl.col("method") == method.name) for method in results.methods]
    return [(line.text, line.stated, [line.of(rows) for rows in by_method]) for line in STATEMENTS]
