"""The documentation site lists every page, has no dead links, and needs no network."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from bench import site, tutorials

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGES = (
    "index.html", "docs/dictionary.html", "docs/periods-study.html", "docs/tutorials/edison_day.html",
    "api/iosig.transforms.periods.html",
)  # fmt: skip
PAGE = '<h1 id="top">A</h1><a href="b.html#part"></a><a href="#top"></a><a href="https://example.org"></a>'


def list_targets(entry: Any) -> Iterator[str]:
    """Yield the pages of the navigation."""
    values = [entry] if isinstance(entry, str) else entry.values() if isinstance(entry, dict) else entry
    for value in values:
        yield from [value] if isinstance(value, str) else list_targets(value)


def test_navigation_lists_every_page_once() -> None:
    targets = sorted(list_targets(tomllib.loads(site.CONFIG.read_text(encoding="utf-8"))["project"]["nav"]))
    pages = [str(path.relative_to(site.ROOT)) for path in (site.ROOT / "docs").glob("*.md")]
    top = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "GLOSSARY.md", "SECURITY.md", "bench/README.md"}
    notebooks = {f"docs/tutorials/{path.stem}.md" for path in tutorials.FOLDER.glob("*.py")}
    assert targets == sorted({*pages, *top, *notebooks, "docs/decisions/README.md", "api/index.md"})


def test_reference_lists_packages_with_their_summary() -> None:
    pages = dict(site.write_reference())
    assert "- [`iosig.transforms.periods`](iosig.transforms.periods.md): Periods: how often" in pages["api/index.md"]
    assert pages["api/iosig.transforms.periods.md"].endswith("::: iosig.transforms.periods\n")


@pytest.mark.parametrize(
    ("addition", "dead"),
    [
        ("", []),
        ('<a href="c.html"></a>', ["c.html"]),
        ('<a href="b.html#lost"></a>', ["b.html#lost"]),
        ('<img src="figure.png">', ["figure.png"]),
        ('<script src="https://example.org/a.js"></script>', ["https://example.org/a.js"]),
        ('<link rel="stylesheet" href="https://example.org/a.css">', ["https://example.org/a.css"]),
    ],
)
def test_dead_links_and_foreign_resources_are_listed(tmp_path: Path, addition: str, dead: list[str]) -> None:
    (tmp_path / "a.html").write_text(PAGE + addition)
    (tmp_path / "b.html").write_text('<h2 id="part">B</h2>')
    assert site.find_dead_links(tmp_path) == [f"a.html: {link}" for link in dead]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    pytest.importorskip("zensical", reason="the dependency group docs is not installed")
    folder = tmp_path_factory.mktemp("docs")
    site.build(folder)
    return folder / "site"


@pytest.mark.slow
@pytest.mark.extra
def test_built_site_has_no_dead_links(built: Path) -> None:
    assert site.find_dead_links(built) == []


@pytest.mark.slow
@pytest.mark.extra
@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("edison_day", "5. Who moved the bytes?"),
        ("is_it_periodic", "3. Look at the evidence"),
        ("first_week", "Day 4: which signatures can you trust?"),
    ],
)
def test_tutorials_have_pages_with_pictures(built: Path, name: str, heading: str) -> None:
    page = (built / "docs" / "tutorials" / f"{name}.html").read_text(encoding="utf-8")
    assert heading in page
    assert re.search(r'<div class="iosig-picture"[^>]*><svg', page)
    assert f'href="tutorials/{name}.html"' in (built / "docs" / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.extra
@pytest.mark.parametrize("width", [390, 800, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_the_window_without_network(built: Path, browser: Browser, width: int, scheme: Any) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(120_000)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    for name in PAGES:
        page.goto((built / name).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.fixture
def address(built: Path) -> Iterator[str]:
    """The address of a server of the built site."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(built))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.extra
def test_search_finds_a_setting(address: str, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(120_000)
    page.goto(f"{address}/index.html")
    box = page.get_by_role("combobox", name="Search")
    for _ in range(100):
        # the page's script may not listen yet
        page.keyboard.press("Control+k")
        page.wait_for_timeout(100)
        if box.is_visible():
            break
    box.fill("outlier_merge")
    page.locator("a[href*='settings.html']", has_text="periods").first.wait_for()
