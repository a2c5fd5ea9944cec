"""transforms.explained_days: what was polled, and what of it is explained."""

from __future__ import annotations

from tests.sql.given import DAY, DAYS, Select, expect, rows, shuffled
from warehouse.contracts.attribution import EXPLAINED_DAYS

TICKS = "stage.ticks"
EXPLAINED = "transforms.attributed_io"


def test_each_minute_is_held_against_its_polls(select: Select) -> None:
    given = {
        TICKS: """
            filesystem polled_at interval_s read_bytes written_bytes
            lake       10:00:30  30         10         100
            lake       10:01:00  30         20         200
            lake       10:01:30  30         .          500
            pond       10:01:00  30         7          0
            """,
        EXPLAINED: """
            job_id filesystem direction minute_at explained_bytes certainty
            1      lake       write     10:01:00  200             0.5
            2      lake       write     10:01:00  150             1
            1      lake       write     10:02:00  400             0.5
            1      lake       read      10:02:00  9               0.5
            1      sea        read      10:01:00  9               0.5
            """,
    }
    expect(
        select(EXPLAINED_DAYS, given, days=[DAY]),
        """
        polled_on filesystem direction measured_bytes explained_bytes unexplained_bytes over_explained_bytes certainty
        9         lake       read      30             0               30                0                    .
        9         lake       write     800            750             100               50                   0.6
        9         pond       read      7              0               7                 0                    .
        9         pond       write     0              0               0                 0                    .
        """,
    )


def test_a_minute_is_of_the_day_of_its_right_edge(select: Select) -> None:
    given = {
        TICKS: """
            polled_at   interval_s read_bytes written_bytes
            23:59:00    60         1          1
            23:59:30    30         2          2
            10T00:00:00 30         4          4
            10T23:59:00 60         8          8
            """,
        EXPLAINED: """
            filesystem direction minute_at   explained_bytes
            filesystem read      23:59:00    1
            filesystem read      10T00:00:00 5
            filesystem read      10T23:59:00 8
            """,
    }
    tomorrow = DAYS[DAY.day]
    expect(
        select(EXPLAINED_DAYS, given, days=[tomorrow]),
        """
        polled_on direction measured_bytes explained_bytes unexplained_bytes
        10        read      14             13              1
        10        write     14             0               14
        """,
    )
    assert select(EXPLAINED_DAYS, given, days=DAYS).height == 4


def test_the_order_of_rows_is_nothing_to_it(select: Select) -> None:
    ticks = rows(TICKS, "polled_at interval_s written_bytes \n 10:00:30 30 100 \n 10:01:00 30 200 \n 10:02:00 60 11")
    text = "\n".join(f"{job} write 10:0{1 + job % 2}:00 {0.1 * job} {1 / job}" for job in range(1, 30))
    explained = rows(EXPLAINED, f"job_id direction minute_at explained_bytes certainty \n {text}")
    first, *others = (
        select(EXPLAINED_DAYS, {TICKS: ticks, EXPLAINED: each}, days=[DAY]) for each in shuffled(explained)
    )
    assert all(each.equals(first) for each in others)
