"""Test lines of predictions: rows round-trip, and invalid lines are refused with line and reason."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.predictions.automaton import CAUSES
from iosig.transforms.predictions.intervals import OUTCOMES
from iosig.warehouse.contracts import Column, frames
from iosig.warehouse.contracts.periods import PERIODS
from iosig.warehouse.contracts.predictions import PREDICTION_RECORDS, PREDICTIONS
from iosig.warehouse.sources.predictions import lines as prediction_lines
from iosig.warehouse.sources.predictions.lines import check_row, format_intervals, format_line, parse_line, read_batches
from tests.budget import examples
from tests.prediction_rows import NO_PERIOD, job_prediction, prediction

TABLE = PREDICTIONS


def test_contract_has_all_categories() -> None:
    assert TABLE.column("transition_cause").choices == CAUSES
    assert TABLE.column("next_burst_outcome").choices == OUTCOMES
    known = {*PERIODS.column("outcome").choices, "tentative"}
    assert set(TABLE.column("outcome").choices) == known - {
        "interval_only",
        "unknown_sizes",
        "no_signature",
        "unreliable_signature",
    }
    assert TABLE.column("method").choices == (*PERIODS.column("method").choices, "phases")


# ---- round trip

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
REALS = st.floats(allow_nan=False, allow_infinity=False)
INTERVAL = st.fixed_dictionaries(
    {
        "shortest_period_s": REALS,
        "typical_period_s": REALS,
        "longest_period_s": REALS,
        "probability": REALS,
        "evaluation_count": st.integers(0, 2**40),
    }
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "int": st.integers(-(2**63) + 1, 2**63 - 1),
    "real": REALS,
    "bool": st.booleans(),
    "instant": st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
    "date": st.just(date(1, 1, 1)),
}


def value_of(column: Column) -> st.SearchStrategy[Any]:
    if column.name == "intervals":
        return st.lists(INTERVAL, max_size=3).map(format_intervals)
    if column.name == "events":
        return st.lists(st.sampled_from(["gap", "clock_back", "end"]), max_size=3).map(",".join)
    found = VALUES[column.dtype]
    return st.none() | found if column.nullable else found


ROWS = st.fixed_dictionaries({column.name: value_of(column) for column in TABLE.columns}).map(
    lambda row: row | {"predicted_on": row["predicted_at"].date()}
)


@settings(max_examples=examples(30), deadline=None)
@given(ROWS)
def test_row_round_trips(row: dict[str, Any]) -> None:
    line = format_line(row)
    assert line.isascii()
    assert line.isprintable()
    back = parse_line(line)
    assert back == row
    assert list(back) == list(TABLE.column_names)
    assert [type(value) for value in back.values()] == [type(row[name]) for name in back]
    assert format_line(back) == line


def test_line_has_documented_format() -> None:
    told = json.loads(format_line(prediction(events="rotated,resumed")))
    assert list(told) == ["format", *TABLE.column_names]
    assert told["format"] == "iosig-prediction/1"
    assert told["predicted_at"] == "2026-02-09T12:00:01.000125Z"
    assert told["predicted_on"] == "2026-02-09"
    assert told["intervals"][0]["typical_period_s"] == 8.75
    assert told["events"] == ["rotated", "resumed"]
    assert told["cluster"] is None
    assert json.loads(format_line(prediction(**NO_PERIOD)))["intervals"] == []


def test_instants_are_converted_to_utc() -> None:
    local = datetime(2026, 2, 9, 1, tzinfo=timezone(timedelta(hours=2)))
    row = prediction() | {"predicted_at": local, "predicted_on": date(2026, 2, 8)}
    assert parse_line(format_line(row))["predicted_at"] == datetime(2026, 2, 8, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    "change",
    [
        {"volume_bytes": math.inf},
        {"volume_bytes": 10**400},
        {"volume_bytes": "5"},
        {"request_count": 1.0},
        {"is_final": 1},
        {"subject_id": "\ud800"},
        {"subject_id": "a\x00b"},
        {"subject_id": None},
        {"predicted_at": "2026-02-09T12:00:00Z"},
        {"predicted_at": datetime(2026, 2, 9)},
        {"predicted_on": datetime(2026, 2, 9, tzinfo=UTC)},
        {"predicted_on": date(2026, 2, 10)},
        {"intervals": '[{"probability":1}]'},
        {"intervals": "[NaN]"},
        {"intervals": ""},
        {"events": "a b"},
        {"events": "gap,"},
        {"more": 1},
    ],
    ids=str,
)
def test_invalid_row_is_not_formatted(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        format_line(prediction() | change)


def test_integers_are_converted_to_floats_in_float_columns() -> None:
    checked = check_row(prediction(volume_bytes=5))
    assert isinstance(checked["volume_bytes"], float)


# ---- reading


def read(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows and the refused lines of a file, validated against their contracts."""
    found: dict[str, list[dict[str, Any]]] = {"prediction_records": [], "rejects": []}
    for batch in read_batches(path):
        found[batch.table.name] += frames.require(batch.rows, batch.table).to_dicts()
    return found["prediction_records"], found["rejects"]


def written(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def changed(**changes: Any) -> str:
    return json.dumps(json.loads(format_line(prediction())) | changes)


def test_lines_are_read_as_records(tmp_path: Path) -> None:
    rows = [prediction(1), job_prediction(2, cluster="ünïcode"), prediction(3, is_final=True)]
    path = written(tmp_path / "a", format_line(rows[0]), "", format_line(rows[1]), format_line(rows[2]))
    found, refused = read(path)
    assert refused == []
    assert [row["line"] for row in found] == [1, 3, 4]
    assert [{name: row[name] for name in TABLE.column_names} for row in found] == rows


WRONG = {
    "{": "not valid JSON",
    "[" * 100_000: "nested too deeply",
    '"text"': "not an object with a format",
    "[]": "not an object with a format",
    "{}": "not an object with a format",
    changed(format="iosig-prediction/2"): "its format is not iosig-prediction/1",
    changed(more=1): "unknown members",
    json.dumps({"format": "iosig-prediction/1"}): "predicted_on is missing",
    changed(volume_bytes=math.nan): "NaN is not a number in JSON",
    changed().replace("4000000000.0", "1e999"): "volume_bytes is not a finite number",
    changed(volume_bytes="5"): "volume_bytes is not a number",
    changed(volume_bytes=None): "volume_bytes is NULL",
    changed(request_count=2**63): "request_count is not an integer of 64 bits",
    changed(request_count=True): "request_count is not an integer",
    changed().replace('"request_count": 400', f'"request_count": {"9" * 5000}'): "not a prediction",
    changed(is_final="no"): "is_final is neither true nor false",
    changed(subject_id="\ud800"): "subject_id is not valid Unicode",
    changed(subject_id=["a"]): "subject_id is not text",
    changed(predicted_at="2026-02-09T12:00:00"): "predicted_at is not in ISO 8601 and UTC",
    changed(predicted_at="2026-02-09T12:00:00+01:00"): "predicted_at is not in ISO 8601 and UTC",
    changed(predicted_at="2026-02-30T12:00:00Z"): "predicted_at is not a time",
    changed(predicted_at=5): "predicted_at is not in ISO 8601",
    changed(predicted_on="20260209"): "predicted_on is not in ISO 8601",
    changed(predicted_on="2026-02-10"): "predicted_on is not the day of predicted_at",
    changed(predicted_on=None): "predicted_on is NULL",
    changed(intervals="[]"): "intervals is not a list of objects",
    changed(intervals=[{"probability": 1}]): "shortest_period_s is missing",
    changed(intervals=None): "intervals is not a list",
    changed(events="gap"): "events is not a list of texts",
    changed(events=["Gap!"]): "events contains an unknown name",
    changed(outcome="perhaps"): "breaks the rule outcome_known",
    changed(probability=1.5): "breaks the rule probability_at_most_1",
    changed(evaluation=0): "breaks the rule evaluation_at_least_1",
    changed(period_s=-1.0): "breaks the rule period_s_at_least_0",
}


def test_invalid_lines_are_refused_and_others_are_read(tmp_path: Path) -> None:
    lines = [line for wrong in WRONG for line in (wrong, format_line(prediction(1)))]
    found, rejects = read(written(tmp_path / "a", *lines))
    rejects.sort(key=lambda row: int(row["line"]))
    assert [row["line"] for row in found] == list(range(2, len(lines) + 1, 2))
    assert [row["line"] for row in rejects] == list(range(1, len(lines), 2))
    for refused, (line, reason) in zip(rejects, WRONG.items(), strict=True):
        assert reason in refused["reason"]
        assert refused["reason"].endswith(".")
        assert refused["remedy"].endswith(".")
        assert refused["raw"] == line[:2000]


def test_long_file_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_lines, "_BATCH_LINES", 2)
    lines = [format_line(prediction(number)) for number in range(1, 6)]
    path = written(tmp_path / "a", *lines[:2], "{", *lines[2:])
    batches = [batch.rows.height for batch in read_batches(path) if batch.table == PREDICTION_RECORDS]
    assert max(batches) == 2
    found, refused = read(path)
    assert [row["line"] for row in found] == [1, 2, 4, 5, 6]
    assert [row["line"] for row in refused] == [3]
