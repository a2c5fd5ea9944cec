"""Findings as sentences, and the heat map: colors by level, limited size, and inert names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iosig.reports.findings import HeatView, draw, fill_template, levels, number_text, summarize_heat_maps
from iosig.reports.inline_svg import render_svg
from iosig.reports.style import DARK, SHADES
from iosig.transforms.findings.rank_times import RankTimes

EVIL = "<img src=x onerror=alert(1)>\u202e\x1b[2J"


def heat(ranks: int, times: int, direction: str = "write") -> RankTimes:
    cells = np.random.default_rng(7).lognormal(10, 3, (ranks, times)) * (np.arange(times) % 3 > 0)
    return RankTimes("POSIX", direction, "requests", cells, np.arange(ranks + 1), np.arange(times + 1.0))


def test_numbers_are_formatted_with_units() -> None:
    evidence = [
        {"name": "a", "value": 1234.0, "unit": "requests"},
        {"name": "b", "value": 0.5, "unit": "1"},
        {"name": "c", "value": 2.5e9, "unit": "B"},
        {"name": "d", "value": 90.0, "unit": "s"},
    ]
    assert fill_template("{a} ({b}) of {c} in {d}.", evidence) == "1,234 (50%) of 2.5 GB in 90 s."
    assert [number_text(*told) for told in ((3.1, "times"), (None, "B"), (322.4, "operations/s"), (7.0, "rank"))] == [
        "3.1 times", "an unknown number", "322 a second", "7",
    ]  # fmt: skip


def test_shades_decrease_by_decades_and_zero_has_no_shade() -> None:
    found = levels(np.array([[0.0, 1e-9, 1.0, 1e3, 1e4]]), 1e4)
    assert found.tolist() == [[0, 1, 1, 6, len(SHADES)]]


def test_large_heat_map_is_a_small_element() -> None:
    view = HeatView("run", (heat(64, 128), heat(64, 128, "read")), "found")
    svg = render_svg(draw(view), "heat", "found")
    assert len(svg) < 700_000
    assert "var(--iosig-shade6" in svg
    assert "style=" not in svg


def test_names_are_texts(tmp_path: Path) -> None:
    picture = draw(HeatView(EVIL, (heat(2, 4),), EVIL))
    svg = render_svg(picture, "heat", EVIL)
    assert "<img" not in svg
    assert "\x1b" not in svg
    picture.write(tmp_path / "heat.svg", DARK)
    assert "\x1b" not in (tmp_path / "heat.svg").read_text()


@pytest.mark.parametrize(("count", "said"), [(2, "written by all ranks"), (4, "written by 50% of the rows")])
def test_heat_map_title_has_the_share_of_ranks(count: int, said: str) -> None:
    cells = np.zeros((count, 3))
    cells[:2] = 5.0
    one = RankTimes("POSIX", "write", "heatmap", cells, np.arange(count + 1), np.arange(4.0))
    assert summarize_heat_maps([one]).startswith("POSIX: 30 B")
    assert said in summarize_heat_maps([one])
    assert "does not record bytes by rank" in summarize_heat_maps([])
