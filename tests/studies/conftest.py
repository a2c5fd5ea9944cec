"""Pages are tested without their figures."""

import pytest

from iosig.studies import pages


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have empty files for figures: to lay out and to encode takes longest, and is tested where it belongs."""
    draw_figure = pages.draw_figure
    monkeypatch.setattr(
        pages, "draw_figure", lambda page, name, _: draw_figure(page, name, lambda path: path.write_bytes(b""))
    )
