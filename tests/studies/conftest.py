"""Fixture for tests of study pages without their figures."""

import pytest

from iosig.studies import pages


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace figures by empty files, because layout and encoding are slow and have separate tests."""
    draw_figure = pages.draw_figure
    monkeypatch.setattr(
        pages, "draw_figure", lambda page, name, _: draw_figure(page, name, lambda path: path.write_bytes(b""))
    )
