"""The picture of advice: a row for each file system, its expected load, and the saving of a delay."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.image import imread

from iosig.reports.advice import LAYER_COLORS, MAX_ROWS, AdviceView, DrawnFilesystem, draw
from iosig.reports.style import BLUE, VERMILION
from iosig.reports.texts import volume_text
from tests.drawn_figures import assert_drawn_alike, figure_of

pytestmark = pytest.mark.filterwarnings("error")

ROOT = Path(__file__).resolve().parents[2]
STEPS = 100
DELAYS = np.arange(0.0, 61.0, 10.0)


def rates(start: int, end: int, rate: float) -> np.ndarray:
    found = np.zeros(STEPS)
    found[start:end] = rate
    return found


def filesystem(name: str = "scratch", best_delay_s: float = 20.0, layers: int = 1, remark: str = "") -> DrawnFilesystem:
    """Return a file system of 5 GB/s with 1 GB/s of background; jobs move 3 GB/s at once, the application 2 GB/s."""
    late = int(best_delay_s)
    return DrawnFilesystem(
        filesystem=name,
        capacity_bytes_per_s=5e9,
        background_bytes_per_s=1e9,
        layers=tuple((f"eve/job{number}/8", rates(0, 20, 3e9 / layers)) for number in range(layers)),
        demand_now=rates(0, 20, 2e9),
        demand_best=rates(late, late + 20, 2e9),
        expected_bytes_per_s=np.where(np.arange(STEPS) < 90, 1e9 + rates(0, 25, 2.4e9), np.nan),
        best_delay_s=best_delay_s,
        contended_bytes=np.linspace(20e9, 0, len(DELAYS)),
        low_contended_bytes=1e9,
        high_contended_bytes=30e9,
        remark=remark,
    )


def view(*filesystems: DrawnFilesystem) -> AdviceView:
    return AdviceView("ana/late/16", "2018-02-09 12:00:00Z", 1.0, DELAYS, filesystems or (filesystem(),))


def composed(one: AdviceView) -> Figure:
    return figure_of(draw(one))


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def hatched(axes: Axes) -> list[str]:
    return [area.get_hatch() for area in axes.collections if isinstance(area, PolyCollection) and area.get_hatch()]


def test_heading_has_file_system_and_delay() -> None:
    figure = composed(view())
    assert [text.get_text() for text in figure.texts] == [
        "scratch, after 20 s: 13.3 GB contended; without delay 20 GB",
        "Where to run ana/late/16  ·  2018-02-09 12:00:00Z",
    ]
    figure = composed(view(filesystem(best_delay_s=0.0)))
    assert figure.texts[0].get_text() == "scratch, at once: 20 GB contended"


@pytest.mark.parametrize("count", [1, 3, MAX_ROWS + 1])
def test_each_file_system_has_a_row(count: int) -> None:
    figure = composed(view(*(filesystem(f"fs{number}") for number in range(count))))
    shown = min(count, MAX_ROWS)
    assert len(figure.axes) == 2 * shown
    titles = [axes.get_title(loc="left") for axes in figure.axes[::2]]
    assert titles == [f"{number + 1}  fs{number}" for number in range(shown)]
    assert (f"the best {shown} of {count} are shown" in figure.texts[1].get_text()) == (shown < count)
    # Rows do not overlap, and lie within the figure, below the legend.
    boxes = [box for axes in figure.axes[::2] if (box := axes.get_tightbbox()) is not None]
    assert all(above.y0 > below.y1 for above, below in pairwise(boxes))
    assert boxes[-1].y0 > 0
    assert boxes[0].y1 < figure.legends[0].get_window_extent().y0


def test_load_above_the_capacity_is_hatched() -> None:
    loads = composed(view()).axes[0]
    # At once, the expected load is 6 GB/s of a capacity of 5; with the delay, only 3.
    assert hatched(loads) == [r"\\\\\\"]
    expected, capacity = loads.lines
    assert np.nanmax(np.asarray(expected.get_ydata(), dtype=np.float64)) == 3.4
    assert np.asarray(capacity.get_ydata()).tolist() == [5.0, 5.0]
    assert loads.get_ylabel() == "load [GB/s]"
    assert hatched(composed(view(filesystem(best_delay_s=0.0))).axes[0]) == ["//////"]


def test_areas_are_stacked() -> None:
    loads = composed(view(filesystem(layers=2))).axes[0]
    tops = [float(area.get_paths()[0].vertices[:, 1].max()) for area in loads.collections if not area.get_hatch()]
    # Background, both jobs, the delayed application, and its outline at once.
    assert tops == pytest.approx([1.0, 2.5, 4.0, 4.0, 6.0])


def test_best_delay_is_marked_with_its_range() -> None:
    delays = composed(view()).axes[1]
    curve, now, band, best = delays.lines
    assert np.asarray(curve.get_xdata()).tolist() == DELAYS.tolist()
    assert (list(np.asarray(now.get_xdata())), now.get_color()) == ([0.0], VERMILION)
    assert np.asarray(band.get_ydata()).tolist() == [1.0, 30.0]
    assert (list(np.asarray(best.get_xdata())), best.get_color()) == ([20.0], BLUE)
    assert delays.get_title(loc="left") == "13.3 GB, 20 s"
    assert delays.get_ylim()[1] > 30


def test_delays_share_a_scale_in_all_rows() -> None:
    small = replace(filesystem("small"), contended_bytes=np.zeros(len(DELAYS)), high_contended_bytes=0.0)
    figure = composed(view(filesystem(), small))
    assert figure.axes[1].get_ylim() == figure.axes[3].get_ylim()


def test_legend_lists_the_applications_with_the_largest_volume() -> None:
    assert legend(composed(view())) == [
        "capacity", "expected load without the application: mean of possible futures", "background", "eve/job0/8",
        "the application, best delay",
        "contended", "the application, without delay", "contended, without delay",
    ]  # fmt: skip
    told = legend(composed(view(filesystem(best_delay_s=0.0, layers=len(LAYER_COLORS) + 2))))
    assert [name for name in told if name.startswith("eve/")] == [
        f"eve/job{number}/8" for number in range(len(LAYER_COLORS))
    ]
    assert "other known jobs" in told
    assert "the application" in told


def test_remarks_are_next_to_the_name() -> None:
    loads = composed(view(filesystem(remark="STALE: last poll 2 h ago"))).axes[0]
    assert [text.get_text() for text in loads.texts] == ["STALE: last poll 2 h ago"]


def test_advice_without_any_load_is_drawn(tmp_path: Path) -> None:
    nothing = replace(
        filesystem(best_delay_s=0.0),
        layers=(), background_bytes_per_s=0.0, demand_now=np.zeros(STEPS), demand_best=np.zeros(STEPS),
        contended_bytes=np.zeros(1), low_contended_bytes=0.0, high_contended_bytes=0.0,
    )  # fmt: skip
    one = replace(view(nothing), delays_s=np.zeros(1))
    draw(one).write(tmp_path / "advice.png")
    assert one.verdict == "scratch, at once: 0 B contended"


def test_hostile_names_and_sizes_are_drawn(tmp_path: Path) -> None:
    name = "$\\frac{a}{b}$\x1b[31m\u202e" * 40
    huge = replace(filesystem(name, remark=name), capacity_bytes_per_s=1e-3, contended_bytes=np.full(len(DELAYS), 1e30))
    one = replace(view(huge), application=name)
    draw(one).write(tmp_path / "advice.png")
    assert imread(tmp_path / "advice.png").shape[1] == 1440
    assert "\x1b" not in one.verdict


def test_picture_is_deterministic(tmp_path: Path) -> None:
    assert_drawn_alike(draw(view()), tmp_path)


@pytest.mark.parametrize(("value", "told"), [(0, "0 B"), (999, "999 B"), (1.5e12, "1.5 TB"), (1e30, "1e+30 B")])
def test_volumes_are_formatted_with_units(value: float, told: str) -> None:
    assert volume_text(value) == told


@pytest.mark.parametrize("count", [5, 14, 60])
def test_remarks_wrap_at_words_without_overlap(count: int) -> None:
    remark = " ".join(f"remark{number}" for number in range(count))
    one = view(filesystem("first", remark=remark), filesystem("other", remark=remark))
    figure = composed(one)
    for axes in figure.axes[::2]:
        (written,) = (text for text in axes.texts if "remark" in text.get_text())
        words = written.get_text().replace(" …", "").split()
        assert words == remark.split()[: len(words)]
        assert (len(words) < count) == written.get_text().endswith("…")
        box = written.get_window_extent()
        title = axes.title if axes.title.get_text() else axes._left_title  # type: ignore[attr-defined]
        assert not box.overlaps(title.get_window_extent())
        assert box.x1 <= axes.get_window_extent().x1
    # Rows stay apart for texts of any height above them.
    boxes = [box for axes in figure.axes[::2] if (box := axes.get_tightbbox()) is not None]
    assert boxes[0].y0 > boxes[1].y1
    assert figure.legends[0].get_window_extent().y0 > boxes[0].y1


@pytest.mark.parametrize(("contended_bytes", "panel_count"), [(134e3, 1), (39e6, 1), (41e6, 2), (20e9, 2)])
def test_negligible_contention_has_no_delay_panel(contended_bytes: float, panel_count: int) -> None:
    # The application moves 40 GB; a thousandth is 40 MB.
    one = filesystem(best_delay_s=0.0)
    few = replace(
        one, contended_bytes=np.full(len(DELAYS), contended_bytes), low_contended_bytes=0.0, high_contended_bytes=0.0
    )
    shown = view(few)
    figure = composed(shown)
    assert len(figure.axes) == panel_count
    assert ("no contention at any start" in figure.texts[1].get_text()) == (panel_count == 1)
