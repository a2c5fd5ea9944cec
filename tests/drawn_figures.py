"""What tests of pictures share."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from iosig.reports import style
from iosig.reports.panels import Picture

_STARTS = {"png": b"\x89PNG", "svg": b"<?xml"}


def figure_of(picture: Picture) -> Figure:
    """Return a picture's figure, laid out."""
    with style.drawn_in():
        figure = picture.figure()
        figure.draw_without_rendering()
    return figure


def assert_drawn_alike(picture: Picture, folder: Path, kind: str = "png") -> None:
    """Write a picture twice, the same to the byte."""
    first, second = folder / f"first.{kind}", folder / "deep" / f"second.{kind}"
    picture.write(first)
    picture.write(second)
    assert first.read_bytes().startswith(_STARTS[kind])
    assert first.read_bytes() == second.read_bytes()
