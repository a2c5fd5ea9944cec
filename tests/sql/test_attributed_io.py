"""Test transforms.attributed_io: attributed bytes of a minute do not exceed the unexplained bytes of its polls."""

from __future__ import annotations

from datetime import date

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO, POLLED_MINUTES
from iosig.warehouse.store import models
from tests.budget import examples
from tests.sql.given import DAY, PARAMETERS, Select, at, expect, filled, rows, shuffled

PLACED, MINUTES = "transforms.placed_io", "transforms.polled_minutes"
TOMORROW = DAY.replace(day=10)


def test_bytes_of_poll_are_spread_over_its_interval(select: Select) -> None:
    ticks = """
        polled_at interval_s read_bytes written_bytes
        10:00:30  60         60         .
        10:00:50  20         0          7
        10:03:30  180        180        0
        """
    expected = """
        direction minute_at measured_bytes
        read      10:00:00  30
        read      10:01:00  60
        read      10:02:00  60
        read      10:03:00  60
        read      10:04:00  30
        write     10:01:00  7
        write     10:02:00  0
        write     10:03:00  0
        write     10:04:00  0
        """
    expect(select(POLLED_MINUTES, {"stage.filesystem_rates": ticks}), expected)


def test_poll_after_long_gap_covers_at_most_24_hours(select: Select) -> None:
    ticks = "polled_at interval_s read_bytes \n 10T10:00:00 864000 1440"
    found = select(POLLED_MINUTES, {"stage.filesystem_rates": ticks})
    assert (found.height, found["minute_at"].min()) == (1440, at("10:01:00"))
    assert found["measured_bytes"].unique().to_list() == [1.0]


def test_attribution_is_limited_by_counters_traces_and_earlier_days(select: Select) -> None:
    given = {
        MINUTES: """
            filesystem direction minute_at measured_bytes
            lake       write     10:01:00  100
            lake       write     10:02:00  100
            lake       write     10:03:00  10
            """,
        PLACED: """
            ended_on job_id filesystem direction minute_at attributed_bytes attributed_low_bytes \
                attributed_high_bytes estimate_source
            9        1      lake       write     10:01:00  40              40        40         counted
            10       2      lake       write     10:01:00  10              10        10         traced
            9        3      lake       write     10:01:00  30              20        60         attributed
            10       4      lake       write     10:01:00  30              20        60         attributed
            10       5      lake       write     10:01:00  10              5         20         attributed
            9        3      lake       write     10:02:00  60              30        90         attributed
            9        1      lake       write     10:03:00  50              50        50         counted
            10       4      lake       write     10:03:00  50              50        50         attributed
            10       4      lake       read      10:03:00  50              50        50         attributed
            """,
    }
    expected = """
        ended_on job_id minute_at attributed_bytes attributed_low_bytes attributed_high_bytes estimate_source
        9        1      10:01:00  40              40        40         counted
        9        1      10:03:00  50              50        50         counted
        10       2      10:01:00  10              10        10         traced
        9        3      10:01:00  30              20        60         attributed
        9        3      10:02:00  60              30        90         attributed
        10       4      10:01:00  15              10        60         attributed
        10       5      10:01:00  5               2.5       20         attributed
        """
    expect(select(ATTRIBUTED_IO, given), expected)


def test_series_of_a_run_are_summed_and_old_rows_get_a_source(select: Select) -> None:
    given = {
        MINUTES: "filesystem direction minute_at measured_bytes \n lake write 10:01:00 100",
        PLACED: """
            job_id filesystem direction minute_at attributed_bytes confidence estimate_source
            1      lake       write     10:01:00  4               1         traced
            1      lake       write     10:01:00  5               1         traced
            2      lake       write     10:01:00  6               1         .
            3      lake       write     10:01:00  7               0.5       .
            """,
    }
    expected = """
        job_id attributed_bytes estimate_source
        1      9               traced
        2      6               counted
        3      7               attributed
        """
    expect(select(ATTRIBUTED_IO, given), expected)


_BYTES = st.floats(0, 1e13, allow_subnormal=False)
_ROW = st.tuples(
    st.sampled_from(["counted", "traced", "attributed", "attributed"]),
    st.sampled_from([9, 10]),
    st.integers(1, 3),
    st.floats(1e-3, 1e13),
)


def limited(minutes: pl.DataFrame, placed: pl.DataFrame, days: list[date]) -> pl.DataFrame:
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        models.expose_frame(connection, "transforms", "polled_minutes", minutes)
        models.expose_frame(connection, "transforms", "placed_io", placed)
        return models.select(connection, ATTRIBUTED_IO, PARAMETERS | {"days": days})


@given(st.lists(_BYTES, min_size=3, max_size=3), st.lists(_ROW, min_size=1, max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_attribution_never_exceeds_polls_and_known_bytes_are_kept(
    measured: list[float], drawn: list[tuple[str, int, int, float]]
) -> None:
    of_minute = [at(f"10:0{minute}:00") for minute in range(1, 4)]
    polled = pl.DataFrame({"minute_at": of_minute, "measured_bytes": measured})
    minutes = filled(MINUTES, polled.with_columns(direction=pl.lit("read")))
    whole = pl.DataFrame(drawn, schema=["estimate_source", "day", "minute", "attributed_bytes"], orient="row")
    made = whole.with_row_index("job_id").select(
        pl.col("job_id").cast(pl.String),
        "estimate_source",
        "attributed_bytes",
        direction=pl.lit("read"),
        confidence=0.5,
        ended_on=pl.date(2018, 2, pl.col("day")),
        minute_at=pl.lit(pl.Series(of_minute)).gather(pl.col("minute") - 1),
        attributed_low_bytes=pl.col("attributed_bytes") / 2,
        attributed_high_bytes=pl.col("attributed_bytes") * 2,
    )
    placed = filled(PLACED, made)
    both = limited(minutes, placed, [DAY, TOMORROW])
    assert (both["attributed_low_bytes"] <= both["attributed_bytes"]).all()
    assert (both["attributed_bytes"] <= both["attributed_high_bytes"]).all()
    known = [frame.filter(pl.col("estimate_source") != "attributed") for frame in (placed, both)]
    assert sorted(known[0]["attributed_bytes"]) == sorted(known[1]["attributed_bytes"])
    for minute, polled in zip(of_minute, measured, strict=True):
        own = both.filter(pl.col("minute_at") == minute)
        explained = own.filter(pl.col("estimate_source") != "attributed")["attributed_bytes"].sum()
        attributed = own.filter(pl.col("estimate_source") == "attributed")["attributed_bytes"].sum()
        assert attributed <= max(0.0, polled - explained) * (1 + 1e-6) + 1
    # consecutive nights give equal results, whether the first night is limited again or not
    first = limited(minutes, placed.filter(pl.col("ended_on") == DAY), [DAY])
    second = pl.concat([first, placed.filter(pl.col("ended_on") == TOMORROW)])
    again = limited(minutes, second, [DAY, TOMORROW])
    joined = both.join(again, on=["job_id", "minute_at"], how="full", suffix="_again", coalesce=True)
    values = joined.select(pl.col("attributed_bytes", "attributed_bytes_again").fill_null(0.0))
    for once, twice in values.iter_rows():
        assert twice == pytest.approx(once, rel=1e-6, abs=1.0)


def test_order_of_rows_has_no_effect(select: Select) -> None:
    minutes = rows(MINUTES, "filesystem direction minute_at measured_bytes \n lake write 10:01:00 50")
    text = "\n".join(f"{9 + job % 2} {job} lake write 10:01:00 {0.1 * job} 1 9 0.5 attributed" for job in range(1, 40))
    head = (
        "ended_on job_id filesystem direction minute_at attributed_bytes attributed_low_bytes attributed_high_bytes "
        "confidence estimate_source"
    )
    placed = rows(PLACED, f"{head} \n {text}")
    first, *others = (select(ATTRIBUTED_IO, {MINUTES: minutes, PLACED: each}) for each in shuffled(placed))
    assert all(each.equals(first) for each in others)
