"""Test quality.quarantine: rows quarantined in this run, and rows of the base release for days not rebuilt."""

from __future__ import annotations

from iosig.warehouse.contracts.quality import QUARANTINE
from tests.sql.given import Select, expect

JOBS, POLLS, PREDICTIONS = "quality.faulty_jobs", "stage.faulty_polls", "stage.faulty_predictions"
RELEASED, REBUILT = "released.quarantine", "run.rebuilt_days"


def test_rows_of_all_tables_are_combined(select: Select) -> None:
    header = "day table_name rule row_json"
    given = {
        JOBS: f"{header} \n 2 jobs ends_after_start a \n . jobs ends_after_start b",
        POLLS: f"{header} \n 2 polls polls_agree c",
        PREDICTIONS: f"{header} \n 3 prediction_records same d",
    }
    expected = """
        day  table_name          rule              row_json
        2    jobs                ends_after_start  a
        .    jobs                ends_after_start  b
        2    polls               polls_agree       c
        3    prediction_records  same              d
        """
    expect(select(QUARANTINE, given), expected)


def test_rebuilt_day_drops_released_rows_of_its_table_only(select: Select) -> None:
    released = """
        day  table_name  row_json
        2    jobs        dropped
        2    polls       kept
        3    jobs        kept
        .    jobs        dropped
    """
    rebuilt = "table_name day \n jobs 2 \n jobs . \n polls 3"
    expect(
        select(QUARANTINE, {RELEASED: released, REBUILT: rebuilt}),
        "day table_name row_json \n 3 jobs kept \n 2 polls kept",
    )
