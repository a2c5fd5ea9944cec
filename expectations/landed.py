"""Validate landed tables against their suites with DuckDB, in bounded memory.

A day may have millions of landed rows, so Great Expectations does not read them. Each expectation becomes an SQL
condition with the same meaning, and one query per table counts the violating rows of each day. A further query fetches
examples only for a violated rule. An example names the landed file, the line if the table has it, and the compared
values.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.expectations import suites
from iosig.expectations.suites import Rule
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.files import quote_identifier
from iosig.warehouse.contracts.quality import QUALITY_DAILY

if TYPE_CHECKING:
    import duckdb

_EXAMPLES = 5
_TEXT_LIMIT_CHARS = 200
_UNIQUE = "expect_compound_columns_to_be_unique"
_OPERATORS = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LandedRows:
    """The landed rows of some days.

    query: SQL whose result has the columns of `suites.add_landing_columns(table)`, `input_file`, `checked_on` (the day,
    or NULL), and `part_order` and `part_row`, which order the rows.
    """

    table: Table
    query: str
    days: tuple[date | None, ...]

    def select(self, connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
        """Run a query on `rows`, the rows of the days."""
        return connection.execute(
            f"""
            with landed_rows as ({self.query}),
            rows as (
                from landed_rows
                where list_contains($days::date[], checked_on) or ($has_undated and checked_on is null)
            )
            {query}
            """,
            {"days": [day for day in self.days if day is not None], "has_undated": None in self.days},
        ).fetchall()


def check(connection: duckdb.DuckDBPyConnection, rows: LandedRows) -> pl.DataFrame:
    """Validate landed rows against the suite of their table.

    Returns rows of `quality_daily`, one for each rule and day with rows.
    """
    name, rules = rows.table.name, suites.rules(rows.table)
    row_counts, counts = _count(connection, rows, rules)
    examples = {rule.name: _find_examples(connection, rows, rule) for rule in rules if any(counts[rule.name].values())}
    verdicts = []
    for rule in rules:
        for day, row_count in row_counts.items():
            count = counts[rule.name].get(day, 0)
            observed = json.dumps({"examples": examples[rule.name][day]} if count else {})
            is_met = rule.holds(row_count, count)
            verdicts.append((day, name, rule.name, rule.severity, is_met, observed, count, row_count))
    return pl.DataFrame(verdicts, schema=frames.schema(QUALITY_DAILY), orient="row")


def _count(
    connection: duckdb.DuckDBPyConnection, rows: LandedRows, rules: Sequence[Rule]
) -> tuple[dict[date | None, int], dict[str, dict[date | None, int]]]:
    """Count the rows of each day, and for each rule the violating rows of each day."""
    of_rows, of_keys = ([rule for rule in rules if (rule.type == _UNIQUE) == is_key] for is_key in (False, True))
    counted = "".join(f", count(*) filter ({_violation(rows.table, rule)})" for rule in of_rows)
    found = rows.select(connection, f"select checked_on, count(*){counted} from rows group by checked_on order by all")
    counts = {rule.name: {day: of_day[place] for day, _, *of_day in found} for place, rule in enumerate(of_rows)}
    for rule in of_keys:
        counts[rule.name] = dict(rows.select(connection, _count_repeated(rule)) if found else ())
    return {day: row_count for day, row_count, *_ in found}, counts


def _count_repeated(rule: Rule) -> str:
    """Build SQL that counts the rows of each day with a repeated key; NULLs compare equal."""
    groups = f"select checked_on, count(*) as row_count from rows group by checked_on, {_list_columns(rule.kwargs)}"
    return f"select checked_on, sum(row_count)::bigint from ({groups}) where row_count > 1 group by checked_on"


def _find_examples(
    connection: duckdb.DuckDBPyConnection, rows: LandedRows, rule: Rule
) -> Mapping[date | None, list[dict[str, Any]]]:
    """Return the first violating rows of each day: file, line or key, and the compared values."""
    source = "rows"
    if rule.type == _UNIQUE:
        keys = f"checked_on, {_list_columns(rule.kwargs)}"
        source = f"(select *, count(*) over (partition by {keys}) > 1 as is_repeated from rows)"
    found = rows.select(
        connection,
        f"""
        select checked_on, to_json({{{_describe_row(rows.table, rule)}}})::varchar
        from {source}
        where {"is_repeated" if rule.type == _UNIQUE else _violation(rows.table, rule)}
        qualify row_number() over (partition by checked_on order by part_order, part_row) <= {_EXAMPLES}
        order by part_order, part_row
        """,
    )
    examples: dict[date | None, list[dict[str, Any]]] = defaultdict(list)
    for day, text in found:
        examples[day].append(json.loads(text))
    return examples


def _describe_row(table: Table, rule: Rule) -> str:
    """Build the fields of an example; the key identifies a row without a line."""
    identity = ("line",) if "line" in table.column_names else table.key
    names = dict.fromkeys((*identity, *rule.column_names))
    values = {
        name: f"left({quote_identifier(name)}, {_TEXT_LIMIT_CHARS})"
        if table.column(name).dtype == "text"
        else quote_identifier(name)
        for name in names
        if name != "source_file"
    }
    return ", ".join(f"'{name}': {value}" for name, value in ({"source_file": "input_file"} | values).items())


# ---- expectations in SQL


def _violation(table: Table, rule: Rule) -> str:
    """Build SQL that is true for rows that violate a rule."""
    condition = _CONDITIONS[rule.type](table, rule.kwargs)
    where = rule.kwargs.get("row_condition")
    return f"({condition}) is false" + (f" and ({_where(where)}) is true" if where else "")


def _where(condition: _Arguments) -> str:
    """Convert a row condition of Great Expectations to an SQL condition."""
    if condition["type"] == "and":
        return " and ".join(f"({_where(part)})" for part in condition["conditions"])
    value = quote_identifier(condition["column"]["name"])
    if condition["type"] == "nullity":
        return f"{value} is {'' if condition['is_null'] else 'not '}null"
    if condition["operator"] == "IN":
        return f"{value} in ({', '.join(map(_literal, condition['parameter']))})"
    return f"{value} {_OPERATORS[condition['operator']]} {_literal(condition['parameter'])}"


def _literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else json.dumps(value)


def _list_columns(kwargs: _Arguments) -> str:
    return ", ".join(_columns(kwargs))


def _columns(kwargs: _Arguments) -> list[str]:
    return [quote_identifier(name) for name in kwargs["column_list"]]


def _within(value: str, kwargs: _Arguments, dtype: str) -> str:
    """Compare a value with `min_value` and `max_value`."""
    signs = {"min_value": ">" if kwargs.get("strict_min") else ">=", "max_value": "<"} | (
        {} if kwargs.get("strict_max") else {"max_value": "<="}
    )
    cast = "::timestamptz" if dtype == "instant" else ""
    limits = [(sign, kwargs[name]) for name, sign in signs.items() if name in kwargs]
    return " and ".join(f"{value} {sign} {_literal(limit)}{cast}" for sign, limit in limits)


def _between(table: Table, kwargs: _Arguments) -> str:
    return _within(quote_identifier(kwargs["column"]), kwargs, table.column(kwargs["column"]).dtype)


def _lengths_between(_: Table, kwargs: _Arguments) -> str:
    return _within(f"length({quote_identifier(kwargs['column'])})", kwargs, "int")


def _present(_: Table, kwargs: _Arguments) -> str:
    return f"{quote_identifier(kwargs['column'])} is not null"


def _absent(_: Table, kwargs: _Arguments) -> str:
    return f"{quote_identifier(kwargs['column'])} is null"


def _greater(_: Table, kwargs: _Arguments) -> str:
    first, second = (quote_identifier(kwargs[name]) for name in ("column_A", "column_B"))
    return f"{first} {'>=' if kwargs.get('or_equal') else '>'} {second}"


def _in_order(_: Table, kwargs: _Arguments) -> str:
    values = _columns(kwargs)
    size = kwargs.get("group_size") or len(values)
    groups = [values[start : start + size] for start in range(0, len(values), size)]
    pairs = [pair for group in groups for pair in pairwise(group)]
    return " and ".join(f"coalesce({low} <= {high}, true)" for low, high in pairs)


def _positive_with_others(_: Table, kwargs: _Arguments) -> str:
    first, *others = _columns(kwargs)
    return f"coalesce({first} > 0, false) or not ({' or '.join(f'coalesce({value} > 0, false)' for value in others)})"


def _short_delays(_: Table, kwargs: _Arguments) -> str:
    first, *others = _columns(kwargs)
    sign = "<" if kwargs.get("strict_max") else "<="
    delays = (f"(epoch_us({value}) - epoch_us({first})) / 1e6" for value in others)
    return " and ".join(f"coalesce({delay} {sign} {kwargs['max_delay_s']}, true)" for delay in delays)


def _duration_matches(_: Table, kwargs: _Arguments) -> str:
    duration, started, ended = _columns(kwargs)
    measured = f"(epoch_us({ended}) - epoch_us({started})) / 1e6"
    is_complete = f"({duration} is null) = ({started} is null or {ended} is null)"
    return f"{is_complete} and coalesce(abs({measured} - {duration}) <= {kwargs['tolerance_s']}, true)"


def _utc_day(_: Table, kwargs: _Arguments) -> str:
    day, instant = _columns(kwargs)
    return f"{day} is not distinct from ({instant} at time zone 'UTC')::date"


#: by type of expectation: SQL that is false for violating rows; NULL is no violation
_CONDITIONS: dict[str, Callable[[Table, _Arguments], str]] = {
    "expect_column_values_to_be_between": _between,
    "expect_column_value_lengths_to_be_between": _lengths_between,
    "expect_column_values_to_not_be_null": _present,
    "expect_column_values_to_be_null": _absent,
    "expect_column_pair_values_a_to_be_greater_than_b": _greater,
    "expect_multicolumn_values_to_be_in_order": _in_order,
    "expect_multicolumn_first_to_be_positive_with_others": _positive_with_others,
    "expect_multicolumn_delays_to_be_short": _short_delays,
    "expect_multicolumn_duration_to_match_times": _duration_matches,
    "expect_multicolumn_date_to_be_utc_day_of_instant": _utc_day,
}
