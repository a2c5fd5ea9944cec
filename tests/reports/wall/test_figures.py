"""The figures of the wall: findings, drawn values, and any input is drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread

from iosig.reports import panels, style
from iosig.reports.style import DARK, LIGHT, drawn_in
from iosig.reports.wall import checkpoint_clock, point_labels, population_map, release_changes, storage_calendar
from iosig.reports.wall.checkpoint_clock import ClockView, DrawnRhythm, Meeting
from iosig.reports.wall.population_map import DrawnApplication, MapView
from iosig.reports.wall.release_changes import ChangesView, DrawnChange, Pair
from iosig.reports.wall.storage_calendar import CalendarView, DayRates
from tests.drawn_figures import figure_of

_HOSTILE = "$x^2$\x1b[2J\n" + "W" * 300


def heading(figure: Figure) -> str:
    return figure.texts[0].get_text()


# ---- the storage calendar


def calendar(days: int = 2, rate: float = 1e9, name: str = "lake") -> CalendarView:
    rates = np.full((days, 1440), rate)
    rates[:, 13 * 60 : 14 * 60] *= 3
    rates[0, :60] = np.nan
    shown = [date(2026, 1, 1) + timedelta(days=number) for number in range(days)]
    return CalendarView(name, shown, [DayRates("write", rates), DayRates("read", rates / 10)])


def test_calendar_finding_has_peak_hour_and_missing_ratio() -> None:
    view = calendar()
    known = 60 * (2 * 1440 - 60)
    assert view.moved_bytes == pytest.approx(1.1 * (known + 2 * 2 * 3600) * 1e9)
    assert view.missing_ratio == pytest.approx(60 / 2880)
    assert view.finding.endswith("in 2 days, most from 13 to 14 h UTC, 2.8 times the mean")
    figure = figure_of(storage_calendar.draw(view))
    assert "2.1% of the minutes not polled (hatched)" in figure.texts[1].get_text()


def test_gaps_are_hatched_and_larger_values_are_darker() -> None:
    figure = figure_of(storage_calendar.draw(calendar()))
    axes = figure.axes[0]
    image = np.asarray(axes.images[0].get_array())
    assert axes.patch.get_hatch()
    assert (image[0, :60, 3] == 0).all()
    assert (image[1, :, 3] == 1).all()
    assert image[1, 13 * 60, :3].sum() < image[1, 0, :3].sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "view",
    [
        calendar(1),
        calendar(1, 0.0),
        calendar(1, math.nan),
        calendar(1, 1e-320),
        calendar(90, 1e14),
        calendar(1, 1.0, _HOSTILE),
        CalendarView("x", [], []),
    ],
)
def test_any_calendar_is_drawn(view: CalendarView, tmp_path: Path) -> None:
    storage_calendar.draw(view).write(tmp_path / "a.png", DARK)
    assert to_hex(imread(tmp_path / "a.png")[0, 0]).upper() == DARK.ground


# ---- the population map


def application(name: str, month_bytes: float, label: str | None = "END") -> DrawnApplication:
    return DrawnApplication(name, month_bytes, 3.0, 10, label)


def test_map_finding_has_the_number_of_applications_that_move_half() -> None:
    view = MapView("r", [application("a", 1e9), application("b", 4e9), application("c", 2e9)], 3, 30.0)
    assert view.finding == "1 of 3 applications moves half of all bytes; most by b, 4 GB a month"
    more = replace(view, applications=[application(f"a{number}", 1e9) for number in range(4)])
    assert more.finding.startswith("2 of 4 applications move half")
    assert replace(view, applications=[]).finding == "No application has a signature with I/O"


def test_marks_have_the_colors_of_classes_and_labels_of_the_largest() -> None:
    figure = figure_of(
        population_map.draw(MapView("r", [application("a", 1e9), application("b", 4e12, "HILL")], 0, 30.0))
    )
    (points,) = figure.axes[0].collections
    colors = [to_hex(color).upper() for color in points.get_facecolors()]
    assert dict(zip(np.asarray(points.get_offsets())[:, 0].tolist(), colors, strict=True)) == {
        1e9: LIGHT.blue,
        4e12: LIGHT.green,
    }
    assert {text.get_text() for text in figure.axes[0].texts} == {"a", "b"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "applications",
    [
        [application(_HOSTILE, 1.0, None)],
        [application("a", 1e30), application("b", 1e-30)],
        [application("same", 1e9)] * 50,
        [DrawnApplication("none", 0.0, math.nan, 0, None)],
    ],
)
def test_any_map_is_drawn(applications: list[DrawnApplication], tmp_path: Path) -> None:
    population_map.draw(MapView(_HOSTILE, applications, 5, 0.5)).write(tmp_path / "a.png")
    assert imread(tmp_path / "a.png").shape[1] == 1320


# ---- the checkpoint clock


def clock(*meetings: Meeting) -> ClockView:
    rhythms = [
        DrawnRhythm(name, "lake", period_s, 1e9) for name, period_s in (("a", 60.0), ("b", 300.0), ("c", 7200.0))
    ]
    return ClockView("r", "in the last day", rhythms, meetings)


def test_clock_finding_names_the_pair_that_coincides_most() -> None:
    view = clock(Meeting(0, 1, 0.2), Meeting(1, 2, 12.4))
    assert view.finding == "Bursts of b and c overlap most: about 12 times in the last day"
    assert clock().finding == "3 applications with a period; none of their bursts overlapped in the last day"
    assert clock(Meeting(0, 1, 0.2)).finding.endswith("less than once in the last day")
    assert replace(view, rhythms=[], meetings=[]).finding == "No application has a period"


def test_axis_has_periods_and_pairs_are_red_curves() -> None:
    axes = figure_of(checkpoint_clock.draw(clock(Meeting(0, 1, 4.0), Meeting(1, 2, 1.0)))).axes[0]
    assert {"1 min", "5 min", "1 h"} <= {tick.get_text() for tick in axes.get_xticklabels()}
    curves = [patch for patch in axes.patches if to_hex(patch.get_edgecolor()).upper() == LIGHT.vermilion]
    assert sorted(curve.get_linewidth() for curve in curves) == pytest.approx([0.8 + 1.6, 0.8 + 3.2])


@pytest.mark.slow
@pytest.mark.parametrize(
    "rhythms",
    [
        [],
        [DrawnRhythm(_HOSTILE, _HOSTILE, 1e-6, 1.0)],
        [DrawnRhythm("a", "x", 1e9, 1e30), DrawnRhythm("b", "y", 1e-9, 1e-30)],
    ],
)
def test_any_clock_is_drawn(rhythms: list[DrawnRhythm], tmp_path: Path) -> None:
    meetings = [Meeting(0, 1, 1e-9)] if len(rhythms) > 1 else []
    checkpoint_clock.draw(ClockView(_HOSTILE, "now", rhythms, meetings, 2)).write(tmp_path / "a.png")
    assert imread(tmp_path / "a.png").shape[1] == 1320


# ---- changes between releases

_NONE = Pair(math.nan, math.nan)


def change(name: str, *volume: float, period: Pair = _NONE) -> DrawnChange:
    return DrawnChange(name, Pair(*volume), Pair(5, 5), period)


def test_changes_finding_names_the_largest_change() -> None:
    view = ChangesView("a", "b", [change("small", 100, 104), change("large", 100, 250), change("less", 100, 80)], 9)
    assert view.finding == "2 of 9 signatures changed: largest in large, bytes \u00d7 2.5"
    assert [one.name for one in view.shown] == ["large", "less"]
    lost = change("beat", 100, 100, period=Pair(60.0, math.nan))
    assert ChangesView("a", "b", [lost], 1).finding.endswith("largest in beat, without a period now")
    gone = DrawnChange("old", Pair(3, math.nan), Pair(1, math.nan), _NONE)
    assert ChangesView("a", "b", [gone], 1).finding == "1 of 1 signature changed: old is gone"


@pytest.mark.parametrize(
    ("pair", "factor"),
    [
        (Pair(2, 6), 3.0),
        (Pair(6, 2), 3.0),
        (Pair(0, 0), 1.0),
        (Pair(0, 1), math.inf),
        (Pair(1, math.nan), math.inf),
        (Pair(math.nan, 1), math.inf),
        (_NONE, 1.0),
    ],
)
def test_factor_is_the_larger_divided_by_the_smaller(pair: Pair, factor: float) -> None:
    assert pair.factor == factor


def test_rings_are_before_and_disks_after() -> None:
    view = ChangesView("a", "b", [change("up", 1e9, 2e9), change("down", 2e9, 1e9)], 2)
    axes = figure_of(release_changes.draw(view)).axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["down", "up"]
    ends = [(line.get_color(), line.get_markerfacecolor(), list(line.get_xdata())) for line in axes.lines]
    assert (style.VERMILION, style.GROUND, [1e9]) in [(rim, face, x) for (_, face, x), rim in _rims(axes, ends)]
    assert (style.BLUE, style.BLUE, [1e9]) in [(rim, face, x) for (_, face, x), rim in _rims(axes, ends)]


def _rims(axes: Axes, ends: list[tuple[object, object, list[float]]]) -> list[tuple[tuple, object]]:
    return list(zip(ends, (line.get_markeredgecolor() for line in axes.lines), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        [],
        [change(_HOSTILE, 1e-30, 1e30)],
        [change(f"a{number}", 1.0, 2.0 + number) for number in range(80)],
        [change("x", 0.0, 1.0)],
    ],
)
def test_any_change_is_drawn(changes: list[DrawnChange], tmp_path: Path) -> None:
    release_changes.draw(ChangesView(_HOSTILE, "b", changes, len(changes))).write(tmp_path / "a.png")
    assert imread(tmp_path / "a.png").shape[1] == 1320


# ---- names


def test_names_do_not_overlap_names_or_points() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.random(40), rng.random(40)
    with drawn_in():
        figure = panels.blank((5.0, 4.0))
        axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
        axes.set(xlim=(0, 1), ylim=(0, 1))
        written = point_labels.name_points(axes, x, y, np.full(40, 5.0), [f"name {number}" for number in range(40)])
        boxes = [text.get_window_extent() for text in axes.texts]
        points = axes.transData.transform(np.column_stack([x, y]))
    assert 5 < len(written) == len(boxes) < 40
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    assert not any(box.padded(4.9).contains(*point) for box in boxes for point in points)
