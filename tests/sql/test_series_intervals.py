"""stage.series_intervals: one value per subject, direction and time."""

from __future__ import annotations

from iosig.warehouse.contracts.series import SERIES_INTERVALS
from tests.sql.given import DAY, Select, expect, rows, shuffled

SERIES = "landed.series"
EPOCH = 1518134400  # 2018-02-09T00:00:00Z


def test_a_subject_belongs_as_a_whole_to_the_day_of_its_end(select: Select) -> None:
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


def test_what_was_landed_last_is_the_latest_word_whatever_the_order_of_rows(select: Select) -> None:
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


def test_a_series_on_its_own_clock_is_undated_and_made_only_if_asked_for(select: Select) -> None:
    series = f"subject_id time_s \n own 3600 \n dated {EPOCH + 3600} \n later {EPOCH + 90000}"
    both = select(SERIES_INTERVALS, {SERIES: series}, days=[DAY], has_undated=True)
    assert both["subject_id"].to_list() == ["dated", "own"]
    dated = select(SERIES_INTERVALS, {SERIES: series}, days=[DAY], has_undated=False)
    assert dated["subject_id"].to_list() == ["dated"]


def test_times_that_are_no_date_leave_the_series_undated(select: Select) -> None:
    times = "subject_id time_s \n before_its_zero -5 \n early 999999999"
    found = select(SERIES_INTERVALS, {SERIES: times})
    expect(found, times)
    assert found["ended_on"].null_count() == 2


def test_without_series_there_are_no_intervals(select: Select) -> None:
    assert select(SERIES_INTERVALS, {}).is_empty()
