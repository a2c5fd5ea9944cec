"""Pictures are kept as figures, and looked at; pages are tested without them."""

import pytest

from iosig.studies import pages
from tests.drawn_figures import kept

__all__ = ["kept", "undrawn"]


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have empty files for figures: to lay out and to encode takes longest, and is tested where it belongs."""
    draw_beside = pages.draw_beside
    monkeypatch.setattr(
        pages, "draw_beside", lambda page, name, _: draw_beside(page, name, lambda path: path.write_bytes(b""))
    )
