from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.rows import times
from tests.budget import examples
from tests.naive.sources.rows.times import to_utc

ZONES = ["America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"]
#: days on which the clock of a zone changes
CHANGES = ["2018-03-11", "2018-11-04", "2017-03-26", "2017-10-29", "2019-04-07", "2019-10-06", "2024-02-29"]


def parse_one(text: str | None, zone: str = "UTC") -> tuple[datetime | None, str | None, str | None]:
    return times.parse(pl.Series([text], dtype=pl.String), zone, "start").row(0)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2018-02-09T11:14:37", "UTC", datetime(2018, 2, 9, 11, 14, 37)),
        (" 2018-02-09 11:14:37 ", "UTC", datetime(2018, 2, 9, 11, 14, 37)),
        ("2018-02-09T11:14:37", "America/Los_Angeles", datetime(2018, 2, 9, 19, 14, 37)),
        ("2018-07-09T11:14:37", "America/Los_Angeles", datetime(2018, 7, 9, 18, 14, 37)),
        ("2018-02-09T11:14:37Z", "America/Los_Angeles", datetime(2018, 2, 9, 11, 14, 37)),
        ("2018-02-09T11:14:37+05:30", "America/Los_Angeles", datetime(2018, 2, 9, 5, 44, 37)),
        ("2018-02-09T11:14:37-0800", "UTC", datetime(2018, 2, 9, 19, 14, 37)),
        ("2018-02-09T11:14:37.25", "UTC", datetime(2018, 2, 9, 11, 14, 37, 250_000)),
        ("2018-02-09T11:14:37,123456789Z", "UTC", datetime(2018, 2, 9, 11, 14, 37, 123_456)),
        ("1518174877", "America/Los_Angeles", datetime(2018, 2, 9, 11, 14, 37)),
        ("1518174877.5", "UTC", datetime(2018, 2, 9, 11, 14, 37, 500_000)),
        # An offset resolves even a local time that occurs twice.
        ("2018-11-04T01:30:00-07:00", "America/Los_Angeles", datetime(2018, 11, 4, 8, 30)),
    ],
)
def test_times_are_converted_to_utc(text: str, zone: str, expected: datetime) -> None:
    assert parse_one(text, zone) == (expected.replace(tzinfo=UTC), None, None)


@pytest.mark.parametrize("text", [None, "", "  ", "Unknown", "unknown", "None", "N/A"])
def test_placeholders_for_no_time_are_null(text: str | None) -> None:
    assert parse_one(text) == (None, None, None)


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "20180209",
        "1518174877000",
        "-1518174877",
        "2018-02-30T00:00:00",
        "2018-02-09T24:00:00",
        "2018-02-09T11:14:60",
        "2018-02-09T11:14",
        "2018-02-09",
        "2018-02-09T11:14:37+25:00",
        "2018-02-09T11:14:37 PST",
        "٢٠١٨-02-09T11:14:37",
        "0000-00-00T00:00:00",
    ],
)
def test_invalid_time_is_refused_with_reason_and_remedy(text: str) -> None:
    instant, reason, remedy = parse_one(text)
    assert instant is None
    assert reason == f"The start time {text} is not a time."
    assert remedy is not None
    assert "epoch" in remedy


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59", "9999-12-31T23:59:59-23:00", "2262-01-01T00:00:00"])
def test_instants_outside_supported_range_are_refused(text: str) -> None:
    instant, reason, _ = parse_one(text)
    assert instant is None
    assert reason is not None
    assert "outside 1970 to 2261" in reason


def test_nonexistent_and_ambiguous_local_times_have_distinct_reasons() -> None:
    skipped = parse_one("2018-03-11T02:30:00", "America/Los_Angeles")
    repeated = parse_one("2018-11-04T01:30:00", "America/Los_Angeles")
    assert skipped[0] is None
    assert repeated[0] is None
    assert skipped[1] == "The start time 2018-03-11T02:30:00 does not exist in America/Los_Angeles: the clock skips it."
    assert repeated[1] == "The start time 2018-11-04T01:30:00 occurs twice in America/Los_Angeles: the clock goes back."
    assert skipped[2] == repeated[2] == "Export the log in UTC or as epoch seconds (for sacct: SLURM_TIME_FORMAT=%s)."


def test_long_text_is_truncated_in_reason() -> None:
    assert len(parse_one("x" * 10_000)[1] or "") < 200


@pytest.mark.parametrize("dtype", [pl.String, pl.Null])
def test_columns_without_times_are_parsed(dtype: type[pl.DataType]) -> None:
    assert times.parse(pl.Series([], dtype=dtype), "UTC", "end").shape == (0, 3)
    assert times.parse(pl.Series([None, None], dtype=dtype), "UTC", "end")["instant"].null_count() == 2


@settings(max_examples=examples(50), deadline=None)
@given(
    st.sampled_from(ZONES),
    st.lists(
        st.one_of(
            st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1)).map(lambda t: t.replace(fold=0)),
            st.builds(
                lambda day, seconds: datetime.fromisoformat(day) + timedelta(seconds=seconds),
                st.sampled_from(CHANGES),
                st.integers(0, 5 * 3600),
            ),
        ),
        min_size=1,
        max_size=40,
    ),
)
def test_local_times_agree_with_zoneinfo(zone: str, locals_: list[datetime]) -> None:
    parsed = times.parse(pl.Series([local.isoformat() for local in locals_]), zone, "end")
    for local, (instant, reason, _) in zip(locals_, parsed.iter_rows(), strict=True):
        expected = to_utc(local, zone)
        if expected == "twice":
            assert "occurs twice" in reason
        elif expected == "never":
            assert "does not exist" in reason
        else:
            assert (instant, reason) == (expected, None)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=20), st.sampled_from(ZONES))
def test_arbitrary_text_is_an_instant_null_or_a_fault(texts: list[str], zone: str) -> None:
    parsed = times.parse(pl.Series(texts), zone, "end")
    assert parsed.height == len(texts)
    assert parsed.filter(pl.col("instant").is_not_null() & pl.col("reason").is_not_null()).is_empty()
    assert (parsed["reason"].is_null() == parsed["remedy"].is_null()).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00:05:35", timedelta(minutes=5, seconds=35)),
        ("7-20:39:39", timedelta(days=7, hours=20, minutes=39, seconds=39)),
        ("125-00:00:00", timedelta(days=125)),
        ("00:00:01.250", timedelta(seconds=1, milliseconds=250)),
        ("100:00:00", timedelta(hours=100)),
        ("90", timedelta(seconds=90)),
        ("", None),
        ("INVALID", None),
        (None, None),
    ],
)
def test_durations_in_slurm_format_are_parsed(text: str | None, expected: timedelta | None) -> None:
    assert times.parse_durations(pl.Series([text], dtype=pl.String)).row(0) == (expected, False)


@pytest.mark.parametrize("text", ["1:2", "00:60:00", "-1", "1-00", "99999999-00:00:00", "soon"])
def test_invalid_duration_is_a_fault(text: str) -> None:
    assert times.parse_durations(pl.Series([text])).row(0) == (None, True)


def test_only_local_times_require_a_time_zone() -> None:
    with pytest.raises(InputRefused, match="The start time 2026-03-02 10:00:00 has no time zone"):
        times.parse(pl.Series(["1772445600", "2026-03-02 10:00:00"]), None, "start")
    absolute = pl.Series(["1772445600", "2026-03-02T10:00:00Z", "2026-03-02T11:00:00+01:00", "Unknown", "soon"])
    assert times.parse(absolute, None, "start").equals(times.parse(absolute, "Asia/Tokyo", "start"))


def test_only_time_zones_of_local_times_are_recorded() -> None:
    with times.record_zones() as zones:
        times.parse(pl.Series(["1772445600", "2026-03-02T10:00:00Z", "Unknown"]), "Asia/Tokyo", "start")
        assert zones == set()
        times.parse(pl.Series(["2026-03-02T10:00:00"]), "Asia/Tokyo", "start")
    assert zones == {"Asia/Tokyo"}
    times.parse(pl.Series(["2026-03-02T10:00:00"]), "Europe/Berlin", "start")
    assert zones == {"Asia/Tokyo"}


def test_unknown_time_zone_raises_usage_error() -> None:
    assert times.require_zone(None) is None
    assert times.require_zone("Europe/Berlin") == "Europe/Berlin"
    with pytest.raises(UsageError, match="Mars/Olympus"):
        times.require_zone("Mars/Olympus")
