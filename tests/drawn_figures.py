"""What tests of pictures share: a fixture that keeps figures instead of writing them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from iosig.reports import panels, style


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures as they would be written."""
    found: list[Figure] = []

    def keep(size: tuple[float, float], compose: Callable[[Figure], None], _: Path) -> None:
        with style.drawn_in():
            figure = panels.blank(size)
            compose(figure)
        found.append(figure)

    monkeypatch.setattr(panels, "write", keep)
    return found
