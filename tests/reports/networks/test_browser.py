"""The interactive page in a browser: displays, interaction, keyboard access, and no request to other files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest

from iosig.reports.networks.page import write_page
from iosig.reports.networks.scales import fit_scale, slot_counts
from iosig.reports.networks.view import NetworkView, SlowNodes
from iosig.transforms.networks.network import Metric, Network
from tests.reports import network_views as views

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

EVIL_HOST = "<img src=x onerror=\"document.title='taken'\">"
EVIL_RANK = "\"'</script><script>document.title='taken'</script>"
_READY = "html[data-ready=yes]"


class Seen:
    """A page with its requests and console errors."""

    def __init__(self, browser: Browser, path: Path, address: str = "", **options: Any) -> None:
        self.path = path
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page: Page = browser.new_page(**({"viewport": {"width": 1200, "height": 800}} | options))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda said: self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(address or path.as_uri())
        self.page.wait_for_selector(_READY)

    def state(self, script: str) -> Any:
        return self.page.evaluate(f"() => iosig.{script}")

    def settle(self) -> None:
        """Wait until two frames are drawn."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def is_quiet(self) -> bool:
        return self.requests == [self.path.as_uri()] and self.errors == []


@pytest.fixture(scope="module")
def view() -> NetworkView:
    return views.small_view()


@pytest.fixture(scope="module")
def opened(browser: Browser, view: NetworkView, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    path = tmp_path_factory.mktemp("page") / "network.html"
    write_page(view, path)
    seen = Seen(browser, path)
    yield seen
    seen.page.close()


@pytest.fixture
def seen(opened: Seen) -> Seen:
    """The page, reset to its initial state."""
    if opened.state("metric") != "time":
        opened.page.click("#metric-0")
    if opened.page.is_visible("#all-time"):
        opened.page.click("#all-time")
    if opened.state("isolated"):
        opened.page.keyboard.press("Escape")
    if opened.page.get_attribute("html", "data-theme") == "dark":
        opened.page.click("#theme")
    opened.page.mouse.move(1, 1)
    opened.settle()
    return opened


def test_address_restores_the_state_and_slow_nodes_are_named(
    browser: Browser, view: NetworkView, tmp_path: Path
) -> None:
    outer = view.network.layers[0]
    labels = outer.labels.to_list()
    slow = SlowNodes(outer.name, len(labels), 1, (labels[1], labels[0]), (2.464, 1.1))
    request = {
        "metric": "time", "source_layer": outer.name, "source_node": labels[2], "target_layer": "x", "target_node": "y",
        "start_s": 0.0, "value": 1.0, "median_value": 0.1, "score": 9.0, "share_ratio": 0.5,
    }  # fmt: skip
    path = tmp_path / "network.html"
    write_page(replace(view, slow=(slow,), bottlenecks=pl.DataFrame([request])), path)
    first = Seen(browser, path)
    try:
        assert first.page.text_content("#subtitle").startswith("Slow: ")  # type: ignore[union-attr]
        assert first.state("marks") == [[0, 2]], "where the request came from"
        first.page.mouse.click(*first.state("placeOfNode(0, 1)"))
        first.settle()
        assert f"\u00d7 2.46 the median of its layer, slowest of {len(labels)}" in first.page.text_content("#selected")  # type: ignore[operator]
        first.page.click("#metric-1")
        first.page.wait_for_function("() => iosig.metric === 'size'")
        address = first.page.url
        assert address == f"{path.as_uri()}#metric=size&node=0/{quote(labels[1], safe='')}"
        assert first.is_quiet()
        again = Seen(browser, path, address=address)
        assert (again.state("metric"), again.state("isolated.nodes")) == ("size", [[0, 1]])
        again.page.close()
        strange = Seen(browser, path, address=f"{path.as_uri()}#metric=x&windows=9-1&node=7/nobody")
        assert (strange.state("metric"), strange.state("isolated")) == ("time", None)
        assert strange.errors == []
        strange.page.close()
    finally:
        first.page.close()


def counts_of(network: Network, metric: Metric, edge: int, windows: tuple[int, int]) -> list[int]:
    return slot_counts(network, fit_scale(network, metric), windows)[edge].tolist()  # type: ignore[no-any-return]


def totals_of(network: Network, edge: int, windows: tuple[int, int]) -> dict[str, float]:
    rows = network.totals.filter(pl.col("edge") == edge, pl.col("window").is_between(*windows, closed="left"))
    return {
        "transfers": rows["transfer_count"].sum(),
        "read": rows["read_bytes"].sum(),
        "written": rows["written_bytes"].sum(),
        "longest": pytest.approx(rows["max_transfer_time_s"].max() or 0.0, rel=1e-5),  # type: ignore[dict-item]
    }


def is_as_counted(seen: Seen, network: Network, metric: Metric, edges: tuple[int, ...] = (0, 1, 11, 13)) -> bool:
    first, last = seen.state("windows")
    for edge in edges:
        assert seen.state(f"countsOf({edge})") == counts_of(network, metric, edge, (first, last))
        assert seen.state(f"totalsOf({edge})") == totals_of(network, edge, (first, last))
    return True


def test_page_opens_without_any_request(seen: Seen, view: NetworkView) -> None:
    assert seen.is_quiet()
    assert seen.page.inner_text("#title") == view.title
    assert seen.state("windows") == [0, 16]
    assert is_as_counted(seen, view.network, "time")


def test_timeline_selects_windows_by_mouse(seen: Seen, view: NetworkView) -> None:
    box = seen.page.locator("#timeline-canvas").bounding_box()
    assert box is not None
    y = box["y"] + 60
    seen.page.mouse.move(box["x"] + 0.35 * box["width"], y)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + 0.6 * box["width"], y, steps=4)
    seen.page.mouse.up()
    seen.settle()
    first, last = seen.state("windows")
    assert 0 < first < last < 16
    assert is_as_counted(seen, view.network, "time")
    shown = view.network.totals.filter(pl.col("window").is_between(first, last, closed="left"))["transfer_count"].sum()
    assert f"{shown:,} transfers" in seen.page.inner_text("#range-text")
    assert seen.is_quiet()


def test_timeline_selects_windows_by_keyboard(seen: Seen, view: NetworkView) -> None:
    seen.page.focus("#brush-from")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        seen.page.keyboard.press(key)
    seen.page.focus("#brush-until")
    seen.page.keyboard.press("PageDown")
    assert seen.state("windows") == [3, 8]
    assert seen.page.get_attribute("#brush-from", "aria-valuetext") == "from 7.5 s"
    seen.page.focus("#brush-range")
    seen.page.keyboard.press("End")
    assert seen.state("windows") == [11, 16]
    assert is_as_counted(seen, view.network, "time")


def test_edge_tooltip_has_its_sums_and_histogram(seen: Seen, view: NetworkView) -> None:
    edge = 7
    x, y = seen.state(f"placeOfEdge({edge}, 0.5)")
    assert seen.state(f"edgeAt({x}, {y})") == edge
    seen.page.mouse.move(x, y)
    text = seen.page.inner_text("#tooltip")
    assert "rank 7 → host nid00001" in text
    sums = totals_of(view.network, edge, (0, 16))
    assert f"transfers\n{sums['transfers']}" in text
    assert seen.page.locator("#tooltip svg rect").count() == np.count_nonzero(
        counts_of(view.network, "time", edge, (0, 16))
    )


def test_live_region_announces_the_last_action(seen: Seen) -> None:
    """The announcement of a selected time is delayed and must not replace the announcement of a later action."""
    seen.page.focus("#brush-from")
    seen.page.keyboard.press("ArrowRight")
    # The button that resets the selected time takes some space.
    seen.settle()
    seen.page.mouse.click(*seen.state("placeOfNode(0, 7)"))
    assert seen.state("isolated") is not None
    seen.page.wait_for_timeout(600)
    assert seen.page.inner_text("#live").startswith("Isolated: rank 7")


def test_click_isolates_a_node_and_escape_restores_all(seen: Seen, view: NetworkView) -> None:
    x, y = seen.state("placeOfNode(0, 7)")
    assert seen.state(f"nodeAt({x}, {y})") == [0, 7]
    seen.page.mouse.click(x, y)
    assert seen.state("isolated") == {"nodes": [[0, 7]], "edges": [7]}
    assert seen.page.inner_text("#selected h3") == "rank 7"
    assert seen.page.inner_text("#live").startswith("Isolated: rank 7; with 1 host: transfers 40")
    other = seen.state("placeOfEdge(3, 0.5)")
    assert seen.state(f"edgeAt({other[0]}, {other[1]})") != 3
    seen.page.keyboard.press("Escape")
    assert seen.state("isolated") is None


def test_search_isolates_a_host(seen: Seen, view: NetworkView) -> None:
    seen.page.fill("#search", "nid")
    assert seen.page.locator("#suggestions li").all_inner_texts() == [f"host nid0000{host}" for host in range(3)]
    seen.page.keyboard.press("ArrowDown")
    assert seen.page.get_attribute("#search", "aria-activedescendant") == "suggestion-1"
    seen.page.keyboard.press("Enter")
    hosts = view.network.edges.with_row_index().filter(
        ((pl.col("hop") == 0) & (pl.col("target") == 1)) | ((pl.col("hop") == 1) & (pl.col("source") == 1))
    )
    assert seen.state("isolated") == {"nodes": [[1, 1]], "edges": hosts["index"].to_list()}


def test_metric_and_theme_are_switched(seen: Seen, view: NetworkView) -> None:
    seen.page.check("#metric-1")
    seen.page.wait_for_selector("html[data-metric=size]")
    assert is_as_counted(seen, view.network, "size")
    assert "size" in seen.page.inner_text("#legend h3 >> nth=0")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = seen.page.evaluate(ground)
    seen.page.click("#theme")
    assert seen.page.get_attribute("html", "data-theme") == "dark"
    assert seen.page.get_attribute("#theme", "aria-pressed") == "true"
    assert seen.page.evaluate(ground) != light
    assert seen.is_quiet()


def test_patterns_and_bottlenecks_isolate_their_nodes(seen: Seen) -> None:
    entries = seen.page.locator("#patterns button")
    assert entries.count() == 2
    seen.page.click("#patterns summary")
    entries.nth(1).click()
    assert seen.state("windows") == [2, 4]
    assert seen.state("isolated.nodes") == [[0, 1]]
    assert entries.nth(1).get_attribute("aria-pressed") == "true"
    seen.page.click("#bottlenecks button")
    seen.page.wait_for_selector("html[data-metric=size]")
    assert seen.page.get_attribute("html", "data-isolated") == "rank 0 → host nid00000"


def test_page_is_operated_by_keyboard(seen: Seen) -> None:
    page = seen.page
    page.focus("#theme")
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement.id || document.activeElement.textContent"))
    assert {"metric-0", "search", "stage", "zoom-in", "brush-from", "brush-range", "brush-until"} <= set(reached)
    page.focus("#stage")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    for key in ("ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert page.inner_text("#live").startswith("rank 2; with 1 host: transfers 40")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#live").startswith("host nid00000; with 4 ranks")
    page.keyboard.press("Enter")
    assert seen.state("isolated.nodes") == [[1, 0]]
    page.keyboard.press("Escape")
    page.keyboard.press("+")
    assert seen.state("zoom") > 1.5
    page.keyboard.press("0")
    assert seen.state("zoom") == 1
    page.focus("#table-part summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("#tables table")
    assert page.inner_text("#tables caption >> nth=0") == "Edges rank → host"
    assert page.locator("#tables table >> nth=0 >> tbody tr").count() == 12


def test_network_is_zoomed_and_panned(seen: Seen) -> None:
    x, y = seen.state("placeOfNode(0, 3)")
    seen.page.mouse.move(x, y)
    seen.page.mouse.wheel(0, -600)
    seen.page.wait_for_timeout(200)
    zoomed = seen.state("placeOfNode(0, 3)")
    assert seen.state("zoom") > 2
    seen.page.mouse.down()
    seen.page.mouse.move(x + 40, y + 25, steps=3)
    seen.page.mouse.up()
    moved = seen.state("placeOfNode(0, 3)")
    assert [moved[0] - zoomed[0], moved[1] - zoomed[1]] == pytest.approx([40, 25])
    assert seen.state("isolated") is None
    seen.page.click("#zoom-reset")
    assert seen.state("zoom") == 1


def test_browser_without_decompression_has_a_message(browser: Browser, opened: Seen) -> None:
    page = browser.new_page()
    page.add_init_script("delete globalThis.DecompressionStream")
    page.goto(opened.path.as_uri())
    page.wait_for_selector("#message:not([hidden])")
    assert "DecompressionStream" in page.inner_text("#message")
    page.close()


def test_network_of_two_layers_without_times_shows_other_metrics(browser: Browser, tmp_path: Path) -> None:
    shape = views.Shape(ranks=4, hosts=2)
    part = views.transfers_of(shape)[0]
    unknown = replace(
        part, time_s=np.full_like(part.at_s, np.nan), bandwidth_bytes_per_s=np.full_like(part.at_s, np.nan)
    )
    network = views.network_of(views.layers_of(shape)[:2], (unknown,))
    write_page(views.view_of(network), tmp_path / "two.html")
    seen = Seen(browser, tmp_path / "two.html")
    assert "no service time is known" in seen.page.inner_text("#legend")
    seen.page.check("#metric-1")
    seen.page.wait_for_selector("html[data-metric=size]")
    assert is_as_counted(seen, network, "size", edges=(0, 3))
    assert seen.is_quiet()
    seen.page.close()


def test_hostile_names_and_groups_are_shown_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    shape = views.Shape(hosts=2)
    _, host, target = views.layers_of(shape)
    ranks = views.grouped("rank", shape.ranks, 128)
    ranks = replace(ranks, labels=pl.Series([EVIL_RANK, *ranks.labels[1:]]))
    hosts = replace(host, labels=pl.Series([EVIL_HOST, "nid00001"]))
    network = views.network_of((ranks, hosts, target), views.transfers_of(shape))
    evil = views.view_of(
        network, title=EVIL_RANK, notes=(EVIL_HOST,), patterns=views.pattern_row(cause_nodes=[EVIL_RANK])
    )
    write_page(evil, tmp_path / "evil.html")
    seen = Seen(browser, tmp_path / "evil.html", viewport={"width": 390, "height": 800}, device_scale_factor=3,
                color_scheme="dark", has_touch=True)  # fmt: skip
    assert seen.page.get_attribute("html", "data-theme") == "dark"
    assert seen.page.evaluate("() => document.documentElement.scrollWidth") == 390
    assert seen.page.inner_text("#title") == EVIL_RANK
    seen.page.tap("#patterns button")
    assert seen.page.inner_text("#selected h3") == f"rank {EVIL_RANK}"
    seen.page.fill("#search", "<img")
    assert seen.page.inner_text("#suggestions") == f"host {EVIL_HOST}"
    seen.page.keyboard.press("Enter")
    seen.page.fill("#search", "rank 300")
    assert seen.page.inner_text("#suggestions li >> nth=0") == "rank 256-383"
    seen.page.keyboard.press("Enter")
    assert seen.state("isolated.nodes") == [[0, 2]]
    assert seen.page.title().startswith(EVIL_RANK)
    assert seen.page.locator("img").count() == 0
    assert seen.is_quiet()
    seen.page.close()
