"""The page of a traced run in a browser: findings, layers and heat maps, hostile names, themes, and any width."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from iosig.reports.site import advice, library
from iosig.reports.site.advice import AdviceFrames
from iosig.reports.site.packing import file_hash, pack_document
from iosig.reports.site.pages import RUN
from iosig.reports.site.runs import RunFrames, hours
from iosig.reports.site.shells import About, shell
from tests.reports.site.test_traces import EVIL, NOON, told

if TYPE_CHECKING:
    from playwright.sync_api import Browser


_BYTES = ("now_bytes", "then_bytes", "low_then_bytes", "high_then_bytes")


def site(folder: Path) -> str:
    """Write the page of a run and its resources; return its address."""
    row = {"cluster": EVIL, "job_id": '7"8', "started_at": NOON, "ended_at": NOON, "user": EVIL, "application": EVIL}
    empty = dict.fromkeys(("account", "partition", "state"), "") | dict.fromkeys(("node_count", "task_count"), 2)
    runs = pl.DataFrame([row | empty | {"submitted_at": NOON, "duration_s": 1.0}])
    of_io = {"filesystem": EVIL, "direction": "write", "application_id": EVIL, "estimate_source": "attributed"}
    # and bytes of a trace with an unknown file system
    traced = of_io | {"filesystem": None, "application_id": None, "estimate_source": "traced"}
    every = pl.DataFrame([of_io, traced])
    io = runs.select("cluster", "job_id", "started_at").join(every, how="cross")
    start = {"application_id": EVIL, "place": 1, "filesystem": "widow7", "delay_s": 90.0} | dict.fromkeys(_BYTES, 2e9)
    starts = AdviceFrames(NOON, pl.DataFrame([start, start | {"application_id": "other", "filesystem": "lost"}]), None)
    about = About("r1", "2026-03-03T12:00:00Z", "passed", "0.1")
    contents = [
        *library.assets(),
        shell(RUN, about),
        *hours(RunFrames(runs, io, told())),
        pack_document("filesystems", []),
    ]
    contents += [advice.contents(starts), pack_document(f"application/{file_hash(EVIL)}", [])]
    for content in contents:
        (folder / content.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / content.path).write_bytes(content.data)
    hashed = "/".join(part.replace("<", "%3C").replace("/", "%2F").replace('"', "%22") for part in (EVIL, '7"8'))
    return f"{(folder / RUN.file_name).as_uri()}#{hashed}/{NOON.timestamp():.0f}"


#: Number of distinct colors of a canvas.
_COLORS = """() => {
    const canvas = document.querySelector("#ranks canvas"), seen = new Set();
    const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    for (let at = 0; at < all.length; at += 4) if (all[at + 3] === 255) seen.add(all.slice(at, at + 3).join());
    return seen.size;
}"""


@pytest.mark.slow
def test_traced_run_shows_findings_io_and_heat_maps(browser: Browser, tmp_path: Path) -> None:
    address = site(tmp_path)
    for width, theme in ((1400, "light"), (390, "dark")):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        said: list[str] = []
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        page.on("dialog", lambda dialog, said=said: said.append(dialog.message))
        page.goto(address)
        page.wait_for_selector("#ranks canvas")
        assert page.locator("#findings li.critical").count() == 1
        assert "5,000 of 5,000 reads (100%)" in page.inner_text("#findings")
        assert "POSIX" in page.inner_text("#findings table")
        assert page.locator("#ranks canvas").count() == 1
        assert page.evaluate("() => document.documentElement.scrollWidth") == width
        page.wait_for_selector("#advice table")
        assert "widow7" in page.inner_text("#advice table")
        assert "lost" not in page.inner_text("#advice table")
        assert page.locator("#io tbody td:first-child").all_inner_texts() == [EVIL, "\N{EN DASH}"]
        # At least three colors, so a heat map is drawn.
        assert page.evaluate(_COLORS) >= 3
        assert said == []
        page.close()
