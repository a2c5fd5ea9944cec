"""The first page: what is known is told with its unit, what is not is not made up, and names are inert."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import polars as pl

from reports.site import night
from reports.site.night import NightFrames
from reports.site.pages import NIGHT
from reports.site.shells import About, shell

EVIL = "</script><img src=x onerror=\"document.title='taken'\">/x'y/8"
_ABOUT = About("r1", "2026-03-04T02:30:00+00:00", "passed", "0.1")
_COUNTS = {
    "day": date(2026, 3, 3), "run_count": 12, "user_count": 3, "application_count": 5, "signature_count": 4,
    "trusted_count": 2, "compared_count": 4, "reject_count": 0,
}  # fmt: skip
_DAYS = {
    "polled_on": [date(2026, 3, 3), date(2026, 3, 2)], "measured_bytes": [4e12, 1e12], "explained_bytes": [1e12, 1e12],
    "poll_ratio": [1.0, 1.0], "filesystem_count": [1, 1],
}  # fmt: skip


def frames() -> NightFrames:
    def nothing(*names: str) -> pl.DataFrame:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))

    return NightFrames(
        days=pl.DataFrame(_DAYS),
        gaps=nothing("filesystem", "polled_on", "missing_ratio"),
        counts=pl.DataFrame([_COUNTS]),
        changed=nothing("application_id"),
        busiest=nothing("filesystem"),
        unpolled=nothing("filesystem", "run_count"),
        failed=nothing("table_name", "happened"),
    )


def page_of(told: NightFrames, verdict: str = "passed") -> str:
    return shell(NIGHT, _ABOUT, night.told(told, verdict, {})).data.decode()


def test_a_quiet_night_says_so() -> None:
    page = page_of(frames())
    assert "2026-03-03: all checks hold." in page
    assert "No signature changed; nothing is missing." in page
    assert '<dd>4 TB</dd><dd class="beside">4 times the median of the days before</dd>' in page
    assert "<dd>25.0%</dd>" in page


def test_what_is_not_known_is_not_made_up() -> None:
    empty = replace(frames(), days=pl.DataFrame(_DAYS).clear())
    page = page_of(empty)
    assert page.count("<dd>not known</dd>") == 3
    assert "No polls are landed" in page


def test_what_is_missing_is_told_first() -> None:
    told = replace(
        frames(),
        gaps=pl.DataFrame({"filesystem": ["lake"], "polled_on": [date(2026, 3, 3)], "missing_ratio": [0.2]}),
        unpolled=pl.DataFrame({"filesystem": ["pond"], "run_count": [3]}),
    )
    page = page_of(told, "warned")
    assert "verdict warned" in page
    assert "some checks do not hold" in page
    assert "20.0% of the polls of lake are missing on 2026-03-03." in page
    assert "3 runs used pond, of which no polls are landed." in page


def test_names_are_inert() -> None:
    evil = {
        "application_id": EVIL, "filesystem": EVIL, "direction": "write", "change_correlation": 0.5,
        "change_of_volume": None, "appeared_burst_count": 1, "vanished_burst_count": 0,
    }  # fmt: skip
    busy = {
        "filesystem": EVIL, "hour_at": datetime(2026, 3, 3, tzinfo=UTC), "measured_bytes": 1.0, "explained_bytes": None,
        "application_count": None, "application_id": EVIL, "direction": "read",
    }  # fmt: skip
    page = page_of(replace(frames(), changed=pl.DataFrame([evil]), busiest=pl.DataFrame([busy])))
    assert "<img" not in page
    assert page.count("<script") == 1
    assert "application.html#%3C" in page
