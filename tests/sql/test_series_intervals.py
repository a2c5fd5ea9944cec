"""Test stage.series_intervals: a single value per subject, direction and time."""

from __future__ import annotations

from iosig.warehouse.contracts.series import SERIES_INTERVALS
from tests.sql.given import DAY, Select, expect, rows, shuffled

SERIES = "landed.series"
EPOCH = 1518134400  # 2018-02-09T00:00:00Z


def test_all_rows_of_a_subject_are_in_the_day_of_its_end(select: Select) -> None:
    found = select(
        SERIES_INTERVALS,
        {
            SERIES: f"""
            subject_id  direction  time_s         interval_s  bytes_per_s
            a           write      {EPOCH + 0.5}  30          3
            a           read       {EPOCH - 60}   60          1
            a           read       {EPOCH - 120}  60          2
            """
        },
    )
    expect(
        found,
        f"""
        ended_on  subject_id  direction  time_s         bytes_per_s
        9         a           read       {EPOCH - 120}  2
        9         a           read       {EPOCH - 60}   1
        9         a           write      {EPOCH + 0.5}  3
        """,
    )


def test_last_landed_value_wins_in_any_order_of_rows(select: Select) -> None:
    series = rows(
        SERIES,
        """
        part_order  part_row  subject_id  direction  time_s  bytes_per_s  flag     node_count
        0           0         a           read       60      1            .        2
        0           1         a           read       120     2            .        2
        1           0         a           read       60      .            missing  4
        1           1         a           read       180     4            .        4
        1           2         a           read       180     5            .        4
        """,
    )
    for disordered in shuffled(series):
        expect(
            select(SERIES_INTERVALS, {SERIES: disordered}),
            """
            ended_on  time_s  bytes_per_s  flag     node_count
            .         60      .            missing  4
            .         120     2            .        2
            .         180     5            .        4
            """,
        )


def test_series_with_relative_times_is_undated_and_optional(select: Select) -> None:
    series = f"subject_id time_s \n own 3600 \n dated {EPOCH + 3600} \n later {EPOCH + 90000}"
    both = select(SERIES_INTERVALS, {SERIES: series}, days=[DAY], has_undated=True)
    assert both["subject_id"].to_list() == ["dated", "own"]
    dated = select(SERIES_INTERVALS, {SERIES: series}, days=[DAY], has_undated=False)
    assert dated["subject_id"].to_list() == ["dated"]


def test_times_too_small_for_a_date_leave_the_series_undated(select: Select) -> None:
    times = "subject_id time_s \n before_its_zero -5 \n early 999999999"
    found = select(SERIES_INTERVALS, {SERIES: times})
    expect(found, times)
    assert found["ended_on"].null_count() == 2


def test_empty_input_yields_no_intervals(select: Select) -> None:
    assert select(SERIES_INTERVALS, {}).is_empty()
