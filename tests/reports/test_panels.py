"""Parts of pictures: pixel columns that keep every burst, headings that fit, and atomic files."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.figure import Figure

from iosig import reports
from iosig.reports import panels, style
from iosig.reports.panels import Columns, Picture
from tests.budget import examples

rates = st.one_of(st.just(np.nan), st.floats(0, 1e15), st.just(np.inf))


@given(st.lists(rates, max_size=60), st.integers(1, 70), st.integers(1, 70))
@settings(max_examples=examples(60), deadline=None)
def test_columns_keep_minimum_and_maximum(values: list[float], most: int, columns: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panels, "MAX_EXACT_VALUES", most)
        patch.setattr(panels, "PIXEL_COLUMNS", columns)
        found = Columns.aggregate(np.array(values, dtype=np.float64))
    known = [value for value in values if np.isfinite(value)]
    if known and len(values) <= most:
        assert found.is_exact
    if known:
        assert (np.nanmin(found.lowest), np.nanmax(found.highest)) == (min(known), max(known))
    else:
        assert np.isnan(found.highest).all()


def test_long_line_passes_the_extremes_of_each_column() -> None:
    values = np.zeros(100_000)
    values[77_777] = 5.0
    places, heights = Columns.aggregate(values).line(np.arange(100_001, dtype=np.float64))
    assert len(places) == len(heights) == 2 * panels.PIXEL_COLUMNS
    assert heights.max() == 5.0
    assert abs(places[int(np.argmax(heights))] - 77_777) < 100_000 / panels.PIXEL_COLUMNS


def test_short_line_passes_the_middles_of_steps() -> None:
    places, heights = Columns.aggregate(np.array([1.0, np.nan, 3.0])).line(np.array([-1.0, 1.0, 3.0, 5.0]))
    assert places.tolist() == [0.0, 2.0, 4.0]
    assert np.array_equal(heights, [1.0, np.nan, 3.0], equal_nan=True)


def test_heading_is_shortened_to_the_figure() -> None:
    with style.drawn_in():
        figure = panels.blank((4.0, 2.0))
        shown = figure.text(0.02, 0.5, "", fontsize=13)
        panels.fit(figure, shown, "begin" + "x" * 400 + "end")
        assert shown.get_window_extent().width <= 0.97 * figure.bbox.width
    assert shown.get_text().startswith("begin")
    assert shown.get_text().endswith("end")


@pytest.mark.parametrize("kind", sorted(panels.KINDS))
def test_picture_bytes_are_independent_of_matplotlib_settings(kind: str, tmp_path: Path) -> None:
    import matplotlib

    def compose(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.plot([1, 2, 3], label="$x_1$")
        panels.legend_above(axes)

    picture = Picture((4.0, 3.0), compose)
    picture.write(tmp_path / f"a.{kind}")
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": None}):
        picture.write(tmp_path / "b", kind=kind)
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / "b").read_bytes()


def test_matplotlib_is_imported_only_to_draw() -> None:
    names = [name for _, name, _ in pkgutil.walk_packages(reports.__path__, f"{reports.__name__}.")]
    assert len(names) > 40
    code = f"import sys, {', '.join(names)}; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_failed_write_keeps_the_previous_file(tmp_path: Path) -> None:
    def refuse(_: Figure) -> None:
        raise OSError("disk full")

    (tmp_path / "a.png").write_bytes(b"old")
    with pytest.raises(OSError, match="disk full"):
        Picture((4.0, 3.0), refuse).write(tmp_path / "a.png")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.png", b"old")]


def test_other_file_extensions_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        Picture((4.0, 3.0), lambda figure: None).write(tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shown", style.STYLES.values(), ids=style.STYLES)
def test_picture_has_the_background_of_its_style(shown: style.Style, tmp_path: Path) -> None:
    from matplotlib.colors import to_hex
    from matplotlib.image import imread

    picture = Picture((2.0, 1.0), lambda figure: panels.headings(figure, "x", ("y",), style.INK))
    picture.write(tmp_path / "a.png", shown)
    pixels = {to_hex(pixel).upper() for pixel in imread(tmp_path / "a.png").reshape(-1, 4)}
    assert {shown.ground, shown.ink} <= pixels
