"""Pictures are kept as figures, and looked at; pages are tested without them."""

from dataclasses import replace

import pytest

from iosig.studies import pages
from tests.drawn_figures import kept

__all__ = ["kept", "undrawn"]


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have empty files for figures: to lay out and to encode takes longest, and is tested where it belongs."""
    drawn = pages._drawn
    monkeypatch.setattr(
        pages, "_drawn", lambda figure, page: drawn(replace(figure, draw=lambda path: path.write_bytes(b"")), page)
    )
