"""The Data Docs lead with the release and its failures, and escape all data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.expectations import docs
from iosig.expectations.docs import About
from iosig.expectations.suites import Severity
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.quality import QUALITY
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import publish

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> &amp; \"'$styling ${x}{{ 7 * 7 }}"


class Page(HTMLParser):
    """A parsed page: its tags, link targets, text, and the text outside collapsed sections."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: list[str] = []
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.folded = ""
        self._folds = 0
        self._is_style = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._folds += tag == "details"
        self._is_style = tag == "style"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.targets += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        self._folds -= tag == "details"
        self._is_style = False

    def handle_data(self, data: str) -> None:
        if self._is_style:
            return
        if self._folds:
            self.folded += data
        else:
            self.text += data


def release(name: str, verdict: str, kind: str = "run") -> Release:
    at = f"2026-03-0{name[-1]}T04:00:00+00:00"
    return Release(
        release_id=name,
        sequence=int(name[-1]),
        created_at=at,
        kind=kind,
        parent_release_id=None,
        code_version="1",
        dates=(),
        newest_data_on=None,
        input_count=0,
        removed_input_count=0,
        parameters="{}",
        snapshots={},
        verdict=verdict,
    )


HISTORY = [
    release("2026-03-03", "passed with warnings", "rollback"),
    release("2026-03-02", "passed"),
    release("2026-03-01", "passed with warnings"),
]
ABOUT = About(HOSTILE, "2026-03-03 04:00 UTC", "passed with warnings", "2026-03-03", HISTORY)
Found = tuple[str, str, Severity, bool, Mapping[str, Any], int]
FOUND: list[Found] = [
    ("filesystem_rates", "has_rows", "info", False, {"observed_value": 0}, 0),
    (
        "polls_daily",
        "no_implausible_polls",
        "warning",
        False,
        {
            "row_count": 12,
            "sums": {"implausible_poll_count": 2, "poll_count": 2882},
            "failing_days": [f"2026-02-{day}" for day in range(28, 18, -1)],
            "failing_day_count": 11,
        },
        11,
    ),
    ("rejects", "no_rejects", "info", False, {"observed_value": 6}, 0),
    ("jobs", "key_unique", "critical", False, {"row_count": 9, "examples": [{"user": HOSTILE}, HOSTILE, [1, 2]]}, 2),
    ("jobs", "nodes_within_machine", "info", False, {"not_configured": ["machine_node_count"]}, 0),
    ("jobs", "has_rows", "info", True, {"observed_value": 9}, 0),
    ("classes", "four_sections", "critical", False, {"error": HOSTILE}, 0),
    ("samples", "has_steps", "critical", True, {"row_count": 9}, 0),
]


def quality(*found: Found) -> pl.DataFrame:
    rows = [(*start, json.dumps(observed), count) for *start, observed, count in found]
    return pl.DataFrame(rows, schema=frames.schema(QUALITY), orient="row")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    index = docs.build(quality(*FOUND), ABOUT, tmp_path_factory.mktemp("docs") / "data_docs")
    assert index.name == "index.html"
    return {path.name: Page(path) for path in index.parent.iterdir()}


def test_docs_have_a_page_per_table_and_an_index(pages: dict[str, Page]) -> None:
    assert set(pages) == {"index.html", *(f"{name}.html" for name, *_ in FOUND)}


def test_pages_link_only_to_each_other(pages: dict[str, Page]) -> None:
    for page in pages.values():
        for target in page.targets:
            name, _, place = target.partition("#")
            assert not place or place in pages[name].ids
            assert name in pages
        assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "svg"}
        assert not page.handlers


def test_data_are_shown_without_markup(pages: dict[str, Page]) -> None:
    assert HOSTILE in pages["jobs.html"].text
    assert HOSTILE in pages["classes.html"].text
    assert HOSTILE in pages["index.html"].text


def test_index_begins_with_release_verdict_and_history(pages: dict[str, Page]) -> None:
    begins = pages["index.html"].text.split("Failures")[0]
    counts = "passed with warnings: 2 critical failures, 1 warning"
    for told in ("Release 2026-03-03", counts, "2026-03-03 04:00 UTC", HOSTILE):
        assert told in begins
    folded = pages["index.html"].folded
    verdicts = "passed with warnings, passed, passed with warnings (newest first)"
    assert folded.index(verdicts) < folded.index("2026-03-02 04:00 UTC")
    assert folded.count("rolled back to") == 1


def test_failures_are_ordered_by_severity(pages: dict[str, Page]) -> None:
    text = pages["index.html"].text
    sentences = (
        "2 of 9 rows break this: No two rows have the same cluster, job_id, started_at.",
        f"This could not be checked ({HOSTILE}): A run has four sections.",
        "2 polls are implausible; 2,882 are used.",
        "The table has no ticks.",
        "6 inputs were refused.",
    )
    places = [text.index(sentence) for sentence in sentences]
    assert max(places[:2]) < places[2] < min(places[3:])
    assert "polls_daily.no_implausible_polls, warning; on 2026-02-28, 2026-02-27" in text
    assert "and 4 more days" in text
    assert "correct max_controller_bytes_per_s in the settings" in text


def test_uninformative_content_is_collapsed(pages: dict[str, Page]) -> None:
    page = pages["index.html"]
    assert "samples" not in page.text
    assert "1 table passed all checks" in page.folded
    assert "no value is set for machine_node_count" in page.folded
    assert "machine_node_count" not in page.text
    assert "The table has jobs." in pages["jobs.html"].folded
    assert "The table has jobs." not in pages["jobs.html"].text
    assert "0" not in page.text.split("Tables")[1]


def test_refused_run_states_that_nothing_was_released(tmp_path: Path) -> None:
    about = About("here", "2026-03-04 04:00 UTC", "failed", "2026-03-03", HISTORY)
    page = Page(docs.build(quality(*FOUND), about, tmp_path / "data_docs" / "refused"))
    assert "No release was published" in page.text
    assert "2026-03-03 is unchanged" in page.text
    assert "../index.html" in page.targets


def test_clean_release_states_that_everything_holds(tmp_path: Path) -> None:
    held = [(*row[:3], True, {"row_count": 1}, 0) for row in FOUND]
    page = Page(docs.build(quality(*held), ABOUT, tmp_path / "docs"))
    assert "All checks passed." in page.text


def test_rule_missing_from_all_suites_is_listed(tmp_path: Path) -> None:
    gone: Found = ("retired", "was_once", "warning", False, {"row_count": 3}, 1)
    page = Page(docs.build(quality(gone), ABOUT, tmp_path / "docs"))
    assert "retired.was_once" in page.text


def test_docs_are_replaced_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = docs.build(quality(*FOUND), ABOUT, tmp_path / "docs")
    before = {path.name: path.read_text() for path in index.parent.iterdir()}

    def fail(_: Any) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(docs, "_history", fail)
        with pytest.raises(KeyboardInterrupt):
            docs.build(quality(FOUND[0]), ABOUT, tmp_path / "docs")
    assert {path.name: path.read_text() for path in index.parent.iterdir()} == before

    docs.build(quality(FOUND[0]), ABOUT, tmp_path / "docs")
    assert {path.name for path in index.parent.iterdir()} == {"index.html", "filesystem_rates.html"}
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]


@pytest.mark.slow
def test_missing_pages_of_a_killed_run_are_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    docs.complete(store)
    assert not store.data_docs.exists()
    first = publish(store, "first", {"jobs": {9: "job_id \n 1"}})
    docs.complete(store)
    index = store.data_docs / "index.html"
    assert first.release_id in index.read_text()
    second = publish(store, "second", {"jobs": {9: "job_id \n 2"}})
    docs.complete(store)
    assert second.release_id in index.read_text()
    monkeypatch.setattr(docs, "build", None)
    docs.complete(store)
