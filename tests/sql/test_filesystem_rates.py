"""Test stage.filesystem_rates: the polls in force, with the expected number of controllers."""

from __future__ import annotations

from iosig.warehouse.contracts.polls import TICKS
from tests.sql.given import Select, expect


def test_instants_without_values_are_dropped(select: Select) -> None:
    poll_ticks = """
        filesystem  polled_at  interval_s  controller_count  read_bytes  written_bytes  read_count
        b           10:00:00   2           1                 5           .              .
        a           10:00:02   2           1                 3           4              9
        a           10:00:02   5           2                 7           8              .
        a           10:00:00   2           0                 .           .              .
        """
    polls_daily = """
        filesystem  controller_count
        a           3
        b           1
        """
    expected = """
        filesystem polled_at interval_s controller_count expected_controller_count read_bytes written_bytes read_count
        a          10:00:02  2          1                3                         3          4             9
        a          10:00:02  5          2                3                         7          8             .
        b          10:00:00  2          1                1                         5          .             .
        """
    expect(select(TICKS, {"stage.poll_ticks": poll_ticks, "stage.polls_daily": polls_daily}), expected)
