"""Aggregate daily validation results to the results of a release.

A release contains days from many runs, and each day was validated when it was computed. The `quality` of a release is
aggregated from these results (`quality_daily`), rule by rule as each is judged (`suites.Judged`). Old days are not read
again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from iosig.expectations import suites
from iosig.expectations.sentences import ERROR, NOT_CONFIGURED
from iosig.expectations.suites import Rule, Severity
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.quality import QUALITY, QUALITY_DAILY

_EXAMPLES = 5
#: maximum number of failing days that are listed, the latest ones; their total number is reported, too
_NAMED_DAYS = 31
_WORST: tuple[Severity, ...] = ("critical", "warning", "info")


def aggregate_days(by_day: pl.DataFrame, parameters: Mapping[str, float]) -> pl.DataFrame:
    """Aggregate rows of `quality_daily` to a release's rows of `quality`.

    Every rule of the current suites has one row, computed from zero rows if no day has data. Rules that no suite
    contains any more are dropped. A failed rule has the severity with which its days were checked.
    """
    rows_by_rule = by_day.partition_by("table_name", "expectation", as_dict=True)
    none = frames.empty(QUALITY_DAILY)
    rows = [
        (table.name, rule.name, *_total(rule, rows_by_rule.get((table.name, rule.name), none), table, parameters))
        for table in suites.list_checked_tables()
        for rule in suites.rules(table)
    ]
    return pl.DataFrame(rows, schema=frames.schema(QUALITY), orient="row")


def by_day(table: Table, verdicts: pl.DataFrame, parameters: Mapping[str, float]) -> pl.DataFrame:
    """Merge verdicts of a table that was checked in parts into one row per day and rule (`quality_daily`)."""
    return pl.concat(
        [
            parts if parts.height == 1 else _merge_parts(table, str(name), parts, parameters)
            for (_, name), parts in verdicts.partition_by("day", "expectation", as_dict=True).items()
        ]
    )


def _merge_parts(table: Table, name: str, parts: pl.DataFrame, parameters: Mapping[str, float]) -> pl.DataFrame:
    """Merge the results of several parts of a day into one row per rule."""
    total = _total(suites.rule(table.name, name), parts, table, parameters)
    row = (parts["day"][0], table.name, name, *total, parts["row_count"].sum())
    return pl.DataFrame([row], schema=frames.schema(QUALITY_DAILY), orient="row")


def _total(
    rule: Rule, days: pl.DataFrame, table: Table, parameters: Mapping[str, float]
) -> tuple[Severity, bool, str, int]:
    """Return a rule's severity, success, observed values, and number of violating rows."""
    if days.is_empty() and (missing := set(rule.parameter_names) - suites.values(table, parameters).keys()):
        return "info", False, json.dumps({NOT_CONFIGURED: sorted(missing)}), 0
    count, row_count = int(days["unexpected_count"].sum()), int(days["row_count"].sum())
    failing = _select_failing(days)
    if reason := _find_unchecked_reason(failing):
        return _severity(failing, rule), False, json.dumps(reason), count
    observed, observed_values = _merge_observations(rule, days, row_count)
    success = (
        failing.is_empty() if rule.judged in ("rows", "together") else rule.holds(row_count, count, observed_values)
    )
    if count:
        observed |= {"unexpected_percent": 100.0 * count / row_count, "examples": _examples(days)}
    if success:
        return rule.severity, True, json.dumps(observed), count
    return _severity(failing, rule), False, json.dumps(observed | _days(failing)), count


def _select_failing(days: pl.DataFrame) -> pl.DataFrame:
    """Return the days that violate a rule, the latest first. Most rules pass, and then no query is executed."""
    if days["success"].all():
        return days.clear()
    return days.filter(~pl.col("success")).sort("day", descending=True, nulls_last=True)


def _find_unchecked_reason(failing: pl.DataFrame) -> dict[str, Any]:
    """Return the reason if a rule could not be checked on some days, the most serious one first; empty otherwise."""
    for reason in (ERROR, NOT_CONFIGURED):
        for observed in sorted(set(failing["observed"])):
            if reason in (document := json.loads(observed)):
                return {reason: document[reason]}
    return {}


def _severity(failing: pl.DataFrame, rule: Rule) -> Severity:
    """Return the worst severity of the failing days, or the rule's if only the total fails."""
    severities = set(failing["severity"])
    return next((severity for severity in _WORST if severity in severities), rule.severity)


def _days(failing: pl.DataFrame) -> dict[str, Any]:
    """List the days that violate a rule; empty for a table without days."""
    days = failing["day"].drop_nulls()
    latest = [day.isoformat() for day in days.head(_NAMED_DAYS)]
    return {"failing_days": latest, "failing_day_count": len(days)} if latest else {}


def _merge_observations(rule: Rule, days: pl.DataFrame, row_count: int) -> tuple[dict[str, Any], list[Any]]:
    """Return the observations aggregated over all days, and the distinct values seen."""
    if rule.judged == "values":
        # a day that passed has seen all values, even if an older version did not record them
        expected = rule.kwargs["value_set"] if days["success"].any() else ()
        observations = _read_observations(days)
        values = sorted(
            {*expected, *(value for observation in observations for value in observation.get("observed_value") or ())}
        )
        return {"observed_value": values}, values
    observed: dict[str, Any] = {"observed_value" if rule.judged == "count" else "row_count": row_count}
    if rule.sums:
        sums_by_day = [observation["sums"] for observation in _read_observations(days) if "sums" in observation]
        observed["sums"] = {name: sum(sums.get(name) or 0 for sums in sums_by_day) for name in rule.sums}
    return observed, []


def _read_observations(days: pl.DataFrame) -> Iterator[dict[str, Any]]:
    return map(json.loads, days["observed"])


def _examples(days: pl.DataFrame) -> list[Any]:
    """Collect a few violating values from the latest days."""
    broken = days.filter(pl.col("unexpected_count") > 0).sort("day", descending=True, nulls_last=True)
    return [
        value for observation in _read_observations(broken.head(_EXAMPLES)) for value in observation.get("examples", ())
    ][:_EXAMPLES]
