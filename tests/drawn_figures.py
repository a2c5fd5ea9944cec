"""What tests of pictures share: figures as they would be written."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from iosig.reports import style
from iosig.reports.panels import Picture


def figure_of(picture: Picture) -> Figure:
    """Return a picture's figure, laid out."""
    with style.drawn_in():
        figure = picture.figure()
        figure.draw_without_rendering()
    return figure


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures as they would be written."""
    found: list[Figure] = []

    def keep(picture: Picture, _: object) -> None:
        found.append(figure_of(picture))

    monkeypatch.setattr(Picture, "write", keep)
    return found
