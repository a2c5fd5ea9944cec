"""Apply all rules to traced runs, and rank their outcomes."""

from __future__ import annotations

import polars as pl

from iosig.transforms.findings.rules import SEVERITIES, Rule, make_rules
from iosig.transforms.findings.thresholds import Thresholds

#: outcomes of a rule: its condition holds, does not hold, does not concern the run, or lacks facts
OUTCOMES = ("found", "not_found", "not_applicable", "unknown")
_EVIDENCE = pl.List(pl.Struct({"name": pl.String, "value": pl.Float64, "unit": pl.String}))


def apply_rules(facts: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    """Apply all rules to traced runs.

    Parameters
    ----------
    facts
        Result of `compute_facts`.
    thresholds
        Thresholds of the rules.

    Returns
    -------
    pl.DataFrame
        One row per run and rule, sorted by trace, outcome and severity: trace_id, place (rank within the trace, from
        1), rule, direction (NULL if the rule concerns the whole run), anchor, outcome, severity, impact_ratio (fraction
        of the run that its busiest process spends in the affected operations, NULL if unknown), evidence (name, value,
        unit), sentence (with names of evidence in braces), remedy, missing (names of missing facts). Severity, impact,
        evidence, sentence and remedy are NULL unless the outcome is found.
    """
    # one query, since planning each rule separately takes longer than its evaluation
    results = pl.concat([_apply_rule(facts.lazy(), rule, thresholds) for rule in make_rules(thresholds)]).collect()
    order = pl.col("outcome").replace_strict(list(OUTCOMES), range(len(OUTCOMES)), return_dtype=pl.Int64)
    rank = pl.col("severity").replace_strict(
        list(SEVERITIES), range(len(SEVERITIES)), default=None, return_dtype=pl.Int64
    )
    return (
        results.with_columns(order=order, rank=rank)
        .sort(
            "trace_id",
            "order",
            "rank",
            "impact_ratio",
            "rule",
            "direction",
            descending=[False, False, False, True, False, False],
            nulls_last=True,
        )
        .drop("order", "rank")
        .with_columns(place=pl.int_range(1, pl.len() + 1).over("trace_id"))
        .select("trace_id", "place", pl.exclude("trace_id", "place"))
    )


def _apply_rule(facts: pl.LazyFrame, rule: Rule, thresholds: Thresholds) -> pl.LazyFrame:
    is_known = pl.all_horizontal(pl.col(name).is_not_null() for name in rule.needs)
    missing = pl.concat_str(
        [pl.when(pl.col(name).is_null()).then(pl.lit(f"{name} ")).otherwise(pl.lit("")) for name in rule.needs]
    )
    holds = rule.holds.fill_null(False)
    outcome = (
        pl.when(~_is_applicable(rule))
        .then(pl.lit("not_applicable"))
        .when(~is_known)
        .then(pl.lit("unknown"))
        .when(holds)
        .then(pl.lit("found"))
        .otherwise(pl.lit("not_found"))
    )
    numbers = [
        pl.struct(name=pl.lit(number.name), value=number.value.cast(pl.Float64), unit=pl.lit(number.unit))
        for number in rule.evidence
    ]
    is_small = (pl.col("impact_ratio") < thresholds.min_impact_ratio).fill_null(False)
    severity = pl.when(is_small).then(pl.lit("note")).otherwise(pl.lit(rule.severity))
    is_found = pl.col("outcome") == "found"
    return facts.select(
        "trace_id",
        rule=pl.lit(rule.name),
        direction=pl.lit(rule.direction, pl.String),
        anchor=pl.lit(rule.anchor),
        outcome=outcome,
        impact_ratio=rule.impact.cast(pl.Float64).clip(0, 1),
        evidence=pl.concat_list(numbers).cast(_EVIDENCE),
        missing=missing.str.strip_chars(),
    ).select(
        "trace_id", "rule", "direction", "anchor", "outcome",
        severity=pl.when(is_found).then(severity),
        impact_ratio=pl.when(is_found).then("impact_ratio"),
        evidence=pl.when(is_found).then("evidence"),
        sentence=pl.when(is_found).then(pl.lit(rule.sentence)),
        remedy=pl.when(is_found).then(pl.lit(rule.remedy)),
        missing=pl.when(pl.col("outcome") == "unknown").then("missing"),
    )  # fmt: skip


def _is_applicable(rule: Rule) -> pl.Expr:
    """Return whether a rule is applicable to a run; true if unknown."""
    match rule.layer:
        case "any":
            return pl.lit(True)
        case "processes":
            return pl.col("process_count").fill_null(2) > 1
        case "stripes":
            return pl.col("striped_file_count").fill_null(1) > 0
        case layer:
            return pl.col("modules").list.contains(layer).fill_null(True)
