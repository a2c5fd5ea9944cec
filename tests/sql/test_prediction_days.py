"""Test stage.predictions and faulty_predictions: the first record of an evaluation wins, deviations are listed."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import polars as pl

from iosig.warehouse.contracts.predictions import FAULTY_PREDICTIONS, PREDICTIONS
from tests.sql.given import DAY, NOON, Select, expect, rows, shuffled

RECORDS = "landed.prediction_records"
KEY = "part_order  part_row  landing_id  predicted_on  followed_id  direction  evaluation  period_s"
TWICE = f"""
    {KEY}
    0           0         first       9             a            write      1           8.0
    0           1         first       9             a            write      2           8.5
    0           2         first       9             a            read       1           4.0
    0           3         first       10            a            write      3           9.0
    1           0         second      9             a            write      1           8.0
    1           1         second      9             a            write      2           8.6
    1           2         second      9             b            write      1           .
    2           0         third       9             a            write      2           8.6
    2           1         third       9             a            write      3           9.0
    """


def records(text: str = TWICE) -> pl.DataFrame:
    return rows(RECORDS, text).with_columns(run_number=pl.lit(1, pl.Int64), outcome=pl.lit("periodic"))


def day(number: int) -> dict[str, object]:
    return {"days": [DAY.replace(day=number)]}


def test_first_record_of_an_evaluation_wins(select: Select) -> None:
    for given in shuffled(records()):
        found = select(PREDICTIONS, {RECORDS: given}, **day(9))
        expect(
            found,
            """
            followed_id  direction  evaluation  period_s
            a            read       1           4.0
            a            write      1           8.0
            a            write      2           8.5
            b            write      1           .
            """,
        )


def test_repeated_record_on_another_day_is_dropped(select: Select) -> None:
    assert select(PREDICTIONS, {RECORDS: records()}, **day(10))["evaluation"].to_list() == [3]
    assert 3 not in select(PREDICTIONS, {RECORDS: records()}, **day(9))["evaluation"].to_list()


def test_deviating_records_are_listed_but_not_repetitions(select: Select) -> None:
    for given in shuffled(records()):
        found = select(FAULTY_PREDICTIONS, {RECORDS: given}, **day(9))
        told = [json.loads(row) for row in found["row_json"]]
        named = {(each["landing_id"], each["prediction"]["evaluation"]) for each in told}
        # the day is a part of the row, so the same evaluation on another day differs
        assert named == {("second", 2), ("third", 2), ("third", 3)}
        assert found["rule"].unique().to_list() == ["predictions_agree"]
        assert found["table_name"].unique().to_list() == ["prediction_records"]
        assert found["day"].unique().to_list() == [DAY]
    assert select(FAULTY_PREDICTIONS, {RECORDS: records()}, **day(10)).is_empty()


def test_records_repeated_within_a_landing_are_compared(select: Select) -> None:
    given = records(f"{KEY} \n 0 0 l 9 a write 1 1.0 \n 0 1 l 9 a write 1 2.0 \n 0 2 l 9 a write 1 1.0")
    expect(select(PREDICTIONS, {RECORDS: given}, **day(9)), "period_s \n 1.0")
    (told,) = select(FAULTY_PREDICTIONS, {RECORDS: given}, **day(9))["row_json"]
    assert json.loads(told)["prediction"]["period_s"] == 2.0


def test_difference_in_any_column_is_detected(select: Select) -> None:
    """A column that the model forgets to compare would fail here."""
    names = [name for name in PREDICTIONS.column_names if name not in KEY.split()] + ["period_s"]
    lines = [f"0 {number} l 9 a write {number} 1.0" for number in range(len(names))]
    first = records("\n".join([KEY, *lines]))
    later = [
        first[number].with_columns(_other(first[number], name), part_order=pl.lit(1, pl.Int64))
        for number, name in enumerate(names)
    ]
    found = select(FAULTY_PREDICTIONS, {RECORDS: pl.concat([first, *later])}, **day(9))
    told = {json.loads(row)["prediction"]["evaluation"] for row in found["row_json"]}
    assert [name for number, name in enumerate(names) if number not in told] == []


def _other(line: pl.DataFrame, name: str) -> pl.Series:
    """Return a different value of a column."""
    declared = PREDICTIONS.column(name)
    value = line[name].item()
    others: dict[str, Any] = {
        "text": next(word for word in (*declared.choices, "other") if word != value),
        "int": 77,
        "real": 0.25,
        "bool": not value,
        "instant": NOON + timedelta(seconds=1),
    }
    return pl.Series(name, [others[declared.dtype]], line[name].dtype)


def test_empty_input_yields_no_rows(select: Select) -> None:
    for table in (PREDICTIONS, FAULTY_PREDICTIONS):
        assert select(table, {}).is_empty()
