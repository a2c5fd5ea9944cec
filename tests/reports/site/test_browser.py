"""The pages in a browser, from files: every page, link and figure, without errors or external requests."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from iosig.answers.report.build import report
from iosig.reports.site.figures import command_line
from iosig.reports.site.lineage import TableRow
from iosig.reports.site.pages import PAGES
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import current
from iosig.warehouse.store.store import Store
from tests.flows.signature_releases import Made, publish
from tests.made_up_release import SiteSize, made_up_release

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EVIL = "<img src=x onerror=\"document.title='taken'\">"
EVIL_ID = f"{EVIL}/</script><script>document.title='taken'</script> $(ls) it's \u202egnp.exe{'x' * 400}/8"
_MADE = (
    Made(),
    Made(metric="operations", bursts=((60, 90, 3e4), (180, 220, 5e3))),
    Made(direction="read", outcome="no_io"),
    Made(application_id=EVIL_ID, bursts=((10, 20, 5e9),), filesystem="a/b c%"),
    Made(application_id="bob/s3d/32", outcome="no_common_bursts"),
)
_LINEAGE = [
    TableRow("stage.jobs", "stage jobs", is_sql=False, is_published=True, sources=("landed.job_records",)),
    TableRow("stage.<b>", EVIL, is_sql=True, is_published=False, sources=("stage.jobs",), columns=((EVIL, (EVIL,)),)),
]
_CHANGED = Made(
    bursts=((60, 90, 2e9), (150, 190, 3e9)),
    told={"is_changed": True, "change_correlation": 0.4, "relative_volume_change": 0.5},
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A warehouse of two releases with hostile names."""
    made = Store(tmp_path_factory.mktemp("site") / "warehouse")
    publish(made, "first", _MADE)
    publish(made, "second", (_CHANGED, *_MADE[1:]))
    return made


@pytest.fixture(scope="module")
def folder(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("report") / "pages"
    release = current(store)
    assert release
    return report(store, release, into, lambda: _LINEAGE).page.parent


class Seen:
    """A page with its requests and console errors."""

    def __init__(self, browser: Browser, folder: Path, place: str, **options: Any) -> None:
        self.folder = folder
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page: Page = browser.new_page(**({"viewport": {"width": 1400, "height": 900}} | options))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda said: self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.go(place)

    def go(self, place: str) -> None:
        name, _, meant = place.partition("#")
        self.page.goto((self.folder / name).as_uri() + (f"#{meant}" if meant else ""))
        self.page.wait_for_selector("html[data-ready=yes]")

    def is_quiet(self) -> bool:
        """Return whether the page had no error, no external request and no dialog."""
        own = self.folder.parent.resolve().as_uri()
        outside = [url for url in self.requests if not url.startswith((own, self.folder.parent.as_uri()))]
        return (self.errors, outside, self.page.locator("img").count(), "taken" in self.page.title()) == (
            [],
            [],
            0,
            False,
        )


def meant(page: Any) -> str:
    return {"application": "application.html#ana/ior_a/16/scratch/write"}.get(page.name, page.file_name)


@pytest.mark.slow
def test_every_page_opens_from_a_file_without_external_requests(browser: Browser, folder: Path) -> None:
    seen = Seen(browser, folder, "index.html")
    for page in PAGES:
        seen.go(meant(page))
        assert seen.is_quiet(), (page.name, seen.errors)
        assert seen.page.evaluate("() => document.documentElement.scrollWidth") == 1400
    seen.go("application.html#ana/ior_a/16/scratch/write")
    assert seen.page.inner_text("#title") == "ana/ior_a/16"
    assert seen.page.locator("#bursts tbody tr").count() == 2
    assert "so slowdowns are unknown" in seen.page.inner_text("#contention")
    assert seen.page.inner_text("#advice code").startswith("iosig advise ana/ior_a/16")
    assert seen.page.locator("#history tbody tr").count() == 2
    assert seen.page.locator("#signature canvas").count() == 2
    assert seen.page.locator("#operations canvas").count() == 1
    assert "1.1 Mop" in seen.page.inner_text("#operations")
    assert "30 kop/s" in seen.page.inner_text("#operations")
    assert "kop/s" not in seen.page.inner_text("#signature")
    seen.page.click("#choices a >> nth=1")
    seen.page.wait_for_function("() => location.hash.endsWith('read')")
    assert seen.page.is_hidden("#operations"), "no poll has operations of reads"
    seen.go("application.html#ana/ior_a/16/scratch/write")
    shown = seen.page.inner_text("#bursts code")
    assert shown == command_line(
        next(page for page in PAGES if page.name == "application").figure("bursts").query,
        {"application_id": "ana/ior_a/16", "filesystem": "scratch", "direction": "write"},
    )
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("s3d")
    seen.page.wait_for_selector("#found li[aria-selected=true]")
    assert seen.page.inner_text("#found li >> nth=0") == "application bob/s3d/32"
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_function("() => document.getElementById('title').textContent === 'bob/s3d/32'")
    seen.page.close()


@pytest.mark.slow
def test_lineage_shows_a_step_its_tables_and_their_columns(browser: Browser, folder: Path) -> None:
    seen = Seen(browser, folder, "lineage.html")
    assert seen.page.locator("svg.graph a").all_text_contents() == ["stage jobs", EVIL]
    assert seen.page.locator("svg.graph > path").count() == 1
    seen.page.locator("svg.graph a").nth(1).click()
    assert seen.page.locator("svg.graph a.is-near").count() == 2, "and all that it depends on"
    assert seen.page.locator("#lineage summary").all_inner_texts() == [f"stage.<b> {EVIL}, by SQL intermediate"]
    assert seen.page.locator("#lineage td").all_inner_texts() == [EVIL, EVIL]
    seen.page.get_by_role("link", name="stage.jobs").click()
    assert "Used by stage.<b>." in seen.page.inner_text("#lineage details")
    assert seen.page.get_attribute("#lineage details a[href^=tables]", "href") == "tables.html#table-jobs"
    seen.page.get_by_role("link", name="Show all tables").click()
    seen.page.get_by_label("Show tables with").fill("JOBS")
    assert seen.page.locator("#lineage details").count() == 1
    assert seen.is_quiet()
    seen.page.close()


@pytest.mark.slow
def test_every_query_of_a_page_runs(store: Store) -> None:
    values = {
        "application_id": EVIL_ID, "filesystem": "a/b c%", "direction": "write", "cluster": "titan", "job_id": "1",
        "started_at": "2018-02-09T12:00:00.000Z", "day": "2018-02-09",
    }  # fmt: skip
    release = current(store)
    assert release
    rows = {}
    with open_release(store, release) as connection:
        for page in PAGES:
            for figure in page.figures:
                (query,) = shlex.split(command_line(figure.query, values))[2:]
                rows[page.name, figure.name] = len(connection.sql(query).fetchall())
    assert rows["application", "signature"] == 300
    assert rows["application", "operations"] == 0
    assert rows["application", "bursts"] == 1
    assert rows["application", "runs"] == 6
    assert rows["applications", "list"] == 4
    assert rows["index", "changed"] == 1


@pytest.mark.long
def test_every_link_has_a_target(browser: Browser, folder: Path) -> None:
    seen = Seen(browser, folder, "index.html")
    found: set[str] = set()
    for page in PAGES:
        seen.go(meant(page))
        # a link in an SVG has an animated address, relative to the page
        addresses = "links => links.map((link) => new URL(link.href.baseVal ?? link.href, location).href)"
        found |= set(seen.page.eval_on_selector_all("main a, header a", addresses))
    places = {re.sub(r"#.*", "", link).rsplit("/", 1)[1] for link in found}
    assert places <= {page.file_name for page in PAGES}
    for link in sorted(link for link in found if "application.html#" in link):
        seen.page.goto(link)
        seen.page.wait_for_selector("html[data-ready=yes]")
        assert seen.page.is_hidden("#message")
    assert seen.is_quiet()
    seen.page.close()


@pytest.mark.long
def test_hostile_names_are_texts(browser: Browser, folder: Path) -> None:
    seen = Seen(browser, folder, "applications.html")
    assert seen.page.locator(".tabulator-row").count() == 4
    link = seen.page.locator(".tabulator-row a", has_text="<img").first
    link.click()
    seen.page.wait_for_selector("html[data-ready=yes]")
    seen.page.wait_for_function("() => document.getElementById('title').textContent.startsWith('<img')")
    assert len(seen.page.inner_text("#title")) <= 301
    assert "\u202e" not in seen.page.inner_text("#title")
    words = shlex.split(seen.page.inner_text("#bursts code"))
    assert len(words) == 3
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("<img")
    seen.page.wait_for_selector("#found li[aria-selected=true]")
    assert seen.is_quiet()
    seen.go("application.html#nobody/<img src=x onerror=alert(1)>/3")
    assert "has no application nobody/<img" in seen.page.inner_text("#message")
    assert seen.page.locator("img").count() == 0
    seen.page.close()


@pytest.mark.long
@pytest.mark.parametrize("width", [800, 390])
def test_pages_fit_narrow_screens(browser: Browser, folder: Path, width: int) -> None:
    seen = Seen(browser, folder, "index.html", viewport={"width": width, "height": 800}, color_scheme="dark")
    for page in PAGES:
        seen.go(meant(page))
        assert seen.page.evaluate("() => document.documentElement.scrollWidth") == width, page.name
    assert seen.page.get_attribute("html", "data-theme") == "dark"
    seen.page.click("#theme")
    assert seen.page.get_attribute("html", "data-theme") == "light"
    seen.go("quality.html")
    assert seen.page.get_attribute("html", "data-theme") == "light"
    assert seen.is_quiet()
    seen.page.close()


@pytest.mark.long
def test_pages_are_operated_by_keyboard_and_printed(browser: Browser, folder: Path, tmp_path: Path) -> None:
    seen = Seen(browser, folder, "index.html")
    reached = []
    for _ in range(20):
        seen.page.keyboard.press("Tab")
        reached.append(seen.page.evaluate("() => document.activeElement.id || document.activeElement.textContent"))
    assert {"Skip to content", "Night", "Applications", "search", "release", "theme"} <= set(reached)
    seen.go("application.html#ana/ior_a/16/scratch/write")
    seen.page.emulate_media(media="print")
    assert seen.page.is_hidden("header nav")
    printed = seen.page.pdf(path=str(tmp_path / "page.pdf"), format="A4")
    assert printed.startswith(b"%PDF")
    seen.page.close()


@pytest.mark.long
def test_other_releases_are_reachable(browser: Browser, store: Store, tmp_path: Path) -> None:
    from iosig.warehouse.releases.releases import list_readable

    for release in list_readable(store):
        report(store, release, tmp_path / "pages", list)
    seen = Seen(browser, tmp_path / "pages" / "latest", "applications.html")
    assert seen.page.locator("#release option").count() == 2
    seen.page.select_option("#release", index=1)
    seen.page.wait_for_url("**/2018-02-09-first/applications.html")
    seen.page.wait_for_selector("html[data-ready=yes]")
    assert seen.page.input_value("#release") == "2018-02-09-first"
    seen.page.goto((tmp_path / "pages/index.html").as_uri())
    seen.page.wait_for_url("**/latest/index.html")
    seen.page.close()


# ---- a site with polls, runs and slowed bursts


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of five days of two file systems, with forty runs of twelve applications."""
    made = Store(tmp_path_factory.mktemp("busy") / "warehouse")
    release = made_up_release(made, SiteSize(applications=12, runs=40, days=5))
    return report(made, release, tmp_path_factory.mktemp("busy-report") / "pages", list).page.parent


@pytest.mark.long
def test_days_are_navigated_by_keyboard_and_have_addresses(browser: Browser, busy: Path) -> None:
    seen = Seen(browser, busy, "filesystem.html#widow2/2026-01-03")
    assert "2026-01-03" in seen.page.inner_text("#day h2")
    assert seen.page.inner_text("#title") == "File system widow2"
    seen.page.focus("#calendar canvas")
    seen.page.keyboard.press("ArrowUp")
    seen.page.wait_for_url("**#widow2/2026-01-02")
    seen.page.wait_for_function("() => document.querySelector('#day h2').textContent.startsWith('2026-01-02')")
    seen.page.wait_for_selector("#there .tabulator-row")
    seen.page.click("#choices a >> nth=0")
    seen.page.wait_for_function("() => document.getElementById('title').textContent === 'File system widow1'")
    assert seen.is_quiet()
    seen.page.close()


@pytest.mark.long
def test_job_is_found_by_the_prefix_of_its_id(browser: Browser, busy: Path) -> None:
    seen = Seen(browser, busy, "index.html")
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("100001")
    seen.page.wait_for_selector("#found li[aria-selected=true]")
    assert seen.page.locator("#found li", has_text="job 10000").count() == 6
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url("**/run.html#titan/1000010/*")
    seen.page.wait_for_selector("#sample canvas")
    assert "u10/app10/4" in seen.page.inner_text("#sample")
    assert "detected in the traffic" in seen.page.inner_text("#slowed")
    assert "iosig advise u10/app10/4" in seen.page.inner_text("#advice")
    seen.go("applications.html#user=u3")
    assert seen.page.locator(".tabulator-row").count() == 1
    assert seen.is_quiet()
    seen.page.close()


@pytest.mark.long
@pytest.mark.parametrize("width", [1400, 800, 390])
def test_long_table_hides_columns_that_do_not_fit_and_names_them(browser: Browser, busy: Path, width: int) -> None:
    seen = Seen(browser, busy, "applications.html", viewport={"width": width, "height": 900})
    heads = seen.page.locator("#list .tabulator-col-title").all_inner_texts()
    assert {"application", "direction", "volume", "expected_correlation"} <= set(heads)
    lacking = seen.page.locator("#list .tip")
    assert lacking.count() == (width < 1400)
    if lacking.count():
        named = lacking.inner_text().removeprefix("A wider window has more columns: ").removesuffix(".").split(", ")
        assert len(heads) + len(named) == 15
        assert not set(heads) & set(named)
    assert seen.page.evaluate("() => document.documentElement.scrollWidth") == width
    assert seen.is_quiet()
    seen.page.close()
