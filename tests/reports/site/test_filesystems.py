"""File systems as data: rates within 5 %, gaps distinct from zero, and a file per day."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings, strategies as st

from iosig.reports.site import filesystems
from iosig.reports.site.filesystems import (
    CODES_PER_OCTAVE,
    FIRST,
    GAP,
    MIN_BYTES_PER_S,
    NOTHING,
    FilesystemFrames,
    encode_rates,
)
from iosig.reports.site.packing import file_hash
from iosig.reports.wall.storage_calendar import CalendarView, DayRates
from tests.budget import examples
from tests.reports.site.test_packing import unpacked


@given(st.floats(MIN_BYTES_PER_S, 1e13))
@settings(max_examples=examples(50), deadline=None)
def test_coded_rate_is_within_5_percent(rate: float) -> None:
    (code,) = encode_rates(np.array([rate]))
    assert abs(MIN_BYTES_PER_S * 2 ** ((int(code) - FIRST) / CODES_PER_OCTAVE) / rate - 1) < 0.05


def test_unknown_rates_are_distinct_from_zero() -> None:
    assert encode_rates(np.array([np.nan, 0.0, 1.0, 1e30])).tolist() == [GAP, NOTHING, FIRST, 255]


def calendar_of(name: str, day_count: int, rates: dict[tuple[int, int], float]) -> CalendarView:
    """Return two directions: writes as given by day and minute, and reads of a tenth of them."""
    written = np.full((day_count, 1440), np.nan)
    for place, rate in rates.items():
        written[place] = rate
    days = [date(1970, 1, 2) + timedelta(days=number) for number in range(day_count)]
    return CalendarView(name, days, [DayRates("write", written), DayRates("read", written / 10)])


def frames_of(*calendars: CalendarView) -> FilesystemFrames:
    part = [("lake", 3, "ann/ior/8", 0, 5e9), ("lake", 3, None, 287, 1e9)]
    run = ("lake", 3, "c", "7", datetime(1970, 1, 4, tzinfo=UTC), None, "ann", "ior", 8, None, 1.0, None)
    names = "filesystem day cluster job_id started_at ended_at user application node_count application_id"
    return FilesystemFrames(
        calendars,
        pl.DataFrame(part, schema=["filesystem", "day", "application_id", "step", "attributed_bytes"], orient="row"),
        pl.DataFrame([run], schema=[*names.split(), "estimated_bytes", "own_bytes"], orient="row"),
        pl.DataFrame(
            [("lake", 3, "7", 2, 9.0), ("lake", 3, "8", 0, None)],
            schema=["filesystem", "day", "job_id", "slowed_burst_count", "delay_s"],
            orient="row",
        ),
    )


def test_every_day_with_polls_has_a_file_with_its_gaps() -> None:
    lake = calendar_of("lake", 3, {(0, 0): 2e6, (2, 1439): 1e9, (2, 7): 0.0})
    found = {content.path: content for content in filesystems.contents(frames_of(lake, calendar_of("pond", 1, {})))}
    place = f"data/filesystem/{file_hash('lake')}"
    assert sorted(path for path in found if path.startswith(place)) == [
        f"{place}-1970-01-02.js", f"{place}-1970-01-04.js", f"{place}.js",
    ]  # fmt: skip
    whole: Any = unpacked(found[f"{place}.js"])
    assert whole["days"] == ["1970-01-02", "1970-01-03", "1970-01-04"]
    codes = np.frombuffer(base64.b64decode(whole["write"]), np.uint8).reshape(3, 1440)
    assert [np.flatnonzero(row).tolist() for row in codes] == [[0], [], [7, 1439]]
    assert codes[2, 7] == NOTHING
    day: Any = unpacked(found[f"{place}-1970-01-04.js"])
    assert [(part["application_id"], sum(part["bytes"])) for part in day["parts"]] == [("ann/ior/8", 5e9), (None, 1e9)]
    assert day["runs"]["job_id"] == ["7"]
    assert (day["looked_count"], day["slowed"]["job_id"]) == (2, ["7"])
