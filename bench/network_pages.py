"""The interactive page of a large network: its size, writing it, and redrawing it in headless Chromium."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from bench.figures import Figure
from iosig.reports.networks.page import MOST_BYTES, write_page
from iosig.reports.networks.view import NetworkView
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.network import Layer, Network, Transfers
from iosig.transforms.networks.patterns import patterns
from iosig.transforms.networks.rings import layout

_RANKS, _HOSTS, _TARGETS = 8192, 32, 8
_WINDOWS, _TURNS = 64, 192
_CEASED_S = 640.0
_MOST_REDRAW_MS = 500.0


def figures(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Measure the page of the paper's largest picture: 8,192 + 256 edges, 50 slots, three metrics, 64 time windows."""
    view = made_up_view(_WINDOWS)
    network = view.network
    path = scratch / "network.html"
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        write_page(view, path)
        taken.append(time.process_time() - began)
    size, cells = path.stat().st_size, network.counts.height
    yield Figure(
        f"HTML of {network.edges.height:,} edges, 3 metrics, {_WINDOWS} windows ({cells:,} counts)",
        f"{size / 1e6:.2f} MB",
        "",
        "",
        f"{MOST_BYTES / 1e6:.0f} MB",
        size < MOST_BYTES,
    )
    yield Figure("… writing it, processor time", f"{statistics.median(taken):.1f} s", "", "", "", True)
    yield from _redraws(path, rounds)


def made_up_view(window_count: int) -> NetworkView:
    """Return a network whose edges have values all over 50 slots, in every window, ready to be drawn."""
    network = _network(window_count)
    return NetworkView("8192 ranks", network, layout(network), patterns(network), _no_bottlenecks())


def _network(window_count: int) -> Network:
    random = np.random.default_rng(20130520)
    layers = tuple(
        Layer(name, pl.Series([str(number) for number in range(count)]))
        for name, count in (("rank", _RANKS), ("host", _HOSTS), ("target", _TARGETS))
    )
    counter = EdgeCounter(layers, ("service_time", "service_time"), window_edges(0.0, _CEASED_S, window_count))
    rank = np.arange(_RANKS)
    for number in range(_TURNS):
        host, target = rank * _HOSTS // _RANKS, random.integers(0, _TARGETS, _RANKS)
        at_s = np.full(_RANKS, (number + 0.5) * _CEASED_S / _TURNS)
        size, time_s = 2.0 ** random.uniform(8, 20, _RANKS), 1e-3 * 2.0 ** random.uniform(-6, 6, _RANKS)
        for hop, (source, end) in enumerate(((rank, host), (host, target))):
            counter.add(Transfers(hop, source, end, at_s, time_s, size, size / time_s, random.random(_RANKS) < 0.5))
    return counter.result()


def _no_bottlenecks() -> pl.DataFrame:
    texts = ("metric", "source_layer", "source_node", "target_layer", "target_node")
    numbers = ("bottleneck", "began_s", "value", "median_value", "score", "share_ratio")
    return pl.DataFrame(schema=dict.fromkeys(texts, pl.String()) | dict.fromkeys(numbers, pl.Float64()))


def _redraws(path: Path, rounds: int) -> Iterator[Figure]:
    """Measure redraws as the page does: sums of another range of time, all pixels of the edges, lines and numbers."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        yield Figure("… redrawing it: skipped, there is no Chromium on this machine", "", "", "", "", True)
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, headless=True, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        began = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
        opened = time.perf_counter() - began
        page.focus("#brush-until")
        redraws = [_pressed_ms(page, key) for _ in range(rounds + 1) for key in ("ArrowLeft", "PageDown", "End")]
        browser.close()
    middle, worst = statistics.median(redraws[3:]), max(redraws[3:])
    yield Figure("… opening it in headless Chromium, until it is drawn", f"{opened:.2f} s", "", "", "", True)
    yield Figure(
        "… another range of time: from the key to the next frame, median",
        f"{middle:.0f} ms (at most {worst:.0f} ms)",
        "",
        "",
        f"{_MOST_REDRAW_MS:.0f} ms",
        middle < _MOST_REDRAW_MS,
    )


def _pressed_ms(page, key: str) -> float:  # type: ignore[no-untyped-def]
    """Press a key on the timeline's handle; return how long it took until the frame after the redraw began."""
    taken: float = page.evaluate(
        """(key) => new Promise((done) => {
            const began = performance.now();
            const press = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
            document.activeElement.dispatchEvent(press);
            requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
        })""",
        key,
    )
    return taken
