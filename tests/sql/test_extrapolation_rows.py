"""Test stage.extrapolations: the latest record of each set of traces and rank count."""

from __future__ import annotations

from iosig.warehouse.contracts.extrapolations import EXTRAPOLATIONS
from tests.sql.given import Select, expect, rows, shuffled

RECORDS = """
    part_order  trace_set_id  process_count  outcome         written_bytes  source_file
    0           b             1000           extrapolated    50             b-1000
    0           a             28             no_exact_model  .              a-28
    1           a             1000           no_exact_model  .              early
    2           a             1000           extrapolated    70             late
    3           b             1000           no_exact_model  .              refused
    """


def test_last_landed_record_of_set_and_rank_count_wins(select: Select) -> None:
    for given in shuffled(rows("landed.extrapolation_records", RECORDS)):
        found = select(EXTRAPOLATIONS, {"landed.extrapolation_records": given})
        expect(
            found,
            """
            trace_set_id  process_count  outcome         written_bytes  source_file
            a             28             no_exact_model  .              a-28
            a             1000           extrapolated    70             late
            b             1000           no_exact_model  .              refused
            """,
        )


def test_later_row_of_same_file_wins(select: Select) -> None:
    records = """
        part_row  trace_set_id  process_count  outcome
        0         a             8              extrapolated
        1         a             8              no_exact_model
        """
    found = select(EXTRAPOLATIONS, {"landed.extrapolation_records": records})
    expect(found, "outcome \n no_exact_model")


def test_empty_input_yields_no_rows(select: Select) -> None:
    assert select(EXTRAPOLATIONS, {}).is_empty()
