"""The first page: known values have units, unknown values are marked, and names are inert."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import polars as pl

from iosig.reports.site import advice, night
from iosig.reports.site.advice import AdviceFrames
from iosig.reports.site.night import NightFrames
from iosig.reports.site.pages import NIGHT
from iosig.reports.site.shells import About, shell

EVIL = "</script><img src=x onerror=\"document.title='taken'\">/x'y/8"
_ABOUT = About("r1", "2026-03-04T02:30:00+00:00", "passed", "0.1")
_COUNTS = {
    "day": date(2026, 3, 3), "run_count": 12, "user_count": 3, "application_count": 5, "signature_count": 4,
    "trusted_count": 2, "compared_count": 4, "reject_count": 0,
}  # fmt: skip
_DAYS = {
    "polled_on": [date(2026, 3, 3), date(2026, 3, 2)], "measured_bytes": [4e12, 1e12], "attributed_bytes": [1e12, 1e12],
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
        slowed=nothing("application_id"),
        slowed_counts=pl.DataFrame({"looked_count": [0], "slowed_count": [0]}),
    )


def page_of(told: NightFrames, verdict: str = "passed") -> str:
    rows = pl.DataFrame(
        [(EVIL, 1, "lake", 60.0, 5e9, 1e9, 0.0, 2e9), (EVIL, 2, "pond", 0.0, 6e9, 6e9, 0.0, 7e9),
         ("b/c/1", 1, "lake", *[0.0] * 5)],
        schema=["application_id", "place", "filesystem", "delay_s", "now_bytes", "then_bytes", "low_then_bytes",
                "high_then_bytes"],
        orient="row",
    )  # fmt: skip
    advised = {
        "advice": advice.make_variables(AdviceFrames(datetime(2026, 3, 4, tzinfo=UTC), rows, "pond: <b>no poll"))
    }
    return shell(NIGHT, _ABOUT, night.make_variables(told, verdict, {}) | advised).data.decode()


def test_quiet_night_has_no_warnings() -> None:
    page = page_of(frames())
    assert "2026-03-03: all checks passed." in page
    assert "No signature changed; no data are missing." in page
    assert '<dd>4 TB</dd><dd class="beside">4 times the median of earlier days</dd>' in page
    assert "<dd>25.0%</dd>" in page


def test_unknown_values_are_marked() -> None:
    empty = replace(frames(), days=pl.DataFrame(_DAYS).clear())
    page = page_of(empty)
    assert page.count("<dd>not known</dd>") == 3
    assert "No polls have landed" in page


def test_incomplete_day_is_not_compared_with_complete_days() -> None:
    page = page_of(replace(frames(), days=pl.DataFrame(_DAYS | {"poll_ratio": [0.04, 1.0]})))
    assert '<dd>4 TB</dd><dd class="beside">incomplete polls</dd>' in page
    assert "96.0% of the last day&#39;s polls are missing." in page


def test_missing_polls_are_listed_first() -> None:
    told = replace(
        frames(),
        gaps=pl.DataFrame({"filesystem": ["lake"], "polled_on": [date(2026, 3, 3)], "missing_ratio": [0.2]}),
        unpolled=pl.DataFrame({"filesystem": ["pond"], "run_count": [3]}),
    )
    page = page_of(told, "warned")
    assert "verdict warned" in page
    assert "some checks failed" in page
    assert "20.0% of the polls of lake are missing on 2026-03-03." in page
    assert "3 runs used pond, but no polls of it have landed." in page


def test_names_are_inert() -> None:
    evil = {
        "application_id": EVIL, "filesystem": EVIL, "direction": "write", "change_correlation": 0.5,
        "relative_volume_change": None, "added_burst_count": 1, "removed_burst_count": 0,
    }  # fmt: skip
    busy = {
        "filesystem": EVIL, "hour_at": datetime(2026, 3, 3, tzinfo=UTC), "measured_bytes": 1.0,
        "attributed_bytes": None,
        "application_count": None, "application_id": EVIL, "direction": "read",
    }  # fmt: skip
    page = page_of(replace(frames(), changed=pl.DataFrame([evil]), busiest=pl.DataFrame([busy])))
    assert "<img" not in page
    assert "<b>" not in page
    assert "At 2026-03-04 00:00 UTC, when the last poll of this release was made, 1 of 2 have no contention" in page
    assert "<td>lake</td><td>60 s</td><td>5 GB</td><td>1 GB</td><td>0 B to 2 GB</td>" in page
    assert "<td>pond</td>" not in page, "the best alone"
    assert page.count("<script") == 1
    assert "application.html#%3C" in page


def test_slowed_runs_are_listed_with_their_interferers() -> None:
    row = {
        "application_id": "ann/ior/8", "cluster": "c", "job_id": "<b>7", "started_at": datetime(2026, 3, 3, tzinfo=UTC),
        "filesystem": "lake", "delay_s": 100.0, "delay_low_s": 75.0, "delay_high_s": 125.0,
        "expected_correlation": 0.25,
        "slowed_burst_count": 2, "burst_count": 3, "top_interferer_application_id": "bob/s3d/4",
        "top_interferer_bytes": 4e9,
        "unattributed_bytes": 1e9,
    }  # fmt: skip
    unknown = row | {"top_interferer_bytes": 5e8}
    slowed = pl.DataFrame([row, unknown])
    counts = pl.DataFrame({"looked_count": [9], "slowed_count": [2]})
    page = page_of(replace(frames(), slowed=slowed, slowed_counts=counts))
    assert "2 were slowed, of 9 runs with detected bursts." in page
    assert '<a href="run.html#c/%3Cb%3E7/1772496000">&lt;b&gt;7</a>' in page
    assert "<td>100 s</td><td>75 to 125 s</td><td>0.25</td><td>2 of 3</td>" in page
    assert page.count('<a href="application.html#bob/s3d/4">bob/s3d/4</a></td><td>4 GB</td>') == 1
    assert page.count("<td>unattributed</td><td>1 GB</td>") == 1
    assert "so slowdowns are unknown" in page_of(frames())
