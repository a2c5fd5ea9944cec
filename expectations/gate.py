"""Validate tables against their suites, quarantine rows that violate a rule, and decide on the release.

Guarantees of a table's contract are recorded without being checked again. Rows of several days are validated together
and the findings are split by day: a release is judged on the days of many runs (`summing`). Great Expectations runs the
suites on pandas. Its import takes seconds, so it is imported on first use; `preload` can do that in a background
thread.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from iosig.expectations import suites
from iosig.expectations.sentences import ERROR, ERROR_REMEDY, NOT_CONFIGURED
from iosig.expectations.suites import Rule
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.quality import QUALITY_DAILY, QUARANTINE
from iosig.warehouse.contracts.releases import PASSED, WITH_WARNINGS
from iosig.warehouse.errors import GateFailed

_EXAMPLES = 5
_TEXT_LIMIT_CHARS = 200
_BRIEF = {"result_format": "BASIC", "partial_unexpected_count": _EXAMPLES}
#: result format that reports every violating row, not only the first ones
_WITH_ROWS = _BRIEF | {"result_format": "COMPLETE", "return_unexpected_index_query": False}
#: types of rules that hold if all values of their columns are NULL
_HELD_BY_NULLS = frozenset(
    {
        "expect_column_values_to_be_null",
        "expect_multicolumn_values_to_be_in_order",
        "expect_multicolumn_values_to_be_null",
        "expect_multicolumn_values_to_be_null_together",
    }
)
#: types of rules that hold if no value of their columns is NULL
_HELD_BY_VALUES = frozenset(
    {
        "expect_column_values_to_not_be_null",
        "expect_multicolumn_values_to_be_null_together",
        "expect_multicolumn_values_to_be_present",
    }
)
#: day number of rows without a day
_NO_DAY = 2**31 - 1
#: lock for Great Expectations' shared engine, which contains one frame at a time
_TURN = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class CheckResult:
    """Validation result of a table.

    `good` are the rows to release. `quarantined` are the others as rows of `quarantine`, one per violated rule.
    `verdicts` are rows of `quality_daily`, one per rule and day with rows.
    """

    good: pl.DataFrame
    quarantined: pl.DataFrame
    verdicts: pl.DataFrame


@dataclass(frozen=True, slots=True)
class _Finding:
    """Result of one row rule: the number of violations, some of their values and, on request, all violating rows.

    `rows` are the indices of the violating rows, `values` the offending values. `untold` gives the reason if the rule
    could not be checked: `error`, or `not_configured` with the parameters that have no value.
    """

    rule: Rule
    unexpected_count: int = 0
    examples: Sequence[Any] = ()
    rows: Sequence[int] = ()
    values: Sequence[Any] = ()
    untold: Mapping[str, Any] = field(default_factory=dict)


def preload() -> None:
    """Import and initialize Great Expectations in advance, so that the first check starts immediately."""
    with _TURN:
        _frames()


def check(table: Table, frame: pl.DataFrame, parameters: Mapping[str, float]) -> CheckResult:
    """Validate a table's rows against its suite.

    Quarantine rules are checked first, on all rows; the other rules are checked on the remaining rows. If a parameter
    of a rule has neither a value in `parameters` nor a default, the rule is not checked, and its verdict is a failed
    `info`. A rule that cannot be evaluated is `critical`, whatever its severity, because the state of the rows is
    unknown.
    """
    values = suites.values(table, parameters)
    rules = suites.rules(table)
    first = _evaluate(table, frame, [rule for rule in rules if rule.is_quarantine], values)
    good, quarantined = _take_out(table, frame, first)
    second = _evaluate(table, good, [rule for rule in rules if not rule.is_quarantine], values)
    verdicts = pl.concat([_verdicts(table, frame, first), _verdicts(table, good, second)])
    return CheckResult(good, quarantined, verdicts)


def decide(verdicts: pl.DataFrame) -> str:
    """Return the verdict on a release from its rows of `quality`: `passed`, or `passed with warnings`.

    Raises
    ------
    GateFailed
        If a critical expectation does not hold. The message names each one, with its remedy.
    """
    failed = verdicts.filter(~pl.col("success"))
    critical = failed.filter(pl.col("severity") == "critical")
    if not critical.is_empty():
        raise GateFailed(_refusal(critical))
    return PASSED if failed.filter(pl.col("severity") == "warning").is_empty() else WITH_WARNINGS


def _refusal(critical: pl.DataFrame) -> str:
    lines = [_complaint(row) for row in critical.sort("table_name", "expectation").iter_rows(named=True)]
    count = f"{len(lines)} critical check{'s' if len(lines) > 1 else ''} failed"
    return "\n".join([f"No release was published: {count}.", *lines])


def _complaint(row: Mapping[str, Any]) -> str:
    rule = suites.rule(row["table_name"], row["expectation"])
    observed = json.loads(row["observed"])
    count = row["unexpected_count"]
    if ERROR in observed:
        rows, remedy = f" could not be checked ({observed[ERROR]})", ERROR_REMEDY
    else:
        rows, remedy = f" in {count:,} row{'s' if count > 1 else ''}" if count else "", rule.remedy
    return f"- {row['table_name']}.{row['expectation']}{rows}: {rule.doc} {remedy}"


# ---- Great Expectations


class _Deferred(ModuleType):
    """Placeholder for a module in `sys.modules`; the first attribute access imports the module."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        attribute = getattr(import_module(self.__name__), name)
        self.__dict__[name] = attribute
        return attribute


def _defer(*names: str) -> None:
    """Make the import of modules lazy; modules that are already imported or not installed stay unchanged.

    `importlib.util.LazyLoader` of Python 3.11 is not sufficient: the next `import` reads the module's spec, which
    already triggers loading.
    """
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            module = _Deferred(name)
            module.__spec__ = spec
            sys.modules[name] = module


@cache
def _frames() -> Any:
    """Return a cached batch definition that accepts any frame; creating one is expensive."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    # these modules serve plots and fits that iosig does not use, and take two fifths of the import time
    _defer("altair", "scipy.stats")
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("iosig").add_dataframe_asset("table")
    return asset.add_batch_definition_whole_dataframe("rows")


def _evaluate(table: Table, frame: pl.DataFrame, rules: Sequence[Rule], values: Mapping[str, float]) -> list[_Finding]:
    """Evaluate rules; collect all violating rows for frames of several days, and for rules with an example column."""
    findings = {rule.name: finding for rule in rules if (finding := _decide_without_validation(rule, frame, values))}
    validated_rules = [rule for rule in rules if rule.name not in findings]
    findings |= _validate_frame(table.name, frame, validated_rules, values)
    has_days = table.partition in frame.columns and frame[table.partition].n_unique() > 1
    broken = [rule for rule in validated_rules if findings[rule.name].unexpected_count and not findings[rule.name].rows]
    incomplete = [rule for rule in broken if has_days or rule.example_column]
    findings |= _validate_frame(table.name, frame, incomplete, values, _WITH_ROWS)
    return [findings[rule.name] for rule in rules]


def _decide_without_validation(rule: Rule, frame: pl.DataFrame, values: Mapping[str, float]) -> _Finding | None:
    """Return the finding of a rule that needs no evaluation by Great Expectations, or None.

    Such rules cannot be violated, depend on row counts or value sets only, follow from the NULLs of their columns or
    from the row condition, or lack a parameter.
    """
    if missing := sorted(set(rule.parameter_names) - values.keys()):
        return _Finding(replace(rule, severity="info"), untold={NOT_CONFIGURED: missing})
    # validating an empty frame takes as long as a large one, and most nightly runs lack some kind of input
    is_known = (
        rule.is_held
        or frame.is_empty()
        or rule.judged in ("count", "values")
        or _is_in_order(rule, frame)
        # a rule about an absent column is evaluated, since its error is reported
        or ({*rule.column_names} <= {*frame.columns} and _is_vacuous(rule, frame))
    )
    return _Finding(rule) if is_known else None


def _is_in_order(rule: Rule, frame: pl.DataFrame) -> bool:
    """Return whether a uniqueness rule follows from strictly ascending keys.

    Most tables are written in key order, and checking the order is much cheaper than a search for duplicates.
    """
    names = {
        "expect_column_values_to_be_unique": [rule.kwargs.get("column")],
        "expect_compound_columns_to_be_unique": rule.kwargs.get("column_list", ()),
    }.get(rule.type)
    if not names or "row_condition" in rule.kwargs:
        return False
    rises = pl.lit(value=False)
    for value in map(pl.col, reversed(names)):
        rises = (value > value.shift()) | ((value == value.shift()) & rises)
    # a NULL key has no order
    return bool(frame.select(rises.fill_null(value=False).slice(1).all()).item())


def _is_vacuous(rule: Rule, frame: pl.DataFrame) -> bool:
    """Return whether a rule holds by the NULLs of its columns, or because its condition selects no row."""
    return _is_settled_by_nulls(rule, frame) or _selects_no_row(rule.kwargs.get("row_condition", {}), frame)


def _is_settled_by_nulls(rule: Rule, frame: pl.DataFrame) -> bool:
    """Return whether a rule holds because its columns have only NULL values, or none.

    Operations are NULL in every row of a site without them, and validation would take seconds for millions of points.
    """
    if rule.type not in _HELD_BY_NULLS | _HELD_BY_VALUES:
        return False
    names = [rule.kwargs["column"]] if "column" in rule.kwargs else rule.kwargs["column_list"]
    counts = {_count_nulls(frame[name]) for name in names}
    held = {0: _HELD_BY_VALUES, frame.height: _HELD_BY_NULLS}
    return len(counts) == 1 and rule.type in held.get(counts.pop(), ())


def _count_nulls(values: pl.Series) -> int:
    """Return the number of NULL and NaN values, which Great Expectations does not distinguish."""
    return values.null_count() + (int(values.is_nan().sum()) if values.dtype.is_float() else 0)


def _selects_no_row(condition: Mapping[str, Any], frame: pl.DataFrame) -> bool:
    """Return whether a row condition is known to select no row: an equality that no row has, alone or joined by AND."""
    if condition.get("type") == "and":
        return any(_selects_no_row(part, frame) for part in condition["conditions"])
    if condition.get("operator") != "==":
        return False
    return not (frame[condition["column"]["name"]] == condition["parameter"]).any()


def _validate_frame(
    name: str,
    frame: pl.DataFrame,
    rules: Sequence[Rule],
    values: Mapping[str, float],
    result_format: Mapping[str, Any] | None = None,
) -> dict[str, _Finding]:
    if not rules:
        return {}
    with _TURN:
        definition = _frames()
        from great_expectations import ExpectationSuite

        suite = ExpectationSuite(name=name, expectations=[rule.configuration() for rule in rules])
        batch = definition.get_batch({"dataframe": _pandas(frame)})
        outcome = batch.validate(
            suite,
            result_format=result_format or (_WITH_ROWS if any(rule.is_quarantine for rule in rules) else _BRIEF),
            expectation_parameters=dict(values),
        )
        batch.data.execution_engine.batch_manager.reset_batch_cache()
    results = {result.expectation_config.meta["name"]: result for result in outcome.results}
    return {rule.name: _finding(rule, results[rule.name]) for rule in rules}


def _pandas(frame: pl.DataFrame) -> Any:
    return frame.with_columns(cs.list().list.len().cast(pl.Int64)).to_pandas()


def _finding(rule: Rule, outcome: Any) -> _Finding:
    errors = list(_errors(outcome.exception_info))
    if errors:
        return _Finding(replace(rule, severity="critical"), untold={ERROR: _plain(errors[0])})
    result = outcome.result
    return _Finding(
        rule,
        int(result.get("unexpected_count") or 0),
        _plain(result.get("partial_unexpected_list", [])[:_EXAMPLES]),
        result.get("unexpected_index_list") or (),
        result.get("unexpected_list") or (),
    )


def _errors(exception_info: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield exception messages, which Great Expectations nests by metric if a metric failed."""
    for info in (exception_info or {}, *(exception_info or {}).values()):
        if isinstance(info, Mapping) and info.get("raised_exception"):
            yield str(info.get("exception_message"))


# ---- quarantine


def _take_out(table: Table, frame: pl.DataFrame, findings: Sequence[_Finding]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a frame into valid rows and, for each rule, the rows that violate it."""
    is_good = np.ones(frame.height, dtype=np.bool_)
    quarantined = [frames.empty(QUARANTINE)]
    for finding in findings:
        rows = np.asarray(finding.rows, dtype=np.int64)
        is_good[rows] = False
        quarantined.append(_build_quarantine_rows(table, finding.rule, frame[rows]))
    return frame.filter(is_good), pl.concat(quarantined)


def _build_quarantine_rows(table: Table, rule: Rule, rows: pl.DataFrame) -> pl.DataFrame:
    day = pl.col(table.partition) if table.partition in rows.columns else pl.lit(None, pl.Date)
    return rows.select(
        day=day,
        table_name=pl.lit(table.name),
        rule=pl.lit(rule.name),
        row_json=pl.struct(pl.all()).struct.json_encode(),
    )


# ---- verdicts


@dataclass(frozen=True, slots=True)
class _Days:
    """The days of a frame's rows: sorted `days` (None last), and for each row the index of its day."""

    days: Sequence[date | None]
    places: np.ndarray[tuple[int], np.dtype[np.intp]]

    def count(self, rows: Any = slice(None)) -> list[int]:
        """Return the number of the given rows on each day."""
        counts: list[int] = np.bincount(self.places[rows], minlength=len(self.days)).tolist()
        return counts


def _find_days(table: Table, frame: pl.DataFrame) -> _Days:
    if table.partition not in frame.columns:
        return _Days([None] if frame.height else [], np.zeros(frame.height, dtype=np.intp))
    numbers = frame[table.partition].cast(pl.Int32).fill_null(_NO_DAY)
    distinct_days, places = np.unique(numbers.to_numpy(), return_inverse=True)
    epoch = date(1970, 1, 1).toordinal()
    return _Days([None if day == _NO_DAY else date.fromordinal(epoch + int(day)) for day in distinct_days], places)


def _verdicts(table: Table, frame: pl.DataFrame, findings: Sequence[_Finding]) -> pl.DataFrame:
    """Convert findings to rows of `quality_daily`."""
    days = _find_days(table, frame)
    height = days.count()
    rows = [
        (day, table.name, finding.rule.name, finding.rule.severity, *of_day)
        for finding in findings
        for day, of_day in zip(days.days, _split_by_day(finding, frame, days, height), strict=True)
    ]
    return pl.DataFrame(rows, schema=frames.schema(QUALITY_DAILY), orient="row")


def _split_by_day(
    finding: _Finding, frame: pl.DataFrame, days: _Days, height: Sequence[int]
) -> Iterator[tuple[bool, str, int, int]]:
    """For each day, yield whether the rule passes, the observed values, and the numbers of violations and rows."""
    if finding.untold:
        yield from ((False, json.dumps(finding.untold), 0, count) for count in height)
        return
    rule = finding.rule
    counted = days.count(_mark_counted_rows(rule, frame)) if rule.counted_columns else height
    broken, examples = _count_violations(finding, frame, days)
    for place, (row_count, count) in enumerate(zip(counted, broken, strict=True)):
        of_day = frame.filter(days.places == place) if rule.sums or rule.judged == "values" else frame
        observed: dict[str, Any] = {"examples": examples[place]} if count else {}
        observed |= {"sums": {name: of_day[name].sum() for name in rule.sums}} if rule.sums else {}
        distinct_values: list[Any] = []
        if rule.judged == "values":
            distinct_values = of_day[rule.kwargs["column"]].drop_nulls().unique().sort().to_list()
            observed["observed_value"] = _plain(distinct_values)
        yield rule.holds(row_count, count, distinct_values), json.dumps(observed), count, row_count


def _mark_counted_rows(rule: Rule, frame: pl.DataFrame) -> Any:
    return frame.select(pl.all_horizontal(pl.col(rule.counted_columns).is_not_null())).to_series().to_numpy()


def _count_violations(finding: _Finding, frame: pl.DataFrame, days: _Days) -> tuple[list[int], list[list[Any]]]:
    """Return the number of violating rows of each day, with a few example values."""
    if len(days.days) == 1 and not finding.rule.example_column:
        return [finding.unexpected_count], [list(finding.examples)]
    rows = np.asarray(finding.rows, dtype=np.intp)
    examples: list[list[Any]] = [[] for _ in days.days]
    for place, value in zip(days.places[rows].tolist(), _values(finding, frame), strict=True):
        if len(examples[place]) < _EXAMPLES:
            examples[place].append(_plain(value))
    return days.count(rows), examples


def _values(finding: _Finding, frame: pl.DataFrame) -> Sequence[Any]:
    """Return an example for each violating row.

    Great Expectations reports at most 200 values for pairs of columns, so those are read from the frame.
    """
    if finding.rule.example_column:
        return frame[finding.rule.example_column][list(finding.rows)].to_list()
    if len(finding.values) == len(finding.rows):
        return finding.values
    arguments = finding.rule.kwargs
    names = arguments.get("column_list") or [
        arguments[name] for name in ("column", "column_A", "column_B") if name in arguments
    ]
    return frame.select(names)[list(finding.rows)].rows()


def _plain(value: Any) -> Any:
    """Convert a value for JSON: long text is truncated, non-finite numbers become NULL, other types become text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.generic):
        return _plain(value.item())
    return str(value)[:_TEXT_LIMIT_CHARS]
