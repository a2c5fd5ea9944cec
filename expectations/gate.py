"""The gate: holds a table to its suite, takes out the rows that break a rule, and decides on the release.

What the table's contract holds is put on record, without being asked again.
Great Expectations runs the suites on pandas. Its import costs seconds: it is imported where it first runs,
and `preload` can do that in a thread while other work goes on.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import polars as pl
import polars.selectors as cs

from expectations import suites
from expectations.suites import Rule
from warehouse.contracts import Table, frames
from warehouse.contracts.quality import QUALITY, QUARANTINE
from warehouse.errors import GateFailed

Verdict = Literal["passed", "warned"]

_EXAMPLES = 5
_TEXT_LIMIT_CHARS = 200
_BRIEF = {"result_format": "BASIC", "partial_unexpected_count": _EXAMPLES}
#: names every row that breaks a rule, not only the first ones
_WITH_ROWS = _BRIEF | {"result_format": "COMPLETE", "return_unexpected_index_query": False}
#: of a result, what a verdict and the Data Docs keep; the lists of all rows and values can be huge
_KEPT = (
    "observed_value",
    "element_count",
    "missing_count",
    "missing_percent",
    "unexpected_count",
    "unexpected_percent",
    "unexpected_percent_total",
    "unexpected_percent_nonmissing",
    "partial_unexpected_list",
    "partial_unexpected_counts",
)
#: rules about single rows, or about rows that are alike: none breaks them where there is none
_OF_ROWS = ("expect_column_values_", "expect_column_pair_values_", "expect_compound_columns_", "expect_multicolumn_")
_NO_ROWS: dict[str, Any] = {
    "element_count": 0,
    "unexpected_count": 0,
    "unexpected_percent": None,
    "partial_unexpected_list": [],
}
#: what the result of a rule holds instead, where a parameter has no value
_NOT_CONFIGURED = "not_configured"
#: there is one engine, and it holds one frame at a time
_TURN = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A table after its check.

    `good` are the rows that may be released, `quarantined` the others as rows of `quarantine`: one for
    each rule that a row breaks. `verdicts` are rows of `quality`. `validation` is the JSON of Great
    Expectations' own result, from which `docs.build` draws the Data Docs; its `meta` says which rules
    were not checked (`not_configured`: the rule's configuration and the parameters that have no value)
    and how many rows were taken out (`quarantined_count`).
    """

    good: pl.DataFrame
    quarantined: pl.DataFrame
    verdicts: pl.DataFrame
    validation: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Finding:
    """What came of one rule: `result` as Great Expectations gives it, `rows` the places of the bad rows."""

    rule: Rule
    success: bool
    result: dict[str, Any]
    rows: Sequence[int] = ()

    @property
    def unexpected_count(self) -> int:
        """Rows that break the rule; a rule about the whole table has none."""
        return int(self.result.get("unexpected_count") or 0)


def preload() -> None:
    """Import and start Great Expectations, so that the first check need not wait for it."""
    with _TURN:
        _frames()


def check(table: Table, frame: pl.DataFrame, parameters: Mapping[str, float]) -> Checked:
    """Hold a table's rows to its suite.

    The rules that take rows out are checked first, on all rows; the rest of the suite on what they leave.
    A rule whose parameter has neither a value in `parameters` nor a default is not checked: its verdict is
    an `info` that does not hold, and says so. A rule that cannot be evaluated is `critical`, whatever its
    severity, for nothing is known of the rows.
    """
    values = suites.values(table, parameters)
    ready = [rule for rule in suites.rules(table) if values.keys() >= set(rule.parameter_names)]
    first = _evaluate(table.name, frame, [rule for rule in ready if rule.is_quarantine], values)
    good, quarantined = _take_out(table, frame, first)
    second = _evaluate(table.name, good, [rule for rule in ready if not rule.is_quarantine], values)
    skipped = [_unchecked(rule) for rule in suites.rules(table) if rule not in ready]
    findings = [*first, *second, *skipped]
    validation = _validation(table, findings, frame.height - good.height)
    return Checked(good, quarantined, _verdicts(table, findings), validation)


def decide(verdicts: pl.DataFrame) -> Verdict:
    """Return `passed`, or `warned` where a warning does not hold, for the rows of `quality` of a run.

    Raises:
        GateFailed: a critical expectation does not hold; the message names each, and what to do.
    """
    failed = verdicts.filter(~pl.col("success"))
    critical = failed.filter(pl.col("severity") == "critical")
    if not critical.is_empty():
        raise GateFailed(_refusal(critical))
    return "passed" if failed.filter(pl.col("severity") == "warning").is_empty() else "warned"


def _refusal(critical: pl.DataFrame) -> str:
    lines = [_complaint(row) for row in critical.sort("table_name", "expectation").iter_rows(named=True)]
    count = f"{len(lines)} critical expectation{'s do' if len(lines) > 1 else ' does'} not hold"
    return "\n".join([f"Nothing is released: {count}.", *lines])


def _complaint(row: Mapping[str, Any]) -> str:
    rule = suites.rule(row["table_name"], row["expectation"])
    observed = json.loads(row["observed"])
    count = row["unexpected_count"]
    if "error" in observed:
        rows, remedy = f" could not be checked ({observed['error']})", "Report it with the inputs of the run."
    else:
        rows, remedy = f" in {count:,} row{'s' if count > 1 else ''}" if count else "", rule.remedy
    return f"- {row['table_name']}.{row['expectation']}{rows}: {rule.doc} {remedy}"


# ---- Great Expectations


@cache
def _frames() -> Any:
    """Return the batch definition into which any frame goes; made once, for starting one costs."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("iosig").add_dataframe_asset("table")
    return asset.add_batch_definition_whole_dataframe("rows")


def _evaluate(name: str, frame: pl.DataFrame, rules: Sequence[Rule], values: Mapping[str, float]) -> list[_Finding]:
    known = {rule.name: _Finding(rule, True, result) for rule in rules if (result := _known(rule, frame))}
    asked = _asked(name, frame, [rule for rule in rules if rule.name not in known], values)
    found = known | {finding.rule.name: finding for finding in asked}
    return [found[rule.name] for rule in rules]


def _known(rule: Rule, frame: pl.DataFrame) -> dict[str, Any] | None:
    """Return Great Expectations' result of a rule that no row can break; None of any other."""
    if frame.is_empty() and rule.type.startswith(_OF_ROWS):
        # It takes as long for no rows as for many, and most nights lack some kind of input.
        return _NO_ROWS
    if not rule.is_held:
        return None
    if "column" not in rule.kwargs:
        return {"observed_value": frame.columns}
    return _NO_ROWS | {"element_count": frame.height, "unexpected_percent": 0.0}


def _asked(name: str, frame: pl.DataFrame, rules: Sequence[Rule], values: Mapping[str, float]) -> list[_Finding]:
    if not rules:
        return []
    with _TURN:
        definition = _frames()
        from great_expectations import ExpectationSuite

        suite = ExpectationSuite(name=name, expectations=[rule.configuration() for rule in rules])
        batch = definition.get_batch({"dataframe": _pandas(frame)})
        outcome = batch.validate(
            suite,
            result_format=_WITH_ROWS if any(rule.is_quarantine for rule in rules) else _BRIEF,
            expectation_parameters=dict(values),
        )
        batch.data.execution_engine.batch_manager.reset_batch_cache()
    found = {result.expectation_config.meta["name"]: result for result in outcome.results}
    return [_finding(rule, found[rule.name]) for rule in rules]


def _pandas(frame: pl.DataFrame) -> Any:
    return frame.with_columns(cs.list().list.len().cast(pl.Int64)).to_pandas()


def _finding(rule: Rule, outcome: Any) -> _Finding:
    errors = list(_errors(outcome.exception_info))
    if errors:
        return _Finding(replace(rule, severity="critical"), False, {"error": _plain(errors[0])})
    kept = {name: _plain(outcome.result[name]) for name in _KEPT if name in outcome.result}
    rows = outcome.result.get("unexpected_index_list") or () if rule.is_quarantine else ()
    return _Finding(rule, bool(outcome.success) and not rows, kept, rows)


def _errors(exception_info: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what was raised: Great Expectations nests it by metric where a metric is to blame."""
    for info in (exception_info or {}, *(exception_info or {}).values()):
        if isinstance(info, Mapping) and info.get("raised_exception"):
            yield str(info.get("exception_message"))


def _unchecked(rule: Rule) -> _Finding:
    return _Finding(replace(rule, severity="info"), False, {_NOT_CONFIGURED: list(rule.parameter_names)})


# ---- quarantine


def _take_out(table: Table, frame: pl.DataFrame, findings: Sequence[_Finding]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a frame into the rows that break none of the rules and, for each rule, the rows that do."""
    is_good = np.ones(frame.height, dtype=np.bool_)
    taken = [frames.empty(QUARANTINE)]
    for finding in findings:
        rows = np.asarray(finding.rows, dtype=np.int64)
        is_good[rows] = False
        taken.append(_quarantined(table, finding.rule, frame[rows]))
    return frame.filter(is_good), pl.concat(taken)


def _quarantined(table: Table, rule: Rule, rows: pl.DataFrame) -> pl.DataFrame:
    day = pl.col(table.partition) if table.partition in rows.columns else pl.lit(None, pl.Date)
    return rows.select(
        day=day,
        table_name=pl.lit(table.name),
        rule=pl.lit(rule.name),
        row_json=pl.struct(pl.all()).struct.json_encode(),
    )


# ---- verdicts


def _verdicts(table: Table, findings: Sequence[_Finding]) -> pl.DataFrame:
    rows = [
        (
            table.name,
            finding.rule.name,
            finding.rule.severity,
            finding.success,
            json.dumps(_observed(finding.result)),
            finding.unexpected_count,
        )
        for finding in findings
    ]
    return pl.DataFrame(rows, schema=frames.schema(QUALITY), orient="row")


def _observed(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a verdict keeps of a result: of a rule about rows, how many there were and a few bad ones."""
    if "unexpected_count" not in result:
        return result
    rows = {"row_count": result["element_count"]}
    if not result["unexpected_count"]:
        return rows
    return rows | {"unexpected_percent": result["unexpected_percent"], "examples": result["partial_unexpected_list"]}


def _validation(table: Table, findings: Sequence[_Finding], quarantined_count: int) -> dict[str, Any]:
    """Return the findings as the JSON of Great Expectations' suite validation result."""
    checked = [finding for finding in findings if _NOT_CONFIGURED not in finding.result]
    skipped = [finding for finding in findings if _NOT_CONFIGURED in finding.result]
    successes = sum(finding.success for finding in checked)
    return {
        "success": successes == len(checked),
        "suite_name": table.name,
        "results": [_expectation_result(finding) for finding in checked],
        "suite_parameters": {},
        "statistics": {
            "evaluated_expectations": len(checked),
            "successful_expectations": successes,
            "unsuccessful_expectations": len(checked) - successes,
            "success_percent": 100.0 * successes / len(checked),
        },
        "meta": {
            "quarantined_count": quarantined_count,
            _NOT_CONFIGURED: [finding.rule.configuration() | finding.result for finding in skipped],
        },
    }


def _expectation_result(finding: _Finding) -> dict[str, Any]:
    error = finding.result.get("error")
    return {
        "success": finding.success,
        "expectation_config": finding.rule.configuration(),
        "result": {} if error else finding.result,
        "meta": {},
        "exception_info": {
            "raised_exception": error is not None,
            "exception_message": error,
            "exception_traceback": "",
        },
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: texts cut, what is no number NULL, all else as its text."""
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
