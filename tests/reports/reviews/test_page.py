"""Test the page of a reviewer: it is escaped, loads nothing, and saves a file that lands."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from iosig.reports.reviews.page import ReviewView, render_page
from iosig.warehouse.contracts.reviews import LABEL_VERDICTS, PERIOD_VERDICTS
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.reviews.source import COLUMNS, SOURCE
from tests.warehouse.sources.batch_reading import tables_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EVIL = "</script><script>document.title='taken'</script>\",x"


def make_view(job_ids: list[str], period_s: float | None = 30.0) -> ReviewView:
    rows = [
        {
            "cluster": "c", "job_id": job_id, "started_at": datetime(2026, 3, 1, 12, tzinfo=UTC), "filesystem": "lake",
            "direction": "write", "basis": "counted", "label": "HILL", "section_bytes": [1.0, 2.0, 2.0, 1.0],
            "duration_s": 120.0, "node_count": 2, "period_s": period_s, "is_exact": True, "start_s": 0.0,
            "step_s": 30.0, "scale_bytes_per_s": 0.5, "rates": [2, None, 999, 4],
        }
        for job_id in job_ids
    ]  # fmt: skip
    return ReviewView("release", EVIL, pl.DataFrame(rows), COLUMNS, LABEL_VERDICTS, PERIOD_VERDICTS)


def test_names_cannot_end_an_element() -> None:
    page = render_page(make_view([EVIL]))
    assert EVIL not in page
    assert page.count("<script") == 2, "the data and the program"


def test_rates_are_in_bytes_per_second() -> None:
    page = render_page(make_view(["1"]))
    content = json.loads(page.partition('id="content">')[2].partition("</script>")[0])
    assert content["runs"][0]["bytes_per_s"] == [1.0, None, 499.5, 2.0]


@pytest.mark.slow
def test_saved_reviews_land(browser: Browser, tmp_path: Path) -> None:
    page_path, saved = tmp_path / "page.html", tmp_path / "reviews.csv"
    page_path.write_text(render_page(make_view(["7", EVIL])))
    page = browser.new_page()
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(page_path.as_uri())
    page.keyboard.press("Enter")
    page.click("[data-period=correct]")
    assert "run 2 of 2" in page.inner_text("#progress")
    page.click("[data-label=END]")
    page.keyboard.press("u")
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(saved)
    assert (requests[:1], errors, page.title()) == ([page_path.as_uri()], [], "Verify classes · release · iosig")
    rows = tables_of(SOURCE.read(saved, Reading()))["review_records"]
    chosen = ["subject_id", "reviewer", "proposed_label", "label_verdict", "proposed_period_s", "period_verdict"]
    assert rows.select(chosen).rows() == [
        ("7", EVIL, "HILL", "HILL", 30.0, "correct"),
        (EVIL, EVIL, "HILL", "END", 30.0, "unsure"),
    ]
    page.close()
