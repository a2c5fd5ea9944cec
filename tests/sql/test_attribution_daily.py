"""Test transforms.attribution_daily: polled and attributed bytes by day."""

from __future__ import annotations

from datetime import date

import polars as pl

from iosig.warehouse.contracts.attribution import ATTRIBUTION_DAILY, POLLED_MINUTES
from tests.sql.given import DAY, DAYS, Select, expect, rows, shuffled

TICKS, MINUTES = "stage.filesystem_rates", "transforms.polled_minutes"
EXPLAINED = "transforms.attributed_io"


def attribution_daily(
    select: Select, ticks: str | pl.DataFrame, explained: str | pl.DataFrame, days: list[date]
) -> pl.DataFrame:
    """Run both models, from polls to days."""
    minutes = select(POLLED_MINUTES, {TICKS: ticks})
    return select(ATTRIBUTION_DAILY, {MINUTES: minutes, EXPLAINED: explained}, days=days)


def test_each_minute_is_compared_with_its_polls(select: Select) -> None:
    given = {
        TICKS: """
            filesystem polled_at interval_s read_bytes written_bytes
            lake       10:00:30  30         10         100
            lake       10:01:00  30         20         200
            lake       10:01:30  30         .          500
            pond       10:01:00  30         7          0
            """,
        EXPLAINED: """
            job_id filesystem direction minute_at attributed_bytes confidence estimate_source
            1      lake       write     10:01:00  200             0.5       attributed
            2      lake       write     10:01:00  150             1         counted
            3      lake       write     10:02:00  501             1         traced
            1      lake       write     10:02:00  2               0.5       attributed
            1      lake       read      10:02:00  9               0.5       attributed
            1      sea        read      10:01:00  9               0.5       attributed
            """,
    }
    expected = """
        polled_on filesystem direction measured_bytes attributed_bytes unattributed_bytes excess_own_bytes \
            excess_attributed_bytes
        9         lake       read      30             0               30                0                    0
        9         lake       write     800            853             0                 1                    52
        9         pond       read      7              0               7                 0                    0
        9         pond       write     0              0               0                 0                    0
        """
    expect(attribution_daily(select, given[TICKS], given[EXPLAINED], [DAY]), expected)


def test_minute_belongs_to_day_of_its_right_edge(select: Select) -> None:
    given = {
        TICKS: """
            polled_at   interval_s read_bytes written_bytes
            23:59:00    60         1          1
            23:59:30    30         2          2
            10T00:00:00 30         4          4
            10T23:59:00 60         8          8
            """,
        EXPLAINED: """
            filesystem direction minute_at   attributed_bytes
            filesystem read      23:59:00    1
            filesystem read      10T00:00:00 5
            filesystem read      10T23:59:00 8
            """,
    }
    tomorrow = DAYS[DAY.day]
    expected = """
        polled_on direction measured_bytes attributed_bytes unattributed_bytes
        10        read      14             13              1
        10        write     14             0               14
        """
    expect(attribution_daily(select, given[TICKS], given[EXPLAINED], [tomorrow]), expected)
    assert attribution_daily(select, given[TICKS], given[EXPLAINED], DAYS).height == 4


def test_order_of_rows_has_no_effect(select: Select) -> None:
    ticks = rows(TICKS, "polled_at interval_s written_bytes \n 10:00:30 30 100 \n 10:01:00 30 200 \n 10:02:00 60 11")
    text = "\n".join(f"{job} write 10:0{1 + job % 2}:00 {0.1 * job} {1 / job}" for job in range(1, 30))
    explained = rows(EXPLAINED, f"job_id direction minute_at attributed_bytes confidence \n {text}")
    first, *others = (attribution_daily(select, ticks, each, [DAY]) for each in shuffled(explained))
    assert all(each.equals(first) for each in others)
