"""Format predictions as JSON Lines, as `iosig predict` writes them, and parse these without loss.

A line is an object with `format` and the columns of `predictions`. Instants are ISO 8601 in UTC, with microseconds;
`intervals` is a list of objects and `events` a list of strings; in the table, each list is a single string.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from iosig.warehouse.contracts import Column, Dtype
from iosig.warehouse.contracts.predictions import PREDICTION_RECORDS, PREDICTIONS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.rows.documents import MalformedError, flag, text

FORMAT = "iosig-prediction/1"
_BATCH_LINES = 10_000
_TABLE = PREDICTIONS
_LANDED = PREDICTION_RECORDS
_NAMES = _TABLE.column_names
_MAX_INT64 = 2**63 - 1
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|\+00:00)", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EVENT = re.compile(r"[a-z][a-z_]*", re.ASCII)
_INTERVAL = ("shortest_period_s", "typical_period_s", "longest_period_s", "probability", "evaluation_count")
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_REMEDY = "Land the complete, unchanged output of `iosig predict`."
_CUT = "Complete the line or remove it; the following output contains it completely."


# ---- writing


def format_line(row: Mapping[str, Any]) -> str:
    """Format a row of `predictions` as an ASCII line without line end; raise ValueError for an invalid row.

    The value of `intervals` must come from `format_intervals`, so that the row can be restored exactly.
    """
    checked = check_row(row)
    cells = {
        name: value if value is None or name not in _CONVERTERS else _CONVERTERS[name](value)
        for name, value in checked.items()
    }
    return _compact({"format": FORMAT} | cells)


def format_intervals(intervals: object) -> str:
    """Format a list of intervals for the column `intervals`; raise ValueError for an invalid list."""
    return _compact(_intervals(intervals))


def _instant_text(value: datetime) -> str:
    return value.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _event_list(value: str) -> list[str]:
    return value.split(",") if value else []


#: columns with a different representation in a line than in the table
_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "intervals": json.loads,
    "events": _event_list,
    **{column.name: _instant_text for column in _TABLE.columns if column.dtype == "instant"},
    **{column.name: date.isoformat for column in _TABLE.columns if column.dtype == "date"},
}


def _compact(value: object) -> str:
    return _ENCODER.encode(value)


# ---- checks of a row


def check_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Order the columns of a row of `predictions`; raise ValueError if any value has a wrong type.

    The contract checks bounds and closed lists, for many rows at once.
    """
    checked = _convert_values(row)
    return checked | {"intervals": format_intervals(_load_json(checked["intervals"]))}


def _convert_values(row: Mapping[str, Any]) -> dict[str, Any]:
    _require_names(row, _NAMES)
    checked: dict[str, Any] = {
        name: _null(name, is_nullable) if (value := row[name]) is None else check(name, value)
        for name, is_nullable, check in _COLUMN_CHECKS
    }
    if checked["predicted_on"] != checked["predicted_at"].date():
        raise MalformedError("predicted_on is not the day of predicted_at")
    if checked["events"] and not all(map(_EVENT.fullmatch, checked["events"].split(","))):
        raise MalformedError("events contains an unknown name")
    return checked


def _require_names(members: Mapping[str, Any], names: tuple[str, ...]) -> None:
    if missing := [name for name in names if name not in members]:
        raise MalformedError(f"{missing[0]} is missing")
    if len(members) > len(names):
        raise MalformedError("it has unknown members")


def _null(name: str, is_nullable: bool) -> Any:
    if not is_nullable:
        raise MalformedError(f"{name} is NULL")
    return None


def _text(name: str, value: object) -> str:
    if isinstance(value, str) and "\x00" in value:
        raise MalformedError(f"{name} is not text")
    return text(value, name)


def _int(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _MAX_INT64:
        raise MalformedError(f"{name} is not an integer of 64 bits")
    return value


def _real(name: str, value: object) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise MalformedError(f"{name} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise MalformedError(f"{name} is not a finite number")
    return number


def _bool(name: str, value: object) -> bool:
    return flag(value, name)


def _instant(name: str, value: object) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise MalformedError(f"{name} is not an instant in UTC")
    return value.astimezone(UTC)


def _date(name: str, value: object) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise MalformedError(f"{name} is not a date")
    return value


_CHECKS: dict[Dtype, Callable[[str, Any], Any]] = {
    "text": _text,
    "int": _int,
    "real": _real,
    "bool": _bool,
    "instant": _instant,
    "date": _date,
}
_COLUMN_CHECKS = tuple((column.name, column.nullable, _CHECKS[column.dtype]) for column in _TABLE.columns)


def _intervals(value: object) -> list[dict[str, float | int]]:
    if not isinstance(value, list) or not all(isinstance(interval, dict) for interval in value):
        raise MalformedError("intervals is not a list of objects")
    for interval in value:
        _require_names(interval, _INTERVAL)
    return [
        {name: (_int if name == "evaluation_count" else _real)(name, interval[name]) for name in _INTERVAL}
        for interval in value
    ]


# ---- reading


def parse_line(line: str) -> dict[str, Any]:
    """Parse a line to a row of `predictions`; raise ValueError with the reason if it is invalid."""
    document = _load_json(line)
    if not isinstance(document, dict) or "format" not in document:
        raise MalformedError("it is not an object with a format")
    if document["format"] != FORMAT:
        raise MalformedError(f"its format is not {FORMAT}")
    _require_names(document, ("format", *_NAMES))
    return _convert_values({column.name: _convert_value(column, document[column.name]) for column in _TABLE.columns})


def _load_json(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise MalformedError("it is not valid JSON: it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise MalformedError(f"it is not valid JSON: {error}") from error


def _no_number(text: str) -> None:
    raise MalformedError(f"{text} is not a number in JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _convert_value(column: Column, value: Any) -> Any:
    """Convert a value in a line to its representation in the table."""
    if column.name == "intervals":
        return format_intervals(value)
    if column.name == "events":
        if not isinstance(value, list) or not all(isinstance(event, str) and event for event in value):
            raise MalformedError("events is not a list of texts")
        return ",".join(value)
    if column.dtype in ("instant", "date") and value is not None:
        return _time(column, value)
    return value


def _time(column: Column, value: object) -> datetime | date:
    form, read = (_INSTANT, datetime.fromisoformat) if column.dtype == "instant" else (_DATE, date.fromisoformat)
    if not isinstance(value, str) or not form.fullmatch(value):
        raise MalformedError(f"{column.name} is not in ISO 8601{' and UTC' if column.dtype == 'instant' else ''}")
    try:
        return read(value)
    except ValueError as error:
        raise MalformedError(f"{column.name} is not a time: {error}") from error


def read_batches(path: Path) -> Iterator[Batch]:
    """Yield the lines of a plain or compressed file as `prediction_records`, and invalid ones as `rejects`.

    Raises InputRefused if the file is damaged, or a line exceeds the length of any prediction.
    """
    rows: list[dict[str, Any]] = []
    raw: dict[int, str] = {}
    refused: list[tuple[int | None, str, str, str | None]] = []
    for number, content in _lines(path):
        text = content.decode("utf-8", "backslashreplace").strip(" \t\r\n")
        try:
            if text:
                rows.append(parse_line(text) | {"source_file": "", "line": number})
                raw[number] = text
        except ValueError as error:
            is_cut = not content.endswith(b"\n")
            reason = f"The {'line is truncated' if is_cut else 'line is not a prediction'}: {error}."
            refused.append((number, reason, _CUT if is_cut else _REMEDY, text))
        if len(rows) + len(refused) >= _BATCH_LINES:
            yield from _batches(rows, raw, refused)
            rows, raw, refused = [], {}, []
    yield from _batches(rows, raw, refused)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    from iosig.warehouse.sources.files.limits import current_limits
    from iosig.warehouse.sources.files.opening import open_decompressed, refusing_damage_after

    number, longest = 0, current_limits().max_line_bytes
    with refusing_damage_after(lambda: number), open_decompressed(path) as file:
        while line := file.readline(longest + 1):
            number += 1
            if len(line) > longest:
                raise InputRefused(f"Line {number} is longer than limits.max_line_bytes, {longest:,}.", _REMEDY)
            yield number, line


def _batches(
    rows: list[dict[str, Any]], raw: Mapping[int, str], refused: list[tuple[int | None, str, str, str | None]]
) -> Iterator[Batch]:
    """Yield rows that meet the contract, and all others as refused lines."""
    import polars as pl

    from iosig.warehouse.contracts import frames
    from iosig.warehouse.sources.rows.rejects import ParsedRows, build_refused_rows, build_reject_frame

    good, bad = frames.split(pl.DataFrame(rows, schema=frames.schema(_LANDED), orient="row"), _LANDED)
    bad = bad.with_columns(raw=pl.Series([raw[line] for line in bad["line"]], dtype=pl.String))
    broken = build_refused_rows(bad, pl.format("The line is not a prediction: it breaks the rule {}.", "rule"), _REMEDY)
    yield from ParsedRows(good, pl.concat([broken, build_reject_frame(refused)])).batches(_LANDED)
