"""Describe failed expectations and their remedies in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iosig.expectations.suites import Rule

#: key in `observed` of the message of an expectation that raised an error
ERROR = "error"
#: key in `observed` of the names of an expectation's unset parameters
NOT_CONFIGURED = "not_configured"
ERROR_REMEDY = "Report it with the inputs of the run."

_FAILURE = "{count} of {rows} {rows:row|rows} {count:breaks|break} this:"


class _Number(int):
    """Integer for format strings: `{n}` has thousands separators, `{n:row|rows}` selects singular or plural."""

    def __format__(self, words: str) -> str:
        if not words:
            return f"{int(self):,}"
        singular, plural = words.split("|")
        return singular if self == 1 else plural


def describe_failure(rule: Rule, unexpected_count: int, observed: Mapping[str, Any]) -> str:
    """Describe a failed row of `quality` in a sentence."""
    if ERROR in observed:
        return f"This could not be checked ({observed[ERROR]}): {rule.doc}"
    if NOT_CONFIGURED in observed:
        return f"Not checked: no value is set for {', '.join(observed[NOT_CONFIGURED])}: {rule.doc}"
    if not rule.failure and rule.judged in ("count", "values"):
        return f"Failed: {rule.doc}"
    rows = observed.get("row_count", observed.get("observed_value"))
    numbers = {"count": unexpected_count, "rows": rows, **observed.get("sums", {})}
    values = {name: _Number(number) for name, number in numbers.items() if isinstance(number, int)}
    try:
        return (rule.failure or f"{_FAILURE} {rule.doc}").format_map(values)
    except KeyError:
        # observations stored by an older version may lack some of the numbers
        return f"{_Number(unexpected_count)} {_Number(unexpected_count):row breaks|rows break} this: {rule.doc}"


def what_to_do(rule: Rule, observed: Mapping[str, Any]) -> str:
    """Return the remedy for a failed row of `quality`."""
    if ERROR in observed:
        return ERROR_REMEDY
    return "Set it in the settings to enable this check." if NOT_CONFIGURED in observed else rule.remedy
